/* `top` for programs: JSON and CSV. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/top.h"
#include "util/text.h"

static const char *const metrics[] = {"allocated", "live", "peak", "promoted", "collected"};

static void put_estimate(struct sm_json *j, const char *key, const struct sm_weigher *w,
                         const struct sm_sum *sum) {
    struct sm_estimate e = sm_weight_estimate(w, sum);
    sm_json_open(j, key, '{');
    sm_json_u64(j, "samples", sum->samples);
    sm_json_double(j, "bytes", e.value);
    sm_json_double(j, "bytes_low", e.low);
    sm_json_double(j, "bytes_high", e.high);
    sm_json_close(j, '}');
}

/* The metric of --weight, if there is one beside the five, under its own name and in its own measure. */
static void put_other(struct sm_json *j, const struct sm_top *top, const struct sm_sum *sums) {
    if (top->options->metric == SM_TOP_OTHER)
        sm_json_sum(j, "weight", &top->weighers[SM_TOP_METRICS], &sums[SM_TOP_METRICS]);
}

static void put_metrics(struct sm_json *j, const struct sm_top *top, const struct sm_sum *sums) {
    for (unsigned m = 0; m < SM_TOP_METRICS; m++)
        put_estimate(j, metrics[m], &top->weighers[m], &sums[m]);
    put_other(j, top, sums);
    sm_json_u64(j, "blocks", sums[SM_TOP_ALLOCATED].rows);
}

static void put_metric(struct sm_json *j, const char *key, const struct sm_top *top,
                       const struct sm_sum *sum) {
    if (top->options->metric == SM_TOP_BLOCKS)
        sm_json_u64(j, key, sum->rows);
    else if (top->options->metric == SM_TOP_OTHER)
        sm_json_sum(j, key, &top->weighers[top->which], sum);
    else
        put_estimate(j, key, &top->weighers[top->which], sum);
}

static void put_spot(struct sm_json *j, const struct sm_view *v, uint32_t key) {
    const struct sm_analysis *a = v->analysis;
    const struct sm_frame *f = &a->frames[v->spot[key]];
    const struct sm_function *fn = &a->functions[f->function];
    const char *name = sm_text(a, v->names[key] != 0 ? v->names[key] : fn->name);
    sm_json_text(j, "function", name);
    if (v->names[key] != 0 || (fn->flags & SM_FUNCTION_PSEUDO) != 0)
        return;
    if (fn->file == 0 && f->line == 0 && strncmp(name, "0x", 2) == 0) {
        sm_json_u64(j, "code", strtoull(name, NULL, 16));
        return;
    }
    sm_json_text(j, "file", sm_text(a, fn->file));
    sm_json_u64(j, "line", f->line);
    sm_json_u64(j, "start_char", f->start_char);
    sm_json_u64(j, "end_char", f->end_char);
}

static void put_row_name(struct sm_json *j, const struct sm_top *top, uint32_t value) {
    struct sm_buffer name, place;
    sm_buffer_init(&name, -1);
    sm_buffer_init(&place, -1);
    sm_top_name(top, value, &name, &place);
    sm_json_bytes(j, "name", name.data, name.used);
    if (place.used > 0)
        sm_json_bytes(j, "place", place.data, place.used);
    sm_buffer_release(&name);
    sm_buffer_release(&place);
    if (top->dimension.kind == SM_BY_DOMAIN && top->groups.domains[value] != SM_NO_DOMAIN)
        sm_json_u64(j, "domain", top->groups.domains[value]);
    else if (top->places && top->view.kind == SM_KEY_FRAME)
        put_spot(j, &top->view, value);
}

static void put_callers(struct sm_json *j, const struct sm_top *top, uint32_t value) {
    struct sm_caller list[SM_MAX_CALLERS];
    char text[64];
    const char *name =
        top->options->metric == SM_TOP_OTHER ? "weight" : sm_top_metric_name(top, text);
    unsigned n =
        sm_callers_of(&top->callers, value, top->options->caller_depth, SM_MAX_CALLERS, list);
    sm_json_open(j, "callers", '[');
    for (unsigned i = 0; i < n; i++) {
        sm_json_open(j, NULL, '{');
        sm_json_u64(j, "depth", list[i].depth);
        put_spot(j, &top->callers.spots, list[i].spot);
        put_metric(j, name, top, &list[i].sum);
        sm_json_close(j, '}');
    }
    sm_json_close(j, ']');
}

