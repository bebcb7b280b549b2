/* What happens once per packet, or once per location or foreign stream in it: beginnings and ends,
   growing tables, owners. */
#include <stdlib.h>
#include <string.h>

#include "decode/native_cursor.h"

/* ---- growing, all cold ---- */

static bool charge(struct sm_stream_cursor *c, uint64_t bytes) {
    if (!sm_native_charge(c->t->backend_data, bytes)) {
        c->why = "needs more memory than a reader takes";
        return false;
    }
    c->charged_bytes += bytes;
    return true;
}

bool sm_native_grow_frames(struct sm_stream_cursor *c, uint64_t need) {
    if (need > SM_MAX_DEPTH + 1) { /* one to spare: see read_stack */
        c->why = "holds a stack that is too deep";
        return false;
    }
    uint32_t capacity = c->frames_capacity == 0 ? 256 : c->frames_capacity * 2;
    while (capacity < need)
        capacity *= 2;
    if (!charge(c, (capacity - c->frames_capacity) * (sizeof *c->frames + sizeof *c->locals)))
        return false;
    uint32_t *frames = realloc(c->frames, capacity * sizeof *frames);
    if (frames != NULL)
        c->frames = frames;
    uint16_t *locals = realloc(c->locals, capacity * sizeof *locals);
    if (locals != NULL)
        c->locals = locals;
    if (frames == NULL || locals == NULL) {
        c->why = "needs more memory than there is";
        return false;
    }
    c->frames_capacity = capacity;
    return true;
}

static bool grow_locations(struct sm_stream_cursor *c) {
    uint32_t capacity = c->locations_capacity == 0 ? 256 : c->locations_capacity * 2;
    if (!charge(c, (capacity - c->locations_capacity) * sizeof *c->table))
        return false;
    struct local *table = realloc(c->table, capacity * sizeof *table);
    if (table == NULL) {
        c->why = "needs more memory than there is";
        return false;
    }
    c->table = table;
    c->locations_capacity = capacity;
    return true;
}

/* Numbers a new location; false when the packet has too many. */
bool sm_native_new_location(struct sm_stream_cursor *c, uint64_t delta) {
    uint32_t index = c->n_locations + 1;
    if (index > SM_MAX_PACKET_LOCATIONS) {
        c->why = "numbers too many locations";
        return false;
    }
    if (index >= c->locations_capacity && !grow_locations(c))
        return false;
    c->n_locations = index;
    c->previous_code += delta;
    c->table[index] = (struct local){0, sm_locations_intern(c->t, c->previous_code), 0};
    if (c->previous_code == SM_LOCATION_CUT && c->cut_local == 0)
        c->cut_local = index;
    return true;
}

static uint32_t foreign_slot(const struct sm_stream_cursor *c, uint32_t stream) {
    uint32_t at = stream * 0x9E3779B1u >> 7 & (c->foreign_capacity - 1);
    while (c->foreign[at].generation == c->generation && c->foreign[at].stream != stream)
        at = (at + 1) & (c->foreign_capacity - 1);
    return at;
}

/* Where last_ref of a foreign stream stands; NULL when out of memory. */
uint64_t *sm_native_last_ref(struct sm_stream_cursor *c, uint64_t stream) {
    if (stream == c->stream)
        return &c->last_ref;
    if (stream >= SM_MAX_STREAMS) {
        c->why = "refers to a stream beyond the limit";
        return NULL;
    }
    if (c->n_foreign * 2 >= c->foreign_capacity) {
        uint32_t old_capacity = c->foreign_capacity;
        struct foreign *old = c->foreign;
        uint32_t capacity = old_capacity == 0 ? 16 : old_capacity * 2;
        struct foreign *table = charge(c, (capacity - old_capacity) * sizeof *table)
                                    ? calloc(capacity, sizeof *table)
                                    : NULL;
        if (table == NULL) {
            c->why = "needs more memory than there is";
            return NULL;
        }
        c->foreign = table;
        c->foreign_capacity = capacity;
        for (uint32_t i = 0; i < old_capacity; i++)
            if (old[i].generation == c->generation)
                c->foreign[foreign_slot(c, old[i].stream)] = old[i];
        free(old);
    }
    struct foreign *f = &c->foreign[foreign_slot(c, (uint32_t)stream)];
    if (f->generation != c->generation) {
        *f = (struct foreign){(uint32_t)stream, c->generation, UINT64_MAX};
        c->n_foreign++;
    }
    return &f->last_ref;
}

/* ---- packets ---- */

