/* The viewer's API (docs/api.md) without its transport: a request is a path and parameters, an answer JSON. Hosted,
   thread-safe. */
#ifndef SM_VIEW_API_H
#define SM_VIEW_API_H

#include "util/buffer.h"
#include "view/traces.h"

struct sm_parameter {
    char *name, *value;
};
struct sm_request {
    const char *path; /* "/api/v1/tree" */
    const struct sm_parameter *parameters;
    uint32_t n_parameters;
};

struct sm_api {
    struct sm_traces *traces;
    const char *const *source_roots;
    uint32_t n_source_roots;
    bool following;
};

/* Appends the answer; returns its HTTP status. */
unsigned sm_api_answer(const struct sm_api *api, const struct sm_request *r, struct sm_buffer *out);

/* "/debug/pprof/heap" (live at the end) and "/debug/pprof/allocs": a gzipped pprof profile of `trace`, of what `filter` lets
   through. On success 200; else the answer is JSON as above. False when the path is another. */
bool sm_api_profile(const struct sm_api *api, const struct sm_request *r, struct sm_buffer *out,
                    unsigned *status);

#endif
