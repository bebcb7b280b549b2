/* The hottest allocation sites, or functions, files, domains, ... Hosted. */
#ifndef SM_REPORT_TOP_H
#define SM_REPORT_TOP_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/estimate.h"
#include "report/callers.h"
#include "report/group.h"
#include "util/buffer.h"

struct sm_top_options {
    enum sm_group_by by;
    enum sm_metric metric;
    bool inclusive;                    /* sort by totals with callees */
    uint64_t n_rows;                   /* 0 = all */
    unsigned caller_depth;             /* 0 = none */
    struct sm_profile_options profile; /* `leaf` is set by sm_top_make */
    /* presentation */
    bool bytes, colours, utf8;
    unsigned width;
    const char *path;
};

struct sm_top {
    struct sm_trace *trace;
    const struct sm_top_options *options;
    struct sm_profile profile;
    struct sm_grouping grouping;
    struct sm_leaf_index index;
    uint32_t *rows; /* groups, sorted, those of weight 0 left out */
    size_t n_rows;
    uint64_t whole; /* of the metric */
    double unit;    /* bytes per word */
};

enum sm_status sm_top_make(struct sm_top *top, struct sm_trace *t,
                           const struct sm_top_options *options, struct sm_error *err);
void sm_top_release(struct sm_top *top);

void sm_top_print(struct sm_buffer *out, const struct sm_top *top);
void sm_top_json(struct sm_buffer *out, const struct sm_top *top);
void sm_top_csv(struct sm_buffer *out, const struct sm_top *top);

/* For the printers. */
const char *sm_group_by_name(enum sm_group_by by); /* "site", ... */
const char *sm_metric_name(enum sm_metric metric); /* "allocated", ... */
bool sm_top_has_totals(const struct sm_top *top);
uint64_t sm_top_key(const struct sm_top *top, uint32_t group); /* what rows are sorted by */
/* What a row or caller is called, not made safe. `place` may stay empty. */
void sm_top_name(const struct sm_top *top, uint32_t group, struct sm_buffer *name,
                 struct sm_buffer *place);
void sm_spot_name(const struct sm_top *top, uint32_t number, struct sm_buffer *name,
                  struct sm_buffer *place);
/* The estimate of a sum of samples; in a profile of native memory of bytes, whose interval follows from `seen`. seen NULL
   = not known (sums over callers and callees): the widest interval that such a sum can have; its `samples` is 0. */
struct sm_estimate sm_top_estimate(const struct sm_top *top, uint64_t weight,
                                   const struct sm_seen *seen);

/* Rows to show. */
size_t sm_top_shown(const struct sm_top *top);

#endif
