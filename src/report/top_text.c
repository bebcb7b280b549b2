/* `top` for people. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/estimate.h"
#include "report/naming.h"
#include "report/top.h"
#include "util/number.h"
#include "util/table.h"
#include "util/text.h"

#define CALLER_LINES 6

struct view {
    struct sm_buffer *out;
    const struct sm_top *top;
    const struct sm_top_options *options;
    const struct sm_meta *meta;
    struct sm_table table;
    struct sm_buffer name, place, cell;
    unsigned room; /* columns for names */
};

/* "677 MB ±0.7%" */
static struct sm_estimate put_estimate(struct view *v, uint64_t weight,
                                       const struct sm_seen *seen) {
    char a[SM_NUMBER_BYTES], b[SM_NUMBER_BYTES];
    struct sm_estimate e = sm_top_estimate(v->top, weight, seen);
    double error = sm_estimate_error(&e);
    sm_buffer_text(v->out, sm_number_bytes(a, e.value, v->options->bytes));
    if (!e.exact && !isnan(error))
        sm_buffer_printf(v->out, v->options->utf8 ? " ±%s" : " +-%s",
                         sm_number_percent(b, error, 1));
    return e;
}

static void heading(struct view *v) {
    char a[SM_NUMBER_BYTES], b[SM_NUMBER_BYTES];
    const struct sm_profile *p = &v->top->profile;
    const struct sm_profile_options *f = &v->options->profile;
    const char *slash = strrchr(v->meta->executable, '/');
    const char *program = slash != NULL ? slash + 1 : v->meta->executable;
    sm_text_safe(v->out, program, strlen(program));
    sm_buffer_printf(v->out, "%s%s", program[0] != 0 ? ", " : "",
                     sm_number_duration(a, p->last_ns));
    if (p->native_interval == 1)
        sm_buffer_text(v->out, ", all native memory");
    else if (p->native_interval > 0)
        sm_buffer_printf(v->out, ", native memory, 1 sample per %s",
                         sm_number_bytes(a, p->native_interval, false));
    else if (v->meta->sample_rate == 0 && v->meta->native_interval_bytes > 0)
        sm_buffer_text(v->out, ", OCaml's memory was not recorded");
    else if (v->meta->sample_rate > 0)
        sm_buffer_printf(v->out, ", 1 sample per %s",
                         sm_number_bytes(a, v->top->unit / v->meta->sample_rate, false));
    else
        sm_buffer_text(v->out, ", sampling rate unknown");
    sm_buffer_text(v->out, "\nallocated ");
    sm_styled(v->out, v->options->colours, SM_BOLD, "");
    struct sm_estimate all = put_estimate(v, p->trace_allocated, &p->all_seen);
    sm_buffer_printf(v->out, " (%s samples), peak live ", sm_number_count(a, all.samples));
    put_estimate(v, p->peak, &p->peak_seen);
    sm_buffer_printf(v->out, " at %s\n", sm_number_duration(a, p->peak_ns));
    if (f->has_domain || f->heap >= 0 || f->from_ns != INT64_MIN || f->to_ns != INT64_MAX) {
        sm_buffer_text(v->out, "only");
        if (f->has_domain)
            sm_buffer_printf(v->out, " domain %" PRIu64, f->domain);
        if (f->heap >= 0)
            sm_buffer_printf(v->out, " %s", sm_heap_name((unsigned)f->heap));
        if (f->from_ns != INT64_MIN)
            sm_buffer_printf(v->out, " from %s", sm_number_duration(a, f->from_ns));
        if (f->to_ns != INT64_MAX)
            sm_buffer_printf(v->out, " to %s", sm_number_duration(b, f->to_ns));
        sm_buffer_text(v->out, ": ");
        struct sm_estimate part = put_estimate(v, p->all.allocated, &p->all.seen_allocated);
        sm_buffer_printf(v->out, " (%s samples)\n", sm_number_count(a, part.samples));
    }
    if (p->leaves_out_native)
        sm_buffer_text(v->out, "without native memory: --source native shows it\n");
    sm_buffer_char(v->out, '\n');
}

static enum sm_metric shown_metric(const struct view *v) {
    return v->options->metric == SM_BLOCKS ? SM_ALLOCATED : v->options->metric;
}

