/* See leaks.h. */
#include "report/leaks.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"
#include "util/number.h"
#include "util/text.h"

static bool suppressed(const char *patterns, const char *name) {
    for (const char *at = patterns; at != NULL && *at != 0;) {
        size_t n = strcspn(at, "\n");
        char line[512];
        snprintf(line, sizeof line, "%.*s", (int)(n < 500 ? n : 500), at);
        at += n + (at[n] == '\n');
        line[strcspn(line, "\r")] = 0;
        char *text = line + strspn(line, " \t");
        if (text[0] == 0 || text[0] == '#')
            continue;
        if (strstr(name, text) != NULL || fnmatch(text, name, 0) == 0)
            return true;
    }
    return false;
}

void sm_leaks_report_make(struct sm_leaks_report *r, const struct sm_asked *asked,
                          enum sm_key_kind key, uint32_t generations, const char *suppress) {
    *r = (struct sm_leaks_report){.asked = asked};
    struct sm_weight live = {.kind = SM_WEIGHT_LIVE_END};
    struct sm_buffer name;
    sm_asked_view(asked, &r->view, key);
    sm_asked_weigher(asked, &r->live, &live);
    sm_leaks_make(&r->leaks, &r->view, &asked->selection, generations, asked->threads);
    sm_buffer_init(&name, -1);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->leaks.n; i++) {
        name.used = 0;
        sm_place_id(&name, &r->view, r->leaks.list[i].key);
        if (suppressed(suppress, sm_buffer_string(&name))) {
            r->n_suppressed++;
            continue;
        }
        sm_sum_add(&r->total, &r->leaks.list[i].live);
        r->leaks.list[kept++] = r->leaks.list[i];
    }
    r->leaks.n = kept;
    sm_buffer_release(&name);
}

void sm_leaks_report_release(struct sm_leaks_report *r) {
    sm_leaks_release(&r->leaks);
    sm_weigher_release(&r->live);
    sm_view_release(&r->view);
    *r = (struct sm_leaks_report){0};
}

static uint32_t shown(const struct sm_leaks_report *r) {
    uint64_t top = r->asked->top;
    return top != 0 && top < r->leaks.n ? (uint32_t)top : r->leaks.n;
}

/* Columns that narrow terminals do without. */
struct layout {
    bool samples, spread, age;
};

static struct layout choose(const struct sm_asked *q) {
    unsigned room = q->width - (q->bytes ? 8 : 0);
    return (struct layout){.samples = room >= 92, .spread = room >= 100, .age = room >= 110};
}

static void growth_cells(struct sm_table *t, const struct sm_asked *q, const struct sm_leak *l) {
    char a[SM_NUMBER_BYTES];
    if (isnan(l->slope)) {
        sm_table_cell(t, SM_DIM, "-");
        sm_table_cell(t, SM_DIM, NULL);
        return;
    }
    sm_table_cellf(t, l->slope_low > 0 ? SM_YELLOW : SM_PLAIN, "%s%s/s", l->slope < 0 ? "-" : "",
                   sm_number_bytes(a, fabs(l->slope), q->bytes));
    sm_table_cell(t, SM_DIM, sm_number_bytes(a, l->slope_high - l->slope, q->bytes));
}

static void row(struct sm_table *t, const struct sm_leaks_report *r, const struct layout *layout,
                const struct sm_leak *l) {
    char a[SM_NUMBER_BYTES];
    const struct sm_asked *q = r->asked;
    struct sm_estimate e = sm_weight_estimate(&r->live, &l->live);
    bool known = !isnan(e.value);
    sm_table_cellf(t, l->score >= 0.5 ? SM_RED : SM_PLAIN, "%.2f", l->score);
    sm_table_cell(t, SM_BOLD,
                  sm_show_value(a, q, known ? SM_MEASURE_BYTES : SM_MEASURE_SAMPLES,
                                known ? e.value : (double)l->live.units));
    sm_table_cell(t, SM_DIM, sm_show_error(a, &e));
    if (layout->samples)
        sm_table_cell(t, SM_PLAIN, sm_number_count(a, l->live.samples));
    growth_cells(t, q, l);
    if (layout->spread)
        sm_table_cellf(t, SM_PLAIN, "%u/%u", l->generations, l->generations_possible);
    if (layout->age)
        sm_table_cell(t, SM_PLAIN, sm_number_duration(a, (int64_t)l->mean_age_ns));
    sm_show_key_cell(t, SM_CYAN, NULL, &r->view, l->key);
    sm_table_row_end(t);
}

