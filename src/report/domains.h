/* `domains`: what each domain or thread allocates, keeps, promotes, and whose blocks others free. Hosted. */
#ifndef SM_REPORT_DOMAINS_H
#define SM_REPORT_DOMAINS_H

#include "analyze/curve.h"
#include "analyze/group.h"
#include "report/asked.h"

enum {
    SM_DOMAIN_ALLOCATED = 0,
    SM_DOMAIN_PROMOTED,
    SM_DOMAIN_LIVE,
    SM_DOMAIN_AT_PEAK, /* of the whole trace */
    SM_DOMAIN_FREED,
    SM_DOMAIN_WEIGHTS
};

/* What one domain (or thread) allocated and another one freed. */
struct sm_cross_free {
    uint32_t from, to; /* values of the dimension */
    struct sm_sum sum;
};

struct sm_domains_report {
    const struct sm_asked *asked;
    bool threads; /* a row is a thread, else a domain */
    struct sm_dimension dimension;
    struct sm_weigher weighers[SM_DOMAIN_WEIGHTS];
    struct sm_sum totals[SM_DOMAIN_WEIGHTS];
    struct sm_groups groups;
    struct sm_curve curve; /* a series per value: for its own peak */
    struct sm_cross_free *cross;
    size_t n_cross; /* by falling units */
};

void sm_domains_report_make(struct sm_domains_report *r, const struct sm_asked *asked,
                            bool threads);
void sm_domains_report_release(struct sm_domains_report *r);
void sm_domains_report_print(struct sm_buffer *out, const struct sm_domains_report *r);
void sm_domains_report_json(struct sm_buffer *out, const struct sm_domains_report *r);
void sm_domains_report_csv(struct sm_buffer *out, const struct sm_domains_report *r);

#endif
