/* See leaks.h. */
#include "analyze/leaks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/curve.h"
#include "util/memory.h"

#define DEFAULT_GENERATIONS 20
#define MAX_GENERATIONS 64

struct site {
    struct sm_sum live, allocated;
    int64_t first_alloc_ns, first_ns, last_ns; /* of any block; of those that live at the end */
    double age_units;                          /* sum of age x units */
    uint64_t generations;                      /* bit by generation */
};

/* The visible innermost key of each node. */
static uint32_t *site_of_node(const struct sm_view *v) {
    const struct sm_calltree *t = &v->analysis->tree;
    uint32_t *of = sm_alloc((size_t)t->n_nodes * sizeof *of);
    for (uint32_t i = 0; i < t->n_nodes; i++)
        of[i] = v->key[i] != SM_KEY_HIDDEN ? v->key[i] : of[t->parent[i]];
    return of;
}

static uint32_t generation_of(const struct sm_analysis *a, uint32_t n, int64_t ns) {
    if (ns <= 0 || a->last_ns <= 0)
        return 0;
    uint64_t g = (uint64_t)((unsigned __int128)ns * n / ((uint64_t)a->last_ns + 1));
    return g < n ? (uint32_t)g : n - 1;
}

/* *busy: generations in which the program allocated at all. */
static struct site *collect(const struct sm_view *v, const struct sm_selection *s, uint32_t n,
                            const uint32_t *site_of, uint64_t *busy) {
    const struct sm_analysis *a = v->analysis;
    struct site *sites = sm_alloc_zero(v->n_keys, sizeof *sites);
    struct sm_weigher w;
    struct sm_weight allocated = {.kind = SM_WEIGHT_ALLOCATED};
    sm_weigher_init(&w, a, s, &allocated, 0);
    *busy = 0;
    for (uint32_t row = 0; row < a->rows.n; row++) {
        int64_t ns = sm_row_alloc_ns(a, row);
        uint64_t generation = (uint64_t)1 << generation_of(a, n, ns);
        *busy |= generation;
        if (!sm_weigher_takes(&w, row))
            continue;
        struct site *site = &sites[site_of[a->rows.node[row]]];
        if (site->allocated.rows == 0)
            site->first_alloc_ns = ns;
        sm_weigher_add(&w, row, &site->allocated);
        if (a->rows.free_age[row] != SM_ROW_NEVER)
            continue;
        if (site->live.rows == 0)
            site->first_ns = ns;
        site->last_ns = ns;
        sm_weigher_add(&w, row, &site->live);
        site->age_units += (double)(a->last_ns - ns) * (double)sm_row_units(a, row);
        site->generations |= generation;
    }
    sm_weigher_release(&w);
    return sites;
}

/* The 97.5 % quantile of Student's distribution: exact for 1 and 2 degrees of freedom; beyond, Hill's
   expansion (G. W. Hill, "Algorithm 396: Student's t-quantiles", CACM 13, 1970) to four terms. */
static double student(unsigned degrees) {
    const double z = 1.959963984540054, n = degrees;
    if (degrees == 1)
        return 12.706204736432095;
    if (degrees == 2)
        return 4.302652729911275;
    double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z, z9 = z7 * z * z;
    return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
           (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n) +
           (79 * z9 + 776 * z7 + 1482 * z5 - 1920 * z3 - 945 * z) / (92160 * n * n * n * n);
}

