/* The callers that explain what was allocated at a place. Hosted.

   All stacks that end at the place are followed outwards, without frames of the place itself and without a
   function that stands in the way already (recursion). Their sums make a tree of callers, of which only
   what explains the place is kept: a caller with at least 20 % of its weight, or the largest
   one if it has 10 %; from each kept caller further out likewise, as long as it has 0.5 % of all,
   down to `max_depth`, until `max_lines` are used. */
#ifndef SM_REPORT_CALLERS_H
#define SM_REPORT_CALLERS_H

#include "analyze/merged.h"

#define SM_MAX_CALLERS 16

struct sm_caller {
    uint32_t spot;  /* key of the view of frames */
    uint32_t depth; /* 1 = calls the place */
    struct sm_sum sum;
};

struct sm_callers {
    const struct sm_analysis *analysis;
    const struct sm_view *places; /* what rows are grouped by */
    struct sm_view spots;         /* frames: what callers are shown as */
    struct sm_view functions;     /* what counts as recursion */
    const struct sm_sum *nodes;   /* by node; the caller's */
    bool by_rows;                 /* blocks count, not units */
    uint64_t whole;               /* of all nodes, of what counts */
    uint32_t *list;               /* nodes with weight, by key of `places` */
    uint32_t *first;              /* by key, n_keys + 1 */
};

/* The views are made by `make` with its ctx, so that they hide and collapse as the report's do. */
void sm_callers_init(struct sm_callers *c, const struct sm_view *places, const struct sm_sum *nodes,
                     bool by_rows,
                     void (*make)(const void *ctx, struct sm_view *v, enum sm_key_kind kind),
                     const void *ctx);
void sm_callers_release(struct sm_callers *c);

/* Fills list[0..max_lines), max_lines <= SM_MAX_CALLERS, in the order of printing: each caller is followed
   by its own callers. Returns their number. */
unsigned sm_callers_of(const struct sm_callers *c, uint32_t key, unsigned max_depth,
                       unsigned max_lines, struct sm_caller *list);

#endif
