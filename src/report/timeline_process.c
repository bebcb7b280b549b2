/* See timeline.h: the process' own memory beside what the samples tell of it. */
#include <stdlib.h>

#include "report/timeline.h"
#include "util/memory.h"

/* A counter's samples, which may stand in any order, as points: extremes within a span, the last value at its end,
   kept on until the next one. */
static bool fill(struct sm_timeline *t, struct sm_curve_point *points) {
    const struct sm_analysis *a = t->asked->a;
    int64_t *latest = sm_alloc((t->n_points + 1u) * sizeof *latest);
    uint64_t level = 0;
    int64_t level_ns = INT64_MIN;
    bool any = false;
    for (uint32_t i = 0; i < t->n_points; i++)
        latest[i] = INT64_MIN;
    for (uint32_t i = 0; i < a->n_counters; i++) {
        const struct sm_counter_sample *c = &a->counters[i];
        if (c->counter != SM_COUNTER_RSS || c->value < 0 || c->ns >= t->to_ns)
            continue;
        any = true;
        uint64_t units = (uint64_t)((double)c->value / t->unit);
        if (c->ns < t->from_ns) {
            if (c->ns > level_ns) {
                level_ns = c->ns;
                level = units;
            }
            continue;
        }
        uint32_t at =
            (uint32_t)((__int128)(c->ns - t->from_ns) * t->n_points / (t->to_ns - t->from_ns));
        struct sm_curve_point *p = &points[at];
        if (latest[at] == INT64_MIN)
            p->low = p->high = units;
        p->low = units < p->low ? units : p->low;
        p->high = units > p->high ? units : p->high;
        if (c->ns >= latest[at]) {
            latest[at] = c->ns;
            p->live = units;
        }
    }
    for (uint32_t i = 0; i < t->n_points; i++) {
        if (latest[i] == INT64_MIN)
            points[i].low = points[i].high = points[i].live = level;
        level = points[i].live;
    }
    free(latest);
    return any;
}

bool sm_timeline_add_process(struct sm_timeline *t) {
    const struct sm_analysis *a = t->asked->a;
    struct sm_curve_point *points = sm_alloc_zero(t->n_points, sizeof *points);
    if (!fill(t, points)) {
        free(points);
        return false;
    }
    t->process = points;
    t->series = sm_realloc_array(t->series, t->n_series + 1u, sizeof *t->series);
    struct sm_series *s = &t->series[t->n_series++];
    *s = (struct sm_series){.name = sm_strdup("process (RSS)"),
                            .filter = sm_strdup(""),
                            .points = points,
                            .measured = true};
    for (uint32_t i = 0; i < a->n_counters; i++) {
        const struct sm_counter_sample *c = &a->counters[i];
        if (c->counter == SM_COUNTER_RSS && (double)c->value > (double)s->peak.units * t->unit) {
            s->peak.units = (uint64_t)((double)c->value / t->unit);
            s->peak.ns = c->ns;
        }
    }
    return true;
}

struct sm_estimate sm_timeline_estimate(const struct sm_timeline *t, const struct sm_series *s,
                                        uint32_t point) {
    const struct sm_curve_point *p = &s->points[point];
    double value = (double)p->live * t->unit;
    if (s->measured)
        return (struct sm_estimate){.value = value, .low = value, .high = value, .exact = true};
    struct sm_sum sum = {
        .units = p->live, .samples = p->live_samples, .variance = p->live_variance};
    return sm_sum_estimate(t->asked->a, &sum);
}

struct sm_estimate sm_timeline_peak(const struct sm_timeline *t, const struct sm_series *s) {
    double value = (double)s->peak.units * t->unit;
    if (s->measured)
        return (struct sm_estimate){.value = value, .low = value, .high = value, .exact = true};
    struct sm_sum sum = {
        .units = s->peak.units, .samples = s->peak.samples, .variance = s->peak.variance};
    return sm_sum_estimate(t->asked->a, &sum);
}
