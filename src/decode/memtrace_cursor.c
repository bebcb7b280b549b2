/* The events of one domain.

   A codeword names a slot of the stack cache, perhaps after filling it, and how many further frames
   come by following each slot's link to the slot that came after it last time:

       cur = 0
       for each codeword:  link[cur] = slot;  frames += code[slot];  cur = slot
                           n times:           cur = link[cur];       frames += code[cur]

   Slots hold location ids, not codes, so a code is looked up only when it is first sent. The stack is
   built in place, on the frames it shares with the one before.

   As long as nothing was lost, decode_stack_fast runs; the only special case there is an empty slot
   (code 0), recognised afterwards by its top bit in the or of all ids. After a loss, every slot,
   link and frame is untrusted until it is written anew, and decode_stack_careful keeps the books. */
#include <stdlib.h>
#include <string.h>

#include "decode/memtrace_internal.h"

#define EMPTY_SLOT UINT32_MAX
#define MAX_FRAMES (1u << 24) /* deeper is taken for damage */
#define FRAMES_PER_WORD 260u  /* most that one codeword writes */

/* Following links is a chain of dependent loads: they are kept apart, so that they stay in the
   processor's first cache. */
struct slots {
    uint16_t link[SM_MT_CACHE_SLOTS]; /* slot that followed it last */
    uint32_t id[SM_MT_CACHE_SLOTS];   /* location id, EMPTY_SLOT = code 0 */
    bool bad_id[SM_MT_CACHE_SLOTS], bad_link[SM_MT_CACHE_SLOTS];
};

struct sm_stream_cursor {
    struct sm_trace *t;
    struct sm_memtrace *m;
    struct sm_mt_stream *stream;
    uint32_t stream_index;
    bool stacks, careful;
    uint32_t next_packet;
    struct sm_mt_packet *packet;
    struct sm_mt_header header;
    const uint8_t *p, *end;
    int64_t last_us, ceiling_us; /* of the packet; later ones are damaged or a stepped clock */
    uint64_t next_id;
    uint64_t promised_end; /* the same by the packet's header, when they differ; it is reported */
    uint64_t n_clamped, n_unsure;    /* events of the packet with changed times, untrusted stacks */
    const struct sm_mt_range *range; /* found last */
    uint32_t *frames;
    uint32_t n_frames, capacity;
    uint32_t n_trusted; /* outermost frames that are sure, when careful */
    struct slots slots;
};

struct sm_stream_cursor *sm_mt_cursor_new(struct sm_trace *t, uint32_t stream_index,
                                          unsigned flags) {
    struct sm_memtrace *m = t->backend_data;
    struct sm_stream_cursor *c = calloc(1, sizeof *c);
    if (c == NULL || stream_index >= m->n_streams) {
        free(c);
        return NULL;
    }
    c->t = t;
    c->m = m;
    c->stream = &m->streams[stream_index];
    c->stream_index = stream_index;
    c->stacks = (flags & (SM_CURSOR_STACKS | SM_CURSOR_DEPTHS)) != 0;
    c->last_us = c->stream->floor_us;
    c->promised_end = UINT64_MAX;
    c->capacity = 1024;
    c->frames = malloc(c->capacity * sizeof *c->frames);
    if (c->frames == NULL) {
        free(c);
        return NULL;
    }
    for (uint32_t i = 0; i < SM_MT_CACHE_SLOTS; i++)
        c->slots.id[i] = EMPTY_SLOT;
    return c;
}

void sm_mt_cursor_free(struct sm_stream_cursor *c) {
    if (c == NULL)
        return;
    free(c->frames);
    free(c);
}

/* Is this the first time that the packet's trouble of this kind is met? */
static bool first_report(struct sm_stream_cursor *c, uint32_t flag) {
    bool first = (c->packet->flags & flag) == 0;
    c->packet->flags |= flag;
    return first;
}

/* What was lost may have changed every slot and the stack before. */
static void distrust(struct sm_stream_cursor *c) {
    if (!c->stacks)
        return;
    c->careful = true;
    c->n_trusted = 0;
    for (uint32_t i = 0; i < SM_MT_CACHE_SLOTS; i++)
        c->slots.bad_id[i] = c->slots.bad_link[i] = true;
}

/* ---- packets ---- */

