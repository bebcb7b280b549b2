/* The only place in src/convert that knows zstd. A packet is stored compressed only when that makes
   it smaller by an eighth: reading a packet that hardly shrinks costs more than it saves. */
#include "convert/packet_sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#ifdef SM_HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/bytes.h"
#include "base/crc32c.h"
#include "encode/tlv.h"
#include "format/packet.h"
#include "util/memory.h"

/* Payloads below this gain nothing from a compressor's frame. */
#define COMPRESS_FROM_BYTES 256u

void sm_packet_sink_init(struct sm_packet_sink *s, FILE *out) {
    memset(s, 0, sizeof *s);
    s->out = out;
    s->level = 1;
    sm_buffer_init(&s->index, -1);
}

void sm_packet_sink_release(struct sm_packet_sink *s) {
    sm_buffer_release(&s->index);
#ifdef SM_HAVE_ZSTD
    ZSTD_freeCCtx(s->zstd);
#endif
    free(s->packed);
    memset(s, 0, sizeof *s);
}

static void index_packet(struct sm_packet_sink *s, const struct sm_packet_header *h) {
    uint8_t *begin = (uint8_t *)sm_buffer_room(&s->index, 9 * SM_LEB_MAX_BYTES);
    uint8_t *p = sm_put_leb(begin, s->offset - s->indexed_end);
    *p++ = h->kind;
    p = sm_put_leb(p, h->stored_bytes);
    p = sm_put_leb(p, h->stream);
    p = sm_put_leb(p, h->packet_seq);
    p = sm_put_leb(p, h->n_events);
    p = sm_put_leb(p, h->n_alloc);
    p = sm_put_zz(p, (int64_t)(h->ts_begin_ticks - s->indexed_ts));
    p = sm_put_leb(p, h->ts_span_ticks);
    s->index.used += (size_t)(p - begin);
    s->indexed_end = s->offset + SM_PACKET_HEADER_BYTES + h->stored_bytes;
    s->indexed_ts = h->ts_begin_ticks;
}

static enum sm_status append(struct sm_packet_sink *s, struct sm_packet_header *h,
                             const uint8_t *stored, struct sm_error *err) {
    uint8_t header[SM_PACKET_HEADER_BYTES];
    h->flags = SM_PACKET_FLAG_RESET;
    h->payload_crc = sm_crc32c(0, stored, h->stored_bytes);
    h->session = s->session;
    h->pid = s->pid;
    sm_packet_header_put(header, h);
    if (fwrite(header, 1, sizeof header, s->out) != sizeof header ||
        fwrite(stored, 1, h->stored_bytes, s->out) != h->stored_bytes) {
        sm_error_set(err, "cannot write the trace at byte %llu: %s", (unsigned long long)s->offset,
                     strerror(errno));
        return SM_FAILED;
    }
    index_packet(s, h);
    s->offset += SM_PACKET_HEADER_BYTES + h->stored_bytes;
    s->n_packets++;
    if (h->kind == SM_PACKET_EVENTS) {
        s->n_events += h->n_events;
        if (h->ts_begin_ticks + h->ts_span_ticks > s->end_ticks)
            s->end_ticks = h->ts_begin_ticks + h->ts_span_ticks;
    }
    return SM_OK;
}

/* The compressed payload in s->packed; 0 when it is not worth it. */
static uint32_t compress(struct sm_packet_sink *s, const uint8_t *payload, uint32_t raw_bytes) {
#ifdef SM_HAVE_ZSTD
    if (!s->compress || raw_bytes < COMPRESS_FROM_BYTES)
        return 0;
    size_t bound = ZSTD_compressBound(raw_bytes);
    if (bound > s->packed_capacity) {
        free(s->packed);
        s->packed = sm_alloc(bound);
        s->packed_capacity = bound;
    }
    if (s->zstd == NULL)
        s->zstd = ZSTD_createCCtx();
    if (s->zstd == NULL)
        return 0;
    size_t n =
        ZSTD_compressCCtx(s->zstd, s->packed, s->packed_capacity, payload, raw_bytes, s->level);
    return ZSTD_isError(n) || n > raw_bytes - raw_bytes / 8 ? 0 : (uint32_t)n;
#else
    (void)s;
    (void)payload;
    (void)raw_bytes;
    return 0;
#endif
}

