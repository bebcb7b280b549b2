#include "trace_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef SM_HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/bytes.h"
#include "base/crc32c.h"
#include "encode/tlv.h"
#include "format/packet.h"

#define BUFFER_BYTES (2u << 20)
#define DEPTH_LIMIT 1024

static void *need(void *p) {
    if (p == NULL || p == MAP_FAILED) {
        fprintf(stderr, "trace_builder: out of memory\n");
        exit(99);
    }
    return p;
}

uint32_t tb_random(uint32_t *state) {
    uint32_t x = *state == 0 ? 1 : *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

void tb_init(struct tb *b, uint32_t n_streams) {
    memset(b, 0, sizeof *b);
    b->session = 0x1122334455667788;
    b->pid = 4242;
    b->start_ticks = 1000;
    b->n_streams = n_streams;
    b->streams = need(calloc(n_streams + 1, sizeof *b->streams));
    b->syms_buf = need(malloc(BUFFER_BYTES));
    sm_syms_encoder_begin(&b->syms, b->syms_buf, BUFFER_BYTES);
}

void tb_release(struct tb *b) {
    for (uint32_t i = 0; i < b->n_streams; i++) {
        if (b->streams[i].encoder != NULL)
            munmap(b->streams[i].encoder, sm_event_encoder_bytes());
        free(b->streams[i].buf);
    }
    free(b->streams);
    free(b->syms_buf);
    free(b->packets);
    free(b->events);
    free(b->data);
    memset(b, 0, sizeof *b);
}

static void append(struct tb *b, const void *data, size_t bytes) {
    if (b->bytes + bytes > b->capacity) {
        b->capacity = (b->bytes + bytes) * 2;
        b->data = need(realloc(b->data, b->capacity));
    }
    if (bytes > 0)
        memcpy(b->data + b->bytes, data, bytes);
    b->bytes += bytes;
}

void tb_packet(struct tb *b, struct sm_packet_header *h, const void *payload, size_t bytes) {
    uint8_t header[SM_PACKET_HEADER_BYTES];
    void *packed = NULL;
    h->raw_bytes = (uint32_t)bytes;
    h->codec = SM_CODEC_NONE;
#ifdef SM_HAVE_ZSTD
    if (b->compress && bytes > 64 && h->kind != SM_PACKET_END) {
        size_t room = ZSTD_compressBound(bytes);
        packed = need(malloc(room));
        size_t size = ZSTD_compress(packed, room, payload, bytes, 1);
        if (!ZSTD_isError(size) && size < bytes) {
            h->codec = SM_CODEC_ZSTD;
            payload = packed;
            bytes = size;
        }
    }
#endif
    h->stored_bytes = (uint32_t)bytes;
    h->payload_crc = sm_crc32c(0, payload, bytes);
    h->flags = SM_PACKET_FLAG_RESET;
    h->pid = b->pid;
    h->session = b->session;
    if (b->n_packets == b->packets_capacity) {
        b->packets_capacity = b->packets_capacity == 0 ? 64 : b->packets_capacity * 2;
        b->packets = need(realloc(b->packets, b->packets_capacity * sizeof *b->packets));
    }
    b->packets[b->n_packets++] = (struct tb_packet){b->bytes, bytes + sizeof header, *h};
    sm_packet_header_put(header, h);
    append(b, header, sizeof header);
    append(b, payload, bytes);
    free(packed);
}

void tb_meta(struct tb *b) {
    uint8_t buf[1024], anchor[16];
    struct sm_tlv_writer w = {buf, sizeof buf, 0, false};
    sm_put_u64le(anchor, 5000000);
    sm_put_u64le(anchor + 8, 1700000000000000000);
    sm_tlv_leb(&w, SM_META_FORMAT_VERSION, 1);
    sm_tlv_leb(&w, SM_META_TICK_NS, 1000);
    sm_tlv_leb(&w, SM_META_CLOCK, SM_CLOCK_MONOTONIC);
    sm_tlv_bytes(&w, SM_META_ANCHOR, anchor, sizeof anchor);
    sm_tlv_f64(&w, SM_META_SAMPLE_RATE, 1e-3);
    sm_tlv_leb(&w, SM_META_WORD_SIZE, 64);
    sm_tlv_text(&w, SM_META_EXECUTABLE, "/usr/bin/prog");
    sm_tlv_text(&w, SM_META_HOST, "host");
    sm_tlv_leb(&w, SM_META_PID, b->pid);
    sm_tlv_bytes(&w, SM_META_ARGS, "prog\0a b\0", 9);
    sm_tlv_bytes(&w, SM_META_BUILD_ID, "\x01\x00\x02\x03", 4);
    sm_tlv_text(&w, SM_META_WRITER, "trace_builder");
    sm_tlv_leb(&w, SM_META_DEPTH_LIMIT, DEPTH_LIMIT);
    sm_tlv_leb(&w, 99, 7); /* of a later version */
    struct sm_packet_header h = {.kind = SM_PACKET_META, .ts_begin_ticks = b->start_ticks};
    tb_packet(b, &h, buf, w.used);
}

void tb_end(struct tb *b, uint64_t ticks) {
    tb_flush_names(b);
    tb_flush_all(b);
    uint8_t *index = need(malloc(b->n_packets * 90 + 1)), *p = index;
    size_t end = 0;
    uint64_t ts = 0, index_offset = b->bytes;
    for (size_t i = 0; i < b->n_packets; i++) {
        const struct tb_packet *q = &b->packets[i];
        p = sm_put_leb(p, q->offset - end);
        *p++ = q->header.kind;
        p = sm_put_leb(p, q->header.stored_bytes);
        p = sm_put_leb(p, q->header.stream);
        p = sm_put_leb(p, q->header.packet_seq);
        p = sm_put_leb(p, q->header.n_events);
        p = sm_put_leb(p, q->header.n_alloc);
        p = sm_put_zz(p, (int64_t)(q->header.ts_begin_ticks - ts));
        p = sm_put_leb(p, q->header.ts_span_ticks);
        ts = q->header.ts_begin_ticks;
        end = q->offset + q->bytes;
    }
    struct sm_packet_header h = {.kind = SM_PACKET_INDEX};
    tb_packet(b, &h, index, (size_t)(p - index));
    free(index);

    uint8_t buf[256], gc[32];
    struct sm_tlv_writer w = {buf, sizeof buf, 0, false};
    sm_tlv_leb(&w, SM_END_REASON, SM_REASON_EXIT);
    sm_tlv_leb(&w, SM_END_N_EVENTS, b->n_events);
    sm_tlv_leb(&w, SM_END_PEAK_STREAMS, b->n_streams);
    uint8_t *g = sm_put_leb(gc, SM_COUNTER_MINOR_WORDS);
    g = sm_put_zz(g, 123456);
    g = sm_put_leb(g, SM_COUNTER_HEAP_WORDS);
    g = sm_put_zz(g, -1);
    sm_tlv_bytes(&w, SM_END_GC, gc, (size_t)(g - gc));
    sm_put_u64le(buf + w.used, index_offset);
    sm_put_u32le(buf + w.used + 8,
                 (uint32_t)(SM_PACKET_HEADER_BYTES + w.used + SM_END_TRAILER_BYTES));
    memcpy(buf + w.used + 12, SM_END_TRAILER_MAGIC, 4);
    struct sm_packet_header e = {.kind = SM_PACKET_END, .ts_begin_ticks = ticks};
    tb_packet(b, &e, buf, w.used + SM_END_TRAILER_BYTES);
}

void tb_name(struct tb *b, uint64_t code, const char *file, const char *function, uint32_t line) {
    struct sm_source_location l[2] = {{.file = file,
                                       .file_bytes = strlen(file),
                                       .function = function,
                                       .function_bytes = strlen(function),
                                       .line = line,
                                       .end_line = line + 1,
                                       .start_char = 3,
                                       .end_char = 17}};
    l[1] = l[0];
    l[1].function = "inlined";
    l[1].function_bytes = 7;
    sm_syms_encode(&b->syms, code, l, line % 5 == 0 ? 2 : line % 7 == 0 ? 0 : 1);
}

void tb_flush_names(struct tb *b) {
    if (b->syms.n_records == 0)
        return;
    struct sm_packet_header h = {
        .kind = SM_PACKET_SYMS, .packet_seq = b->syms_seq++, .n_events = b->syms.n_records};
    tb_packet(b, &h, b->syms_buf, b->syms.used);
    sm_syms_encoder_begin(&b->syms, b->syms_buf, BUFFER_BYTES);
}

void tb_flush(struct tb *b, uint32_t stream) {
    struct tb_stream *s = &b->streams[stream];
    if (!s->open)
        return;
    struct sm_packet_header h = {.kind = SM_PACKET_EVENTS,
                                 .stream = stream,
                                 .packet_seq = s->packet_seq++,
                                 .discarded = s->discarded};
    sm_event_encoder_fill_header(s->encoder, &h);
    s->next_seq = h.first_seq + h.n_alloc;
    b->n_events += h.n_events;
    s->open = false;
    tb_packet(b, &h, s->buf, sm_event_encoder_used(s->encoder));
}

void tb_flush_all(struct tb *b) {
    for (uint32_t i = 0; i < b->n_streams; i++)
        tb_flush(b, i);
}

static struct sm_event_encoder *ready(struct tb *b, uint32_t stream, uint64_t ticks) {
    struct tb_stream *s = &b->streams[stream];
    if (s->encoder == NULL) {
        s->encoder = need(mmap(NULL, sm_event_encoder_bytes(), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        s->buf = need(malloc(BUFFER_BYTES));
    }
    if (s->open && sm_event_encoder_full(s->encoder, b->target_bytes == 0 ? SM_TARGET_RAW_BYTES
                                                                          : b->target_bytes))
        tb_flush(b, stream);
    if (!s->open)
        sm_event_encoder_begin(s->encoder, s->buf, BUFFER_BYTES, s->next_seq, ticks, DEPTH_LIMIT);
    s->open = true;
    return s->encoder;
}

static void made(struct tb *b, uint32_t stream, bool ok) {
    if (!ok) {
        fprintf(stderr, "trace_builder: an event did not fit\n");
        exit(99);
    }
    if (b->events_made == b->events_capacity) {
        b->events_capacity = b->events_capacity == 0 ? 1024 : b->events_capacity * 2;
        b->events = need(realloc(b->events, b->events_capacity * sizeof *b->events));
    }
    const struct tb_stream *s = &b->streams[stream];
    b->events[b->events_made++] =
        (struct tb_event){stream, s->packet_seq, sm_event_encoder_used(s->encoder)};
}

uint64_t tb_alloc_full(struct tb *b, uint32_t stream, uint64_t ticks, uint64_t size, bool in_bytes,
                       uint64_t n_samples, uint8_t source, const uint64_t *codes,
                       uint32_t n_codes) {
    uint64_t seq;
    made(b, stream,
         sm_event_encode_alloc_codes(ready(b, stream, ticks), ticks, size, in_bytes, n_samples,
                                     source, codes, n_codes, &seq));
    return seq;
}

uint64_t tb_alloc(struct tb *b, uint32_t stream, uint64_t ticks, uint64_t words,
                  const uint64_t *codes, uint32_t n_codes) {
    return tb_alloc_full(b, stream, ticks, words, false, 1, 0, codes, n_codes);
}

void tb_ref(struct tb *b, uint32_t stream, uint64_t ticks, bool collect, uint32_t obj_stream,
            uint64_t obj_seq) {
    made(b, stream,
         sm_event_encode_ref(ready(b, stream, ticks), ticks,
                             collect ? SM_OP_COLLECT : SM_OP_PROMOTE, stream == obj_stream,
                             obj_stream, obj_seq));
}

void tb_extension(struct tb *b, uint32_t stream, uint64_t ticks, uint8_t op, const void *payload,
                  size_t bytes) {
    made(b, stream, sm_event_encode_extension(ready(b, stream, ticks), ticks, op, payload, bytes));
}

static void owner(struct tb *b, uint32_t stream, uint64_t ticks, uint32_t incarnation) {
    uint8_t buf[64];
    struct sm_tlv_writer w = {buf, sizeof buf, 0, false};
    sm_tlv_leb(&w, SM_OWNER_DOMAIN, stream * 10 + incarnation);
    sm_tlv_leb(&w, SM_OWNER_TID, 7000 + stream);
    sm_tlv_text(&w, SM_OWNER_NAME, incarnation % 2 == 0 ? "" : "worker x");
    sm_tlv_leb(&w, SM_OWNER_KIND, SM_OWNER_OCAML);
    sm_tlv_leb(&w, SM_OWNER_INCARNATION, incarnation);
    tb_extension(b, stream, ticks, SM_OP_OWNER, buf, w.used);
}

/* A walk in a call tree: the stack loses some inner frames and gets others. */
static uint32_t walk_stack(uint64_t *stack, uint32_t depth, uint32_t *state) {
    uint32_t pops = tb_random(state) % 4;
    depth = pops > depth ? 0 : depth - pops;
    uint32_t pushes = tb_random(state) % (depth > 56 ? 1 : depth > 40 ? 3 : 6);
    for (uint32_t i = 0; i < pushes; i++) {
        uint64_t caller = depth == 0 ? 0 : stack[depth - 1];
        uint32_t choice = tb_random(state) % 16;
        choice = choice < 10 ? 0 : choice < 14 ? 1 : choice;
        stack[depth] = 0x400000 + (caller * 31 + choice * 77 + depth * 3) % 1500 * 16;
        depth++;
    }
    return depth;
}

void tb_mixed(struct tb *b, uint32_t n_streams, uint32_t n_events, uint32_t seed) {
    uint32_t state = seed * 2654435761u + 12345;
    uint64_t ticks = b->start_ticks;
    uint64_t(*stacks)[64] = need(calloc(n_streams, sizeof *stacks));
    uint32_t *depths = need(calloc(n_streams, sizeof *depths));
    uint64_t *n_made = need(calloc(n_streams, sizeof *n_made));
    tb_meta(b);
    for (uint32_t i = 0; i < 1500 && i < n_events; i += 1 + seed % 3) {
        char function[32];
        snprintf(function, sizeof function, "f%u", i / 4);
        tb_name(b, 0x400000 + i * 16, i % 3 == 0 ? "a.ml" : "lib/b c.ml", function, i + 1);
        if (i == 600)
            tb_flush_names(b);
    }
    tb_flush_names(b);
    for (uint32_t i = 0; i < n_events; i++) {
        uint32_t s = tb_random(&state) % n_streams, kind = tb_random(&state) % 16;
        ticks += tb_random(&state) % 8 == 0 ? tb_random(&state) % 300 : tb_random(&state) % 3;
        if (kind < 8 || n_made[s] == 0) {
            depths[s] = walk_stack(stacks[s], depths[s], &state);
            if (kind < 6)
                n_made[s] =
                    1 + tb_alloc(b, s, ticks, 1 + tb_random(&state) % 20, stacks[s], depths[s]);
            else
                n_made[s] =
                    1 + tb_alloc_full(b, s, ticks, tb_random(&state) % 100000, kind == 7,
                                      tb_random(&state) % 40,
                                      SM_SOURCE(tb_random(&state) % 4, tb_random(&state) % 5),
                                      stacks[s], depths[s]);
        } else if (kind < 14) {
            uint32_t o = kind < 12 ? s : tb_random(&state) % n_streams;
            if (n_made[o] > 0)
                tb_ref(b, s, ticks, kind % 2 == 0, o,
                       n_made[o] - 1 - tb_random(&state) % (n_made[o] < 50 ? n_made[o] : 50));
        } else if (kind == 14 && tb_random(&state) % 8 == 0) {
            owner(b, s, ticks, tb_random(&state) % 3);
        } else if (tb_random(&state) % 8 == 0) {
            uint64_t cut[3] = {0x400000, SM_LOCATION_CUT, 0x400010};
            n_made[s] = 1 + tb_alloc(b, s, ticks, 5, cut, 3);
            tb_extension(b, s, ticks, SM_OP_MARK, "a mark", 6);
        }
        if (tb_random(&state) % 400 == 0)
            tb_flush(b, s);
    }
    tb_end(b, ticks);
    free(stacks);
    free(depths);
    free(n_made);
}

void tb_save(const struct tb *b, const char *path) {
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(b->data, 1, b->bytes, f) != b->bytes || fclose(f) != 0) {
        perror(path);
        exit(99);
    }
}

const struct tb_packet *tb_find(const struct tb *b, enum sm_packet_kind kind, uint32_t stream,
                                uint32_t packet_seq) {
    for (size_t i = 0; i < b->n_packets; i++) {
        const struct sm_packet_header *h = &b->packets[i].header;
        if (h->kind == kind && h->stream == stream && h->packet_seq == packet_seq)
            return &b->packets[i];
    }
    return NULL;
}

void tb_save_tail(const struct tb *b, const char *path) {
    size_t bytes = SM_TAIL_HEADER_BYTES + (size_t)b->n_streams * SM_TAIL_SLOT_BYTES;
    uint8_t *data = need(calloc(1, bytes));
    memcpy(data, SM_TAIL_MAGIC, 8);
    sm_put_u32le(data + SM_TAIL_AT_VERSION, SM_TAIL_VERSION);
    sm_put_u32le(data + SM_TAIL_AT_N_SLOTS, b->n_streams);
    sm_put_u64le(data + SM_TAIL_AT_SESSION, b->session);
    sm_put_u32le(data + SM_TAIL_AT_PID, b->pid);
    sm_put_u32le(data + SM_TAIL_AT_SLOT_BYTES, SM_TAIL_SLOT_BYTES);
    sm_put_u32le(data + SM_TAIL_AT_SYMS_OFFSET, SM_TAIL_SYMS_OFFSET);
    sm_put_u32le(data + SM_TAIL_AT_EVENTS_OFFSET, SM_TAIL_EVENTS_OFFSET);
    sm_put_u64le(data + SM_TAIL_AT_DISCARDED, 3);
    sm_put_u32le(data + SM_TAIL_AT_STATE, 2);
    for (uint32_t i = 0; i < b->n_streams; i++) {
        const struct tb_stream *s = &b->streams[i];
        uint8_t *slot = data + SM_TAIL_HEADER_BYTES + (size_t)i * SM_TAIL_SLOT_BYTES;
        struct sm_packet_header filled = {0};
        if (!s->open)
            continue;
        sm_event_encoder_fill_header(s->encoder, &filled);
        struct sm_packet_header h = {.stream = i,
                                     .packet_seq = s->packet_seq,
                                     .pid = b->pid,
                                     .first_seq = filled.first_seq,
                                     .ts_begin_ticks = filled.ts_begin_ticks,
                                     .session = b->session};
        sm_packet_header_put(slot, &h);
        sm_put_u64le(slot + SM_TAIL_SLOT_EVENTS_COMMITTED, sm_event_encoder_used(s->encoder));
        sm_put_u64le(slot + SM_TAIL_SLOT_DISCARDED, 5);
        memcpy(slot + SM_TAIL_EVENTS_OFFSET, s->buf, sm_event_encoder_used(s->encoder));
        if (i == 0 && b->syms.n_records > 0) {
            struct sm_packet_header n = {
                .packet_seq = b->syms_seq, .pid = b->pid, .session = b->session};
            sm_packet_header_put(slot + SM_TAIL_SLOT_SYMS_HEADER, &n);
            sm_put_u64le(slot + SM_TAIL_SLOT_SYMS_COMMITTED, b->syms.used);
            memcpy(slot + SM_TAIL_SYMS_OFFSET, b->syms_buf, b->syms.used);
        }
    }
    struct tb copy = {.data = data, .bytes = bytes};
    tb_save(&copy, path);
    free(data);
}
