/* statmem's entry: finds the command, parses its options by its table, runs it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/output.h"
#include "util/memory.h"
#include "util/terminal.h"

static void out_of_memory(size_t bytes) {
    (void)bytes;
    static const char message[] = "statmem: out of memory\n";
    ssize_t ignored = write(STDERR_FILENO, message, sizeof message - 1);
    (void)ignored;
    _exit(SM_EXIT_TROUBLE);
}

/* An unknown word where a command should stand. */
static int unknown_command(const char *word) {
    const char *names[64];
    size_t n = 0;
    for (; sm_commands[n] != NULL && n < 63; n++)
        names[n] = sm_commands[n]->name;
    names[n++] = "help";
    const char *nearest = sm_nearest_name(word, names, n);
    sm_complain("statmem: there is no command '%.60s'", word);
    if (nearest != NULL)
        fprintf(stderr, "Did you mean 'statmem %s'? ", nearest);
    fputs("'statmem help' lists all commands.\n", stderr);
    return SM_EXIT_USAGE;
}

static unsigned help_width(void) {
    unsigned width = sm_terminal_width(STDOUT_FILENO, 80);
    return width > 100 ? 100 : width < 40 ? 40 : width;
}

static int help(const char *name) {
    const struct sm_command *command = name != NULL ? sm_find_command(name) : NULL;
    if (name != NULL && command == NULL)
        return unknown_command(name);
    struct sm_buffer out;
    sm_buffer_init(&out, STDOUT_FILENO);
    if (command != NULL)
        sm_help_command(&out, command, help_width());
    else
        sm_help_overview(&out, help_width());
    return sm_output_end(&out);
}

/* For the build and for packagers, not listed in help. */
static int generate(const char *what, const char *name) {
    struct sm_buffer out;
    sm_buffer_init(&out, STDOUT_FILENO);
    if (strcmp(what, "completion") == 0) {
        if (name == NULL || !sm_completion(&out, name)) {
            fputs("statmem completion: name a shell: bash, zsh or fish\n", stderr);
            return SM_EXIT_USAGE;
        }
    } else {
        const struct sm_command *command = name != NULL ? sm_find_command(name) : NULL;
        if (name == NULL || (command == NULL && strcmp(name, "statmem") != 0))
            return unknown_command(name != NULL ? name : "");
        sm_manpage(&out, command);
    }
    return sm_output_end(&out);
}

static int run(const struct sm_command *command, int argc, char **argv) {
    struct sm_invocation in;
    struct sm_error err;
    bool wants_help;
    int result;
    if (!sm_options_parse(&in, command, argc, argv, &wants_help, &err))
        result = sm_usage_error(&in, "%s", err.text);
    else if (wants_help)
        result = help(command->name);
    else
        result = command->run(&in);
    sm_options_release(&in);
    return result;
}

int main(int argc, char **argv) {
    sm_set_out_of_memory(out_of_memory);
    if (argc < 2) {
        struct sm_buffer out;
        sm_buffer_init(&out, STDERR_FILENO);
        sm_help_overview(&out, help_width());
        sm_buffer_flush(&out);
        sm_buffer_release(&out);
        return SM_EXIT_USAGE;
    }
    const char *word = argv[1], *next = argc > 2 ? argv[2] : NULL;
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        puts("statmem " SM_VERSION);
        return fflush(stdout) == 0 ? SM_EXIT_OK : SM_EXIT_TROUBLE;
    }
    if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return help(next);
    const struct sm_command *command = sm_find_command(word);
    if (command != NULL)
        return run(command, argc - 2, argv + 2);
    if (strcmp(word, "completion") == 0 || strcmp(word, "manpage") == 0)
        return generate(word, next);
    return unknown_command(word);
}
