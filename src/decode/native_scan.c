/* Finding the packets of a trace, damaged or not (docs/format.md, section 9).

   Headers are walked, payloads are not touched: 96 bytes are read of each packet. Only where no
   packet stands behind a packet is more looked at. Then either the packet is whole and garbage follows,
   or bytes are missing inside it. What decides is first whether another header stands inside the
   packet (its checksum makes a chance hit impossible), and then the payload's checksum; in this order, because
   each byte is then searched once, whatever a hostile file claims. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "decode/native_internal.h"

/* Concatenated traces that are told apart. */
#define MAX_PARTS 64

struct part {
    uint64_t session;
    uint64_t offset;
    uint64_t bytes;
    uint64_t events;
    uint32_t pid;
    struct sm_packet_header meta;
    bool has_meta;
};

struct scan {
    struct sm_trace *t;
    struct sm_native *n;
    const uint8_t *data;
    uint64_t bytes;
    struct part parts[MAX_PARTS];
    uint32_t n_parts;
    bool out_of_memory;
    uint64_t foreign_packets, foreign_bytes, foreign_events, foreign_offset;
    bool in_order; /* packets came sorted */
};

/* A header that holds and stays within the limits. */
static bool header_at(const struct scan *s, uint64_t offset, struct sm_packet_header *h) {
    if (s->bytes - offset < SM_PACKET_HEADER_BYTES || !sm_packet_header_get(s->data + offset, h))
        return false;
    return h->raw_bytes <= SM_MAX_RAW_BYTES && h->stored_bytes <= SM_MAX_RAW_BYTES + (1u << 20) &&
           (h->codec != SM_CODEC_NONE || h->raw_bytes == h->stored_bytes) &&
           h->stream < SM_MAX_STREAMS && h->first_seq < SM_MAX_SEQ &&
           h->ts_span_ticks <= UINT64_MAX - h->ts_begin_ticks;
}

/* Offset of the first header that begins in [from, to), or `to`. */
static uint64_t find_header(const struct scan *s, uint64_t from, uint64_t to) {
    struct sm_packet_header h;
    /* A header that begins before `to` may reach beyond it. */
    uint64_t end =
        s->bytes - to < SM_PACKET_MAGIC_BYTES ? s->bytes : to + SM_PACKET_MAGIC_BYTES - 1;
    while (from < to) {
        const uint8_t *hit =
            memmem(s->data + from, (size_t)(end - from), SM_PACKET_MAGIC, SM_PACKET_MAGIC_BYTES);
        if (hit == NULL)
            return to;
        uint64_t offset = (uint64_t)(hit - s->data);
        if (header_at(s, offset, &h))
            return offset;
        from = offset + 1;
    }
    return to;
}

static struct part *part_of(struct scan *s, uint64_t session) {
    for (uint32_t i = 0; i < s->n_parts; i++)
        if (s->parts[i].session == session)
            return &s->parts[i];
    return NULL;
}

static void add_part(struct scan *s, const struct sm_packet_header *h) {
    struct part *part = part_of(s, h->session);
    if (part == NULL && s->n_parts < MAX_PARTS) {
        part = &s->parts[s->n_parts++];
        *part = (struct part){.session = h->session, .pid = h->pid};
    }
    if (part != NULL && !part->has_meta && h->kind == SM_PACKET_META) {
        part->has_meta = true;
        part->meta = *h;
        part->pid = h->pid;
    }
}

static bool chosen(const struct scan *s, const struct sm_packet_header *h) {
    return h->session == s->n->session &&
           (h->kind != SM_PACKET_EVENTS || !s->n->have_meta || h->pid == s->n->meta_pid);
}

