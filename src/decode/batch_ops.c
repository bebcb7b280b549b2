/* A payload into records. Stacks are stepped over by their length, so that nothing here waits for anything but
   the place of the next event.

   Nearly all events have operands of one byte each: they are recognised by looking at eight bytes at once. All others take
   the slow way, which is also the only one that finds errors: an event that seems to run over the end is left to
   it. Ticks cannot overflow on the fast way, which is closed from 2^63 on. */
#include <stdlib.h>
#include <string.h>

#include "decode/batch_internal.h"

/* ---- last_ref of foreign streams ---- */

static uint32_t foreign_slot(const struct sm_batch_decoder *d, uint32_t stream) {
    uint32_t at = stream * 0x9E3779B1u >> 7 & (d->foreign_capacity - 1);
    while (d->foreign[at].generation == d->generation && d->foreign[at].stream != stream)
        at = (at + 1) & (d->foreign_capacity - 1);
    return at;
}

/* NULL (b->why) when it cannot be. The table holds at most SM_MAX_STREAMS. */
static uint64_t *foreign_last_ref(struct sm_batch_decoder *d, struct sm_batch *b, uint64_t stream) {
    if (stream >= SM_MAX_STREAMS) {
        b->why = "refers to a stream beyond the limit";
        return NULL;
    }
    if (d->n_foreign * 2 >= d->foreign_capacity) {
        uint32_t old_capacity = d->foreign_capacity;
        struct foreign *old = d->foreign;
        uint32_t capacity = old_capacity == 0 ? 16 : old_capacity * 2;
        struct foreign *table = calloc(capacity, sizeof *table);
        if (table == NULL) {
            b->why = "needs more memory than there is";
            return NULL;
        }
        d->foreign = table;
        d->foreign_capacity = capacity;
        for (uint32_t i = 0; i < old_capacity; i++)
            if (old[i].generation == d->generation)
                d->foreign[foreign_slot(d, old[i].stream)] = old[i];
        free(old);
    }
    struct foreign *f = &d->foreign[foreign_slot(d, (uint32_t)stream)];
    if (f->generation != d->generation) {
        *f = (struct foreign){(uint32_t)stream, d->generation, UINT64_MAX};
        d->n_foreign++;
    }
    return &f->last_ref;
}

/* ---- the slow way ---- */

struct reading {
    const uint8_t *p, *end, *data;
    uint64_t ticks, last_ref;
    struct sm_batch_decoder *d;
    struct sm_batch *b;
    const struct sm_native_stream *of_stream;
    uint32_t stream;
    uint32_t stop_alloc;
};

static bool bad(struct sm_batch *b, const char *why) {
    if (b->why == NULL)
        b->why = why;
    return false;
}

static bool room_for_alloc(struct sm_batch *b) {
    return likely(b->n_allocs < b->allocs_capacity) ||
           sm_batch_room(b, (void **)&b->allocs, &b->allocs_capacity, sizeof *b->allocs,
                         (uint64_t)b->n_allocs + 1);
}

static bool room_for_ref(struct sm_batch *b) {
    return likely(b->n_refs < b->refs_capacity) ||
           sm_batch_room(b, (void **)&b->refs, &b->refs_capacity, sizeof *b->refs,
                         (uint64_t)b->n_refs + 1);
}

/* Fills the next record of an allocation; what is said of its stack: see sm_batch_read_ops. */
static inline void put_alloc(struct sm_batch *b, uint64_t ticks, uint64_t size, uint64_t n_samples,
                             unsigned source, unsigned flags, unsigned op, uint32_t codes_at,
                             uint32_t pops, uint32_t code_bytes) {
    struct sm_batch_alloc *a = &b->allocs[b->n_allocs++];
    a->ticks = ticks;
    a->size = size;
    a->n_samples = n_samples;
    a->first_frame = codes_at;
    a->common_prefix = pops;
    a->n_frames = code_bytes;
    a->heap = (uint8_t)SM_SOURCE_HEAP(source);
    a->origin = (uint8_t)SM_SOURCE_ORIGIN(source);
    a->flags = (uint8_t)flags;
    a->op = (uint8_t)op;
}

static inline void put_ref(struct sm_batch *b, uint64_t ticks, uint64_t seq, uint32_t stream,
                           unsigned op, bool orphan) {
    struct sm_batch_ref *r = &b->refs[b->n_refs++];
    r->ticks = ticks;
    r->obj_seq = seq;
    r->obj_stream = stream;
    r->allocs_before = b->n_allocs;
    r->kind = (op & 1) == 0 ? SM_EVENT_PROMOTE : SM_EVENT_COLLECT;
    r->flags = orphan ? SM_EVENT_ORPHAN : 0;
    r->op = (uint8_t)op;
    b->look_at_refs |= orphan;
}

