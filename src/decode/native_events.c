/* Events of one stream: the hot loop of every analysis.

   What makes it fast:
   - Bounds are checked once per event. Every payload has SM_NATIVE_PADDING readable bytes behind its
     end, more than the fixed operands of an event take; an event that ran over the end is thrown away.
     The codes of a stack have a length of their own, checked before they are read.
   - A location is looked up in the trace's table once per packet; frames are copied as dense ids.
     The stack lives in one array that each event changes at its inner end.
   - The four successors of a location are one 64-bit word, the most recent in the low 16 bits: moving
     to the front is two shifts and a mask, finding a location among them a zero-lane search.
   - Nothing is cleared between packets: a location's word is set when the packet numbers it.
   - Stacks that nobody asked for are stepped over by their length. */
#include <stdlib.h>
#include <string.h>

#include "decode/native_internal.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* last_ref of one foreign stream in the packet at hand. */
struct foreign {
    uint32_t stream;
    uint32_t generation; /* of the packet that set it; another = free */
    uint64_t last_ref;
};

/* A location of the packet. */
struct local {
    uint64_t successors; /* four indices of 16 bits, the most recent lowest; 0 = none */
    uint32_t id;         /* of the trace */
    uint32_t unused;
};

struct sm_stream_cursor {
    const uint8_t *p, *end; /* in the packet's payload */
    uint64_t ticks;         /* of the last event, as the packet says */
    uint64_t floor_ticks;   /* no event of this packet is given out before it */
    uint64_t next_seq;
    uint64_t last_ref;
    const struct sm_native_stream *of_stream;
    uint32_t stream;
    uint32_t owner;
    unsigned flags;  /* enum sm_cursor_flag */
    uint32_t n_read; /* events of the packet */

    uint32_t *frames; /* the stack, outermost first: ids of the trace */
    uint16_t *locals; /* the same as indices of the packet */
    uint32_t depth, frames_capacity;
    struct local *table;  /* by index of the packet */
    uint32_t n_locations; /* highest index */
    uint32_t locations_capacity;
    uint64_t previous_code;
    int64_t frames_left; /* cap on expansion */
    uint32_t cut_local;  /* index of the cut mark, 0 = none */
    uint32_t cut_at;     /* depth of the stack's outermost cut mark + 1, 0 = none */

    struct foreign *foreign; /* open addressing, at most half full */
    uint32_t foreign_capacity, n_foreign, generation;

    struct sm_trace *t;
    struct sm_native_packet *packet, *packets_end; /* packet: the one being read, NULL = none */
    struct sm_native_packet *next_packet;
    struct sm_native_buffer buffer;
    uint64_t last_ticks;    /* given out */
    uint64_t charged_bytes; /* of the budget, without buffer */
    const char *why;        /* of a decoding error */
    bool unsupported;
    bool measuring; /* no side effects on the trace */
};

/* ---- growing, all cold ---- */

static bool charge(struct sm_stream_cursor *c, uint64_t bytes) {
    if (!sm_native_charge(c->t->backend_data, bytes)) {
        c->why = "needs more memory than a reader takes";
        return false;
    }
    c->charged_bytes += bytes;
    return true;
}

