/* A command of `statmem` is one file, cli/cmd_NAME.c, and one row in cli/commands.c. Its table says
   everything about its options; parsing, --help, man pages and shell completion are made from it.

   To add a command: write cli/cmd_NAME.c with a `const struct sm_command sm_cmd_NAME`, declare it
   below, add it to the list in cli/commands.c and to cli/meson.build.

   Exit codes: 0 done; 1 the input or the program under study had trouble (damage with --strict,
   a file that cannot be read); 2 wrong usage. */
#ifndef SM_CLI_COMMAND_H
#define SM_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum sm_exit { SM_EXIT_OK = 0, SM_EXIT_TROUBLE = 1, SM_EXIT_USAGE = 2 };

/* What an option's argument is; shells complete by it. */
enum sm_argument_kind { SM_ARG_NONE = 0, SM_ARG_TEXT, SM_ARG_FILE, SM_ARG_CHOICE, SM_ARG_NUMBER };

struct sm_option {
    char short_name;       /* 0 = none */
    const char *long_name; /* without dashes */
    enum sm_argument_kind kind;
    const char *argument; /* name shown in help, e.g. "FILE"; NULL for SM_ARG_NONE */
    const char *choices;  /* "a|b|c" for SM_ARG_CHOICE */
    const char *help;
};

/* One parsed command line. */
struct sm_invocation {
    const struct sm_command *command;
    const char **values; /* by option index: NULL = absent; "" for SM_ARG_NONE that is present; the
                            last of repeated ones */
    char **arguments;    /* positional */
    int n_arguments;
    struct sm_given { /* every option with a value, in order: for those that may be repeated */
        size_t option;
        const char *value;
    } * given;
    size_t n_given, given_capacity;
};

struct sm_command {
    const char *name;
    const char *summary;                        /* one line, no full stop */
    const char *usage;                          /* after "statmem NAME " */
    const char *description;                    /* paragraphs for --help and the man page */
    const char *examples;                       /* lines "command\n    what it does\n" */
    const struct sm_option *options;            /* ended by long_name = NULL */
    bool stop_at_first_argument;                /* record: the rest belongs to the program */
    bool arguments_are_files;                   /* completion of positional arguments */
    int (*run)(const struct sm_invocation *in); /* returns enum sm_exit */
};

/* The value of option `long_name`, NULL when absent. The name must be in the table. */
const char *sm_option_value(const struct sm_invocation *in, const char *long_name);
/* The nth (from 0) of an option that may be repeated; NULL when there are not so many. */
const char *sm_option_nth(const struct sm_invocation *in, const char *long_name, size_t n);
bool sm_option_given(const struct sm_invocation *in, const char *long_name);

/* Prints "statmem NAME: message" and how to get help to stderr; returns SM_EXIT_USAGE. */
int sm_usage_error(const struct sm_invocation *in, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints "statmem: message" to stderr; returns SM_EXIT_TROUBLE. */
int sm_trouble(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One a line: */
/* clang-format off */
extern const struct sm_command
    sm_cmd_record,
    sm_cmd_view,
    sm_cmd_info,
    sm_cmd_top,
    sm_cmd_tree,
    sm_cmd_flame,
    sm_cmd_source,
    sm_cmd_ctl, sm_cmd_timeline, sm_cmd_memory,
    sm_cmd_peak,
    sm_cmd_leaks,
    sm_cmd_temporary,
    sm_cmd_sizes,
    sm_cmd_lifetimes,
    sm_cmd_domains,
    sm_cmd_query,
    sm_cmd_diff,
    sm_cmd_dump,
    sm_cmd_convert,
    sm_cmd_export,
    sm_cmd_push,
    sm_cmd_strip,
    sm_cmd_subsample,
    sm_cmd_merge,
    sm_cmd_symbolize,
    sm_cmd_cache,
    sm_cmd_doctor;
/* clang-format on */

/* All commands, ended by NULL. */
extern const struct sm_command *const sm_commands[];

#endif
