/* One pass over a memtrace file's packet headers.

   Only headers, the trace info and location packets are looked at; event packets are listed per domain
   for the cursors. There are no checksums, so a header is believed when magic, version and size
   hold and another header, or the end of the file, stands where it ends. Else the next header is
   searched by its magic; and when the bytes up to there are exactly the events that the header
   announces, only its size was damaged and the packet is read all the same. */
#include <stdlib.h>
#include <string.h>

#include "decode/memtrace_internal.h"

#define DOMAINS 65536u

/* The pass's own state. */
struct scan {
    struct sm_trace *t;
    struct sm_memtrace *m;
    const uint8_t *data;
    uint64_t bytes;
    uint32_t *stream_of; /* by domain: index + 1 in order of appearance; DOMAINS */
    uint32_t n_damaged;  /* places with unreadable bytes so far */
    bool no_memory;
    uint32_t part; /* trace-info packets seen, minus 1 */
    uint64_t foreign_packets, foreign_bytes, foreign_events, foreign_offset, foreign_pid;
};

static bool header_at(const struct scan *s, uint64_t offset, struct sm_mt_header *h) {
    return offset < s->bytes &&
           sm_mt_header_get(s->data + offset, (size_t)(s->bytes - offset), s->m->order, h) &&
           h->version == s->m->version;
}

/* Offset of the next header at or after `from`; the file's end when there is none. */
static uint64_t find_header(const struct scan *s, uint64_t from) {
    uint8_t magic[4];
    struct sm_mt_header h;
    sm_put_u32le(magic, s->m->order == SM_MT_BIG ? __builtin_bswap32(SM_MT_MAGIC) : SM_MT_MAGIC);
    while (from + 4 <= s->bytes) {
        const uint8_t *hit = memmem(s->data + from, (size_t)(s->bytes - from), magic, 4);
        if (hit == NULL)
            break;
        from = (uint64_t)(hit - s->data);
        if (header_at(s, from, &h))
            return from;
        from++;
    }
    return s->bytes;
}

/* Could the rest of the file be the beginning of a header? */
static bool is_cut_header(const struct scan *s, uint64_t offset) {
    uint64_t left = s->bytes - offset, n = left < 4 ? left : 4;
    uint8_t magic[4];
    sm_put_u32le(magic, s->m->order == SM_MT_BIG ? __builtin_bswap32(SM_MT_MAGIC) : SM_MT_MAGIC);
    return left < SM_MT_MAX_HEADER_BYTES && memcmp(s->data + offset, magic, (size_t)n) == 0;
}

static struct sm_mt_stream *stream_of(struct scan *s, uint32_t domain) {
    struct sm_memtrace *m = s->m;
    if (s->stream_of[domain] == 0) {
        struct sm_mt_stream *streams = realloc(m->streams, (m->n_streams + 1) * sizeof *streams);
        if (streams == NULL)
            return NULL;
        m->streams = streams;
        memset(&streams[m->n_streams], 0, sizeof *streams);
        streams[m->n_streams].domain = domain;
        s->stream_of[domain] = ++m->n_streams;
    }
    return &m->streams[s->stream_of[domain] - 1];
}

/* More allocations than a packet's bytes can hold: 6 bytes are the least. */
static bool ids_impossible(const struct sm_mt_header *h, uint32_t bytes) {
    return h->alloc_begin > h->alloc_end || h->alloc_begin >> 62 != 0 ||
           h->alloc_end - h->alloc_begin > (bytes - h->header_bytes) / 6;
}