/* What the header tells of the packets before: ids that are missing, the cache's contents. */
static void check_state(struct sm_stream_cursor *c, uint64_t begin) {
    const struct sm_mt_header *h = &c->header;
    uint64_t offset = c->packet->offset;
    bool first = c->next_packet == 0;
    uint64_t expected = first ? (c->m->n_streams > 1 ? begin : 0) : c->next_id;
    /* Domains of one trace take ids in chunks, so their packets may be any number of chunks apart. */
    bool gap = begin != expected &&
               (c->m->n_streams == 1 || begin < expected || begin % SM_MT_ID_CHUNK != 0 ||
                expected % SM_MT_ID_CHUNK != 0 || (c->packet->flags & SM_MT_AFTER_DAMAGE) != 0);
    if (gap) {
        bool known = begin == c->promised_end;
        if (!known && first_report(c, SM_MT_REPORTED_STATE)) {
            if (begin > expected && c->m->n_streams == 1)
                sm_trace_add_loss(
                    c->t, SM_LOSS_GAP, c->stream->domain, offset, 0, begin - expected, false,
                    "allocations %llu to %llu are missing before this packet, and perhaps "
                    "events on others",
                    (unsigned long long)expected, (unsigned long long)begin - 1);
            else
                sm_trace_add_loss(
                    c->t, SM_LOSS_GAP, c->stream->domain, offset, 0, 0, false,
                    "packets are missing or out of order before this one (allocation %llu "
                    "follows %llu)",
                    (unsigned long long)begin, (unsigned long long)expected);
        }
        distrust(c);
    }
    if (!c->stacks || h->verify_ix == SM_MT_NO_VERIFY)
        return;
    const struct slots *s = &c->slots;
    uint32_t ix = h->verify_ix & (SM_MT_CACHE_SLOTS - 1);
    uint64_t code = s->id[ix] == EMPTY_SLOT ? 0 : sm_trace_location_code(c->t, s->id[ix]);
    bool wrong = ix != h->verify_ix || (!s->bad_link[ix] && s->link[ix] != h->verify_pred) ||
                 (!s->bad_id[ix] && code != sm_mt_extend63(h->verify_val));
    if (wrong) {
        if (first_report(c, SM_MT_REPORTED_STATE))
            sm_trace_add_loss(
                c->t, SM_LOSS_CORRUPT, c->stream->domain, offset, 0, 0, true,
                "the stack cache is not what this packet says: something before it is lost "
                "or damaged; stacks that rest on it are marked");
        distrust(c);
    }
}

static bool open_packet(struct sm_stream_cursor *c) {
    struct sm_mt_stream *s = c->stream;
    while (c->next_packet < s->n_packets) {
        c->packet = &s->packets[c->next_packet];
        const uint8_t *p = c->t->input.data + c->packet->offset;
        size_t left = (size_t)(c->t->input.bytes - c->packet->offset);
        if (!sm_mt_header_get(p, left, c->m->order, &c->header) || c->packet->bytes > left) {
            c->next_packet++; /* changed since the scan */
            continue;
        }
        sm_trace_passed(c->t, c->packet->offset);
        sm_trace_progress(c->t, c->packet->offset);
        check_state(c, c->packet->alloc_begin);
        c->next_packet++;
        c->next_id = c->packet->alloc_begin;
        c->p = p + c->header.header_bytes;
        c->end = p + c->packet->bytes;
        c->n_clamped = c->n_unsure = 0;
        /* An end before the begin: the clock was set back, or the end is damaged. Times that went
           back come out as nearly 2^25 us late. */
        c->ceiling_us = c->header.ts_end_us;
        if (c->header.ts_end_us < c->header.ts_begin_us)
            c->ceiling_us = c->header.ts_begin_us + (SM_MT_TIME_MASK >> 1);
        if ((c->packet->flags & SM_MT_BAD_TIME) != 0)
            c->ceiling_us = INT64_MIN;
        return true;
    }
    return false;
}