/* Of an own object: is it beyond all that the stream has? Holes in it are the committer's. */
static inline bool beyond(const struct sm_native_stream *s, uint64_t seq) {
    return seq < s->first_seq || seq >= s->end_seq;
}

static bool slow_ref(struct reading *r, unsigned op, uint64_t ticks, const uint8_t *q) {
    uint64_t stream = r->stream;
    uint64_t *last_ref = &r->last_ref;
    struct number number;
    if (op >= SM_OP_PROMOTE_FOREIGN) {
        number = leb(q);
        stream = number.x;
        q = number.p;
        if (q == NULL || q > r->end)
            return bad(r->b, "is cut inside an event");
        if (stream != r->stream && (last_ref = foreign_last_ref(r->d, r->b, stream)) == NULL)
            return false;
    }
    number = leb(q);
    q = number.p;
    if (q == NULL || q > r->end)
        return bad(r->b, "is cut inside an event");
    if (!room_for_ref(r->b))
        return false;
    uint64_t seq = *last_ref + 1 + (uint64_t)sm_unzigzag(number.x);
    *last_ref = seq;
    r->b->look_at_refs |= stream != r->stream;
    put_ref(r->b, ticks, seq, (uint32_t)stream, op,
            stream == r->stream && beyond(r->of_stream, seq));
    r->p = q;
    return true;
}

static bool slow_extension(struct reading *r, unsigned op, uint64_t ticks, const uint8_t *q) {
    struct sm_batch *b = r->b;
    struct number number = leb(q);
    q = number.p;
    if (q == NULL || q > r->end || number.x > (size_t)(r->end - q) ||
        number.x > SM_MAX_EXTENSION_BYTES)
        return bad(b, "is cut inside an event");
    if (op == SM_OP_OWNER) {
        if (b->n_owners == b->owners_capacity &&
            !sm_batch_room(b, (void **)&b->owners, &b->owners_capacity, sizeof *b->owners,
                           (uint64_t)b->n_owners + 1))
            return false;
        b->owners[b->n_owners++] = (struct sm_batch_owner){.first_alloc = b->n_allocs,
                                                           .first_ref = b->n_refs,
                                                           .first_extension = b->n_extensions,
                                                           .payload = q,
                                                           .payload_bytes = (uint32_t)number.x};
    }
    if ((r->d->pass->flags & SM_CURSOR_EXTENSIONS) != 0) {
        if (b->n_extensions == b->extensions_capacity &&
            !sm_batch_room(b, (void **)&b->extensions, &b->extensions_capacity,
                           sizeof *b->extensions, (uint64_t)b->n_extensions + 1))
            return false;
        b->extensions[b->n_extensions++] =
            (struct sm_batch_extension){.ticks = ticks,
                                        .payload = q,
                                        .payload_bytes = (uint32_t)number.x,
                                        .allocs_before = b->n_allocs,
                                        .refs_before = b->n_refs,
                                        .op = (uint8_t)op};
    }
    r->p = q + number.x;
    return true;
}

static bool slow_alloc(struct reading *r, unsigned op, uint64_t ticks, const uint8_t *q) {
    uint64_t size = op, n_samples = 1;
    unsigned source = 0;
    struct number number;
    if (op > SM_OP_SHORT_MAX) {
        number = leb(q);
        size = number.x;
        if (number.p != NULL)
            number = leb(number.p);
        n_samples = number.x;
        q = number.p;
        if (q == NULL || (size | n_samples) >> 62 != 0)
            return bad(r->b, "holds an unreadable size");
        source = *q++;
    }
    number = leb(q);
    uint64_t pops = number.x;
    if (number.p != NULL)
        number = leb(number.p);
    uint64_t code_bytes = number.x;
    q = number.p;
    if (q == NULL || q > r->end || code_bytes > (size_t)(r->end - q))
        return bad(r->b, "is cut inside an event");
    if (!room_for_alloc(r->b))
        return false;
    put_alloc(r->b, ticks, size, n_samples, source,
              op == SM_OP_ALLOC_BYTES ? SM_EVENT_SIZE_IN_BYTES : 0, op, (uint32_t)(q - r->data),
              pops < UINT32_MAX ? (uint32_t)pops : UINT32_MAX, (uint32_t)code_bytes);
    r->p = q + code_bytes;
    return true;
}