/* Takes a packet of the chosen trace into the lists. */
static void take(struct scan *s, const struct sm_packet_header *h, uint64_t offset,
                 uint64_t available, bool damaged) {
    struct sm_native *n = s->n;
    struct sm_native_packet p = {
        .offset = offset + SM_PACKET_HEADER_BYTES,
        .first_seq = h->first_seq,
        .ts_begin_ticks = h->ts_begin_ticks,
        .ts_span_ticks = h->ts_span_ticks,
        .stored_bytes = (uint32_t)available,
        .raw_bytes = h->raw_bytes,
        .n_events = h->n_events,
        .n_alloc = h->n_alloc,
        .n_alloc_readable = h->n_alloc,
        .packet_seq = h->packet_seq,
        .payload_crc = h->payload_crc,
        .stream = h->stream,
        .codec = h->codec,
        .flags = (uint8_t)((available < h->stored_bytes ? SM_NATIVE_CUT : 0) |
                           (h->n_cut > 0 ? SM_NATIVE_CUTS : 0)),
    };
    if (damaged) {
        sm_trace_add_loss(
            s->t, h->kind == SM_PACKET_SYMS ? SM_LOSS_NAMES : SM_LOSS_CORRUPT, h->stream, offset,
            SM_PACKET_HEADER_BYTES + available, h->n_events, true,
            "packet %u of stream %u is damaged (bytes are missing or overwritten): its "
            "events or names are lost",
            h->packet_seq, h->stream);
        p.flags |= SM_NATIVE_REPORTED | SM_NATIVE_BAD;
        p.n_alloc_readable = 0;
    }
    if ((p.flags & SM_NATIVE_CUT) != 0 && h->kind != SM_PACKET_EVENTS && h->kind != SM_PACKET_SYMS)
        sm_trace_add_loss(s->t, SM_LOSS_CUT, UINT32_MAX, offset, SM_PACKET_HEADER_BYTES + available,
                          0, true, "the file ends inside its %s packet",
                          h->kind == SM_PACKET_META    ? "META"
                          : h->kind == SM_PACKET_INDEX ? "INDEX"
                                                       : "END");
    switch (h->kind) {
    case SM_PACKET_EVENTS: {
        const struct sm_native_packet *last =
            n->n_packets > 0 ? &n->packets[n->n_packets - 1] : NULL;
        if (last != NULL && (last->stream > p.stream ||
                             (last->stream == p.stream && last->packet_seq >= p.packet_seq)))
            s->in_order = false;
        if (!sm_native_append(&n->packets, &n->n_packets, &n->packets_capacity, &p))
            s->out_of_memory = true;
        break;
    }
    case SM_PACKET_SYMS:
        if (!sm_native_append(&n->syms, &n->n_syms, &n->syms_capacity, &p))
            s->out_of_memory = true;
        break;
    case SM_PACKET_META:
        if (n->meta_packet.offset == 0)
            n->meta_packet = p;
        break;
    case SM_PACKET_INDEX:
        /* Nothing is taken from it, but a flipped bit should not go unseen. */
        if (!damaged && (p.flags & SM_NATIVE_CUT) == 0 && !sm_native_payload_holds(s->t, &p))
            sm_trace_add_loss(s->t, SM_LOSS_CORRUPT, UINT32_MAX, offset,
                              SM_PACKET_HEADER_BYTES + available, 0, true,
                              "the INDEX packet is damaged; nothing else depends on it");
        break;
    case SM_PACKET_END:
        n->end_packet = p; /* the last one: a trace that was closed again */
        n->have_end = true;
        break;
    default:
        break;
    }
}

static void unknown_packet(struct scan *s, const struct sm_packet_header *h, uint64_t offset) {
    sm_trace_add_loss(s->t, SM_LOSS_UNSUPPORTED, h->stream, offset,
                      SM_PACKET_HEADER_BYTES + (uint64_t)h->stored_bytes, h->n_events, false,
                      h->kind > SM_PACKET_HEARTBEAT
                          ? "a packet of kind %u, codec %u: written by a newer statmem, skipped"
                          : "a packet of kind %u with codec %u, which this version cannot unpack, "
                            "skipped",
                      h->kind, h->codec);
}

