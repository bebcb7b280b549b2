/* See source.h. */
#include "report/source.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"
#include "util/number.h"
#include "util/text.h"

static bool names_file(const char *file, const char *wanted) {
    size_t n = strlen(file), m = strlen(wanted);
    return n >= m && strcmp(file + n - m, wanted) == 0 && (n == m || file[n - m - 1] == '/');
}

/* The one file of the trace that is meant. */
static const char *find_file(const struct sm_analysis *a, const char *wanted,
                             struct sm_error *err) {
    sm_text_id found = 0;
    const char *other = NULL;
    for (uint32_t i = 0; i < a->n_functions; i++) {
        sm_text_id id = a->functions[i].file;
        if (id == 0 || id == found || !names_file(sm_text(a, id), wanted))
            continue;
        if (strcmp(sm_text(a, id), wanted) == 0)
            return sm_text(a, id);
        if (found != 0)
            other = sm_text(a, id);
        else
            found = id;
    }
    if (found == 0)
        sm_error_set(err,
                     "no file in the trace is called %.200s; `statmem query --by file` lists them",
                     wanted);
    else if (other != NULL)
        sm_error_set(err, "%.100s may be %.180s or %.180s; say more of its path", wanted,
                     sm_text(a, found), other);
    return found != 0 && other == NULL ? sm_text(a, found) : NULL;
}

static int by_line(const void *left, const void *right) {
    const struct sm_source_line *x = left, *y = right;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* Lines of several functions, or several frames of one line, are one. `total` of a line counts a stack once for each
   function in it that has the line. */
static void collect(struct sm_source *s, const struct sm_key_sum *sums) {
    const struct sm_analysis *a = s->asked->a;
    size_t capacity = 0;
    for (uint32_t key = 1; key < s->view.n_keys; key++) {
        const struct sm_frame *f = &a->frames[s->view.spot[key]];
        if (f->line == 0 || sums[key].total.rows == 0 ||
            strcmp(sm_text(a, a->functions[f->function].file), s->file) != 0)
            continue;
        s->lines = sm_grow(s->lines, &capacity, s->n_lines + 1u, sizeof *s->lines);
        s->lines[s->n_lines++] = (struct sm_source_line){
            .line = f->line, .own = sums[key].own, .total = sums[key].total, .key = key};
    }
    if (s->n_lines > 1)
        qsort(s->lines, s->n_lines, sizeof *s->lines, by_line);
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_lines; i++) {
        if (n > 0 && s->lines[n - 1].line == s->lines[i].line) {
            sm_sum_add(&s->lines[n - 1].own, &s->lines[i].own);
            sm_sum_add(&s->lines[n - 1].total, &s->lines[i].total);
        } else {
            s->lines[n++] = s->lines[i];
        }
    }
    s->n_lines = n;
}

bool sm_source_make(struct sm_source *s, const struct sm_asked *asked, const char *file,
                    const struct sm_weight *weight, struct sm_error *err) {
    *s = (struct sm_source){.asked = asked, .context = 2};
    s->file = find_file(asked->a, file, err);
    if (s->file == NULL)
        return false;
    sm_asked_view(asked, &s->view, SM_KEY_LINE);
    sm_asked_weigher(asked, &s->weigher, weight);
    struct sm_sum *nodes = sm_weigh_nodes(&s->weigher, asked->threads);
    struct sm_key_sum *sums = sm_view_sums(&s->view, nodes);
    s->total = sums[0].total;
    collect(s, sums);
    free(sums);
    free(nodes);
    return true;
}

void sm_source_release(struct sm_source *s) {
    sm_view_release(&s->view);
    sm_weigher_release(&s->weigher);
    free(s->lines);
    *s = (struct sm_source){0};
}

/* ---- text ---- */

static void value_cell(struct sm_table *t, enum sm_style style, const struct sm_source *s,
                       const struct sm_sum *sum) {
    char a[SM_NUMBER_BYTES];
    struct sm_estimate e = sm_weight_estimate(&s->weigher, sum);
    enum sm_measure m = isnan(e.value) ? SM_MEASURE_SAMPLES : sm_weight_measure(&s->weigher.weight);
    if (sum->rows == 0)
        sm_table_cell(t, style, NULL);
    else
        sm_table_cell(t, style,
                      sm_show_value(a, s->asked, m, isnan(e.value) ? (double)sum->units : e.value));
}

static void figures(struct sm_table *t, const struct sm_source *s, const struct sm_source_line *l) {
    char a[SM_NUMBER_BYTES];
    value_cell(t, SM_BOLD, s, &l->own);
    value_cell(t, SM_PLAIN, s, &l->total);
    struct sm_estimate e = sm_weight_estimate(&s->weigher, &l->total);
    sm_table_cell(t, SM_DIM, sm_show_error(a, &e));
    sm_table_cell(t, SM_PLAIN,
                  sm_number_percent(a, (double)l->total.units, (double)s->total.units));
}

