/* From raw rows to an analysis' columns. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/curve.h"
#include "analyze/estimate.h"
#include "analyze/interleave.h"
#include "util/memory.h"
#include "util/parallel.h"

struct arranging {
    struct sm_build *b;
    struct sm_image *im;
    struct sm_analysis *a;
    unsigned threads;
    struct sm_interleaved il;
    /* written by tasks */
    int64_t *block_ns;
    uint32_t *alloc_delta;
    uint32_t *free_order;
    struct sm_vec *wide_deltas; /* by task */
};

static void *add(struct arranging *g, enum sm_section s, size_t n, size_t bytes_each) {
    return sm_image_add(g->im, s, (uint64_t)n * bytes_each);
}

static void add_copy(struct arranging *g, enum sm_section s, const void *data, size_t bytes) {
    void *to = sm_image_add(g->im, s, bytes);
    if (bytes > 0)
        memcpy(to, data, bytes);
}

static void add_vec(struct arranging *g, enum sm_section s, const struct sm_vec *v) {
    add_copy(g, s, v->data, v->used_bytes);
}

/* ---- times ---- */

#define TASK_ROWS (1u << 20) /* a multiple of the block */

static void put_times(void *ctx, unsigned task) {
    struct arranging *g = ctx;
    const uint64_t *ticks = g->il.ticks;
    uint32_t from = task * TASK_ROWS, n = g->il.n_rows;
    uint32_t to = n - from > TASK_ROWS ? from + TASK_ROWS : n;
    uint64_t tick_ns = g->b->tick_ns;
    for (uint32_t i = from; i < to; i++) {
        uint32_t block = i >> SM_ROW_BLOCK_SHIFT, first = block << SM_ROW_BLOCK_SHIFT;
        if (i == first)
            g->block_ns[block] = sm_trace_time_ns(g->b->trace, ticks[i]);
        uint64_t delta = (ticks[i] - ticks[first]) * tick_ns;
        g->alloc_delta[i] = delta < SM_ROW_ESCAPE ? (uint32_t)delta : SM_ROW_ESCAPE;
        if (delta >= SM_ROW_ESCAPE) {
            struct sm_wide w = {.row = i, .value = delta};
            *(struct sm_wide *)sm_vec_push(&g->wide_deltas[task], sizeof w) = w;
        }
    }
}

static void put_frees(void *ctx, unsigned task) {
    struct arranging *g = ctx;
    uint32_t from = task * TASK_ROWS, n = g->il.n_frees;
    uint32_t to = n - from > TASK_ROWS ? from + TASK_ROWS : n;
    for (uint32_t i = from; i < to; i++) {
        uint32_t row = (uint32_t)g->il.frees[i];
        g->free_order[i] =
            g->il.row_numbers == NULL ? row : g->il.row_numbers[g->il.frees[i] >> 32][row];
    }
}

static unsigned n_tasks(uint32_t n) {
    return n / TASK_ROWS + (n % TASK_ROWS != 0);
}

static uint32_t row_number(const struct arranging *g, uint32_t stream, uint32_t local) {
    return g->il.row_numbers == NULL ? local : g->il.row_numbers[stream][local];
}

static int compare_wide(const void *left, const void *right) {
    const struct sm_wide *x = left, *y = right;
    return x->row < y->row ? -1 : x->row > y->row;
}

static uint32_t add_wide(struct arranging *g, enum sm_section s, struct sm_vec *v) {
    uint32_t n = (uint32_t)(v->used_bytes / sizeof(struct sm_wide));
    if (n > 1)
        qsort(v->data, n, sizeof(struct sm_wide), compare_wide);
    add_vec(g, s, v);
    return n;
}

/* The wide values of all streams, by final row. */
static uint32_t add_stream_wides(struct arranging *g, enum sm_section section, bool samples) {
    struct sm_vec all = {0};
    for (uint32_t i = 0; i < g->b->n_streams; i++) {
        const struct sm_vec *v =
            samples ? &g->b->streams[i].wide_samples : &g->b->streams[i].wide_sizes;
        const struct sm_wide *list = v->data;
        for (size_t k = 0; k < v->used_bytes / sizeof *list; k++) {
            struct sm_wide w = {.row = row_number(g, i, list[k].row), .value = list[k].value};
            *(struct sm_wide *)sm_vec_push(&all, sizeof w) = w;
        }
    }
    uint32_t n = add_wide(g, section, &all);
    sm_vec_release(&all);
    return n;
}

