/* Builds the payload of EVENTS packets (docs/format.md, section 5). Hook-safe: no allocation, no
   system call; the state's memory comes from the caller, zeroed (fresh anonymous pages are).

   One encoder serves one stream and one thread at a time. It appends events to a buffer that the
   caller owns, one complete event per call, and never looks back at it. State is reset by
   sm_event_encoder_begin at the start of each packet.

   The state is large (about 1.3 MB of address space) but touched sparsely. */
#ifndef SM_ENCODE_EVENT_ENCODER_H
#define SM_ENCODE_EVENT_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/wire.h"

struct sm_event_encoder; /* layout in encode/event_encoder.c */

/* Bytes to map for one encoder. */
size_t sm_event_encoder_bytes(void);

/* Opens a packet whose payload goes to buf[0..capacity). Times are ticks. `depth_limit` is in
   2..SM_MAX_DEPTH. */
void sm_event_encoder_begin(struct sm_event_encoder *e, uint8_t *buf, size_t capacity,
                            uint64_t first_seq, uint64_t ts_begin_ticks, uint32_t depth_limit);

/* The bytes of payload built so far, and the packet's header fields that follow from the events:
   raw_bytes, first_seq, ts_begin, ts_span, n_events, n_alloc, max_depth, n_cut. */
size_t sm_event_encoder_used(const struct sm_event_encoder *e);
void sm_event_encoder_fill_header(const struct sm_event_encoder *e, struct sm_packet_header *h);

/* True when the packet should be closed before the next event: it has reached `target_bytes`, or
   its tables could overflow. */
bool sm_event_encoder_full(const struct sm_event_encoder *e, size_t target_bytes);

/* The largest number of bytes that an allocation with `n_frames` frames, or an extension record
   with a payload of `payload_bytes`, can take. */
size_t sm_event_encoder_bound_alloc(uint32_t n_frames);
size_t sm_event_encoder_bound_extension(size_t payload_bytes);

/* A call stack as given by OCaml's runtime: n tagged elements, innermost first. Location code of an
   element: (element & ~1), i.e. the slot. Code 0 elements are not allowed. `cut` = the array
   itself lacks outer frames (they are marked by a leading code-0 frame). `cut_at` > 0 = the element there stands for
   frames that were left out in the middle; the array is not longer than the depth limit then. */
struct sm_raw_stack {
    const uintptr_t *innermost_first;
    uint32_t n_frames;
    bool cut_outermost;
    uint32_t cut_at;
};

/* Reports every location that is new to this packet, in order. Called from within encode calls;
   must not touch the encoder. NULL = nobody wants to know. */
typedef void sm_new_location_fn(void *ctx, uint64_t code);
void sm_event_encoder_on_new_location(struct sm_event_encoder *e, sm_new_location_fn *fn,
                                      void *ctx);

/* Each of these appends one event at `now_ticks` (taken as the last time when it lies before it)
   and returns true, or returns false and leaves buffer and state as they were when the buffer
   cannot surely hold it (see the bounds above).
   sm_event_encode_alloc stores the new object's seq in *seq. */
bool sm_event_encode_alloc(struct sm_event_encoder *e, uint64_t now_ticks, uint64_t size,
                           bool size_in_bytes, uint64_t n_samples, uint8_t source,
                           const struct sm_raw_stack *stack, uint64_t *seq);

/* The same for hosted writers that have codes, outermost first, of any 64-bit value; code 0 = cut.
   No depth limit is applied. */
bool sm_event_encode_alloc_codes(struct sm_event_encoder *e, uint64_t now_ticks, uint64_t size,
                                 bool size_in_bytes, uint64_t n_samples, uint8_t source,
                                 const uint64_t *outermost_first, uint32_t n_frames, uint64_t *seq);

/* op: SM_OP_PROMOTE or SM_OP_COLLECT. own = the object belongs to this stream. */
bool sm_event_encode_ref(struct sm_event_encoder *e, uint64_t now_ticks, enum sm_op op, bool own,
                         uint32_t obj_stream, uint64_t obj_seq);

/* op >= SM_OP_EXTENSION_MIN */
bool sm_event_encode_extension(struct sm_event_encoder *e, uint64_t now_ticks, enum sm_op op,
                               const void *payload, size_t payload_bytes);

#endif
