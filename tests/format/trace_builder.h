/* Makes native traces in memory for tests: any number of streams, packets where the test wants them. */
#ifndef SM_TESTS_TRACE_BUILDER_H
#define SM_TESTS_TRACE_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encode/event_encoder.h"
#include "encode/syms_encoder.h"

struct tb_packet {
    size_t offset; /* of the header */
    size_t bytes;  /* with header */
    struct sm_packet_header header;
};

/* One event: where its bytes end. */
struct tb_event {
    uint32_t stream, packet_seq;
    size_t raw_end; /* in the packet's payload */
};

struct tb_stream {
    struct sm_event_encoder *encoder;
    uint8_t *buf;
    uint64_t next_seq, discarded;
    uint32_t packet_seq;
    bool open;
};

struct tb {
    uint8_t *data;
    size_t bytes, capacity;
    uint64_t session;
    uint32_t pid;
    bool compress;
    size_t target_bytes; /* packets are closed at this size; 0 = 128 KiB */
    struct tb_packet *packets;
    size_t n_packets, packets_capacity;
    struct tb_event *events; /* in the order they were made */
    size_t events_capacity, events_made;
    struct tb_stream *streams;
    uint32_t n_streams;
    uint32_t syms_seq;
    uint64_t n_events, start_ticks;
    struct sm_syms_encoder syms;
    uint8_t *syms_buf;
};

void tb_init(struct tb *b, uint32_t n_streams);
void tb_release(struct tb *b);

/* Packets. META starts the trace at start_ticks; END comes with INDEX. */
void tb_packet(struct tb *b, struct sm_packet_header *h, const void *payload, size_t bytes);
void tb_meta(struct tb *b);
void tb_end(struct tb *b, uint64_t ticks);
void tb_name(struct tb *b, uint64_t code, const char *file, const char *function, uint32_t line);
void tb_flush_names(struct tb *b);

/* Events. Codes: outermost first. Returns the seq. */
uint64_t tb_alloc(struct tb *b, uint32_t stream, uint64_t ticks, uint64_t words,
                  const uint64_t *codes, uint32_t n_codes);
uint64_t tb_alloc_full(struct tb *b, uint32_t stream, uint64_t ticks, uint64_t size, bool in_bytes,
                       uint64_t n_samples, uint8_t source, const uint64_t *codes, uint32_t n_codes);
void tb_ref(struct tb *b, uint32_t stream, uint64_t ticks, bool collect, uint32_t obj_stream,
            uint64_t obj_seq);
void tb_extension(struct tb *b, uint32_t stream, uint64_t ticks, uint8_t op, const void *payload,
                  size_t bytes);
void tb_flush(struct tb *b, uint32_t stream);
void tb_flush_all(struct tb *b);

/* A trace with something of everything: META, names, two or more streams, promotions, foreign
   references, cut stacks, owners, marks, INDEX and END. The same for the same arguments. */
void tb_mixed(struct tb *b, uint32_t n_streams, uint32_t n_events, uint32_t seed);

/* The packet, NULL when there is none. */
const struct tb_packet *tb_find(const struct tb *b, enum sm_packet_kind kind, uint32_t stream,
                                uint32_t packet_seq);

/* A side file for the streams whose packets are open, which then are not written to the trace. */
void tb_save_tail(const struct tb *b, const char *path);

void tb_save(const struct tb *b, const char *path);

/* xorshift, never 0 */
uint32_t tb_random(uint32_t *state);

#endif