static void text_row(struct sm_table *t, const struct sm_source *s, const struct sm_source_line *l,
                     uint32_t line, const char *text, size_t bytes) {
    struct sm_buffer plain, safe;
    sm_buffer_init(&plain, -1);
    sm_buffer_init(&safe, -1);
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '\t')
            sm_buffer_fill(&plain, ' ', 4);
        else if (text[i] != '\r')
            sm_buffer_char(&plain, text[i]);
    }
    sm_text_safe(&safe, plain.data, plain.used);
    if (l != NULL) {
        figures(t, s, l);
    } else {
        for (int i = 0; i < 4; i++)
            sm_table_cell(t, SM_PLAIN, NULL);
    }
    sm_table_cellf(t, SM_DIM, "%u", line);
    sm_table_cell(t, l != NULL ? SM_CYAN : SM_PLAIN, sm_buffer_string(&safe));
    sm_table_row_end(t);
    sm_buffer_release(&plain);
    sm_buffer_release(&safe);
}

/* A line is shown when one within the context allocates. */
static bool is_shown(const struct sm_source *s, uint32_t next, uint32_t line) {
    if (s->context == 0)
        return true;
    if (next < s->n_lines && s->lines[next].line <= line + s->context)
        return true;
    return next > 0 && s->lines[next - 1].line + s->context >= line;
}

static void text_rows(struct sm_table *t, const struct sm_source *s) {
    uint32_t next = 0, line = 1;
    bool gap = false;
    for (const char *at = s->text; *at != 0; line++) {
        size_t n = strcspn(at, "\n");
        bool here = next < s->n_lines && s->lines[next].line == line;
        if (here || is_shown(s, next, line)) {
            if (gap) {
                for (int i = 0; i < 4; i++)
                    sm_table_cell(t, SM_PLAIN, NULL);
                sm_table_cell(t, SM_DIM, s->asked->utf8 ? "⋮" : "...");
                sm_table_row_end(t);
            }
            gap = false;
            text_row(t, s, here ? &s->lines[next] : NULL, line, at, n);
        } else {
            gap = true;
        }
        next += here;
        at += n + (at[n] == '\n');
    }
}

void sm_source_print(struct sm_buffer *out, const struct sm_source *s) {
    const struct sm_asked *q = s->asked;
    char title[96];
    struct sm_table t;
    sm_show_heading(out, q);
    sm_text_safe(out, s->file, strlen(s->file));
    sm_buffer_printf(out, ": %s\n\n", sm_weight_title(&s->weigher.weight, title));
    if (s->n_lines == 0) {
        sm_buffer_text(out, "no line of it allocates what was asked for\n");
        return;
    }
    sm_table_init(&t, 6, q->width, q->colours, q->utf8);
    for (unsigned i = 0; i < 5; i++)
        t.align[i] = SM_RIGHT;
    t.flexible = 5;
    static const char *const heads[] = {"itself", "w/callees", "±", "share", "line", ""};
    for (unsigned i = 0; i < 6; i++)
        sm_table_cell(&t, SM_DIM, i == 2 && !q->utf8 ? "+-" : heads[i]);
    sm_table_row_end(&t);
    if (s->text != NULL) {
        text_rows(&t, s);
    } else {
        for (uint32_t i = 0; i < s->n_lines; i++) {
            const struct sm_function *f =
                &q->a->functions[q->a->frames[s->view.spot[s->lines[i].key]].function];
            const char *name = sm_text(q->a, f->name);
            text_row(&t, s, &s->lines[i], s->lines[i].line, name, strlen(name));
        }
    }
    sm_table_print(&t, out);
    sm_table_release(&t);
    if (s->text == NULL)
        sm_buffer_text(out, "\nthe file is not at hand, so functions stand in place of its lines; "
                            "--source-root DIR "
                            "says where it is\n");
}

/* ---- JSON and CSV ---- */

void sm_source_json(struct sm_buffer *out, const struct sm_source *s) {
    struct sm_json j;
    char text[64];
    sm_json_init(&j, out, false);
    sm_json_open(&j, NULL, '{');
    sm_json_asked(&j, s->asked);
    sm_json_text(&j, "file", s->file);
    sm_json_text(&j, "weight", sm_weight_text(&s->weigher.weight, text));
    sm_json_sum(&j, "total", &s->weigher, &s->total);
    sm_json_open(&j, "lines", '[');
    for (uint32_t i = 0; i < s->n_lines; i++) {
        sm_json_open(&j, NULL, '{');
        sm_json_u64(&j, "line", s->lines[i].line);
        sm_json_sum(&j, "own", &s->weigher, &s->lines[i].own);
        sm_json_sum(&j, "total", &s->weigher, &s->lines[i].total);
        sm_json_close(&j, '}');
    }
    sm_json_close(&j, ']');
    sm_json_close(&j, '}');
    sm_json_end(&j);
}

void sm_source_csv(struct sm_buffer *out, const struct sm_source *s) {
    sm_buffer_text(out, "line," SM_CSV_ESTIMATE_HEAD("own") "," SM_CSV_ESTIMATE_HEAD("total") "\n");
    for (uint32_t i = 0; i < s->n_lines; i++) {
        sm_buffer_printf(out, "%u,", s->lines[i].line);
        sm_csv_estimate(out, &s->weigher, &s->lines[i].own);
        sm_buffer_char(out, ',');
        sm_csv_estimate(out, &s->weigher, &s->lines[i].total);
        sm_buffer_char(out, '\n');
    }
}
