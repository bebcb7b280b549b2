/* The targets of sm_convert. Internal to src/convert. */
#ifndef SM_CONVERT_CONVERT_INTERNAL_H
#define SM_CONVERT_CONVERT_INTERNAL_H

#include "convert/convert.h"

enum sm_status sm_convert_to_native(struct sm_trace *t, FILE *out,
                                    const struct sm_convert_options *options,
                                    struct sm_convert_result *result, struct sm_error *err);

enum sm_status sm_convert_to_memtrace(struct sm_trace *t, FILE *out, const char *path,
                                      const struct sm_convert_options *options,
                                      struct sm_convert_result *result, struct sm_error *err);

/* Codes of an event's stack, outermost first, in *codes (grown as needed, free it at the end). */
struct sm_code_buffer {
    uint64_t *codes;
    size_t capacity;
};
void sm_event_codes(const struct sm_trace *t, const struct sm_event *e, struct sm_code_buffer *b);

/* Names of all locations into a native trace. */
struct sm_native_writer;
enum sm_status sm_convert_names(struct sm_trace *t, struct sm_native_writer *w,
                                struct sm_error *err);

/* What the END of a trace made of `t` tells: its own figures, and what was lost of it. */
struct sm_end sm_convert_end_of(const struct sm_trace *t);

#endif
