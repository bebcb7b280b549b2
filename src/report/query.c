/* See query.h. */
#include "report/query.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/naming.h"
#include "util/number.h"
#include "util/text.h"

static const struct {
    const char *name;
    enum sm_dimension_kind kind;
    enum sm_key_kind key;
} known[] = {
    {"function", SM_BY_PLACE, SM_KEY_FUNCTION},
    {"line", SM_BY_PLACE, SM_KEY_LINE},
    {"frame", SM_BY_PLACE, SM_KEY_FRAME},
    {"site", SM_BY_PLACE, SM_KEY_FRAME},
    {"file", SM_BY_PLACE, SM_KEY_FILE},
    {"module", SM_BY_PLACE, SM_KEY_MODULE},
    {"stack", SM_BY_STACK, 0},
    {"domain", SM_BY_DOMAIN, 0},
    {"thread", SM_BY_LANE, 0},
    {"heap", SM_BY_HEAP, 0},
    {"source", SM_BY_SOURCE, 0},
    {"size", SM_BY_SIZE, 0},
    {"lifetime", SM_BY_LIFETIME, 0},
    {"time", SM_BY_TIME, 0},
    {"promoted", SM_BY_PROMOTED, 0},
};
#define N_KNOWN (sizeof known / sizeof *known)

static bool add_dimension(struct sm_query *q, const char *name, size_t bytes,
                          struct sm_error *err) {
    if (q->n_dimensions == SM_MAX_DIMENSIONS) {
        sm_error_set(err, "at most %u things to group by", SM_MAX_DIMENSIONS);
        return false;
    }
    for (size_t i = 0; i < N_KNOWN; i++) {
        if (strlen(known[i].name) != bytes || memcmp(known[i].name, name, bytes) != 0)
            continue;
        uint32_t d = q->n_dimensions++;
        q->names[d] = known[i].name;
        q->dimensions[d] = (struct sm_dimension){.kind = known[i].kind};
        if (known[i].kind == SM_BY_PLACE || known[i].kind == SM_BY_STACK) {
            sm_asked_view(q->asked, &q->views[d],
                          known[i].kind == SM_BY_PLACE ? known[i].key : SM_KEY_FUNCTION);
            q->dimensions[d].view = &q->views[d];
        }
        return true;
    }
    struct sm_buffer all;
    sm_buffer_init(&all, -1);
    for (size_t i = 0; i < N_KNOWN; i++)
        sm_buffer_printf(&all, "%s%s", i > 0 ? ", " : "", known[i].name);
    sm_error_set(err, "cannot group by \"%.*s\"; expected one of %s",
                 (int)(bytes < 40 ? bytes : 40), name, sm_buffer_string(&all));
    sm_buffer_release(&all);
    return false;
}

static int by_value(const void *left, const void *right, void *ctx) {
    const struct sm_group_row *x = left, *y = right;
    const struct sm_query *q = ctx;
    for (uint32_t i = 0; i < q->n_dimensions; i++) {
        if (x->value[i] != y->value[i])
            return x->value[i] < y->value[i] ? -1 : 1;
    }
    return 0;
}

bool sm_query_make(struct sm_query *q, const struct sm_asked *asked, const char *by,
                   const struct sm_weight *weights, uint32_t n_weights, bool sort_by_value,
                   struct sm_error *err) {
    *q = (struct sm_query){.asked = asked, .by_value = sort_by_value};
    for (const char *at = by;; at++) {
        size_t n = strcspn(at, ",");
        if (!add_dimension(q, at, n, err))
            return false;
        at += n;
        if (*at == 0)
            break;
    }
    for (uint32_t i = 0; i < n_weights; i++) {
        sm_asked_weigher(asked, &q->weighers[q->n_weights++], &weights[i]);
        q->totals[i] = sm_weigh(&q->weighers[i], asked->threads);
    }
    sm_groups_make(&q->groups, q->dimensions, q->n_dimensions, q->weighers, n_weights,
                   asked->threads);
    if (sort_by_value && q->groups.n_groups > 1)
        qsort_r(q->groups.list, q->groups.n_groups, sizeof *q->groups.list, by_value, q);
    return true;
}

void sm_query_release(struct sm_query *q) {
    sm_groups_release(&q->groups);
    for (uint32_t i = 0; i < q->n_weights; i++)
        sm_weigher_release(&q->weighers[i]);
    for (uint32_t i = 0; i < q->n_dimensions; i++)
        sm_view_release(&q->views[i]);
    *q = (struct sm_query){0};
}