/* At a packet's end, or at the place in it where reading stopped. */
static void close_packet(struct sm_stream_cursor *c, const uint8_t *stopped) {
    const struct sm_mt_header *h = &c->header;
    uint32_t domain = c->stream->domain;
    uint64_t promised = h->alloc_end - h->alloc_begin, got = c->next_id - c->packet->alloc_begin;
    if (stopped != c->end) {
        uint64_t lost =
            promised > got && promised - got < (uint64_t)(c->end - stopped) ? promised - got : 0;
        if (first_report(c, SM_MT_REPORTED))
            sm_trace_add_loss(c->t, SM_LOSS_CORRUPT, domain, (uint64_t)(stopped - c->t->input.data),
                              (uint64_t)(c->end - stopped), lost, false,
                              "an impossible event: the last %llu bytes of its packet are not read",
                              (unsigned long long)(c->end - stopped));
        distrust(c);
    } else if (got != promised && first_report(c, SM_MT_REPORTED)) {
        sm_trace_add_loss(c->t, SM_LOSS_CORRUPT, domain, c->packet->offset, 0,
                          promised > got && promised - got < c->packet->bytes ? promised - got : 0,
                          false, "the packet announces %llu allocations and holds %llu",
                          (unsigned long long)promised, (unsigned long long)got);
    }
    if (c->n_clamped > 0 && first_report(c, SM_MT_REPORTED_TIMES))
        sm_trace_add_loss(
            c->t, SM_LOSS_TIME, domain, c->packet->offset, 0, 0, true,
            "%llu events of the packet have times before the last or outside their "
            "packet's (the clock was set back, or bytes are damaged) and were given the last "
            "good time",
            (unsigned long long)c->n_clamped);
    if (c->n_unsure > 0 && first_report(c, SM_MT_REPORTED_STACKS))
        sm_trace_add_loss(
            c->t, SM_LOSS_CORRUPT, domain, c->packet->offset, 0, 0, true,
            "%llu allocations of the packet are read, but not their stacks, which rest on "
            "what was lost before",
            (unsigned long long)c->n_unsure);
    c->promised_end = got != promised ? h->alloc_end : UINT64_MAX;
    c->p = c->end = NULL;
}

/* ---- stacks ---- */

static bool room(struct sm_stream_cursor *c, uint32_t n) {
    if (c->capacity - n >= FRAMES_PER_WORD)
        return true;
    if (n > MAX_FRAMES - FRAMES_PER_WORD)
        return false;
    uint32_t capacity = c->capacity * 2;
    uint32_t *frames = realloc(c->frames, capacity * sizeof *frames);
    if (frames == NULL)
        return false;
    c->frames = frames;
    c->capacity = capacity;
    return true;
}

/* Both return the end of the codewords, NULL when they are cut or too many. Frames are appended after
   `n`; *n_out is their new number. */
static inline __attribute__((always_inline)) const uint8_t *
decode_stack_fast(struct sm_stream_cursor *c, const uint8_t *p, const uint8_t *end, bool big,
                  uint32_t words, uint32_t n, uint32_t *n_out) {
    struct slots *slots = &c->slots;
    uint32_t cur = 0, all = 0, from = n;
    if (!room(c, n))
        return NULL;
    uint32_t *out = c->frames + n, *out_limit = c->frames + c->capacity - FRAMES_PER_WORD;
    while (words-- > 0) {
        if (out > out_limit) {
            n = (uint32_t)(out - c->frames);
            if (!room(c, n))
                return NULL;
            out = c->frames + n;
            out_limit = c->frames + c->capacity - FRAMES_PER_WORD;
        }
        if (end - p < 2)
            return NULL;
        uint32_t word = sm_mt_get_u16(p, big), bucket = word >> 2, follow = word & 3;
        p += 2;
        slots->link[cur] = (uint16_t)bucket;
        cur = bucket;
        if (follow >= 2) {
            if (follow == 2) {
                if (p >= end)
                    return NULL;
                follow = *p++;
            } else {
                if (end - p < 8)
                    return NULL;
                uint64_t code = sm_mt_extend63(sm_mt_get_u64(p, big));
                p += 8;
                slots->id[bucket] = code == 0 ? EMPTY_SLOT : sm_locations_intern(c->t, code);
                follow = 0;
            }
        }
        uint32_t id = slots->id[cur];
        all |= id;
        *out++ = id;
        if (follow >= 8 && slots->link[cur] == cur) { /* a function that calls itself */
            do
                *out++ = id;
            while (--follow > 0);
        }
        for (; follow > 0; follow--) {
            cur = slots->link[cur];
            id = slots->id[cur];
            all |= id;
            *out++ = id;
        }
    }
    n = (uint32_t)(out - c->frames);
    if (all >> 31 != 0) {
        uint32_t zero = sm_locations_intern(c->t, 0);
        for (uint32_t i = from; i < n; i++)
            if (c->frames[i] == EMPTY_SLOT)
                c->frames[i] = zero;
    }
    *n_out = n;
    return p;
}

