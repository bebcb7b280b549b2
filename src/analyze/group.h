/* Free grouping: sums of rows by any combination of what rows have. Hosted; reads the analysis only. */
#ifndef SM_ANALYZE_GROUP_H
#define SM_ANALYZE_GROUP_H

#include "analyze/merged.h"
#include "util/buffer.h"

enum sm_dimension_kind {
    SM_BY_PLACE = 0, /* of the allocation site, by the view's key */
    SM_BY_STACK,     /* whole stack: the tree node */
    SM_BY_DOMAIN,
    SM_BY_LANE, /* domain and thread */
    SM_BY_HEAP,
    SM_BY_SOURCE,   /* heap and origin */
    SM_BY_SIZE,     /* powers of two of the size in bytes */
    SM_BY_LIFETIME, /* powers of ten, three steps each; never is last */
    SM_BY_TIME,     /* equal spans of the time of allocation */
    SM_BY_PROMOTED, /* yes, no */
};
struct sm_dimension {
    enum sm_dimension_kind kind;
    const struct sm_view *view; /* PLACE */
    uint32_t n_spans;           /* TIME; 0 = 60 */
};
#define SM_MAX_DIMENSIONS 4
#define SM_NO_DOMAIN UINT64_MAX /* native threads, which belong to no domain */

struct sm_group_row {
    uint32_t value[SM_MAX_DIMENSIONS]; /* by dimension: key, node, lane, heap, ... */
    struct sm_sum *sums;               /* by weigher */
};
struct sm_groups {
    const struct sm_analysis *analysis;
    uint32_t n_dimensions;
    struct sm_dimension dimensions[SM_MAX_DIMENSIONS];
    uint32_t n_weighers, n_groups;
    struct sm_group_row *list; /* by falling units of the first weigher, then by value */
    struct sm_sum *sums;
    uint64_t *domains; /* value of SM_BY_DOMAIN -> domain id, or SM_NO_DOMAIN */
    uint32_t n_domains;
};
void sm_groups_make(struct sm_groups *out, const struct sm_dimension *dimensions,
                    uint32_t n_dimensions, const struct sm_weigher *weighers, uint32_t n_weighers,
                    unsigned threads);
void sm_groups_release(struct sm_groups *g);
/* A value's name, appended as it is: "List.map", "domain 3", "minor", "16-31 B", "1-2.15 ms". */
void sm_groups_name(const struct sm_groups *g, uint32_t dimension, uint32_t value,
                    struct sm_buffer *out);

/* Lane -> number of its domain: domains ascending, native threads, which belong to none, last as SM_NO_DOMAIN.
   Both arrays are the caller's; n is at least 1. */
uint32_t *sm_domains_of_lanes(const struct sm_analysis *a, uint64_t **domains, uint32_t *n);

#endif