static void add_packet(struct scan *s, uint64_t offset, uint32_t bytes,
                       const struct sm_mt_header *h) {
    struct sm_mt_stream *stream = stream_of(s, h->domain);
    if (stream == NULL) {
        s->no_memory = true;
        return;
    }
    if (stream->n_packets == stream->capacity) {
        uint32_t capacity = stream->capacity * 2 + 16;
        struct sm_mt_packet *packets = realloc(stream->packets, capacity * sizeof *packets);
        if (packets == NULL) {
            s->no_memory = true;
            return;
        }
        stream->packets = packets;
        stream->capacity = capacity;
    }
    uint64_t begin = h->alloc_begin, end = h->alloc_end;
    if (ids_impossible(h, bytes)) {
        /* One of the two is damaged: the other, and the number of allocations, tell it. */
        struct sm_mt_walk w;
        sm_mt_walk(s->data + offset + h->header_bytes, s->data + offset + bytes, s->m->order, &w);
        uint64_t expected = stream->n_objects; /* meanwhile: id after the packet before */
        if (expected != begin && (expected == end - w.n_allocs || begin >> 62 != 0))
            begin = expected;
        end = begin + w.n_allocs;
    }
    stream->packets[stream->n_packets++] = (struct sm_mt_packet){
        .offset = offset,
        .bytes = bytes,
        .flags = s->n_damaged != stream->n_damaged_before ? SM_MT_AFTER_DAMAGE : 0,
        .alloc_begin = begin,
    };
    stream->n_objects = end;
    stream->n_damaged_before = s->n_damaged;
    if (!sm_mt_objects_add(s->m, begin, end, s->stream_of[h->domain] - 1))
        s->no_memory = true;
}

static void damaged_bytes(struct scan *s) {
    s->n_damaged++;
    sm_mt_names_distrust(s->m);
}

static void foreign_packet(struct scan *s, uint64_t offset, const struct sm_mt_header *h) {
    if (s->foreign_packets++ == 0) {
        s->foreign_offset = offset;
        s->foreign_pid = h->pid;
    }
    s->foreign_bytes += h->packet_bytes;
    if (!ids_impossible(h, h->packet_bytes))
        s->foreign_events += h->alloc_end - h->alloc_begin;
}

/* A believed packet: by its first event it is one of locations, of events, or both. */
static void take_packet(struct scan *s, uint64_t offset, uint32_t bytes,
                        const struct sm_mt_header *h) {
    const uint8_t *p = s->data + offset + h->header_bytes, *end = s->data + offset + bytes;
    bool big = s->m->order == SM_MT_BIG;
    if (end - p >= 4 && sm_mt_get_u32(p, big) >> SM_MT_TIME_BITS == SM_MT_LOCATION) {
        p = sm_mt_names_read(s->t, s->m, h->domain, h->ts_begin_us, p, end);
        if (p == end)
            return;
    }
    add_packet(s, offset, bytes, h);
}

/* The packet at `offset` ends neither at a header nor at the file's end. Returns where to go on. */
static uint64_t doubtful_packet(struct scan *s, uint64_t offset, const struct sm_mt_header *h) {
    uint64_t next = find_header(s, offset + 4), left = s->bytes - offset;
    struct sm_mt_walk w;
    if (next - offset < h->header_bytes) { /* half a header, then another */
        sm_trace_add_loss(s->t, SM_LOSS_GARBAGE, UINT32_MAX, offset, next - offset, 0, false,
                          "%llu bytes belong to no packet; reading goes on after them",
                          (unsigned long long)(next - offset));
        damaged_bytes(s);
        return next;
    }
    uint32_t most = left < INT32_MAX ? (uint32_t)left : INT32_MAX; /* its size is no guide */
    uint64_t allocs = ids_impossible(h, most) ? 0 : h->alloc_end - h->alloc_begin;
    bool cut = h->packet_bytes > left && next == s->bytes;
    if (!cut && next - offset <= INT32_MAX) {
        sm_mt_walk(s->data + offset + h->header_bytes, s->data + next, s->m->order, &w);
        if (w.complete && w.n_events > 0 && w.n_allocs == allocs) {
            sm_trace_add_loss(
                s->t, SM_LOSS_CORRUPT, h->domain, offset, 0, 0, true,
                "a packet's size is damaged (%llu bytes in its header, %llu in the file); "
                "it was read all the same",
                (unsigned long long)h->packet_bytes, (unsigned long long)(next - offset));
            take_packet(s, offset, (uint32_t)(next - offset), h);
            return next;
        }
    }
    if (cut) {
        sm_trace_add_loss(s->t, SM_LOSS_CUT, h->domain, offset, left, allocs, false,
                          "the file ends %llu bytes into a packet of %llu, which is not read (%llu "
                          "allocations, and events on them)",
                          (unsigned long long)left, (unsigned long long)h->packet_bytes,
                          (unsigned long long)allocs);
        return s->bytes;
    }
    if (h->packet_bytes <= left) {
        /* Junk stands where it ends, or another packet before that. The cursor reads the events that
           it has, up to the first impossible one, and says what is missing. */
        uint64_t bytes = h->packet_bytes < next - offset ? h->packet_bytes : next - offset;
        take_packet(s, offset, (uint32_t)bytes, h);
        return offset + bytes;
    }
    sm_trace_add_loss(s->t, SM_LOSS_CORRUPT, h->domain, offset, next - offset, 0, false,
                      "a packet's size is damaged and its contents do not fit: %llu bytes skipped",
                      (unsigned long long)(next - offset));
    damaged_bytes(s);
    return next;
}

