/* DHAT's JSON, file version 2, for valgrind's dh_view.html (valgrind's dhat/dh_main.c tells the fields). A program point is
   a stack; its own maximum needs one walk through allocations and ends in their merged order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/model.h"
#include "util/json.h"
#include "util/memory.h"

/* What a program point has beside the sums. */
struct point {
    uint64_t live, most;                 /* units */
    uint64_t live_objects, most_objects; /* 1/1024 objects; most_objects: when `most` was reached */
    double lifetimes;                    /* 1/1024 objects x us */
};

struct sweep {
    const struct sm_ex_tree *tree;
    const struct sm_weigher *objects;
    struct point *points; /* by node */
};

static uint64_t objects_of(const struct sweep *s, uint32_t row) {
    struct sm_sum sum = {0};
    sm_weigher_add(s->objects, row, &sum);
    return sum.units;
}

static void allocate(struct sweep *s, uint32_t row) {
    const struct sm_analysis *a = s->tree->x->a;
    struct point *p = &s->points[s->tree->of_node[a->rows.node[row]]];
    uint64_t n = objects_of(s, row);
    int64_t end = sm_row_free_ns(a, row), age;
    age = (end == SM_NEVER_NS ? a->last_ns : end) - sm_row_alloc_ns(a, row);
    p->live += sm_row_units(a, row);
    p->live_objects += n;
    p->lifetimes += (double)n * (age > 0 ? (double)age / 1e3 : 0);
    if (p->live > p->most) {
        p->most = p->live;
        p->most_objects = p->live_objects;
    }
}

static void end(struct sweep *s, uint32_t row) {
    const struct sm_analysis *a = s->tree->x->a;
    struct point *p = &s->points[s->tree->of_node[a->rows.node[row]]];
    p->live -= sm_row_units(a, row);
    p->live_objects -= objects_of(s, row);
}

static void walk(struct sweep *s) {
    const struct sm_rows *r = &s->tree->x->a->rows;
    const struct sm_selection *selection =
        sm_selection_or_base(s->tree->x->selection, s->tree->x->a);
    uint32_t done = 0, wide = 0;
    for (uint32_t row = 0; row < r->n; row++) {
        uint32_t n = r->frees_before[row];
        if (n == SM_ROW_MANY)
            n = (uint32_t)r->wide_frees[wide++].value;
        for (; n > 0; n--, done++) {
            if (sm_selected(selection, r->free_order[done]))
                end(s, r->free_order[done]);
        }
        if (sm_selected(selection, row))
            allocate(s, row);
    }
}

enum { TB, TBK, GB, GBK, EB, N_MEASURES };

static void frames(struct sm_json *j, const struct sm_ex_tree *tree) {
    struct sm_buffer text;
    sm_buffer_init(&text, -1);
    sm_json_open(j, "ftbl", '[');
    sm_json_text(j, NULL, "[root]");
    for (uint32_t key = 1; key < tree->view.n_keys; key++) {
        struct sm_ex_place p = sm_ex_place(tree, key);
        text.used = 0;
        sm_buffer_text(&text, p.name);
        if (p.file[0] != 0)
            sm_buffer_printf(&text, " (%s", p.file);
        if (p.file[0] != 0 && p.line > 0)
            sm_buffer_printf(&text, ":%u:%u", p.line, p.column);
        if (p.file[0] != 0)
            sm_buffer_char(&text, ')');
        sm_json_bytes(j, NULL, text.data, text.used);
    }
    sm_json_close(j, ']');
    sm_buffer_release(&text);
}

static void points(struct sm_json *j, struct sweep *s, struct sm_ex_tree *tree,
                   const struct sm_ex_samples *samples, const struct sm_ex_samples *ends) {
    double per_unit = tree->x->a->bytes_per_unit;
    sm_json_open(j, "pps", '[');
    for (uint32_t i = 0; i < samples->n; i++) {
        const struct sm_ex_sample *x = &samples->list[i];
        const struct point *p = &s->points[x->node];
        uint64_t most = (uint64_t)llround((double)p->most * per_unit);
        uint64_t most_objects = (p->most_objects + 512) / 1024;
        sm_json_open(j, NULL, '{');
        sm_json_u64(j, "tb", x->values[TB]);
        sm_json_u64(j, "tbk", x->values[TBK]);
        sm_json_u64(j, "tl", (uint64_t)llround(p->lifetimes / 1024));
        sm_json_u64(j, "mb", most);
        sm_json_u64(j, "mbk", most_objects);
        sm_json_u64(j, "gb", x->values[GB]);
        sm_json_u64(j, "gbk", x->values[GBK]);
        sm_json_u64(j, "eb", x->values[EB]);
        sm_json_u64(j, "ebk", ends->list[i].values[0]);
        sm_json_open(j, "fs", '[');
        uint32_t n = sm_ex_path(tree, x->node);
        while (n-- > 0)
            sm_json_u64(j, NULL, tree->key[tree->path[n]]);
        sm_json_close(j, ']');
        sm_json_close(j, '}');
    }
    sm_json_close(j, ']');
}

