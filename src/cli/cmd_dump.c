/* statmem dump: one line per event, in the order of time. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/trace_input.h"
#include "report/dump.h"
#include "util/number.h"
#include "util/terminal.h"

static const struct sm_option options[] = {
    {'j', "json", SM_ARG_NONE, NULL, NULL, "One JSON object per line"},
    {'n', "limit", SM_ARG_NUMBER, "N", NULL, "Stop after N lines"},
    {'k', "kind", SM_ARG_CHOICE, "KIND", "alloc|promote|collect|other",
     "Only events of this kind (other: marks, counters, GC phases, ...)"},
    {'d', "domain", SM_ARG_NUMBER, "N", NULL, "Only events that happened on domain N"},
    {'s', "source", SM_ARG_CHOICE, "HEAP", "minor|major|external|native",
     "Only allocations in this heap"},
    {0, "from", SM_ARG_TEXT, "TIME", NULL,
     "Only events at or after TIME since the start (10s, 500ms)"},
    {0, "to", SM_ARG_TEXT, "TIME", NULL, "Only events at or before TIME since the start"},
    {0, "no-stacks", SM_ARG_NONE, NULL, NULL, "Leave the call stacks out (much faster)"},
    SM_TRACE_OPTIONS,
    {0},
};

static int run(const struct sm_invocation *in) {
    struct sm_dump_options o = {.json = sm_option_given(in, "json"),
                                .stacks = !sm_option_given(in, "no-stacks"),
                                .utf8 = sm_terminal_utf8(),
                                .kinds = ~0u,
                                .has_domain = sm_option_given(in, "domain"),
                                .heap = -1,
                                .from_ns = INT64_MIN,
                                .to_ns = INT64_MAX,
                                .limit = UINT64_MAX};
    bool given;
    if (!sm_option_u64(in, "limit", &o.limit) || !sm_option_u64(in, "domain", &o.domain) ||
        !sm_option_duration(in, "from", &o.from_ns, &given) ||
        !sm_option_duration(in, "to", &o.to_ns, &given))
        return SM_EXIT_USAGE;
    if (o.from_ns > o.to_ns)
        return sm_usage_error(in, "--from lies after --to");
    static const char *const kinds[] = {"alloc", "promote", "collect", "other"};
    for (unsigned i = 0; i < 4 && sm_option_given(in, "kind"); i++) {
        if (strcmp(sm_option_value(in, "kind"), kinds[i]) == 0)
            o.kinds = 1u << i;
    }
    static const char *const heaps[] = {"minor", "major", "external", "native"};
    for (int i = 0; i < 4 && sm_option_given(in, "source"); i++) {
        if (strcmp(sm_option_value(in, "source"), heaps[i]) == 0)
            o.heap = i;
    }
    struct sm_trace *trace;
    int code = sm_trace_input_open(in, &trace);
    if (code != SM_EXIT_OK)
        return code;
    struct sm_buffer out;
    struct sm_error err;
    sm_buffer_init(&out, STDOUT_FILENO);
    enum sm_status status = sm_dump(trace, &o, &out, &err);
    code = sm_output_end(&out);
    if (status == SM_FAILED)
        code = sm_trouble("%s", err.text);
    return sm_trace_input_close(in, trace, false, code);
}

const struct sm_command sm_cmd_dump = {
    .name = "dump",
    .summary = "show every event of a trace, one line each, in the order of time",
    .usage = "[OPTION]... [TRACE]",
    .description =
        "Each line holds: the time in seconds since the start of the trace, the domain (d0), the "
        "kind "
        "of event, and the object as STREAM:NUMBER. Allocations go on with the size (w = words "
        "without "
        "header, B = bytes), the heap, the number of samples (x1) and the call stack, innermost "
        "frame "
        "first. TRACE may be a trace of statmem or of memtrace (formats 1 to 3), or - for standard "
        "input.",
    .examples = "statmem dump prog.statmem | less\n"
                "    read all events\n"
                "statmem dump --kind alloc --source external --json prog.statmem\n"
                "    external allocations as JSON lines\n"
                "statmem dump --from 2s --to 2500ms --no-stacks prog.statmem\n"
                "    half a second of events without stacks\n",
    .options = options,
    .arguments_are_files = true,
    .run = run,
};
