/* `timeline`: live memory over time, as a plot, CSV, JSON or SVG. Hosted. */
#ifndef SM_REPORT_TIMELINE_H
#define SM_REPORT_TIMELINE_H

#include "analyze/curve.h"
#include "report/asked.h"

enum sm_series_by { SM_SERIES_TOTAL = 0, SM_SERIES_DOMAIN, SM_SERIES_SOURCE, SM_SERIES_SITE };

struct sm_series {
    char *name;
    char *filter; /* that selects it within what was asked for; "" = none */
    const struct sm_curve_point *points;
    struct sm_peak peak;
    bool measured; /* told by the system, not estimated */
};
struct sm_timeline {
    const struct sm_asked *asked;
    uint32_t n_series, n_points;
    int64_t from_ns, to_ns;
    struct sm_series *series;
    struct sm_curve *curves; /* one, or one for each filter */
    uint32_t n_curves;
    struct sm_curve_point *process; /* points of the process' memory, or NULL */
    double unit;                    /* bytes; 1 and samples when the rate is unknown */
};

#define SM_TIMELINE_MAX_POINTS 100000u

/* top: series of sites beside "others". */
void sm_timeline_make(struct sm_timeline *t, const struct sm_asked *asked, enum sm_series_by by,
                      uint32_t top, int64_t from_ns, int64_t to_ns, uint32_t n_points);
/* One series for each filter, within what was asked for; the first is what was asked for itself. */
bool sm_timeline_of_filters(struct sm_timeline *t, const struct sm_asked *asked,
                            const char *const *filters, uint32_t n, int64_t from_ns, int64_t to_ns,
                            uint32_t n_points, struct sm_filter_error *err);
/* One more series: the resident memory of the process, where the trace has it; else false. */
bool sm_timeline_add_process(struct sm_timeline *t);
void sm_timeline_release(struct sm_timeline *t);

void sm_timeline_print(struct sm_buffer *out, const struct sm_timeline *t);
void sm_timeline_json(struct sm_buffer *out, const struct sm_timeline *t);
void sm_timeline_csv(struct sm_buffer *out, const struct sm_timeline *t);
void sm_timeline_svg(struct sm_buffer *out, const struct sm_timeline *t);
/* Of a series' peak, and of what is live at a point's end, with their 95 % intervals. */
struct sm_estimate sm_timeline_peak(const struct sm_timeline *t, const struct sm_series *s);
struct sm_estimate sm_timeline_estimate(const struct sm_timeline *t, const struct sm_series *s,
                                        uint32_t point);
/* The members of docs/api.md into an open object. */
void sm_timeline_members(struct sm_json *j, const struct sm_timeline *t);

#endif
