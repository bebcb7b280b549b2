/* Writes a native trace from hosted code: META, EVENTS and SYMS as events come, INDEX and END at the
   close. Streams may be interleaved in any way; times must not decrease within a stream. */
#ifndef SM_CONVERT_NATIVE_WRITER_H
#define SM_CONVERT_NATIVE_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "decode/trace.h"
#include "util/error.h"

struct sm_native_writer;

struct sm_native_writer_options {
    bool compress;         /* zstd where it helps and is built in */
    int zstd_level;        /* 0 = 1 */
    uint32_t target_bytes; /* raw size of an EVENTS packet; 0 = SM_TARGET_RAW_BYTES */
};

/* `meta` is written as it is (strings borrowed until the call returns). `out` is borrowed; the
   writer only appends. */
enum sm_status sm_native_writer_new(struct sm_native_writer **w, FILE *out,
                                    const struct sm_meta *meta,
                                    const struct sm_native_writer_options *options,
                                    struct sm_error *err);

/* Appends one event. `codes` are the stack's location codes, outermost first (allocations). The
   object's seq is event->obj_seq; allocations of a stream must come in ascending seq. The owner is written when it
   differs from the stream's last one; NULL = none. */
enum sm_status sm_native_writer_event(struct sm_native_writer *w, const struct sm_event *event,
                                      const uint64_t *codes, const struct sm_owner *owner,
                                      struct sm_error *err);

/* Announces the locations of a code; once per code. */
enum sm_status sm_native_writer_location(struct sm_native_writer *w, uint64_t code,
                                         const struct sm_location *list, uint32_t n,
                                         struct sm_error *err);

/* Flushes everything, writes INDEX and END. `end` gives the END figures (present is ignored). */
enum sm_status sm_native_writer_close(struct sm_native_writer *w, const struct sm_end *end,
                                      struct sm_error *err);
void sm_native_writer_free(struct sm_native_writer *w);

#endif
