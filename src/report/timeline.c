/* See timeline.h: series, JSON and CSV. */
#include "report/timeline.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/group.h"
#include "report/naming.h"
#include "util/memory.h"

static void begin(struct sm_timeline *t, const struct sm_asked *asked, int64_t from_ns,
                  int64_t to_ns, uint32_t n_points) {
    *t = (struct sm_timeline){.asked = asked,
                              .from_ns = from_ns,
                              .to_ns = to_ns > from_ns ? to_ns : from_ns + 1,
                              .n_points = n_points > 0 ? n_points : 1,
                              .unit = asked->a->bytes_per_unit > 0 ? asked->a->bytes_per_unit : 1};
    if (t->n_points > SM_TIMELINE_MAX_POINTS)
        t->n_points = SM_TIMELINE_MAX_POINTS;
}

static void add_series(struct sm_timeline *t, struct sm_buffer *name, struct sm_buffer *filter) {
    t->series = sm_realloc_array(t->series, t->n_series + 1u, sizeof *t->series);
    t->series[t->n_series++] = (struct sm_series){.name = sm_strdup(sm_buffer_string(name)),
                                                  .filter = sm_strdup(sm_buffer_string(filter))};
    name->used = filter->used = 0;
}

static uint32_t *by_domain(struct sm_timeline *t) {
    const struct sm_analysis *a = t->asked->a;
    uint32_t *of = sm_alloc_zero((size_t)a->n_classes + 1, sizeof *of), n;
    uint64_t *domains;
    uint32_t *of_lane = sm_domains_of_lanes(a, &domains, &n);
    struct sm_buffer name, filter;
    sm_buffer_init(&name, -1);
    sm_buffer_init(&filter, -1);
    for (uint32_t k = 0; k < n; k++) {
        if (domains[k] == SM_NO_DOMAIN) {
            sm_buffer_text(&name, "native threads");
        } else {
            sm_buffer_printf(&name, "domain %" PRIu64, domains[k]);
            sm_buffer_printf(&filter, "domain = %" PRIu64, domains[k]);
        }
        add_series(t, &name, &filter);
    }
    for (uint32_t i = 0; i < a->n_classes; i++)
        of[i] = of_lane[a->classes[i].lane];
    free(of_lane);
    free(domains);
    sm_buffer_release(&name);
    sm_buffer_release(&filter);
    return of;
}

/* Heaps that occur, in their order. */
static uint32_t *by_heap(struct sm_timeline *t) {
    const struct sm_analysis *a = t->asked->a;
    uint32_t *of = sm_alloc_zero((size_t)a->n_classes + 1, sizeof *of);
    struct sm_buffer name, filter;
    sm_buffer_init(&name, -1);
    sm_buffer_init(&filter, -1);
    for (unsigned heap = 0; heap < 8; heap++) {
        bool seen = false;
        for (uint32_t i = 0; i < a->n_classes; i++) {
            if (a->classes[i].heap == heap) {
                of[i] = t->n_series;
                seen = true;
            }
        }
        if (!seen)
            continue;
        sm_buffer_text(&name, sm_heap_name(heap));
        sm_buffer_printf(&filter, "source = %s", sm_heap_name(heap));
        add_series(t, &name, &filter);
    }
    sm_buffer_release(&name);
    sm_buffer_release(&filter);
    return of;
}

struct site {
    uint32_t key;
    uint64_t units;
};

static int by_units(const void *left, const void *right) {
    const struct site *x = left, *y = right;
    if (x->units != y->units)
        return x->units > y->units ? -1 : 1;
    return x->key < y->key ? -1 : 1;
}

