/* See weight.h: which rows count and what they add. */
#include "analyze/weight.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/curve.h"
#include "analyze/walk.h"
#include "util/memory.h"
#include "util/parallel.h"

#define OBJECT_UNITS 1024.0
#define SCALE_WORDS 4096u

static size_t n_words(const struct sm_analysis *a) {
    return ((size_t)a->rows.n + 63) / 64;
}

static void set_bit(uint64_t *words, uint32_t row) {
    words[row >> 6] |= (uint64_t)1 << (row & 63);
}

/* ---- rows that count ---- */

/* Allocated up to the moment's row, and not among the ends before it. */
static uint64_t *alive_at(const struct sm_analysis *a, const struct sm_peak *moment) {
    uint64_t *words = sm_alloc_zero(n_words(a) + 1, sizeof *words);
    if (moment->row == UINT32_MAX)
        return words;
    uint32_t n = moment->row + 1;
    memset(words, 0xff, n / 64 * sizeof *words);
    if (n % 64 != 0)
        words[n / 64] = ((uint64_t)1 << n % 64) - 1;
    for (uint32_t k = 0; k < moment->freed; k++) {
        uint32_t row = a->rows.free_order[k];
        words[row >> 6] &= ~((uint64_t)1 << (row & 63));
    }
    return words;
}

/* Freed before so much more was allocated, of what counts without a filter. */
static uint64_t *soon_freed(const struct sm_analysis *a, const struct sm_weight *weight) {
    uint64_t *words = sm_alloc_zero(n_words(a) + 1, sizeof *words);
    bool bytes = weight->temporary_by == SM_TEMPORARY_BYTES;
    uint64_t *sums = sm_alloc((size_t)a->rows.n * sizeof *sums); /* up to and with a row */
    double per_unit = a->bytes_per_unit > 0 ? a->bytes_per_unit : 1;
    double most = (double)weight->limit / per_unit;
    uint64_t sum = 0, limit = most < 1e19 ? (uint64_t)most : UINT64_MAX;
    if (!bytes)
        limit = weight->limit;
    struct sm_chunks all = {.n = 1, .blocks_each = UINT32_MAX >> SM_ROW_BLOCK_SHIFT};
    struct sm_walk walk;
    for (sm_walk_begin(&walk, a, &all, 0); sm_walk_row(&walk);) {
        for (uint32_t k = walk.free_from; k < walk.free_to; k++) {
            uint32_t row = a->rows.free_order[k];
            if (sum - sums[row] <= limit)
                set_bit(words, row);
        }
        if (walk.row == UINT32_MAX)
            break;
        if (sm_selected(&a->base, walk.row))
            sum += bytes ? sm_row_units(a, walk.row) : 1;
        sums[walk.row] = sum;
    }
    free(sums);
    return words;
}

/* How many blocks one that was seen stands for: 1 / (1 - (1 - rate)^words), header included. */
static double scale_of(const struct sm_analysis *a, double words) {
    double rate = a->meta.sample_rate;
    if (!(rate > 0 && rate < 1))
        return 1;
    return 1 / -expm1(words * log1p(-rate));
}

void sm_weigher_init(struct sm_weigher *w, const struct sm_analysis *a,
                     const struct sm_selection *s, const struct sm_weight *weight,
                     unsigned threads) {
    s = sm_selection_or_base(s, a);
    *w = (struct sm_weigher){.analysis = a,
                             .selection = s->words != NULL ? s : NULL,
                             .weight = *weight,
                             .plain = weight->kind != SM_WEIGHT_LIFETIME &&
                                      weight->kind != SM_WEIGHT_OBJECTS &&
                                      (weight->kind != SM_WEIGHT_SAMPLES || !a->mixed),
                             .sample_variance = (1 - a->meta.sample_rate) *
                                                (double)a->sample_units * (double)a->sample_units,
                             .moment = a->peak};
    switch (weight->kind) {
    case SM_WEIGHT_LIVE_OWN_PEAK:
        w->moment = sm_selection_peak(a, s, threads);
        w->members = alive_at(a, &w->moment);
        break;
    case SM_WEIGHT_LIVE_PEAK:
        w->members = alive_at(a, &w->moment);
        break;
    case SM_WEIGHT_TEMPORARY:
        if (weight->temporary_by != SM_TEMPORARY_NS)
            w->members = soon_freed(a, weight);
        break;
    case SM_WEIGHT_OBJECTS:
        w->scale = sm_alloc(SCALE_WORDS * sizeof *w->scale);
        for (uint32_t i = 0; i < SCALE_WORDS; i++)
            w->scale[i] = scale_of(a, i);
        break;
    default:
        break;
    }
}

