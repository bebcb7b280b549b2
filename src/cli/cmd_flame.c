/* statmem flame: a flame graph as a file. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/analysis_input.h"
#include "cli/output.h"
#include "report/flame.h"

static const struct sm_option options[] = {
    SM_WEIGHT_OPTION("allocated"),
    {'c', "callers", SM_ARG_NONE, NULL, NULL,
     "From allocation sites (or the focus) down to their callers"},
    {0, "focus", SM_ARG_TEXT, "CALLS", NULL,
     "Only stacks with these consecutive calls: 'Main.run > Parser.parse'"},
    {0, "before", SM_ARG_FILE, "TRACE", NULL,
     "Colour boxes by the difference to TRACE: red grew, green shrank"},
    {0, "normalise", SM_ARG_NONE, NULL, NULL, "With --before: scale it so that the totals agree"},
    {0, "html", SM_ARG_NONE, NULL, NULL,
     "Write an HTML page with a search field, not an SVG picture"},
    {0, "title", SM_ARG_TEXT, "TEXT", NULL, "Title of the picture"},
    {0, "width", SM_ARG_NUMBER, "N", NULL, "Width in pixels (1200)"},
    {0, "sort", SM_ARG_CHOICE, "ORDER", "weight|name", "Order of boxes (name)"},
    SM_KEY_OPTION,
    SM_FOLD_OPTION,
    SM_ANALYSIS_OPTIONS,
    {0},
};

/* One trace's tree. */
struct grown {
    struct sm_analysis_input input;
    struct sm_view view;
    struct sm_weigher weigher;
    struct sm_tree_report report;
    uint32_t *focus;
    bool made;
};

static int grow(const struct sm_invocation *in, struct grown *g) {
    const char *focus = sm_option_value(in, "focus"), *sort = sm_option_value(in, "sort");
    struct sm_merge_options o = {
        .direction = sm_option_given(in, "callers") ? SM_CALLERS : SM_CALLEES,
        .order = sort != NULL && strcmp(sort, "weight") == 0 ? SM_ORDER_WEIGHT : SM_ORDER_NAME};
    struct sm_weight weight;
    uint32_t n;
    if (!sm_analysis_weights(in, &g->input, "allocated", &weight, 1, &n))
        return SM_EXIT_USAGE;
    sm_asked_view(&g->input.asked, &g->view, sm_analysis_key(in));
    sm_asked_weigher(&g->input.asked, &g->weigher, &weight);
    g->made = true;
    if (focus != NULL && !sm_analysis_focus(in, &g->view, focus, &g->focus, &o.n_focus))
        return SM_EXIT_USAGE;
    o.focus = g->focus;
    sm_tree_report_make(&g->report, &g->input.asked, &g->view, &g->weigher, &o, 0.00005);
    return SM_EXIT_OK;
}

static int release(const struct sm_invocation *in, struct grown *g, int code) {
    if (g->made) {
        sm_tree_report_release(&g->report);
        sm_weigher_release(&g->weigher);
        sm_view_release(&g->view);
    }
    free(g->focus);
    return sm_analysis_input_close(in, &g->input, false, code);
}

static int run(const struct sm_invocation *in) {
    struct grown now = {0}, before = {0};
    uint64_t width = 1200;
    const char *before_path = sm_option_value(in, "before"), *title = sm_option_value(in, "title");
    if (!sm_option_u64(in, "width", &width))
        return SM_EXIT_USAGE;
    if (width < 100 || width > 100000)
        return sm_usage_error(in, "--width wants 100 to 100000");
    if (sm_option_given(in, "normalise") && before_path == NULL)
        return sm_usage_error(in, "--normalise goes with --before");
    int code = sm_analysis_input_open(in, &now.input);
    if (code != SM_EXIT_OK)
        return code;
    code = grow(in, &now);
    if (code == SM_EXIT_OK && before_path != NULL) {
        code = sm_analysis_input_open_path(in, before_path, &before.input);
        if (code == SM_EXIT_OK)
            code = grow(in, &before);
    }
    if (code == SM_EXIT_OK) {
        struct sm_buffer out;
        struct sm_flame_options o = {.title = title != NULL ? title : "",
                                     .width = (unsigned)width,
                                     .html = sm_option_given(in, "html"),
                                     .before = before_path != NULL ? &before.report : NULL,
                                     .normalise = sm_option_given(in, "normalise")};
        sm_buffer_init(&out, STDOUT_FILENO);
        sm_flame_write(&out, &now.report, &o);
        code = sm_output_end(&out);
    }
    if (before.input.a != NULL)
        code = release(in, &before, code);
    return release(in, &now, code);
}

const struct sm_command sm_cmd_flame = {
    .name = "flame",
    .summary = "write a flame graph as SVG or HTML",
    .usage = "[OPTION]... [TRACE]",
    .description = "The picture goes to standard output and needs nothing else: a click zooms, a "
                   "search tells the share of what matches, each "
                   "box tells its size, interval and samples. Callees grow upwards, with --callers "
                   "callers downwards. `statmem view` has "
                   "the same with filters to click.",
    .examples = "statmem flame prog.stm > prog.svg\n"
                "    where allocation comes from\n"
                "statmem flame --html --weight live@peak prog.stm > peak.html\n"
                "    what filled the memory, with a search field\n"
                "statmem flame --before old.stm --normalise new.stm > diff.svg\n"
                "    what has changed between two versions\n",
    .options = options,
    .arguments_are_files = true,
    .run = run,
};
