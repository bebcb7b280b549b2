/* The reader of native traces (docs/format.md): what its files share. Internal.

   native_scan.c     finds the packets (headers only) and the losses between them
   native_arrange.c  brings them into streams, and the side file with them
   native_meta.c     META and END
   native_syms.c     SYMS
   native_tail.c     the side file
   native_payload.c  one packet's payload: checksum, decompression; the only user of zstd
   native_events.c   events of one stream: the hot loop
   native_packets.c  what a stream's reader does once per packet
   batch*.c          a packet at a time into arrays: batch_internal.h
   native.c          the backend: has_object, release

   Memory: 72 bytes per packet, names, and per open stream what its current packet needs, which is
   charged to one budget (SM_NATIVE_BUDGET_BYTES) so that no input can make it grow without end. */
#ifndef SM_DECODE_NATIVE_INTERNAL_H
#define SM_DECODE_NATIVE_INTERNAL_H

#include "base/bytes.h"
#include "decode/trace_internal.h"
#include "format/packet.h"

#define SM_NATIVE_BUDGET_BYTES ((uint64_t)2 << 30)
/* Readable bytes that every payload has behind its end, so that the event decoder checks its
   bounds once per event. */
#define SM_NATIVE_PADDING 64

enum sm_native_packet_flag {
    SM_NATIVE_CUT = 1,      /* the file ends inside it: `stored_bytes` are there */
    SM_NATIVE_TAIL = 2,     /* from the side file: `offset` counts in native->tail_data */
    SM_NATIVE_REPORTED = 4, /* its loss is in the list */
    SM_NATIVE_BAD = 8,      /* nothing of it can be read */
    SM_NATIVE_CHECKED = 16, /* payload_crc holds */
    SM_NATIVE_CUTS = 32,    /* it has stacks whose middle was cut, or it is not known */
};

struct sm_native_packet {
    uint64_t offset; /* of the payload */
    uint64_t first_seq;
    uint64_t ts_begin_ticks;
    uint64_t ts_span_ticks;
    uint32_t stored_bytes; /* readable */
    uint32_t raw_bytes;
    uint32_t n_events;
    uint32_t n_alloc;
    uint32_t n_alloc_readable; /* less than n_alloc when damage has been met */
    uint32_t packet_seq;
    uint32_t payload_crc;
    uint32_t stream;
    uint8_t codec;
    uint8_t flags; /* enum sm_native_packet_flag */
};

struct sm_native_stream {
    uint64_t first_seq, end_seq; /* range of its allocations */
    uint64_t discarded;          /* largest figure in a header */
    uint32_t first_packet, n_packets;
    bool contiguous; /* no hole in the range, as far as is known */
};

struct sm_native {
    struct sm_native_packet *packets; /* EVENTS: by stream, then packet_seq */
    uint32_t n_packets, packets_capacity;
    struct sm_native_packet *syms; /* by offset; freed after the open */
    uint32_t n_syms, syms_capacity;
    struct sm_native_stream *streams; /* as t->stream_ids */
    uint64_t budget_used_bytes;
    void *zstd; /* native_payload.c: decompression context, NULL = none yet */

    bool have_meta;
    uint32_t meta_pid;
    uint64_t session;
    struct sm_native_packet meta_packet, end_packet;
    bool have_end;

    struct sm_native_tail *tail; /* NULL = none that belongs to the trace */
};

/* ---- native_tail.c ---- */

/* What was copied out of TRACE.tail. A live writer goes on while we copy; each slot is a
   consistent state of its own. */
struct sm_native_tail {
    char *path;
    uint64_t session;
    uint32_t pid;
    uint32_t state;
    uint64_t discarded; /* for which there is no stream */
    uint32_t forks;
    uint64_t end_ticks;
    uint8_t *data; /* payloads, each followed by SM_NATIVE_PADDING bytes */
    uint64_t bytes, capacity;
    uint32_t n_slots, n_torn; /* slots with data; given up because they kept changing */
    bool too_large;
    struct sm_native_packet *packets; /* EVENTS and SYMS; offsets in `data` */
    uint8_t *kinds;
    uint64_t *slot_discarded;
    uint32_t n_packets, packets_capacity;
};

/* sm_native_tail_load and _free are declared in trace_internal.h. Loading comes before the
   trace's own size is taken: a packet that moves from one to the other is then seen twice, which does not
   matter, and not missed, which would. */

/* ---- native_payload.c ---- */

/* Checks and unpacks. On success *data is followed by SM_NATIVE_PADDING readable bytes, *bytes are
   its length (less than raw_bytes for cut packets). *buffer (grown as needed, counted in
   n->budget_used_bytes) holds it where the input itself cannot. On failure the loss is reported, once,
   and the packet flagged bad. `what` names its events: "events" or "names". */