void sm_weigher_release(struct sm_weigher *w) {
    free(w->members);
    free(w->scale);
    *w = (struct sm_weigher){0};
}

static inline bool counts(const struct sm_weigher *w, uint32_t row) {
    const struct sm_analysis *a = w->analysis;
    uint32_t free_age = a->rows.free_age[row];
    int64_t at;
    switch (w->weight.kind) {
    case SM_WEIGHT_LIVE_AT:
        at = sm_row_alloc_ns(a, row);
        return at <= w->weight.at_ns &&
               (free_age == SM_ROW_NEVER || at + sm_row_age(a, free_age) > w->weight.at_ns);
    case SM_WEIGHT_LIVE_END:
        return free_age == SM_ROW_NEVER;
    case SM_WEIGHT_FREED:
        return free_age != SM_ROW_NEVER;
    case SM_WEIGHT_PROMOTED:
        return a->rows.promote_age[row] != SM_ROW_NEVER;
    case SM_WEIGHT_FREED_EARLY:
        return free_age != SM_ROW_NEVER && a->rows.promote_age[row] == SM_ROW_NEVER;
    case SM_WEIGHT_TEMPORARY:
        return free_age != SM_ROW_NEVER && (uint64_t)sm_row_age(a, free_age) <= w->weight.limit;
    default:
        return true;
    }
}

/* Allocation times ascend, so that a moment is a row; ages decide the rest. */
static uint64_t ages_word(const struct sm_weigher *w, uint32_t word) {
    uint32_t from = word * 64, n = w->analysis->rows.n - from;
    uint64_t bits = 0;
    if (n > 64)
        n = 64;
    for (uint32_t i = 0; i < n; i++)
        bits |= (uint64_t)counts(w, from + i) << i;
    return bits;
}

static uint64_t never_freed_word(const struct sm_weigher *w, uint32_t word) {
    const uint32_t *ages = w->analysis->rows.free_age + word * 64;
    uint32_t n = w->analysis->rows.n - word * 64;
    uint64_t bits = 0;
    if (n > 64)
        n = 64;
    for (uint32_t i = 0; i < n; i++)
        bits |= (uint64_t)(ages[i] == SM_ROW_NEVER) << i;
    return bits;
}

static uint64_t all_word(const struct sm_weigher *w, uint32_t word) {
    uint32_t n = w->analysis->rows.n - word * 64;
    return n >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1;
}

uint64_t sm_weigher_word(const struct sm_weigher *w, uint32_t word) {
    uint64_t selected = w->selection == NULL ? ~(uint64_t)0 : w->selection->words[word];
    if (selected == 0)
        return 0;
    if (w->members != NULL)
        return selected & w->members[word];
    switch (w->weight.kind) {
    case SM_WEIGHT_ALLOCATED:
    case SM_WEIGHT_LIFETIME:
    case SM_WEIGHT_SAMPLES:
    case SM_WEIGHT_OBJECTS:
        return selected & all_word(w, word);
    case SM_WEIGHT_LIVE_END:
        return selected & never_freed_word(w, word);
    case SM_WEIGHT_FREED:
        return selected & all_word(w, word) & ~never_freed_word(w, word);
    default:
        return selected & ages_word(w, word);
    }
}

bool sm_weigher_takes(const struct sm_weigher *w, uint32_t row) {
    if (!sm_selected(w->selection, row))
        return false;
    if (w->members != NULL)
        return (w->members[row >> 6] >> (row & 63) & 1) != 0;
    return counts(w, row);
}

/* ---- what they add ---- */

static uint64_t saturating_add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void add_lifetime(const struct sm_analysis *a, uint32_t row, struct sm_sum *to) {
    uint32_t age = a->rows.free_age[row];
    int64_t ns = age == SM_ROW_NEVER ? a->last_ns - sm_row_alloc_ns(a, row) : sm_row_age(a, age);
    uint64_t us = ns > 0 ? (uint64_t)ns / 1000 : 0, product;
    if (__builtin_mul_overflow(sm_row_units(a, row), us, &product))
        product = UINT64_MAX;
    to->units = saturating_add(to->units, product);
    double rate = a->meta.sample_rate;
    double each = a->mixed ? sm_row_variance(a, row)
                           : (double)sm_row_samples(a, row) * (rate > 0 ? 1 - rate : 1);
    to->variance += each * (double)us * (double)us;
}

