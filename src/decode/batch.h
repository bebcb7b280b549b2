/* Native traces packet by packet, on any number of threads. Hosted.

   A packet holds all it takes to decode it, so a trace can be decoded in any order and on several threads. What
   packets do share, a trace's owners, locations without names, losses, and the rule that times do not run
   backwards in a stream, is put in afterwards, in the order of the packets. Hence two steps:

       decode   bytes -> arrays. Reads the trace only; concurrent, one decoder and batch per thread.
       commit   owners and last location ids into the arrays, losses into the trace. One packet after
                another, in ascending order of their index, by one thread at a time; other threads may go on decoding.

   Committed in this order the batches hold, event for event, what an unmerged cursor (merge/cursor.h) delivers, and
   the trace's losses are the same. sm_batch_each does both steps and keeps the order.

   While a pass is open no cursor may run on the trace, and no other pass. */
#ifndef SM_DECODE_BATCH_H
#define SM_DECODE_BATCH_H

#include "decode/trace.h"

struct sm_batch_pass;
struct sm_batch_decoder;

/* A packet of events as its header tells, which may be wrong in damaged traces. Packets are numbered from 0, by stream,
   then in the stream's order. */
struct sm_batch_packet {
    uint32_t stream, stream_index; /* id, and index for sm_trace_stream_id */
    uint32_t packet_seq;           /* number in the stream, as written */
    uint32_t n_events, n_alloc;    /* extensions are counted in n_events */
    uint64_t first_seq;            /* of its first allocation */
    uint64_t first_ticks, last_ticks;
    uint32_t stored_bytes, raw_bytes;
};

/* Allocation i of a batch has the object id (stream, first_seq + i). Its stack is the first `common_prefix` frames of the
   stack of the allocation before (0 for the batch's first one), followed by frames[first_frame ..
   first_frame + n_frames - common_prefix). */
struct sm_batch_alloc {
    uint64_t ticks;
    uint64_t size; /* words without header, or bytes (flag) */
    uint64_t n_samples;
    uint32_t first_frame, common_prefix, n_frames;
    uint8_t heap, origin; /* enum sm_heap, sm_origin */
    uint8_t flags;        /* enum sm_event_flag */
    uint8_t op;
};

/* A promotion or collection. */
struct sm_batch_ref {
    uint64_t ticks;
    uint64_t obj_seq;
    uint32_t obj_stream;
    uint32_t allocs_before; /* it stands before this allocation of the batch */
    uint8_t kind;           /* SM_EVENT_PROMOTE or SM_EVENT_COLLECT */
    uint8_t flags;          /* SM_EVENT_ORPHAN */
    uint8_t op;
};

/* Any other event. */
struct sm_batch_extension {
    uint64_t ticks;
    const uint8_t *payload;
    uint32_t payload_bytes;
    uint32_t allocs_before, refs_before;
    uint8_t op;
};

/* From here on in the batch this owner writes, up to the next one. The first begins at 0. */
struct sm_batch_owner {
    uint32_t first_alloc, first_ref, first_extension;
    uint32_t owner;         /* for sm_trace_owner */
    const uint8_t *payload; /* of the record, NULL: as before the packet */
    uint32_t payload_bytes;
};

/* A packet's events. Zero it before its first use; each decoding replaces what it held. `payload`s point into it or
   into the trace. */
struct sm_batch {
    struct sm_batch_packet packet;
    uint32_t index; /* of the packet */
    bool readable;  /* false: nothing of the packet is, and the arrays are empty */

    struct sm_batch_alloc *allocs;
    struct sm_batch_ref *refs;
    struct sm_batch_extension *extensions;
    struct sm_batch_owner *owners;
    uint32_t *frames; /* ids for sm_trace_location; all below SM_BATCH_NEW once committed */
    uint32_t n_allocs, n_refs, n_extensions, n_owners;
    uint32_t n_frames;

    /* Between decoding and committing. */
    uint64_t *new_codes; /* of frames SM_BATCH_NEW + i */
    uint32_t n_new_codes;
    uint32_t allocs_capacity, refs_capacity, extensions_capacity, owners_capacity;
    uint32_t frames_capacity, new_codes_capacity;
    uint32_t n_read;     /* events, also those that are not kept */
    uint32_t left_bytes; /* of the payload, which could not be read */
    uint64_t end_ticks;
    bool look_at_refs; /* one is of another stream, or an orphan for sure */
    bool unsupported;
    uint8_t loss_kind; /* enum sm_loss_kind, when not readable */
    const char *why;   /* of what cannot be read; NULL = all can */
    uint8_t *unpacked;
    size_t unpacked_capacity;
    uint64_t charged_bytes; /* of the pass's budget */
    struct sm_batch_pass *charged_to;
};

/* Location ids at and above this one are not known before the batch is committed. */
#define SM_BATCH_NEW (1u << 30)

/* Begins to read. `flags`: SM_CURSOR_STACKS, else n_frames and common_prefix are 0 (SM_EVENT_STACK_CUT is set all the
   same); SM_CURSOR_EXTENSIONS, else there are no extensions. Native traces only. */
enum sm_status sm_batch_pass_new(struct sm_batch_pass **out, struct sm_trace *t, unsigned flags,
                                 struct sm_error *err);
/* Ends it. When all packets have been committed, what was found missing at the end becomes a loss of the trace. After all
   decoders and batches; NULL allowed. */
void sm_batch_pass_free(struct sm_batch_pass *pass);

uint32_t sm_batch_n_packets(const struct sm_batch_pass *pass);
/* Any thread, any time. */
void sm_batch_packet_at(const struct sm_batch_pass *pass, uint32_t index,
                        struct sm_batch_packet *out);

/* One for each thread that decodes; NULL when out of memory. */
struct sm_batch_decoder *sm_batch_decoder_new(struct sm_batch_pass *pass);
void sm_batch_decoder_free(struct sm_batch_decoder *d); /* NULL allowed */

/* Decodes packet `index`. Never fails: what cannot be read is noted in the batch, for commit. */
void sm_batch_decode(struct sm_batch_decoder *d, uint32_t index, struct sm_batch *b);

/* Completes the batch and takes note of its losses. See above for the order. */
void sm_batch_commit(struct sm_batch_pass *pass, struct sm_batch *b);

void sm_batch_release(struct sm_batch *b);

/* Calls take(ctx, batch) for each packet in order, with its batch committed, on the caller's thread, while up to
   threads - 1 others (0 = as many as there are processors) decode ahead. The batch is the callee's until it returns;
   false ends the pass. SM_FAILED when there is no memory for a single batch. */
enum sm_status sm_batch_each(struct sm_batch_pass *pass, unsigned threads,
                             bool (*take)(void *ctx, const struct sm_batch *b), void *ctx,
                             struct sm_error *err);

#endif
