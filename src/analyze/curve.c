/* See curve.h. The rows are cut into chunks, each of which is walked by itself, as if nothing were alive at its
   beginning; sums of the chunks before are added afterwards. Within a chunk allocations and ends are met in the
   one merged order. */
#include "analyze/curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/walk.h"
#include "util/memory.h"
#include "util/parallel.h"

/* ---- the peak ---- */

struct peak_chunk {
    int64_t sum, high;
    int64_t samples, high_samples; /* in mixed traces; else they are the units */
    double variance, high_variance;
    uint32_t row, freed; /* of `high` */
    bool any;
};

struct peak_work {
    const struct sm_analysis *a;
    const struct sm_selection *s;
    struct sm_chunks chunks;
    struct peak_chunk *results;
};

static inline void count(struct peak_chunk *r, const struct sm_analysis *a, uint32_t row,
                         int sign) {
    r->sum += sign * (int64_t)sm_row_units(a, row);
    if (a->mixed) {
        r->samples += sign * (int64_t)sm_row_samples(a, row);
        r->variance += sign * sm_row_variance(a, row);
    }
}

static void peak_chunk(void *ctx, unsigned task) {
    struct peak_work *w = ctx;
    const struct sm_analysis *a = w->a;
    struct peak_chunk r = {0};
    struct sm_walk walk;
    for (sm_walk_begin(&walk, a, &w->chunks, task); sm_walk_row(&walk);) {
        for (uint32_t k = walk.free_from; k < walk.free_to; k++) {
            uint32_t row = a->rows.free_order[k];
            if (sm_selected(w->s, row))
                count(&r, a, row, -1);
        }
        if (walk.row == UINT32_MAX || !sm_selected(w->s, walk.row))
            continue;
        count(&r, a, walk.row, 1);
        if (!r.any || r.sum > r.high) {
            r.any = true;
            r.high = r.sum;
            r.high_samples = r.samples;
            r.high_variance = r.variance;
            r.row = walk.row;
            r.freed = walk.free_to;
        }
    }
    w->results[task] = r;
}

struct sm_peak sm_selection_peak(const struct sm_analysis *a, const struct sm_selection *s,
                                 unsigned threads) {
    struct peak_work w = {.a = a, .s = sm_selection_or_base(s, a)};
    sm_chunks_make(&w.chunks, a, threads);
    w.results = sm_alloc_zero(w.chunks.n, sizeof *w.results);
    sm_parallel(w.chunks.n, threads, peak_chunk, &w);
    struct sm_peak peak = {.row = UINT32_MAX};
    int64_t sum = 0, samples = 0;
    double variance = 0;
    for (unsigned i = 0; i < w.chunks.n; i++) {
        const struct peak_chunk *r = &w.results[i];
        if (r->any && sum + r->high > (int64_t)peak.units)
            peak = (struct sm_peak){.units = (uint64_t)(sum + r->high),
                                    .samples = (uint64_t)(samples + r->high_samples),
                                    .variance = fmax(0, variance + r->high_variance),
                                    .row = r->row,
                                    .freed = r->freed};
        sum += r->sum;
        samples += r->samples;
        variance += r->variance;
    }
    if (!a->mixed)
        peak.samples = peak.units;
    if (peak.row != UINT32_MAX)
        peak.ns = sm_row_alloc_ns(a, peak.row);
    free(w.results);
    return peak;
}

/* ---- curves ---- */

/* Of a series in a span and chunk; relative to the chunk's beginning. */
struct cell {
    int64_t live, low, high, live_samples;
    uint64_t allocated, freed;
    double live_variance;
    bool touched;
};

struct series {
    int64_t live, samples;
    double variance;
    int64_t live_before, samples_before; /* of these, by events before from_ns */
    double variance_before;
    struct peak_chunk peak;
};

struct curve_work {
    const struct sm_analysis *a;
    const struct sm_selection *s;
    const struct sm_curve *c;
    const uint32_t *of_class, *of_node;
    struct sm_chunks chunks;
    struct series *series; /* chunks x series */
    struct cell *cells;    /* chunks x series x points */
};

