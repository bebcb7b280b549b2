/* The packets that the scan found, in the order they are read: by (stream, packet_seq).

   A stream's packets stand in this order in a sound file already; sorting makes the rest sound too:
   copies are dropped, gaps are seen, and what the side file holds finds its place. */
#include <stdlib.h>
#include <string.h>

#include "decode/native_internal.h"

bool sm_native_append(struct sm_native_packet **list, uint32_t *n, uint32_t *capacity,
                      const struct sm_native_packet *p) {
    if (*n == *capacity) {
        if (*capacity > UINT32_MAX / 2)
            return false;
        uint32_t more = *capacity == 0 ? 256 : *capacity * 2;
        struct sm_native_packet *larger = realloc(*list, more * sizeof *larger);
        if (larger == NULL)
            return false;
        *list = larger;
        *capacity = more;
    }
    (*list)[(*n)++] = *p;
    return true;
}

static int compare_packets(const void *a, const void *b) {
    const struct sm_native_packet *x = a, *y = b;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    if (x->packet_seq != y->packet_seq)
        return x->packet_seq < y->packet_seq ? -1 : 1;
    /* Of copies the readable one first, then that in the file, then the earlier one. */
    bool x_bad = (x->flags & (SM_NATIVE_BAD | SM_NATIVE_CUT)) != 0;
    bool y_bad = (y->flags & (SM_NATIVE_BAD | SM_NATIVE_CUT)) != 0;
    if (x_bad != y_bad)
        return x_bad ? 1 : -1;
    bool x_tail = (x->flags & SM_NATIVE_TAIL) != 0, y_tail = (y->flags & SM_NATIVE_TAIL) != 0;
    if (x_tail != y_tail)
        return x_tail ? 1 : -1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void sort(struct sm_native_packet *list, uint32_t n,
                 int (*compare)(const void *, const void *)) {
    if (n > 1)
        qsort(list, n, sizeof *list, compare);
}

static int compare_places(const void *a, const void *b) {
    const struct sm_native_packet *x = a, *y = b;
    bool x_tail = (x->flags & SM_NATIVE_TAIL) != 0, y_tail = (y->flags & SM_NATIVE_TAIL) != 0;
    if (x_tail != y_tail)
        return x_tail ? 1 : -1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* SYMS: copies dropped, gaps reported, then in the order of the file, where the first announcement
   of a location counts. */
static void arrange_syms(struct sm_trace *t) {
    struct sm_native *n = t->backend_data;
    uint32_t kept = 0;
    sort(n->syms, n->n_syms, compare_packets);
    for (uint32_t i = 0; i < n->n_syms; i++) {
        const struct sm_native_packet *p = &n->syms[i];
        const struct sm_native_packet *last =
            kept > 0 && n->syms[kept - 1].stream == p->stream ? &n->syms[kept - 1] : NULL;
        if (last != NULL && last->packet_seq == p->packet_seq)
            continue;
        uint32_t expected = last == NULL ? 0 : last->packet_seq + 1;
        if (p->packet_seq != expected)
            sm_trace_add_loss(t, SM_LOSS_NAMES, p->stream, sm_native_header_offset(p), 0, 0, false,
                              "stream %u lacks %u packets of names before its packet %u: "
                              "some locations have no names",
                              p->stream, p->packet_seq - expected, p->packet_seq);
        n->syms[kept++] = *p;
    }
    n->n_syms = kept;
    sort(n->syms, n->n_syms, compare_places);
}

/* Drops copies of (stream, packet_seq) and packets that repeat allocations of an earlier one. */
static void drop_copies(struct sm_trace *t) {
    struct sm_native *n = t->backend_data;
    uint32_t kept = 0;
    uint64_t end_seq = 0;
    for (uint32_t i = 0; i < n->n_packets; i++) {
        struct sm_native_packet *p = &n->packets[i];
        const struct sm_native_packet *last = kept > 0 ? &n->packets[kept - 1] : NULL;
        bool same_stream = last != NULL && last->stream == p->stream;
        if (same_stream && last->packet_seq == p->packet_seq) {
            if ((p->flags & (SM_NATIVE_TAIL | SM_NATIVE_REPORTED)) == 0 &&
                (last->flags & SM_NATIVE_TAIL) == 0)
                sm_trace_add_loss(t, SM_LOSS_GARBAGE, p->stream, sm_native_header_offset(p),
                                  SM_PACKET_HEADER_BYTES + (uint64_t)p->stored_bytes, 0, true,
                                  "packet %u of stream %u stands in the file again; the copy is "
                                  "ignored",
                                  p->packet_seq, p->stream);
            continue;
        }
        if (!same_stream)
            end_seq = 0;
        if (p->first_seq < end_seq) {
            sm_trace_add_loss(t, SM_LOSS_CORRUPT, p->stream, sm_native_header_offset(p),
                              SM_PACKET_HEADER_BYTES + (uint64_t)p->stored_bytes, p->n_events, true,
                              "packet %u of stream %u numbers its allocations from %llu, which "
                              "were used before; it is skipped",
                              p->packet_seq, p->stream, (unsigned long long)p->first_seq);
            continue;
        }
        end_seq = p->first_seq + p->n_alloc;
        n->packets[kept++] = *p;
    }
    n->n_packets = kept;
}

static void report_gap(struct sm_trace *t, const struct sm_native_packet *p, uint32_t packets,
                       uint64_t allocations) {
    if (packets > 0)
        sm_trace_add_loss(
            t, SM_LOSS_GAP, p->stream, sm_native_header_offset(p), 0, allocations, false,
            "stream %u lacks %u packet%s before packet %u, with %llu allocations", p->stream,
            packets, packets == 1 ? "" : "s", p->packet_seq, (unsigned long long)allocations);
    else if (allocations > 0 && t->meta.imported_from == 0)
        sm_trace_add_loss(t, SM_LOSS_GAP, p->stream, sm_native_header_offset(p), 0, allocations,
                          false, "stream %u lacks %llu allocations before packet %u", p->stream,
                          (unsigned long long)allocations, p->packet_seq);
}

/* Splits the sorted packets into streams, and finds the gaps. */
static bool make_streams(struct sm_trace *t) {
    struct sm_native *n = t->backend_data;
    uint32_t n_streams = 0;
    for (uint32_t i = 0; i < n->n_packets; i++)
        n_streams += i == 0 || n->packets[i].stream != n->packets[i - 1].stream;
    n->streams = calloc(n_streams > 0 ? n_streams : 1, sizeof *n->streams);
    if (n->streams == NULL)
        return false;
    struct sm_native_stream *stream = NULL;
    for (uint32_t i = 0; i < n->n_packets; i++) {
        const struct sm_native_packet *p = &n->packets[i];
        uint64_t expected_seq;
        uint32_t expected_packet;
        if (stream == NULL || p->stream != n->packets[i - 1].stream) {
            stream = &n->streams[t->n_streams];
            *stream = (struct sm_native_stream){.first_seq = p->first_seq,
                                                .end_seq = p->first_seq,
                                                .first_packet = i,
                                                .contiguous = true};
            if (!sm_trace_add_stream(t, p->stream))
                return false;
            expected_seq = 0;
            expected_packet = 0;
        } else {
            expected_seq = stream->end_seq;
            expected_packet = n->packets[i - 1].packet_seq + 1;
            if (p->first_seq != stream->end_seq)
                stream->contiguous = false;
        }
        report_gap(t, p, p->packet_seq - expected_packet, p->first_seq - expected_seq);
        if (p->n_alloc_readable != p->n_alloc)
            stream->contiguous = false;
        stream->end_seq = p->first_seq + p->n_alloc;
        stream->n_packets++;
    }
    return true;
}

/* The packet of this (stream, packet_seq) among the first n, which are sorted; NULL = none. */
static struct sm_native_packet *find_packet(struct sm_native_packet *list, uint32_t n,
                                            const struct sm_native_packet *like) {
    uint32_t low = 0, high = n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct sm_native_packet *p = &list[middle];
        if (p->stream < like->stream ||
            (p->stream == like->stream && p->packet_seq < like->packet_seq))
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && list[low].stream == like->stream && list[low].packet_seq == like->packet_seq
               ? &list[low]
               : NULL;
}

/* Puts what the side file holds beside the packets of the file. A writer that was killed while it
   appended leaves a packet whole in the side file and cut in the trace. */
static bool take_tail(struct sm_trace *t) {
    struct sm_native *n = t->backend_data;
    struct sm_native_tail *tail = n->tail;
    uint32_t n_events = n->n_packets, n_syms = n->n_syms;
    bool used = false;
    for (uint32_t i = 0; i < tail->n_packets; i++) {
        struct sm_native_packet *p = &tail->packets[i];
        bool events = tail->kinds[i] == SM_PACKET_EVENTS;
        struct sm_native_packet *known =
            events ? find_packet(n->packets, n_events, p) : find_packet(n->syms, n_syms, p);
        if (known != NULL) {
            if ((known->flags & (SM_NATIVE_CUT | SM_NATIVE_BAD)) == 0 &&
                sm_native_payload_holds(t, known))
                continue;
            known->flags |= SM_NATIVE_BAD | SM_NATIVE_REPORTED;
        }
        used = true;
        if (events)
            sm_native_measure(t, p, NULL);
        bool ok = events ? sm_native_append(&n->packets, &n->n_packets, &n->packets_capacity, p)
                         : sm_native_append(&n->syms, &n->n_syms, &n->syms_capacity, p);
        if (!ok)
            return false;
    }
    if (used)
        t->tail_path = sm_trace_text(t, tail->path, strlen(tail->path));
    if (tail->n_torn > 0 || tail->too_large)
        sm_trace_add_loss(t, SM_LOSS_EXTENT, UINT32_MAX, 0, 0, 0, false,
                          "%u slots of the side file %s could not be copied", tail->n_torn,
                          tail->too_large ? "(too large)" : "(being written all the time)");
    return true;
}

/* The largest discarded figure of each stream: headers of lost packets are gone, but the figures
   are cumulative. */
static void collect_discarded(struct sm_trace *t) {
    struct sm_packet_header h;
    struct sm_native *n = t->backend_data;
    for (uint32_t i = 0; i < t->n_streams; i++) {
        struct sm_native_stream *stream = &n->streams[i];
        for (uint32_t k = stream->n_packets; k-- > 0;) {
            const struct sm_native_packet *p = &n->packets[stream->first_packet + k];
            if ((p->flags & SM_NATIVE_TAIL) != 0 ||
                !sm_packet_header_get(t->input.data + sm_native_header_offset(p), &h))
                continue;
            stream->discarded = h.discarded;
            break;
        }
    }
    for (uint32_t i = 0; n->tail != NULL && i < n->tail->n_packets; i++) {
        uint32_t index = sm_trace_stream_index(t, n->tail->packets[i].stream);
        if (index != UINT32_MAX && n->tail->slot_discarded[i] > n->streams[index].discarded)
            n->streams[index].discarded = n->tail->slot_discarded[i];
    }
}

bool sm_native_arrange(struct sm_trace *t, bool in_order) {
    struct sm_native *n = t->backend_data;
    if (!in_order)
        sort(n->packets, n->n_packets, compare_packets);
    if (n->tail != NULL) {
        sort(n->syms, n->n_syms, compare_packets);
        if (!take_tail(t))
            return false;
        sort(n->packets, n->n_packets, compare_packets);
    }
    drop_copies(t);
    if (!make_streams(t))
        return false;
    collect_discarded(t);
    arrange_syms(t);
    return true;
}