struct sm_native_buffer {
    uint8_t *data;
    size_t capacity;
};
bool sm_native_payload(struct sm_trace *t, struct sm_native_packet *p,
                       struct sm_native_buffer *buffer, enum sm_loss_kind kind,
                       const uint8_t **data, size_t *bytes);
/* The same without effects on the trace, so that several threads may do it: NULL, or why not, and *kind changed
   where another one fits better. *zstd is the caller's context, NULL at first. room() gives space for as many bytes
   and the padding, or NULL; it is called where the input itself cannot hold the payload. Not for bad packets. */
const char *sm_native_unpack(const struct sm_trace *t, const struct sm_native_packet *p,
                             void **zstd, uint8_t *(*room)(void *ctx, size_t bytes_without_padding),
                             void *ctx, enum sm_loss_kind *kind, const uint8_t **data,
                             size_t *bytes);
void sm_native_zstd_free(void *zstd);
/* Reports, once, that nothing of the packet can be read. */
void sm_native_unreadable(struct sm_trace *t, struct sm_native_packet *p, enum sm_loss_kind kind,
                          const char *why);
void sm_native_buffer_release(struct sm_native *n, struct sm_native_buffer *buffer);
void sm_native_payload_release(struct sm_native *n);

/* True when payload_crc holds (a side-file packet has none). */
bool sm_native_payload_holds(const struct sm_trace *t, const struct sm_native_packet *p);

/* Notes that allocations of a stream turned out to be missing. */
void sm_native_damaged(struct sm_trace *t, uint32_t stream);

/* Takes from the budget; false when it is used up. */
bool sm_native_charge(struct sm_native *n, uint64_t bytes);

/* Offset for messages: of the packet's header in the file it comes from. */
static inline uint64_t sm_native_header_offset(const struct sm_native_packet *p) {
    return (p->flags & SM_NATIVE_TAIL) != 0 ? p->offset : p->offset - SM_PACKET_HEADER_BYTES;
}

/* ---- native_meta.c ---- */
void sm_native_read_meta(struct sm_trace *t, const uint8_t *payload, size_t bytes);
/* False when the payload is not an END. */
bool sm_native_read_end(struct sm_trace *t, const uint8_t *payload, size_t bytes);

/* ---- native_syms.c ---- */
void sm_native_read_syms(struct sm_trace *t, struct sm_native_packet *p,
                         struct sm_native_buffer *buffer);

/* ---- native_scan.c ---- */
enum sm_status sm_native_scan(struct sm_trace *t, struct sm_error *err);

/* ---- native_arrange.c ---- */
bool sm_native_append(struct sm_native_packet **list, uint32_t *n, uint32_t *capacity,
                      const struct sm_native_packet *p);

/* Sorts what the scan has listed, adds the side file, makes the streams; reports copies and gaps.
   False when out of memory. */
bool sm_native_arrange(struct sm_trace *t, bool in_order);

/* ---- native_events.c, native_packets.c ---- */
struct sm_stream_cursor *sm_native_stream_new(struct sm_trace *t, uint32_t stream_index,
                                              unsigned flags);
enum sm_status sm_native_stream_next(struct sm_stream_cursor *c, struct sm_event *event);
void sm_native_stream_free(struct sm_stream_cursor *c);

/* Derives n_events, n_alloc and ts_span of a packet of the side file; with `h` (else NULL) also its
   max_depth and n_cut, which takes the stacks. */
void sm_native_measure(struct sm_trace *t, struct sm_native_packet *p, struct sm_packet_header *h);

/* How the reading of a packet ended. */
struct sm_native_outcome {
    uint32_t n_read; /* events */
    uint64_t n_alloc;
    uint64_t left_bytes;  /* of the payload, not read */
    uint64_t floor_ticks; /* its times were raised to this */
    uint64_t ticks;       /* of its last event */
    const char *why;      /* it could not be read to its end; else NULL */
    bool unsupported;
};

/* Says what is lost of the packet, once, and brings has_object up to date. */
void sm_native_close_packet(struct sm_trace *t, struct sm_native_packet *p,
                            const struct sm_native_outcome *o);

/* Index of the owner that an OWNER record p..end tells of. */
uint32_t sm_native_owner(struct sm_trace *t, uint32_t stream, const uint8_t *p, const uint8_t *end);

/* ---- native.c ---- */
bool sm_native_has_object(const struct sm_trace *t, uint32_t stream, uint64_t seq);

#endif
