/* See calltree.h: from nodes in order of first sight to columns in preorder.

   A code node becomes a chain of frames below what its parent became; equal frames under one parent are one
   node, found by a hash table as in calltree.c. As code nodes come after their parents, one pass does. Then nodes
   are renumbered in preorder, with an explicit stack: depth is not bounded. */
#include <stdlib.h>
#include <string.h>

#include "analyze/calltree.h"
#include "util/memory.h"

static uint32_t pseudo_frame(struct sm_places *p, uint32_t location) {
    switch (location) {
    case SM_LOC_EMPTY:
        return sm_places_pseudo(p, "(no stack)");
    case SM_LOC_LOST:
        return sm_places_pseudo(p, "(stack lost)");
    case SM_LOC_FOLDED:
        return sm_places_pseudo(p, "(callers left out)");
    default:
        return 0;
    }
}

/* of_code[i] = node in `wide` of code node i's innermost frame. */
static void expand(struct sm_code_tree *wide, uint32_t *of_code, const struct sm_code_tree *t,
                   struct sm_places *places) {
    const struct sm_code_node *nodes = t->nodes.data;
    of_code[0] = 0;
    for (uint32_t i = 1; i < t->n; i++) {
        uint32_t at = of_code[nodes[i].parent], location = nodes[i].location;
        if (location >= SM_LOC_FOLDED) {
            of_code[i] = sm_code_tree_child(wide, at, pseudo_frame(places, location));
            continue;
        }
        const uint32_t *list = places->list.data;
        for (uint32_t k = places->first[location]; k < places->first[location + 1]; k++)
            at = sm_code_tree_child(wide, at, list[k]);
        of_code[i] = at;
    }
}

/* Numbers in preorder: children in order of first sight. Returns number by wide node. */
static uint32_t *preorder(const struct sm_code_tree *wide) {
    const struct sm_code_node *nodes = wide->nodes.data;
    uint32_t n = wide->n;
    uint32_t *size = sm_alloc((size_t)n * sizeof *size);
    uint32_t *number = sm_alloc((size_t)n * sizeof *number);
    for (uint32_t i = 0; i < n; i++)
        size[i] = 1;
    for (uint32_t i = n - 1; i > 0; i--)
        size[nodes[i].parent] += size[i];
    /* A parent gives its children numbers one after another; `size` turns into the next free number below
       the node. Parents come before children. */
    number[0] = 0;
    size[0] = 1;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t parent = nodes[i].parent, mine = size[i];
        number[i] = size[parent];
        size[parent] += mine;
        size[i] = number[i] + 1;
    }
    free(size);
    return number;
}

static uint32_t *column(struct sm_vec *v, uint32_t n) {
    sm_vec_init(v, NULL);
    return sm_vec_push(v, (size_t)n * sizeof(uint32_t));
}

/* How often each function, frame, file and module stands on the way from the root. */
struct on_path {
    uint32_t *function, *frame, *file, *module;
    const struct sm_function *functions;
};

static uint32_t *counts(size_t n) {
    return sm_alloc_zero(n, sizeof(uint32_t));
}

static void leave(struct on_path *o, uint32_t function, uint32_t frame) {
    o->function[function]--;
    o->frame[frame]--;
    o->file[o->functions[function].file]--;
    o->module[o->functions[function].module]--;
}

static uint8_t enter(struct on_path *o, uint32_t function, uint32_t frame) {
    uint8_t flags = 0;
    if (o->function[function]++ == 0)
        flags |= SM_NODE_TOP_FUNCTION;
    if (o->frame[frame]++ == 0)
        flags |= SM_NODE_TOP_FRAME;
    if (o->file[o->functions[function].file]++ == 0)
        flags |= SM_NODE_TOP_FILE;
    if (o->module[o->functions[function].module]++ == 0)
        flags |= SM_NODE_TOP_MODULE;
    return flags;
}

/* Ends, depths and flags, from parents and frames in preorder. */
static void derive(struct sm_tree_columns *out, const struct sm_places *places) {
    const uint32_t *parent = out->parent.data, *frame = out->frame.data;
    const uint32_t *function = out->function.data;
    uint32_t n = out->n, *end = out->end.data;
    uint16_t *depth = out->depth.data;
    uint8_t *flags = out->flags.data;
    size_t n_texts = places->texts->blob.used_bytes;
    struct on_path o = {.functions = places->functions.data,
                        .function =
                            counts(places->functions.used_bytes / sizeof(struct sm_function)),
                        .frame = counts(places->frames.used_bytes / sizeof(struct sm_frame)),
                        .file = counts(n_texts),
                        .module = counts(n_texts)};
    for (uint32_t i = 0; i < n; i++)
        end[i] = i + 1;
    for (uint32_t i = n - 1; i > 0; i--) {
        if (end[parent[i]] < end[i])
            end[parent[i]] = end[i];
    }
    uint32_t at = 0; /* the node entered last */
    for (uint32_t i = 0; i < n; i++) {
        while (i > 0 && at != parent[i]) {
            leave(&o, function[at], frame[at]);
            at = parent[at];
        }
        flags[i] = enter(&o, function[i], frame[i]);
        uint32_t d = i == 0 ? 0 : depth[parent[i]] + 1u;
        depth[i] = d > UINT16_MAX ? UINT16_MAX : (uint16_t)d;
        at = i;
    }
    free(o.function);
    free(o.frame);
    free(o.file);
    free(o.module);
}

void sm_tree_finish(struct sm_tree_columns *out, const struct sm_code_tree *t,
                    struct sm_places *places) {
    struct sm_code_tree wide;
    sm_code_tree_init(&wide, NULL, UINT32_MAX);
    ((struct sm_code_node *)wide.nodes.data)[0].location = 0;
    uint32_t *of_code = sm_alloc((size_t)t->n * sizeof *of_code);
    expand(&wide, of_code, t, places);
    free(wide.slots);
    wide.slots = NULL;
    uint32_t n = wide.n, *number = preorder(&wide);
    const struct sm_code_node *nodes = wide.nodes.data;
    const struct sm_frame *frames = places->frames.data;
    out->n = n;
    uint32_t *parent = column(&out->parent, n), *frame = column(&out->frame, n);
    uint32_t *function = column(&out->function, n);
    column(&out->end, n);
    sm_vec_push(&out->depth, (size_t)n * sizeof(uint16_t));
    sm_vec_push(&out->flags, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t to = number[i];
        parent[to] = i == 0 ? 0 : number[nodes[i].parent];
        frame[to] = i == 0 ? 0 : nodes[i].location;
        function[to] = frames[frame[to]].function;
    }
    sm_code_tree_release(&wide);
    for (uint32_t i = 0; i < t->n; i++)
        of_code[i] = number[of_code[i]];
    free(number);
    out->of_code = of_code;
    derive(out, places);
}

void sm_tree_columns_release(struct sm_tree_columns *c) {
    sm_vec_release(&c->parent);
    sm_vec_release(&c->end);
    sm_vec_release(&c->frame);
    sm_vec_release(&c->function);
    sm_vec_release(&c->depth);
    sm_vec_release(&c->flags);
    free(c->of_code);
}
