/* One line per event. Hosted.

   Text: TIME dDOMAIN KIND OBJECT [SIZE HEAP xSAMPLES] [| innermost frame < its caller < ...]
   TIME is seconds since the start of the trace, OBJECT is STREAM:SEQ, SIZE ends with w (words, without
   header) or B (bytes). JSON: one object per line, with the same in named fields. */
#ifndef SM_REPORT_DUMP_H
#define SM_REPORT_DUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/trace.h"
#include "util/buffer.h"

enum sm_dump_kind {
    SM_DUMP_ALLOC = 1 << SM_EVENT_ALLOC,
    SM_DUMP_PROMOTE = 1 << SM_EVENT_PROMOTE,
    SM_DUMP_COLLECT = 1 << SM_EVENT_COLLECT,
    SM_DUMP_EXTENSION = 1 << SM_EVENT_EXTENSION,
};

struct sm_dump_options {
    bool json, stacks, utf8;
    unsigned kinds; /* of enum sm_dump_kind */
    bool has_domain;
    uint64_t domain;
    int heap;               /* allocations of this heap only and nothing else; -1 = all */
    int64_t from_ns, to_ns; /* since the trace's start, both included */
    uint64_t limit;         /* lines; UINT64_MAX = all */
};

/* Stops early and quietly when `out` has failed. */
enum sm_status sm_dump(struct sm_trace *t, const struct sm_dump_options *options,
                       struct sm_buffer *out, struct sm_error *err);

#endif
