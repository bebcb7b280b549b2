/* A whole trace into another format. Hosted. */
#ifndef SM_CONVERT_CONVERT_H
#define SM_CONVERT_CONVERT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "convert/memtrace_writer.h"
#include "decode/trace.h"
#include "util/error.h"

enum sm_convert_target {
    SM_TO_NATIVE = 0,
    SM_TO_MEMTRACE_3,
    SM_TO_MEMTRACE_2,
    SM_TO_CTF, /* a directory that babeltrace2 and other CTF tools read */
};

struct sm_convert_options {
    enum sm_convert_target target;
    enum sm_memtrace_order order; /* memtrace 3 only */
    bool compress;                /* native only */
};

/* What was written, and what the target's format could not hold. */
struct sm_convert_result {
    uint64_t n_events, n_alloc, n_promote, n_collect;
    uint64_t bytes;     /* written; 0 for a directory */
    uint64_t n_domains; /* distinct */
    uint64_t n_orphans; /* events on objects that are not in the trace: left out (memtrace) */
    uint64_t n_records; /* marks, counters, ...: left out (memtrace) */
    uint64_t n_rounded; /* times rounded down to a microsecond (memtrace) */
    uint64_t n_cut;     /* stacks with frames cut: marked by a pseudo location (memtrace) */
    uint64_t
        n_lost_stacks; /* memtrace stacks whose inner end its writer cut: taken as its reader gives
                               them, the previous stack */
    uint64_t n_threads_merged; /* threads that share a domain with others (memtrace) */
    uint64_t n_renumbered;     /* domains whose number does not fit, given another (memtrace) */
    uint64_t n_other_heap;     /* native allocations, written as external */
    uint64_t n_native; /* native allocations, sampled in their own way: left out (memtrace) */
};

/* Reads `t` to its end. Everything but CTF goes to `out` (borrowed); CTF to the directory `path`, which must
   not exist or be empty. */
enum sm_status sm_convert(struct sm_trace *t, FILE *out, const char *path,
                          const struct sm_convert_options *options,
                          struct sm_convert_result *result, struct sm_error *err);

/* From file to file in memtrace's format 3, exact order. `to` is replaced when all went well. */
enum sm_status sm_convert_memtrace_file(const char *from, const char *to, struct sm_error *err);

#endif