static uint32_t series_of(const struct curve_work *w, uint32_t row) {
    if (w->of_node != NULL)
        return w->of_node[w->a->rows.node[row]];
    return w->of_class != NULL ? w->of_class[w->a->rows.class_id[row]] : 0;
}

#define SPAN_BEFORE (UINT32_MAX - 1)
#define SPAN_AFTER UINT32_MAX

/* Span of a moment: 0 .. n_points - 1, or outside. */
static uint32_t span_of(const struct sm_curve *c, int64_t ns) {
    if (ns < c->from_ns)
        return SPAN_BEFORE;
    if (ns >= c->to_ns)
        return SPAN_AFTER;
    return (uint32_t)((__int128)(ns - c->from_ns) * c->n_points / (c->to_ns - c->from_ns));
}

static void change(const struct curve_work *w, struct series *all, struct cell *cells, uint32_t row,
                   uint32_t span, bool allocated, uint32_t freed) {
    if (!sm_selected(w->s, row))
        return;
    uint32_t k = series_of(w, row);
    if (k >= w->c->n_series)
        return;
    struct series *s = &all[k];
    struct cell *cell = span >= SPAN_BEFORE ? NULL : &cells[(size_t)k * w->c->n_points + span];
    if (cell != NULL && !cell->touched) {
        cell->touched = true;
        cell->low = cell->high = s->live;
    }
    uint64_t units = sm_row_units(w->a, row);
    int64_t sign = allocated ? 1 : -1;
    s->live += sign * (int64_t)units;
    if (w->a->mixed) {
        s->samples += sign * (int64_t)sm_row_samples(w->a, row);
        s->variance += (double)sign * sm_row_variance(w->a, row);
    }
    if (allocated && (!s->peak.any || s->live > s->peak.high))
        s->peak = (struct peak_chunk){.any = true,
                                      .high = s->live,
                                      .high_samples = s->samples,
                                      .high_variance = s->variance,
                                      .row = row,
                                      .freed = freed};
    if (span == SPAN_BEFORE) {
        s->live_before = s->live;
        s->samples_before = s->samples;
        s->variance_before = s->variance;
    }
    if (cell == NULL)
        return;
    if (allocated)
        cell->allocated += units;
    else
        cell->freed += units;
    cell->low = s->live < cell->low ? s->live : cell->low;
    cell->high = s->live > cell->high ? s->live : cell->high;
    cell->live = s->live;
    cell->live_samples = s->samples;
    cell->live_variance = s->variance;
}

static void curve_chunk(void *ctx, unsigned task) {
    struct curve_work *w = ctx;
    const struct sm_analysis *a = w->a;
    struct series *all = w->series + (size_t)task * w->c->n_series;
    struct cell *cells = w->cells + (size_t)task * w->c->n_series * w->c->n_points;
    struct sm_walk walk;
    uint32_t last = 0;
    bool any = false;
    for (sm_walk_begin(&walk, a, &w->chunks, task); sm_walk_row(&walk);) {
        bool row = walk.row != UINT32_MAX;
        uint32_t span = row ? span_of(w->c, sm_row_alloc_ns(a, walk.row)) : 0;
        /* Ends between two allocations of one span lie in that span: their own times, which cost a
           cache miss, matter only at its borders. */
        bool inside = any && row && last == span;
        for (uint32_t k = walk.free_from; k < walk.free_to; k++) {
            uint32_t freed = a->rows.free_order[k];
            change(w, all, cells, freed, inside ? span : span_of(w->c, sm_row_free_ns(a, freed)),
                   false, 0);
        }
        if (row)
            change(w, all, cells, walk.row, span, true, walk.free_to);
        last = span;
        any = true;
    }
}

static uint64_t positive(int64_t x) {
    return x > 0 ? (uint64_t)x : 0;
}

