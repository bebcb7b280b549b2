/* Tables of groups: `query` and the commands that are questions of its kind. Hosted. */
#ifndef SM_REPORT_QUERY_H
#define SM_REPORT_QUERY_H

#include "analyze/group.h"
#include "report/asked.h"

#define SM_MAX_WEIGHTS 4

struct sm_query {
    const struct sm_asked *asked;
    uint32_t n_dimensions, n_weights;
    struct sm_dimension dimensions[SM_MAX_DIMENSIONS];
    const char *names[SM_MAX_DIMENSIONS]; /* of the dimensions, as asked for */
    struct sm_view views[SM_MAX_DIMENSIONS];
    struct sm_weigher weighers[SM_MAX_WEIGHTS];
    struct sm_sum totals[SM_MAX_WEIGHTS];
    struct sm_groups groups;
    bool by_value; /* rows by the value of the first dimension, not by weight */
    bool bars;
};

/* by: "function,domain": function line frame file module stack domain thread heap source size lifetime
   time promoted. False with err set. Release in both cases. */
bool sm_query_make(struct sm_query *q, const struct sm_asked *asked, const char *by,
                   const struct sm_weight *weights, uint32_t n_weights, bool by_value,
                   struct sm_error *err);
void sm_query_release(struct sm_query *q);

void sm_query_print(struct sm_buffer *out, const struct sm_query *q);
void sm_query_json(struct sm_buffer *out, const struct sm_query *q);
void sm_query_csv(struct sm_buffer *out, const struct sm_query *q);

/* The members "by", "weights", "totals", "rows", "more" into an open object. */
void sm_query_members(struct sm_json *j, const struct sm_query *q);
/* The filter that selects the rows of a value; nothing where the language has none. */
void sm_query_filter(struct sm_buffer *out, const struct sm_query *q, uint32_t dimension,
                     uint32_t value);

#endif