static uint64_t us(int64_t ns) {
    return ns > 0 ? (uint64_t)ns / 1000 : 0;
}

void sm_export_dhat(const struct sm_export *x, struct sm_buffer *out) {
    const struct sm_weight space = {.kind = SM_WEIGHT_ALLOCATED};
    const struct sm_weight objects = {.kind = SM_WEIGHT_OBJECTS};
    const struct sm_weight peak = {.kind = SM_WEIGHT_LIVE_OWN_PEAK};
    const struct sm_weight last = {.kind = SM_WEIGHT_LIVE_END};
    struct sm_ex_tree tree;
    struct sm_ex_measure m[N_MEASURES], ends[2];
    struct sm_ex_samples samples, end_objects;
    struct sm_json j;
    sm_ex_tree_make(&tree, x, SM_KEY_FRAME);
    sm_ex_measure_make(&m[TB], x, &space, NULL, "tb");
    sm_ex_measure_make(&m[TBK], x, &objects, NULL, "tbk");
    sm_ex_measure_make(&m[GB], x, &peak, NULL, "gb");
    sm_ex_measure_make(&m[GBK], x, &objects, &peak, "gbk");
    sm_ex_measure_make(&m[EB], x, &last, NULL, "eb");
    sm_ex_measure_make(&ends[0], x, &objects, &last, "ebk");
    /* So that both lists have the same stacks in the same order. */
    sm_ex_measure_make(&ends[1], x, &space, NULL, "tb");
    sm_ex_samples_make(&samples, &tree, m, N_MEASURES, false);
    sm_ex_samples_make(&end_objects, &tree, ends, 2, false);
    struct sweep s = {.tree = &tree,
                      .objects = &m[TBK].weigher,
                      .points = sm_alloc_zero(tree.n_nodes, sizeof *s.points)};
    walk(&s);
    sm_json_init(&j, out, true);
    sm_json_open(&j, NULL, '{');
    sm_json_u64(&j, "dhatFileVersion", 2);
    sm_json_text(&j, "mode", "statmem");
    sm_json_text(&j, "verb", "Allocated");
    sm_json_bool(&j, "bklt", true);
    sm_json_bool(&j, "bkacc", false);
    sm_json_text(&j, "tu", "us");
    sm_json_text(&j, "Mtu", "s");
    sm_json_u64(&j, "tuth", 1000);
    struct sm_buffer command;
    sm_buffer_init(&command, -1);
    const char *word = x->a->meta.args;
    for (uint32_t i = 0; i < x->a->meta.n_args; i++, word += strlen(word) + 1)
        sm_buffer_printf(&command, "%s%s", i > 0 ? " " : "", word);
    sm_json_text(&j, "cmd", command.used > 0 ? sm_buffer_string(&command) : x->a->meta.executable);
    sm_buffer_release(&command);
    sm_json_u64(&j, "pid", x->a->meta.pid);
    sm_json_u64(&j, "te", us(x->a->last_ns));
    sm_json_u64(&j, "tg", us(m[GB].weigher.moment.ns));
    points(&j, &s, &tree, &samples, &end_objects);
    frames(&j, &tree);
    sm_json_close(&j, '}');
    sm_json_end(&j);
    free(s.points);
    sm_ex_samples_release(&samples);
    sm_ex_samples_release(&end_objects);
    for (int i = 0; i < N_MEASURES; i++)
        sm_ex_measure_release(&m[i]);
    sm_ex_measure_release(&ends[0]);
    sm_ex_measure_release(&ends[1]);
    sm_ex_tree_release(&tree);
}
