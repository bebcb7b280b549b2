/* What all commands that read a trace do alike: the options, opening with its errors, progress, the
   report of losses and --strict. */
#ifndef SM_CLI_TRACE_INPUT_H
#define SM_CLI_TRACE_INPUT_H

#include "cli/command.h"
#include "decode/trace.h"
#include "util/buffer.h"

/* Rows for a command's option table. */
#define SM_TRACE_OPTIONS                                                                           \
    {0, "strict", SM_ARG_NONE, NULL, NULL, "Exit with 1 when anything in the trace was lost"},     \
        {0,   "part", SM_ARG_NUMBER,                                                               \
         "N", NULL,   "Of a file with several traces one after the other, read the Nth (from 1)"}, \
    {                                                                                              \
        0, "no-tail", SM_ARG_NONE, NULL, NULL,                                                     \
            "Do not read the side file (TRACE.tail) of a program that was killed or still runs"    \
    }
#define SM_COLOR_OPTION                                                                            \
    { 0, "color", SM_ARG_CHOICE, "WHEN", "auto|always|never", "Use colours" }

/* Opens the only positional argument; without one, the newest *.stm of the working directory. On trouble it has been told, *trace is NULL and the exit code is
   returned; else SM_EXIT_OK. */
int sm_trace_input_open(const struct sm_invocation *in, struct sm_trace **trace);

/* The name of the trace that sm_trace_input_open takes; "" when there is none. */
const char *sm_trace_input_path(const struct sm_invocation *in);

/* sm_trace_input_open for commands that have other positional arguments too. */
int sm_trace_input_open_path(const struct sm_invocation *in, const char *path,
                             struct sm_trace **trace);

/* After reading: tells losses on stderr (unless `quiet`: the command shows them itself) and frees the
   trace. Returns SM_EXIT_TROUBLE when --strict was given and something was lost, else `code`. */
int sm_trace_input_close(const struct sm_invocation *in, struct sm_trace *trace, bool quiet,
                         int code);

/* True when events or names may be missing from what was read. */
bool sm_trace_input_lost(const struct sm_trace *trace);

/* Colours wanted on standard output, by --color, NO_COLOR and the terminal. */
bool sm_want_colours(const struct sm_invocation *in);

/* Values of numeric options; false with the usage error told when malformed; *x stays when absent. */
bool sm_option_u64(const struct sm_invocation *in, const char *long_name, uint64_t *x);
bool sm_option_duration(const struct sm_invocation *in, const char *long_name, int64_t *ns,
                        bool *given);

#endif
