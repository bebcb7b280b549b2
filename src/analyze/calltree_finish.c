/* See calltree.h: from nodes in order of first sight to columns in preorder.

   A code node becomes a chain of frames below what its parent became; equal frames under one parent are one
   node. As code nodes come after their parents, one pass does. Then nodes
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

/* Locations whose first frame stands in another one, too: only these can meet a node that is there already. */
static bool *shared_starts(const struct sm_places *p, uint32_t n_locations) {
    size_t n_frames = p->frames.used_bytes / sizeof(struct sm_frame);
    const uint32_t *list = p->list.data;
    uint8_t *uses = sm_alloc_zero(n_frames, 1);
    bool *shared = sm_alloc_zero(n_locations, sizeof *shared);
    for (uint32_t id = 0; id < n_locations; id++) {
        uint32_t f = list[p->first[id]];
        uses[f] = uses[f] == 0 ? 1 : 2;
        for (uint32_t k = p->first[id] + 1; k < p->first[id + 1]; k++)
            uses[list[k]] = 2;
    }
    for (uint32_t id = 0; id < n_locations; id++)
        shared[id] = uses[list[p->first[id]]] == 2;
    free(uses);
    return shared;
}

/* The tree with a node for each frame, parents before children. */
struct wide {
    struct sm_vec parent, frame; /* u32 by node */
    struct sm_vec inlined;       /* u8 by node, as at its first sight */
    uint32_t n;
    struct sm_map met; /* (parent, frame) of those that can be met again -> node */
};

static uint32_t append(struct wide *w, uint32_t parent, uint32_t frame, bool inlined) {
    sm_vec_push_u32(&w->parent, parent);
    sm_vec_push_u32(&w->frame, frame);
    *(uint8_t *)sm_vec_push(&w->inlined, 1) = inlined;
    return w->n++;
}

static uint32_t meet(struct wide *w, uint32_t parent, uint32_t frame, bool inlined) {
    bool found;
    uint32_t *place = sm_map_place(&w->met, parent | (uint64_t)frame << 32, w->n, &found);
    return found ? *place - 1 : append(w, parent, frame, inlined);
}

/* of_code[i] = node of code node i's innermost frame. A code node is met once, so that its frames are
   new nodes, unless their like can come from another location. */
static void expand(struct wide *w, uint32_t *of_code, const struct sm_code_tree *t,
                   struct sm_places *places) {
    const struct sm_code_node *nodes = t->nodes.data;
    bool *shared = shared_starts(places, places->n_locations);
    of_code[0] = append(w, 0, 0, false);
    for (uint32_t i = 1; i < t->n; i++) {
        uint32_t at = of_code[nodes[i].parent], location = nodes[i].location;
        if (location >= SM_LOC_FOLDED) {
            of_code[i] = meet(w, at, pseudo_frame(places, location), false);
            continue;
        }
        const uint32_t *list = places->list.data;
        uint32_t outermost = places->first[location];
        for (uint32_t k = outermost; k < places->first[location + 1]; k++)
            at = shared[location] ? meet(w, at, list[k], k > outermost)
                                  : append(w, at, list[k], k > outermost);
        of_code[i] = at;
    }
    free(shared);
}

/* Numbers in preorder: children in order of first sight. Returns number by node; end by number. */
static uint32_t *preorder(const struct wide *w, uint32_t *end) {
    const uint32_t *parent = w->parent.data;
    uint32_t n = w->n;
    uint32_t *size = sm_alloc((size_t)n * sizeof *size);
    for (uint32_t i = 0; i < n; i++)
        size[i] = 1;
    for (uint32_t i = n - 1; i > 0; i--)
        size[parent[i]] += size[i];
    /* A parent gives its children numbers one after another; `size` turns into the next free number below
       the node. Parents come before children. */
    uint32_t *number = sm_alloc((size_t)n * sizeof *number);
    number[0] = 0;
    end[0] = n;
    size[0] = 1;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t *next = &size[parent[i]], mine = size[i];
        number[i] = *next;
        end[number[i]] = *next + mine;
        *next += mine;
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

/* Depths and flags, from parents and frames in preorder. */
static void derive(struct sm_tree_columns *out, const struct sm_places *places) {
    const uint32_t *parent = out->parent.data, *frame = out->frame.data;
    const uint32_t *function = out->function.data;
    uint32_t n = out->n;
    uint16_t *depth = out->depth.data;
    uint8_t *flags = out->flags.data;
    size_t n_texts = places->texts->blob.used_bytes;
    struct on_path o = {.functions = places->functions.data,
                        .function =
                            counts(places->functions.used_bytes / sizeof(struct sm_function)),
                        .frame = counts(places->frames.used_bytes / sizeof(struct sm_frame)),
                        .file = counts(n_texts),
                        .module = counts(n_texts)};
    uint32_t at = 0; /* the node entered last */
    for (uint32_t i = 0; i < n; i++) {
        while (i > 0 && at != parent[i]) {
            leave(&o, function[at], frame[at]);
            at = parent[at];
        }
        flags[i] |= enter(&o, function[i], frame[i]);
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
    struct wide w = {0};
    uint32_t *of_code = sm_alloc((size_t)t->n * sizeof *of_code);
    expand(&w, of_code, t, places);
    sm_map_release(&w.met);
    uint32_t n = out->n = w.n;
    uint32_t *number = preorder(&w, column(&out->end, n));
    const uint32_t *from_parent = w.parent.data, *from_frame = w.frame.data;
    const struct sm_frame *frames = places->frames.data;
    uint32_t *parent = column(&out->parent, n), *frame = column(&out->frame, n);
    uint32_t *function = column(&out->function, n);
    sm_vec_push(&out->depth, (size_t)n * sizeof(uint16_t));
    sm_vec_push(&out->flags, n);
    const uint8_t *inlined = w.inlined.data;
    uint8_t *flags = out->flags.data;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t to = number[i];
        parent[to] = number[from_parent[i]];
        frame[to] = from_frame[i];
        flags[to] = inlined[i] ? SM_NODE_INLINED : 0;
    }
    for (uint32_t i = 0; i < n; i++)
        function[i] = frames[frame[i]].function;
    sm_vec_release(&w.parent);
    sm_vec_release(&w.frame);
    sm_vec_release(&w.inlined);
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