static __attribute__((noinline, cold)) bool grow_frames(struct sm_stream_cursor *c, uint64_t need) {
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
static __attribute__((noinline)) bool new_location(struct sm_stream_cursor *c, uint64_t delta) {
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
    if (c->previous_code == SM_LOCATION_CUT)
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
static uint64_t *foreign_ref(struct sm_stream_cursor *c, uint64_t stream) {
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

/* ---- numbers, unchecked: see the padding ---- */

/* A number and what follows it, in registers: no address is taken of anything in the hot loop. p is
   NULL when it is not a number of 64 bits. */
struct number {
    const uint8_t *p;
    uint64_t x;
};

/* Three bytes and more. */
static __attribute__((noinline)) struct number long_leb(const uint8_t *q) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint64_t b = *q++;
        if (shift == 63 && b > 1)
            break;
        value |= (b & 0x7f) << shift;
        if (b < 0x80)
            return (struct number){q, value};
    }
    return (struct number){NULL, 0};
}

static inline struct number leb(const uint8_t *q) {
    uint64_t b = q[0];
    if (likely(b < 0x80))
        return (struct number){q + 1, b};
    uint64_t b1 = q[1];
    if (likely(b1 < 0x80))
        return (struct number){q + 2, (b & 0x7f) | b1 << 7};
    return long_leb(q);
}

/* ---- stacks ---- */

/* i to the front of the successors s: those before its place move up by one, the others stay. An
   absent one takes the place of the fourth. Without a branch. */
static inline uint64_t to_front(uint64_t s, uint64_t i) {
    const uint64_t ones = 0x0001000100010001, tops = 0x8000800080008000;
    uint64_t x = s ^ i * ones;
    uint64_t zero = ((x - ones) & ~x & tops) | 1ull << 63; /* the lowest mark is a true one */
    uint64_t from = ~0ull << (__builtin_ctzll(zero) & 48); /* the lanes from its place on */
    return (s & from << 16) | (s & ~from) << 16 | i;
}

/* Applies one stack's codes q..end. Returns false on a decoding error (c->why).

   Most codes are an index, or a rank, with no or one predicted frame, in no order that a processor could
   guess. So these ways are computed side by side and selected, and branches are left for what is rare
   and for longer predictions. */
static __attribute__((noinline)) bool read_stack(struct sm_stream_cursor *c, const uint8_t *q,
                                                 const uint8_t *end, uint32_t kept) {
    struct local *table = c->table;
    uint32_t *frames = c->frames;
    uint16_t *locals = c->locals;
    uint32_t capacity = c->frames_capacity;
    uint64_t n_locations = c->n_locations;
    uint32_t depth = kept;
    uint64_t context = depth == 0 ? 0 : locals[depth - 1];
    while (q < end) {
        uint64_t b = *q;
        uint64_t s = table[context].successors;
        uint64_t pair = b << 8 | q[1];
        uint64_t i = s >> (b << 2 & 48) & 0xFFFF; /* 16 * bits 2..3 */
        bool is_index = b < SM_CODE_SHORT_LIMIT;
        uint64_t tag = (is_index ? pair : b) & 3;
        i = is_index ? pair >> 2 : i;
        q += 1 + is_index;
        if (unlikely(b >= SM_CODE_LONG)) {
            struct number number = leb(q);
            q = number.p;
            i = number.x;
            if (unlikely(q == NULL || tag == 3 || b > SM_CODE_NEW + 3))
                goto bad_code;
            if (b >= SM_CODE_NEW) {
                if (unlikely(!new_location(c, (uint64_t)sm_unzigzag(i))))
                    return false;
                table = c->table;
                i = n_locations = c->n_locations;
            }
        }
        if (unlikely(i - 1 >= n_locations))
            goto bad_index;
        table[context].successors = to_front(s, i);
        if (unlikely(depth + 2 > capacity)) {
            if (!grow_frames(c, depth + 2))
                return false;
            frames = c->frames;
            locals = c->locals;
            capacity = c->frames_capacity;
        }
        frames[depth] = table[i].id;
        locals[depth++] = (uint16_t)i;
        if (likely(tag < 2)) {
            uint64_t next = table[i].successors & 0xFFFF; /* written, and kept if predicted */
            frames[depth] = table[next].id;
            locals[depth] = (uint16_t)next;
            depth += (uint32_t)tag;
            if (unlikely(tag > next)) /* predicted and absent */
                goto bad_index;
            context = tag != 0 ? next : i;
            continue;
        }
        if (unlikely(tag == 3))
            goto bad_code;
        uint32_t more = *q++;
        if (unlikely(depth + more > capacity)) {
            if (!grow_frames(c, depth + more))
                return false;
            frames = c->frames;
            locals = c->locals;
            capacity = c->frames_capacity;
        }
        while (more-- > 0) {
            i = table[i].successors & 0xFFFF;
            if (unlikely(i == 0))
                goto bad_index;
            frames[depth] = table[i].id;
            locals[depth++] = (uint16_t)i;
        }
        context = i;
    }
    c->depth = depth;
    c->frames_left -= depth - kept;
    if (likely(q == end && c->frames_left >= 0 && depth <= SM_MAX_DEPTH))
        return true;
    c->why = q != end               ? "holds a stack of another length than announced"
             : depth > SM_MAX_DEPTH ? "holds a stack that is too deep"
                                    : "expands to more frames than a packet may";
    return false;
bad_index:
    c->why = "refers to a location that it did not number";
    return false;
bad_code:
    c->why = "holds a reserved or unreadable code in a stack";
    c->unsupported = true;
    return false;
}

/* Keeps track of the outermost cut mark; only for packets that have one. */
static __attribute__((noinline)) void track_cut(struct sm_stream_cursor *c, uint32_t kept) {
    if (c->cut_at > kept)
        c->cut_at = 0;
    for (uint32_t d = kept; c->cut_at == 0 && d < c->depth; d++)
        if (c->locals[d] == c->cut_local)
            c->cut_at = d + 1;
}

/* ---- packets ---- */

/* The packet is over, whole (why = NULL) or not: says what is lost, brings has_object up to date. */
static void close_packet(struct sm_stream_cursor *c) {
    struct sm_native_packet *p = c->packet;
    c->packet = NULL;
    if (c->measuring)
        return;
    uint64_t n_alloc = c->next_seq - p->first_seq;
    if (n_alloc < p->n_alloc) {
        p->n_alloc_readable = (uint32_t)n_alloc;
        sm_native_damaged(c->t, c->stream);
    }
    bool from_file = (p->flags & SM_NATIVE_TAIL) == 0;
    if ((p->flags & SM_NATIVE_REPORTED) != 0)
        return;
    uint64_t offset = sm_native_header_offset(p);
    uint64_t lost = p->n_events > c->n_read ? p->n_events - c->n_read : 0;
    if ((p->flags & SM_NATIVE_CUT) != 0) {
        sm_trace_add_loss(
            c->t, SM_LOSS_CUT, c->stream, offset,
            SM_PACKET_HEADER_BYTES + (uint64_t)p->stored_bytes, lost, true,
            "the file ends inside packet %u of stream %u: %u of its %u events are read",
            p->packet_seq, c->stream, c->n_read, p->n_events);
    } else if (c->why != NULL) {
        sm_trace_add_loss(c->t, c->unsupported ? SM_LOSS_UNSUPPORTED : SM_LOSS_CORRUPT, c->stream,
                          offset, (uint64_t)(c->end - c->p), lost, from_file,
                          "packet %u of stream %u %s after %u of its %u events: the rest of it is "
                          "lost",
                          p->packet_seq, c->stream, c->why, c->n_read, p->n_events);
    } else if (from_file && (c->n_read != p->n_events || n_alloc != p->n_alloc)) {
        sm_trace_add_loss(
            c->t, SM_LOSS_CORRUPT, c->stream, offset, 0, lost, true,
            "packet %u of stream %u announces %u events with %u allocations, and holds "
            "%u with %llu",
            p->packet_seq, c->stream, p->n_events, p->n_alloc, c->n_read,
            (unsigned long long)n_alloc);
    } else if (c->floor_ticks > p->ts_begin_ticks ||
               (from_file && c->ticks != p->ts_begin_ticks + p->ts_span_ticks)) {
        sm_trace_add_loss(
            c->t, SM_LOSS_TIME, c->stream, offset, 0, 0, true,
            c->floor_ticks > p->ts_begin_ticks
                ? "packet %u of stream %u begins before its predecessor ends: its times "
                  "are raised"
                : "packet %u of stream %u holds times outside its range",
            p->packet_seq, c->stream);
    } else {
        return;
    }
    p->flags |= SM_NATIVE_REPORTED;
}

/* Begins the packet with payload data..data + bytes: all coding state is empty. */
static bool begin_packet(struct sm_stream_cursor *c, struct sm_native_packet *p,
                         const uint8_t *data, size_t bytes) {
    c->packet = p;
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
        (c->frames_capacity == 0 && !grow_frames(c, 1)))
        return false;
    c->table[0] = (struct local){0, 0, 0};
    return true;
}

