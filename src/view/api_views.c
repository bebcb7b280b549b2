/* The API's views: summary, timeline, tree, places, groups, fragments, leaks, compare. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/diff.h"
#include "report/leaks.h"
#include "report/query.h"
#include "report/timeline.h"
#include "report/tree.h"
#include "util/memory.h"
#include "view/api_internal.h"

/* ---- summary ---- */

static void put_weight(struct sm_answer *a, const char *key, enum sm_weight_kind kind) {
    struct sm_weight weight = {.kind = kind};
    struct sm_weigher w;
    sm_asked_weigher(&a->asked, &w, &weight);
    struct sm_sum sum = sm_weigh(&w, 0);
    sm_json_sum(&a->j, key, &w, &sum);
    sm_weigher_release(&w);
}

/* Rows of one grouping with their weights under the given names. */
static void put_groups(struct sm_answer *a, const char *key, const char *by,
                       const enum sm_weight_kind *kinds, const char *const *names, uint32_t n) {
    struct sm_weight weights[SM_MAX_WEIGHTS];
    struct sm_query q;
    struct sm_error err;
    struct sm_buffer name;
    for (uint32_t i = 0; i < n; i++)
        weights[i] = (struct sm_weight){.kind = kinds[i]};
    sm_buffer_init(&name, -1);
    sm_json_open(&a->j, key, '[');
    if (sm_query_make(&q, &a->asked, by, weights, n, true, &err)) {
        for (uint32_t k = 0; k < q.groups.n_groups; k++) {
            const struct sm_group_row *row = &q.groups.list[k];
            sm_json_open(&a->j, NULL, '{');
            name.used = 0;
            sm_groups_name(&q.groups, 0, row->value[0], &name);
            sm_json_bytes(&a->j, "name", name.data, name.used);
            name.used = 0;
            sm_query_filter(&name, &q, 0, row->value[0]);
            sm_json_bytes(&a->j, "filter", name.data, name.used);
            for (uint32_t i = 0; i < n; i++)
                sm_json_sum(&a->j, names[i], &q.weighers[i], &row->sums[i]);
            sm_json_close(&a->j, '}');
        }
    }
    sm_json_close(&a->j, ']');
    sm_query_release(&q);
    sm_buffer_release(&name);
}

#define SITES_SHOWN 5

/* The heaviest sites by one weight of the query. */
static void put_sites(struct sm_answer *a, const char *key, const struct sm_query *q,
                      uint32_t weight) {
    const struct sm_group_row *best[SITES_SHOWN] = {NULL};
    for (uint32_t k = 0; k < q->groups.n_groups; k++) {
        const struct sm_group_row *row = &q->groups.list[k];
        for (unsigned i = 0; i < SITES_SHOWN && row != NULL && row->sums[weight].units > 0; i++) {
            if (best[i] == NULL || row->sums[weight].units > best[i]->sums[weight].units) {
                const struct sm_group_row *worse = best[i];
                best[i] = row;
                row = worse;
            }
        }
    }
    sm_json_open(&a->j, key, '[');
    for (unsigned i = 0; i < SITES_SHOWN && best[i] != NULL; i++) {
        sm_json_open(&a->j, NULL, '{');
        sm_json_place(&a->j, "place", &q->views[0], best[i]->value[0]);
        sm_json_sum(&a->j, "estimate", &q->weighers[weight], &best[i]->sums[weight]);
        sm_json_close(&a->j, '}');
    }
    sm_json_close(&a->j, ']');
}

void sm_api_summary(struct sm_answer *a) {
    static const enum sm_weight_kind four[] = {SM_WEIGHT_ALLOCATED, SM_WEIGHT_LIVE_END,
                                               SM_WEIGHT_LIVE_PEAK, SM_WEIGHT_PROMOTED};
    static const char *const names[] = {"allocated", "live_end", "peak", "promoted"};
    static const char *const sites[] = {"allocated", "live_end", "peak", "temporary"};
    /* All that stands by site in one pass over the rows; the totals come with it. */
    static const struct sm_weight weights[] = {
        {.kind = SM_WEIGHT_ALLOCATED},
        {.kind = SM_WEIGHT_LIVE_END},
        {.kind = SM_WEIGHT_LIVE_OWN_PEAK},
        {.kind = SM_WEIGHT_TEMPORARY, .temporary_by = SM_TEMPORARY_BYTES, .limit = 1000000}};
    struct sm_json *j = &a->j;
    struct sm_query q;
    struct sm_error err;
    if (!sm_query_make(&q, &a->asked, "function", weights, 4, false, &err)) {
        sm_query_release(&q);
        sm_answer_fail(a, 500, "%s", err.text);
        return;
    }
    for (uint32_t i = 0; i < 4; i++)
        sm_json_sum(j, sites[i], &q.weighers[i], &q.totals[i]);
    sm_json_i64(j, "peak_ns", q.weighers[2].moment.ns);
    sm_json_open(j, "sites", '{');
    for (uint32_t i = 0; i < 4; i++)
        put_sites(a, sites[i], &q, i);
    sm_json_close(j, '}');
    sm_query_release(&q);
    put_weight(a, "promoted", SM_WEIGHT_PROMOTED);
    put_weight(a, "early", SM_WEIGHT_FREED_EARLY);
    put_weight(a, "freed", SM_WEIGHT_FREED);
    put_weight(a, "objects", SM_WEIGHT_OBJECTS);
    put_groups(a, "domains", "domain", four, names, 4);
    put_groups(a, "sources", "heap", four, names, 2);
}