static int compare_foreign(const void *left, const void *right) {
    const struct sm_foreign_free *x = left, *y = right;
    return x->row < y->row ? -1 : x->row > y->row;
}

static void add_foreign(struct arranging *g) {
    const struct sm_raw_other_lane *list = g->b->other_lanes.data;
    size_t n = g->b->other_lanes.used_bytes / sizeof *list;
    struct sm_foreign_free *to = add(g, SM_SEC_FOREIGN, n, sizeof *to);
    for (size_t i = 0; i < n; i++)
        to[i] = (struct sm_foreign_free){.row = row_number(g, list[i].stream, list[i].row),
                                         .lane = list[i].lane};
    if (n > 1)
        qsort(to, n, sizeof *to, compare_foreign);
    g->a->rows.n_foreign = (uint32_t)n;
}

static void add_block_frees(struct arranging *g, const uint8_t *frees_before) {
    uint32_t n = g->il.n_rows, total = 0;
    const struct sm_wide *wide = g->il.wide_frees.data;
    uint32_t *to = add(g, SM_SEC_BLOCK_FREES, ((size_t)n >> SM_ROW_BLOCK_SHIFT) + 1, sizeof *to);
    for (uint32_t i = 0; i < n; i++) {
        total += frees_before[i] == SM_ROW_MANY ? (uint32_t)(wide++)->value : frees_before[i];
        if ((i & ((1u << SM_ROW_BLOCK_SHIFT) - 1)) == 0)
            to[i >> SM_ROW_BLOCK_SHIFT] = total;
    }
}

/* ---- units, where byte-sampled rows are among them ---- */

#define BYTE_UNITS 256

static uint64_t units_of_bytes(const struct sm_analysis *a, uint64_t size) {
    double p = sm_byte_probability((double)size, a->byte_interval);
    return (uint64_t)llround(BYTE_UNITS * (p > 0 ? (double)size / p : a->byte_interval));
}

static void add_units(struct arranging *g, const struct sm_row_columns *rows) {
    struct sm_analysis *a = g->a;
    const struct sm_row_class *classes = g->b->classes.data;
    size_t n_classes = g->b->classes.used_bytes / sizeof *classes;
    for (size_t i = 0; i < n_classes; i++)
        a->mixed |= classes[i].byte_sampled;
    a->sample_units = 1;
    if (!a->mixed)
        return;
    double rate = a->meta.sample_rate;
    a->byte_interval = (double)a->meta.native_interval_bytes;
    a->bytes_per_unit = 1.0 / BYTE_UNITS;
    if (rate > 0)
        a->sample_units = (uint64_t)llround(BYTE_UNITS * a->word_bytes / rate);
    uint32_t n = g->il.n_rows;
    uint64_t *units = add(g, SM_SEC_UNITS, n, sizeof *units);
    for (uint32_t i = 0; i < n; i++)
        units[i] = classes[rows->class_id[i]].byte_sampled ? units_of_bytes(a, rows->size[i])
                                                           : rows->samples[i] * a->sample_units;
    for (uint32_t i = 0; i < g->b->n_streams; i++) {
        const struct sm_raw_stream *s = &g->b->streams[i];
        const struct sm_wide *wide = s->wide_sizes.data;
        for (size_t k = 0; k < s->wide_sizes.used_bytes / sizeof *wide; k++) {
            uint32_t row = row_number(g, i, wide[k].row);
            if (classes[rows->class_id[row]].byte_sampled)
                units[row] = units_of_bytes(a, wide[k].value);
        }
        wide = s->wide_samples.data;
        for (size_t k = 0; k < s->wide_samples.used_bytes / sizeof *wide; k++)
            units[row_number(g, i, wide[k].row)] = wide[k].value * a->sample_units;
    }
}