void sm_native_close_packet(struct sm_trace *t, struct sm_native_packet *p,
                            const struct sm_native_outcome *o) {
    uint64_t n_alloc = o->n_alloc;
    if (n_alloc < p->n_alloc) {
        p->n_alloc_readable = (uint32_t)n_alloc;
        sm_native_damaged(t, p->stream);
    }
    bool from_file = (p->flags & SM_NATIVE_TAIL) == 0;
    if ((p->flags & SM_NATIVE_REPORTED) != 0)
        return;
    uint64_t offset = sm_native_header_offset(p);
    uint64_t lost = p->n_events > o->n_read ? p->n_events - o->n_read : 0;
    if ((p->flags & SM_NATIVE_CUT) != 0) {
        sm_trace_add_loss(
            t, SM_LOSS_CUT, p->stream, offset, SM_PACKET_HEADER_BYTES + (uint64_t)p->stored_bytes,
            lost, true, "the file ends inside packet %u of stream %u: %u of its %u events are read",
            p->packet_seq, p->stream, o->n_read, p->n_events);
    } else if (o->why != NULL) {
        sm_trace_add_loss(t, o->unsupported ? SM_LOSS_UNSUPPORTED : SM_LOSS_CORRUPT, p->stream,
                          offset, o->left_bytes, lost, from_file,
                          "packet %u of stream %u %s after %u of its %u events: the rest of it is "
                          "lost",
                          p->packet_seq, p->stream, o->why, o->n_read, p->n_events);
    } else if (from_file && (o->n_read != p->n_events || n_alloc != p->n_alloc)) {
        sm_trace_add_loss(
            t, SM_LOSS_CORRUPT, p->stream, offset, 0, lost, true,
            "packet %u of stream %u announces %u events with %u allocations, and holds "
            "%u with %llu",
            p->packet_seq, p->stream, p->n_events, p->n_alloc, o->n_read,
            (unsigned long long)n_alloc);
    } else if (o->floor_ticks > p->ts_begin_ticks ||
               (from_file && o->ticks != p->ts_begin_ticks + p->ts_span_ticks)) {
        sm_trace_add_loss(
            t, SM_LOSS_TIME, p->stream, offset, 0, 0, true,
            o->floor_ticks > p->ts_begin_ticks
                ? "packet %u of stream %u begins before its predecessor ends: its times "
                  "are raised"
                : "packet %u of stream %u holds times outside its range",
            p->packet_seq, p->stream);
    } else {
        return;
    }
    p->flags |= SM_NATIVE_REPORTED;
}

/* The packet at hand is over. */
static void close_packet(struct sm_stream_cursor *c) {
    struct sm_native_packet *p = c->packet;
    c->packet = NULL;
    if (c->measuring)
        return;
    struct sm_native_outcome outcome = {.n_read = c->n_read,
                                        .n_alloc = c->next_seq - p->first_seq,
                                        .left_bytes = (uint64_t)(c->end - c->p),
                                        .floor_ticks = c->floor_ticks,
                                        .ticks = c->ticks,
                                        .why = c->why,
                                        .unsupported = c->unsupported};
    sm_native_close_packet(c->t, p, &outcome);
}

/* Begins the packet with payload data..data + bytes: all coding state is empty. */
static bool begin_packet(struct sm_stream_cursor *c, struct sm_native_packet *p,
                         const uint8_t *data, size_t bytes) {
    c->packet = p;
    c->expand =
        (c->flags & SM_CURSOR_STACKS) != 0 || (!c->measuring && (p->flags & SM_NATIVE_CUTS) != 0);
    c->measure = !c->expand && (c->flags & SM_CURSOR_DEPTHS) != 0;
    c->p = data;
    c->end = data + bytes;
    c->ticks = p->ts_begin_ticks;
    c->floor_ticks = c->last_ticks;
    c->next_seq = p->first_seq;
    c->last_ref = p->first_seq - 1;
    c->n_read = 0;
    c->depth = 0;
    c->n_locations = 0;
    c->previous_code = 0;
    c->frames_left = SM_MAX_PACKET_FRAMES;
    c->cut_local = c->cut_at = 0;
    c->generation++;
    c->n_foreign = 0;
    c->why = NULL;
    c->unsupported = false;
    if ((c->locations_capacity == 0 && !grow_locations(c)) ||
        (c->frames_capacity == 0 && !sm_native_grow_frames(c, 1)))
        return false;
    c->table[0] = (struct local){0, 0, 0};
    return true;
}

