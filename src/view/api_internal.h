/* What the parts of the API share. Internal to src/view. */
#ifndef SM_VIEW_API_INTERNAL_H
#define SM_VIEW_API_INTERNAL_H

#include "report/asked.h"
#include "view/api.h"

/* One request being answered. */
struct sm_answer {
    const struct sm_api *api;
    const struct sm_request *r;
    struct sm_snapshot *s;           /* of `trace`; NULL: of no trace */
    const struct sm_applied *filter; /* of `filter` */
    struct sm_asked asked;
    struct sm_json j;
    unsigned status; /* 0 = fine so far */
    bool kept;       /* the answer is complete, from or for those kept */
    struct sm_filter_error filter_error;
    char error[512];
};

/* Sets the error once; returns false, so that it can be returned. */
bool sm_answer_fail(struct sm_answer *a, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Parameters; NULL or the default when absent, false with the error set when malformed. */
const char *sm_parameter(const struct sm_request *r, const char *name);
const char *sm_parameter_nth(const struct sm_request *r, const char *name, uint32_t n);
bool sm_parameter_u64(struct sm_answer *a, const char *name, uint64_t least, uint64_t most,
                      uint64_t *x);
bool sm_parameter_i64(struct sm_answer *a, const char *name, int64_t *x);
bool sm_parameter_share(struct sm_answer *a, const char *name, double *x);
bool sm_parameter_key(struct sm_answer *a, enum sm_key_kind *kind);
bool sm_parameter_weights(struct sm_answer *a, struct sm_weight *list, uint32_t max, uint32_t *n);
/* Repeated `name`: place ids -> keys; free(). */
bool sm_parameter_keys(struct sm_answer *a, const struct sm_view *v, const char *name,
                       uint32_t **keys, uint32_t *n);
/* The trace and filter named by these parameters; false with the error set. What was taken is in *s and *filter all
   the same, and is to be given back. */
bool sm_answer_hold(struct sm_answer *a, const char *trace_name, const char *filter_name,
                    struct sm_snapshot **s, const struct sm_applied **filter,
                    struct sm_asked *asked);

/* The paths: each writes members into the open object, or sets the error before it has written any. */
void sm_api_traces(struct sm_answer *a);
void sm_api_summary(struct sm_answer *a);
void sm_api_timeline(struct sm_answer *a);
void sm_api_tree(struct sm_answer *a);
void sm_api_places(struct sm_answer *a);
void sm_api_groups(struct sm_answer *a);
void sm_api_fragments(struct sm_answer *a);
void sm_api_leaks(struct sm_answer *a);
void sm_api_source(struct sm_answer *a);
void sm_api_compare(struct sm_answer *a);
void sm_api_filter(struct sm_answer *a);
void sm_api_search(struct sm_answer *a);

#endif
