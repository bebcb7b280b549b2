/* See diff.h. */
#include "report/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/map.h"
#include "util/memory.h"
#include "util/number.h"

#define ABSENT UINT32_MAX

static double value(const struct sm_diff *d, int side, const struct sm_sum *sum) {
    struct sm_estimate e = sm_weight_estimate(&d->weighers[side], sum);
    double v = isnan(e.value) ? (double)sum->units : e.value;
    return side == 1 ? v * d->scale : v;
}

/* The two intervals, the second scaled, are apart. */
static bool apart(const struct sm_diff *d, const struct sm_sum *a, const struct sm_sum *b) {
    struct sm_estimate x = sm_weight_estimate(&d->weighers[0], a);
    struct sm_estimate y = sm_weight_estimate(&d->weighers[1], b);
    if (isnan(x.value) || isnan(y.value))
        return false;
    return y.low * d->scale > x.high || y.high * d->scale < x.low;
}

static int by_delta(const void *left, const void *right) {
    const struct sm_diff_row *x = left, *y = right;
    double a = fabs(x->delta), b = fabs(y->delta);
    if (a != b)
        return a > b ? -1 : 1;
    if (x->key[0] != y->key[0])
        return x->key[0] < y->key[0] ? -1 : 1;
    return x->key[1] < y->key[1] ? -1 : x->key[1] > y->key[1];
}

static void add_side(struct sm_diff *d, int side, struct sm_names *ids, size_t *capacity,
                     const struct sm_key_sum *sums) {
    const struct sm_view *v = &d->views[side];
    struct sm_buffer id;
    sm_buffer_init(&id, -1);
    for (uint32_t key = 1; key < v->n_keys; key++) {
        if (sums[key].total.rows == 0)
            continue;
        id.used = 0;
        sm_place_id(&id, v, key);
        uint32_t n = sm_names_number(ids, id.data, id.used);
        if (n == d->n_rows) {
            d->rows = sm_grow(d->rows, capacity, n + 1u, sizeof *d->rows);
            d->rows[d->n_rows++] = (struct sm_diff_row){.key = {ABSENT, ABSENT}};
        }
        struct sm_diff_row *row = &d->rows[n];
        row->key[side] = key;
        sm_sum_add(&row->own[side], &sums[key].own);
        sm_sum_add(&row->total[side], &sums[key].total);
    }
    sm_buffer_release(&id);
}

static double scale_of(const struct sm_diff *d, enum sm_normalise normalise, double factor) {
    double x = 1, y = 1;
    if (normalise == SM_NORMALISE_TOTAL) {
        x = value(d, 0, &d->totals[0]);
        y = value(d, 1, &d->totals[1]);
    } else if (normalise == SM_NORMALISE_TIME) {
        x = (double)d->asked[0]->a->last_ns;
        y = (double)d->asked[1]->a->last_ns;
    }
    return x > 0 && y > 0 ? x / y * factor : factor;
}

void sm_diff_make(struct sm_diff *d, const struct sm_asked *a, const struct sm_asked *b,
                  enum sm_key_kind kind, const struct sm_weight *weight_a,
                  const struct sm_weight *weight_b, enum sm_normalise normalise, double factor,
                  bool inclusive) {
    *d = (struct sm_diff){.asked = {a, b}, .scale = 1, .inclusive = inclusive};
    const struct sm_weight *weights[2] = {weight_a, weight_b};
    struct sm_names ids = {0};
    size_t capacity = 0;
    for (int side = 0; side < 2; side++) {
        sm_asked_view(d->asked[side], &d->views[side], kind);
        sm_asked_weigher(d->asked[side], &d->weighers[side], weights[side]);
        struct sm_sum *nodes = sm_weigh_nodes(&d->weighers[side], d->asked[side]->threads);
        struct sm_key_sum *sums = sm_view_sums(&d->views[side], nodes);
        d->totals[side] = sums[0].total;
        add_side(d, side, &ids, &capacity, sums);
        free(sums);
        free(nodes);
    }
    sm_names_release(&ids);
    d->scale = scale_of(d, normalise, factor);
    for (uint32_t i = 0; i < d->n_rows; i++) {
        struct sm_diff_row *row = &d->rows[i];
        const struct sm_sum *s = inclusive ? row->total : row->own;
        row->delta = value(d, 1, &s[1]) - value(d, 0, &s[0]);
        row->significant = apart(d, &s[0], &s[1]);
    }
    if (d->n_rows > 1)
        qsort(d->rows, d->n_rows, sizeof *d->rows, by_delta);
    d->delta = value(d, 1, &d->totals[1]) - value(d, 0, &d->totals[0]);
    d->significant = apart(d, &d->totals[0], &d->totals[1]);
}