static void packet(struct scan *s, const struct sm_packet_header *h, uint64_t offset,
                   uint64_t available, bool damaged) {
    if (h->kind == SM_PACKET_META)
        add_part(s, h);
    if (!chosen(s, h)) {
        struct part *part = part_of(s, h->session);
        if (part != NULL && h->session != s->n->session) {
            if (part->bytes == 0)
                part->offset = offset;
            part->bytes += SM_PACKET_HEADER_BYTES + available;
            part->events += h->kind == SM_PACKET_EVENTS ? h->n_events : 0;
            return;
        }
        if (s->foreign_packets++ == 0)
            s->foreign_offset = offset;
        s->foreign_bytes += SM_PACKET_HEADER_BYTES + available;
        s->foreign_events += h->kind == SM_PACKET_EVENTS ? h->n_events : 0;
        return;
    }
    if (h->codec > SM_CODEC_ZSTD || h->kind > SM_PACKET_HEARTBEAT)
        unknown_packet(s, h, offset);
    else
        take(s, h, offset, available, damaged);
}

static void garbage(struct scan *s, uint64_t from, uint64_t to) {
    bool at_end = to == s->bytes;
    bool zeros = true;
    for (uint64_t i = from; i < to && zeros; i++)
        zeros = s->data[i] == 0;
    size_t magic_bytes =
        to - from < SM_PACKET_MAGIC_BYTES ? (size_t)(to - from) : SM_PACKET_MAGIC_BYTES;
    bool header = at_end && to - from < SM_PACKET_HEADER_BYTES &&
                  memcmp(s->data + from, SM_PACKET_MAGIC, magic_bytes) == 0;
    if (header)
        sm_trace_add_loss(s->t, SM_LOSS_CUT, UINT32_MAX, from, to - from, 0, false,
                          "the file ends inside a packet header (%llu of %d bytes)",
                          (unsigned long long)(to - from), SM_PACKET_HEADER_BYTES);
    else
        sm_trace_add_loss(s->t, SM_LOSS_GARBAGE, UINT32_MAX, from, to - from, 0, false,
                          "%llu %s belong to no readable packet", (unsigned long long)(to - from),
                          zeros ? "zero bytes" : "bytes");
}

/* Handles the packet at `offset`; returns where to go on. */
static uint64_t step(struct scan *s, const struct sm_packet_header *h, uint64_t offset) {
    uint64_t begin = offset + SM_PACKET_HEADER_BYTES;
    uint64_t room = s->bytes - begin;
    uint64_t end = begin + h->stored_bytes;
    struct sm_packet_header next;
    if (h->stored_bytes <= room && (end == s->bytes || header_at(s, end, &next))) {
        packet(s, h, offset, h->stored_bytes, false);
        return end;
    }
    /* Nothing stands where the next packet should: see whether it stands inside this one. */
    uint64_t limit = h->stored_bytes <= room ? end : s->bytes;
    uint64_t inside = find_header(s, begin, limit);
    if (inside < limit) {
        packet(s, h, offset, inside - begin, true);
        return inside;
    }
    if (h->stored_bytes > room) {
        packet(s, h, offset, room, false);
        return s->bytes;
    }
    struct sm_native_packet p = {
        .offset = begin, .stored_bytes = h->stored_bytes, .payload_crc = h->payload_crc};
    packet(s, h, offset, h->stored_bytes, !sm_native_payload_holds(s->t, &p));
    return end;
}

static void walk(struct scan *s) {
    struct sm_packet_header h;
    for (uint64_t offset = s->t->first_offset; offset < s->bytes && !s->out_of_memory;) {
        if (header_at(s, offset, &h)) {
            offset = step(s, &h, offset);
            continue;
        }
        uint64_t next = find_header(s, offset + 1, s->bytes);
        garbage(s, offset, next);
        offset = next;
    }
}

/* Which traces begin in the file, so that `part` can be chosen before packets are taken. A normal
   file begins with META and is read from its first part: then this stops at the first header. */