enum sm_status sm_packet_sink_put(struct sm_packet_sink *s, struct sm_packet_header *h,
                                  const uint8_t *payload, uint32_t raw_bytes,
                                  struct sm_error *err) {
    uint32_t packed = h->kind == SM_PACKET_END ? 0 : compress(s, payload, raw_bytes);
    h->raw_bytes = raw_bytes;
    h->stored_bytes = packed != 0 ? packed : raw_bytes;
    h->codec = packed != 0 ? SM_CODEC_ZSTD : SM_CODEC_NONE;
    return append(s, h, packed != 0 ? s->packed : payload, err);
}

enum sm_status sm_packet_sink_copy(struct sm_packet_sink *s, struct sm_packet_header *h,
                                   const uint8_t *stored, struct sm_error *err) {
    if (h->codec == SM_CODEC_NONE)
        return sm_packet_sink_put(s, h, stored, h->stored_bytes, err);
    return append(s, h, stored, err);
}

enum sm_status sm_packet_sink_end(struct sm_packet_sink *s, const struct sm_end *end,
                                  struct sm_error *err) {
    uint64_t index_at = 0;
    if (s->index.used <= SM_MAX_RAW_BYTES) {
        struct sm_packet_header h = {.kind = SM_PACKET_INDEX, .n_events = s->n_packets};
        uint32_t bytes = (uint32_t)s->index.used;
        uint8_t *payload = sm_alloc((size_t)bytes + 1);
        memcpy(payload, s->index.data, bytes);
        index_at = s->offset;
        enum sm_status status = sm_packet_sink_put(s, &h, payload, bytes, err);
        free(payload);
        if (status != SM_OK)
            return status;
    }

    uint8_t payload[512 + 16 * 2 * SM_LEB_MAX_BYTES];
    struct sm_tlv_writer w = {payload, sizeof payload - SM_END_TRAILER_BYTES, 0, false};
    uint64_t ticks = end->end_ticks > s->end_ticks ? end->end_ticks : s->end_ticks;
    sm_tlv_leb(&w, SM_END_REASON, end->reason);
    sm_tlv_leb(&w, SM_END_N_EVENTS, s->n_events);
    sm_tlv_leb(&w, SM_END_DISCARDED, end->discarded);
    sm_tlv_leb(&w, SM_END_FORKS, end->forks);
    sm_tlv_leb(&w, SM_END_PEAK_STREAMS, end->peak_streams);
    sm_tlv_leb(&w, SM_END_OWNERS, end->owners);
    sm_tlv_leb(&w, SM_END_RECOVERED, end->recovered);
    if (end->lost_events > 0)
        sm_tlv_leb(&w, SM_END_LOST_EVENTS, end->lost_events);
    if (end->lost_bytes > 0)
        sm_tlv_leb(&w, SM_END_LOST_BYTES, end->lost_bytes);
    if (end->lost_names > 0)
        sm_tlv_leb(&w, SM_END_LOST_NAMES, end->lost_names);
    if (end->has_exit_status)
        sm_tlv_leb(&w, SM_END_EXIT_STATUS, end->exit_status);
    if (end->n_gc > 0) {
        uint8_t pairs[16 * 2 * SM_LEB_MAX_BYTES];
        uint8_t *p = pairs;
        for (uint32_t i = 0; i < end->n_gc && i < 16; i++) {
            p = sm_put_leb(p, end->gc[i].counter);
            p = sm_put_zz(p, end->gc[i].value);
        }
        sm_tlv_bytes(&w, SM_END_GC, pairs, (size_t)(p - pairs));
    }
    uint32_t bytes = (uint32_t)w.used + SM_END_TRAILER_BYTES;
    sm_put_u64le(payload + w.used, index_at);
    sm_put_u32le(payload + w.used + 8, SM_PACKET_HEADER_BYTES + bytes);
    memcpy(payload + w.used + 12, SM_END_TRAILER_MAGIC, 4);
    struct sm_packet_header h = {.kind = SM_PACKET_END, .ts_begin_ticks = ticks};
    enum sm_status status = sm_packet_sink_put(s, &h, payload, bytes, err);
    if (status == SM_OK && fflush(s->out) != 0) {
        sm_error_set(err, "cannot write the trace: %s", strerror(errno));
        return SM_FAILED;
    }
    return status;
}
