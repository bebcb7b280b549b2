/* statmem tree: who calls what, weighed. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/analysis_input.h"
#include "cli/output.h"
#include "report/tree.h"

static const struct sm_option options[] = {
    SM_WEIGHT_OPTION("allocated"),
    {'c', "callers", SM_ARG_NONE, NULL, NULL,
     "Grow from allocation sites (or the focus) to their callers, not from callers to callees"},
    {0, "focus", SM_ARG_TEXT, "CALLS", NULL,
     "Only stacks with these consecutive calls, outermost first: 'Main.run > Parser.parse'"},
    {0, "min-share", SM_ARG_TEXT, "PERCENT", NULL, "Leave out branches below PERCENT of all (1)"},
    {0, "depth", SM_ARG_NUMBER, "N", NULL, "At most N calls deep (no limit)"},
    {'s', "sort", SM_ARG_CHOICE, "ORDER", "weight|name", "Order of branches (weight)"},
    SM_KEY_OPTION,
    SM_FOLD_OPTION,
    SM_JSON_OPTION,
    SM_CSV_OPTION,
    SM_ANALYSIS_OPTIONS,
    {0},
};

static bool share(const struct sm_invocation *in, double *x) {
    const char *text = sm_option_value(in, "min-share");
    char *end;
    *x = 0.01;
    if (text == NULL)
        return true;
    double percent = strtod(text, &end);
    if (end == text || (*end != 0 && strcmp(end, "%") != 0) || !(percent >= 0 && percent <= 100)) {
        sm_usage_error(in, "--min-share wants a percentage such as 0.5, not '%.60s'", text);
        return false;
    }
    *x = percent / 100;
    return true;
}

static int report(const struct sm_invocation *in, const struct sm_analysis_input *input,
                  const struct sm_view *view, double min_share, struct sm_merge_options *o) {
    struct sm_weight weight;
    uint32_t n;
    if (!sm_analysis_weights(in, input, "allocated", &weight, 1, &n))
        return SM_EXIT_USAGE;
    struct sm_weigher w;
    struct sm_tree_report r;
    struct sm_buffer out;
    sm_asked_weigher(&input->asked, &w, &weight);
    sm_tree_report_make(&r, &input->asked, view, &w, o, min_share);
    sm_buffer_init(&out, STDOUT_FILENO);
    if (sm_option_given(in, "json"))
        sm_tree_report_json(&out, &r);
    else if (sm_option_given(in, "csv"))
        sm_tree_report_csv(&out, &r);
    else
        sm_tree_report_print(&out, &r);
    sm_tree_report_release(&r);
    sm_weigher_release(&w);
    return sm_output_end(&out);
}

static int run(const struct sm_invocation *in) {
    struct sm_analysis_input input;
    struct sm_merge_options o = {0};
    uint64_t depth = 0;
    double min_share;
    if (!sm_option_u64(in, "depth", &depth) || !share(in, &min_share))
        return SM_EXIT_USAGE;
    o.max_depth = depth > UINT32_MAX ? 0 : (uint32_t)depth;
    const char *sort = sm_option_value(in, "sort"), *focus = sm_option_value(in, "focus");
    o.order = sort != NULL && strcmp(sort, "name") == 0 ? SM_ORDER_NAME : SM_ORDER_WEIGHT;
    o.direction = sm_option_given(in, "callers") ? SM_CALLERS : SM_CALLEES;
    int code = sm_analysis_input_open(in, &input);
    if (code != SM_EXIT_OK)
        return code;
    struct sm_view view;
    uint32_t *keys = NULL;
    sm_asked_view(&input.asked, &view, sm_analysis_key(in));
    if (focus != NULL && !sm_analysis_focus(in, &view, focus, &keys, &o.n_focus)) {
        code = SM_EXIT_USAGE;
    } else {
        o.focus = keys;
        code = report(in, &input, &view, min_share, &o);
    }
    free(keys);
    sm_view_release(&view);
    return sm_analysis_input_close(in, &input, false, code);
}

const struct sm_command sm_cmd_tree = {
    .name = "tree",
    .summary = "show callees or callers as a tree",
    .usage = "[OPTION]... [TRACE]",
    .description =
        "From the outermost calls inwards, or with --callers from the allocation sites outwards. "
        "--focus "
        "takes any fragment of stacks: what is below it, or above it with --callers; a stack "
        "counts once, however often "
        "the fragment is in it. `itself` is what a function allocated without help of a callee.",
    .examples = "statmem tree prog.stm\n"
                "    where allocation comes from\n"
                "statmem tree --weight live@peak --callers prog.stm\n"
                "    what filled the memory, by site, and who asked for it\n"
                "statmem tree --focus 'Parser.parse > Lexer.token' prog.stm\n"
                "    below these two calls\n",
    .options = options,
    .arguments_are_files = true,
    .run = run,
};
