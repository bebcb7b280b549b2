/* A profile's leaves grouped by function, line, file, site, domain, thread or source. Hosted. */
#ifndef SM_REPORT_GROUP_H
#define SM_REPORT_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/profile.h"
#include "util/map.h"

enum sm_group_by {
    SM_BY_SITE = 0, /* function, file, line, columns */
    SM_BY_FUNCTION, /* function and file: the same name in two files is two functions */
    SM_BY_LINE,
    SM_BY_FILE,
    SM_BY_DOMAIN,
    SM_BY_THREAD,
    SM_BY_SOURCE,
};

/* A place in the program, at the finest grain (site). */
struct sm_spot {
    const struct sm_location *location; /* NULL: nameless or pseudo */
    uint64_t code;                      /* of nameless ones */
    uint32_t pseudo;                    /* SM_PSEUDO_..., 0 = none */
    uint32_t group;                     /* at the grain asked for */
    uint32_t function;                  /* number of (file, function) */
};

struct sm_group {
    uint32_t spot; /* one of its spots, for its name; the key for domains, threads, sources */
    struct sm_weights own;
    uint64_t
        total; /* of one metric, with callees, each allocation once (recursion!); places only */
};

enum sm_metric {
    SM_ALLOCATED = 0,
    SM_LIVE,
    SM_PEAK,
    SM_PROMOTED,
    SM_COLLECTED,
    SM_BLOCKS,
};
uint64_t sm_weight(const struct sm_weights *w, enum sm_metric metric);
struct sm_seen sm_weight_seen(const struct sm_weights *w, enum sm_metric metric);

struct sm_grouping {
    const struct sm_profile *profile;
    enum sm_group_by by;
    struct sm_group *groups;
    size_t n_groups, groups_capacity;
    struct sm_spot *spots;
    size_t n_spots, spots_capacity;
    /* spots of a location id: spot_list[first[id] .. first[id + 1]), outermost first */
    uint32_t *first;
    uint32_t *spot_list;
    uint32_t n_locations;
    struct sm_names spot_names, group_names, function_names;
};

/* with_totals: fill `total` with `metric` (for places), one more pass over the tree. */
void sm_grouping_make(struct sm_grouping *g, const struct sm_profile *profile, enum sm_group_by by,
                      bool with_totals, enum sm_metric metric);
void sm_grouping_release(struct sm_grouping *g);

/* The spots of a tree node's location, outermost first; returns their number, at least 1. */
uint32_t sm_grouping_spots(const struct sm_grouping *g, uint32_t node, const uint32_t **spots);

#endif