/* The sites that hold most at the peak, and "others". */
static uint32_t *by_site(struct sm_timeline *t, uint32_t top) {
    const struct sm_analysis *a = t->asked->a;
    struct sm_view v;
    struct sm_weigher w;
    struct sm_weight peak = {.kind = SM_WEIGHT_LIVE_OWN_PEAK};
    struct sm_buffer name, filter;
    sm_buffer_init(&name, -1);
    sm_buffer_init(&filter, -1);
    sm_asked_view(t->asked, &v, SM_KEY_FUNCTION);
    sm_asked_weigher(t->asked, &w, &peak);
    struct sm_sum *nodes = sm_weigh_nodes(&w, t->asked->threads);
    struct sm_key_sum *sums = sm_view_sums(&v, nodes);
    struct site *sites = sm_alloc(v.n_keys * sizeof *sites);
    for (uint32_t key = 0; key < v.n_keys; key++)
        sites[key] = (struct site){key, sums[key].own.units};
    qsort(sites, v.n_keys, sizeof *sites, by_units);
    uint32_t *series_of_key = sm_alloc(v.n_keys * sizeof *series_of_key);
    for (uint32_t i = 0; i < v.n_keys; i++) {
        bool shown = i < top && sites[i].units > 0;
        series_of_key[sites[i].key] = shown ? t->n_series : SM_NO_SERIES;
        if (shown) {
            sm_view_name(&v, sites[i].key, &name);
            add_series(t, &name, &filter);
        }
    }
    sm_buffer_text(&name, "others");
    add_series(t, &name, &filter);
    uint32_t *of = sm_alloc((size_t)a->tree.n_nodes * sizeof *of);
    uint32_t *visible = sm_alloc((size_t)a->tree.n_nodes * sizeof *visible);
    for (uint32_t i = 0; i < a->tree.n_nodes; i++) {
        visible[i] = v.key[i] != SM_KEY_HIDDEN ? v.key[i] : visible[a->tree.parent[i]];
        of[i] =
            series_of_key[visible[i]] != SM_NO_SERIES ? series_of_key[visible[i]] : t->n_series - 1;
    }
    free(visible);
    free(series_of_key);
    free(sites);
    free(sums);
    free(nodes);
    sm_weigher_release(&w);
    sm_view_release(&v);
    sm_buffer_release(&name);
    sm_buffer_release(&filter);
    return of;
}

static void connect(struct sm_timeline *t) {
    for (uint32_t i = 0; i < t->n_series; i++) {
        const struct sm_curve *c = &t->curves[t->n_curves == 1 ? 0 : i];
        uint32_t k = t->n_curves == 1 ? i : 0;
        t->series[i].points = c->points + (size_t)k * c->n_points;
        t->series[i].peak = c->peaks[k];
    }
}

void sm_timeline_make(struct sm_timeline *t, const struct sm_asked *asked, enum sm_series_by by,
                      uint32_t top, int64_t from_ns, int64_t to_ns, uint32_t n_points) {
    begin(t, asked, from_ns, to_ns, n_points);
    uint32_t *of_class = NULL, *of_node = NULL;
    if (by == SM_SERIES_DOMAIN)
        of_class = by_domain(t);
    else if (by == SM_SERIES_SOURCE)
        of_class = by_heap(t);
    else if (by == SM_SERIES_SITE)
        of_node = by_site(t, top);
    if (t->n_series == 0) {
        struct sm_buffer name, filter;
        sm_buffer_init(&name, -1);
        sm_buffer_init(&filter, -1);
        sm_buffer_text(&name, asked->filter_text[0] != 0 ? asked->filter_text : "live");
        add_series(t, &name, &filter);
        sm_buffer_release(&name);
        sm_buffer_release(&filter);
    }
    t->n_curves = 1;
    t->curves = sm_alloc_zero(1, sizeof *t->curves);
    sm_curve_make(&t->curves[0], asked->a, &asked->selection, t->from_ns, t->to_ns, t->n_points,
                  t->n_series, of_class, of_node, asked->threads);
    connect(t);
    free(of_class);
    free(of_node);
}

/* The rows of one filter within what was asked for. */
static bool select_within(const struct sm_asked *asked, const char *text, struct sm_selection *s,
                          struct sm_filter_error *err) {
    struct sm_filter *f = sm_filter_parse(text, strlen(text), err);
    if (f == NULL)
        return false;
    sm_select_both(s, asked->a, asked->filter, f, asked->threads);
    sm_filter_free(f);
    return true;
}

bool sm_timeline_of_filters(struct sm_timeline *t, const struct sm_asked *asked,
                            const char *const *filters, uint32_t n, int64_t from_ns, int64_t to_ns,
                            uint32_t n_points, struct sm_filter_error *err) {
    struct sm_buffer name, filter;
    begin(t, asked, from_ns, to_ns, n_points);
    t->curves = sm_alloc_zero(n + 1u, sizeof *t->curves);
    sm_curve_make(&t->curves[t->n_curves++], asked->a, &asked->selection, t->from_ns, t->to_ns,
                  t->n_points, 1, NULL, NULL, asked->threads);
    sm_buffer_init(&name, -1);
    sm_buffer_init(&filter, -1);
    sm_buffer_text(&name, asked->filter_text[0] != 0 ? asked->filter_text : "all");
    add_series(t, &name, &filter);
    bool ok = true;
    for (uint32_t i = 0; i < n && ok; i++) {
        struct sm_selection s = {0};
        ok = select_within(asked, filters[i], &s, err);
        if (ok) {
            sm_curve_make(&t->curves[t->n_curves++], asked->a, &s, t->from_ns, t->to_ns,
                          t->n_points, 1, NULL, NULL, asked->threads);
            sm_buffer_text(&name, filters[i]);
            sm_buffer_text(&filter, filters[i]);
            add_series(t, &name, &filter);
        }
        sm_selection_release(&s);
    }
    sm_buffer_release(&name);
    sm_buffer_release(&filter);
    connect(t);
    return ok;
}