static const uint8_t *decode_stack_careful(struct sm_stream_cursor *c, const uint8_t *p,
                                           const uint8_t *end, bool big, uint32_t words, uint32_t n,
                                           uint32_t *n_out) {
    struct slots *slots = &c->slots;
    uint32_t cur = 0, zero = UINT32_MAX;
    bool lost = false; /* cur is a guess */
    while (words-- > 0) {
        if (!room(c, n) || end - p < 2)
            return NULL;
        uint32_t word = sm_mt_get_u16(p, big), bucket = word >> 2, follow = word & 3;
        p += 2;
        if (!lost) {
            slots->link[cur] = (uint16_t)bucket;
            slots->bad_link[cur] = false;
        }
        cur = bucket;
        lost = false;
        if (follow == 2) {
            if (p >= end)
                return NULL;
            follow = *p++;
        } else if (follow == 3) {
            if (end - p < 8)
                return NULL;
            uint64_t code = sm_mt_extend63(sm_mt_get_u64(p, big));
            p += 8;
            slots->id[bucket] = code == 0 ? EMPTY_SLOT : sm_locations_intern(c->t, code);
            slots->bad_id[bucket] = false;
            follow = 0;
        }
        for (uint32_t i = 0; i <= follow; i++) {
            if (i > 0) {
                lost |= slots->bad_link[cur];
                cur = slots->link[cur];
            }
            uint32_t id = slots->id[cur];
            if (id == EMPTY_SLOT) {
                if (zero == UINT32_MAX)
                    zero = sm_locations_intern(c->t, 0);
                id = zero;
            }
            if (c->n_trusted == n && !lost && !slots->bad_id[cur])
                c->n_trusted = n + 1;
            c->frames[n++] = id;
        }
    }
    *n_out = n;
    return p;
}

/* ---- events ---- */

static inline __attribute__((always_inline)) const uint8_t *
vint(const uint8_t *p, const uint8_t *end, bool big, int64_t *x) {
    if (p < end && *p <= 252) {
        *x = *p;
        return p + 1;
    }
    return sm_mt_get_vint(&p, end, big, x) ? p : NULL;
}

/* Encoders before November 2020 wrote numbers of 32 bits such that they read as negative. */
static uint64_t unsigned_number(int64_t x) {
    return x < 0 && x >= INT32_MIN ? (uint64_t)x & UINT32_MAX : (uint64_t)x;
}

static inline __attribute__((always_inline)) const uint8_t *
read_alloc(struct sm_stream_cursor *c, const uint8_t *p, const uint8_t *end, bool big, bool patched,
           uint32_t id, struct sm_event *e) {
    int64_t x;
    uint32_t words;
    e->kind = SM_EVENT_ALLOC;
    if (id != SM_MT_ALLOC) {
        e->size = id - SM_MT_SHORT_BASE;
        e->n_samples = 1;
        e->heap = SM_HEAP_MINOR;
        if ((p = vint(p, end, big, &x)) == NULL || p >= end)
            return NULL;
        words = *p++;
    } else {
        if ((p = vint(p, end, big, &x)) == NULL)
            return NULL;
        e->size = unsigned_number(x);
        if ((p = vint(p, end, big, &x)) == NULL || p >= end || *p > SM_HEAP_EXTERNAL)
            return NULL;
        e->n_samples = unsigned_number(x);
        e->heap = *p++;
        if ((p = vint(p, end, big, &x)) == NULL || end - p < 2)
            return NULL;
        words = sm_mt_get_u16(p, patched);
        p += 2;
    }
    if (x < 0)
        return NULL;
    e->obj_stream = c->stream->domain;
    if (!c->stacks) {
        return sm_mt_step_codewords(p, end, big, words);
    }
    /* Less is known of the stack before than the writer built on: it was cut by the writer, or lost.
       Caches are kept in step; the frames are no use. */
    bool no_base = x > c->n_frames;
    uint32_t common = x > UINT32_MAX ? UINT32_MAX : (uint32_t)x, n;
    uint32_t base = no_base ? c->n_frames : common;
    if (c->careful) {
        uint32_t trusted = c->n_trusted < base ? c->n_trusted : base;
        c->n_trusted = trusted;
        p = decode_stack_careful(c, p, end, big, words, base, &n);
        if (no_base)
            c->n_trusted = trusted;
    } else {
        p = decode_stack_fast(c, p, end, big, words, base, &n);
    }
    if (p == NULL) {
        c->n_frames = base; /* what stood above may be overwritten */
        return NULL;
    }
    if (!no_base)
        c->n_frames = n;
    if (no_base || (c->careful && c->n_trusted < c->n_frames)) {
        e->flags |= SM_EVENT_STACK_LOST;
        c->n_unsure += c->careful;
    }
    e->common_prefix = common;
    e->frames = c->frames;
    e->n_frames = c->n_frames;
    return p;
}

