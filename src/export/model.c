/* See model.h. */
#include "export/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/map.h"
#include "util/memory.h"
#include "util/text.h"

/* ---- the tree ---- */

void sm_ex_tree_make(struct sm_ex_tree *t, const struct sm_export *x, enum sm_key_kind kind) {
    *t = (struct sm_ex_tree){.x = x};
    sm_view_make(&t->view, x->a, kind, x->hidden, x->collapsed);
    if (x->fold_recursion)
        sm_view_fold_recursion(&t->view);
    const struct sm_calltree *from = &x->a->tree;
    struct sm_map known = {0};
    uint32_t *depth = sm_alloc((size_t)from->n_nodes * sizeof *depth);
    t->parent = sm_alloc((size_t)from->n_nodes * sizeof *t->parent);
    t->key = sm_alloc((size_t)from->n_nodes * sizeof *t->key);
    t->inlined = sm_alloc((size_t)from->n_nodes * sizeof *t->inlined);
    t->of_node = sm_alloc((size_t)from->n_nodes * sizeof *t->of_node);
    t->of_node[0] = t->parent[0] = t->key[0] = depth[0] = 0;
    t->inlined[0] = false;
    t->n_nodes = 1;
    for (uint32_t i = 1; i < from->n_nodes; i++) {
        uint32_t parent = t->of_node[from->parent[i]], key = t->view.key[i];
        if (key == SM_KEY_HIDDEN) {
            t->of_node[i] = parent;
            continue;
        }
        bool found;
        uint32_t *place = sm_map_place(&known, parent | (uint64_t)key << 32, t->n_nodes, &found);
        t->of_node[i] = *place - 1;
        if (found)
            continue;
        uint32_t n = t->n_nodes++;
        t->parent[n] = parent;
        t->key[n] = key;
        /* Of a location whose outer frames are hidden the rest stands alone. */
        t->inlined[n] = (from->flags[i] & SM_NODE_INLINED) != 0 && parent != 0 &&
                        t->view.key[from->parent[i]] != SM_KEY_HIDDEN;
        depth[n] = depth[parent] + 1;
        if (depth[n] > t->max_depth)
            t->max_depth = depth[n];
    }
    free(depth);
    sm_map_release(&known);
    t->path = sm_alloc(((size_t)t->max_depth + 1) * sizeof *t->path);
}

void sm_ex_tree_release(struct sm_ex_tree *t) {
    sm_view_release(&t->view);
    free(t->parent);
    free(t->key);
    free(t->inlined);
    free(t->of_node);
    free(t->path);
    *t = (struct sm_ex_tree){0};
}

uint32_t sm_ex_path(struct sm_ex_tree *t, uint32_t node) {
    uint32_t n = 0;
    for (uint32_t at = node; at != 0; at = t->parent[at])
        n++;
    uint32_t i = n;
    for (uint32_t at = node; at != 0; at = t->parent[at])
        t->path[--i] = at;
    return n;
}

struct sm_ex_place sm_ex_place(const struct sm_ex_tree *t, uint32_t key) {
    const struct sm_analysis *a = t->x->a;
    const struct sm_frame *frame = &a->frames[t->view.spot[key]];
    const struct sm_function *f = &a->functions[frame->function];
    enum sm_key_kind kind = t->view.kind;
    struct sm_ex_place p = {.module = sm_text(a, f->module),
                            .file = sm_text(a, f->file),
                            .name = sm_text(a, f->name),
                            .native = (f->flags & SM_SYMS_NATIVE) != 0};
    if (t->view.names[key] != 0) {
        p.name = sm_text(a, t->view.names[key]);
        p.file = "";
        return p;
    }
    if (kind == SM_KEY_FILE && f->file != 0)
        p.name = p.file;
    if (kind == SM_KEY_MODULE && f->module != 0)
        p.name = p.module;
    if (kind == SM_KEY_FRAME || kind == SM_KEY_LINE) {
        p.line = frame->line;
        p.column = kind == SM_KEY_FRAME && frame->line > 0 && (f->flags & SM_SYMS_NO_COLUMNS) == 0
                       ? frame->start_char + 1
                       : 0;
    }
    return p;
}

const char *sm_ex_heap(unsigned heap) {
    static const char *const names[] = {"minor", "major", "external", "native"};
    return heap < sizeof names / sizeof *names ? names[heap] : "unknown";
}

const char *sm_ex_origin(unsigned origin) {
    static const char *const names[] = {"normal", "marshal", "custom", "mapped", "reported"};
    return origin < sizeof names / sizeof *names ? names[origin] : "unknown";
}