/* Bytes that are no packet. Returns where to go on. */
static uint64_t junk(struct scan *s, uint64_t offset) {
    if (is_cut_header(s, offset)) {
        sm_trace_add_loss(s->t, SM_LOSS_CUT, UINT32_MAX, offset, s->bytes - offset, 0, false,
                          "the file ends %llu bytes into a packet's header",
                          (unsigned long long)(s->bytes - offset));
        return s->bytes;
    }
    uint64_t next = find_header(s, offset + 1), n = offset;
    while (n < next && s->data[n] == 0)
        n++;
    sm_trace_add_loss(s->t, SM_LOSS_GARBAGE, UINT32_MAX, offset, next - offset, 0, false,
                      "%llu bytes belong to no packet%s%s", (unsigned long long)(next - offset),
                      n == next ? " (all zero)" : "",
                      next < s->bytes ? "; reading goes on after them" : ", up to the file's end");
    damaged_bytes(s);
    return next;
}

/* Walks the file; begins with the wanted part. */
static void walk_file(struct scan *s) {
    uint64_t offset = s->t->first_offset;
    struct sm_mt_header h;
    bool first = true;
    while (offset < s->bytes && !s->no_memory) {
        sm_trace_progress(s->t, offset);
        if (!header_at(s, offset, &h)) {
            offset = junk(s, offset);
            continue;
        }
        uint64_t end = offset + h.packet_bytes;
        struct sm_mt_header next;
        bool whole = end <= s->bytes;
        if (whole && sm_mt_info_read(NULL, s->data + offset, &h, s->m->order)) {
            if (s->part < s->t->options.part || first) {
                s->part += !first;
                sm_mt_info_read(s->t, s->data + offset, &h, s->m->order);
                s->m->pid = s->t->meta.pid;
                s->m->pid_known = true;
                s->m->start_us = h.ts_begin_us;
            } else {
                sm_trace_add_loss(
                    s->t, SM_LOSS_CONCATENATED, UINT32_MAX, offset, s->bytes - offset, 0, false,
                    "another trace (process %llu) begins here in the same file; it is "
                    "number %u, counted from 1 (--part)",
                    (unsigned long long)h.pid, s->part + 2);
                return;
            }
            first = false;
            offset = end;
            continue;
        }
        first = false;
        if (s->part < s->t->options.part) { /* of a part before the wanted one */
            offset = whole ? end : find_header(s, offset + 1);
            continue;
        }
        if (s->m->start_us == INT64_MIN)
            s->m->start_us = h.ts_begin_us;
        if (!s->m->pid_known) {
            s->m->pid = h.pid;
            s->m->pid_known = true;
        }
        bool believed = whole && (end < s->bytes ? header_at(s, end, &next)
                                                 : find_header(s, offset + h.header_bytes) == end);
        /* Another process, or a damaged header that leads to a true one by chance: over packets of ours. */
        if (believed && h.pid != s->m->pid)
            believed = find_header(s, offset + 4) == end;
        if (believed && h.pid != s->m->pid) {
            foreign_packet(s, offset, &h);
            offset = end;
        } else if (believed) {
            take_packet(s, offset, h.packet_bytes, &h);
            offset = end;
        } else if (whole && h.pid != s->m->pid) {
            offset = junk(s, offset);
        } else {
            offset = doubtful_packet(s, offset, &h);
        }
    }
}

