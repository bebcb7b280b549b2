/* `diff`: two traces, or two parts of one, side by side. Hosted.

   Places are the same when their ids are: function and file (and line), whatever their addresses. A difference is
   significant when the two 95 % intervals, scaled, are apart. */
#ifndef SM_REPORT_DIFF_H
#define SM_REPORT_DIFF_H

#include "report/asked.h"

enum sm_normalise {
    SM_NORMALISE_NONE = 0,
    SM_NORMALISE_TOTAL, /* B is scaled so that the totals agree: shares are compared */
    SM_NORMALISE_TIME,  /* ... so that the durations agree: rates are compared */
};

struct sm_diff_row {
    uint32_t key[2]; /* of the views; UINT32_MAX = not there */
    struct sm_sum own[2], total[2];
    double delta; /* B x scale - A, in the measure */
    bool significant;
};
struct sm_diff {
    const struct sm_asked *asked[2];
    struct sm_view views[2];
    struct sm_weigher weighers[2];
    struct sm_sum totals[2];
    double scale;
    bool inclusive;           /* delta is of `total`, else of `own` */
    struct sm_diff_row *rows; /* largest |delta| first */
    uint32_t n_rows;
    double delta; /* of the totals */
    bool significant;
};

void sm_diff_make(struct sm_diff *d, const struct sm_asked *a, const struct sm_asked *b,
                  enum sm_key_kind kind, const struct sm_weight *weight_a,
                  const struct sm_weight *weight_b, enum sm_normalise normalise, double factor,
                  bool inclusive);
void sm_diff_release(struct sm_diff *d);
void sm_diff_print(struct sm_buffer *out, const struct sm_diff *d);
void sm_diff_json(struct sm_buffer *out, const struct sm_diff *d);
void sm_diff_csv(struct sm_buffer *out, const struct sm_diff *d);
/* "scale", "total_a", "total_b", "delta", "significant", "rows", "more" into an open object. */
void sm_diff_members(struct sm_json *j, const struct sm_diff *d);

#endif