static void add_object(const struct sm_weigher *w, uint32_t row, struct sm_sum *to) {
    const struct sm_analysis *a = w->analysis;
    const struct sm_row_class *c = &a->classes[a->rows.class_id[row]];
    uint64_t bytes = sm_row_bytes(a, row);
    double scale;
    if (c->byte_sampled) {
        double p = sm_byte_probability((double)bytes, a->byte_interval);
        scale = p > 0 ? 1 / p : 1; /* no sampling finds a block of 0 bytes */
    } else {
        /* What Memprof counts: the words, and the header of a block in the OCaml heap. */
        uint64_t words = (bytes + a->word_bytes - 1) / a->word_bytes + !c->bytes;
        scale = words < SCALE_WORDS ? w->scale[words] : scale_of(a, (double)words);
    }
    to->units += (uint64_t)llround(scale * OBJECT_UNITS);
    to->variance += scale * (scale - 1) * OBJECT_UNITS * OBJECT_UNITS;
}

void sm_weigher_add(const struct sm_weigher *w, uint32_t row, struct sm_sum *to) {
    const struct sm_analysis *a = w->analysis;
    uint64_t samples = sm_row_samples(a, row);
    to->rows++;
    to->samples += samples;
    switch (w->weight.kind) {
    case SM_WEIGHT_LIFETIME:
        add_lifetime(a, row, to);
        return;
    case SM_WEIGHT_OBJECTS:
        add_object(w, row, to);
        return;
    case SM_WEIGHT_SAMPLES:
        to->units += samples;
        return;
    default:
        to->units += sm_row_units(a, row);
        if (a->mixed)
            to->variance += sm_row_variance(a, row);
    }
}

/* ---- sums ---- */

enum target { TOTAL, NODES, CLASSES };

struct weighing {
    const struct sm_weigher *w;
    enum target target;
    size_t n_cells;
    unsigned n_tasks;
    struct sm_sum *cells; /* tasks x n_cells */
};

static void weigh_task(void *ctx, unsigned task) {
    const struct weighing *g = ctx;
    const struct sm_weigher *w = g->w;
    const struct sm_rows *r = &w->analysis->rows;
    struct sm_sum *cells = g->cells + task * g->n_cells;
    size_t words = n_words(w->analysis);
    size_t from = words * task / g->n_tasks, to = words * (task + 1) / g->n_tasks;
    const uint32_t *cell_of = g->target == NODES     ? r->node
                              : g->target == CLASSES ? r->class_id
                                                     : NULL;
    for (size_t word = from; word < to; word++) {
        uint64_t bits = sm_weigher_word(w, (uint32_t)word);
        while (bits != 0) {
            uint32_t row = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits);
            bits &= bits - 1;
            sm_weigher_add_row(w, row, &cells[cell_of != NULL ? cell_of[row] : 0]);
        }
    }
}

static struct sm_sum *weigh(const struct sm_weigher *w, enum target target, size_t n_cells,
                            unsigned threads) {
    if (threads == 0)
        threads = sm_processors();
    /* Each task has its own cells: more tasks than rows to fill them would only add cells up. */
    size_t useful = 1 + w->analysis->rows.n / (65536 + 2 * n_cells);
    struct weighing g = {.w = w,
                         .target = target,
                         .n_cells = n_cells,
                         .n_tasks = threads < useful ? threads : (unsigned)useful};
    g.cells = sm_alloc_zero(n_cells * g.n_tasks, sizeof *g.cells);
    sm_parallel(g.n_tasks, threads, weigh_task, &g);
    for (unsigned t = 1; t < g.n_tasks; t++) {
        for (size_t i = 0; i < n_cells; i++)
            sm_sum_add(&g.cells[i], &g.cells[t * n_cells + i]);
    }
    return g.cells;
}

struct sm_sum sm_weigh(const struct sm_weigher *w, unsigned threads) {
    struct sm_sum *cells = weigh(w, TOTAL, 1, threads), sum = cells[0];
    free(cells);
    return sum;
}