static uint32_t shown(const struct sm_query *q) {
    uint32_t n = q->groups.n_groups;
    return q->asked->top != 0 && q->asked->top < n ? (uint32_t)q->asked->top : n;
}

/* "main > f > g" of a stack, outermost first. */
static void stack_name(const struct sm_query *q, const struct sm_view *v, uint32_t node,
                       struct sm_buffer *out) {
    const struct sm_calltree *t = &q->asked->a->tree;
    uint32_t path[64], n = 0;
    for (uint32_t at = node; at != 0 && n < 64; at = t->parent[at]) {
        if (v->key[at] != SM_KEY_HIDDEN)
            path[n++] = v->key[at];
    }
    while (n-- > 0) {
        sm_view_name(v, path[n], out);
        if (n > 0)
            sm_buffer_text(out, " > ");
    }
}

static void value_name(const struct sm_query *q, uint32_t d, uint32_t value,
                       struct sm_buffer *out) {
    if (q->dimensions[d].kind == SM_BY_STACK)
        stack_name(q, &q->views[d], value, out);
    else
        sm_groups_name(&q->groups, d, value, out);
}

/* ---- text ---- */

/* Columns that the figures leave for names. */
static unsigned name_room(const struct sm_query *q) {
    unsigned fixed = q->n_weights > 1 ? q->n_weights * 19 : 36;
    fixed += q->bars ? 22 : 0;
    unsigned width = q->asked->width > fixed + 24 ? q->asked->width - fixed : 24;
    return width / q->n_dimensions;
}

static void head(struct sm_table *t, const struct sm_query *q) {
    char title[96];
    for (uint32_t i = 0; i < q->n_weights; i++) {
        sm_table_cell(t, SM_DIM, sm_weight_title(&q->weighers[i].weight, title));
        sm_table_cell(t, SM_DIM, q->asked->utf8 ? "±" : "+-");
        if (q->n_weights == 1) {
            sm_table_cell(t, SM_DIM, "share");
            sm_table_cell(t, SM_DIM, "samples");
        }
    }
    for (uint32_t i = 0; i < q->n_dimensions; i++)
        sm_table_cell(t, SM_DIM, q->names[i]);
    if (q->bars)
        sm_table_cell(t, SM_DIM, NULL);
    sm_table_row_end(t);
}

static void several(struct sm_table *t, const struct sm_query *q, const struct sm_weigher *w,
                    const struct sm_sum *sum) {
    char a[SM_NUMBER_BYTES];
    struct sm_estimate e = sm_weight_estimate(w, sum);
    double value = e.value == e.value ? e.value : (double)sum->units;
    enum sm_measure m = e.value == e.value ? sm_weight_measure(&w->weight) : SM_MEASURE_SAMPLES;
    sm_table_cell(t, SM_BOLD, sum->rows == 0 ? "-" : sm_show_value(a, q->asked, m, value));
    sm_table_cell(t, SM_DIM, sum->rows == 0 ? NULL : sm_show_error(a, &e));
}

static void row(struct sm_table *t, const struct sm_query *q, const struct sm_group_row *r,
                uint64_t largest) {
    struct sm_buffer raw, safe;
    sm_buffer_init(&raw, -1);
    sm_buffer_init(&safe, -1);
    for (uint32_t i = 0; i < q->n_weights; i++) {
        if (q->n_weights == 1)
            sm_show_estimate_cells(t, SM_BOLD, q->asked, &q->weighers[i], &r->sums[i],
                                   q->totals[i].units > 0 ? q->totals[i].units : 1);
        else
            several(t, q, &q->weighers[i], &r->sums[i]);
    }
    for (uint32_t i = 0; i < q->n_dimensions; i++) {
        if (q->dimensions[i].kind == SM_BY_PLACE && q->n_dimensions == 1) {
            sm_show_key_cell(t, SM_CYAN, NULL, &q->views[i], r->value[i]);
            continue;
        }
        raw.used = safe.used = 0;
        value_name(q, i, r->value[i], &raw);
        if (q->dimensions[i].kind == SM_BY_PLACE) {
            raw.used = 0;
            sm_show_key(&raw, &q->views[i], r->value[i], false);
        }
        struct sm_buffer clean;
        sm_buffer_init(&clean, -1);
        sm_text_safe(&clean, raw.data, raw.used);
        sm_text_shortened(&safe, sm_buffer_string(&clean), clean.used, name_room(q),
                          q->asked->utf8);
        sm_buffer_release(&clean);
        sm_table_cell(t, SM_CYAN, sm_buffer_string(&safe));
    }
    if (q->bars) {
        safe.used = 0;
        sm_show_bar(&safe, (double)r->sums[0].units, (double)largest, 20, q->asked->utf8);
        sm_table_cell(t, SM_GREEN, sm_buffer_string(&safe));
    }
    sm_table_row_end(t);
    sm_buffer_release(&raw);
    sm_buffer_release(&safe);
}

