/* The callers that explain a group's allocations. Hosted.

   All stacks of the group are followed outwards, without frames of the group itself and without a
   function that stands in the way already (recursion). Their sums make a tree of callers, of which only
   what explains the group is kept: a caller with at least 20 % of the group's weight, or the largest
   one if it has 10 %; from each kept caller further out likewise, as long as it has 0.5 % of all,
   down to `max_depth`, until `max_lines` are used. */
#ifndef SM_REPORT_CALLERS_H
#define SM_REPORT_CALLERS_H

#include <stddef.h>
#include <stdint.h>

#include "report/group.h"

#define SM_MAX_CALLERS 16

struct sm_caller {
    uint32_t spot;
    uint32_t depth;  /* 1 = calls the group */
    uint64_t weight; /* of the metric */
};

/* Prepares for asking about any group: leaves sorted by group. */
struct sm_leaf_index {
    uint32_t *leaves; /* numbers, by group */
    size_t *first;    /* by group, n_groups + 1 */
};
void sm_leaf_index_make(struct sm_leaf_index *index, const struct sm_grouping *g);
void sm_leaf_index_release(struct sm_leaf_index *index);

/* Fills list[0..max_lines), max_lines <= SM_MAX_CALLERS, in the order of printing: each caller is followed
   by its own callers. Returns their number. */
unsigned sm_callers_of(const struct sm_grouping *g, const struct sm_leaf_index *index,
                       uint32_t group, enum sm_metric metric, unsigned max_depth,
                       unsigned max_lines, struct sm_caller *list);

#endif