/* Goes to the next packet that can be read. */
static __attribute__((noinline)) bool open_packet(struct sm_stream_cursor *c) {
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
static __attribute__((noinline, cold)) void give_up(struct sm_stream_cursor *c, const char *why) {
    if (c->why == NULL)
        c->why = why;
    close_packet(c);
    c->p = c->end;
}

static void read_owner(struct sm_stream_cursor *c, const uint8_t *p, const uint8_t *end) {
    struct sm_owner owner = {.stream = c->stream, .name = ""};
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
    c->owner = sm_trace_add_owner(c->t, &owner);
}

/* ---- the events ---- */

/* Field by field: an initialiser becomes a block clear, which costs more than all of this. */
static inline void fill(const struct sm_stream_cursor *c, struct sm_event *e, uint64_t ticks,
                        uint8_t kind) {
    e->ticks = ticks;
    e->kind = kind;
    e->heap = 0;
    e->origin = 0;
    e->flags = 0;
    e->stream = c->stream;
    e->owner = c->owner;
    e->obj_stream = c->stream;
    e->obj_seq = 0;
    e->size = 0;
    e->n_samples = 0;
    e->frames = NULL;
    e->n_frames = 0;
    e->common_prefix = 0;
    e->op = 0;
    e->payload = NULL;
    e->payload_bytes = 0;
}

enum sm_status sm_native_stream_next(struct sm_stream_cursor *c, struct sm_event *e) {
    for (;;) {
        const uint8_t *q = c->p;
        if (unlikely(q >= c->end)) {
            if (!open_packet(c)) {
                c->p = c->end = NULL;
                return SM_END;
            }
            continue;
        }
        unsigned op = *q++;
        struct number number = leb(q);
        uint64_t dt = number.x;
        q = number.p;
        if (unlikely(q == NULL || dt > UINT64_MAX - c->ticks)) {
            give_up(c, "holds an unreadable time");
            continue;
        }
        uint64_t ticks = c->ticks + dt;
        uint64_t given = ticks < c->floor_ticks ? c->floor_ticks : ticks;

        uint64_t size, n_samples;
        unsigned source, event_flags;
        if (likely(op - SM_OP_SHORT_MIN <= SM_OP_SHORT_MAX - SM_OP_SHORT_MIN)) {
            size = op;
            n_samples = 1;
            source = 0;
            event_flags = 0;
        } else if (likely(op - SM_OP_PROMOTE <= SM_OP_COLLECT_FOREIGN - SM_OP_PROMOTE)) {
            uint64_t stream = c->stream;
            uint64_t *last_ref = &c->last_ref;
            if (op >= SM_OP_PROMOTE_FOREIGN) {
                number = leb(q);
                stream = number.x;
                q = number.p;
                if (unlikely(q == NULL || q > c->end ||
                             (last_ref = foreign_ref(c, stream)) == NULL)) {
                    give_up(c, "is cut inside an event");
                    continue;
                }
            }
            number = leb(q);
            uint64_t z = number.x;
            q = number.p;
            if (unlikely(q == NULL || q > c->end)) {
                give_up(c, "is cut inside an event");
                continue;
            }
            uint64_t seq = *last_ref + 1 + (uint64_t)sm_unzigzag(z);
            *last_ref = seq;
            c->ticks = ticks;
            c->p = q;
            c->n_read++;
            c->last_ticks = given;
            fill(c, e, given, (op & 1) == 0 ? SM_EVENT_PROMOTE : SM_EVENT_COLLECT);
            e->op = (uint8_t)op;
            e->obj_stream = (uint32_t)stream;
            e->obj_seq = seq;
            if (stream == c->stream &&
                unlikely(!c->of_stream->contiguous || seq < c->of_stream->first_seq ||
                         seq >= c->of_stream->end_seq) &&
                !sm_native_has_object(c->t, c->stream, seq))
                e->flags = SM_EVENT_ORPHAN;
            return SM_OK;
        } else if (op == SM_OP_ALLOC || op == SM_OP_ALLOC_BYTES) {
            number = leb(q);
            size = number.x;
            if (likely(number.p != NULL))
                number = leb(number.p);
            n_samples = number.x;
            q = number.p;
            if (unlikely(q == NULL || (size | n_samples) >> 62 != 0)) {
                give_up(c, "holds an unreadable size");
                continue;
            }
            source = *q++;
            event_flags = op == SM_OP_ALLOC_BYTES ? SM_EVENT_SIZE_IN_BYTES : 0;
        } else if (op >= SM_OP_EXTENSION_MIN) {
            number = leb(q);
            uint64_t bytes = number.x;
            q = number.p;
            if (unlikely(q == NULL || q > c->end || bytes > (size_t)(c->end - q) ||
                         bytes > SM_MAX_EXTENSION_BYTES)) {
                give_up(c, "is cut inside an event");
                continue;
            }
            if (op == SM_OP_OWNER && !c->measuring)
                read_owner(c, q, q + bytes);
            c->ticks = ticks;
            c->p = q + bytes;
            c->n_read++;
            if ((c->flags & SM_CURSOR_EXTENSIONS) == 0)
                continue;
            c->last_ticks = given;
            fill(c, e, given, SM_EVENT_EXTENSION);
            e->op = (uint8_t)op;
            e->payload = q;
            e->payload_bytes = (uint32_t)bytes;
            return SM_OK;
        } else {
            c->unsupported = true;
            give_up(c, "holds an event of a kind that this version does not know");
            continue;
        }

        /* an allocation: its stack follows */
        number = leb(q);
        uint64_t pops = number.x;
        if (likely(number.p != NULL))
            number = leb(number.p);
        uint64_t code_bytes = number.x;
        q = number.p;
        if (unlikely(q == NULL || q > c->end || code_bytes > (size_t)(c->end - q))) {
            give_up(c, "is cut inside an event");
            continue;
        }
        fill(c, e, given, SM_EVENT_ALLOC);
        if ((c->flags & SM_CURSOR_STACKS) != 0) {
            if (unlikely(pops > c->depth)) {
                give_up(c, "takes more frames from a stack than it has");
                continue;
            }
            uint32_t kept = c->depth - (uint32_t)pops;
            if (code_bytes == 0) {
                c->depth = kept;
            } else if (unlikely(!read_stack(c, q, q + code_bytes, kept))) {
                give_up(c, NULL);
                continue;
            }
            if (unlikely(c->cut_local != 0)) {
                track_cut(c, kept);
                if (c->cut_at != 0)
                    event_flags |= SM_EVENT_STACK_CUT;
            }
            e->frames = c->frames;
            e->n_frames = c->depth;
            e->common_prefix = kept;
        }
        c->ticks = ticks;
        c->p = q + code_bytes;
        c->n_read++;
        c->last_ticks = given;
        e->op = (uint8_t)op;
        e->heap = (uint8_t)SM_SOURCE_HEAP(source);
        e->origin = (uint8_t)SM_SOURCE_ORIGIN(source);
        e->flags = (uint8_t)event_flags;
        e->obj_seq = c->next_seq++;
        e->size = size;
        e->n_samples = n_samples;
        return SM_OK;
    }
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
