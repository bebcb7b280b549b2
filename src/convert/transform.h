/* Traces made of traces: with other names, with fewer samples, several as one. Hosted. Output is native; `out` is
   borrowed. */
#ifndef SM_CONVERT_TRANSFORM_H
#define SM_CONVERT_TRANSFORM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "decode/trace.h"
#include "util/error.h"

struct sm_transform_result {
    uint64_t n_events, n_alloc; /* written */
    uint64_t n_dropped;         /* allocations left out */
};

/* Names (files, functions, threads, program, host, marks) become pseudonyms; arguments, context and runtime
   parameters go. The same name has the same pseudonym, in every trace that is stripped with the same key; the parts
   of a dotted name are treated one by one, so that modules stay visible as such. Pseudonyms are hashes, not
   encryption: without a key whoever guesses a name can confirm it. */
enum sm_status sm_strip(struct sm_trace *t, FILE *out, const char *key,
                        struct sm_transform_result *result, struct sm_error *err);

/* Every sample is kept with probability `factor`, independently: a block keeps Binomial (n, factor) of its n
   samples, and goes when none is left. What remains is what sampling at rate x factor would have given. Of
   these, blocks allocated in [from_ns, to_ns] stay. The rate in the new trace is rate x factor. */
struct sm_subsample_options {
    double factor; /* (0, 1] */
    int64_t from_ns, to_ns;
    uint64_t seed; /* 0 = 1 */
};
enum sm_status sm_subsample(struct sm_trace *t, FILE *out, const struct sm_subsample_options *o,
                            struct sm_transform_result *result, struct sm_error *err);

/* Several processes' traces as one, on one wall-clock time axis. Domains are renumbered where two have the same number;
   threads are named after their process. All must have the same rate and word size. */
enum sm_status sm_merge_traces(struct sm_trace *const *traces, uint32_t n, FILE *out,
                               struct sm_transform_result *result, struct sm_error *err);

#endif
