#include "format/packet.h"

#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"

void sm_packet_header_put(uint8_t *to, const struct sm_packet_header *h) {
    memcpy(to, SM_PACKET_MAGIC, SM_PACKET_MAGIC_BYTES);
    sm_put_u32le(to + SM_PACKET_AT_PAYLOAD_CRC, h->payload_crc);
    sm_put_u32le(to + SM_PACKET_AT_STORED, h->stored_bytes);
    sm_put_u32le(to + SM_PACKET_AT_RAW, h->raw_bytes);
    to[SM_PACKET_AT_CODEC] = h->codec;
    to[SM_PACKET_AT_KIND] = h->kind;
    sm_put_u16le(to + SM_PACKET_AT_FLAGS, h->flags);
    sm_put_u32le(to + SM_PACKET_AT_STREAM, h->stream);
    sm_put_u32le(to + SM_PACKET_AT_SEQ, h->packet_seq);
    sm_put_u32le(to + SM_PACKET_AT_PID, h->pid);
    sm_put_u64le(to + SM_PACKET_AT_FIRST_SEQ, h->first_seq);
    sm_put_u64le(to + SM_PACKET_AT_TS_BEGIN, h->ts_begin_ticks);
    sm_put_u64le(to + SM_PACKET_AT_TS_SPAN, h->ts_span_ticks);
    sm_put_u32le(to + SM_PACKET_AT_N_EVENTS, h->n_events);
    sm_put_u32le(to + SM_PACKET_AT_N_ALLOC, h->n_alloc);
    sm_put_u64le(to + SM_PACKET_AT_DISCARDED, h->discarded);
    sm_put_u32le(to + SM_PACKET_AT_MAX_DEPTH, h->max_depth);
    sm_put_u32le(to + SM_PACKET_AT_N_CUT, h->n_cut);
    sm_put_u64le(to + SM_PACKET_AT_SESSION, h->session);
    sm_put_u32le(to + SM_PACKET_AT_HEADER_CRC,
                 sm_crc32c(0, to + SM_PACKET_AT_PAYLOAD_CRC,
                           SM_PACKET_HEADER_BYTES - SM_PACKET_AT_PAYLOAD_CRC));
}

bool sm_packet_header_get_unsealed(const uint8_t *from, struct sm_packet_header *h) {
    if (memcmp(from, SM_PACKET_MAGIC, SM_PACKET_MAGIC_BYTES) != 0)
        return false;
    h->payload_crc = sm_get_u32le(from + SM_PACKET_AT_PAYLOAD_CRC);
    h->stored_bytes = sm_get_u32le(from + SM_PACKET_AT_STORED);
    h->raw_bytes = sm_get_u32le(from + SM_PACKET_AT_RAW);
    h->codec = from[SM_PACKET_AT_CODEC];
    h->kind = from[SM_PACKET_AT_KIND];
    h->flags = sm_get_u16le(from + SM_PACKET_AT_FLAGS);
    h->stream = sm_get_u32le(from + SM_PACKET_AT_STREAM);
    h->packet_seq = sm_get_u32le(from + SM_PACKET_AT_SEQ);
    h->pid = sm_get_u32le(from + SM_PACKET_AT_PID);
    h->first_seq = sm_get_u64le(from + SM_PACKET_AT_FIRST_SEQ);
    h->ts_begin_ticks = sm_get_u64le(from + SM_PACKET_AT_TS_BEGIN);
    h->ts_span_ticks = sm_get_u64le(from + SM_PACKET_AT_TS_SPAN);
    h->n_events = sm_get_u32le(from + SM_PACKET_AT_N_EVENTS);
    h->n_alloc = sm_get_u32le(from + SM_PACKET_AT_N_ALLOC);
    h->discarded = sm_get_u64le(from + SM_PACKET_AT_DISCARDED);
    h->max_depth = sm_get_u32le(from + SM_PACKET_AT_MAX_DEPTH);
    h->n_cut = sm_get_u32le(from + SM_PACKET_AT_N_CUT);
    h->session = sm_get_u64le(from + SM_PACKET_AT_SESSION);
    return true;
}

bool sm_packet_header_get(const uint8_t *from, struct sm_packet_header *h) {
    uint32_t crc = sm_crc32c(0, from + SM_PACKET_AT_PAYLOAD_CRC,
                             SM_PACKET_HEADER_BYTES - SM_PACKET_AT_PAYLOAD_CRC);
    return crc == sm_get_u32le(from + SM_PACKET_AT_HEADER_CRC) &&
           sm_packet_header_get_unsealed(from, h);
}