static void add_rows(struct arranging *g, const uint32_t *node_of_code) {
    struct sm_build *b = g->b;
    size_t n = b->n_rows;
    struct sm_row_columns to = {.promote_age = add(g, SM_SEC_PROMOTE_AGE, n, 4),
                                .free_age = add(g, SM_SEC_FREE_AGE, n, 4),
                                .size = add(g, SM_SEC_SIZE, n, 4),
                                .node = add(g, SM_SEC_NODE, n, 4),
                                .class_id = add(g, SM_SEC_CLASS, n, 4),
                                .samples = add(g, SM_SEC_SAMPLES, n, 1),
                                .frees_before = add(g, SM_SEC_FREES_BEFORE, n, 1)};
    sm_interleave(&g->il, b, node_of_code, &to, g->threads);
    g->block_ns = add(g, SM_SEC_BLOCK_NS, (n >> SM_ROW_BLOCK_SHIFT) + 1, 8);
    g->alloc_delta = add(g, SM_SEC_ALLOC_DELTA, n, 4);
    g->free_order = add(g, SM_SEC_FREE_ORDER, g->il.n_frees, 4);
    unsigned tasks = n_tasks(g->il.n_rows);
    g->wide_deltas = sm_alloc_zero(tasks, sizeof *g->wide_deltas);
    sm_parallel(tasks, g->threads, put_times, g);
    sm_parallel(n_tasks(g->il.n_frees), g->threads, put_frees, g);
    struct sm_vec deltas = {0};
    for (unsigned i = 0; i < tasks; i++) {
        size_t bytes = g->wide_deltas[i].used_bytes;
        if (bytes > 0)
            memcpy(sm_vec_push(&deltas, bytes), g->wide_deltas[i].data, bytes);
        sm_vec_release(&g->wide_deltas[i]);
    }
    free(g->wide_deltas);
    struct sm_rows *r = &g->a->rows;
    r->n = g->il.n_rows;
    r->n_freed = g->il.n_frees;
    r->n_wide_deltas = add_wide(g, SM_SEC_WIDE_DELTAS, &deltas);
    sm_vec_release(&deltas);
    r->n_wide_sizes = add_stream_wides(g, SM_SEC_WIDE_SIZES, false);
    r->n_wide_samples = add_stream_wides(g, SM_SEC_WIDE_SAMPLES, true);
    r->n_wide_frees = add_wide(g, SM_SEC_WIDE_FREES, &g->il.wide_frees);
    r->n_wide_ages = (uint32_t)(b->wide_ages.used_bytes / sizeof(uint64_t));
    add_vec(g, SM_SEC_WIDE_AGES, &b->wide_ages);
    add_units(g, &to);
    add_block_frees(g, to.frees_before);
    add_foreign(g);
}

/* ---- the rest ---- */

static void add_tree(struct arranging *g, struct sm_tree_columns *c, const struct sm_build *b) {
    uint8_t *flags = c->flags.data;
    for (uint32_t i = 0; i < b->n_streams; i++) {
        const struct sm_raw_row *rows = b->streams[i].rows.data;
        for (uint32_t k = 0; k < b->streams[i].n_rows; k++)
            flags[c->of_code[rows[k].code_node]] |= SM_NODE_SITE;
    }
    g->a->tree.n_nodes = c->n;
    add_vec(g, SM_SEC_TREE_PARENT, &c->parent);
    add_vec(g, SM_SEC_TREE_END, &c->end);
    add_vec(g, SM_SEC_TREE_FRAME, &c->frame);
    add_vec(g, SM_SEC_TREE_FUNCTION, &c->function);
    add_vec(g, SM_SEC_TREE_DEPTH, &c->depth);
    add_vec(g, SM_SEC_TREE_FLAGS, &c->flags);
}

static void add_lanes(struct arranging *g) {
    struct sm_trace *t = g->b->trace;
    uint32_t n = sm_trace_n_owners(t);
    struct sm_lane *to = add(g, SM_SEC_LANES, n, sizeof *to);
    for (uint32_t i = 0; i < n; i++) {
        const struct sm_owner *o = sm_trace_owner(t, i);
        to[i] = (struct sm_lane){.stream = o->stream,
                                 .kind = o->kind,
                                 .domain = o->domain,
                                 .tid = o->tid,
                                 .incarnation = o->incarnation,
                                 .name = sm_texts_add(&g->b->texts, o->name)};
    }
    g->a->n_lanes = n;
}

static int compare_counters(const void *left, const void *right) {
    const struct sm_counter_sample *x = left, *y = right;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->counter < y->counter ? -1 : x->counter > y->counter;
}

static int compare_marks(const void *left, const void *right) {
    const struct sm_trace_mark *x = left, *y = right;
    return x->ns < y->ns ? -1 : x->ns > y->ns;
}