static void table(struct sm_buffer *out, const struct sm_leaks_report *r) {
    const struct sm_asked *q = r->asked;
    const char *pm = q->utf8 ? "±" : "+-";
    struct layout layout = choose(q);
    struct sm_table t;
    unsigned n = 6u + layout.samples + layout.spread + layout.age;
    sm_table_init(&t, n, q->width, q->colours, q->utf8);
    for (unsigned i = 0; i + 1 < n; i++)
        t.align[i] = SM_RIGHT;
    sm_table_cell(&t, SM_DIM, "score");
    sm_table_cell(&t, SM_DIM, "live at end");
    sm_table_cell(&t, SM_DIM, pm);
    if (layout.samples)
        sm_table_cell(&t, SM_DIM, "samples");
    sm_table_cell(&t, SM_DIM, "growth");
    sm_table_cell(&t, SM_DIM, pm);
    if (layout.spread)
        sm_table_cell(&t, SM_DIM, "spread");
    if (layout.age)
        sm_table_cell(&t, SM_DIM, "mean age");
    sm_table_cell(&t, SM_DIM, "allocated by");
    for (uint32_t i = 0; i < shown(r); i++)
        row(&t, r, &layout, &r->leaks.list[i]);
    sm_table_print(&t, out);
    sm_table_release(&t);
    sm_show_more(out, r->leaks.n - shown(r));
}

void sm_leaks_report_print(struct sm_buffer *out, const struct sm_leaks_report *r) {
    char n[SM_NUMBER_BYTES];
    sm_show_heading(out, r->asked);
    if (r->leaks.n > 0)
        table(out, r);
    else
        sm_buffer_printf(out, "nothing%s is alive at the end\n",
                         r->n_suppressed > 0 ? " else" : "");
    if (r->n_suppressed > 0)
        sm_buffer_printf(out, "%s site%s suppressed\n", sm_number_count(n, r->n_suppressed),
                         r->n_suppressed == 1 ? " is" : "s are");
    if (r->leaks.n > 0)
        sm_buffer_text(out, "\nscore near 1: what was allocated all along is kept, and it grows "
                            "(docs/leaks.md)\n");
}

void sm_leaks_report_members(struct sm_json *j, const struct sm_leaks_report *r) {
    struct sm_weight allocated = {.kind = SM_WEIGHT_ALLOCATED};
    struct sm_weigher w;
    sm_asked_weigher(r->asked, &w, &allocated);
    sm_json_u64(j, "generations", r->leaks.n_generations);
    sm_json_sum(j, "live", &r->live, &r->total);
    sm_json_u64(j, "suppressed", r->n_suppressed);
    sm_json_open(j, "sites", '[');
    for (uint32_t i = 0; i < shown(r); i++) {
        const struct sm_leak *l = &r->leaks.list[i];
        sm_json_open(j, NULL, '{');
        sm_json_place(j, "place", &r->view, l->key);
        sm_json_double(j, "score", l->score);
        sm_json_double(j, "spread", l->spread);
        sm_json_double(j, "trend", l->trend);
        sm_json_sum(j, "live", &r->live, &l->live);
        sm_json_sum(j, "allocated", &w, &l->allocated);
        sm_json_double(j, "slope", l->slope);
        sm_json_double(j, "slope_low", l->slope_low);
        sm_json_double(j, "slope_high", l->slope_high);
        sm_json_i64(j, "first_ns", l->first_ns);
        sm_json_i64(j, "last_ns", l->last_ns);
        sm_json_double(j, "mean_age_ns", l->mean_age_ns);
        sm_json_u64(j, "generations", l->generations);
        sm_json_u64(j, "generations_possible", l->generations_possible);
        sm_json_close(j, '}');
    }
    sm_json_close(j, ']');
    sm_json_u64(j, "more", r->leaks.n - shown(r));
    sm_weigher_release(&w);
}

void sm_leaks_report_json(struct sm_buffer *out, const struct sm_leaks_report *r) {
    struct sm_json j;
    sm_json_init(&j, out, false);
    sm_json_open(&j, NULL, '{');
    sm_json_asked(&j, r->asked);
    sm_leaks_report_members(&j, r);
    sm_json_close(&j, '}');
    sm_json_end(&j);
}

void sm_leaks_report_csv(struct sm_buffer *out, const struct sm_leaks_report *r) {
    struct sm_buffer id;
    sm_buffer_init(&id, -1);
    sm_buffer_text(out, "site,score,spread,trend," SM_CSV_ESTIMATE_HEAD(
                            "live") ",slope,slope_low,slope_high,first_ns,last_ns,mean_age_ns\n");
    for (uint32_t i = 0; i < shown(r); i++) {
        const struct sm_leak *l = &r->leaks.list[i];
        id.used = 0;
        sm_place_id(&id, &r->view, l->key);
        sm_csv_text(out, id.data, id.used);
        sm_buffer_printf(out, ",%.6g,%.6g,%.6g,", l->score, l->spread, l->trend);
        sm_csv_estimate(out, &r->live, &l->live);
        if (isnan(l->slope))
            sm_buffer_text(out, ",,,");
        else
            sm_buffer_printf(out, ",%.6g,%.6g,%.6g", l->slope, l->slope_low, l->slope_high);
        sm_buffer_printf(out, ",%lld,%lld,%.0f\n", (long long)l->first_ns, (long long)l->last_ns,
                         l->mean_age_ns);
    }
    sm_buffer_release(&id);
}
