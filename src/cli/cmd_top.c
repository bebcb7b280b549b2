/* statmem top: the hottest allocation sites. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/trace_input.h"
#include "report/top.h"
#include "util/number.h"
#include "util/terminal.h"

static const struct sm_option options[] = {
    {'s', "sort", SM_ARG_CHOICE, "METRIC", "allocated|live|peak|promoted|collected|samples|blocks",
     "What counts"},
    {'b', "by", SM_ARG_CHOICE, "WHAT", "site|function|line|file|domain|thread|source",
     "What a row stands for"},
    {'i', "inclusive", SM_ARG_NONE, NULL, NULL,
     "With --by function, line or file: sort by what callees allocated too"},
    {'n', "top", SM_ARG_NUMBER, "N", NULL, "Show N rows (20); 0 shows all"},
    {0, "callers", SM_ARG_NUMBER, "N", NULL, "Show callers up to N calls away (3)"},
    {0, "no-callers", SM_ARG_NONE, NULL, NULL, "Show no callers"},
    {'d', "domain", SM_ARG_NUMBER, "N", NULL, "Only what domain N allocated"},
    {0, "source", SM_ARG_CHOICE, "HEAP", "minor|major|external|native",
     "Only allocations in this heap"},
    {0, "first", SM_ARG_TEXT, "TIME", NULL, "Only the first TIME of the trace (10s, 500ms, 2m)"},
    {0, "last", SM_ARG_TEXT, "TIME", NULL, "Only the last TIME of the trace"},
    {0, "from", SM_ARG_TEXT, "TIME", NULL, "Only allocations at or after TIME since the start"},
    {0, "to", SM_ARG_TEXT, "TIME", NULL, "Only allocations at or before TIME since the start"},
    {0, "bytes", SM_ARG_NONE, NULL, NULL, "Show sizes in bytes rather than kB, MB, ..."},
    {'j', "json", SM_ARG_NONE, NULL, NULL, "Print JSON"},
    {0, "csv", SM_ARG_NONE, NULL, NULL, "Print CSV"},
    SM_COLOR_OPTION,
    SM_TRACE_OPTIONS,
    {0},
};

/* The place of a value among the table's choices. */
static int choice(const struct sm_invocation *in, const char *name, const char *const *values,
                  int otherwise) {
    const char *value = sm_option_value(in, name);
    for (int i = 0; value != NULL && values[i] != NULL; i++) {
        if (strcmp(values[i], value) == 0)
            return i;
    }
    return otherwise;
}

static bool numbers(const struct sm_invocation *in, struct sm_top_options *o) {
    uint64_t callers = 3;
    bool given;
    if (!sm_option_u64(in, "top", &o->n_rows) || !sm_option_u64(in, "callers", &callers) ||
        !sm_option_u64(in, "domain", &o->profile.domain) ||
        !sm_option_duration(in, "from", &o->profile.from_ns, &given) ||
        !sm_option_duration(in, "to", &o->profile.to_ns, &given))
        return false;
    o->caller_depth = callers > 16 ? 16 : (unsigned)callers;
    if (sm_option_given(in, "no-callers"))
        o->caller_depth = 0;
    return true;
}

/* --first and --last become times; --last may need to know where the trace ends. */
static int window(const struct sm_invocation *in, struct sm_trace *trace,
                  struct sm_profile_options *p) {
    int64_t length, last;
    bool given;
    struct sm_error err;
    if (!sm_option_duration(in, "first", &length, &given))
        return SM_EXIT_USAGE;
    if (given && length < p->to_ns)
        p->to_ns = length;
    if (!sm_option_duration(in, "last", &length, &given))
        return SM_EXIT_USAGE;
    if (given) {
        if (sm_trace_last_ns(trace, &last, &err) != SM_OK)
            return sm_trouble("%s", err.text);
        if (last - length > p->from_ns)
            p->from_ns = last - length;
    }
    return SM_EXIT_OK;
}