/* Size, error, share and samples of a row. */
static void figures(struct view *v, enum sm_style style, uint64_t amount,
                    const struct sm_seen *seen, uint64_t weight) {
    char a[SM_NUMBER_BYTES];
    struct sm_estimate e = sm_top_estimate(v->top, amount, seen);
    double error = sm_estimate_error(&e);
    sm_table_cell(&v->table, style, sm_number_bytes(a, e.value, v->options->bytes));
    sm_table_cell(&v->table, SM_DIM,
                  e.exact ? "exact"
                  : isnan(error)
                      ? NULL
                      : (snprintf(a, sizeof a, "%.*f%%", error < 0.0995 ? 1 : 0, error * 100), a));
    sm_table_cell(&v->table, style, sm_number_percent(a, (double)weight, (double)v->top->whole));
    bool known = v->top->profile.native_interval == 0 || seen != NULL;
    sm_table_cell(&v->table, style, known ? sm_number_count(a, e.samples) : NULL);
}

/* Columns left for names: the other columns are as wide as the first row, the largest, or the heads
   make them. */
static void measure(struct view *v) {
    char a[SM_NUMBER_BYTES];
    const struct sm_group *g = &v->top->grouping.groups[v->top->rows[0]];
    struct sm_seen seen = sm_weight_seen(&g->own, shown_metric(v));
    struct sm_estimate e = sm_top_estimate(v->top, sm_weight(&g->own, shown_metric(v)), &seen);
    size_t size = strlen(sm_number_bytes(a, e.value, v->options->bytes));
    size_t head = strlen(sm_metric_name(shown_metric(v)));
    size_t fixed = size > head ? size : head;
    fixed = fixed < 7 ? 7 : fixed;
    size_t samples = strlen(sm_number_count(a, e.samples));
    fixed += samples > 7 ? samples : 7;
    fixed += 5 + 6 + 4 * 2;
    if (sm_top_has_totals(v->top))
        fixed += 9 + 5 + 2 * 2;
    v->room = v->options->width > fixed + 20 ? v->options->width - (unsigned)fixed : 20;
}

/* "prefix name  place". Where there is no room, first the directories of the place go, then the middle of the
   name, so that lines stay readable. */
static void name_cell(struct view *v, enum sm_style style, const char *prefix) {
    struct sm_buffer name, place;
    sm_buffer_init(&name, -1);
    sm_buffer_init(&place, -1);
    sm_text_safe(&name, v->name.data, v->name.used);
    sm_text_safe(&place, v->place.data, v->place.used);
    sm_buffer_string(&place);
    char *shown = place.data;
    unsigned others = sm_text_columns(prefix, strlen(prefix)) + (place.used > 0 ? 2 : 0);
    unsigned columns = sm_text_columns(name.data, name.used);
    if (others + columns + sm_text_columns(shown, strlen(shown)) > v->room) {
        char *slash = strrchr(shown, '/');
        shown = slash != NULL ? slash + 1 : shown;
    }
    /* "file:line:columns" without columns */
    char *colon = strchr(shown, ':');
    char *second = colon != NULL ? strchr(colon + 1, ':') : NULL;
    if (second != NULL && others + columns + sm_text_columns(shown, strlen(shown)) > v->room &&
        v->room < 32)
        *second = 0;
    others += sm_text_columns(shown, strlen(shown));
    unsigned room = v->room > others + 8 ? v->room - others : 8;
    v->cell.used = 0;
    sm_buffer_text(&v->cell, prefix);
    sm_text_shortened(&v->cell, sm_buffer_string(&name), name.used, room, v->options->utf8);
    if (*shown != 0) {
        sm_buffer_text(&v->cell, "  ");
        sm_buffer_text(&v->cell, shown);
    }
    sm_table_cell(&v->table, style, sm_buffer_string(&v->cell));
    sm_table_row_end(&v->table);
    sm_buffer_release(&name);
    sm_buffer_release(&place);
}

static void callers(struct view *v, uint32_t group) {
    struct sm_caller list[SM_MAX_CALLERS];
    unsigned n = sm_callers_of(&v->top->grouping, &v->top->index, group, v->options->metric,
                               v->options->caller_depth, CALLER_LINES, list);
    for (unsigned i = 0; i < n; i++) {
        char prefix[96];
        int indent = 2 * (list[i].depth < 16 ? (int)list[i].depth : 16);
        snprintf(prefix, sizeof prefix, "%*s%s", indent, "", v->options->utf8 ? "← " : "< ");
        if (v->options->metric == SM_BLOCKS) {
            for (unsigned k = 0; k < 2; k++)
                sm_table_cell(&v->table, SM_DIM, NULL);
            char a[SM_NUMBER_BYTES];
            sm_table_cell(&v->table, SM_DIM,
                          sm_number_percent(a, (double)list[i].weight, (double)v->top->whole));
            sm_table_cell(&v->table, SM_DIM, NULL);
        } else {
            figures(v, SM_DIM, list[i].weight, NULL, list[i].weight);
        }
        if (sm_top_has_totals(v->top)) {
            sm_table_cell(&v->table, SM_DIM, NULL);
            sm_table_cell(&v->table, SM_DIM, NULL);
        }
        v->name.used = v->place.used = 0;
        sm_spot_name(v->top, list[i].spot, &v->name, &v->place);
        name_cell(v, SM_DIM, prefix);
    }
}