/* A packet that begins after one that follows it, which itself is in order with the one before, has
   a damaged time: without this, everything after it would have to be moved to that time. */
static void judge_times(const struct scan *s, struct sm_mt_stream *stream) {
    struct sm_mt_header h;
    int64_t before = s->m->start_us, previous = INT64_MIN;
    for (uint32_t i = 0; i < stream->n_packets; i++) {
        if (!header_at(s, stream->packets[i].offset, &h))
            continue;
        if (i > 0 && h.ts_begin_us < previous && h.ts_begin_us >= before)
            stream->packets[i - 1].flags |= SM_MT_BAD_TIME;
        else if (i > 0)
            before = previous;
        previous = h.ts_begin_us;
    }
    stream->floor_us = s->m->start_us;
    for (uint32_t i = 0; i < stream->n_packets; i++) {
        if ((stream->packets[i].flags & SM_MT_BAD_TIME) == 0 &&
            header_at(s, stream->packets[i].offset, &h)) {
            if (h.ts_begin_us < stream->floor_us) /* then it is the start that is damaged */
                stream->floor_us = h.ts_begin_us;
            break;
        }
    }
}

static int by_domain(const void *a, const void *b) {
    const struct sm_mt_stream *x = a, *y = b;
    return x->domain < y->domain ? -1 : x->domain > y->domain;
}

static void finish_streams(struct scan *s) {
    struct sm_memtrace *m = s->m;
    uint32_t *old_domain = malloc((m->n_streams + 1) * sizeof *old_domain);
    if (old_domain == NULL) {
        s->no_memory = true;
        return;
    }
    for (uint32_t i = 0; i < m->n_streams; i++) {
        old_domain[i] = m->streams[i].domain;
        m->streams[i].n_objects = 0;
        judge_times(s, &m->streams[i]);
    }
    if (m->n_streams > 0)
        qsort(m->streams, m->n_streams, sizeof *m->streams, by_domain);
    for (uint32_t i = 0; i < m->n_streams; i++)
        s->stream_of[m->streams[i].domain] = i + 1;
    for (uint32_t i = 0; i < m->n_ranges; i++)
        m->ranges[i].stream_index = s->stream_of[old_domain[m->ranges[i].stream_index]] - 1;
    free(old_domain);
    sm_mt_objects_finish(m);
    for (uint32_t i = 0; i < m->n_streams; i++) {
        struct sm_owner owner = {.stream = m->streams[i].domain,
                                 .kind = SM_OWNER_OCAML,
                                 .domain = m->streams[i].domain,
                                 .name = ""};
        m->streams[i].owner = sm_trace_add_owner(s->t, &owner);
        if (!sm_trace_add_stream(s->t, m->streams[i].domain))
            s->no_memory = true;
    }
}

