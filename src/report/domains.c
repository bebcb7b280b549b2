/* See domains.h. Rows are groups by domain (or lane); the own peak of each comes from a curve of one span with a
   series per group, frees across groups from the list of rows that another lane freed. */
#include "report/domains.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/map.h"
#include "util/memory.h"
#include "util/number.h"

static const enum sm_weight_kind kinds[] = {SM_WEIGHT_ALLOCATED, SM_WEIGHT_PROMOTED,
                                            SM_WEIGHT_LIVE_END, SM_WEIGHT_LIVE_PEAK,
                                            SM_WEIGHT_FREED};
static const char *const names[] = {"allocated", "promoted", "live_end", "live_peak", "freed"};

static uint64_t domain_of(const struct sm_lane *l) {
    return l->kind == SM_OWNER_NATIVE ? SM_NO_DOMAIN : l->domain;
}

/* The group that a lane belongs to; a domain that only frees has none (n_domains). */
static uint32_t value_of_lane(const struct sm_domains_report *r, uint32_t lane) {
    if (r->threads || lane >= r->asked->a->n_lanes)
        return lane;
    uint64_t domain = domain_of(&r->asked->a->lanes[lane]);
    uint32_t i = 0;
    while (i < r->groups.n_domains && r->groups.domains != NULL && r->groups.domains[i] != domain)
        i++;
    return i;
}

