/* See merged.h: heavy fragments.

   An occurrence of a fragment is a node at which it ends. Whoever contains a fragment contains its beginning, so
   that a heavy fragment's beginnings are heavy: extending heavy ones by one visible callee finds all that matter. The weight of
   a fragment is that of the union of its occurrences' subtrees; in preorder these are intervals, nested or
   apart, and a nested one adds nothing (recursion). */
#include <stdlib.h>
#include <string.h>

#include "analyze/merged.h"
#include "util/memory.h"

struct heavy {
    uint32_t *keys;
    uint32_t n_keys;
    uint32_t *ends; /* occurrences, ascending */
    size_t n_ends;
    struct sm_sum total;
};

struct search {
    const struct sm_view *v;
    const struct sm_calltree *t;
    struct sm_sum *total;
    uint64_t min_units;
    double tolerance;
    uint32_t max_length, max_fragments;
    struct heavy *stack;
    size_t n_stack, stack_capacity;
    struct sm_fragments *f;
    size_t capacity;
};

static struct sm_sum union_of(const struct search *s, const uint32_t *ends, size_t n) {
    struct sm_sum sum = {0};
    uint32_t covered = 0;
    for (size_t i = 0; i < n; i++) {
        if (ends[i] < covered)
            continue;
        sm_sum_add(&sum, &s->total[ends[i]]);
        covered = s->t->end[ends[i]];
    }
    return sum;
}

struct pair {
    uint32_t key, node;
};

static int compare_pairs(const void *left, const void *right) {
    const struct pair *x = left, *y = right;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* The visible callees of the occurrences, sorted by key, then node; each node once. */
static struct pair *callees(const struct search *s, const struct heavy *h, size_t *n) {
    struct pair *pairs = NULL;
    size_t capacity = 0;
    *n = 0;
    for (size_t i = 0; i < h->n_ends; i++) {
        uint32_t node = h->ends[i];
        for (uint32_t c = node + 1; c < s->t->end[node];) {
            uint32_t key = s->v->key[c];
            if (s->total[c].units == 0) {
                c = s->t->end[c];
            } else if (key == SM_KEY_HIDDEN) {
                c++;
            } else {
                pairs = sm_grow(pairs, &capacity, *n + 1, sizeof *pairs);
                pairs[(*n)++] = (struct pair){key, c};
                c = s->t->end[c];
            }
        }
    }
    if (*n > 1)
        qsort(pairs, *n, sizeof *pairs, compare_pairs);
    return pairs;
}

static void push(struct search *s, const struct heavy *base, uint32_t key, const struct pair *pairs,
                 size_t n, const struct sm_sum *total) {
    struct heavy h = {.n_keys = base->n_keys + 1, .n_ends = n, .total = *total};
    h.keys = sm_alloc(h.n_keys * sizeof *h.keys);
    if (base->n_keys > 0)
        memcpy(h.keys, base->keys, base->n_keys * sizeof *h.keys);
    h.keys[base->n_keys] = key;
    h.ends = sm_alloc(n * sizeof *h.ends);
    for (size_t i = 0; i < n; i++)
        h.ends[i] = pairs[i].node;
    s->stack = sm_grow(s->stack, &s->stack_capacity, s->n_stack + 1, sizeof *s->stack);
    s->stack[s->n_stack++] = h;
}

/* Pushes the heavy ones among runs of one key; returns the largest weight. */
static uint64_t push_runs(struct search *s, const struct heavy *base, const struct pair *pairs,
                          size_t n) {
    uint64_t largest = 0;
    uint32_t *ends = sm_alloc((n + 1) * sizeof *ends);
    for (size_t i = 0; i < n; i++)
        ends[i] = pairs[i].node;
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from; to < n && pairs[to].key == pairs[from].key; to++) {
        }
        struct sm_sum total = union_of(s, ends + from, to - from);
        if (total.units > largest)
            largest = total.units;
        if (total.units >= s->min_units)
            push(s, base, pairs[from].key, pairs + from, to - from, &total);
    }
    free(ends);
    return largest;
}

/* The visible callers of the fragment's occurrences, sorted; those that begin a stack have none. */
static struct pair *callers(const struct search *s, const struct heavy *h, size_t *n) {
    struct pair *pairs = sm_alloc((h->n_ends + 1) * sizeof *pairs);
    *n = 0;
    for (size_t i = 0; i < h->n_ends; i++) {
        uint32_t node = h->ends[i], left = h->n_keys;
        while (node != 0) {
            left -= s->v->key[node] != SM_KEY_HIDDEN;
            node = s->t->parent[node];
            if (left == 0)
                break;
        }
        while (node != 0 && s->v->key[node] == SM_KEY_HIDDEN)
            node = s->t->parent[node];
        if (node != 0)
            pairs[(*n)++] = (struct pair){s->v->key[node], h->ends[i]};
    }
    if (*n > 1)
        qsort(pairs, *n, sizeof *pairs, compare_pairs);
    return pairs;
}

