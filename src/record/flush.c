/* A stream's open packets into the trace: names first, then the events that use them, in one write.
   Called by the owner when a packet is full, and by the stopper for all streams. */
#include "record/internal.h"

#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "format/packet.h"

static void header_of_stream(const struct sm_stream *s, struct sm_packet_header *h,
                             enum sm_packet_kind kind, const uint8_t *payload, size_t bytes) {
    h->kind = (uint8_t)kind;
    h->codec = SM_CODEC_NONE;
    h->flags = SM_PACKET_FLAG_RESET;
    h->stream = s->id;
    h->packet_seq = kind == SM_PACKET_SYMS ? s->syms_seq : s->packet_seq;
    h->pid = sm_session.pid;
    h->session = sm_session.id;
    h->discarded = atomic_load_explicit(&s->discarded, memory_order_relaxed);
    h->stored_bytes = h->raw_bytes = (uint32_t)bytes;
    h->payload_crc = sm_crc32c(0, payload, bytes);
}

static int add_part(struct iovec *parts, int n, uint8_t *header, const struct sm_packet_header *h,
                    uint8_t *payload) {
    sm_packet_header_put(header, h);
    parts[n].iov_base = header;
    parts[n++].iov_len = SM_PACKET_HEADER_BYTES;
    parts[n].iov_base = payload;
    parts[n++].iov_len = h->stored_bytes;
    return n;
}

static void syms_written(struct sm_stream *s) {
    sm_tail_commit_syms(s, 0);
    s->syms_seq++;
    sm_syms_encoder_begin(&s->syms, s->slot + SM_TAIL_SYMS_OFFSET, SM_TAIL_SYMS_BYTES);
    sm_tail_slot_header(s, SM_PACKET_SYMS, 0);
}

static int syms_part(struct sm_stream *s, struct iovec *parts, uint8_t *header) {
    if (s->syms.n_records == 0)
        return 0;
    struct sm_packet_header h = {.n_events = s->syms.n_records};
    header_of_stream(s, &h, SM_PACKET_SYMS, s->syms.buf, s->syms.used);
    return add_part(parts, 0, header, &h, s->syms.buf);
}

static bool blocked(struct sm_stream *s) {
    s->attention |= SM_ATTENTION_BLOCKED;
    s->blocked_reason = SM_DISCARD_DEVICE;
    return false;
}

bool sm_stream_flush(struct sm_stream *s) {
    int saved_errno = errno;
    struct iovec parts[4];
    uint8_t headers[2][SM_PACKET_HEADER_BYTES];
    struct sm_packet_header h = {0};
    int n = syms_part(s, parts, headers[0]);
    bool events = !(s->attention & SM_ATTENTION_CLOSED) && sm_event_encoder_used(s->encoder) > 0;
    if (events) {
        uint8_t *payload = s->slot + SM_TAIL_EVENTS_OFFSET;
        sm_event_encoder_fill_header(s->encoder, &h);
        header_of_stream(s, &h, SM_PACKET_EVENTS, payload, sm_event_encoder_used(s->encoder));
        n = add_part(parts, n, headers[1], &h, payload);
    }
    bool done = n == 0 || sm_output_append(&sm_session, parts, n);
    if (done) {
        /* In the file first, then gone from the slot: a reader that finds both knows them by packet_seq. */
        if (events) {
            sm_tail_commit_events(s, 0);
            s->packet_seq++;
            s->next_seq += h.n_alloc;
            s->n_events += h.n_events;
            s->packet_ticks = h.ts_begin_ticks + h.ts_span_ticks;
            s->attention |= SM_ATTENTION_CLOSED;
        }
        if (s->syms.n_records > 0)
            syms_written(s);
    } else {
        blocked(s);
    }
    errno = saved_errno;
    return done;
}

/* Called by the encoder, within an event, for a location that is new to the packet: whoever sees a code first in
   the process writes its names. */
void sm_stream_new_location(void *ctx, uint64_t code) {
    struct sm_stream *s = ctx;
    if (!sm_codes_first_sight(code))
        return;
    int saved_errno = errno;
    struct sm_source_location locations[64];
    uint32_t n = sm_session.config.symbolize(code, locations, 64);
    if (!sm_syms_encode(&s->syms, code, locations, n)) {
        struct iovec parts[2];
        uint8_t header[SM_PACKET_HEADER_BYTES];
        int n_parts = syms_part(s, parts, header);
        if (n_parts == 0 || !sm_output_append(&sm_session, parts, n_parts)) {
            /* The event itself goes on into the slot; later ones will be counted. */
            blocked(s);
            errno = saved_errno;
            return;
        }
        syms_written(s);
        sm_syms_encode(&s->syms, code, locations, n);
    }
    sm_tail_commit_syms(s, s->syms.used);
    errno = saved_errno;
}