/* ---- timeline ---- */

void sm_api_timeline(struct sm_answer *a) {
    int64_t from = 0, to = a->s->a->last_ns + 1;
    uint64_t points = 500;
    const char *by = sm_parameter(a->r, "series"), *filters[12];
    uint32_t n = 0;
    if (!sm_parameter_i64(a, "from", &from) || !sm_parameter_i64(a, "to", &to) ||
        !sm_parameter_u64(a, "points", 1, SM_TIMELINE_MAX_POINTS, &points))
        return;
    while (n < 12 && (filters[n] = sm_parameter_nth(a->r, "and", n)) != NULL)
        n++;
    struct sm_timeline t;
    if (n > 0) {
        if (!sm_timeline_of_filters(&t, &a->asked, filters, n, from, to, (uint32_t)points,
                                    &a->filter_error))
            sm_answer_fail(a, 400, "%s", a->filter_error.text);
    } else {
        enum sm_series_by kind = by == NULL || strcmp(by, "total") == 0 ? SM_SERIES_TOTAL
                                 : strcmp(by, "domain") == 0            ? SM_SERIES_DOMAIN
                                 : strcmp(by, "source") == 0            ? SM_SERIES_SOURCE
                                                                        : SM_SERIES_SITE;
        uint64_t top = 6;
        if (!sm_parameter_u64(a, "top", 1, 50, &top))
            return;
        sm_timeline_make(&t, &a->asked, kind, (uint32_t)top, from, to, (uint32_t)points);
    }
    if (a->status == 0)
        sm_timeline_members(&a->j, &t);
    sm_timeline_release(&t);
}

/* ---- tree ---- */

void sm_api_tree(struct sm_answer *a) {
    enum sm_key_kind kind = SM_KEY_FUNCTION;
    struct sm_weight weight;
    struct sm_merge_options o = {0};
    uint32_t n, *focus;
    uint64_t depth = 0;
    double min_share = 0.0005;
    const char *direction = sm_parameter(a->r, "direction"), *order = sm_parameter(a->r, "order");
    if (!sm_parameter_key(a, &kind) || !sm_parameter_weights(a, &weight, 1, &n) ||
        !sm_parameter_u64(a, "depth", 0, 65535, &depth) ||
        !sm_parameter_share(a, "min_share", &min_share))
        return;
    struct sm_view v;
    sm_asked_view(&a->asked, &v, kind);
    if (sm_parameter_keys(a, &v, "focus", &focus, &o.n_focus)) {
        struct sm_weigher w;
        struct sm_tree_report r;
        o.focus = focus;
        o.max_depth = (uint32_t)depth;
        o.direction =
            direction != NULL && strcmp(direction, "callers") == 0 ? SM_CALLERS : SM_CALLEES;
        o.order = order != NULL && strcmp(order, "name") == 0 ? SM_ORDER_NAME : SM_ORDER_WEIGHT;
        sm_asked_weigher(&a->asked, &w, &weight);
        sm_tree_report_make(&r, &a->asked, &v, &w, &o, min_share);
        sm_tree_report_members(&a->j, &r);
        sm_tree_report_release(&r);
        sm_weigher_release(&w);
        free(focus);
    }
    sm_view_release(&v);
}

/* ---- places ---- */

struct place_row {
    uint32_t key;
    uint64_t by;
};

static int by_weight(const void *left, const void *right) {
    const struct place_row *x = left, *y = right;
    if (x->by != y->by)
        return x->by > y->by ? -1 : 1;
    return x->key < y->key ? -1 : 1;
}

static bool contains(const struct sm_view *v, uint32_t key, const char *text) {
    struct sm_buffer id;
    const struct sm_analysis *a = v->analysis;
    sm_buffer_init(&id, -1);
    sm_place_id(&id, v, key);
    sm_buffer_printf(&id, " %s", sm_text(a, a->functions[a->frames[v->spot[key]].function].module));
    bool found = strcasestr(sm_buffer_string(&id), text) != NULL;
    sm_buffer_release(&id);
    return found;
}

