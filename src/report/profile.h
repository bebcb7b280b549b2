/* Samples by where they were allocated: one pass over a trace in merged order. Hosted.

   Stacks are folded into a calling-context tree. A node is found by a hash of all frames down to it.
   Each stream remembers these hashes for its last stack, by depth, and the reader tells how many
   outer frames a stack shares with the one before: so a stack costs one step of hashing per new frame
   and, when it has been seen before, a single look-up, whatever its depth. Looking up node by node costs
   five times as much: each step is a cache miss that waits for the one before. A hit is
   taken as such when about 56 bits of hash and the innermost frame agree; among 24 million nodes the
   chance of a single mistake is below 1 in 100,000.

   Sums are kept at leaves: a leaf is a tree node (grouping by place), or a domain, thread or heap.
   The exact peak: a leaf knows how much of it was alive when all memory together was at its largest.
   Instead of copying all sums at each new maximum, a leaf that is about to change looks whether a
   maximum came after its last change; if so, its value before the change is its value at that maximum.

   Native memory is sampled in another way (analyze/estimate.h), so a profile is of one kind: of native memory when
   the option `heap` asks for it in a trace that tells its interval, else of all other.

   Memory: about 26 bytes per tree node and 120 per leaf, 9 per live object. Beyond `max_nodes` new stacks are
   kept as their allocation site only, below a node FOLDED; `n_folded` counts them. */
#ifndef SM_REPORT_PROFILE_H
#define SM_REPORT_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/trace.h"
#include "report/objects.h"

enum sm_leaf_kind {
    SM_LEAF_STACK = 0, /* key: tree node */
    SM_LEAF_DOMAIN,    /* key: index in `domains` */
    SM_LEAF_OWNER,     /* key: owner index */
    SM_LEAF_SOURCE,    /* key: heap | origin << 3 */
};

struct sm_profile_options {
    enum sm_leaf_kind leaf;
    bool has_domain;
    uint64_t domain;
    int heap;               /* -1 = all */
    int64_t from_ns, to_ns; /* time of the allocation, since the trace's start */
    uint32_t max_nodes;     /* 0 = 24 million */
};

/* What stands behind a sum of native memory. */
struct sm_seen {
    uint64_t blocks;
    double variance; /* bytes squared */
};

/* All in samples, but for blocks; of native memory in estimated bytes. */
struct sm_weights {
    uint64_t allocated;
    uint64_t live; /* now, and at the end: not collected */
    uint64_t peak; /* of them alive when the whole trace was at its peak */
    uint64_t promoted;
    uint64_t collected;
    uint64_t blocks;
    struct sm_seen seen_allocated, seen_live, seen_peak; /* native memory only */
};

struct sm_leaf {
    uint32_t key;
    uint64_t changed; /* number of the event that changed `live` last */
    struct sm_weights weights;
};

/* Node 0 is the root. A parent's number is smaller than its children's. */
#define SM_NODE_ROOT 0u
struct sm_node {
    uint32_t parent;
    uint32_t location; /* id in the trace, or one of the pseudo locations */
    uint32_t leaf;     /* + 1; 0 = none */
};
#define SM_PSEUDO_FOLDED (UINT32_MAX - 1) /* callers left out to save memory */
#define SM_PSEUDO_LOST (UINT32_MAX - 2)   /* the trace does not have this stack */
#define SM_PSEUDO_EMPTY (UINT32_MAX - 3)  /* the runtime gave no stack */
#define SM_PSEUDO_FIRST SM_PSEUDO_EMPTY

struct sm_profile {
    struct sm_profile_options options;
    struct sm_trace *trace;
    struct sm_node *nodes;
    size_t n_nodes, nodes_capacity;
    struct sm_node_slot {
        uint32_t node; /* 0 = free */
        uint32_t tag;  /* upper half of the hash */
    } * table;         /* open addressing */
    size_t table_mask;
    struct sm_leaf *leaves;
    size_t n_leaves, leaves_capacity;
    uint64_t *domains; /* ids, for SM_LEAF_DOMAIN */
    size_t n_domains, domains_capacity;
    struct sm_map leaf_numbers, domain_numbers;
    struct sm_map stream_numbers;
    struct sm_profile_stream *streams;
    size_t n_streams, streams_capacity;
    uint32_t last_stream_id, last_stream;
    struct sm_objects objects;

    struct sm_weights all;  /* of the wanted allocations */
    double native_interval; /* R when this is a profile of native memory, else 0 */
    bool leaves_out_native; /* the trace has such memory, and it is not in here */
    double interval;        /* of the trace's native memory, 0 = none */
    struct sm_seen all_seen, live_seen, peak_seen; /* behind trace_allocated, live_now, peak */
    uint64_t trace_allocated;                      /* of all, wanted or not */
    uint64_t live_now, peak;                       /* of all, wanted or not */
    uint64_t event, peak_event;                    /* numbers of events, from 1 */
    int64_t peak_ns, last_ns; /* last: of the trace's end, where it is known, or the last event */
    uint64_t n_folded;        /* allocations */
};

enum sm_status sm_profile_collect(struct sm_profile *p, struct sm_trace *t,
                                  const struct sm_profile_options *options, struct sm_error *err);
void sm_profile_release(struct sm_profile *p);

/* Time of the trace's last event, ns since its start: from the END packet or by a pass without stacks. */
enum sm_status sm_trace_last_ns(struct sm_trace *t, int64_t *ns, struct sm_error *err);

#endif