static void put_row(struct sm_json *j, const struct sm_top *top, const struct sm_top_row *row) {
    uint64_t weight = sm_top_weight(top, &row->own[top->which]);
    sm_json_open(j, NULL, '{');
    put_row_name(j, top, row->value);
    sm_json_double(j, "share", top->whole > 0 ? (double)weight / (double)top->whole : NAN);
    put_metrics(j, top, row->own);
    if (top->totals)
        put_metric(j, "with_callees", top, &row->total);
    if (top->places && top->options->caller_depth > 0)
        put_callers(j, top, row->value);
    sm_json_close(j, '}');
}

static void put_whole(struct sm_json *j, const struct sm_top *top, const char *key,
                      enum sm_weight_kind kind) {
    const struct sm_asked *q = top->asked;
    struct sm_weight weight = {.kind = kind};
    struct sm_weigher w;
    sm_weigher_init(&w, q->a, NULL, &weight, q->threads);
    struct sm_sum sum = sm_weigh(&w, q->threads);
    put_estimate(j, key, &w, &sum);
    sm_weigher_release(&w);
}

void sm_top_json(struct sm_buffer *out, const struct sm_top *top) {
    const struct sm_asked *q = top->asked;
    struct sm_json j;
    char text[64];
    sm_json_init(&j, out, false);
    sm_json_open(&j, NULL, '{');
    sm_json_text(&j, "file", q->a->path);
    sm_json_asked(&j, q);
    sm_json_text(&j, "by", top->options->by);
    sm_json_text(&j, "sort", sm_top_metric_name(top, text));
    sm_json_double(&j, "sample_rate", q->a->meta.sample_rate > 0 ? q->a->meta.sample_rate : NAN);
    put_whole(&j, top, "trace_allocated", SM_WEIGHT_ALLOCATED);
    put_whole(&j, top, "trace_peak", SM_WEIGHT_LIVE_PEAK);
    sm_json_i64(&j, "peak_ns", q->a->peak.ns);
    put_metrics(&j, top, top->all);
    sm_json_u64(&j, "n_rows", top->n_rows);
    sm_json_open(&j, "rows", '[');
    for (uint32_t i = 0; i < sm_top_shown(top); i++)
        put_row(&j, top, &top->rows[i]);
    sm_json_close(&j, ']');
    sm_json_close(&j, '}');
    sm_json_end(&j);
}

/* ---- CSV ---- */

/* A field in quotes, safe for terminals and for RFC 4180 readers. */
static void csv_text(struct sm_buffer *out, const char *text, size_t bytes) {
    struct sm_buffer safe;
    sm_buffer_init(&safe, -1);
    sm_text_safe(&safe, text, bytes);
    sm_buffer_char(out, '"');
    for (size_t i = 0; i < safe.used; i++) {
        if (safe.data[i] == '"')
            sm_buffer_char(out, '"');
        sm_buffer_char(out, safe.data[i]);
    }
    sm_buffer_char(out, '"');
    sm_buffer_release(&safe);
}

static void csv_figures(struct sm_buffer *out, const struct sm_weigher *w,
                        const struct sm_sum *sum) {
    struct sm_estimate e = sm_weight_estimate(w, sum);
    sm_buffer_printf(out, ",%" PRIu64, sum->samples);
    if (isnan(e.value))
        sm_buffer_text(out, ",,,");
    else
        sm_buffer_printf(out, ",%.0f,%.0f,%.0f", e.value, e.low, e.high);
}

void sm_top_csv(struct sm_buffer *out, const struct sm_top *top) {
    sm_buffer_text(out, "name,place,blocks");
    for (uint32_t m = 0; m < top->n_weighers; m++) {
        const char *n = m < SM_TOP_METRICS ? metrics[m] : "weight";
        const char *unit = m < SM_TOP_METRICS ? "_bytes" : "";
        sm_buffer_printf(out, ",%s_samples,%s%s,%s%s_low,%s%s_high", n, n, unit, n, unit, n, unit);
    }
    sm_buffer_text(out, "\r\n");
    struct sm_buffer name, place;
    sm_buffer_init(&name, -1);
    sm_buffer_init(&place, -1);
    for (uint32_t i = 0; i < sm_top_shown(top); i++) {
        const struct sm_top_row *row = &top->rows[i];
        name.used = place.used = 0;
        sm_top_name(top, row->value, &name, &place);
        csv_text(out, name.data, name.used);
        sm_buffer_char(out, ',');
        csv_text(out, place.data, place.used);
        sm_buffer_printf(out, ",%" PRIu64, row->own[SM_TOP_ALLOCATED].rows);
        for (uint32_t m = 0; m < top->n_weighers; m++)
            csv_figures(out, &top->weighers[m], &row->own[m]);
        sm_buffer_text(out, "\r\n");
    }
    sm_buffer_release(&name);
    sm_buffer_release(&place);
}