void sm_diff_release(struct sm_diff *d) {
    for (int side = 0; side < 2; side++) {
        sm_weigher_release(&d->weighers[side]);
        sm_view_release(&d->views[side]);
    }
    free(d->rows);
    *d = (struct sm_diff){0};
}

static uint32_t shown(const struct sm_diff *d) {
    uint64_t top = d->asked[0]->top;
    uint32_t n = 0;
    while (n < d->n_rows && d->rows[n].delta != 0 && (top == 0 || n < top))
        n++;
    return n;
}

static uint32_t n_changed(const struct sm_diff *d) {
    uint32_t n = 0;
    while (n < d->n_rows && d->rows[n].delta != 0)
        n++;
    return n;
}

/* ---- text ---- */

static void value_cell(struct sm_table *t, enum sm_style style, const struct sm_diff *d, double v,
                       bool sign) {
    char a[SM_NUMBER_BYTES];
    const char *before = !sign || v == 0 ? "" : v < 0 ? "-" : "+";
    sm_table_cellf(t, style, "%s%s", before,
                   sm_show_value(a, d->asked[0], sm_weight_measure(&d->weighers[0].weight),
                                 sign ? fabs(v) : v));
}

static void row_cells(struct sm_table *t, const struct sm_diff *d, double a, double b, double delta,
                      bool significant, const char *name) {
    enum sm_style style = !significant ? SM_DIM : delta > 0 ? SM_RED : SM_GREEN;
    value_cell(t, style, d, delta, true);
    if (a > 0)
        sm_table_cellf(t, style, "%+.1f%%", delta / a * 100);
    else
        sm_table_cell(t, style, "new");
    sm_table_cell(t, style, significant ? "yes" : "no");
    value_cell(t, SM_PLAIN, d, a, false);
    value_cell(t, SM_PLAIN, d, b, false);
    sm_table_cell(t, SM_CYAN, name);
    sm_table_row_end(t);
}

void sm_diff_print(struct sm_buffer *out, const struct sm_diff *d) {
    const struct sm_asked *q = d->asked[0];
    char title[96];
    struct sm_table t;
    for (int side = 0; side < 2; side++) {
        sm_buffer_printf(out, "%c: ", "AB"[side]);
        sm_show_heading(out, d->asked[side]);
    }
    if (d->scale != 1)
        sm_buffer_printf(out, "B is scaled by %.4g\n", d->scale);
    sm_buffer_printf(out, "%s%s\n\n", sm_weight_title(&d->weighers[0].weight, title),
                     d->inclusive ? ", with callees" : "");
    sm_table_init(&t, 6, q->width, q->colours, q->utf8);
    for (unsigned i = 0; i < 5; i++)
        t.align[i] = SM_RIGHT;
    t.flexible = 5;
    static const char *const heads[] = {"B - A", "change", "significant", "A", "B", ""};
    for (unsigned i = 0; i < 6; i++)
        sm_table_cell(&t, SM_DIM, heads[i]);
    sm_table_row_end(&t);
    row_cells(&t, d, value(d, 0, &d->totals[0]), value(d, 1, &d->totals[1]), d->delta,
              d->significant, "(all)");
    for (uint32_t i = 0; i < shown(d); i++) {
        const struct sm_diff_row *r = &d->rows[i];
        const struct sm_sum *s = d->inclusive ? r->total : r->own;
        int side = r->key[0] != ABSENT ? 0 : 1;
        struct sm_buffer name;
        sm_buffer_init(&name, -1);
        sm_show_key(&name, &d->views[side], r->key[side], true);
        row_cells(&t, d, value(d, 0, &s[0]), value(d, 1, &s[1]), r->delta, r->significant,
                  sm_buffer_string(&name));
        sm_buffer_release(&name);
    }
    sm_table_print(&t, out);
    sm_table_release(&t);
    sm_show_more(out, n_changed(d) - shown(d));
    sm_buffer_text(out, "\nsignificant: the two 95 % intervals are apart\n");
}

