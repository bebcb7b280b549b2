/* See tree.h. */
#include "report/tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"
#include "util/number.h"
#include "util/text.h"

void sm_tree_report_make(struct sm_tree_report *r, const struct sm_asked *asked,
                         const struct sm_view *view, const struct sm_weigher *weigher,
                         const struct sm_merge_options *options, double min_share) {
    *r = (struct sm_tree_report){
        .asked = asked, .view = view, .weigher = weigher, .options = *options};
    struct sm_sum *nodes = sm_weigh_nodes(weigher, asked->threads);
    for (uint32_t i = 0; i < asked->a->tree.n_nodes; i++)
        sm_sum_add(&r->total, &nodes[i]);
    uint64_t least = (uint64_t)ceil((double)r->total.units * min_share);
    r->options.min_units = least > 0 ? least : 1;
    sm_merged_make(&r->merged, view, nodes, &r->options);
    free(nodes);
}

void sm_tree_report_release(struct sm_tree_report *r) {
    sm_merged_release(&r->merged);
    *r = (struct sm_tree_report){0};
}

/* ---- text ---- */

/* Branches drawn to the left of a node. A chain of nodes of which each has nearly all of the one before stays in
   one column; where many branches lie in each other they are drawn narrower. */
struct drawing {
    const struct sm_tree_report *r;
    bool *follows; /* by node: a later sibling */
    bool *only;    /* by node: it continues its parent's line */
    unsigned step; /* columns of a branch: 1 to 3 */
};

#define LEVELS 64         /* drawn */
#define FIGURE_COLUMNS 48 /* of the other columns of the table, about */

static void look(struct drawing *d) {
    const struct sm_merged *m = &d->r->merged;
    d->follows = sm_alloc_zero(m->n_nodes + 1u, sizeof *d->follows);
    d->only = sm_alloc_zero(m->n_nodes + 1u, sizeof *d->only);
    for (uint32_t i = 1; i < m->n_nodes; i++) {
        const struct sm_merged_node *n = &m->nodes[i], *p = &m->nodes[n->parent];
        d->follows[i] = n->end < p->end;
        d->only[i] = i == n->parent + 1 && n->end == p->end && n->parent != 0 &&
                     n->total.units >= p->total.units - p->total.units / 10;
    }
    unsigned *levels = sm_alloc_zero(m->n_nodes + 1u, sizeof *levels), most = 0;
    for (uint32_t i = 1; i < m->n_nodes; i++) {
        levels[i] = levels[m->nodes[i].parent] + !d->only[i];
        most = levels[i] > most ? levels[i] : most;
    }
    free(levels);
    unsigned width = d->r->asked->width;
    unsigned room = width > FIGURE_COLUMNS + 20 ? (width - FIGURE_COLUMNS) / 2 : 10;
    d->step = most * 3 <= room ? 3 : most * 2 <= room ? 2 : 1;
}

static void branches(struct sm_buffer *out, const struct drawing *d, uint32_t node) {
    const struct sm_merged_node *nodes = d->r->merged.nodes;
    static const char *const all[2][4] = {{"|- ", "`- ", "|  ", "   "},
                                          {"├─ ", "└─ ", "│  ", "   "}};
    static const char *const narrow[2][4] = {{"| ", "` ", "| ", "  "}, {"├ ", "└ ", "│ ", "  "}};
    static const char *const least[2][4] = {{"|", "`", "|", " "}, {"├", "└", "│", " "}};
    bool utf8 = d->r->asked->utf8;
    const char *const *pieces = d->step == 3   ? all[utf8]
                                : d->step == 2 ? narrow[utf8]
                                               : least[utf8];
    const char *parts[LEVELS];
    unsigned n = 0;
    for (uint32_t at = node; at != 0 && n < LEVELS; at = nodes[at].parent) {
        if (!d->only[at])
            parts[n++] = pieces[(at == node ? 0 : 2) + !d->follows[at]];
    }
    bool blank = d->step == 1 && n > 0;
    while (n-- > 0)
        sm_buffer_text(out, parts[n]);
    if (blank)
        sm_buffer_char(out, ' ');
}

static void row(struct sm_table *t, const struct drawing *d, uint32_t node) {
    const struct sm_tree_report *r = d->r;
    const struct sm_merged_node *n = &r->merged.nodes[node];
    struct sm_buffer cell;
    sm_buffer_init(&cell, -1);
    sm_show_estimate_cells(t, SM_BOLD, r->asked, r->weigher, &n->total,
                           r->total.units > 0 ? r->total.units : 1);
    char a[SM_NUMBER_BYTES];
    struct sm_estimate own = sm_weight_estimate(r->weigher, &n->own);
    sm_table_cell(
        t, SM_DIM,
        n->own.rows == 0
            ? NULL
            : sm_show_value(a, r->asked, sm_weight_measure(&r->weigher->weight), own.value));
    branches(&cell, d, node);
    sm_show_key_cell(t, SM_CYAN, sm_buffer_string(&cell), r->view, n->key);
    sm_table_row_end(t);
    sm_buffer_release(&cell);
}