char *sm_ex_source(const struct sm_row_class *c, char to[48]) {
    bool plain = c->origin == SM_ORIGIN_NORMAL;
    snprintf(to, 48, "%s%s%s", sm_ex_heap(c->heap), plain ? "" : " ",
             plain ? "" : sm_ex_origin(c->origin));
    return to;
}

char *sm_ex_thread(const struct sm_lane *lane, const char *texts, char to[64]) {
    to[0] = 0;
    if (lane->name != 0)
        snprintf(to, 64, "%s", texts + lane->name);
    else if (lane->tid != 0)
        snprintf(to, 64, "thread %llu", (unsigned long long)lane->tid);
    else if (lane->kind != SM_OWNER_NATIVE)
        snprintf(to, 64, "domain %llu", (unsigned long long)lane->domain);
    return to;
}

void sm_ex_utf8(struct sm_buffer *out, const char *text) {
    size_t bytes = strlen(text), used;
    while (bytes > 0) {
        if (sm_utf8_get(text, bytes, &used) == UINT32_MAX)
            sm_buffer_text(out, "\xEF\xBF\xBD");
        else
            sm_buffer_bytes(out, text, used);
        text += used;
        bytes -= used;
    }
}

/* ---- values ---- */

void sm_ex_measure_make(struct sm_ex_measure *m, const struct sm_export *x,
                        const struct sm_weight *weight, const struct sm_weight *live,
                        const char *type) {
    *m = (struct sm_ex_measure){.type = type, .unit = "bytes"};
    const struct sm_selection *selection = x->selection;
    if (live != NULL) {
        struct sm_weigher w;
        size_t n = ((size_t)x->a->rows.n + 63) / 64;
        sm_weigher_init(&w, x->a, selection, live, x->threads);
        m->rows.words = sm_alloc_zero(n + 1, sizeof *m->rows.words);
        for (size_t i = 0; i < n; i++) {
            m->rows.words[i] = sm_weigher_word(&w, (uint32_t)i);
            m->rows.n_rows += (uint32_t)__builtin_popcountll(m->rows.words[i]);
        }
        sm_weigher_release(&w);
        selection = &m->rows;
    }
    sm_weigher_init(&m->weigher, x->a, selection, weight, x->threads);
    double per_unit = x->a->bytes_per_unit;
    if (!(per_unit > 0)) { /* without a rate samples are all there is */
        m->of_samples = sm_weight_measure(weight) != SM_MEASURE_BYTE_SECONDS;
        m->unit = "samples";
        m->factor = 1e-6;
    } else if (sm_weight_measure(weight) == SM_MEASURE_BYTES) {
        m->factor = per_unit;
    } else if (sm_weight_measure(weight) == SM_MEASURE_BYTE_SECONDS) {
        m->factor = per_unit / 1e6;
        m->unit = "byte-seconds";
    } else if (sm_weight_measure(weight) == SM_MEASURE_OBJECTS) {
        m->factor = 1.0 / 1024;
        m->unit = "count";
    } else {
        m->of_samples = true;
        m->unit = "samples";
    }
}

void sm_ex_measure_release(struct sm_ex_measure *m) {
    sm_weigher_release(&m->weigher);
    sm_selection_release(&m->rows);
}

double sm_ex_value(const struct sm_ex_measure *m, const struct sm_sum *sum) {
    return m->of_samples ? (double)sum->samples : (double)sum->units * m->factor;
}

static uint64_t rounded(const struct sm_ex_measure *m, const struct sm_sum *sum) {
    if (m->of_samples)
        return sum->samples;
    double value = (double)sum->units * m->factor;
    return value < 9.2e18 ? (uint64_t)llround(value) : INT64_MAX;
}

uint64_t sm_ex_total(const struct sm_ex_measure *m) {
    struct sm_sum sum = sm_weigh(&m->weigher, 0);
    return rounded(m, &sum);
}

uint64_t sm_ex_round(struct sm_ex_rounder *r, const struct sm_sum *sum) {
    r->sum.units += sum->units;
    r->sum.samples += sum->samples;
    uint64_t now = rounded(r->m, &r->sum), value = now - r->told;
    r->told = now;
    return value;
}

/* ---- sums ---- */

struct cell {
    uint32_t node, class_id;
    struct sm_sum sums[SM_EX_MEASURES];
};

