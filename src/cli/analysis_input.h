/* What all commands over the engine do alike: their options, opening a trace as an analysis with its filter,
   progress, losses and --strict. */
#ifndef SM_CLI_ANALYSIS_INPUT_H
#define SM_CLI_ANALYSIS_INPUT_H

#include "cli/command.h"
#include "cli/trace_input.h"
#include "report/asked.h"

/* Rows for a command's option table. */
/* Without --to, which is a format where files are written. */
#define SM_FILTER_OPTIONS_BUT_TO                                                                   \
    {'f',                                                                                          \
     "filter",                                                                                     \
     SM_ARG_TEXT,                                                                                  \
     "FILTER",                                                                                     \
     NULL,                                                                                         \
     "Only what FILTER lets through, e.g. 'size >= 1kB and not collected' (docs/filters.md); "     \
     "several: all of them"},                                                                      \
        {'d', "domain", SM_ARG_TEXT, "N", NULL, "Only what domain N allocated"},                   \
        {0,                                                                                        \
         "source",                                                                                 \
         SM_ARG_TEXT,                                                                              \
         "NAME",                                                                                   \
         NULL,                                                                                     \
         "Only allocations of this heap or origin (minor, major, external, native, ...)"},         \
        {0,      "first", SM_ARG_TEXT,                                                             \
         "TIME", NULL,    "Only the first TIME of the trace (10s, 500ms, 2m)"},                    \
        {0, "last", SM_ARG_TEXT, "TIME", NULL, "Only the last TIME of the trace"}, {               \
        0, "from", SM_ARG_TEXT, "TIME", NULL, "Only allocations at or after TIME"                  \
    }
#define SM_FILTER_OPTIONS                                                                          \
    SM_FILTER_OPTIONS_BUT_TO, {                                                                    \
        0, "to", SM_ARG_TEXT, "TIME", NULL, "Only allocations at or before TIME"                   \
    }
#define SM_ANALYSIS_OPTIONS SM_FILTER_OPTIONS, SM_READING_OPTIONS
#define SM_READING_OPTIONS                                                                         \
    {0, "bytes", SM_ARG_NONE, NULL, NULL, "Show sizes in bytes"},                                  \
        {0, "no-cache", SM_ARG_NONE, NULL, NULL, "Neither read nor write a cache file"},           \
        SM_COLOR_OPTION, SM_TRACE_OPTIONS
#define SM_TOP_OPTION                                                                              \
    { 'n', "top", SM_ARG_NUMBER, "N", NULL, "Show N rows (20); 0 shows all" }
#define SM_JSON_OPTION                                                                             \
    { 'j', "json", SM_ARG_NONE, NULL, NULL, "Print JSON" }
#define SM_CSV_OPTION                                                                              \
    { 0, "csv", SM_ARG_NONE, NULL, NULL, "Print CSV" }
#define SM_WEIGHT_OPTION(what)                                                                     \
    {                                                                                              \
        'w', "weight", SM_ARG_TEXT, "WEIGHT", NULL,                                                \
            "What counts: allocated, live@end, live@peak, live@own-peak, live@3.5s, freed, "       \
            "promoted, early, temporary, temporary<10ms, lifetime, samples, objects (" what ")"    \
    }
#define SM_FOLD_OPTION                                                                             \
    {                                                                                              \
        0, "fold-recursion", SM_ARG_NONE, NULL, NULL,                                              \
            "Show functions that call themselves directly once"                                    \
    }
#define SM_KEY_OPTION                                                                              \
    {                                                                                              \
        'k', "key", SM_ARG_CHOICE, "WHAT", "function|line|frame|file|module",                      \
            "What a frame is taken for (function)"                                                 \
    }

struct sm_analysis_input {
    struct sm_analysis *a;
    struct sm_filter *filter;
    char *filter_text;
    struct sm_asked asked;
};

/* Opens the only positional argument (without one, the newest *.stm here) and applies the filter. On trouble it
   has been told and the exit code is returned; else SM_EXIT_OK. */
int sm_analysis_input_open(const struct sm_invocation *in, struct sm_analysis_input *to);
/* The same of a named trace. */
int sm_analysis_input_open_path(const struct sm_invocation *in, const char *path,
                                struct sm_analysis_input *to);
/* Tells losses on stderr unless `quiet`; with --strict and a loss the exit code is SM_EXIT_TROUBLE, else `code`. */
int sm_analysis_input_close(const struct sm_invocation *in, struct sm_analysis_input *input,
                            bool quiet, int code);

/* The weights of --weight (commas between), or `otherwise`. False when told. */
bool sm_analysis_weights(const struct sm_invocation *in, const struct sm_analysis_input *input,
                         const char *otherwise, struct sm_weight *list, uint32_t max, uint32_t *n);
enum sm_key_kind sm_analysis_key(const struct sm_invocation *in);
/* A fragment "Main.main > Lib.f": keys, outermost first; free(). Names are a place's id or its name. False when told. */
bool sm_analysis_focus(const struct sm_invocation *in, const struct sm_view *v, const char *text,
                       uint32_t **keys, uint32_t *n);

#endif
