/* Reads a trace as its recorder wrote it, with its side file, for the tests of the recorder: every rule of
   docs/format.md that concerns the writer is checked, every event decoded by the reference decoder. */
#ifndef SM_TESTS_TRACE_SCAN_H
#define SM_TESTS_TRACE_SCAN_H

#include "ref_decoder.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "format/packet.h"

#define SCAN_STREAMS 4096

struct scan {
    uint64_t n_packets, n_meta, n_events_packets, n_syms, n_index, n_end;
    uint64_t n_events, n_alloc, n_promote, n_collect, n_own_refs, n_foreign_refs, n_marks, n_owner,
        n_counters;
    uint64_t discarded;        /* by DISCARD records */
    uint64_t header_discarded; /* by the last header of each stream */
    uint64_t names;            /* records in SYMS packets */
    uint64_t tail_events;      /* of n_events: from the side file */
    uint64_t tail_syms;
    uint64_t session, torn_bytes;
    uint32_t pid, max_depth, n_cut, tail_state, tail_forks;
    uint64_t tail_discarded;
    bool has_tail;
    uint64_t end_n_events, end_discarded, end_forks, end_reason, end_owners, end_peak;
    uint64_t meta_parent;
    uint32_t next_packet[2][SCAN_STREAMS]; /* EVENTS, SYMS */
    uint64_t next_seq[SCAN_STREAMS];
    uint64_t last_ticks[SCAN_STREAMS], stream_discarded[SCAN_STREAMS];
    uint64_t max_owner_tid_changes;
    void (*on_event)(void *ctx, uint32_t stream, const struct ref_event *ev);
    void *ctx;
    uint32_t stream; /* of the packet being decoded */
    uint8_t meta[65536];
    size_t meta_bytes;
};

static void scan_event(void *ctx, const struct ref_event *ev) {
    struct scan *s = ctx;
    s->n_events++;
    switch (ev->op) {
    case SM_OP_ALLOC:
    case SM_OP_ALLOC_BYTES:
        s->n_alloc++;
        break;
    case SM_OP_PROMOTE:
    case SM_OP_PROMOTE_FOREIGN:
        s->n_promote++;
        break;
    case SM_OP_COLLECT:
    case SM_OP_COLLECT_FOREIGN:
        s->n_collect++;
        break;
    case SM_OP_MARK:
        s->n_marks++;
        break;
    case SM_OP_OWNER:
        s->n_owner++;
        break;
    case SM_OP_COUNTERS:
        s->n_counters++;
        break;
    case SM_OP_DISCARD: {
        const uint8_t *p = ev->payload, *end = p + ev->payload_bytes;
        while (p < end) {
            assert_true(ref_leb(&p, end) < SM_DISCARD_REASONS);
            s->discarded += ref_leb(&p, end);
        }
        break;
    }
    default:
        break;
    }
    if (ev->op == 200 || ev->op == 201)
        s->n_own_refs++;
    if (ev->op == 202 || ev->op == 203)
        s->n_foreign_refs++;
    if (s->on_event != NULL)
        s->on_event(s->ctx, s->stream, ev);
}

static void scan_events_packet(struct scan *s, const struct sm_packet_header *h,
                               const uint8_t *payload, size_t bytes, bool sealed) {
    assert_true(h->stream < SCAN_STREAMS);
    assert_int_equal(h->packet_seq, s->next_packet[0][h->stream]);
    s->next_packet[0][h->stream]++;
    assert_true(h->first_seq == s->next_seq[h->stream]);
    assert_true(h->ts_begin_ticks >= s->last_ticks[h->stream]);
    s->stream = h->stream;
    assert_true(bytes > 0 && payload[0] == SM_OP_OWNER);
    struct ref_totals t =
        ref_decode(payload, bytes, h->first_seq, h->ts_begin_ticks, scan_event, s);
    if (sealed) {
        assert_int_equal(t.n_events, h->n_events);
        assert_int_equal(t.n_alloc, h->n_alloc);
        assert_int_equal(t.max_depth, h->max_depth);
        assert_int_equal(t.n_cut, h->n_cut);
        assert_true(t.last_ticks == h->ts_begin_ticks + h->ts_span_ticks);
        assert_true(h->discarded >= s->stream_discarded[h->stream]);
        s->stream_discarded[h->stream] = h->discarded;
    }
    s->next_seq[h->stream] += t.n_alloc;
    s->last_ticks[h->stream] = t.last_ticks;
    s->n_cut += t.n_cut;
    if (t.max_depth > s->max_depth)
        s->max_depth = t.max_depth;
}