static int by_node(const void *left, const void *right) {
    const struct cell *x = left, *y = right;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->class_id < y->class_id ? -1 : x->class_id > y->class_id;
}

void sm_ex_samples_make(struct sm_ex_samples *s, const struct sm_ex_tree *t,
                        const struct sm_ex_measure *measures, uint32_t n_measures, bool by_class) {
    const struct sm_analysis *a = t->x->a;
    struct sm_map numbers = {0};
    struct cell *cells = NULL;
    size_t n = 0, capacity = 0;
    for (uint32_t word = 0; word < ((uint64_t)a->rows.n + 63) / 64; word++) {
        uint64_t any = 0, bits[SM_EX_MEASURES];
        for (uint32_t m = 0; m < n_measures; m++)
            any |= bits[m] = sm_weigher_word(&measures[m].weigher, word);
        for (; any != 0; any &= any - 1) {
            unsigned bit = (unsigned)__builtin_ctzll(any);
            uint32_t row = word * 64 + bit, node = t->of_node[a->rows.node[row]];
            uint32_t class_id = by_class ? a->rows.class_id[row] : 0;
            bool found;
            uint32_t *place =
                sm_map_place(&numbers, node | (uint64_t)class_id << 32, (uint32_t)n, &found);
            uint32_t i = *place - 1;
            if (!found) {
                cells = sm_grow(cells, &capacity, n + 1, sizeof *cells);
                cells[n++] = (struct cell){.node = node, .class_id = class_id};
            }
            for (uint32_t m = 0; m < n_measures; m++) {
                if (bits[m] >> bit & 1)
                    sm_weigher_add(&measures[m].weigher, row, &cells[i].sums[m]);
            }
        }
    }
    sm_map_release(&numbers);
    if (n > 1)
        qsort(cells, n, sizeof *cells, by_node);
    struct sm_ex_rounder rounders[SM_EX_MEASURES] = {0};
    for (uint32_t m = 0; m < n_measures; m++)
        rounders[m].m = &measures[m];
    s->list = sm_alloc_zero(n + 1, sizeof *s->list);
    s->n = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        s->list[i].node = cells[i].node;
        s->list[i].class_id = cells[i].class_id;
        for (uint32_t m = 0; m < n_measures; m++)
            s->list[i].values[m] = sm_ex_round(&rounders[m], &cells[i].sums[m]);
    }
    free(cells);
}

void sm_ex_samples_release(struct sm_ex_samples *s) {
    free(s->list);
    *s = (struct sm_ex_samples){0};
}

static bool is_live(enum sm_weight_kind kind) {
    return kind == SM_WEIGHT_LIVE_AT || kind == SM_WEIGHT_LIVE_END || kind == SM_WEIGHT_LIVE_PEAK ||
           kind == SM_WEIGHT_LIVE_OWN_PEAK;
}

uint32_t sm_ex_heap_measures(struct sm_ex_measure list[SM_EX_MEASURES], const struct sm_export *x,
                             uint32_t *shown) {
    const struct sm_weight objects = {.kind = SM_WEIGHT_OBJECTS};
    const struct sm_weight space = {.kind = SM_WEIGHT_ALLOCATED};
    struct sm_weight live = {.kind = SM_WEIGHT_LIVE_END};
    enum sm_weight_kind kind = x->weight.kind;
    if (is_live(kind))
        live = x->weight;
    sm_ex_measure_make(&list[0], x, &objects, NULL, "alloc_objects");
    sm_ex_measure_make(&list[1], x, &space, NULL, "alloc_space");
    sm_ex_measure_make(&list[2], x, &objects, &live, "inuse_objects");
    sm_ex_measure_make(&list[3], x, &live, NULL, "inuse_space");
    *shown = kind == SM_WEIGHT_OBJECTS ? 0 : is_live(kind) ? 3 : 1;
    if (is_live(kind) || kind == SM_WEIGHT_OBJECTS || kind == SM_WEIGHT_ALLOCATED)
        return 4;
    static const char *const names[] = {
        [SM_WEIGHT_FREED] = "freed_space",          [SM_WEIGHT_PROMOTED] = "promoted_space",
        [SM_WEIGHT_FREED_EARLY] = "early_space",    [SM_WEIGHT_TEMPORARY] = "temporary_space",
        [SM_WEIGHT_LIFETIME] = "lifetime_weighted", [SM_WEIGHT_SAMPLES] = "samples",
    };
    sm_ex_measure_make(&list[4], x, &x->weight, NULL, names[kind]);
    *shown = 4;
    return 5;
}