void sm_timeline_release(struct sm_timeline *t) {
    for (uint32_t i = 0; i < t->n_series; i++) {
        free(t->series[i].name);
        free(t->series[i].filter);
    }
    free(t->series);
    for (uint32_t i = 0; i < t->n_curves; i++)
        sm_curve_release(&t->curves[i]);
    free(t->curves);
    free(t->process);
    *t = (struct sm_timeline){0};
}

/* ---- JSON and CSV ---- */

enum column { LIVE, LOW, HIGH, ALLOCATED, FREED };

static uint64_t units_of(const struct sm_curve_point *p, enum column c) {
    return c == LIVE        ? p->live
           : c == LOW       ? p->low
           : c == HIGH      ? p->high
           : c == ALLOCATED ? p->allocated
                            : p->freed;
}

static void json_column(struct sm_json *j, const char *key, const struct sm_timeline *t,
                        const struct sm_series *s, enum column c) {
    sm_json_open(j, key, '[');
    for (uint32_t i = 0; i < t->n_points; i++)
        sm_json_double(j, NULL, (double)units_of(&s->points[i], c) * t->unit);
    sm_json_close(j, ']');
}

static void json_interval(struct sm_json *j, const struct sm_timeline *t,
                          const struct sm_series *s) {
    sm_json_open(j, "live_low", '[');
    for (uint32_t i = 0; i < t->n_points; i++)
        sm_json_double(j, NULL, sm_timeline_estimate(t, s, i).low);
    sm_json_close(j, ']');
    sm_json_open(j, "live_high", '[');
    for (uint32_t i = 0; i < t->n_points; i++)
        sm_json_double(j, NULL, sm_timeline_estimate(t, s, i).high);
    sm_json_close(j, ']');
}

void sm_timeline_members(struct sm_json *j, const struct sm_timeline *t) {
    sm_json_i64(j, "from_ns", t->from_ns);
    sm_json_i64(j, "to_ns", t->to_ns);
    sm_json_u64(j, "points", t->n_points);
    sm_json_double(j, "step_ns", (double)(t->to_ns - t->from_ns) / t->n_points);
    sm_json_open(j, "series", '[');
    for (uint32_t i = 0; i < t->n_series; i++) {
        const struct sm_series *s = &t->series[i];
        sm_json_open(j, NULL, '{');
        sm_json_text(j, "name", s->name);
        sm_json_text(j, "filter", s->filter);
        json_column(j, "live", t, s, LIVE);
        json_column(j, "low", t, s, LOW);
        json_column(j, "high", t, s, HIGH);
        json_column(j, "allocated", t, s, ALLOCATED);
        json_column(j, "freed", t, s, FREED);
        json_interval(j, t, s);
        struct sm_estimate e = sm_timeline_peak(t, s);
        sm_json_estimate(j, "peak", &e, 0);
        sm_json_i64(j, "peak_ns", s->peak.ns);
        sm_json_close(j, '}');
    }
    sm_json_close(j, ']');
}

void sm_timeline_json(struct sm_buffer *out, const struct sm_timeline *t) {
    struct sm_json j;
    sm_json_init(&j, out, false);
    sm_json_open(&j, NULL, '{');
    sm_json_asked(&j, t->asked);
    sm_timeline_members(&j, t);
    sm_json_close(&j, '}');
    sm_json_end(&j);
}

void sm_timeline_csv(struct sm_buffer *out, const struct sm_timeline *t) {
    sm_buffer_text(out, "series,from_ns,to_ns,live,low,high,allocated,freed,live_samples,"
                        "live_low,live_high\n");
    for (uint32_t i = 0; i < t->n_series; i++) {
        const struct sm_series *s = &t->series[i];
        for (uint32_t k = 0; k < t->n_points; k++) {
            const struct sm_curve_point *p = &s->points[k];
            __int128 length = t->to_ns - t->from_ns;
            sm_csv_text(out, s->name, strlen(s->name));
            int64_t from = t->from_ns + (int64_t)(length * k / t->n_points);
            int64_t to = t->from_ns + (int64_t)(length * (k + 1) / t->n_points);
            sm_buffer_printf(out, ",%" PRId64 ",%" PRId64, from, to);
            for (int c = LIVE; c <= FREED; c++)
                sm_buffer_printf(out, ",%.17g", (double)units_of(p, (enum column)c) * t->unit);
            struct sm_estimate e = sm_timeline_estimate(t, s, k);
            sm_buffer_printf(out, ",%" PRIu64, p->live_samples);
            if (isnan(e.value))
                sm_buffer_text(out, ",,\n");
            else
                sm_buffer_printf(out, ",%.17g,%.17g\n", e.low, e.high);
        }
    }
}
