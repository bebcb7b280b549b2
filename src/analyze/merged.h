/* Sums turned into what people look at: groups, and trees merged by function. Hosted; reads the analysis only.

   A *view* says how the call tree is seen: which frames are hidden and what consecutive frames collapse to. It
   maps each node to a key; hidden nodes pass their bytes to the nearest visible caller. */
#ifndef SM_ANALYZE_MERGED_H
#define SM_ANALYZE_MERGED_H

#include "analyze/weight.h"

enum sm_key_kind {
    SM_KEY_FUNCTION = 0,
    SM_KEY_FRAME, /* line and columns */
    SM_KEY_LINE,  /* function, file and line; columns dropped */
    SM_KEY_FILE,
    SM_KEY_MODULE,
};

#define SM_KEY_HIDDEN UINT32_MAX

/* key[node]: dense numbers below n_keys; key 0 is the root's. spot[key]: a frame that has this key, for its
   name. `top`: bitmap, no visible ancestor has the same key. */
struct sm_view {
    const struct sm_analysis *analysis;
    enum sm_key_kind kind;
    uint32_t n_keys;
    uint32_t *key;
    uint32_t *spot;
    uint32_t *names; /* collapsed keys: text id of the module, else 0; by key */
    uint64_t *top;
};

/* hidden: bitmap by frame, or NULL. collapsed: by frame, the text id that stands for it, 0 = none, or NULL. */
void sm_view_make(struct sm_view *v, const struct sm_analysis *a, enum sm_key_kind kind,
                  const uint64_t *hidden, const sm_text_id *collapsed);
/* Hides frames that directly continue a visible frame of the same key: f > f > f > g becomes f > g. */
void sm_view_fold_recursion(struct sm_view *v);
void sm_view_release(struct sm_view *v);
/* "List.map", "List.map list.ml:92", "list.ml": appended as they are (make them safe before showing). */
struct sm_buffer;
void sm_view_name(const struct sm_view *v, uint32_t key, struct sm_buffer *out);

/* Per key: what was allocated there itself, and with callees (each row once, recursion or not). */
struct sm_key_sum {
    struct sm_sum own, total;
};
struct sm_key_sum *sm_view_sums(const struct sm_view *v,
                                const struct sm_sum *nodes); /* by key; free() */

/* By node: the sum of its subtree; free(). */
struct sm_sum *sm_subtree_sums(const struct sm_analysis *a, const struct sm_sum *nodes);

/* A tree merged by key. Nodes in preorder, children by falling total. */
struct sm_merged_node {
    uint32_t key;
    uint32_t parent;
    uint32_t end; /* one past the last of its subtree */
    uint32_t depth;
    struct sm_sum
        own; /* callees: allocated in this frame itself; callers: stacks that begin here */
    struct sm_sum total;
};
struct sm_merged {
    struct sm_merged_node *nodes;
    uint32_t n_nodes;
    uint64_t folded; /* units in nodes that were left out, by min_units */
    uint32_t n_folded;
};
enum sm_direction { SM_CALLEES = 0, SM_CALLERS = 1 };
enum sm_merge_order { SM_ORDER_WEIGHT = 0, SM_ORDER_NAME };

struct sm_merge_options {
    enum sm_direction direction;
    /* Focus: a stack fragment, outermost first, as keys. Empty: callees from the root, callers from the
       allocation sites. Each stack counts once, at the outermost occurrence of the fragment. */
    const uint32_t *focus;
    uint32_t n_focus;
    uint64_t min_units; /* nodes below are left out and counted */
    uint32_t max_depth; /* 0 = no limit */
    enum sm_merge_order order;
};
/* Node 0 is the focus's end that the direction grows from (or the root). */
void sm_merged_make(struct sm_merged *m, const struct sm_view *v, const struct sm_sum *nodes,
                    const struct sm_merge_options *o);
void sm_merged_release(struct sm_merged *m);

/* Heavy fragments: every sequence of consecutive keys in stacks whose weight is at least `min_units`, found by
   extending heavy ones, exactly. Recursion: a stack counts once. `maximal`: no heavy fragment of nearly
   (1 - tolerance) the same weight contains it. Of fragments that always have the same caller only the shortest
   are listed: with that caller they are others of the same weight. */
struct sm_fragment {
    uint32_t *keys; /* outermost first */
    uint32_t n_keys;
    struct sm_sum total;
    bool maximal;
};
struct sm_fragments {
    struct sm_fragment *list; /* by falling weight */
    uint32_t n;
    bool complete; /* false: stopped at max_fragments */
};
void sm_fragments_find(struct sm_fragments *f, const struct sm_view *v, const struct sm_sum *nodes,
                       uint64_t min_units, double tolerance, uint32_t max_length,
                       uint32_t max_fragments);
void sm_fragments_release(struct sm_fragments *f);

/* The weight of one fragment, exactly. */
struct sm_sum sm_fragment_sum(const struct sm_view *v, const struct sm_sum *nodes,
                              const uint32_t *keys, uint32_t n_keys);

#endif
