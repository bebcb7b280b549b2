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

static void make_slots(struct sm_code_tree *t, uint32_t n) {
    sm_vec_init(&t->slots, NULL);
    sm_vec_push(&t->slots, (size_t)n * sizeof(struct sm_code_slot)); /* fresh mappings are zero */
    t->mask = n - 1;
}

void sm_code_tree_init(struct sm_code_tree *t, const char *directory, uint32_t max_nodes) {
    memset(t, 0, sizeof *t);
    sm_vec_init(&t->nodes, directory);
    t->max_nodes = max_nodes;
    make_slots(t, FIRST_SLOTS);
    add_node(t, 0, SM_LOC_ROOT);
}

void sm_code_tree_release(struct sm_code_tree *t) {
    sm_vec_release(&t->nodes);
    sm_vec_release(&t->slots);
}

static void enlarge(struct sm_code_tree *t) {
    struct sm_vec old = t->slots;
    const struct sm_code_slot *from = old.data;
    uint32_t n = t->mask + 1;
    const struct sm_code_node *nodes = t->nodes.data;
    make_slots(t, n * 4);
    struct sm_code_slot *slots = t->slots.data;
    for (uint32_t i = 0; i < n; i++) {
        if (from[i].node == 0)
            continue;
        const struct sm_code_node *child = &nodes[from[i].node];
        uint32_t at = (uint32_t)hash(child->parent, child->location) & t->mask;
        while (slots[at].node != 0)
            at = (at + 1) & t->mask;
        slots[at] = from[i];
    }
    sm_vec_release(&old);
}

uint32_t sm_code_tree_find(struct sm_code_tree *t, uint32_t parent, uint32_t location) {
    struct sm_code_node *nodes = t->nodes.data;
    if (nodes[parent].first_child == 0) {
        uint32_t fresh = add_node(t, parent, location);
        struct sm_code_node *n = (struct sm_code_node *)t->nodes.data + parent;
        n->first_child = n->last_child = fresh;
        n->first_location = n->last_location = location;
        return fresh;
    }
    uint64_t h = hash(parent, location);
    uint32_t tag = (uint32_t)(h >> 32), at = (uint32_t)h & t->mask;
    struct sm_code_slot *slots = t->slots.data;
    for (; slots[at].node != 0; at = (at + 1) & t->mask) {
        if (slots[at].tag != tag)
            continue;
        uint32_t i = slots[at].node;
        if (nodes[i].parent == parent && nodes[i].location == location) {
            nodes[parent].last_location = location;
            return nodes[parent].last_child = i;
        }
    }
    uint32_t fresh = add_node(t, parent, location);
    slots[at] = (struct sm_code_slot){.node = fresh, .tag = tag};
    struct sm_code_node *n = (struct sm_code_node *)t->nodes.data + parent;
    n->last_child = fresh;
    n->last_location = location;
    if (++t->n_slots > (t->mask + 1) / 2)
        enlarge(t);
    return fresh;
}

static uint32_t folded(struct sm_code_tree *t, uint32_t site) {
    t->n_folded++;
    return sm_code_tree_child(t, sm_code_tree_child(t, 0, SM_LOC_FOLDED), site);
}

uint32_t sm_code_path_follow(struct sm_code_path *p, struct sm_code_tree *t, const uint32_t *suffix,
                             size_t kept, size_t n_frames, unsigned flags) {
    if (flags & SM_EVENT_STACK_LOST) {
        p->n = p->n_nodes = 0;
        return sm_code_tree_child(t, 0, SM_LOC_LOST);
    }
    if (n_frames > p->frames_capacity) {
        p->frames = sm_grow(p->frames, &p->frames_capacity, n_frames, sizeof *p->frames);
        p->nodes = sm_grow(p->nodes, &p->nodes_capacity, n_frames, sizeof *p->nodes);
    }
    for (size_t i = kept; i < n_frames; i++)
        p->frames[i] = suffix[i - kept];
    p->n = n_frames;
    if (p->n_nodes > kept)
        p->n_nodes = kept;
    if (n_frames == 0)
        return sm_code_tree_child(t, 0, SM_LOC_EMPTY);
    if (__builtin_expect(t->n > t->max_nodes, 0))
        return folded(t, p->frames[n_frames - 1]);
    uint32_t node = p->n_nodes > 0 ? p->nodes[p->n_nodes - 1] : 0;
    for (size_t i = p->n_nodes; i < n_frames; i++)
        p->nodes[i] = node = sm_code_tree_child(t, node, p->frames[i]);
    p->n_nodes = n_frames;
    return node;
}

void sm_code_path_release(struct sm_code_path *p) {
    free(p->frames);
    free(p->nodes);
}