static void report(struct scan *s) {
    struct sm_memtrace *m = s->m;
    if (s->foreign_packets > 0)
        sm_trace_add_loss(
            s->t, SM_LOSS_FOREIGN, UINT32_MAX, s->foreign_offset, s->foreign_bytes,
            s->foreign_events, false,
            "%llu packets were written by another process (%llu, a forked child) into "
            "this process's trace and are skipped",
            (unsigned long long)s->foreign_packets, (unsigned long long)s->foreign_pid);
    if (m->names_lost > 0)
        sm_trace_add_loss(
            s->t, SM_LOSS_NAMES, UINT32_MAX, m->names_lost_offset, 0, m->names_lost, true,
            "%llu locations have no or incomplete names (%llu contradict earlier ones): "
            "bytes before them are damaged, or the file was written before September "
            "2024 and has columns above 1023, which spoil names; those just before this "
            "place may be wrong",
            (unsigned long long)m->names_lost, (unsigned long long)m->contradictions);
    if (s->t->meta.missing)
        sm_trace_add_loss(
            s->t, SM_LOSS_CORRUPT, UINT32_MAX, s->t->first_offset, 0, 0, true,
            "the trace's first packet is missing or unreadable: program, sampling rate and "
            "word size are unknown");
}

static void set_meta(struct sm_trace *t, const struct sm_memtrace *m) {
    struct sm_meta *meta = &t->meta;
    meta->format = m->version == 1   ? SM_TRACE_MEMTRACE_1
                   : m->version == 2 ? SM_TRACE_MEMTRACE_2
                                     : SM_TRACE_MEMTRACE_3;
    meta->tick_ns = 1000;
    meta->clock = SM_CLOCK_REALTIME;
    int64_t start = m->start_us == INT64_MIN ? 0 : m->start_us;
    meta->start_ticks = (uint64_t)start;
    meta->start_real_ns = (int64_t)((uint64_t)start * 1000);
    meta->anchor_clock_ns = meta->anchor_real_ns = (uint64_t)start * 1000;
    if (meta->missing && m->pid_known)
        meta->pid = m->pid;
}

enum sm_status sm_mt_scan(struct sm_trace *t, struct sm_error *err) {
    struct sm_memtrace *m = calloc(1, sizeof *m);
    t->backend_data = m;
    struct scan s = {.t = t, .m = m, .data = t->input.data, .bytes = t->input.bytes};
    if (m == NULL || (m->names = calloc(DOMAINS, sizeof *m->names)) == NULL ||
        (s.stream_of = calloc(DOMAINS, sizeof *s.stream_of)) == NULL) {
        sm_error_set(err, "out of memory while opening a memtrace file");
        return SM_FAILED;
    }
    struct sm_mt_header h;
    uint64_t left = t->input.bytes - t->first_offset;
    t->meta.missing = true;
    m->start_us = INT64_MIN;
    m->version = 3;
    if (left > 0 && sm_mt_detect(s.data + t->first_offset, (size_t)left, &m->order, &h))
        m->version = h.version;
    walk_file(&s);
    if (t->options.part > s.part && !s.no_memory) {
        sm_error_set(err, "there is no trace %u: the file holds %u trace%s, counted from 1",
                     t->options.part + 1, s.part + 1, s.part == 0 ? "" : "s");
        free(s.stream_of);
        return SM_FAILED;
    }
    finish_streams(&s);
    set_meta(t, m);
    report(&s);
    sm_mt_names_free(m);
    free(s.stream_of);
    if (s.no_memory) {
        sm_error_set(err, "out of memory while opening a memtrace file");
        return SM_FAILED;
    }
    return SM_OK;
}

void sm_mt_release(struct sm_trace *t) {
    struct sm_memtrace *m = t->backend_data;
    sm_mt_names_free(m);
    for (uint32_t i = 0; i < m->n_streams; i++)
        free(m->streams[i].packets);
    free(m->streams);
    free(m->ranges);
    free(m);
    t->backend_data = NULL;
}

const struct sm_backend sm_backend_memtrace = {
    .scan = sm_mt_scan,
    .stream_new = sm_mt_cursor_new,
    .stream_next = sm_mt_cursor_next,
    .stream_free = sm_mt_cursor_free,
    .has_object = sm_mt_has_object,
    .release = sm_mt_release,
};
