/* The hottest allocation sites, or functions, files, domains, ... Hosted. */
#ifndef SM_REPORT_TOP_H
#define SM_REPORT_TOP_H

#include "analyze/group.h"
#include "report/asked.h"
#include "report/callers.h"

/* Metrics that every row has; SM_TOP_BLOCKS orders by the number of sampled blocks. */
enum sm_top_metric {
    SM_TOP_ALLOCATED = 0,
    SM_TOP_LIVE,
    SM_TOP_PEAK,
    SM_TOP_PROMOTED,
    SM_TOP_COLLECTED,
    SM_TOP_METRICS,
    SM_TOP_BLOCKS = SM_TOP_METRICS,
    SM_TOP_OTHER, /* options.weight */
};

struct sm_top_options {
    const char *by; /* site function line file module domain thread source */
    enum sm_top_metric metric;
    struct sm_weight weight; /* of SM_TOP_OTHER */
    bool inclusive;          /* sort by totals with callees */
    unsigned caller_depth;   /* 0 = none */
};

struct sm_top_row {
    uint32_t value;           /* of the dimension */
    const struct sm_sum *own; /* by weigher */
    struct sm_sum total; /* of the metric, with callees, each row once (recursion!); places only */
};

struct sm_top {
    const struct sm_asked *asked;
    const struct sm_top_options *options;
    bool places; /* rows are places in the program */
    bool totals; /* ... of which `total` is known */
    struct sm_dimension dimension;
    struct sm_view view;
    struct sm_weigher weighers[SM_TOP_METRICS + 1];
    struct sm_sum all[SM_TOP_METRICS + 1];
    uint32_t n_weighers;
    uint32_t which; /* weigher of the metric */
    struct sm_groups groups;
    struct sm_sum *nodes; /* of the metric */
    struct sm_callers callers;
    struct sm_top_row *rows; /* sorted, those of weight 0 left out */
    uint32_t n_rows;
    uint64_t whole; /* of the metric */
};

/* False when `by` names nothing. */
bool sm_top_make(struct sm_top *top, const struct sm_asked *asked,
                 const struct sm_top_options *options);
void sm_top_release(struct sm_top *top);

void sm_top_print(struct sm_buffer *out, const struct sm_top *top);
void sm_top_json(struct sm_buffer *out, const struct sm_top *top);
void sm_top_csv(struct sm_buffer *out, const struct sm_top *top);

/* For the printers. */
const char *sm_top_metric_name(const struct sm_top *top, char to[64]); /* "allocated", ... */
uint64_t sm_top_weight(const struct sm_top *top, const struct sm_sum *sum);
uint32_t sm_top_shown(const struct sm_top *top);
/* What a row or a caller is called, not made safe. `place` may stay empty. */
void sm_top_name(const struct sm_top *top, uint32_t value, struct sm_buffer *name,
                 struct sm_buffer *place);
void sm_top_spot_name(const struct sm_view *v, uint32_t key, struct sm_buffer *name,
                      struct sm_buffer *place);

#endif
