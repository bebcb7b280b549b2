/* statmem timeline: live memory over time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/analysis_input.h"
#include "cli/output.h"
#include "report/timeline.h"

#define MAX_FILTERS 12

static const struct sm_option options[] = {
    {'b', "by", SM_ARG_CHOICE, "WHAT", "domain|source|site", "One curve for each"},
    {0, "series", SM_ARG_TEXT, "FILTER", NULL,
     "One more curve, of what FILTER lets through of all; may be repeated"},
    SM_TOP_OPTION,
    {0, "points", SM_ARG_NUMBER, "N", NULL, "Spans of time (as many as fit the terminal; 500)"},
    {0, "between", SM_ARG_TEXT, "A..B", NULL, "Show only this part of the run: 2s..5s"},
    {0, "rss", SM_ARG_NONE, NULL, NULL,
     "One more curve: the memory of the process, where the trace has it"},
    {0, "svg", SM_ARG_NONE, NULL, NULL, "Print an SVG picture"},
    SM_JSON_OPTION,
    SM_CSV_OPTION,
    SM_ANALYSIS_OPTIONS,
    {0},
};

/* "2s..5s" by way of the filter's parser: one grammar for times. */
static bool between(const struct sm_invocation *in, const struct sm_analysis *a, int64_t *from,
                    int64_t *to) {
    const char *text = sm_option_value(in, "between");
    *from = 0;
    *to = a->last_ns + 1;
    if (text == NULL)
        return true;
    char clause[256];
    snprintf(clause, sizeof clause, "allocated in %.200s", text);
    struct sm_filter_error err;
    struct sm_filter *f = sm_filter_parse(clause, strlen(clause), &err);
    bool ok = f != NULL && f->root != NULL && f->root->kind == SM_FILTER_ALLOCATED;
    if (ok) {
        const struct sm_filter_node *n = f->root;
        if (n->op == SM_OP_BETWEEN || n->op == SM_OP_GE)
            *from = sm_filter_time_ns(a, &n->time[0]);
        if (n->op == SM_OP_BETWEEN)
            *to = sm_filter_time_ns(a, &n->time[1]);
        else if (n->op == SM_OP_LE)
            *to = sm_filter_time_ns(a, &n->time[0]);
        ok = *from < *to;
    }
    sm_filter_free(f);
    if (!ok)
        sm_usage_error(in, "--between wants a range of times such as 2s..5s, not '%.60s'", text);
    return ok;
}

static int report(const struct sm_invocation *in, const struct sm_asked *asked) {
    struct sm_timeline t;
    struct sm_filter_error err;
    const char *filters[MAX_FILTERS], *by = sm_option_value(in, "by"), *text;
    uint32_t n = 0;
    int64_t from, to;
    bool machine =
        sm_option_given(in, "json") || sm_option_given(in, "csv") || sm_option_given(in, "svg");
    uint64_t points = machine || asked->width < 40 ? 500 : asked->width - 12;
    if (!sm_option_u64(in, "points", &points) || !between(in, asked->a, &from, &to))
        return SM_EXIT_USAGE;
    if (points == 0 || points > SM_TIMELINE_MAX_POINTS)
        return sm_usage_error(in, "--points wants 1 to %u", SM_TIMELINE_MAX_POINTS);
    while ((text = sm_option_nth(in, "series", n)) != NULL && n < MAX_FILTERS)
        filters[n++] = text;
    if (text != NULL)
        return sm_usage_error(in, "at most %d --series", MAX_FILTERS);
    if (n > 0 && by != NULL)
        return sm_usage_error(in, "--by or --series, not both");
    if (n > 0) {
        if (!sm_timeline_of_filters(&t, asked, filters, n, from, to, (uint32_t)points, &err)) {
            sm_timeline_release(&t);
            return sm_usage_error(in, "--series: %s", err.text);
        }
    } else {
        enum sm_series_by kind = by == NULL                  ? SM_SERIES_TOTAL
                                 : strcmp(by, "domain") == 0 ? SM_SERIES_DOMAIN
                                 : strcmp(by, "source") == 0 ? SM_SERIES_SOURCE
                                                             : SM_SERIES_SITE;
        uint32_t top = sm_option_given(in, "top") ? (uint32_t)asked->top : 5;
        sm_timeline_make(&t, asked, kind, top, from, to, (uint32_t)points);
    }
    if (sm_option_given(in, "rss") && !sm_timeline_add_process(&t))
        sm_complain("statmem: the trace does not tell the memory of the process");
    struct sm_buffer out;
    sm_buffer_init(&out, STDOUT_FILENO);
    if (sm_option_given(in, "json"))
        sm_timeline_json(&out, &t);
    else if (sm_option_given(in, "csv"))
        sm_timeline_csv(&out, &t);
    else if (sm_option_given(in, "svg"))
        sm_timeline_svg(&out, &t);
    else
        sm_timeline_print(&out, &t);
    sm_timeline_release(&t);
    return sm_output_end(&out);
}

static int run(const struct sm_invocation *in) {
    struct sm_analysis_input input;
    int code = sm_analysis_input_open(in, &input);
    if (code != SM_EXIT_OK)
        return code;
    code = report(in, &input.asked);
    return sm_analysis_input_close(in, &input, false, code);
}

const struct sm_command sm_cmd_timeline = {
    .name = "timeline",
    .summary = "plot live memory over time",
    .usage = "[OPTION]... [TRACE]",
    .description = "What was alive, exactly, in the order of all domains' events. Each column "
                   "shows the largest value "
                   "within its span, so that no peak is lost. JSON and CSV also have the least, "
                   "the value at the span's end, and what "
                   "was allocated and freed in it.",
    .examples = "statmem timeline prog.stm\n"
                "    the whole run\n"
                "statmem timeline --by domain prog.stm\n"
                "    each domain's memory\n"
                "statmem timeline --series 'inside \"Cache.add\"' --series 'size >= 1MB' --svg "
                "prog.stm > live.svg\n"
                "    parts beside the whole, as a picture\n",
    .options = options,
    .arguments_are_files = true,
    .run = run,
};