static void put_place_rows(struct sm_answer *a, const struct sm_view *v, const struct sm_weigher *w,
                           struct sm_key_sum *const *sums, uint32_t n) {
    const char *search = sm_parameter(a->r, "search"), *sort = sm_parameter(a->r, "sort");
    bool by_own = sort != NULL && strcmp(sort, "own") == 0;
    struct place_row *rows = sm_alloc(v->n_keys * sizeof *rows);
    uint32_t n_rows = 0;
    struct sm_json *j = &a->j;
    for (uint32_t key = 1; key < v->n_keys; key++) {
        bool any = false;
        for (uint32_t i = 0; i < n; i++)
            any |= sums[i][key].total.rows > 0;
        if (any && (search == NULL || search[0] == 0 || contains(v, key, search)))
            rows[n_rows++] =
                (struct place_row){key, by_own ? sums[0][key].own.units : sums[0][key].total.units};
    }
    qsort(rows, n_rows, sizeof *rows, by_weight);
    uint32_t shown = a->asked.top != 0 && a->asked.top < n_rows ? (uint32_t)a->asked.top : n_rows;
    sm_json_open(j, "rows", '[');
    for (uint32_t k = 0; k < shown; k++) {
        sm_json_open(j, NULL, '{');
        sm_json_place(j, "place", v, rows[k].key);
        sm_json_open(j, "own", '[');
        for (uint32_t i = 0; i < n; i++)
            sm_json_sum(j, NULL, &w[i], &sums[i][rows[k].key].own);
        sm_json_close(j, ']');
        sm_json_open(j, "total", '[');
        for (uint32_t i = 0; i < n; i++)
            sm_json_sum(j, NULL, &w[i], &sums[i][rows[k].key].total);
        sm_json_close(j, ']');
        sm_json_close(j, '}');
    }
    sm_json_close(j, ']');
    sm_json_u64(j, "more", n_rows - shown);
    free(rows);
}

void sm_api_places(struct sm_answer *a) {
    enum sm_key_kind kind = SM_KEY_FUNCTION;
    struct sm_weight weights[SM_MAX_WEIGHTS];
    struct sm_weigher w[SM_MAX_WEIGHTS];
    struct sm_key_sum *sums[SM_MAX_WEIGHTS];
    uint32_t n;
    char text[64];
    if (!sm_parameter_key(a, &kind) || !sm_parameter_weights(a, weights, SM_MAX_WEIGHTS, &n))
        return;
    struct sm_view v;
    sm_asked_view(&a->asked, &v, kind);
    sm_json_open(&a->j, "weights", '[');
    for (uint32_t i = 0; i < n; i++) {
        sm_asked_weigher(&a->asked, &w[i], &weights[i]);
        struct sm_sum *nodes = sm_weigh_nodes(&w[i], 0);
        sums[i] = sm_view_sums(&v, nodes);
        free(nodes);
        sm_json_text(&a->j, NULL, sm_weight_text(&weights[i], text));
    }
    sm_json_close(&a->j, ']');
    sm_json_open(&a->j, "totals", '[');
    for (uint32_t i = 0; i < n; i++)
        sm_json_sum(&a->j, NULL, &w[i], &sums[i][0].total);
    sm_json_close(&a->j, ']');
    put_place_rows(a, &v, w, sums, n);
    for (uint32_t i = 0; i < n; i++) {
        free(sums[i]);
        sm_weigher_release(&w[i]);
    }
    sm_view_release(&v);
}

void sm_api_groups(struct sm_answer *a) {
    struct sm_weight weights[SM_MAX_WEIGHTS];
    uint32_t n;
    const char *by = sm_parameter(a->r, "by"), *order = sm_parameter(a->r, "order");
    struct sm_query q;
    struct sm_error err;
    if (!sm_parameter_weights(a, weights, SM_MAX_WEIGHTS, &n))
        return;
    if (sm_query_make(&q, &a->asked, by != NULL ? by : "function", weights, n,
                      order != NULL && strcmp(order, "value") == 0, &err))
        sm_query_members(&a->j, &q);
    else
        sm_answer_fail(a, 400, "by: %s", err.text);
    sm_query_release(&q);
}

/* ---- fragments ---- */

#define MAX_FRAGMENT_LENGTH 64
#define MAX_FRAGMENTS 20000

