/* Live memory over time, exactly, in merged time order. Hosted; reads the analysis only. */
#ifndef SM_ANALYZE_CURVE_H
#define SM_ANALYZE_CURVE_H

#include "analyze/analysis.h"

/* The largest live sum of a selection (NULL = the base: what counts without a filter). */
struct sm_peak sm_selection_peak(const struct sm_analysis *a, const struct sm_selection *s,
                                 unsigned threads);

/* Of n equal spans of [from, to): live units at the span's end, the least and the largest within, and what
   was allocated and freed in it. A change at a span's first moment belongs to it. */
struct sm_curve_point {
    uint64_t live, low, high, allocated, freed;
    uint64_t live_samples;
    double live_variance;
};
struct sm_curve {
    int64_t from_ns, to_ns;
    uint32_t n_points;
    uint32_t n_series;
    struct sm_curve_point *points; /* series x n_points */
    struct sm_peak *peaks;         /* of each series, over the whole trace */
};

/* series_of_class, series_of_node: which series a row belongs to (SM_NO_SERIES = none), by its class or its
   node; either may be NULL; both given: node's wins unless SM_NO_SERIES... One series when both are NULL. */
#define SM_NO_SERIES UINT32_MAX
void sm_curve_make(struct sm_curve *c, const struct sm_analysis *a, const struct sm_selection *s,
                   int64_t from_ns, int64_t to_ns, uint32_t n_points, uint32_t n_series,
                   const uint32_t *series_of_class, const uint32_t *series_of_node,
                   unsigned threads);
void sm_curve_release(struct sm_curve *c);

#endif
