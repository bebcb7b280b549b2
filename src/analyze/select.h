/* Filters applied to an analysis: the rows that pass, and what views hide and collapse. Hosted; reads the
   analysis and the filter only, any number of threads at once. */
#ifndef SM_ANALYZE_SELECT_H
#define SM_ANALYZE_SELECT_H

#include "analyze/analysis.h"
#include "analyze/filter.h"

/* The rows for which the conditions of `f` hold, exactly. f == NULL or without conditions: all rows. Of these
   only the base (analysis.h), unless a condition is on the source. words is NULL when nothing is left out.
   threads 0 = as many as processors. Release with sm_selection_release. */
void sm_select(struct sm_selection *s, const struct sm_analysis *a, const struct sm_filter *f,
               unsigned threads);

/* The rows for which both hold; the base unless one of them names sources. */
void sm_select_both(struct sm_selection *s, const struct sm_analysis *a, const struct sm_filter *f,
                    const struct sm_filter *g, unsigned threads);

/* A time of a filter, in ns since the start of the trace; saturates. */
int64_t sm_filter_time_ns(const struct sm_analysis *a, const struct sm_filter_time *time);

/* What `hide` and `collapse` of f do, as sm_view_make (analyze/merged.h) wants it: a bitmap by frame, and by
   frame the text that stands for it (of its module, file or function, by the pattern's subject), 0 = none. NULL
   where f does nothing of the kind. The caller frees both. */
void sm_filter_views(const struct sm_analysis *a, const struct sm_filter *f, uint64_t **hidden,
                     sm_text_id **collapsed);

#endif