static int report(const struct sm_invocation *in, struct sm_trace *trace,
                  const struct sm_top_options *o) {
    struct sm_top top;
    struct sm_error err;
    if (sm_top_make(&top, trace, o, &err) != SM_OK)
        return sm_trouble("%s", err.text);
    sm_progress_end();
    struct sm_buffer out;
    sm_buffer_init(&out, STDOUT_FILENO);
    if (sm_option_given(in, "json"))
        sm_top_json(&out, &top);
    else if (sm_option_given(in, "csv"))
        sm_top_csv(&out, &top);
    else
        sm_top_print(&out, &top);
    int code = sm_output_end(&out);
    sm_top_release(&top);
    return code;
}

static int run(const struct sm_invocation *in) {
    static const char *const metrics[] = {"allocated", "live",   "peak",    "promoted",
                                          "collected", "blocks", "samples", NULL};
    static const char *const by[] = {"site",   "function", "line",   "file",
                                     "domain", "thread",   "source", NULL};
    static const char *const heaps[] = {"minor", "major", "external", "native", NULL};
    int metric = choice(in, "sort", metrics, SM_ALLOCATED);
    struct sm_top_options o = {.by = (enum sm_group_by)choice(in, "by", by, SM_BY_SITE),
                               .metric = metric > SM_BLOCKS ? SM_ALLOCATED : (enum sm_metric)metric,
                               .inclusive = sm_option_given(in, "inclusive"),
                               .n_rows = 20,
                               .profile = {.has_domain = sm_option_given(in, "domain"),
                                           .heap = choice(in, "source", heaps, -1),
                                           .from_ns = INT64_MIN,
                                           .to_ns = INT64_MAX},
                               .bytes = sm_option_given(in, "bytes"),
                               .colours = sm_want_colours(in),
                               .utf8 = sm_terminal_utf8(),
                               .width = sm_terminal_width(STDOUT_FILENO, 120),
                               .path = sm_trace_input_path(in)};
    if (!numbers(in, &o))
        return SM_EXIT_USAGE;
    if (sm_option_given(in, "json") && sm_option_given(in, "csv"))
        return sm_usage_error(in, "--json or --csv, not both");
    struct sm_trace *trace;
    int code = sm_trace_input_open(in, &trace);
    if (code != SM_EXIT_OK)
        return code;
    /* Where nothing else was recorded it need not be asked for. */
    const struct sm_meta *meta = sm_trace_meta(trace);
    if (o.profile.heap < 0 && meta->sample_rate == 0 && meta->native_interval_bytes != 0)
        o.profile.heap = SM_HEAP_NATIVE;
    code = window(in, trace, &o.profile);
    if (code == SM_EXIT_OK)
        code = report(in, trace, &o);
    return sm_trace_input_close(in, trace, false, code);
}

const struct sm_command sm_cmd_top = {
    .name = "top",
    .summary = "show the hottest allocation sites and who calls them",
    .usage = "[OPTION]... [TRACE]",
    .description =
        "Each row is an allocation site (or function, file, domain, ...: --by) with the estimated "
        "size, "
        "the larger half of its 95 % interval, its share of all, and the number of samples behind "
        "it; "
        "below it the callers that explain it, nearest first.\n"
        "\n"
        "Metrics (--sort):\n"
        "  allocated  all that was allocated\n"
        "  live       allocated and not yet collected at the end of the trace\n"
        "  peak       alive at the moment when all live memory together was largest\n"
        "  promoted   moved from the minor to the major heap\n"
        "  collected  known to have died\n"
        "  samples    as allocated\n"
        "  blocks     number of sampled blocks\n"
        "\n"
        "Native memory (malloc and the like) is sampled in another way and shown by itself: "
        "--source native. The tree, query, leaks and timeline commands show both together.\n"
        "\n"
        "A function that calls itself counts once. Functions of the same name in two files are two "
        "functions. Frames without debug information are named from symbols, with their file in "
        "brackets.",
    .examples = "statmem top prog.statmem\n"
                "    the twenty hottest allocation sites\n"
                "statmem top --sort live --last 10s prog.statmem\n"
                "    what was allocated in the last ten seconds and is still alive\n"
                "statmem top --by function --inclusive --no-callers prog.statmem\n"
                "    functions, with what their callees allocate\n"
                "statmem top --by domain old.ctf\n"
                "    shares of the domains of a memtrace trace\n",
    .options = options,
    .arguments_are_files = true,
    .run = run,
};
