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
   - Stacks that nobody asked for are stepped over by their length, but in packets whose header tells of cuts. */
#include "decode/native_codes.h"
#include "decode/native_cursor.h"

/* ---- stacks ---- */

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
                if (unlikely(!sm_native_new_location(c, (uint64_t)sm_unzigzag(i))))
                    return false;
                table = c->table;
                i = n_locations = c->n_locations;
            }
        }
        if (unlikely(i - 1 >= n_locations))
            goto bad_index;
        table[context].successors = to_front(s, i);
        if (unlikely(depth + 2 > capacity)) {
            if (!sm_native_grow_frames(c, depth + 2))
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
            if (!sm_native_grow_frames(c, depth + more))
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

/* The number of frames that the codes q..end stand for, by their tags alone; false: c->why. */
static inline bool measure_stack(struct sm_stream_cursor *c, const uint8_t *q, const uint8_t *end,
                                 uint32_t kept) {
    uint64_t depth = kept;
    while (q < end) {
        unsigned b = *q;
        bool is_index = b < SM_CODE_SHORT_LIMIT;
        unsigned tag = (is_index ? q[1] : b) & 3;
        q += 1 + is_index;
        depth += 1 + (tag & 1);
        if (unlikely(b >= SM_CODE_LONG)) {
            q = leb(q).p;
            if (q == NULL || b > SM_CODE_NEW + 3)
                goto bad_code;
        }
        if (tag >= 2) {
            if (unlikely(tag == 3))
                goto bad_code;
            depth += *q++;
        }
    }
    c->frames_left -= (int64_t)(depth - kept);
    if (likely(q == end && c->frames_left >= 0 && depth <= SM_MAX_DEPTH)) {
        c->depth = (uint32_t)depth;
        return true;
    }
    c->why = q != end               ? "holds a stack of another length than announced"
             : depth > SM_MAX_DEPTH ? "holds a stack that is too deep"
                                    : "expands to more frames than a packet may";
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
        if (c->frames[d] == c->table[c->cut_local].id)
            c->cut_at = d + 1;
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
            if (!sm_native_open_packet(c)) {
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
            sm_native_give_up(c, "holds an unreadable time");
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
                             (last_ref = sm_native_last_ref(c, stream)) == NULL)) {
                    sm_native_give_up(c, "is cut inside an event");
                    continue;
                }
            }
            number = leb(q);
            uint64_t z = number.x;
            q = number.p;
            if (unlikely(q == NULL || q > c->end)) {
                sm_native_give_up(c, "is cut inside an event");
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
                sm_native_give_up(c, "holds an unreadable size");
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
                sm_native_give_up(c, "is cut inside an event");
                continue;
            }
            if (op == SM_OP_OWNER && !c->measuring)
                c->owner = sm_native_owner(c->t, c->stream, q, q + bytes);
            c->ticks = ticks;
            c->p = q + bytes;
            c->n_read++;
            if ((c->flags & SM_CURSOR_EXTENSIONS) == 0)
                continue;
            c->last_ticks = given;
            if (unlikely(op == SM_OP_MODULE && !c->measuring))
                sm_trace_add_module(c->t, given, q, q + bytes);
            fill(c, e, given, SM_EVENT_EXTENSION);
            e->op = (uint8_t)op;
            e->payload = q;
            e->payload_bytes = (uint32_t)bytes;
            return SM_OK;
        } else {
            c->unsupported = true;
            sm_native_give_up(c, "holds an event of a kind that this version does not know");
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
            sm_native_give_up(c, "is cut inside an event");
            continue;
        }
        fill(c, e, given, SM_EVENT_ALLOC);
        if (c->expand || c->measure) {
            if (unlikely(pops > c->depth)) {
                sm_native_give_up(c, "takes more frames from a stack than it has");
                continue;
            }
            uint32_t kept = c->depth - (uint32_t)pops;
            if (code_bytes == 0) {
                c->depth = kept;
            } else if (!c->expand) {
                if (unlikely(!measure_stack(c, q, q + code_bytes, kept))) {
                    sm_native_give_up(c, NULL);
                    continue;
                }
            } else if (unlikely(!read_stack(c, q, q + code_bytes, kept))) {
                sm_native_give_up(c, NULL);
                continue;
            }
            if (unlikely(c->cut_local != 0)) {
                track_cut(c, kept);
                if (c->cut_at != 0)
                    event_flags |= SM_EVENT_STACK_CUT;
            }
            if (likely((c->flags & (SM_CURSOR_STACKS | SM_CURSOR_DEPTHS)) != 0)) {
                e->frames = (c->flags & SM_CURSOR_STACKS) != 0 ? c->frames : NULL;
                e->n_frames = c->depth;
                e->common_prefix = kept;
            }
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