static void row(struct view *v, uint32_t group) {
    const struct sm_group *g = &v->top->grouping.groups[group];
    struct sm_seen seen = sm_weight_seen(&g->own, shown_metric(v));
    figures(v, SM_BOLD, sm_weight(&g->own, shown_metric(v)), &seen,
            sm_weight(&g->own, v->options->metric));
    if (sm_top_has_totals(v->top)) {
        char a[SM_NUMBER_BYTES];
        struct sm_estimate e = sm_top_estimate(v->top, g->total, NULL);
        sm_table_cell(&v->table, SM_PLAIN,
                      v->options->metric == SM_BLOCKS
                          ? NULL
                          : sm_number_bytes(a, e.value, v->options->bytes));
        sm_table_cell(&v->table, SM_PLAIN,
                      sm_number_percent(a, (double)g->total, (double)v->top->whole));
    }
    v->name.used = v->place.used = 0;
    sm_top_name(v->top, group, &v->name, &v->place);
    name_cell(v, SM_CYAN, "");
    if (v->options->caller_depth > 0 && v->options->by <= SM_BY_FILE)
        callers(v, group);
}

static void table_head(struct view *v) {
    bool totals = sm_top_has_totals(v->top);
    sm_table_init(&v->table, totals ? 7 : 5, v->options->width, v->options->colours,
                  v->options->utf8);
    for (unsigned i = 0; i + 1 < v->table.n_columns; i++)
        v->table.align[i] = SM_RIGHT;
    sm_table_cell(&v->table, SM_DIM, sm_metric_name(shown_metric(v)));
    sm_table_cell(&v->table, SM_DIM, v->options->utf8 ? "±" : "+-");
    sm_table_cell(&v->table, SM_DIM, v->options->metric == SM_BLOCKS ? "blocks" : "share");
    sm_table_cell(&v->table, SM_DIM, "samples");
    if (totals) {
        sm_table_cell(&v->table, SM_DIM, "w/callees");
        sm_table_cell(&v->table, SM_DIM, "share");
    }
    static const char *const names[] = {"allocation site", "function", "line",  "file",
                                        "domain",          "thread",   "source"};
    sm_table_cell(&v->table, SM_DIM, names[v->options->by]);
}

static void footer(struct view *v, size_t shown) {
    char a[SM_NUMBER_BYTES], b[SM_NUMBER_BYTES];
    uint64_t rest = 0, weight = 0;
    struct sm_seen seen = {0};
    for (size_t i = shown; i < v->top->n_rows; i++) {
        const struct sm_group *g = &v->top->grouping.groups[v->top->rows[i]];
        rest += sm_weight(&g->own, shown_metric(v));
        struct sm_seen one = sm_weight_seen(&g->own, shown_metric(v));
        seen.blocks += one.blocks;
        seen.variance += one.variance;
        weight += sm_weight(&g->own, v->options->metric);
    }
    if (shown < v->top->n_rows) {
        sm_buffer_printf(v->out, "and %s more: ", sm_number_count(a, v->top->n_rows - shown));
        struct sm_estimate e = put_estimate(v, rest, &seen);
        sm_buffer_printf(v->out, " (%s samples), %s\n", sm_number_count(a, e.samples),
                         sm_number_percent(b, (double)weight, (double)v->top->whole));
    }
    if (v->top->profile.n_folded > 0)
        sm_buffer_printf(
            v->out,
            "%s allocations are shown without callers: the trace has too many different "
            "stacks\n",
            sm_number_count(a, v->top->profile.n_folded));
}

void sm_top_print(struct sm_buffer *out, const struct sm_top *top) {
    struct view v = {
        .out = out, .top = top, .options = top->options, .meta = sm_trace_meta(top->trace)};
    sm_buffer_init(&v.name, -1);
    sm_buffer_init(&v.place, -1);
    sm_buffer_init(&v.cell, -1);
    heading(&v);
    size_t shown = sm_top_shown(top);
    if (shown == 0) {
        sm_buffer_printf(out, "no samples%s\n",
                         top->profile.trace_allocated > 0 ? " that fit what was asked for" : "");
    } else {
        table_head(&v);
        measure(&v);
        for (size_t i = 0; i < shown; i++)
            row(&v, top->rows[i]);
        sm_table_print(&v.table, out);
        sm_table_release(&v.table);
    }
    footer(&v, shown);
    sm_buffer_release(&v.name);
    sm_buffer_release(&v.place);
    sm_buffer_release(&v.cell);
}