void sm_query_print(struct sm_buffer *out, const struct sm_query *q) {
    sm_show_heading(out, q->asked);
    uint32_t n = shown(q);
    if (n == 0) {
        sm_buffer_text(out, q->asked->a->rows.n == 0 ? "no samples\n"
                                                     : "no samples that fit what was asked for\n");
        return;
    }
    uint64_t largest = 0;
    for (uint32_t i = 0; i < n; i++)
        largest =
            q->groups.list[i].sums[0].units > largest ? q->groups.list[i].sums[0].units : largest;
    struct sm_table t;
    unsigned figures = q->n_weights == 1 ? 4 : 2 * q->n_weights;
    sm_table_init(&t, figures + q->n_dimensions + q->bars, q->asked->width, q->asked->colours,
                  q->asked->utf8);
    for (unsigned i = 0; i < figures; i++)
        t.align[i] = SM_RIGHT;
    t.flexible = figures;
    head(&t, q);
    for (uint32_t i = 0; i < n; i++)
        row(&t, q, &q->groups.list[i], largest);
    sm_table_print(&t, out);
    sm_table_release(&t);
    sm_show_more(out, q->groups.n_groups - n);
}

/* ---- JSON and CSV ---- */

static void quote_filter(struct sm_buffer *out, const char *text) {
    sm_buffer_char(out, '"');
    for (; *text != 0; text++) {
        if (*text == '"' || *text == '\\')
            sm_buffer_char(out, '\\');
        if ((unsigned char)*text < ' ')
            sm_buffer_printf(out, "\\x%02x", (unsigned char)*text);
        else
            sm_buffer_char(out, *text);
    }
    sm_buffer_char(out, '"');
}

static void place_filter(struct sm_buffer *out, const struct sm_view *v, uint32_t key) {
    const struct sm_analysis *a = v->analysis;
    const struct sm_frame *f = &a->frames[v->spot[key]];
    const struct sm_function *fn = &a->functions[f->function];
    if (v->names[key] != 0)
        return;
    if (v->kind == SM_KEY_FILE && fn->file != 0) {
        sm_buffer_text(out, "site file ");
        quote_filter(out, sm_text(a, fn->file));
    } else if (v->kind == SM_KEY_MODULE && fn->module != 0) {
        sm_buffer_text(out, "site module ");
        quote_filter(out, sm_text(a, fn->module));
    } else {
        sm_buffer_text(out, "site ");
        quote_filter(out, sm_text(a, fn->name));
        if (fn->file != 0) {
            sm_buffer_text(out, " and site file ");
            quote_filter(out, sm_text(a, fn->file));
        }
        if (v->kind != SM_KEY_FUNCTION && f->line != 0 && fn->file != 0) {
            struct sm_buffer line;
            sm_buffer_init(&line, -1);
            sm_buffer_printf(&line, "%s:%u", sm_text(a, fn->file), f->line);
            sm_buffer_text(out, " and site line ");
            quote_filter(out, sm_buffer_string(&line));
            sm_buffer_release(&line);
        }
    }
}

void sm_query_filter(struct sm_buffer *out, const struct sm_query *q, uint32_t d, uint32_t value) {
    const struct sm_analysis *a = q->asked->a;
    switch (q->dimensions[d].kind) {
    case SM_BY_PLACE:
        place_filter(out, &q->views[d], value);
        break;
    case SM_BY_DOMAIN:
        if (q->groups.domains[value] != SM_NO_DOMAIN)
            sm_buffer_printf(out, "domain = %" PRIu64, q->groups.domains[value]);
        break;
    case SM_BY_LANE:
        if (value < a->n_lanes && a->lanes[value].tid != 0)
            sm_buffer_printf(out, "thread = %" PRIu64, a->lanes[value].tid);
        break;
    case SM_BY_HEAP:
        if (value < 4)
            sm_buffer_printf(out, "source = %s", sm_heap_name(value));
        break;
    case SM_BY_SOURCE:
        sm_buffer_printf(out, "source = %s and source = %s", sm_heap_name(SM_SOURCE_HEAP(value)),
                         sm_origin_name(SM_SOURCE_ORIGIN(value)));
        break;
    case SM_BY_SIZE:
        if (value == 0)
            sm_buffer_text(out, "size = 0B");
        else
            sm_buffer_printf(out, "size in %lluB..%lluB", 1ull << (value - 1),
                             (1ull << (value - 1)) * 2 - 1);
        break;
    case SM_BY_PROMOTED:
        sm_buffer_text(out, value != 0 ? "promoted" : "not promoted");
        break;
    default:
        break;
    }
}

