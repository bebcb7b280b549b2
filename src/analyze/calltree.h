/* The call tree while it is being built, and its final form. Hosted, internal to src/analyze.

   While events are read, nodes are (parent, location id), in order of first sight. Finding a node's child is
   where a loader spends its time, waiting for memory. Four things make it cheap: the frames a stack shares with
   the one before are not looked at; a node tells its first child and the one taken last, so that chains, the most of
   any tree, need no table; the table of all others holds a tag of the hash beside the number, so that a
   wrong slot seldom costs a second cache miss; and nodes and table ask for huge pages.

   The final tree has a node for each inlined frame, merges what differs in the code but not in the place, and stands in
   preorder. */
#ifndef SM_ANALYZE_CALLTREE_H
#define SM_ANALYZE_CALLTREE_H

#include "analyze/texts.h"

/* Pseudo locations. */
#define SM_LOC_ROOT (UINT32_MAX - 1)
#define SM_LOC_EMPTY (UINT32_MAX - 2)  /* no stack was captured */
#define SM_LOC_LOST (UINT32_MAX - 3)   /* the trace does not have it */
#define SM_LOC_FOLDED (UINT32_MAX - 4) /* callers left out, the tree has become too large */

struct sm_code_node {
    uint32_t parent, location;
    uint32_t first_child, first_location; /* 0 = none yet; not in the table */
    uint32_t last_child, last_location;
};

struct sm_code_slot {
    uint32_t node; /* 0 = free */
    uint32_t tag;
};

struct sm_code_tree {
    struct sm_vec nodes; /* struct sm_code_node; 0 is the root */
    uint32_t n;
    struct sm_vec slots; /* struct sm_code_slot, open addressing; children but for first ones */
    uint32_t mask, n_slots;
    uint32_t max_nodes; /* new stacks beyond are folded to their site */
    uint64_t n_folded;
};
void sm_code_tree_init(struct sm_code_tree *t, const char *directory, uint32_t max_nodes);
void sm_code_tree_release(struct sm_code_tree *t);

uint32_t sm_code_tree_find(struct sm_code_tree *t, uint32_t parent, uint32_t location);

static inline uint32_t sm_code_tree_child(struct sm_code_tree *t, uint32_t parent,
                                          uint32_t location) {
    const struct sm_code_node *n = (const struct sm_code_node *)t->nodes.data + parent;
    if (n->last_location == location && n->last_child != 0)
        return n->last_child;
    if (n->first_location == location && n->first_child != 0)
        return n->first_child;
    return sm_code_tree_find(t, parent, location);
}

/* Where a stream is in the tree: its last stack, and the nodes of its first `n_nodes` frames. */
struct sm_code_path {
    uint32_t *frames, *nodes;
    size_t n, n_nodes;
    size_t frames_capacity, nodes_capacity;
};
/* The innermost node of a stack that is the last one's first `kept` frames and then `suffix`, n_frames in all. `kept` is at
   most path->n. flags: enum sm_event_flag. */
uint32_t sm_code_path_follow(struct sm_code_path *p, struct sm_code_tree *t, const uint32_t *suffix,
                             size_t kept, size_t n_frames, unsigned flags);
void sm_code_path_release(struct sm_code_path *p);

/* Final columns: those of struct sm_calltree, and where each code node's rows go. */
struct sm_tree_columns {
    uint32_t n;
    struct sm_vec parent, end, frame, function, depth, flags;
    uint32_t *of_code; /* code node -> node */
};
void sm_tree_finish(struct sm_tree_columns *out, const struct sm_code_tree *t,
                    struct sm_places *places);
void sm_tree_columns_release(struct sm_tree_columns *c);

#endif