static void find_parts(struct scan *s) {
    struct sm_packet_header h;
    bool any = false;
    for (uint64_t offset = s->t->first_offset; offset < s->bytes;) {
        if (!header_at(s, offset, &h)) {
            offset = find_header(s, offset + 1, s->bytes);
            continue;
        }
        if (!any || h.kind == SM_PACKET_META)
            add_part(s, &h);
        any = true;
        if (s->parts[0].has_meta && s->t->options.part < s->n_parts)
            break;
        uint64_t end = offset + SM_PACKET_HEADER_BYTES + h.stored_bytes;
        struct sm_packet_header next;
        if (end >= s->bytes || header_at(s, end, &next))
            offset = end;
        else
            offset = find_header(s, offset + SM_PACKET_HEADER_BYTES, s->bytes);
    }
}

static void report_discarded(struct scan *s) {
    struct sm_native *n = s->n;
    uint64_t total = 0;
    for (uint32_t i = 0; i < s->t->n_streams; i++) {
        uint64_t d = n->streams[i].discarded;
        total += d;
        if (d > 0)
            sm_trace_add_loss(s->t, SM_LOSS_DISCARDED, s->t->stream_ids[i], 0, 0, d, true,
                              "the recorder discarded %llu events of stream %u and counted them",
                              (unsigned long long)d, s->t->stream_ids[i]);
    }
    uint64_t others = n->tail != NULL ? n->tail->discarded : 0;
    if (s->t->end.present && s->t->end.discarded > total + others)
        others = s->t->end.discarded - total;
    if (others > 0)
        sm_trace_add_loss(s->t, SM_LOSS_DISCARDED, UINT32_MAX, 0, 0, others, true,
                          "the recorder discarded %llu events of threads that have no stream, and "
                          "counted them",
                          (unsigned long long)others);
}

/* What was lost before this file was written from a damaged one. */
static void report_earlier(struct scan *s) {
    const struct sm_end *end = &s->t->end;
    if (end->lost_events > 0 || end->lost_bytes > 0)
        sm_trace_add_loss(
            s->t, SM_LOSS_CORRUPT, UINT32_MAX, 0, end->lost_bytes, end->lost_events, false,
            "%llu events and %llu bytes had been lost to damage before this trace was "
            "closed or converted",
            (unsigned long long)end->lost_events, (unsigned long long)end->lost_bytes);
    if (end->lost_names > 0)
        sm_trace_add_loss(s->t, SM_LOSS_NAMES, UINT32_MAX, 0, 0, end->lost_names, false,
                          "names of %llu locations had been lost to damage before this trace was "
                          "closed or converted",
                          (unsigned long long)end->lost_names);
}

static void report_extent(struct scan *s) {
    const struct sm_native_tail *tail = s->n->tail;
    if (s->t->end.present)
        return;
    bool alive = tail != NULL && tail->state == 1 && tail->pid != 0 &&
                 (kill((pid_t)tail->pid, 0) == 0 || errno == EPERM);
    const char *detail =
        tail == NULL ? "the trace has no end and no side file: the program died, or still runs "
                       "elsewhere; the last events of each thread may be missing"
        : alive      ? "the program still records: what it has recorded up to now was read"
        : s->t->tail_path != NULL
            ? "the trace was not closed (the program was killed); its last events were taken from "
              "the side file"
            : "the trace was not closed; its side file holds no further events";
    sm_trace_add_loss(s->t, SM_LOSS_EXTENT, UINT32_MAX, s->bytes, 0, 0, tail != NULL, "%s", detail);
}

static void report_others(struct scan *s) {
    for (uint32_t i = 0; i < s->n_parts; i++)
        if (s->parts[i].session != s->n->session && s->parts[i].bytes > 0)
            sm_trace_add_loss(s->t, SM_LOSS_CONCATENATED, UINT32_MAX, s->parts[i].offset,
                              s->parts[i].bytes, s->parts[i].events, true,
                              "the file holds %u traces one after another; this is another one: "
                              "number %u, counted from 1 (--part)",
                              s->n_parts, i + 1);
    if (s->foreign_packets > 0)
        sm_trace_add_loss(s->t, SM_LOSS_FOREIGN, UINT32_MAX, s->foreign_offset, s->foreign_bytes,
                          s->foreign_events, true,
                          "%llu packets of another process or recording (a forked child that kept "
                          "the file open?) are skipped",
                          (unsigned long long)s->foreign_packets);
}