static double number_of(const struct sm_query *q, uint32_t d, uint32_t value) {
    return q->dimensions[d].kind == SM_BY_DOMAIN && q->groups.domains[value] != SM_NO_DOMAIN
               ? (double)q->groups.domains[value]
               : (double)value;
}

void sm_query_members(struct sm_json *j, const struct sm_query *q) {
    char text[64];
    struct sm_buffer b;
    sm_buffer_init(&b, -1);
    sm_json_open(j, "by", '[');
    for (uint32_t i = 0; i < q->n_dimensions; i++)
        sm_json_text(j, NULL, q->names[i]);
    sm_json_close(j, ']');
    sm_json_open(j, "weights", '[');
    for (uint32_t i = 0; i < q->n_weights; i++)
        sm_json_text(j, NULL, sm_weight_text(&q->weighers[i].weight, text));
    sm_json_close(j, ']');
    sm_json_open(j, "totals", '[');
    for (uint32_t i = 0; i < q->n_weights; i++)
        sm_json_sum(j, NULL, &q->weighers[i], &q->totals[i]);
    sm_json_close(j, ']');
    sm_json_open(j, "rows", '[');
    uint32_t n = shown(q);
    for (uint32_t k = 0; k < n; k++) {
        const struct sm_group_row *r = &q->groups.list[k];
        sm_json_open(j, NULL, '{');
        sm_json_open(j, "values", '[');
        for (uint32_t i = 0; i < q->n_dimensions; i++) {
            sm_json_open(j, NULL, '{');
            b.used = 0;
            value_name(q, i, r->value[i], &b);
            sm_json_bytes(j, "name", b.data, b.used);
            b.used = 0;
            sm_query_filter(&b, q, i, r->value[i]);
            sm_json_bytes(j, "filter", b.data, b.used);
            sm_json_double(j, "number", number_of(q, i, r->value[i]));
            if (q->dimensions[i].kind == SM_BY_PLACE)
                sm_json_place(j, "place", &q->views[i], r->value[i]);
            sm_json_close(j, '}');
        }
        sm_json_close(j, ']');
        sm_json_open(j, "estimates", '[');
        for (uint32_t i = 0; i < q->n_weights; i++)
            sm_json_sum(j, NULL, &q->weighers[i], &r->sums[i]);
        sm_json_close(j, ']');
        sm_json_close(j, '}');
    }
    sm_json_close(j, ']');
    sm_json_u64(j, "more", q->groups.n_groups - n);
    sm_buffer_release(&b);
}

void sm_query_json(struct sm_buffer *out, const struct sm_query *q) {
    struct sm_json j;
    sm_json_init(&j, out, false);
    sm_json_open(&j, NULL, '{');
    sm_json_asked(&j, q->asked);
    sm_query_members(&j, q);
    sm_json_close(&j, '}');
    sm_json_end(&j);
}

void sm_query_csv(struct sm_buffer *out, const struct sm_query *q) {
    char text[64];
    struct sm_buffer b;
    sm_buffer_init(&b, -1);
    for (uint32_t i = 0; i < q->n_dimensions; i++)
        sm_buffer_printf(out, "%s%s", i > 0 ? "," : "", q->names[i]);
    for (uint32_t i = 0; i < q->n_weights; i++) {
        const char *w = sm_weight_text(&q->weighers[i].weight, text);
        sm_buffer_printf(out, "," SM_CSV_ESTIMATE_HEAD("%s"), w, w, w, w, w);
    }
    sm_buffer_char(out, '\n');
    for (uint32_t k = 0; k < shown(q); k++) {
        const struct sm_group_row *r = &q->groups.list[k];
        for (uint32_t i = 0; i < q->n_dimensions; i++) {
            b.used = 0;
            value_name(q, i, r->value[i], &b);
            if (i > 0)
                sm_buffer_char(out, ',');
            sm_csv_text(out, b.data, b.used);
        }
        for (uint32_t i = 0; i < q->n_weights; i++) {
            sm_buffer_char(out, ',');
            sm_csv_estimate(out, &q->weighers[i], &r->sums[i]);
        }
        sm_buffer_char(out, '\n');
    }
    sm_buffer_release(&b);
}