/* The weight of the heaviest fragment that has one more caller. */
static uint64_t heaviest_run(const struct search *s, const struct pair *pairs, size_t n) {
    uint32_t *ends = sm_alloc((n + 1) * sizeof *ends);
    uint64_t largest = 0;
    for (size_t i = 0; i < n; i++)
        ends[i] = pairs[i].node;
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from; to < n && pairs[to].key == pairs[from].key; to++) {
        }
        struct sm_sum total = union_of(s, ends + from, to - from);
        if (total.units > largest)
            largest = total.units;
    }
    free(ends);
    return largest;
}

/* A fragment that is always called by the same function lies, with all that extends it, in fragments of the same
   weight that have that caller too: looking further would only find parts of those. */
static void extend(struct search *s, struct heavy *h) {
    size_t n_callers, n;
    struct pair *above = callers(s, h, &n_callers);
    bool one_caller = n_callers == h->n_ends && above[0].key == above[n_callers - 1].key;
    uint64_t below = 0;
    if (!one_caller && h->n_keys < s->max_length) {
        struct pair *pairs = callees(s, h, &n);
        below = push_runs(s, h, pairs, n);
        free(pairs);
    }
    double close = (1 - s->tolerance) * (double)h->total.units;
    bool maximal =
        !one_caller && (double)below < close && (double)heaviest_run(s, above, n_callers) < close;
    free(above);
    struct sm_fragments *f = s->f;
    f->list = sm_grow(f->list, &s->capacity, f->n + 1u, sizeof *f->list);
    f->list[f->n++] = (struct sm_fragment){
        .keys = h->keys, .n_keys = h->n_keys, .total = h->total, .maximal = maximal};
    free(h->ends);
}

static void first_keys(struct search *s, const struct sm_sum *nodes) {
    uint32_t n_nodes = s->t->n_nodes;
    struct pair *pairs = NULL;
    size_t n = 0, capacity = 0;
    struct sm_key_sum *sums = sm_view_sums(s->v, nodes);
    for (uint32_t i = 1; i < n_nodes; i++) {
        uint32_t key = s->v->key[i];
        if (s->total[i].units == 0 || key == SM_KEY_HIDDEN || sums[key].total.units < s->min_units)
            continue;
        pairs = sm_grow(pairs, &capacity, n + 1, sizeof *pairs);
        pairs[n++] = (struct pair){key, i};
    }
    free(sums);
    if (n > 1)
        qsort(pairs, n, sizeof *pairs, compare_pairs);
    static const struct heavy empty;
    push_runs(s, &empty, pairs, n);
    free(pairs);
}

static int by_weight(const void *left, const void *right) {
    const struct sm_fragment *x = left, *y = right;
    if (x->total.units != y->total.units)
        return x->total.units > y->total.units ? -1 : 1;
    if (x->n_keys != y->n_keys)
        return x->n_keys > y->n_keys ? -1 : 1;
    return memcmp(x->keys, y->keys, x->n_keys * sizeof *x->keys);
}

void sm_fragments_find(struct sm_fragments *f, const struct sm_view *v, const struct sm_sum *nodes,
                       uint64_t min_units, double tolerance, uint32_t max_length,
                       uint32_t max_fragments) {
    *f = (struct sm_fragments){.complete = true};
    struct search s = {.v = v,
                       .t = &v->analysis->tree,
                       .total = sm_subtree_sums(v->analysis, nodes),
                       .min_units = min_units > 0 ? min_units : 1,
                       .tolerance = tolerance,
                       .max_length = max_length,
                       .max_fragments = max_fragments,
                       .f = f};
    first_keys(&s, nodes);
    while (s.n_stack > 0 && f->n < max_fragments) {
        struct heavy h = s.stack[--s.n_stack];
        extend(&s, &h);
    }
    f->complete = s.n_stack == 0;
    while (s.n_stack > 0) {
        s.n_stack--;
        free(s.stack[s.n_stack].keys);
        free(s.stack[s.n_stack].ends);
    }
    free(s.stack);
    free(s.total);
    if (f->n > 1)
        qsort(f->list, f->n, sizeof *f->list, by_weight);
}

void sm_fragments_release(struct sm_fragments *f) {
    for (uint32_t i = 0; i < f->n; i++)
        free(f->list[i].keys);
    free(f->list);
    *f = (struct sm_fragments){0};
}

struct sm_sum sm_fragment_sum(const struct sm_view *v, const struct sm_sum *nodes,
                              const uint32_t *keys, uint32_t n_keys) {
    struct sm_merged m;
    struct sm_merge_options o = {
        .focus = keys, .n_focus = n_keys, .min_units = UINT64_MAX, .direction = SM_CALLEES};
    sm_merged_make(&m, v, nodes, &o);
    struct sm_sum sum = m.nodes[0].total;
    sm_merged_release(&m);
    return sum;
}