static void add_sorted(struct arranging *g, enum sm_section s, struct sm_vec *v, size_t bytes_each,
                       int (*compare)(const void *, const void *), uint32_t *n) {
    *n = (uint32_t)(v->used_bytes / bytes_each);
    if (*n > 1)
        qsort(v->data, *n, bytes_each, compare);
    add_vec(g, s, v);
}

/* Losses are complete when the cursor has ended; a folded tree is one more. */
static void add_losses_and_meta(struct arranging *g) {
    struct sm_build *b = g->b;
    const struct sm_loss *losses;
    size_t n = sm_trace_losses(b->trace, &losses);
    uint32_t *ids = add(g, SM_SEC_META_TEXTS, SM_IMAGE_META_STRINGS + n, sizeof *ids);
    for (uint32_t i = 0; i < SM_IMAGE_META_STRINGS; i++) {
        size_t bytes;
        const char *text = sm_image_meta_string(&g->a->meta, i, &bytes);
        ids[i] = sm_texts_add_bytes(&b->texts, text, bytes);
    }
    for (size_t i = 0; i < n; i++)
        ids[SM_IMAGE_META_STRINGS + i] = sm_texts_add(&b->texts, losses[i].detail);
    add_copy(g, SM_SEC_LOSSES, losses, n * sizeof *losses);
    g->a->n_losses = n;
}

static void add_names(struct arranging *g) {
    struct sm_build *b = g->b;
    g->a->n_frames = (uint32_t)(b->places.frames.used_bytes / sizeof(struct sm_frame));
    g->a->n_functions = (uint32_t)(b->places.functions.used_bytes / sizeof(struct sm_function));
    g->a->n_classes = (uint32_t)(b->classes.used_bytes / sizeof(struct sm_row_class));
    add_vec(g, SM_SEC_FRAMES, &b->places.frames);
    add_vec(g, SM_SEC_FUNCTIONS, &b->places.functions);
    add_vec(g, SM_SEC_CLASSES, &b->classes);
    g->a->texts_bytes = b->texts.blob.used_bytes;
    add_vec(g, SM_SEC_TEXTS, &b->texts.blob);
}

enum sm_status sm_build_arrange(struct sm_build *b, struct sm_image *im, struct sm_analysis *a,
                                unsigned threads, struct sm_error *err) {
    struct arranging g = {.b = b, .im = im, .a = a, .threads = threads};
    const struct sm_meta *meta = sm_trace_meta(b->trace);
    a->meta = *meta;
    a->end = *sm_trace_end(b->trace);
    a->trace_bytes = sm_trace_bytes(b->trace);
    const char *tail;
    a->used_tail = sm_trace_used_tail(b->trace, &tail);
    a->word_bytes = meta->word_bits / 8;
    a->n_events = b->n_events;
    a->n_promoted = b->n_promoted;
    a->first_ns = b->any ? sm_trace_time_ns(b->trace, b->first_ticks) : 0;
    a->last_ns = b->any ? sm_trace_time_ns(b->trace, b->last_ticks) : 0;
    if (a->end.present && sm_trace_time_ns(b->trace, a->end.end_ticks) > a->last_ns)
        a->last_ns = sm_trace_time_ns(b->trace, a->end.end_ticks);
    a->bytes_per_unit = meta->sample_rate > 0 ? a->word_bytes / meta->sample_rate : NAN;

    sm_places_of_trace(&b->places, b->trace);
    struct sm_tree_columns tree = {0};
    sm_tree_finish(&tree, &b->codes, &b->places);
    add_rows(&g, tree.of_code);
    add_tree(&g, &tree, b);
    sm_tree_columns_release(&tree);
    add_lanes(&g);
    add_losses_and_meta(&g);
    add_sorted(&g, SM_SEC_COUNTERS, &b->counters, sizeof(struct sm_counter_sample),
               compare_counters, &a->n_counters);
    add_sorted(&g, SM_SEC_MARKS, &b->marks, sizeof(struct sm_trace_mark), compare_marks,
               &a->n_marks);
    add_names(&g);
    sm_interleaved_release(&g.il, b->n_streams);
    sm_image_connect(im, a);
    sm_analysis_find_base(a);
    a->peak = sm_selection_peak(a, NULL, threads);
    return SM_OK;
}