static uint8_t *scan_load(const char *path, size_t *bytes) {
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return NULL;
    struct stat st;
    fstat(fileno(f), &st);
    uint8_t *data = malloc((size_t)st.st_size + 1);
    *bytes = fread(data, 1, (size_t)st.st_size, f);
    fclose(f);
    return data;
}

static void scan_tlv(const uint8_t *p, const uint8_t *end, uint64_t *values, uint64_t n) {
    while (p < end) {
        uint64_t tag = ref_leb(&p, end), length = ref_leb(&p, end);
        assert_true(length <= (uint64_t)(end - p));
        const uint8_t *q = p;
        if (tag < n)
            sm_get_leb(&q, p + length, &values[tag]);
        p += length;
    }
}

static void scan_packets(struct scan *s, const uint8_t *data, size_t bytes) {
    size_t at = 0, end_of_last = 0;
    uint64_t index_at = 0;
    while (at < bytes) {
        struct sm_packet_header h;
        if (bytes - at < SM_PACKET_HEADER_BYTES || !sm_packet_header_get(data + at, &h) ||
            h.stored_bytes > bytes - at - SM_PACKET_HEADER_BYTES) {
            s->torn_bytes = bytes - at;
            break;
        }
        const uint8_t *payload = data + at + SM_PACKET_HEADER_BYTES;
        assert_int_equal(sm_crc32c(0, payload, h.stored_bytes), h.payload_crc);
        assert_int_equal(h.codec, SM_CODEC_NONE);
        assert_int_equal(h.raw_bytes, h.stored_bytes);
        assert_int_equal(h.flags, SM_PACKET_FLAG_RESET);
        assert_int_equal(s->n_end, 0);
        if (s->n_packets == 0) {
            assert_int_equal(h.kind, SM_PACKET_META);
            s->session = h.session;
            s->pid = h.pid;
        }
        assert_true(h.session == s->session);
        assert_int_equal(h.pid, s->pid);
        s->n_packets++;
        switch (h.kind) {
        case SM_PACKET_META: {
            uint64_t values[32] = {0};
            s->n_meta++;
            scan_tlv(payload, payload + h.stored_bytes, values, 32);
            s->meta_parent = values[SM_META_PARENT_PID];
            assert_int_equal(values[SM_META_PID], h.pid);
            assert_true(h.stored_bytes <= sizeof s->meta);
            memcpy(s->meta, payload, h.stored_bytes);
            s->meta_bytes = h.stored_bytes;
            break;
        }
        case SM_PACKET_EVENTS:
            s->n_events_packets++;
            scan_events_packet(s, &h, payload, h.stored_bytes, true);
            break;
        case SM_PACKET_SYMS:
            s->n_syms++;
            s->names += h.n_events;
            assert_int_equal(h.packet_seq, s->next_packet[1][h.stream]);
            s->next_packet[1][h.stream]++;
            break;
        case SM_PACKET_INDEX: {
            s->n_index++;
            index_at = at;
            const uint8_t *p = payload, *end = payload + h.stored_bytes;
            uint64_t offset = 0, entries = 0, ts = 0;
            while (p < end) {
                struct sm_packet_header x;
                offset += ref_leb(&p, end);
                assert_true(offset < at && sm_packet_header_get(data + offset, &x));
                assert_int_equal(ref_u8(&p, end), x.kind);
                assert_int_equal(ref_leb(&p, end), x.stored_bytes);
                assert_int_equal(ref_leb(&p, end), x.stream);
                assert_int_equal(ref_leb(&p, end), x.packet_seq);
                assert_int_equal(ref_leb(&p, end), x.n_events);
                assert_int_equal(ref_leb(&p, end), x.n_alloc);
                ts += (uint64_t)ref_zz(&p, end);
                assert_true(ts == x.ts_begin_ticks);
                assert_true(ref_leb(&p, end) == x.ts_span_ticks);
                offset += SM_PACKET_HEADER_BYTES + x.stored_bytes;
                entries++;
            }
            assert_int_equal(entries, s->n_packets - 1);
            break;
        }
        case SM_PACKET_END: {
            uint64_t values[16] = {0};
            s->n_end++;
            const uint8_t *trailer = payload + h.stored_bytes - SM_END_TRAILER_BYTES;
            scan_tlv(payload, trailer, values, 16);
            s->end_reason = values[SM_END_REASON];
            s->end_n_events = values[SM_END_N_EVENTS];
            s->end_discarded = values[SM_END_DISCARDED];
            s->end_forks = values[SM_END_FORKS];
            s->end_owners = values[SM_END_OWNERS];
            s->end_peak = values[SM_END_PEAK_STREAMS];
            assert_true(sm_get_u64le(trailer) == index_at);
            assert_int_equal(sm_get_u32le(trailer + 8), SM_PACKET_HEADER_BYTES + h.stored_bytes);
            assert_memory_equal(trailer + 12, "STME", 4);
            break;
        }
        default:
            fail_msg("packet of kind %d", h.kind);
        }
        end_of_last = at += SM_PACKET_HEADER_BYTES + h.stored_bytes;
    }
    (void)end_of_last;
}

