/* See callers.h. */
#include "report/callers.h"

#include <stdlib.h>
#include <string.h>

#include "util/map.h"
#include "util/memory.h"

#define MAX_DEPTH 16
/* Frames looked at per stack: enough to leave a deep recursion mostly, bounded for huge ones. */
#define MAX_FRAMES 2048

static uint64_t weight(const struct sm_callers *c, const struct sm_sum *sum) {
    return c->by_rows ? sum->rows : sum->units;
}

/* The nearest node outwards that is shown; 0 = none. */
static uint32_t visible(const struct sm_callers *c, uint32_t node) {
    while (node != 0 && c->spots.key[node] == SM_KEY_HIDDEN)
        node = c->analysis->tree.parent[node];
    return node;
}

void sm_callers_init(struct sm_callers *c, const struct sm_view *places, const struct sm_sum *nodes,
                     bool by_rows,
                     void (*make)(const void *ctx, struct sm_view *v, enum sm_key_kind kind),
                     const void *ctx) {
    *c = (struct sm_callers){
        .analysis = places->analysis, .places = places, .nodes = nodes, .by_rows = by_rows};
    uint32_t n_nodes = c->analysis->tree.n_nodes, n = 0;
    make(ctx, &c->spots, SM_KEY_FRAME);
    make(ctx, &c->functions, SM_KEY_FUNCTION);
    /* The keys of `places` where rows end, by node; frames hidden there are hidden in all views but for
       folded recursion, which differs by key. */
    uint32_t *key = sm_alloc((size_t)n_nodes * sizeof *key);
    c->first = sm_alloc_zero(places->n_keys + 2u, sizeof *c->first);
    for (uint32_t i = 0; i < n_nodes; i++) {
        key[i] =
            places->key[i] != SM_KEY_HIDDEN ? places->key[i] : key[c->analysis->tree.parent[i]];
        uint64_t w = weight(c, &nodes[i]);
        c->whole += w;
        if (w > 0) {
            c->first[key[i] + 2]++;
            n++;
        }
    }
    for (uint32_t k = 2; k < places->n_keys + 2u; k++)
        c->first[k] += c->first[k - 1];
    c->list = sm_alloc_zero(n + 1u, sizeof *c->list);
    for (uint32_t i = 0; i < n_nodes; i++) {
        if (weight(c, &nodes[i]) > 0)
            c->list[c->first[key[i] + 1]++] = i;
    }
    free(key);
}

void sm_callers_release(struct sm_callers *c) {
    sm_view_release(&c->spots);
    sm_view_release(&c->functions);
    free(c->list);
    free(c->first);
    *c = (struct sm_callers){0};
}

/* The tree of callers; node 0 is the place itself. */
struct caller_node {
    uint32_t spot;
    uint32_t first_child, sibling; /* 0 = none */
    struct sm_sum sum;
};

struct caller_tree {
    struct caller_node *nodes;
    size_t n, capacity;
    struct sm_map children; /* parent, spot -> node */
};

static uint32_t add_caller(struct caller_tree *tree, uint32_t parent, uint32_t spot,
                           const struct sm_sum *sum) {
    bool found;
    uint32_t n =
        *sm_map_place(&tree->children, (uint64_t)parent << 32 | spot, (uint32_t)tree->n, &found) -
        1;
    if (!found) {
        tree->nodes = sm_grow(tree->nodes, &tree->capacity, tree->n + 1, sizeof *tree->nodes);
        tree->nodes[tree->n++] =
            (struct caller_node){.spot = spot, .sibling = tree->nodes[parent].first_child};
        tree->nodes[parent].first_child = n;
    }
    sm_sum_add(&tree->nodes[n].sum, sum);
    return n;
}

static void add_stack(struct caller_tree *tree, const struct sm_callers *c, uint32_t leaf,
                      uint32_t key, unsigned max_depth) {
    uint32_t seen[MAX_DEPTH + 1]; /* functions on the way */
    unsigned depth = 0;
    uint32_t at = 0, node = visible(c, leaf);
    seen[0] = c->functions.key[node];
    for (unsigned frames = 0; node != 0 && frames < MAX_FRAMES && depth < max_depth; frames++) {
        node = visible(c, c->analysis->tree.parent[node]);
        uint32_t function = c->functions.key[node];
        bool known = node == 0 || c->places->key[node] == key || function == SM_KEY_HIDDEN;
        for (unsigned i = 0; i <= depth && !known; i++)
            known = seen[i] == function;
        if (known)
            continue;
        at = add_caller(tree, at, c->spots.key[node], &c->nodes[leaf]);
        seen[++depth] = function;
    }
}

struct selection {
    const struct sm_callers *callers;
    struct caller_tree *tree;
    struct sm_caller *list;
    unsigned n, max_lines, max_depth;
    uint64_t whole; /* of the place */
};

static void select_callers(struct selection *s, uint32_t node, unsigned depth) {
    uint64_t below = UINT64_MAX; /* weights in descending order */
    uint32_t last = 0;
    for (unsigned rank = 0; s->n < s->max_lines && depth <= s->max_depth; rank++) {
        uint32_t best = 0;
        uint64_t most = 0;
        for (uint32_t k = s->tree->nodes[node].first_child; k != 0; k = s->tree->nodes[k].sibling) {
            uint64_t w = weight(s->callers, &s->tree->nodes[k].sum);
            bool later = w < below || (w == below && k > last);
            if (later && (best == 0 || w > most || (w == most && k < best))) {
                best = k;
                most = w;
            }
        }
        if (best == 0)
            return;
        double share = (double)most / (double)s->whole;
        if (share < 0.2 && (rank > 0 || share < 0.1))
            return;
        if ((double)most < 0.005 * (double)s->callers->whole && depth > 1)
            return;
        below = most;
        last = best;
        s->list[s->n++] = (struct sm_caller){
            .spot = s->tree->nodes[best].spot, .depth = depth, .sum = s->tree->nodes[best].sum};
        select_callers(s, best, depth + 1);
    }
}

unsigned sm_callers_of(const struct sm_callers *c, uint32_t key, unsigned max_depth,
                       unsigned max_lines, struct sm_caller *list) {
    struct caller_tree tree = {0};
    if (max_depth > MAX_DEPTH)
        max_depth = MAX_DEPTH;
    tree.nodes = sm_grow(NULL, &tree.capacity, 1, sizeof *tree.nodes);
    tree.nodes[0] = (struct caller_node){0};
    tree.n = 1;
    uint64_t whole = 0;
    for (uint32_t i = c->first[key]; i < c->first[key + 1]; i++) {
        whole += weight(c, &c->nodes[c->list[i]]);
        add_stack(&tree, c, c->list[i], key, max_depth);
    }
    struct selection s = {.callers = c,
                          .tree = &tree,
                          .list = list,
                          .max_lines = max_lines,
                          .max_depth = max_depth,
                          .whole = whole};
    if (whole > 0)
        select_callers(&s, 0, 1);
    free(tree.nodes);
    sm_map_release(&tree.children);
    return s.n;
}
