/* `top` for programs: JSON and CSV. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/estimate.h"
#include "report/top.h"
#include "util/json.h"
#include "util/text.h"

static const enum sm_metric metrics[] = {SM_ALLOCATED, SM_LIVE, SM_PEAK, SM_PROMOTED, SM_COLLECTED};
#define N_METRICS (sizeof metrics / sizeof *metrics)

static void put_estimate(struct sm_json *j, const struct sm_top *top, const char *key,
                         uint64_t weight, const struct sm_seen *seen) {
    struct sm_estimate e = sm_top_estimate(top, weight, seen);
    sm_json_open(j, key, '{');
    if (top->profile.native_interval > 0 && seen == NULL)
        sm_json_null(j, "samples");
    else
        sm_json_u64(j, "samples", e.samples);
    sm_json_double(j, "bytes", e.value);
    sm_json_double(j, "bytes_low", e.low);
    sm_json_double(j, "bytes_high", e.high);
    sm_json_close(j, '}');
}

static void put_metric(struct sm_json *j, const struct sm_top *top, const struct sm_weights *w,
                       enum sm_metric metric) {
    struct sm_seen seen = sm_weight_seen(w, metric);
    put_estimate(j, top, sm_metric_name(metric), sm_weight(w, metric), &seen);
}

static double share(const struct sm_top *top, uint64_t weight) {
    return top->whole > 0 ? (double)weight / (double)top->whole : NAN;
}

static void put_spot(struct sm_json *j, const struct sm_top *top, uint32_t number) {
    const struct sm_spot *s = &top->grouping.spots[number];
    if (s->location != NULL) {
        sm_json_text(j, "function", s->location->function);
        sm_json_text(j, "file", s->location->file);
        sm_json_u64(j, "line", s->location->line);
        sm_json_u64(j, "start_char", s->location->start_char);
        sm_json_u64(j, "end_char", s->location->end_char);
        return;
    }
    struct sm_buffer name, place;
    sm_buffer_init(&name, -1);
    sm_buffer_init(&place, -1);
    sm_spot_name(top, number, &name, &place);
    sm_json_bytes(j, "function", name.data, name.used);
    sm_buffer_release(&name);
    sm_buffer_release(&place);
    if (s->pseudo == 0 && s->code != 0)
        sm_json_u64(j, "code", s->code);
}

static void put_row_name(struct sm_json *j, const struct sm_top *top, uint32_t group) {
    const struct sm_group *g = &top->grouping.groups[group];
    struct sm_buffer name, place;
    sm_buffer_init(&name, -1);
    sm_buffer_init(&place, -1);
    sm_top_name(top, group, &name, &place);
    sm_json_bytes(j, "name", name.data, name.used);
    if (place.used > 0)
        sm_json_bytes(j, "place", place.data, place.used);
    sm_buffer_release(&name);
    sm_buffer_release(&place);
    if (top->options->by == SM_BY_DOMAIN)
        sm_json_u64(j, "domain", top->profile.domains[g->spot]);
    else if (top->options->by == SM_BY_SITE)
        put_spot(j, top, g->spot);
}

static void put_callers(struct sm_json *j, const struct sm_top *top, uint32_t group) {
    struct sm_caller list[SM_MAX_CALLERS];
    unsigned n = sm_callers_of(&top->grouping, &top->index, group, top->options->metric,
                               top->options->caller_depth, SM_MAX_CALLERS, list);
    sm_json_open(j, "callers", '[');
    for (unsigned i = 0; i < n; i++) {
        sm_json_open(j, NULL, '{');
        sm_json_u64(j, "depth", list[i].depth);
        put_spot(j, top, list[i].spot);
        if (top->options->metric == SM_BLOCKS)
            sm_json_u64(j, "blocks", list[i].weight);
        else
            put_estimate(j, top, sm_metric_name(top->options->metric), list[i].weight, NULL);
        sm_json_close(j, '}');
    }
    sm_json_close(j, ']');
}

void sm_top_json(struct sm_buffer *out, const struct sm_top *top) {
    const struct sm_top_options *o = top->options;
    struct sm_json j;
    sm_json_init(&j, out, false);
    sm_json_open(&j, NULL, '{');
    sm_json_text(&j, "file", o->path);
    sm_json_text(&j, "by", sm_group_by_name(o->by));
    sm_json_text(&j, "sort", sm_metric_name(o->metric));
    double rate = sm_trace_meta(top->trace)->sample_rate;
    sm_json_double(&j, "sample_rate", rate > 0 ? rate : NAN);
    if (top->profile.native_interval > 0)
        sm_json_double(&j, "interval_bytes", top->profile.native_interval);
    put_estimate(&j, top, "trace_allocated", top->profile.trace_allocated, &top->profile.all_seen);
    put_estimate(&j, top, "trace_peak", top->profile.peak, &top->profile.peak_seen);
    sm_json_i64(&j, "peak_ns", top->profile.peak_ns);
    for (size_t m = 0; m < N_METRICS; m++)
        put_metric(&j, top, &top->profile.all, metrics[m]);
    sm_json_u64(&j, "blocks", top->profile.all.blocks);
    sm_json_u64(&j, "n_rows", top->n_rows);
    sm_json_u64(&j, "allocations_without_callers", top->profile.n_folded);
    sm_json_open(&j, "rows", '[');
    for (size_t i = 0; i < sm_top_shown(top); i++) {
        uint32_t group = top->rows[i];
        const struct sm_group *g = &top->grouping.groups[group];
        sm_json_open(&j, NULL, '{');
        put_row_name(&j, top, group);
        sm_json_double(&j, "share", share(top, sm_weight(&g->own, o->metric)));
        for (size_t m = 0; m < N_METRICS; m++)
            put_metric(&j, top, &g->own, metrics[m]);
        sm_json_u64(&j, "blocks", g->own.blocks);
        if (sm_top_has_totals(top)) {
            if (o->metric == SM_BLOCKS)
                sm_json_u64(&j, "with_callees", g->total);
            else
                put_estimate(&j, top, "with_callees", g->total, NULL);
        }
        if (o->by <= SM_BY_FILE && o->caller_depth > 0)
            put_callers(&j, top, group);
        sm_json_close(&j, '}');
    }
    sm_json_close(&j, ']');
    sm_json_close(&j, '}');
    sm_json_end(&j);
}

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

void sm_top_csv(struct sm_buffer *out, const struct sm_top *top) {
    sm_buffer_text(out, "name,place,blocks");
    for (size_t m = 0; m < N_METRICS; m++) {
        const char *n = sm_metric_name(metrics[m]);
        sm_buffer_printf(out, ",%s_samples,%s_bytes,%s_bytes_low,%s_bytes_high", n, n, n, n);
    }
    sm_buffer_text(out, "\r\n");
    struct sm_buffer name, place;
    sm_buffer_init(&name, -1);
    sm_buffer_init(&place, -1);
    for (size_t i = 0; i < sm_top_shown(top); i++) {
        const struct sm_group *g = &top->grouping.groups[top->rows[i]];
        name.used = place.used = 0;
        sm_top_name(top, top->rows[i], &name, &place);
        csv_text(out, name.data, name.used);
        sm_buffer_char(out, ',');
        csv_text(out, place.data, place.used);
        sm_buffer_printf(out, ",%" PRIu64, g->own.blocks);
        for (size_t m = 0; m < N_METRICS; m++) {
            struct sm_seen seen = sm_weight_seen(&g->own, metrics[m]);
            struct sm_estimate e = sm_top_estimate(top, sm_weight(&g->own, metrics[m]), &seen);
            sm_buffer_printf(out, ",%" PRIu64, e.samples);
            if (isnan(e.value))
                sm_buffer_text(out, ",,,");
            else
                sm_buffer_printf(out, ",%.0f,%.0f,%.0f", e.value, e.low, e.high);
        }
        sm_buffer_text(out, "\r\n");
    }
    sm_buffer_release(&name);
    sm_buffer_release(&place);
}
