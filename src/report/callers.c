/* See callers.h. */
#include "report/callers.h"

#include <stdlib.h>
#include <string.h>

#include "util/memory.h"

#define MAX_DEPTH 16
/* Frames looked at per stack: enough to leave a deep recursion mostly, bounded for huge ones. */
#define MAX_FRAMES 2048

static uint32_t group_of_leaf(const struct sm_grouping *g, size_t leaf) {
    const uint32_t *spots;
    uint32_t n = sm_grouping_spots(g, g->profile->leaves[leaf].key, &spots);
    return g->spots[spots[n - 1]].group;
}

void sm_leaf_index_make(struct sm_leaf_index *index, const struct sm_grouping *g) {
    size_t n = g->profile->n_leaves;
    index->first = sm_alloc_zero(g->n_groups + 2, sizeof *index->first);
    index->leaves = sm_alloc_zero(n, sizeof *index->leaves);
    for (size_t i = 0; i < n; i++)
        index->first[group_of_leaf(g, i) + 2]++;
    for (size_t i = 2; i < g->n_groups + 2; i++)
        index->first[i] += index->first[i - 1];
    for (size_t i = 0; i < n; i++)
        index->leaves[index->first[group_of_leaf(g, i) + 1]++] = (uint32_t)i;
}

void sm_leaf_index_release(struct sm_leaf_index *index) {
    free(index->first);
    free(index->leaves);
    *index = (struct sm_leaf_index){0};
}

/* The tree of callers; node 0 is the group itself. */
struct caller_node {
    uint32_t spot;
    uint32_t first_child, sibling; /* 0 = none */
    uint64_t weight;
};

struct caller_tree {
    struct caller_node *nodes;
    size_t n, capacity;
    struct sm_map children; /* parent, spot -> node */
};

static uint32_t add_caller(struct caller_tree *tree, uint32_t parent, uint32_t spot,
                           uint64_t weight) {
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
    tree->nodes[n].weight += weight;
    return n;
}

static void add_stack(struct caller_tree *tree, const struct sm_grouping *g, uint32_t node,
                      uint32_t group, uint64_t weight, unsigned max_depth) {
    uint32_t seen[MAX_DEPTH + 1]; /* functions on the way */
    unsigned depth = 0;
    uint32_t at = 0;
    const uint32_t *spots;
    uint32_t n = sm_grouping_spots(g, node, &spots);
    seen[0] = g->spots[spots[n - 1]].function;
    for (unsigned frames = 0; frames < MAX_FRAMES && depth < max_depth; frames++) {
        if (n == 0) {
            node = g->profile->nodes[node].parent;
            if (node == SM_NODE_ROOT)
                return;
            n = sm_grouping_spots(g, node, &spots);
        }
        const struct sm_spot *spot = &g->spots[spots[--n]];
        bool known = spot->group == group;
        for (unsigned i = 0; i <= depth && !known; i++)
            known = seen[i] == spot->function;
        if (known)
            continue;
        at = add_caller(tree, at, spots[n], weight);
        seen[++depth] = spot->function;
    }
}

struct selection {
    struct caller_tree *tree;
    struct sm_caller *list;
    unsigned n, max_lines, max_depth;
    uint64_t whole;       /* of the group */
    uint64_t trace_whole; /* of all groups */
};

static void select_callers(struct selection *s, uint32_t node, unsigned depth) {
    uint64_t below = UINT64_MAX; /* weights in descending order */
    uint32_t last = 0;
    for (unsigned rank = 0; s->n < s->max_lines && depth <= s->max_depth; rank++) {
        uint32_t best = 0;
        for (uint32_t c = s->tree->nodes[node].first_child; c != 0; c = s->tree->nodes[c].sibling) {
            uint64_t w = s->tree->nodes[c].weight;
            bool later = w < below || (w == below && c > last);
            if (later && (best == 0 || w > s->tree->nodes[best].weight ||
                          (w == s->tree->nodes[best].weight && c < best)))
                best = c;
        }
        if (best == 0)
            return;
        double share = (double)s->tree->nodes[best].weight / (double)s->whole;
        if (share < 0.2 && (rank > 0 || share < 0.1))
            return;
        if ((double)s->tree->nodes[best].weight < 0.005 * (double)s->trace_whole && depth > 1)
            return;
        below = s->tree->nodes[best].weight;
        last = best;
        s->list[s->n++] =
            (struct sm_caller){.spot = s->tree->nodes[best].spot, .depth = depth, .weight = below};
        select_callers(s, best, depth + 1);
    }
}

unsigned sm_callers_of(const struct sm_grouping *g, const struct sm_leaf_index *index,
                       uint32_t group, enum sm_metric metric, unsigned max_depth,
                       unsigned max_lines, struct sm_caller *list) {
    struct caller_tree tree = {0};
    if (max_depth > MAX_DEPTH)
        max_depth = MAX_DEPTH;
    tree.nodes = sm_grow(NULL, &tree.capacity, 1, sizeof *tree.nodes);
    tree.nodes[0] = (struct caller_node){0};
    tree.n = 1;
    uint64_t whole = 0;
    for (size_t i = index->first[group]; i < index->first[group + 1]; i++) {
        const struct sm_leaf *leaf = &g->profile->leaves[index->leaves[i]];
        uint64_t weight = sm_weight(&leaf->weights, metric);
        whole += weight;
        if (weight > 0)
            add_stack(&tree, g, leaf->key, group, weight, max_depth);
    }
    struct selection s = {.tree = &tree,
                          .list = list,
                          .max_lines = max_lines,
                          .max_depth = max_depth,
                          .whole = whole,
                          .trace_whole = sm_weight(&g->profile->all, metric)};
    if (whole > 0)
        select_callers(&s, 0, 1);
    free(tree.nodes);
    sm_map_release(&tree.children);
    return s.n;
}