/* Grouping by call stack is one cache miss a row, since a tree has as many nodes as fit no cache. Where rows
   only count samples, a cell is therefore one word, rows above samples, and nodes are asked for ahead of their use. */
#define ROW_COUNT ((uint64_t)1 << 32)
#define AHEAD 24u

struct counting {
    const struct sm_weigher *w;
    size_t n_nodes;
    unsigned n_tasks, n_pieces;
    uint64_t *cells; /* tasks x n_nodes */
    struct sm_sum *sums;
};

static bool can_count(const struct sm_weigher *w) {
    const struct sm_analysis *a = w->analysis;
    return a->rows.units == NULL && !a->mixed && w->weight.kind != SM_WEIGHT_LIFETIME &&
           w->weight.kind != SM_WEIGHT_OBJECTS && a->rows.n_wide_samples == 0 &&
           a->rows.n < UINT32_MAX / SM_ROW_MANY;
}

static void count_task(void *ctx, unsigned task) {
    const struct counting *g = ctx;
    const uint32_t *node = g->w->analysis->rows.node;
    const uint8_t *samples = g->w->analysis->rows.samples;
    uint32_t last = g->w->analysis->rows.n - 1;
    uint64_t *cells = g->cells + task * g->n_nodes;
    size_t words = n_words(g->w->analysis);
    size_t from = words * task / g->n_tasks, to = words * (task + 1) / g->n_tasks;
    for (size_t word = from; word < to; word++) {
        uint64_t bits = sm_weigher_word(g->w, (uint32_t)word);
        uint32_t first = (uint32_t)(word * 64);
        if (bits == UINT64_MAX) {
            for (uint32_t row = first; row < first + 64; row++) {
                __builtin_prefetch(&cells[node[row + AHEAD < last ? row + AHEAD : last]], 1);
                cells[node[row]] += ROW_COUNT + samples[row];
            }
            continue;
        }
        for (uint64_t left = bits; left != 0; left &= left - 1)
            __builtin_prefetch(&cells[node[first + (uint32_t)__builtin_ctzll(left)]], 1);
        for (; bits != 0; bits &= bits - 1) {
            uint32_t row = first + (uint32_t)__builtin_ctzll(bits);
            cells[node[row]] += ROW_COUNT + samples[row];
        }
    }
}

/* Adds up the tasks' cells of a piece of the nodes. */
static void sum_task(void *ctx, unsigned task) {
    const struct counting *g = ctx;
    size_t from = g->n_nodes * task / g->n_pieces, to = g->n_nodes * (task + 1) / g->n_pieces;
    for (size_t i = from; i < to; i++) {
        uint64_t cell = g->cells[i];
        for (unsigned t = 1; t < g->n_tasks; t++)
            cell += g->cells[t * g->n_nodes + i];
        uint64_t samples = cell & (ROW_COUNT - 1);
        g->sums[i] = (struct sm_sum){.units = samples, .samples = samples, .rows = cell >> 32};
    }
}

static struct sm_sum *count_nodes(const struct sm_weigher *w, unsigned threads) {
    struct counting g = {.w = w, .n_nodes = w->analysis->tree.n_nodes};
    if (threads == 0)
        threads = sm_processors();
    size_t useful = 1 + w->analysis->rows.n / (65536 + g.n_nodes / 2);
    g.n_tasks = threads < useful ? threads : (unsigned)useful;
    g.n_pieces = g.n_nodes < 65536 ? 1 : 4 * threads;
    g.cells = sm_alloc_zero(g.n_nodes * g.n_tasks, sizeof *g.cells);
    g.sums = sm_alloc(g.n_nodes * sizeof *g.sums);
    sm_parallel(g.n_tasks, threads, count_task, &g);
    sm_parallel(g.n_pieces, threads, sum_task, &g);
    free(g.cells);
    return g.sums;
}

struct sm_sum *sm_weigh_nodes(const struct sm_weigher *w, unsigned threads) {
    if (can_count(w))
        return count_nodes(w, threads);
    return weigh(w, NODES, w->analysis->tree.n_nodes, threads);
}

struct sm_sum *sm_weigh_classes(const struct sm_weigher *w, unsigned threads) {
    uint32_t n = w->analysis->n_classes;
    return weigh(w, CLASSES, n > 0 ? n : 1, threads);
}
