/* `tree`: callees or callers as text, JSON or CSV. Hosted. */
#ifndef SM_REPORT_TREE_H
#define SM_REPORT_TREE_H

#include "report/asked.h"

struct sm_tree_report {
    const struct sm_asked *asked;
    const struct sm_view *view;
    const struct sm_weigher *weigher;
    struct sm_merged merged;
    struct sm_merge_options options;
    struct sm_sum total; /* of all that was asked for, whatever the focus */
};

/* min_share of the total; focus as in struct sm_merge_options. */
void sm_tree_report_make(struct sm_tree_report *r, const struct sm_asked *asked,
                         const struct sm_view *view, const struct sm_weigher *weigher,
                         const struct sm_merge_options *options, double min_share);
void sm_tree_report_release(struct sm_tree_report *r);
void sm_tree_report_print(struct sm_buffer *out, const struct sm_tree_report *r);
void sm_tree_report_json(struct sm_buffer *out, const struct sm_tree_report *r);
void sm_tree_report_csv(struct sm_buffer *out, const struct sm_tree_report *r);
/* "total", "measure", "unit", "places", "nodes", "folded" into an open object (docs/api.md). */
void sm_tree_report_members(struct sm_json *j, const struct sm_tree_report *r);

#endif
