/* See calltree.h: the tree while events are read. */
#include "analyze/calltree.h"

#include <stdlib.h>
#include <string.h>

#include "util/memory.h"

#define FIRST_SLOTS (1u << 16)

static uint64_t hash(uint32_t parent, uint32_t location) {
    uint64_t h = (parent | (uint64_t)location << 32) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static uint32_t add_node(struct sm_code_tree *t, uint32_t parent, uint32_t location) {
    struct sm_code_node *n = sm_vec_push(&t->nodes, sizeof *n);
    *n = (struct sm_code_node){.parent = parent, .location = location};
    return t->n++;
}

void sm_code_tree_init(struct sm_code_tree *t, const char *directory, uint32_t max_nodes) {
    memset(t, 0, sizeof *t);
    sm_vec_init(&t->nodes, directory);
    t->max_nodes = max_nodes;
    t->slots = sm_alloc_zero(FIRST_SLOTS, sizeof *t->slots);
    t->mask = FIRST_SLOTS - 1;
    add_node(t, 0, SM_LOC_ROOT);
}

void sm_code_tree_release(struct sm_code_tree *t) {
    sm_vec_release(&t->nodes);
    free(t->slots);
}

static void enlarge(struct sm_code_tree *t) {
    uint32_t old = t->mask + 1;
    struct sm_code_slot *from = t->slots;
    const struct sm_code_node *nodes = t->nodes.data;
    t->slots = sm_alloc_zero((size_t)old * 2, sizeof *t->slots);
    t->mask = old * 2 - 1;
    for (uint32_t i = 0; i < old; i++) {
        if (from[i].node == 0)
            continue;
        const struct sm_code_node *n = &nodes[from[i].node];
        uint32_t at = (uint32_t)hash(n->parent, n->location) & t->mask;
        while (t->slots[at].node != 0)
            at = (at + 1) & t->mask;
        t->slots[at] = from[i];
    }
    free(from);
}

uint32_t sm_code_tree_find(struct sm_code_tree *t, uint32_t parent, uint32_t location) {
    uint64_t h = hash(parent, location);
    uint32_t tag = (uint32_t)(h >> 32), at = (uint32_t)h & t->mask;
    struct sm_code_node *nodes = t->nodes.data;
    for (; t->slots[at].node != 0; at = (at + 1) & t->mask) {
        if (t->slots[at].tag != tag)
            continue;
        uint32_t i = t->slots[at].node;
        if (nodes[i].parent == parent && nodes[i].location == location)
            return nodes[parent].last_child = i;
    }
    uint32_t fresh = add_node(t, parent, location);
    t->slots[at] = (struct sm_code_slot){.node = fresh, .tag = tag};
    ((struct sm_code_node *)t->nodes.data)[parent].last_child = fresh;
    if (t->n > (t->mask + 1) / 4 * 3)
        enlarge(t);
    return fresh;
}

static uint32_t folded(struct sm_code_tree *t, uint32_t site) {
    t->n_folded++;
    return sm_code_tree_child(t, sm_code_tree_child(t, 0, SM_LOC_FOLDED), site);
}

uint32_t sm_code_path_follow(struct sm_code_path *p, struct sm_code_tree *t,
                             const struct sm_event *e) {
    if (e->flags & SM_EVENT_STACK_LOST) {
        p->n = 0;
        return sm_code_tree_child(t, 0, SM_LOC_LOST);
    }
    if (e->n_frames == 0) {
        p->n = 0;
        return sm_code_tree_child(t, 0, SM_LOC_EMPTY);
    }
    size_t keep = e->common_prefix < p->n ? e->common_prefix : p->n;
    if (keep > e->n_frames)
        keep = e->n_frames;
    if (e->n_frames > p->capacity)
        p->nodes = sm_grow(p->nodes, &p->capacity, e->n_frames, sizeof *p->nodes);
    uint32_t node = keep > 0 ? p->nodes[keep - 1] : 0;
    if (t->n > t->max_nodes) {
        p->n = 0; /* its nodes are not those of its frames */
        return folded(t, e->frames[e->n_frames - 1]);
    }
    for (size_t i = keep; i < e->n_frames; i++)
        p->nodes[i] = node = sm_code_tree_child(t, node, e->frames[i]);
    p->n = e->n_frames;
    return node;
}
