/* What a file format provides to the reader (decode/trace.c) and to the merge. Internal. */
#ifndef SM_DECODE_BACKEND_H
#define SM_DECODE_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/trace.h"

struct sm_stream_cursor; /* the backend's own */

struct sm_backend {
    /* Reads all headers (and META, SYMS, END where the format has them): fills the trace's meta,
       end, streams, owners and losses. Called once, at open. */
    enum sm_status (*scan)(struct sm_trace *t, struct sm_error *err);

    /* A cursor over one stream (index, not id), at its first event. Stacks and extensions only when
       asked (enum sm_cursor_flag). NULL when out of memory. Allocations of a stream come in ascending
       obj_seq. */
    struct sm_stream_cursor *(*stream_new)(struct sm_trace *t, uint32_t stream_index,
                                           unsigned flags);
    /* Next event in the stream's order: SM_OK or SM_END. Fills every field but SM_EVENT_ORPHAN, which is
       the merge's. frames stay valid until the next call on this cursor. */
    enum sm_status (*stream_next)(struct sm_stream_cursor *c, struct sm_event *event);
    /* stream_next itself sets SM_EVENT_ORPHAN for references to objects of the event's own stream;
       false: the merge does. */
    bool marks_own_orphans;
    void (*stream_free)(struct sm_stream_cursor *c);

    /* Is the allocation (stream id, seq) in the trace, at whatever place? Constant or logarithmic
       time. The merge holds an event on it back only when it is. Packets that turn out damaged while
       they are read may change the answer from true to false. */
    bool (*has_object)(const struct sm_trace *t, uint32_t stream, uint64_t seq);

    void (*release)(struct sm_trace *t); /* frees what scan made */
};

extern const struct sm_backend sm_backend_native;   /* decode/native_*.c */
extern const struct sm_backend sm_backend_memtrace; /* decode/memtrace_*.c */

#endif