static void read_meta_and_end(struct scan *s, const struct part *part) {
    struct sm_trace *t = s->t;
    struct sm_native *n = s->n;
    struct sm_native_buffer buffer = {0};
    const uint8_t *payload;
    size_t bytes;
    t->meta.format = SM_TRACE_NATIVE;
    t->meta.session = n->session;
    t->meta.pid = part->pid;
    if (part->has_meta)
        t->meta.start_ticks = part->meta.ts_begin_ticks;
    if (part->has_meta && n->meta_packet.offset != 0 &&
        sm_native_payload(t, &n->meta_packet, &buffer, SM_LOSS_CORRUPT, &payload, &bytes)) {
        sm_native_read_meta(t, payload, bytes);
    } else {
        t->meta.missing = true;
        sm_trace_add_loss(t, SM_LOSS_CORRUPT, UINT32_MAX, t->first_offset, 0, 0, false,
                          "the trace has no readable META packet: clock tick (1000 ns), word size "
                          "(64 bits) and sampling rate (unknown) are assumed");
    }
    if (n->have_end &&
        (!sm_native_payload(t, &n->end_packet, &buffer, SM_LOSS_CORRUPT, &payload, &bytes) ||
         !sm_native_read_end(t, payload, bytes)))
        n->have_end = false;
    if (n->have_end)
        t->end.end_ticks = n->end_packet.ts_begin_ticks;
    sm_native_buffer_release(n, &buffer);
}

static void finish_times(struct scan *s, const struct part *part) {
    struct sm_meta *m = &s->t->meta;
    if (!part->has_meta) {
        m->start_ticks = UINT64_MAX;
        for (uint32_t i = 0; i < s->n->n_packets; i++)
            if (s->n->packets[i].ts_begin_ticks < m->start_ticks)
                m->start_ticks = s->n->packets[i].ts_begin_ticks;
        if (m->start_ticks == UINT64_MAX)
            m->start_ticks = 0;
    }
    uint64_t clock_ns = m->start_ticks * m->tick_ns;
    m->start_real_ns = (int64_t)(m->anchor_real_ns + (clock_ns - m->anchor_clock_ns));
}

enum sm_status sm_native_scan(struct sm_trace *t, struct sm_error *err) {
    struct sm_native *n = calloc(1, sizeof *n);
    if (n == NULL) {
        sm_error_set(err, "out of memory");
        return SM_FAILED;
    }
    t->backend_data = n;
    n->tail = t->tail;
    t->tail = NULL;
    struct scan s = {
        .t = t, .n = n, .data = t->input.data, .bytes = t->input.bytes, .in_order = true};
    find_parts(&s);
    if (t->options.part >= s.n_parts) {
        sm_error_set(err, "there is no trace %u: the file holds %u trace%s, counted from 1",
                     t->options.part + 1, s.n_parts, s.n_parts == 1 ? "" : "s");
        return SM_FAILED;
    }
    const struct part *part = &s.parts[t->options.part];
    n->session = part->session;
    n->have_meta = part->has_meta;
    n->meta_pid = part->pid;
    if (n->tail != NULL && n->tail->session != n->session) {
        sm_native_tail_free(n->tail);
        n->tail = NULL;
    }
    walk(&s);
    read_meta_and_end(&s, part);
    if (s.out_of_memory || !sm_native_arrange(t, s.in_order)) {
        sm_error_set(err, "out of memory for the list of %u packets", n->n_packets);
        return SM_FAILED;
    }
    finish_times(&s, part);
    report_discarded(&s);
    report_others(&s);
    report_earlier(&s);
    report_extent(&s);

    struct sm_native_buffer buffer = {0};
    for (uint32_t i = 0; i < n->n_syms; i++)
        sm_native_read_syms(t, &n->syms[i], &buffer);
    sm_native_buffer_release(n, &buffer);
    free(n->syms);
    n->syms = NULL;
    n->n_syms = n->syms_capacity = 0;
    sm_input_sequential(&t->input);
    return SM_OK;
}