void sm_api_fragments(struct sm_answer *a) {
    enum sm_key_kind kind = SM_KEY_FUNCTION;
    struct sm_weight weight;
    uint32_t n;
    double min_share = 0.005, tolerance = 0.01;
    if (!sm_parameter_key(a, &kind) || !sm_parameter_weights(a, &weight, 1, &n) ||
        !sm_parameter_share(a, "min_share", &min_share) ||
        !sm_parameter_share(a, "tolerance", &tolerance))
        return;
    const char *fold = sm_parameter(a->r, "fold");
    struct sm_view v;
    struct sm_weigher w;
    struct sm_fragments f;
    struct sm_json *j = &a->j;
    a->asked.fold_recursion = fold == NULL || strcmp(fold, "0") != 0;
    sm_asked_view(&a->asked, &v, kind);
    sm_asked_weigher(&a->asked, &w, &weight);
    struct sm_sum *nodes = sm_weigh_nodes(&w, 0), total = sm_weigh(&w, 0);
    sm_fragments_find(&f, &v, nodes, (uint64_t)ceil((double)total.units * min_share), tolerance,
                      MAX_FRAGMENT_LENGTH, MAX_FRAGMENTS);
    sm_json_sum(j, "total", &w, &total);
    sm_json_bool(j, "complete", f.complete);
    for (int paths = 0; paths < 2; paths++) {
        uint64_t shown = 0;
        sm_json_open(j, paths ? "paths" : "functions", '[');
        for (uint32_t i = 0; i < f.n; i++) {
            const struct sm_fragment *x = &f.list[i];
            if (!x->maximal || (x->n_keys > 1) != (paths == 1) ||
                (a->asked.top != 0 && shown == a->asked.top))
                continue;
            shown++;
            sm_json_open(j, NULL, '{');
            if (!paths)
                sm_json_place(j, "place", &v, x->keys[0]);
            sm_json_open(j, "places", '[');
            for (uint32_t k = 0; k < x->n_keys; k++)
                sm_json_place(j, NULL, &v, x->keys[k]);
            sm_json_close(j, ']');
            sm_json_sum(j, "estimate", &w, &x->total);
            sm_json_close(j, '}');
        }
        sm_json_close(j, ']');
    }
    sm_fragments_release(&f);
    free(nodes);
    sm_weigher_release(&w);
    sm_view_release(&v);
}

void sm_api_leaks(struct sm_answer *a) {
    enum sm_key_kind kind = SM_KEY_FUNCTION;
    uint64_t generations = 0;
    if (!sm_parameter_key(a, &kind) || !sm_parameter_u64(a, "generations", 3, 64, &generations))
        return;
    struct sm_leaks_report r;
    sm_leaks_report_make(&r, &a->asked, kind, (uint32_t)generations, NULL);
    sm_leaks_report_members(&a->j, &r);
    sm_leaks_report_release(&r);
}

/* ---- compare ---- */

static void put_diff(struct sm_answer *a, const struct sm_asked *x, const struct sm_asked *y) {
    enum sm_key_kind kind = SM_KEY_FUNCTION;
    const char *normalise = sm_parameter(a->r, "normalise"), *text = sm_parameter(a->r, "weight");
    struct sm_weight wa, wb;
    struct sm_error err;
    text = text != NULL ? text : "allocated";
    if (!sm_parameter_key(a, &kind))
        return;
    if (sm_weight_parse(&wa, text, x->a, &err) != SM_OK ||
        sm_weight_parse(&wb, text, y->a, &err) != SM_OK) {
        sm_answer_fail(a, 400, "weight: %s", err.text);
        return;
    }
    enum sm_normalise how = normalise == NULL || strcmp(normalise, "none") == 0 ? SM_NORMALISE_NONE
                            : strcmp(normalise, "total") == 0                   ? SM_NORMALISE_TOTAL
                                                                                : SM_NORMALISE_TIME;
    struct sm_diff d;
    sm_diff_make(&d, x, y, kind, &wa, &wb, how, 1, true);
    sm_diff_members(&a->j, &d);
    sm_diff_release(&d);
}

void sm_api_compare(struct sm_answer *a) {
    struct sm_snapshot *x = NULL, *y = NULL;
    const struct sm_applied *fx = NULL, *fy = NULL;
    struct sm_asked qx, qy;
    if (sm_answer_hold(a, "a", "filter_a", &x, &fx, &qx) &&
        sm_answer_hold(a, "b", "filter_b", &y, &fy, &qy))
        put_diff(a, &qx, &qy);
    if (x != NULL) {
        sm_snapshot_done(x, fx);
        sm_traces_drop(a->api->traces, x);
    }
    if (y != NULL) {
        sm_snapshot_done(y, fy);
        sm_traces_drop(a->api->traces, y);
    }
}