/* Goes to the next packet that can be read. */
bool sm_native_open_packet(struct sm_stream_cursor *c) {
    if (c->packet != NULL)
        close_packet(c);
    while (c->next_packet < c->packets_end) {
        struct sm_native_packet *p = c->next_packet++;
        const uint8_t *data;
        size_t bytes;
        if ((p->flags & SM_NATIVE_TAIL) == 0)
            sm_trace_passed(c->t, p->offset);
        c->t->done_bytes += SM_PACKET_HEADER_BYTES + (uint64_t)p->stored_bytes;
        sm_trace_progress(c->t, c->t->done_bytes);
        if (!sm_native_payload(c->t, p, &c->buffer, SM_LOSS_CORRUPT, &data, &bytes))
            continue;
        if (begin_packet(c, p, data, bytes))
            return true;
        close_packet(c);
    }
    sm_native_buffer_release(c->t->backend_data, &c->buffer);
    return false;
}

/* Ends the packet at hand at the event that cannot be read. */
void sm_native_give_up(struct sm_stream_cursor *c, const char *why) {
    if (c->why == NULL)
        c->why = why;
    close_packet(c);
    c->p = c->end;
}

uint32_t sm_native_owner(struct sm_trace *t, uint32_t stream, const uint8_t *p,
                         const uint8_t *end) {
    struct sm_owner owner = {.stream = stream, .name = ""};
    char name[256];
    while (p < end) {
        uint64_t tag, bytes, x = 0;
        if (!sm_get_leb(&p, end, &tag) || !sm_get_leb(&p, end, &bytes) || bytes > (size_t)(end - p))
            break;
        const uint8_t *q = p;
        if (tag != SM_OWNER_NAME && !sm_get_leb(&q, p + bytes, &x))
            x = 0;
        switch (tag) {
        case SM_OWNER_DOMAIN:
            owner.domain = x;
            break;
        case SM_OWNER_TID:
            owner.tid = x;
            break;
        case SM_OWNER_NAME: {
            size_t n = bytes < sizeof name ? (size_t)bytes : sizeof name - 1;
            memcpy(name, p, n);
            name[n] = 0;
            owner.name = name;
            break;
        }
        case SM_OWNER_KIND:
            owner.kind = x <= SM_OWNER_NATIVE ? (enum sm_owner_kind)x : SM_OWNER_UNKNOWN;
            break;
        case SM_OWNER_INCARNATION:
            owner.incarnation = (uint32_t)x;
            break;
        default:
            break;
        }
        p += bytes;
    }
    return sm_trace_add_owner(t, &owner);
}

/* ---- cursors ---- */

struct sm_stream_cursor *sm_native_stream_new(struct sm_trace *t, uint32_t stream_index,
                                              unsigned flags) {
    const struct sm_native *n = t->backend_data;
    const struct sm_native_stream *s = &n->streams[stream_index];
    struct sm_stream_cursor *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->t = t;
    c->flags = flags;
    c->stream = t->stream_ids[stream_index];
    c->of_stream = s;
    c->next_packet = n->packets + s->first_packet;
    c->packets_end = c->next_packet + s->n_packets;
    struct sm_owner nobody = {.stream = c->stream, .name = ""};
    c->owner = sm_trace_add_owner(t, &nobody);
    return c;
}

void sm_native_stream_free(struct sm_stream_cursor *c) {
    if (c == NULL)
        return;
    struct sm_native *n = c->t->backend_data;
    sm_native_buffer_release(n, &c->buffer);
    n->budget_used_bytes -= c->charged_bytes;
    free(c->frames);
    free(c->locals);
    free(c->table);
    free(c->foreign);
    free(c);
}

void sm_native_measure(struct sm_trace *t, struct sm_native_packet *p, struct sm_packet_header *h) {
    struct sm_native *n = t->backend_data;
    struct sm_stream_cursor *c = calloc(1, sizeof *c);
    if (c == NULL)
        return;
    static const struct sm_native_stream nothing = {.end_seq = UINT64_MAX, .contiguous = true};
    c->t = t;
    c->of_stream = &nothing;
    c->stream = p->stream;
    c->flags = SM_CURSOR_EXTENSIONS | (h != NULL ? SM_CURSOR_STACKS : 0);
    c->measuring = true;
    c->last_ticks = p->ts_begin_ticks;
    struct sm_event e;
    if (begin_packet(c, p, n->tail->data + p->offset, p->stored_bytes)) {
        while (sm_native_stream_next(c, &e) == SM_OK) {
            p->n_events++;
            if (h == NULL || e.kind != SM_EVENT_ALLOC)
                continue;
            if (e.n_frames > h->max_depth)
                h->max_depth = e.n_frames;
            h->n_cut += (e.flags & SM_EVENT_STACK_CUT) != 0;
        }
        p->n_alloc = p->n_alloc_readable = (uint32_t)(c->next_seq - p->first_seq);
        p->ts_span_ticks = c->ticks - p->ts_begin_ticks;
    }
    sm_native_stream_free(c);
}