void sm_tree_report_print(struct sm_buffer *out, const struct sm_tree_report *r) {
    char title[96], n[SM_NUMBER_BYTES];
    const struct sm_asked *q = r->asked;
    sm_show_heading(out, q);
    if (r->total.rows == 0) {
        sm_buffer_text(out, "no samples that fit what was asked for\n");
        return;
    }
    if (r->merged.nodes[0].total.rows == 0) {
        sm_buffer_text(out, "no stack that counts has these calls one after the other\n");
        return;
    }
    struct sm_table t;
    struct drawing d = {.r = r};
    look(&d);
    bool callers = r->options.direction == SM_CALLERS;
    sm_table_init(&t, 6, q->width, q->colours, q->utf8);
    for (unsigned i = 0; i < 5; i++)
        t.align[i] = SM_RIGHT;
    t.flexible = 5;
    sm_table_cell(&t, SM_DIM, sm_weight_title(&r->weigher->weight, title));
    sm_table_cell(&t, SM_DIM, q->utf8 ? "±" : "+-");
    sm_table_cell(&t, SM_DIM, "share");
    sm_table_cell(&t, SM_DIM, "samples");
    sm_table_cell(&t, SM_DIM, callers ? "begins" : "itself");
    sm_table_cell(&t, SM_DIM, callers ? "called by" : "calls");
    sm_table_row_end(&t);
    for (uint32_t i = 0; i < r->merged.n_nodes; i++)
        row(&t, &d, i);
    sm_table_print(&t, out);
    sm_table_release(&t);
    free(d.follows);
    free(d.only);
    if (r->merged.n_folded > 0) {
        sm_buffer_printf(
            out, "%s lighter branches are left out (%s); --min-share shows more\n",
            sm_number_count(n, r->merged.n_folded),
            sm_number_percent(title, (double)r->merged.folded, (double)r->total.units));
    }
}

/* ---- JSON and CSV ---- */

static const char *measure_name(enum sm_measure m) {
    static const char *const names[] = {"bytes", "byte-seconds", "samples", "objects"};
    return names[m];
}

static double value_of(const struct sm_tree_report *r, const struct sm_sum *sum) {
    struct sm_estimate e = sm_weight_estimate(r->weigher, sum);
    return e.value == e.value ? e.value : (double)sum->units;
}

void sm_tree_report_members(struct sm_json *j, const struct sm_tree_report *r) {
    const struct sm_merged *m = &r->merged;
    uint32_t n_keys = r->view->n_keys, n_places = 0;
    uint32_t *number = sm_alloc_zero(n_keys, sizeof *number); /* + 1 */
    sm_json_sum(j, "total", r->weigher, &r->total);
    sm_json_text(j, "measure", measure_name(sm_weight_measure(&r->weigher->weight)));
    sm_json_double(j, "unit", r->asked->a->bytes_per_unit);
    sm_json_open(j, "places", '[');
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        uint32_t key = m->nodes[i].key;
        if (number[key] != 0)
            continue;
        number[key] = ++n_places;
        sm_json_place(j, NULL, r->view, key);
    }
    sm_json_close(j, ']');
    sm_json_open(j, "nodes", '{');
    sm_json_open(j, "place", '[');
    for (uint32_t i = 0; i < m->n_nodes; i++)
        sm_json_u64(j, NULL, number[m->nodes[i].key] - 1);
    sm_json_close(j, ']');
    sm_json_open(j, "depth", '[');
    for (uint32_t i = 0; i < m->n_nodes; i++)
        sm_json_u64(j, NULL, m->nodes[i].depth);
    sm_json_close(j, ']');
    sm_json_open(j, "own", '[');
    for (uint32_t i = 0; i < m->n_nodes; i++)
        sm_json_double(j, NULL, value_of(r, &m->nodes[i].own));
    sm_json_close(j, ']');
    sm_json_open(j, "total", '[');
    for (uint32_t i = 0; i < m->n_nodes; i++)
        sm_json_double(j, NULL, value_of(r, &m->nodes[i].total));
    sm_json_close(j, ']');
    sm_json_open(j, "samples", '[');
    for (uint32_t i = 0; i < m->n_nodes; i++)
        sm_json_u64(j, NULL, m->nodes[i].total.samples);
    sm_json_close(j, ']');
    sm_json_close(j, '}');
    sm_json_open(j, "folded", '{');
    sm_json_u64(j, "nodes", m->n_folded);
    struct sm_sum folded = {.units = m->folded, .samples = m->folded};
    sm_json_double(j, "value", value_of(r, &folded));
    sm_json_close(j, '}');
    free(number);
}

void sm_tree_report_json(struct sm_buffer *out, const struct sm_tree_report *r) {
    struct sm_json j;
    char text[64];
    sm_json_init(&j, out, false);
    sm_json_open(&j, NULL, '{');
    sm_json_asked(&j, r->asked);
    sm_json_text(&j, "weight", sm_weight_text(&r->weigher->weight, text));
    sm_json_text(&j, "direction", r->options.direction == SM_CALLERS ? "callers" : "callees");
    sm_tree_report_members(&j, r);
    sm_json_close(&j, '}');
    sm_json_end(&j);
}

void sm_tree_report_csv(struct sm_buffer *out, const struct sm_tree_report *r) {
    struct sm_buffer id;
    sm_buffer_init(&id, -1);
    sm_buffer_text(out, "node,parent,depth,place," SM_CSV_ESTIMATE_HEAD(
                            "own") "," SM_CSV_ESTIMATE_HEAD("total") "\n");
    for (uint32_t i = 0; i < r->merged.n_nodes; i++) {
        const struct sm_merged_node *n = &r->merged.nodes[i];
        id.used = 0;
        sm_place_id(&id, r->view, n->key);
        sm_buffer_printf(out, "%u,%u,%u,", i, n->parent, n->depth);
        sm_csv_text(out, id.data, id.used);
        sm_buffer_char(out, ',');
        sm_csv_estimate(out, r->weigher, &n->own);
        sm_buffer_char(out, ',');
        sm_csv_estimate(out, r->weigher, &n->total);
        sm_buffer_char(out, '\n');
    }
    sm_buffer_release(&id);
}
