/* Raw streams into one order, in parallel. Hosted, internal to src/analyze.

   The order is (ticks, stream, place in the stream), and a free that is told before its allocation comes right
   after it. Time is cut into parts at ticks of the longest stream; each part is merged by itself, since where
   it begins in each stream, and in the result, follows from a binary search. */
#ifndef SM_ANALYZE_INTERLEAVE_H
#define SM_ANALYZE_INTERLEAVE_H

#include "analyze/build.h"

struct sm_interleaved {
    uint64_t *ticks;        /* by row */
    uint64_t *frees;        /* by end: stream << 32 | row in the stream */
    uint32_t **row_numbers; /* by stream, by its row: the row; NULL for a single stream: the same */
    uint32_t n_rows, n_frees;
    struct sm_vec wide_frees; /* struct sm_wide */
};

/* What goes into the final columns at once. */
struct sm_row_columns {
    uint32_t *promote_age, *free_age, *size, *node, *class_id;
    uint8_t *samples, *frees_before;
};

void sm_interleave(struct sm_interleaved *out, const struct sm_build *b,
                   const uint32_t *node_of_code, const struct sm_row_columns *to, unsigned threads);
void sm_interleaved_release(struct sm_interleaved *il, uint32_t n_streams);

#endif
