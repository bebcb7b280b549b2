/* `top` for people. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/top.h"
#include "util/number.h"

#define CALLER_LINES 6

struct printer {
    struct sm_buffer *out;
    const struct sm_top *top;
    struct sm_table table;
    struct sm_buffer name, place;
};

static const struct sm_weigher *weigher(const struct printer *p) {
    return &p->top->weighers[p->top->which];
}

static const char *value_text(char *to, const struct printer *p, const struct sm_sum *sum,
                              const struct sm_estimate *e) {
    bool known = !isnan(e->value);
    return sm_show_value(to, p->top->asked,
                         known ? sm_weight_measure(&weigher(p)->weight) : SM_MEASURE_SAMPLES,
                         known ? e->value : (double)sum->units);
}

/* Value, error, share and samples of a row. */
static void figures(struct printer *p, enum sm_style style, const struct sm_sum *sum) {
    char a[SM_NUMBER_BYTES];
    struct sm_estimate e = sm_weight_estimate(weigher(p), sum);
    sm_table_cell(&p->table, style, value_text(a, p, sum, &e));
    sm_table_cell(&p->table, SM_DIM, sm_show_error(a, &e));
    sm_table_cell(&p->table, style,
                  sm_number_percent(a, (double)sm_top_weight(p->top, sum), (double)p->top->whole));
    sm_table_cell(&p->table, style, sm_number_count(a, sum->samples));
}

static void callers(struct printer *p, const struct sm_top_row *row) {
    struct sm_caller list[SM_MAX_CALLERS];
    const struct sm_top *top = p->top;
    unsigned n =
        sm_callers_of(&top->callers, row->value, top->options->caller_depth, CALLER_LINES, list);
    for (unsigned i = 0; i < n; i++) {
        char drawing[96];
        int indent = 2 * (list[i].depth < 16 ? (int)list[i].depth : 16);
        snprintf(drawing, sizeof drawing, "%*s%s", indent, "", top->asked->utf8 ? "← " : "< ");
        figures(p, SM_DIM, &list[i].sum);
        if (top->totals) {
            sm_table_cell(&p->table, SM_DIM, NULL);
            sm_table_cell(&p->table, SM_DIM, NULL);
        }
        p->name.used = p->place.used = 0;
        sm_top_spot_name(&top->callers.spots, list[i].spot, &p->name, &p->place);
        sm_table_named(&p->table, SM_DIM, drawing, sm_buffer_string(&p->name),
                       sm_buffer_string(&p->place));
    }
}

static void print_row(struct printer *p, const struct sm_top_row *row) {
    const struct sm_top *top = p->top;
    figures(p, SM_BOLD, &row->own[top->which]);
    if (top->totals) {
        char a[SM_NUMBER_BYTES];
        struct sm_estimate e = sm_weight_estimate(weigher(p), &row->total);
        sm_table_cell(&p->table, SM_PLAIN, value_text(a, p, &row->total, &e));
        sm_table_cell(
            &p->table, SM_PLAIN,
            sm_number_percent(a, (double)sm_top_weight(top, &row->total), (double)top->whole));
    }
    p->name.used = p->place.used = 0;
    sm_top_name(top, row->value, &p->name, &p->place);
    sm_table_named(&p->table, SM_CYAN, NULL, sm_buffer_string(&p->name),
                   sm_buffer_string(&p->place));
    if (top->places && top->options->caller_depth > 0)
        callers(p, row);
}

static void table_head(struct printer *p) {
    const struct sm_top *top = p->top;
    char name[64];
    bool blocks = top->options->metric == SM_TOP_BLOCKS;
    sm_table_init(&p->table, top->totals ? 7 : 5, top->asked->width, top->asked->colours,
                  top->asked->utf8);
    for (unsigned i = 0; i + 1 < p->table.n_columns; i++)
        p->table.align[i] = SM_RIGHT;
    sm_table_cell(&p->table, SM_DIM, blocks ? "allocated" : sm_top_metric_name(top, name));
    sm_table_cell(&p->table, SM_DIM, top->asked->utf8 ? "±" : "+-");
    sm_table_cell(&p->table, SM_DIM, blocks ? "blocks" : "share");
    sm_table_cell(&p->table, SM_DIM, "samples");
    if (top->totals) {
        sm_table_cell(&p->table, SM_DIM, "w/callees");
        sm_table_cell(&p->table, SM_DIM, "share");
    }
    sm_table_cell(&p->table, SM_DIM,
                  strcmp(top->options->by, "site") == 0 ? "allocation site" : top->options->by);
}

static void footer(struct printer *p) {
    char a[SM_NUMBER_BYTES];
    const struct sm_top *top = p->top;
    uint32_t shown = sm_top_shown(top);
    struct sm_sum rest = {0};
    for (uint32_t i = shown; i < top->n_rows; i++)
        sm_sum_add(&rest, &top->rows[i].own[top->which]);
    if (shown == top->n_rows)
        return;
    sm_buffer_printf(p->out, "and %s more: ", sm_number_count(a, top->n_rows - shown));
    sm_show_estimate(p->out, top->asked, weigher(p), &rest);
    sm_buffer_printf(p->out, " (%s samples), ", sm_number_count(a, rest.samples));
    sm_buffer_printf(p->out, "%s\n",
                     sm_number_percent(a, (double)sm_top_weight(top, &rest), (double)top->whole));
}

void sm_top_print(struct sm_buffer *out, const struct sm_top *top) {
    struct printer p = {.out = out, .top = top};
    sm_buffer_init(&p.name, -1);
    sm_buffer_init(&p.place, -1);
    sm_show_heading(out, top->asked);
    if (top->n_rows == 0) {
        sm_buffer_printf(out, "no samples%s\n",
                         top->asked->a->rows.n > 0 ? " that fit what was asked for" : "");
    } else {
        table_head(&p);
        for (uint32_t i = 0; i < sm_top_shown(top); i++)
            print_row(&p, &top->rows[i]);
        sm_table_print(&p.table, out);
        sm_table_release(&p.table);
        footer(&p);
    }
    sm_buffer_release(&p.name);
    sm_buffer_release(&p.place);
}