/* The object of a promotion or collection. */
static inline void set_object(struct sm_stream_cursor *c, uint64_t id, struct sm_event *e) {
    const struct sm_mt_range *r = c->range;
    if (r == NULL || id < r->begin || id >= r->end)
        r = sm_mt_objects_find(c->m, id);
    if (r == NULL) {
        e->obj_stream = c->stream->domain;
        e->obj_seq = id;
        e->flags |= SM_EVENT_ORPHAN;
        return;
    }
    c->range = r;
    e->obj_stream = c->m->streams[r->stream_index].domain;
    e->obj_seq = r->seq_begin + (id - r->begin);
}

/* The event at c->p; its end, NULL when it is damaged. */
static inline __attribute__((always_inline)) const uint8_t *
read_event(struct sm_stream_cursor *c, bool big, bool patched, struct sm_event *e) {
    const uint8_t *p = c->p, *end = c->end;
    int64_t delta;
    if (end - p < 4)
        return NULL;
    uint32_t word = sm_mt_get_u32(p, big), id = word >> SM_MT_TIME_BITS;
    p += 4;
    e->heap = e->origin = e->flags = 0;
    e->size = e->n_samples = 0;
    e->frames = NULL;
    e->n_frames = e->common_prefix = 0;
    e->op = 0;
    e->payload = NULL;
    e->payload_bytes = 0;
    if (id > SM_MT_SHORT_BASE || id == SM_MT_ALLOC) {
        if (id > SM_MT_SHORT_BASE + SM_MT_SHORT_MAX_WORDS)
            return NULL;
        p = read_alloc(c, p, end, big, patched, id, e);
        if (p == NULL)
            return NULL;
        uint64_t object = c->next_id++;
        const struct sm_mt_range *r = c->range;
        if (c->m->n_streams == 1)
            e->obj_seq = object;
        else if (r != NULL && r->stream_index == c->stream_index && object >= r->begin &&
                 object < r->end)
            e->obj_seq = r->seq_begin + (object - r->begin);
        else
            set_object(c, object, e);
        e->obj_stream = c->stream->domain;
        e->flags &= (uint8_t)~SM_EVENT_ORPHAN;
    } else {
        if (id != SM_MT_PROMOTE && id != SM_MT_COLLECT)
            return NULL;
        e->kind = id == SM_MT_PROMOTE ? SM_EVENT_PROMOTE : SM_EVENT_COLLECT;
        if ((p = vint(p, end, big, &delta)) == NULL)
            return NULL;
        set_object(c, c->next_id - 1 - (uint64_t)delta, e);
    }
    int64_t us = sm_mt_event_time(word, c->header.ts_begin_us);
    if (us > c->ceiling_us || us < c->last_us) {
        c->n_clamped++;
        us = c->last_us;
        if (us < c->header.ts_begin_us && c->header.ts_begin_us <= c->ceiling_us)
            us = c->header.ts_begin_us;
    }
    c->last_us = us;
    e->ticks = (uint64_t)us;
    return p;
}

/* Location events within an event packet. The scan has read those at its head; for others, which no
   known writer makes, all names are read once more. */
static const uint8_t *skip_locations(const struct sm_stream_cursor *c) {
    const uint8_t *p = c->p;
    bool big = c->m->order == SM_MT_BIG;
    uint32_t id;
    while (c->end - p >= 4 && sm_mt_get_u32(p, big) >> SM_MT_TIME_BITS == SM_MT_LOCATION) {
        const uint8_t *q = sm_mt_step(p, c->end, c->m->order, &id);
        if (q == NULL)
            break;
        p = q;
    }
    return p;
}

enum sm_status sm_mt_cursor_next(struct sm_stream_cursor *c, struct sm_event *e) {
    for (;;) {
        if (c->p == c->end) {
            if (c->p != NULL)
                close_packet(c, c->p);
            if (!open_packet(c))
                return SM_END;
            continue;
        }
        const uint8_t *p = c->m->order == SM_MT_LITTLE
                               ? read_event(c, false, false, e)
                               : read_event(c, c->m->order == SM_MT_BIG, true, e);
        if (p == NULL) {
            p = skip_locations(c);
            if (p == c->p) {
                close_packet(c, p);
            } else {
                sm_mt_names_again(c->t);
                c->p = p;
            }
            continue;
        }
        c->p = p;
        e->stream = c->stream->domain;
        e->owner = c->stream->owner;
        return SM_OK;
    }
}
