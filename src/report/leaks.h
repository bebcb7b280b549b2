/* `leaks`: what is alive at the end and growing. Hosted. */
#ifndef SM_REPORT_LEAKS_H
#define SM_REPORT_LEAKS_H

#include "analyze/leaks.h"
#include "report/asked.h"

struct sm_leaks_report {
    const struct sm_asked *asked;
    struct sm_view view;
    struct sm_leaks leaks;
    struct sm_weigher live; /* live@end of what was asked for */
    struct sm_sum total;    /* of the rows that are not suppressed */
    uint32_t n_suppressed;
};

/* suppress: patterns, one a line; '#' begins a comment. A site goes when a line is in its name, or matches it as
   a glob. NULL = none. */
void sm_leaks_report_make(struct sm_leaks_report *r, const struct sm_asked *asked,
                          enum sm_key_kind key, uint32_t generations, const char *suppress);
void sm_leaks_report_release(struct sm_leaks_report *r);
void sm_leaks_report_print(struct sm_buffer *out, const struct sm_leaks_report *r);
void sm_leaks_report_json(struct sm_buffer *out, const struct sm_leaks_report *r);
void sm_leaks_report_csv(struct sm_buffer *out, const struct sm_leaks_report *r);
/* "generations", "sites", "more" into an open object. */
void sm_leaks_report_members(struct sm_json *j, const struct sm_leaks_report *r);

#endif