/* y: live bytes at the ends of n generations of `seconds` each. */
static void trend(struct sm_leak *l, const double *y, uint32_t n, double seconds) {
    l->slope = l->slope_low = l->slope_high = NAN;
    if (n < 3 || !(seconds > 0))
        return;
    double mx = (n - 1) / 2.0, my = 0, sxx = 0, sxy = 0, syy = 0;
    for (uint32_t i = 0; i < n; i++)
        my += y[i] / n;
    for (uint32_t i = 0; i < n; i++) {
        double dx = i - mx, dy = y[i] - my;
        sxx += dx * dx;
        sxy += dx * dy;
        syy += dy * dy;
    }
    if (sxy > 0 && syy > 0)
        l->trend = fmin(1, sxy / sqrt(sxx * syy));
    double slope = sxy / sxx;
    double rest = fmax(0, syy - slope * sxy); /* sum of squared residuals */
    double half = student(n - 2) * sqrt(rest / (n - 2) / sxx);
    l->slope = slope / seconds;
    l->slope_low = (slope - half) / seconds;
    l->slope_high = (slope + half) / seconds;
}

static int by_importance(const void *left, const void *right) {
    const struct sm_leak *x = left, *y = right;
    double a = x->score * (double)x->live.units, b = y->score * (double)y->live.units;
    if (a != b)
        return a > b ? -1 : 1;
    if (x->live.units != y->live.units)
        return x->live.units > y->live.units ? -1 : 1;
    return x->key < y->key ? -1 : 1;
}

static void judge(struct sm_leak *l, const struct sm_analysis *a, const struct site *site,
                  const struct sm_curve *c, uint32_t series, uint64_t busy) {
    uint32_t n = c->n_points, first = generation_of(a, n, site->first_alloc_ns);
    double y[MAX_GENERATIONS] = {0};
    double bytes = a->bytes_per_unit > 0 ? a->bytes_per_unit : 1;
    for (uint32_t i = first; i < n; i++)
        y[i - first] = (double)c->points[(size_t)series * n + i].live * bytes;
    l->allocated = site->allocated;
    l->live = site->live;
    l->first_ns = site->first_ns;
    l->last_ns = site->last_ns;
    l->mean_age_ns = site->live.units > 0 ? site->age_units / (double)site->live.units : 0;
    l->generations = (uint32_t)__builtin_popcountll(site->generations);
    l->generations_possible = (uint32_t)__builtin_popcountll(busy >> first);
    l->spread = (double)l->generations / l->generations_possible;
    trend(l, y, n - first, (double)(c->to_ns - c->from_ns) / 1e9 / n);
    l->score = l->spread * l->trend;
}

void sm_leaks_make(struct sm_leaks *l, const struct sm_view *v, const struct sm_selection *s,
                   uint32_t n_generations, unsigned threads) {
    const struct sm_analysis *a = v->analysis;
    uint32_t n = n_generations == 0 ? DEFAULT_GENERATIONS : n_generations;
    n = n < 3 ? 3 : n > MAX_GENERATIONS ? MAX_GENERATIONS : n;
    *l = (struct sm_leaks){.n_generations = n};
    uint32_t *site_of = site_of_node(v);
    uint64_t busy;
    struct site *sites = collect(v, s, n, site_of, &busy);
    uint32_t *series = sm_alloc((size_t)v->n_keys * sizeof *series);
    for (uint32_t key = 0; key < v->n_keys; key++)
        series[key] = sites[key].live.rows > 0 ? l->n++ : SM_NO_SERIES;
    for (uint32_t i = 0; i < a->tree.n_nodes; i++)
        site_of[i] = series[site_of[i]];
    if (l->n > 0) {
        struct sm_curve c;
        sm_curve_make(&c, a, s, 0, a->last_ns + 1, n, l->n, NULL, site_of, threads);
        l->list = sm_alloc_zero(l->n, sizeof *l->list);
        for (uint32_t key = 0; key < v->n_keys; key++) {
            if (series[key] == SM_NO_SERIES)
                continue;
            l->list[series[key]].key = key;
            judge(&l->list[series[key]], a, &sites[key], &c, series[key], busy);
        }
        sm_curve_release(&c);
        qsort(l->list, l->n, sizeof *l->list, by_importance);
    }
    free(series);
    free(sites);
    free(site_of);
}

void sm_leaks_release(struct sm_leaks *l) {
    free(l->list);
    *l = (struct sm_leaks){0};
}