static int by_units(const void *left, const void *right) {
    const struct sm_cross_free *x = left, *y = right;
    if (x->sum.units != y->sum.units)
        return x->sum.units > y->sum.units ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

static void find_cross(struct sm_domains_report *r) {
    const struct sm_analysis *a = r->asked->a;
    uint32_t *value = sm_alloc_zero(a->n_lanes + 1u, sizeof *value);
    struct sm_map pairs = {0};
    size_t capacity = 0;
    for (uint32_t i = 0; i < a->n_lanes; i++)
        value[i] = value_of_lane(r, i);
    for (uint32_t i = 0; i < a->rows.n_foreign; i++) {
        const struct sm_foreign_free *f = &a->rows.foreign[i];
        uint32_t from = value[a->classes[a->rows.class_id[f->row]].lane];
        uint32_t to = f->lane < a->n_lanes ? value[f->lane] : f->lane;
        if (from == to || !sm_weigher_takes(&r->weighers[SM_DOMAIN_FREED], f->row))
            continue;
        bool found;
        uint32_t *place =
            sm_map_place(&pairs, (uint64_t)from << 32 | to, (uint32_t)r->n_cross, &found);
        uint32_t at = *place - 1;
        if (!found) {
            r->cross = sm_grow(r->cross, &capacity, r->n_cross + 1, sizeof *r->cross);
            r->cross[r->n_cross++] = (struct sm_cross_free){.from = from, .to = to};
        }
        sm_weigher_add(&r->weighers[SM_DOMAIN_FREED], f->row, &r->cross[at].sum);
    }
    if (r->n_cross > 1)
        qsort(r->cross, r->n_cross, sizeof *r->cross, by_units);
    sm_map_release(&pairs);
    free(value);
}

static void find_peaks(struct sm_domains_report *r) {
    const struct sm_analysis *a = r->asked->a;
    uint32_t *series = sm_alloc_zero(a->n_classes + 1u, sizeof *series);
    for (uint32_t i = 0; i < a->n_classes; i++)
        series[i] = value_of_lane(r, a->classes[i].lane);
    sm_curve_make(&r->curve, a, &r->asked->selection, a->first_ns, a->last_ns + 1, 1,
                  r->threads ? a->n_lanes : r->groups.n_domains, series, NULL, r->asked->threads);
    free(series);
}

void sm_domains_report_make(struct sm_domains_report *r, const struct sm_asked *asked,
                            bool threads) {
    *r = (struct sm_domains_report){
        .asked = asked,
        .threads = threads,
        .dimension = {.kind = threads ? SM_BY_LANE : SM_BY_DOMAIN},
    };
    for (unsigned i = 0; i < SM_DOMAIN_WEIGHTS; i++) {
        struct sm_weight weight = {.kind = kinds[i]};
        sm_asked_weigher(asked, &r->weighers[i], &weight);
        r->totals[i] = sm_weigh(&r->weighers[i], asked->threads);
    }
    sm_groups_make(&r->groups, &r->dimension, 1, r->weighers, SM_DOMAIN_WEIGHTS, asked->threads);
    find_peaks(r);
    find_cross(r);
}

void sm_domains_report_release(struct sm_domains_report *r) {
    sm_curve_release(&r->curve);
    sm_groups_release(&r->groups);
    for (unsigned i = 0; i < SM_DOMAIN_WEIGHTS; i++)
        sm_weigher_release(&r->weighers[i]);
    free(r->cross);
    *r = (struct sm_domains_report){0};
}

static uint32_t shown(const struct sm_domains_report *r) {
    uint64_t top = r->asked->top;
    return top != 0 && top < r->groups.n_groups ? (uint32_t)top : r->groups.n_groups;
}

static void value_name(const struct sm_domains_report *r, uint32_t value, struct sm_buffer *out) {
    uint32_t n = r->threads ? r->asked->a->n_lanes : r->groups.n_domains;
    if (value < n && (r->threads || r->groups.domains != NULL))
        sm_groups_name(&r->groups, 0, value, out);
    else
        sm_buffer_text(out, "another domain");
}

static struct sm_sum peak_sum(const struct sm_domains_report *r, const struct sm_group_row *g) {
    const struct sm_peak *p = &r->curve.peaks[g->value[0]];
    return (struct sm_sum){.units = p->units, .samples = p->samples, .variance = p->variance};
}

/* ---- text ---- */

/* Columns that may be left out in narrow terminals: first these go that come last. */
struct layout {
    bool live_error, peak_error, promoted_error, share, samples;
};

static unsigned room_for(const struct sm_domains_report *r) {
    struct sm_buffer b;
    unsigned widest = 6;
    sm_buffer_init(&b, -1);
    for (uint32_t i = 0; i < shown(r); i++) {
        b.used = 0;
        value_name(r, r->groups.list[i].value[0], &b);
        widest = b.used > widest ? (unsigned)b.used : widest;
    }
    sm_buffer_release(&b);
    return widest < 24 ? widest : 24;
}

static struct layout choose(const struct sm_domains_report *r) {
    struct layout l = {0};
    unsigned cell = r->asked->bytes ? 15 : 9;
    unsigned used = cell + 7 + 10 + (cell + 2) * 2 + 2 + room_for(r);
    struct {
        bool *wanted;
        unsigned columns;
    } extra[] = {{&l.share, 8},
                 {&l.live_error, 7},
                 {&l.peak_error, 7},
                 {&l.samples, 9},
                 {&l.promoted_error, 7}};
    for (unsigned i = 0; i < sizeof extra / sizeof *extra; i++) {
        if (used + extra[i].columns > r->asked->width)
            break;
        used += extra[i].columns;
        *extra[i].wanted = true;
    }
    return l;
}

static void cells(struct sm_table *t, const struct sm_domains_report *r, enum sm_style style,
                  unsigned which, const struct sm_sum *sum, bool with_error) {
    char a[SM_NUMBER_BYTES];
    struct sm_estimate e = sm_weight_estimate(&r->weighers[which], sum);
    bool known = !isnan(e.value);
    sm_table_cell(t, style,
                  sum->rows == 0 && sum->units == 0
                      ? "-"
                      : sm_show_value(a, r->asked, known ? SM_MEASURE_BYTES : SM_MEASURE_SAMPLES,
                                      known ? e.value : (double)sum->units));
    if (with_error)
        sm_table_cell(t, SM_DIM, sum->rows == 0 && sum->units == 0 ? NULL : sm_show_error(a, &e));
}

static void row(struct sm_table *t, const struct sm_domains_report *r, const struct layout *l,
                const struct sm_group_row *g) {
    char a[SM_NUMBER_BYTES];
    struct sm_buffer name;
    struct sm_sum peak = peak_sum(r, g);
    cells(t, r, SM_BOLD, SM_DOMAIN_ALLOCATED, &g->sums[SM_DOMAIN_ALLOCATED], true);
    if (l->share)
        sm_table_cell(t, SM_BOLD,
                      sm_number_percent(a, (double)g->sums[SM_DOMAIN_ALLOCATED].units,
                                        (double)r->totals[SM_DOMAIN_ALLOCATED].units));
    if (l->samples)
        sm_table_cell(t, SM_PLAIN, sm_number_count(a, g->sums[SM_DOMAIN_ALLOCATED].samples));
    cells(t, r, SM_PLAIN, SM_DOMAIN_PROMOTED, &g->sums[SM_DOMAIN_PROMOTED], l->promoted_error);
    cells(t, r, SM_PLAIN, SM_DOMAIN_LIVE, &g->sums[SM_DOMAIN_LIVE], l->live_error);
    cells(t, r, SM_PLAIN, SM_DOMAIN_AT_PEAK, &peak, l->peak_error);
    sm_buffer_init(&name, -1);
    value_name(r, g->value[0], &name);
    sm_table_cell(t, SM_CYAN, sm_buffer_string(&name));
    sm_buffer_release(&name);
    sm_table_row_end(t);
}

static void head(struct sm_table *t, const struct sm_domains_report *r, const struct layout *l) {
    const char *pm = r->asked->utf8 ? "±" : "+-";
    sm_table_cell(t, SM_DIM, "allocated");
    sm_table_cell(t, SM_DIM, pm);
    if (l->share)
        sm_table_cell(t, SM_DIM, "share");
    if (l->samples)
        sm_table_cell(t, SM_DIM, "samples");
    sm_table_cell(t, SM_DIM, "promoted");
    if (l->promoted_error)
        sm_table_cell(t, SM_DIM, pm);
    sm_table_cell(t, SM_DIM, "at end");
    if (l->live_error)
        sm_table_cell(t, SM_DIM, pm);
    sm_table_cell(t, SM_DIM, "own peak");
    if (l->peak_error)
        sm_table_cell(t, SM_DIM, pm);
    sm_table_cell(t, SM_DIM, r->threads ? "thread" : "domain");
    sm_table_row_end(t);
}

static void print_cross(struct sm_buffer *out, const struct sm_domains_report *r) {
    char a[SM_NUMBER_BYTES];
    const char *what = r->threads ? "thread" : "domain";
    if (r->n_cross == 0) {
        if (r->groups.n_groups > 1)
            sm_buffer_printf(out, "\nno block was seen to be freed by another %s\n", what);
        return;
    }
    size_t top = r->asked->top;
    size_t n = top != 0 && top < r->n_cross ? top : r->n_cross;
    struct sm_buffer name;
    struct sm_table t;
    sm_buffer_init(&name, -1);
    sm_table_init(&t, 6, r->asked->width, r->asked->colours, r->asked->utf8);
    for (unsigned i = 0; i < 4; i++)
        t.align[i] = SM_RIGHT;
    sm_buffer_char(out, '\n');
    sm_table_cell(&t, SM_DIM, "freed");
    sm_table_cell(&t, SM_DIM, r->asked->utf8 ? "±" : "+-");
    sm_table_cell(&t, SM_DIM, "share");
    sm_table_cell(&t, SM_DIM, "samples");
    sm_table_cell(&t, SM_DIM, "allocated by");
    sm_table_cell(&t, SM_DIM, "freed by");
    for (size_t i = 0; i < n; i++) {
        const struct sm_cross_free *c = &r->cross[i];
        cells(&t, r, SM_BOLD, SM_DOMAIN_FREED, &c->sum, true);
        sm_table_cell(
            &t, SM_BOLD,
            sm_number_percent(a, (double)c->sum.units, (double)r->totals[SM_DOMAIN_FREED].units));
        sm_table_cell(&t, SM_PLAIN, sm_number_count(a, c->sum.samples));
        name.used = 0;
        value_name(r, c->from, &name);
        sm_table_cell(&t, SM_CYAN, sm_buffer_string(&name));
        name.used = 0;
        value_name(r, c->to, &name);
        sm_table_cell(&t, SM_CYAN, sm_buffer_string(&name));
    }
    sm_table_print(&t, out);
    sm_table_release(&t);
    sm_buffer_release(&name);
    sm_show_more(out, r->n_cross - n);
}

void sm_domains_report_print(struct sm_buffer *out, const struct sm_domains_report *r) {
    sm_show_heading(out, r->asked);
    if (r->groups.n_groups == 0) {
        sm_buffer_text(out, r->asked->a->rows.n == 0 ? "no samples\n"
                                                     : "no samples that fit what was asked for\n");
        return;
    }
    struct layout l = choose(r);
    struct sm_table t;
    unsigned n = 6u + l.live_error + l.peak_error + l.promoted_error + l.share + l.samples;
    sm_table_init(&t, n, r->asked->width, r->asked->colours, r->asked->utf8);
    for (unsigned i = 0; i + 1 < n; i++)
        t.align[i] = SM_RIGHT;
    head(&t, r, &l);
    for (uint32_t i = 0; i < shown(r); i++)
        row(&t, r, &l, &r->groups.list[i]);
    sm_table_print(&t, out);
    sm_table_release(&t);
    sm_show_more(out, r->groups.n_groups - shown(r));
    print_cross(out, r);
}

/* ---- JSON and CSV ---- */

static void json_name(struct sm_json *j, const char *key, const struct sm_domains_report *r,
                      uint32_t value) {
    struct sm_buffer b;
    sm_buffer_init(&b, -1);
    value_name(r, value, &b);
    sm_json_bytes(j, key, b.data, b.used);
    sm_buffer_release(&b);
}

static void json_row(struct sm_json *j, const struct sm_domains_report *r,
                     const struct sm_group_row *g) {
    const struct sm_analysis *a = r->asked->a;
    struct sm_sum peak = peak_sum(r, g);
    uint32_t value = g->value[0];
    sm_json_open(j, NULL, '{');
    json_name(j, "name", r, value);
    uint64_t domain = r->threads                  ? domain_of(&a->lanes[value])
                      : r->groups.domains != NULL ? r->groups.domains[value]
                                                  : SM_NO_DOMAIN;
    if (domain == SM_NO_DOMAIN)
        sm_json_null(j, "domain");
    else
        sm_json_u64(j, "domain", domain);
    if (r->threads && a->lanes[value].tid != 0)
        sm_json_u64(j, "thread", a->lanes[value].tid);
    for (unsigned i = 0; i < SM_DOMAIN_WEIGHTS; i++)
        sm_json_sum(j, names[i], &r->weighers[i], &g->sums[i]);
    struct sm_estimate e = sm_weight_estimate(&r->weighers[SM_DOMAIN_AT_PEAK], &peak);
    sm_json_open(j, "own_peak", '{');
    sm_json_double(j, "value", e.value);
    sm_json_double(j, "low", e.low);
    sm_json_double(j, "high", e.high);
    sm_json_u64(j, "samples", peak.samples);
    sm_json_bool(j, "exact", e.exact);
    sm_json_close(j, '}');
    sm_json_i64(j, "own_peak_ns", r->curve.peaks[value].ns);
    sm_json_close(j, '}');
}

void sm_domains_report_json(struct sm_buffer *out, const struct sm_domains_report *r) {
    struct sm_json j;
    sm_json_init(&j, out, false);
    sm_json_open(&j, NULL, '{');
    sm_json_asked(&j, r->asked);
    sm_json_text(&j, "by", r->threads ? "thread" : "domain");
    sm_json_open(&j, "totals", '{');
    for (unsigned i = 0; i < SM_DOMAIN_WEIGHTS; i++)
        sm_json_sum(&j, names[i], &r->weighers[i], &r->totals[i]);
    sm_json_close(&j, '}');
    sm_json_open(&j, "rows", '[');
    for (uint32_t i = 0; i < shown(r); i++)
        json_row(&j, r, &r->groups.list[i]);
    sm_json_close(&j, ']');
    sm_json_u64(&j, "more", r->groups.n_groups - shown(r));
    sm_json_open(&j, "freed_by_others", '[');
    for (size_t i = 0; i < r->n_cross; i++) {
        sm_json_open(&j, NULL, '{');
        json_name(&j, "allocated_by", r, r->cross[i].from);
        json_name(&j, "freed_by", r, r->cross[i].to);
        sm_json_sum(&j, "freed", &r->weighers[SM_DOMAIN_FREED], &r->cross[i].sum);
        sm_json_close(&j, '}');
    }
    sm_json_close(&j, ']');
    sm_json_close(&j, '}');
    sm_json_end(&j);
}

void sm_domains_report_csv(struct sm_buffer *out, const struct sm_domains_report *r) {
    struct sm_buffer b;
    sm_buffer_init(&b, -1);
    sm_buffer_text(out, r->threads ? "thread" : "domain");
    for (unsigned i = 0; i < SM_DOMAIN_WEIGHTS; i++)
        sm_buffer_printf(out, "," SM_CSV_ESTIMATE_HEAD("%s"), names[i], names[i], names[i],
                         names[i], names[i]);
    sm_buffer_text(out, ",own_peak,own_peak_low,own_peak_high,own_peak_samples,own_peak_ns\n");
    for (uint32_t i = 0; i < shown(r); i++) {
        const struct sm_group_row *g = &r->groups.list[i];
        struct sm_sum peak = peak_sum(r, g);
        struct sm_estimate e = sm_weight_estimate(&r->weighers[SM_DOMAIN_AT_PEAK], &peak);
        b.used = 0;
        value_name(r, g->value[0], &b);
        sm_csv_text(out, b.data, b.used);
        for (unsigned k = 0; k < SM_DOMAIN_WEIGHTS; k++) {
            sm_buffer_char(out, ',');
            sm_csv_estimate(out, &r->weighers[k], &g->sums[k]);
        }
        if (isnan(e.value))
            sm_buffer_text(out, ",,,");
        else
            sm_buffer_printf(out, ",%.17g,%.17g,%.17g", e.value, e.low, e.high);
        sm_buffer_printf(out, ",%" PRIu64 ",%" PRId64 "\n", peak.samples,
                         r->curve.peaks[g->value[0]].ns);
    }
    sm_buffer_release(&b);
}
