/* Writes memtrace traces, versions 2 and 3, byte for byte as the original writer would. One writer
   multiplexes all domains. Hosted. */
#ifndef SM_CONVERT_MEMTRACE_WRITER_H
#define SM_CONVERT_MEMTRACE_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "decode/trace.h"
#include "util/error.h"

struct sm_memtrace_writer;

enum sm_memtrace_order {
    SM_MEMTRACE_EXACT =
        0, /* file order = order of calls: a packet ends whenever the domain changes */
    SM_MEMTRACE_RELAXED, /* only what must: an allocation stands before events on it */
};

/* Asked for the locations of a code when it must be announced; returns the length of the list,
   outermost first. */
typedef uint32_t sm_memtrace_locate_fn(void *ctx, uint64_t code, const struct sm_location **list);

struct sm_memtrace_header {
    unsigned version; /* 2 or 3 */
    double sample_rate;
    uint32_t word_bits;
    const char *executable, *host, *runtime_params;
    const char *context; /* NULL or "" = none */
    uint64_t pid;
    int64_t start_us; /* since the Unix epoch */
    uint32_t initial_domain;
};

/* `out` is borrowed. */
enum sm_status sm_memtrace_writer_new(struct sm_memtrace_writer **w, FILE *out,
                                      const struct sm_memtrace_header *header,
                                      enum sm_memtrace_order order, sm_memtrace_locate_fn *locate,
                                      void *locate_ctx, struct sm_error *err);

/* An allocation at `now_us` since the epoch; times lying before the last one of the domain are raised to
   it. codes: outermost first, none 0. source: 0 minor, 1 major, 2 external. *obj_id is the file's id
   of the object. */
enum sm_status sm_memtrace_put_alloc(struct sm_memtrace_writer *w, uint32_t domain, int64_t now_us,
                                     uint64_t length_words, uint64_t n_samples, unsigned source,
                                     const uint64_t *codes, uint32_t n_codes, uint64_t *obj_id,
                                     struct sm_error *err);
/* obj_domain: the domain that allocated the object. */
enum sm_status sm_memtrace_put_promote(struct sm_memtrace_writer *w, uint32_t domain,
                                       uint32_t obj_domain, int64_t now_us, uint64_t obj_id,
                                       struct sm_error *err);
enum sm_status sm_memtrace_put_collect(struct sm_memtrace_writer *w, uint32_t domain,
                                       uint32_t obj_domain, int64_t now_us, uint64_t obj_id,
                                       struct sm_error *err);
enum sm_status sm_memtrace_writer_flush(struct sm_memtrace_writer *w, struct sm_error *err);
enum sm_status sm_memtrace_writer_close(struct sm_memtrace_writer *w, struct sm_error *err);
void sm_memtrace_writer_free(struct sm_memtrace_writer *w);

#endif
