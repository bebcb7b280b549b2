/* Walking allocations and ends in the merged order, in chunks that threads take. Hosted, internal to src/analyze. */
#ifndef SM_ANALYZE_WALK_H
#define SM_ANALYZE_WALK_H

#include "analyze/analysis.h"
#include "util/parallel.h"

/* Chunks of rows at block borders; the last one also has the ends after the last row. */
struct sm_chunks {
    unsigned n;
    uint32_t blocks_each;
};

static inline void sm_chunks_make(struct sm_chunks *c, const struct sm_analysis *a,
                                  unsigned threads) {
    uint32_t blocks = (a->rows.n >> SM_ROW_BLOCK_SHIFT) + 1;
    unsigned wanted = threads == 0 ? sm_processors() : threads;
    if (blocks < 256)
        wanted = 1; /* 64 K rows: less than the making of a thread is worth */
    c->blocks_each = (blocks + wanted - 1) / wanted;
    c->n = (blocks + c->blocks_each - 1) / c->blocks_each;
}

struct sm_walk {
    const struct sm_analysis *a;
    uint32_t next, end; /* rows */
    bool last;          /* the ends after the last row are still to come */
    uint32_t wide;      /* next in wide_frees */
    /* The current row, and the ends before it: free_order[free_from .. free_to). */
    uint32_t row; /* UINT32_MAX: no row, ends only */
    uint32_t free_from, free_to;
};

static inline void sm_walk_begin(struct sm_walk *w, const struct sm_analysis *a,
                                 const struct sm_chunks *c, unsigned chunk) {
    const struct sm_rows *r = &a->rows;
    uint32_t first = chunk * c->blocks_each;
    uint64_t end = (uint64_t)(first + c->blocks_each) << SM_ROW_BLOCK_SHIFT;
    *w = (struct sm_walk){.a = a,
                          .next = first << SM_ROW_BLOCK_SHIFT,
                          .end = end < r->n ? (uint32_t)end : r->n,
                          .last = chunk + 1 == c->n};
    uint32_t low = 0, high = r->n_wide_frees;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (r->wide_frees[middle].row < w->next)
            low = middle + 1;
        else
            high = middle;
    }
    w->wide = low;
    w->free_to = r->n_freed;
    if (w->next < r->n) {
        /* block_frees counts up to the row itself: the ends right before it are ours to walk. */
        uint32_t before = r->frees_before[w->next];
        if (before == SM_ROW_MANY)
            before = (uint32_t)r->wide_frees[low].value;
        w->free_to = r->block_frees[first] - before;
    } else if (r->n == 0) {
        w->free_to = 0;
    }
}

/* False at the chunk's end. */
static inline bool sm_walk_row(struct sm_walk *w) {
    const struct sm_rows *r = &w->a->rows;
    w->free_from = w->free_to;
    if (w->next < w->end) {
        w->row = w->next++;
        uint32_t n = r->frees_before[w->row];
        if (__builtin_expect(n == SM_ROW_MANY, 0))
            n = (uint32_t)r->wide_frees[w->wide++].value;
        w->free_to += n;
        return true;
    }
    if (!w->last || w->free_from == r->n_freed)
        return false;
    w->last = false;
    w->row = UINT32_MAX;
    w->free_to = r->n_freed;
    return true;
}

#endif
