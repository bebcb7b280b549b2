/* Everything a trace tells as a whole: its header and, after one pass in merged order, its figures.
   Hosted. */
#ifndef SM_REPORT_INFO_H
#define SM_REPORT_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/estimate.h"
#include "decode/trace.h"
#include "util/buffer.h"

#define SM_HEAPS 4
#define SM_ORIGINS 9

/* Size classes in words without header: 0, 1-2, 3-4, 5-8, ... 129-256, > 256. */
#define SM_SIZE_CLASSES 10
extern const char *const sm_size_class_names[SM_SIZE_CLASSES];

/* Counts of a set of sampled allocations. */
struct sm_tally {
    uint64_t blocks;           /* sampled allocations */
    uint64_t samples;          /* sampled words: what estimates are made of */
    uint64_t promoted_samples; /* of them later promoted */
    uint64_t live_samples;     /* not collected at the end */
};

/* Native memory. */
struct sm_native_tally {
    struct sm_byte_sum allocated, live;
};

struct sm_info_owner {
    struct sm_owner owner;
    bool seen; /* in an event on an object */
    struct sm_tally tally;
};

struct sm_info_domain {
    uint64_t id;
    uint32_t n_owners;
    struct sm_tally tally;
};

struct sm_info {
    struct sm_tally all;
    struct sm_tally heaps[SM_HEAPS], origins[SM_ORIGINS], sizes[SM_SIZE_CLASSES];
    uint64_t n_alloc[SM_HEAPS], n_promote, n_collect, n_other;
    uint64_t n_orphans;
    uint64_t words; /* sum of lengths; of blocks measured in bytes rounded up */
    uint64_t max_words;
    uint32_t max_depth;
    uint64_t sum_depth;
    uint64_t empty_stacks, cut_stacks, lost_stacks;
    uint64_t live_samples, peak_samples;
    int64_t peak_ns;     /* time of the peak */
    int64_t last_ns;     /* of the last event; 0 = none */
    int64_t duration_ns; /* to the end of the trace where it is known */
    /* Native allocations, in traces that tell their interval; they take part in none of the figures above but
       n_alloc[SM_HEAP_NATIVE], n_other and the times. */
    struct {
        struct sm_native_tally all, origins[SM_ORIGINS];
        struct sm_byte_sum peak;
        int64_t peak_ns;
        uint64_t n_free;
        uint64_t max_bytes; /* the largest sampled block */
        uint32_t n_streams; /* that allocated */
    } native;
    uint32_t n_streams;     /* that did anything on OCaml's side */
    uint64_t max_rss_bytes; /* from COUNTERS records; 0 = none */
    uint64_t n_marks;
    char (*marks)[96]; /* the first SM_INFO_MARKS, cut */
    int64_t *mark_ns;
    struct sm_info_owner *owners; /* those with events */
    uint32_t n_owners;
    struct sm_info_domain *domains; /* ascending */
    uint32_t n_domains;
};
#define SM_INFO_MARKS 16

/* One pass. On success release with sm_info_release. */
enum sm_status sm_info_collect(struct sm_info *info, struct sm_trace *t, struct sm_error *err);
void sm_info_release(struct sm_info *info);

struct sm_info_options {
    bool quick; /* no pass was made: header only (`info` may be NULL) */
    bool bytes; /* exact figures rather than units */
    bool colours, utf8;
    unsigned width;
    const char *path;
};
void sm_info_print(struct sm_buffer *out, struct sm_trace *t, const struct sm_info *info,
                   const struct sm_info_options *options);
void sm_info_json(struct sm_buffer *out, struct sm_trace *t, const struct sm_info *info,
                  const struct sm_info_options *options);

/* Things a reader of the trace should know, one sentence each; at most `max`. Texts are static or live in
   `room`. */
#define SM_WARNINGS 8
struct sm_warnings {
    unsigned n;
    char texts[SM_WARNINGS][320];
};
void sm_info_warnings(struct sm_warnings *w, struct sm_trace *t, const struct sm_info *info);

#endif
