/* A filter made ready for one analysis; internal to src/analyze. See select.c. */
#ifndef SM_ANALYZE_SELECT_PLAN_H
#define SM_ANALYZE_SELECT_PLAN_H

#include "analyze/match.h"
#include "analyze/select.h"

/* In the order of their cost: children of AND and OR are tried in it. */
enum sm_plan_kind {
    SM_PLAN_NONE = 0,
    SM_PLAN_ALL,
    SM_PLAN_ROWS,     /* first_row <= row < end_row */
    SM_PLAN_BITS,     /* bit of the row in `bits` */
    SM_PLAN_SAMPLES,  /* least .. most */
    SM_PLAN_CLASS,    /* flags[class] */
    SM_PLAN_NODE,     /* bit of the node in `bits` */
    SM_PLAN_SIZE,     /* by class: sizes[class] */
    SM_PLAN_AGE,      /* age in `ages`: least .. most; never: `never` */
    SM_PLAN_EVENT,    /* allocation + age in `ages`: from_ns .. to_ns; never is outside */
    SM_PLAN_OUTLIVES, /* freed after from_ns and after its allocation, or never */
    SM_PLAN_AND,
    SM_PLAN_OR,
    SM_PLAN_NOT,
};

/* Sizes as they stand in the column. Empty when least > most. */
struct sm_size_range {
    uint64_t least, most;
};

struct sm_plan {
    enum sm_plan_kind kind;
    struct sm_plan *first, *next; /* owned */
    uint32_t first_row, end_row;
    uint64_t least, most;
    int64_t from_ns, to_ns;
    bool never;
    const uint32_t *ages;        /* a column of the analysis */
    uint64_t *bits;              /* owned */
    uint8_t *flags;              /* owned */
    struct sm_size_range *sizes; /* owned; one entry when all classes agree */
    bool same_sizes;
};

/* The plan of a tree; NULL: all rows. */
struct sm_plan *sm_plan_new(const struct sm_analysis *a, const struct sm_filter_node *node,
                            unsigned threads);
void sm_plan_free(struct sm_plan *p);

/* Rows that were alive at the peak of the whole trace. */
uint64_t *sm_plan_live_at_peak(const struct sm_analysis *a, unsigned threads);

/* Frames that match: one byte each, frame 0 (the root) never. The caller frees it. */
uint8_t *sm_match_frames(const struct sm_analysis *a, const struct sm_filter_pattern *pattern);

/* Intervals that tests stand for; false when they hold nothing. */
bool sm_number_interval(enum sm_filter_op op, uint64_t x, uint64_t y, uint64_t *least,
                        uint64_t *most);
bool sm_time_interval(enum sm_filter_op op, int64_t x, int64_t y, int64_t *from, int64_t *to);

/* The sizes of rows of a class for which a size test holds. */
struct sm_size_range sm_size_range(const struct sm_analysis *a, const struct sm_filter_node *node,
                                   const struct sm_row_class *class);

/* A class against DOMAIN, SOURCE, THREAD_ID or THREAD. */
bool sm_class_matches(const struct sm_analysis *a, const struct sm_filter_node *node,
                      const struct sm_matcher *m, const struct sm_row_class *class);

#endif
