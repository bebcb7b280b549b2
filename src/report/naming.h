/* How places in programs, owners and kinds of memory are called in reports. Hosted. */
#ifndef SM_REPORT_NAMING_H
#define SM_REPORT_NAMING_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/trace.h"
#include "util/buffer.h"

const char *sm_heap_name(unsigned heap);     /* "minor", ...; "unknown" for others */
const char *sm_origin_name(unsigned origin); /* "normal", "marshal", ... */
/* The same in native memory: "program", "custom", "mapped", "ocaml-heap", ... */
const char *sm_native_origin_name(unsigned origin);
const char *sm_gc_pause_name(uint64_t kind);
const char *sm_counter_name(uint64_t counter); /* JSON key such as "minor_words", NULL = unknown */
const char *sm_discard_reason_name(uint64_t reason);
const char *sm_format_name(const struct sm_meta *meta);      /* "statmem 1", "memtrace 3" */
const char *sm_rate_origin_name(enum sm_rate_origin origin); /* "" = unknown */

/* All names below are appended as they are: make them safe (sm_text_safe) before showing. */

/* "list.ml:92:12-30", "list.ml:92" without columns; "[libfoo.so]" when there is no line. */
void sm_place(struct sm_buffer *out, const struct sm_location *l, bool columns);

/* The function's name, "?" when it has none. */
const char *sm_function(const struct sm_location *l);

/* What stands for a frame without locations: a cut or a bare code. */
void sm_nameless_frame(struct sm_buffer *out, uint64_t code, bool utf8);

#endif
