/* statmem top: the hottest allocation sites. */
#include <string.h>
#include <unistd.h>

#include "cli/analysis_input.h"
#include "cli/output.h"
#include "report/top.h"

static const struct sm_option options[] = {
    {'s', "sort", SM_ARG_CHOICE, "METRIC", "allocated|live|peak|promoted|collected|samples|blocks",
     "What counts"},
    {'b', "by", SM_ARG_CHOICE, "WHAT", "site|function|line|file|module|domain|thread|source",
     "What a row stands for"},
    {'i', "inclusive", SM_ARG_NONE, NULL, NULL,
     "With --by function, line, file or module: sort by what callees allocated too"},
    SM_WEIGHT_OPTION("as --sort says"),
    SM_TOP_OPTION,
    {0, "callers", SM_ARG_NUMBER, "N", NULL, "Show callers up to N calls away (3)"},
    {0, "no-callers", SM_ARG_NONE, NULL, NULL, "Show no callers"},
    SM_FOLD_OPTION,
    SM_JSON_OPTION,
    SM_CSV_OPTION,
    SM_ANALYSIS_OPTIONS,
    {0},
};

static enum sm_top_metric metric(const struct sm_invocation *in) {
    static const char *const names[] = {"allocated", "live",      "peak",
                                        "promoted",  "collected", "blocks"};
    const char *value = sm_option_value(in, "sort");
    for (unsigned i = 0; value != NULL && i <= SM_TOP_BLOCKS; i++) {
        if (strcmp(names[i], value) == 0)
            return (enum sm_top_metric)i;
    }
    return SM_TOP_ALLOCATED;
}

static int report(const struct sm_invocation *in, const struct sm_analysis_input *input,
                  struct sm_top_options *o) {
    struct sm_top top;
    struct sm_buffer out;
    uint32_t n;
    if (sm_option_given(in, "weight")) {
        o->metric = SM_TOP_OTHER;
        if (!sm_analysis_weights(in, input, "allocated", &o->weight, 1, &n))
            return SM_EXIT_USAGE;
    }
    if (!sm_top_make(&top, &input->asked, o))
        return sm_usage_error(in, "cannot group by '%.60s'", o->by);
    sm_buffer_init(&out, STDOUT_FILENO);
    if (sm_option_given(in, "json"))
        sm_top_json(&out, &top);
    else if (sm_option_given(in, "csv"))
        sm_top_csv(&out, &top);
    else
        sm_top_print(&out, &top);
    sm_top_release(&top);
    return sm_output_end(&out);
}

static int run(const struct sm_invocation *in) {
    struct sm_analysis_input input;
    uint64_t callers = 3;
    const char *by = sm_option_value(in, "by");
    if (!sm_option_u64(in, "callers", &callers))
        return SM_EXIT_USAGE;
    if (sm_option_given(in, "weight") && sm_option_given(in, "sort"))
        return sm_usage_error(in, "--sort or --weight, not both");
    struct sm_top_options o = {.by = by != NULL ? by : "site",
                               .metric = metric(in),
                               .inclusive = sm_option_given(in, "inclusive"),
                               .caller_depth = sm_option_given(in, "no-callers") ? 0
                                               : callers > 16                    ? 16
                                                              : (unsigned)callers};
    int code = sm_analysis_input_open(in, &input);
    if (code != SM_EXIT_OK)
        return code;
    code = report(in, &input, &o);
    return sm_analysis_input_close(in, &input, false, code);
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
        "--weight knows more of them.\n"
        "\n"
        "Native memory (malloc and the like) and OCaml memory are weighed together; --source "
        "native "
        "shows the first alone, --source minor,major,external the second.\n"
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