/* ---- JSON and CSV ---- */

void sm_diff_members(struct sm_json *j, const struct sm_diff *d) {
    sm_json_double(j, "scale", d->scale);
    sm_json_sum(j, "total_a", &d->weighers[0], &d->totals[0]);
    sm_json_sum(j, "total_b", &d->weighers[1], &d->totals[1]);
    sm_json_double(j, "delta", d->delta);
    sm_json_bool(j, "significant", d->significant);
    sm_json_open(j, "rows", '[');
    for (uint32_t i = 0; i < shown(d); i++) {
        const struct sm_diff_row *r = &d->rows[i];
        int side = r->key[0] != ABSENT ? 0 : 1;
        sm_json_open(j, NULL, '{');
        sm_json_place(j, "place", &d->views[side], r->key[side]);
        sm_json_sum(j, "own_a", &d->weighers[0], &r->own[0]);
        sm_json_sum(j, "own_b", &d->weighers[1], &r->own[1]);
        sm_json_sum(j, "total_a", &d->weighers[0], &r->total[0]);
        sm_json_sum(j, "total_b", &d->weighers[1], &r->total[1]);
        sm_json_double(j, "delta", r->delta);
        sm_json_bool(j, "significant", r->significant);
        sm_json_close(j, '}');
    }
    sm_json_close(j, ']');
    sm_json_u64(j, "more", n_changed(d) - shown(d));
}

void sm_diff_json(struct sm_buffer *out, const struct sm_diff *d) {
    struct sm_json j;
    sm_json_init(&j, out, false);
    sm_json_open(&j, NULL, '{');
    for (int side = 0; side < 2; side++) {
        sm_json_open(&j, side == 0 ? "a" : "b", '{');
        sm_json_asked(&j, d->asked[side]);
        sm_json_close(&j, '}');
    }
    sm_diff_members(&j, d);
    sm_json_close(&j, '}');
    sm_json_end(&j);
}

void sm_diff_csv(struct sm_buffer *out, const struct sm_diff *d) {
    struct sm_buffer id;
    sm_buffer_init(&id, -1);
    sm_buffer_text(out, "place,delta,significant," SM_CSV_ESTIMATE_HEAD(
                            "a") "," SM_CSV_ESTIMATE_HEAD("b") "\n");
    for (uint32_t i = 0; i < shown(d); i++) {
        const struct sm_diff_row *r = &d->rows[i];
        const struct sm_sum *s = d->inclusive ? r->total : r->own;
        int side = r->key[0] != ABSENT ? 0 : 1;
        id.used = 0;
        sm_place_id(&id, &d->views[side], r->key[side]);
        sm_csv_text(out, id.data, id.used);
        sm_buffer_printf(out, ",%.17g,%s,", r->delta, r->significant ? "yes" : "no");
        sm_csv_estimate(out, &d->weighers[0], &s[0]);
        sm_buffer_char(out, ',');
        sm_csv_estimate(out, &d->weighers[1], &s[1]);
        sm_buffer_char(out, '\n');
    }
    sm_buffer_release(&id);
}