static void scan_tail(struct scan *s, const uint8_t *t, size_t bytes) {
    assert_true(bytes >= SM_TAIL_HEADER_BYTES);
    assert_memory_equal(t, SM_TAIL_MAGIC, 8);
    s->has_tail = true;
    assert_true(sm_get_u64le(t + SM_TAIL_AT_SESSION) == s->session);
    s->tail_state = sm_get_u32le(t + SM_TAIL_AT_STATE);
    s->tail_forks = sm_get_u32le(t + SM_TAIL_AT_FORKS);
    s->tail_discarded = sm_get_u64le(t + SM_TAIL_AT_DISCARDED);
    uint32_t n = sm_get_u32le(t + SM_TAIL_AT_N_SLOTS);
    for (uint32_t i = 0; i < n; i++) {
        size_t at = SM_TAIL_HEADER_BYTES + (size_t)i * SM_TAIL_SLOT_BYTES;
        if (at + SM_TAIL_EVENTS_OFFSET > bytes)
            break;
        const uint8_t *slot = t + at;
        struct sm_packet_header h;
        uint64_t committed = sm_get_u64le(slot + SM_TAIL_SLOT_EVENTS_COMMITTED);
        if (committed > 0) {
            assert_true(sm_packet_header_get_unsealed(slot, &h));
            assert_int_equal(h.stream, i);
            if (h.packet_seq == s->next_packet[0][i]) { /* else it is in the file */
                uint64_t before = s->n_events;
                scan_events_packet(s, &h, slot + SM_TAIL_EVENTS_OFFSET, committed, false);
                s->tail_events += s->n_events - before;
            }
        }
        if (sm_get_u64le(slot + SM_TAIL_SLOT_SYMS_COMMITTED) > 0)
            s->tail_syms++;
        s->stream_discarded[i] = sm_get_u64le(slot + SM_TAIL_SLOT_DISCARDED);
    }
}

/* False when there is no such trace. */
static bool scan_trace(const char *path, struct scan *s) {
    size_t bytes;
    uint8_t *data = scan_load(path, &bytes);
    if (data == NULL)
        return false;
    scan_packets(s, data, bytes);
    free(data);
    char tail[4200];
    snprintf(tail, sizeof tail, "%s.tail", path);
    data = scan_load(tail, &bytes);
    if (data != NULL)
        scan_tail(s, data, bytes);
    free(data);
    for (uint32_t i = 0; i < SCAN_STREAMS; i++)
        s->header_discarded += s->stream_discarded[i];
    return true;
}

#endif
