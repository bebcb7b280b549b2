/* Appends packets to a native trace, compressed where that helps, and remembers them for INDEX.
   Internal to src/convert: the native writer and the closing of a recorded trace share it. Hosted. */
#ifndef SM_CONVERT_PACKET_SINK_H
#define SM_CONVERT_PACKET_SINK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "decode/trace.h"
#include "format/wire.h"
#include "util/buffer.h"
#include "util/error.h"

struct sm_packet_sink {
    FILE *out; /* borrowed, only appended to */
    bool compress;
    int level; /* of zstd */
    uint64_t session;
    uint32_t pid;

    uint64_t offset;   /* bytes written */
    uint64_t n_events; /* of all packets */
    uint64_t end_ticks;
    uint32_t n_packets;
    struct sm_buffer index; /* payload of INDEX */
    uint64_t indexed_end;   /* end of the last packet in it */
    uint64_t indexed_ts;
    void *zstd;      /* compression context, NULL = none yet */
    uint8_t *packed; /* its output */
    size_t packed_capacity;
};

void sm_packet_sink_init(struct sm_packet_sink *s, FILE *out);
void sm_packet_sink_release(struct sm_packet_sink *s);

/* Appends a packet with `raw_bytes` bytes of uncompressed payload. Fills the header's session, pid, lengths,
   codec, flags and checksums; the rest is the caller's. */
enum sm_status sm_packet_sink_put(struct sm_packet_sink *s, struct sm_packet_header *h,
                                  const uint8_t *payload, uint32_t raw_bytes, struct sm_error *err);

/* Appends a packet as it stands in another file: payload stored in h->codec. */
enum sm_status sm_packet_sink_copy(struct sm_packet_sink *s, struct sm_packet_header *h,
                                   const uint8_t *stored, struct sm_error *err);

/* Appends INDEX (unless it would exceed a packet's limit) and END with the figures of `end`; n_events is
   the sink's own count, and the time of the end is the later of end->end_ticks and the last event's. */
enum sm_status sm_packet_sink_end(struct sm_packet_sink *s, const struct sm_end *end,
                                  struct sm_error *err);

#endif