/* One event at r->p; false when it cannot be read, and r->p stays, or when it is the one to stop at. */
static __attribute__((noinline)) bool slow(struct reading *r) {
    struct sm_batch *b = r->b;
    const uint8_t *q = r->p;
    unsigned op = *q++;
    struct number number = leb(q);
    q = number.p;
    if (q == NULL || number.x > UINT64_MAX - r->ticks)
        return bad(b, "holds an unreadable time");
    uint64_t ticks = r->ticks + number.x;
    bool ok;
    if (op - SM_OP_SHORT_MIN <= SM_OP_SHORT_MAX - SM_OP_SHORT_MIN || op == SM_OP_ALLOC ||
        op == SM_OP_ALLOC_BYTES) {
        if (b->n_allocs == r->stop_alloc)
            return false;
        ok = slow_alloc(r, op, ticks, q);
    } else if (op - SM_OP_PROMOTE <= SM_OP_COLLECT_FOREIGN - SM_OP_PROMOTE) {
        ok = slow_ref(r, op, ticks, q);
    } else if (op >= SM_OP_EXTENSION_MIN) {
        ok = slow_extension(r, op, ticks, q);
    } else {
        b->unsupported = true;
        ok = bad(b, "holds an event of a kind that this version does not know");
    }
    if (ok) {
        r->ticks = ticks;
        b->n_read++;
    }
    return ok;
}

/* ---- the fast way ---- */

/* Own references and short allocations from r->p on, as long as they are of the usual form. */
static __attribute__((noinline)) void fast(struct reading *r) {
    struct sm_batch *b = r->b;
    const uint8_t *p = r->p, *end = r->end, *data = r->data;
    const struct sm_native_stream *of_stream = r->of_stream;
    uint64_t ticks = r->ticks, last_ref = r->last_ref;
    uint32_t stream = r->stream, before = b->n_allocs + b->n_refs;
    uint32_t allocs_limit = b->allocs_capacity < r->stop_alloc ? b->allocs_capacity : r->stop_alloc;
    while (p < end) {
        uint64_t w;
        memcpy(&w, p, sizeof w);
        unsigned op = w & 0xFF;
        uint64_t dt = w >> 8 & 0xFF;
        if (op - SM_OP_PROMOTE <= SM_OP_COLLECT - SM_OP_PROMOTE) {
            const uint8_t *next = p + 3;
            if (unlikely((w & 0x808000) != 0)) {
                /* A time or reference of two bytes. */
                const uint8_t *q = p + 1;
                struct number time = leb(q);
                if (unlikely(time.p == NULL || time.p - q > 2))
                    break;
                struct number ref = leb(time.p);
                if (unlikely(ref.p == NULL || ref.p - time.p > 2))
                    break;
                next = ref.p;
                dt = time.x;
                w = ref.x << 16;
            }
            if (unlikely(next > end || b->n_refs >= b->refs_capacity))
                break;
            uint64_t z = w >> 16 & 0x3FFF;
            z &= next == p + 3 ? 0xFF : 0x3FFF;
            last_ref += 1 + ((z >> 1) ^ -(z & 1));
            ticks += dt;
            put_ref(b, ticks, last_ref, stream, op, beyond(of_stream, last_ref));
            p = next;
        } else if (op - SM_OP_SHORT_MIN <= SM_OP_SHORT_MAX - SM_OP_SHORT_MIN) {
            if (unlikely((w & 0x80808000) != 0))
                break;
            uint32_t pops = w >> 16 & 0xFF, code_bytes = w >> 24 & 0xFF;
            if (unlikely(4 + code_bytes > (size_t)(end - p) || b->n_allocs >= allocs_limit))
                break;
            ticks += dt;
            put_alloc(b, ticks, op, 1, 0, 0, op, (uint32_t)(p + 4 - data), pops, code_bytes);
            p += 4 + code_bytes;
        } else {
            break;
        }
    }
    r->p = p;
    r->ticks = ticks;
    r->last_ref = last_ref;
    b->n_read += b->n_allocs + b->n_refs - before;
}

void sm_batch_read_ops(struct sm_batch_decoder *d, struct sm_batch *b,
                       const struct sm_native_packet *p, const uint8_t *data, size_t bytes,
                       uint32_t stop_alloc) {
    struct reading r = {.p = data,
                        .end = data + bytes,
                        .data = data,
                        .ticks = p->ts_begin_ticks,
                        .last_ref = p->first_seq - 1,
                        .d = d,
                        .b = b,
                        .of_stream = &d->pass->n->streams[b->packet.stream_index],
                        .stream = p->stream,
                        .stop_alloc = stop_alloc};
    d->generation++;
    d->n_foreign = 0;
    while (r.p < r.end) {
        if (r.ticks < (uint64_t)1 << 63)
            fast(&r);
        if (r.p < r.end && !slow(&r))
            break;
    }
    b->end_ticks = r.ticks;
    b->left_bytes = (uint32_t)(r.end - r.p);
}