/* A chunk's part of one series, where the sums before it are known. */
static void add_cells(const struct sm_curve *c, struct sm_curve_point *points, bool *touched,
                      const struct cell *cells, const struct series *base) {
    for (uint32_t p = 0; p < c->n_points; p++) {
        const struct cell *cell = &cells[p];
        if (!cell->touched)
            continue;
        struct sm_curve_point *to = &points[p];
        uint64_t low = positive(base->live + cell->low), high = positive(base->live + cell->high);
        to->low = touched[p] && to->low < low ? to->low : low;
        to->high = touched[p] && to->high > high ? to->high : high;
        to->live = positive(base->live + cell->live);
        to->live_samples = positive(base->samples + cell->live_samples);
        to->live_variance = base->variance + cell->live_variance;
        to->allocated += cell->allocated;
        to->freed += cell->freed;
        touched[p] = true;
    }
}

static void combine(const struct curve_work *w, uint32_t k) {
    const struct sm_curve *c = w->c;
    struct sm_curve_point *points = c->points + (size_t)k * c->n_points;
    bool *touched = sm_alloc_zero(c->n_points, sizeof *touched);
    struct sm_peak *peak = &c->peaks[k];
    struct series base = {0};
    struct sm_curve_point level = {
        0}; /* what spans without a change show: at first, the state at from_ns */
    *peak = (struct sm_peak){.row = UINT32_MAX};
    for (unsigned i = 0; i < w->chunks.n; i++) {
        const struct series *s = &w->series[(size_t)i * c->n_series + k];
        if (s->peak.any && base.live + s->peak.high > (int64_t)peak->units)
            *peak = (struct sm_peak){.units = (uint64_t)(base.live + s->peak.high),
                                     .samples = (uint64_t)(base.samples + s->peak.high_samples),
                                     .variance = fmax(0, base.variance + s->peak.high_variance),
                                     .row = s->peak.row,
                                     .freed = s->peak.freed,
                                     .ns = sm_row_alloc_ns(w->a, s->peak.row)};
        add_cells(c, points, touched, w->cells + ((size_t)i * c->n_series + k) * c->n_points,
                  &base);
        level.live += (uint64_t)s->live_before;
        level.live_samples += (uint64_t)s->samples_before;
        level.live_variance += s->variance_before;
        base.live += s->live;
        base.samples += s->samples;
        base.variance += s->variance;
    }
    if (!w->a->mixed)
        peak->samples = peak->units;
    for (uint32_t p = 0; p < c->n_points; p++) {
        if (!touched[p]) {
            points[p] = level;
            points[p].low = points[p].high = level.live;
        }
        if (!w->a->mixed)
            points[p].live_samples = points[p].live;
        level.live = points[p].live;
        level.live_samples = points[p].live_samples;
        level.live_variance = points[p].live_variance;
    }
    free(touched);
}

void sm_curve_make(struct sm_curve *c, const struct sm_analysis *a, const struct sm_selection *s,
                   int64_t from_ns, int64_t to_ns, uint32_t n_points, uint32_t n_series,
                   const uint32_t *series_of_class, const uint32_t *series_of_node,
                   unsigned threads) {
    *c = (struct sm_curve){.from_ns = from_ns,
                           .to_ns = to_ns > from_ns ? to_ns : from_ns + 1,
                           .n_points = n_points > 0 ? n_points : 1,
                           .n_series = n_series > 0 ? n_series : 1};
    c->points = sm_alloc_zero((size_t)c->n_points * c->n_series, sizeof *c->points);
    c->peaks = sm_alloc_zero(c->n_series, sizeof *c->peaks);
    struct curve_work w = {.a = a,
                           .s = sm_selection_or_base(s, a),
                           .c = c,
                           .of_class = series_of_class,
                           .of_node = series_of_node};
    sm_chunks_make(&w.chunks, a, threads);
    w.series = sm_alloc_zero((size_t)w.chunks.n * c->n_series, sizeof *w.series);
    w.cells = sm_alloc_zero((size_t)w.chunks.n * c->n_series * c->n_points, sizeof *w.cells);
    sm_parallel(w.chunks.n, threads, curve_chunk, &w);
    for (uint32_t k = 0; k < c->n_series; k++)
        combine(&w, k);
    free(w.series);
    free(w.cells);
}

void sm_curve_release(struct sm_curve *c) {
    free(c->points);
    free(c->peaks);
    *c = (struct sm_curve){0};
}
