/* Events into the payload of one EVENTS packet.

   What has to be fast is the stack. Three observations shape the state:

   1. The runtime hands over stacks innermost first, and neighbouring samples share their outermost
      frames. The previous stack is therefore kept in the same order and aligned at the *end* of
      `frames`; the shared part is found by comparing two arrays backwards, a block of eight words at a
      time, and only the frames that differ are copied. Frames are kept as they were given (with
      the runtime's tag bit), so that nothing has to be converted for the comparison.

          frames:  [ ....... unused ....... | innermost ... new ... | ... shared ... outermost ]
                                              ^ CAPACITY - depth                     CAPACITY ^

      `index` runs in parallel and holds each frame's location index.

   2. A frame that differs has usually been seen after the same caller before. A node holds a
      location's code beside its four most recent successors, 16 bytes, so that following a prediction
      touches one cache line per frame. The four successors are handled as one 64-bit word: search,
      insertion and move to front are a few instructions without branches.

   3. Nothing may cost time proportional to the tables when a packet begins. Nodes are initialised
      when an index is given out; hash entries carry the generation they were made in; the hash
      begins small and doubles as locations arrive, which also keeps the touched memory of a
      thread with few call sites small.

   Every call first makes sure that the event fits (buffer, location indices, foreign streams) and only
   then changes anything; after that it cannot fail. */
#include "encode/event_encoder.h"

#include "base/bytes.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

_Static_assert(sizeof(uintptr_t) == 8, "stacks are compared as 64-bit words");

#define CAPACITY SM_MAX_DEPTH
#define NODES (SM_MAX_PACKET_LOCATIONS + 1)
#define HASH_SLOTS (2 * NODES)
#define HASH_FIRST_SLOTS 1024u
#define FOREIGN_SLOTS 2048u
#define FOREIGN_MAX (FOREIGN_SLOTS / 2)

/* Largest encodings. A frame: one byte, ten of a LEB, one of a count. */
#define FRAME_MAX_BYTES 12u
#define EVENT_MAX_BYTES (1u + 3 * SM_LEB_MAX_BYTES + 1u + 2 * 5u)

#define NOT_CUT UINT32_MAX

struct node {
    uint64_t code;
    uint64_t successors; /* four 16-bit indices, the most recent in the low bits; 0 = none */
};

/* Entry of the location hash: generation << 16 | index; empty unless the generation is current. */

struct foreign {
    uint32_t stream;
    uint32_t generation; /* empty unless current */
    uint64_t next_ref;   /* last_ref + 1 */
};

struct sm_event_encoder {
    uint8_t *buf;
    uint8_t *at; /* buf <= at <= end */
    uint8_t *end;
    uint64_t last_ticks;
    uint64_t next_own_ref; /* last_ref + 1 of the own stream */
    uint64_t first_seq;
    uint64_t ts_begin_ticks;
    uint64_t previous_new_code;
    uint32_t n_events;
    uint32_t n_alloc;
    uint32_t max_depth;
    uint32_t n_cut;

    uint32_t depth;     /* of the previous stack */
    uint32_t cut_depth; /* frames outside of its outermost cut frame, or NOT_CUT */
    uint64_t strip;     /* bits of `frames` that belong to the code: ~1 raw, ~0 codes */
    uint32_t depth_limit;

    uint32_t n_nodes; /* indices given out, root included */
    uint32_t hash_bits;
    uint32_t generation; /* of hash entries, 1..65535; never decreases between two wipes */
    uint32_t hash_dirty; /* largest hash_bits used since the last wipe */
    uint64_t coded_frames;

    uint32_t n_foreign;
    uint32_t foreign_generation;

    sm_new_location_fn *on_new_location;
    void *on_new_location_ctx;

    struct node nodes[NODES];
    uint64_t frames[CAPACITY];
    uint16_t index[CAPACITY];
    uint32_t hash[HASH_SLOTS];
    struct foreign foreign[FOREIGN_SLOTS];
};

size_t sm_event_encoder_bytes(void) {
    return sizeof(struct sm_event_encoder);
}

size_t sm_event_encoder_bound_alloc(uint32_t n_frames) {
    if (n_frames > CAPACITY)
        n_frames = CAPACITY;
    return EVENT_MAX_BYTES + (size_t)(n_frames + 1) * FRAME_MAX_BYTES;
}

size_t sm_event_encoder_bound_extension(size_t payload_bytes) {
    return 1 + 2 * SM_LEB_MAX_BYTES + payload_bytes;
}

/* ---- location hash ---- */

static inline uint32_t hash_home(const struct sm_event_encoder *e, uint64_t code) {
    return (uint32_t)((code * 0x9E3779B97F4A7C15ull) >> (64 - e->hash_bits));
}

static void next_generation(struct sm_event_encoder *e) {
    if (++e->generation > UINT16_MAX) {
        memset(e->hash, 0, sizeof e->hash[0] << e->hash_dirty);
        e->generation = 1;
        e->hash_dirty = e->hash_bits;
    }
}

static inline void hash_insert(struct sm_event_encoder *e, uint64_t code, uint32_t index) {
    uint32_t mask = (1u << e->hash_bits) - 1;
    uint32_t i = hash_home(e, code);
    while (e->hash[i] >> 16 == e->generation)
        i = (i + 1) & mask;
    e->hash[i] = e->generation << 16 | index;
}

/* Half of the slots stay empty, so that probing ends. */
__attribute__((noinline, cold)) static void hash_grow(struct sm_event_encoder *e) {
    e->hash_bits++;
    if (e->hash_bits > e->hash_dirty)
        e->hash_dirty = e->hash_bits;
    next_generation(e);
    for (uint32_t i = 1; i < e->n_nodes; i++)
        hash_insert(e, e->nodes[i].code, i);
}

static inline uint32_t hash_find(const struct sm_event_encoder *e, uint64_t code) {
    uint32_t mask = (1u << e->hash_bits) - 1;
    for (uint32_t i = hash_home(e, code);; i = (i + 1) & mask) {
        uint32_t entry = e->hash[i];
        if (entry >> 16 != e->generation)
            return 0;
        if (e->nodes[entry & 0xffff].code == code)
            return entry & 0xffff;
    }
}

static uint32_t new_location(struct sm_event_encoder *e, uint64_t code) {
    uint32_t index = e->n_nodes++;
    e->nodes[index].code = code;
    e->nodes[index].successors = 0;
    if (2 * e->n_nodes > 1u << e->hash_bits)
        hash_grow(e); /* inserts the new one with the others */
    else
        hash_insert(e, code, index);
    if (e->on_new_location != NULL && code != SM_LOCATION_CUT)
        e->on_new_location(e->on_new_location_ctx, code);
    return index;
}

/* ---- successors: four lanes of 16 bits ---- */

#define LANES 0x0001000100010001ull

/* Rank of `index` (not 0) in the word, or 4. */
static inline uint32_t successor_rank(uint64_t successors, uint32_t index) {
    uint64_t x = successors ^ (index * LANES); /* the lane that holds it becomes 0 */
    uint64_t zero = (x - LANES) & ~x & (LANES << 15);
    /* Borrows only disturb lanes above the lowest zero one, so the lowest is right. */
    return zero != 0 ? (uint32_t)__builtin_ctzll(zero) / 16 : 4;
}

static inline uint64_t successor_to_front(uint64_t successors, uint32_t index, uint32_t rank) {
    if (rank >= 3) /* the last one leaves its place, or drops off */
        return successors << 16 | index;
    uint64_t before = (1ull << (16 * rank)) - 1;
    uint64_t after = ~((before << 16) | 0xffff);
    return (successors & after) | (successors & before) << 16 | index;
}

/* ---- packet ---- */

void sm_event_encoder_begin(struct sm_event_encoder *e, uint8_t *buf, size_t capacity,
                            uint64_t first_seq, uint64_t ts_begin_ticks, uint32_t depth_limit) {
    e->buf = e->at = buf;
    e->end = buf + capacity;
    e->last_ticks = e->ts_begin_ticks = ts_begin_ticks;
    e->first_seq = e->next_own_ref = first_seq;
    e->previous_new_code = 0;
    e->n_events = e->n_alloc = e->max_depth = e->n_cut = 0;
    e->depth = 0;
    e->cut_depth = NOT_CUT;
    e->strip = 0;
    e->depth_limit = depth_limit;
    e->coded_frames = 0;

    /* The hash begins as large as the last packet needed, and no larger. */
    e->hash_bits = (uint32_t)__builtin_ctz(HASH_FIRST_SLOTS);
    while (e->n_nodes > 1u << (e->hash_bits - 1))
        e->hash_bits++;
    if (e->hash_bits > e->hash_dirty)
        e->hash_dirty = e->hash_bits;
    next_generation(e);
    e->n_nodes = 1;
    e->nodes[0].code = 0;
    e->nodes[0].successors = 0;

    e->n_foreign = 0;
    if (++e->foreign_generation == 0) {
        memset(e->foreign, 0, sizeof e->foreign);
        e->foreign_generation = 1;
    }
}

size_t sm_event_encoder_used(const struct sm_event_encoder *e) {
    return (size_t)(e->at - e->buf);
}

void sm_event_encoder_fill_header(const struct sm_event_encoder *e, struct sm_packet_header *h) {
    h->raw_bytes = (uint32_t)sm_event_encoder_used(e);
    h->first_seq = e->first_seq;
    h->ts_begin_ticks = e->ts_begin_ticks;
    h->ts_span_ticks = e->last_ticks - e->ts_begin_ticks;
    h->n_events = e->n_events;
    h->n_alloc = e->n_alloc;
    h->max_depth = e->max_depth;
    h->n_cut = e->n_cut;
}

bool sm_event_encoder_full(const struct sm_event_encoder *e, size_t target_bytes) {
    return sm_event_encoder_used(e) >= target_bytes || e->n_nodes > NODES - CAPACITY ||
           e->n_foreign >= FOREIGN_MAX || e->coded_frames > SM_MAX_PACKET_FRAMES - CAPACITY;
}

void sm_event_encoder_on_new_location(struct sm_event_encoder *e, sm_new_location_fn *fn,
                                      void *ctx) {
    e->on_new_location = fn;
    e->on_new_location_ctx = ctx;
}

static inline size_t room(const struct sm_event_encoder *e) {
    return (size_t)(e->end - e->at);
}

/* Op and time; nearly every dt is below 128. */
static inline uint8_t *put_head(struct sm_event_encoder *e, uint8_t op, uint64_t now_ticks) {
    uint8_t *p = e->at;
    uint64_t dt = now_ticks > e->last_ticks ? now_ticks - e->last_ticks : 0;
    e->last_ticks += dt;
    e->n_events++;
    *p++ = op;
    return sm_put_leb(p, dt);
}

/* ---- stacks ---- */

/* Number of equal words counted from the ends of two arrays, at most n. */
static inline uint32_t common_backwards(const uint64_t *a_end, const uint64_t *b_end, uint32_t n) {
    uint32_t k = 0;
#if defined(__SSE2__)
    while (n - k >= 8) {
        const __m128i *a = (const __m128i *)(a_end - k - 8);
        const __m128i *b = (const __m128i *)(b_end - k - 8);
        __m128i x0 = _mm_cmpeq_epi32(_mm_loadu_si128(a), _mm_loadu_si128(b));
        __m128i x1 = _mm_cmpeq_epi32(_mm_loadu_si128(a + 1), _mm_loadu_si128(b + 1));
        __m128i x2 = _mm_cmpeq_epi32(_mm_loadu_si128(a + 2), _mm_loadu_si128(b + 2));
        __m128i x3 = _mm_cmpeq_epi32(_mm_loadu_si128(a + 3), _mm_loadu_si128(b + 3));
        __m128i x = _mm_and_si128(_mm_and_si128(x0, x1), _mm_and_si128(x2, x3));
        if (_mm_movemask_epi8(x) != 0xffff)
            break;
        k += 8;
    }
#endif
    while (k < n && a_end[-1 - (ptrdiff_t)k] == b_end[-1 - (ptrdiff_t)k])
        k++;
    return k;
}

/* Writes the codes of the frames from `common` (counted from the outermost) to `depth`, which stand in
   e->frames already, and their indices to e->index. */
static uint8_t *put_codes(struct sm_event_encoder *e, uint8_t *p, uint32_t common, uint32_t depth) {
    struct node *nodes = e->nodes;
    uint64_t strip = e->strip;
    const uint64_t *frame = e->frames + CAPACITY - common; /* one behind the next, downwards */
    const uint64_t *innermost = e->frames + CAPACITY - depth;
    uint16_t *index = e->index + CAPACITY - common;
    uint32_t context = common > 0 ? *index : 0;

    while (frame > innermost) {
        uint64_t code = *--frame & strip;
        uint64_t successors = nodes[context].successors;
        uint8_t *tag_byte;
        uint32_t i = hash_find(e, code);
        if (i != 0) {
            uint32_t rank = successor_rank(successors, i);
            if (rank < 4) {
                tag_byte = p;
                *p++ = (uint8_t)(SM_CODE_RANK | rank << 2);
            } else if (i < SM_CODE_INDEX_LIMIT) {
                p[0] = (uint8_t)(i >> 6);
                p[1] = (uint8_t)(i << 2);
                tag_byte = p + 1;
                p += 2;
            } else {
                tag_byte = p;
                *p++ = SM_CODE_LONG;
                p = sm_put_leb(p, i);
            }
            nodes[context].successors = successor_to_front(successors, i, rank);
        } else {
            i = new_location(e, code);
            tag_byte = p;
            *p++ = SM_CODE_NEW;
            p = sm_put_zz(p, (int64_t)(code - e->previous_new_code));
            e->previous_new_code = code;
            nodes[context].successors = successors << 16 | i;
        }
        *--index = (uint16_t)i;
        context = i;

        uint32_t predicted = 0;
        while (frame > innermost && predicted < 255) {
            uint32_t next = nodes[context].successors & 0xffff;
            if (next == 0 || nodes[next].code != (frame[-1] & strip))
                break;
            frame--;
            *--index = (uint16_t)next;
            context = next;
            predicted++;
        }
        if (predicted == 1) {
            *tag_byte |= 1;
        } else if (predicted > 1) {
            *tag_byte |= 2;
            *p++ = (uint8_t)predicted;
        }
    }
    return p;
}

/* Can the packet take an allocation with this many new frames? */
static inline bool fits(const struct sm_event_encoder *e, uint32_t new_frames) {
    return room(e) >= EVENT_MAX_BYTES + (size_t)new_frames * FRAME_MAX_BYTES &&
           e->n_nodes + new_frames <= NODES && e->coded_frames + new_frames <= SM_MAX_PACKET_FRAMES;
}

/* Writes the whole event; the new stack's frames stand in e->frames. */
static inline uint64_t put_alloc(struct sm_event_encoder *e, uint64_t now_ticks, uint64_t size,
                                 bool size_in_bytes, uint64_t n_samples, uint8_t source,
                                 uint32_t common, uint32_t depth) {
    uint8_t *p;
    if (size - 1 < SM_OP_SHORT_MAX && n_samples == 1 && source == 0 && !size_in_bytes) {
        p = put_head(e, (uint8_t)size, now_ticks);
    } else {
        p = put_head(e, size_in_bytes ? SM_OP_ALLOC_BYTES : SM_OP_ALLOC, now_ticks);
        p = sm_put_leb(p, size);
        p = sm_put_leb(p, n_samples);
        *p++ = source;
    }
    p = sm_put_leb(p, e->depth - common);

    /* The codes' length goes before them: room for one byte is left, more is made when needed. */
    uint8_t *length_at = p++;
    uint8_t *codes = p;
    p = put_codes(e, p, common, depth);
    size_t code_bytes = (size_t)(p - codes);
    if (code_bytes < 0x80) {
        *length_at = (uint8_t)code_bytes;
    } else {
        uint8_t leb[SM_LEB_MAX_BYTES];
        size_t leb_bytes = (size_t)(sm_put_leb(leb, code_bytes) - leb);
        memmove(length_at + leb_bytes, codes, code_bytes);
        memcpy(length_at, leb, leb_bytes);
        p += leb_bytes - 1;
    }

    e->at = p;
    e->coded_frames += depth - common;
    e->depth = depth;
    if (depth > e->max_depth)
        e->max_depth = depth;
    if (e->cut_depth != NOT_CUT)
        e->n_cut++;
    return e->first_seq + e->n_alloc++;
}

bool sm_event_encode_alloc(struct sm_event_encoder *e, uint64_t now_ticks, uint64_t size,
                           bool size_in_bytes, uint64_t n_samples, uint8_t source,
                           const struct sm_raw_stack *stack, uint64_t *seq) {
    /* The stack to be written, from the outermost frame: `outer` frames of the array's end, a cut
       frame if `cut`, then the `inner` first frames of the array. */
    const uint64_t *array = (const uint64_t *)stack->innermost_first;
    uint32_t n = stack->n_frames;
    uint32_t outer = n, inner = 0;
    bool cut = false;
    if (stack->cut_outermost) {
        /* What the array has as its outermost frames is the middle of the true stack. */
        cut = true;
        outer = 0;
        inner = n < e->depth_limit ? n : e->depth_limit - 1;
    } else if (stack->cut_at != 0) {
        cut = true;
        inner = stack->cut_at;
        outer = n - 1 - inner;
    } else if (n > e->depth_limit) {
        cut = true;
        inner = e->depth_limit / 2;
        outer = e->depth_limit - 1 - inner;
    }
    uint32_t depth = outer + cut + inner;
    const uint64_t raw_cut = SM_LOCATION_CUT | 1;

    uint64_t *frames_end = e->frames + CAPACITY;
    uint32_t common = 0;
    if (e->strip == ~1ull) {
        uint32_t limit = e->depth < outer ? e->depth : outer;
        common = common_backwards(array + n, frames_end, limit);
        if (cut && common == outer && e->depth > outer &&
            frames_end[-1 - (ptrdiff_t)outer] == raw_cut) {
            common++;
            limit = e->depth - common < inner ? e->depth - common : inner;
            common += common_backwards(array + inner, frames_end - common, limit);
        }
    }
    if (!fits(e, depth - common))
        return false;

    e->strip = ~1ull;
    e->cut_depth = cut ? outer : NOT_CUT;
    if (!cut) {
        memcpy(frames_end - depth, array, (size_t)(depth - common) * sizeof *array);
    } else {
        uint32_t new_inner = depth - common < inner ? depth - common : inner;
        memcpy(frames_end - depth, array, (size_t)new_inner * sizeof *array);
        if (common <= outer) {
            frames_end[-1 - (ptrdiff_t)outer] = raw_cut;
            memcpy(frames_end - outer, array + n - outer, (size_t)(outer - common) * sizeof *array);
        }
    }
    *seq = put_alloc(e, now_ticks, size, size_in_bytes, n_samples, source, common, depth);
    return true;
}

bool sm_event_encode_alloc_codes(struct sm_event_encoder *e, uint64_t now_ticks, uint64_t size,
                                 bool size_in_bytes, uint64_t n_samples, uint8_t source,
                                 const uint64_t *outermost_first, uint32_t n_frames,
                                 uint64_t *seq) {
    if (n_frames > CAPACITY)
        return false;
    uint64_t *frames_end = e->frames + CAPACITY;
    uint32_t common = 0;
    if (e->strip == ~0ull) {
        uint32_t limit = e->depth < n_frames ? e->depth : n_frames;
        while (common < limit && outermost_first[common] == frames_end[-1 - (ptrdiff_t)common])
            common++;
    }
    if (!fits(e, n_frames - common))
        return false;

    e->strip = ~0ull;
    if (e->cut_depth >= common)
        e->cut_depth = NOT_CUT;
    for (uint32_t i = common; i < n_frames; i++) {
        frames_end[-1 - (ptrdiff_t)i] = outermost_first[i];
        if (outermost_first[i] == SM_LOCATION_CUT && i < e->cut_depth)
            e->cut_depth = i;
    }
    *seq = put_alloc(e, now_ticks, size, size_in_bytes, n_samples, source, common, n_frames);
    return true;
}

/* ---- references and extensions ---- */

/* The entry of `stream`, made when absent; NULL when the table is full. */
static struct foreign *foreign_find(struct sm_event_encoder *e, uint32_t stream) {
    uint32_t i = (stream * 0x9E3779B1u) >> (32 - __builtin_ctz(FOREIGN_SLOTS));
    for (;; i = (i + 1) & (FOREIGN_SLOTS - 1)) {
        struct foreign *f = &e->foreign[i];
        if (f->generation != e->foreign_generation) {
            if (e->n_foreign >= FOREIGN_MAX)
                return NULL;
            e->n_foreign++;
            f->generation = e->foreign_generation;
            f->stream = stream;
            f->next_ref = 0;
            return f;
        }
        if (f->stream == stream)
            return f;
    }
}

bool sm_event_encode_ref(struct sm_event_encoder *e, uint64_t now_ticks, enum sm_op op, bool own,
                         uint32_t obj_stream, uint64_t obj_seq) {
    if (room(e) < EVENT_MAX_BYTES)
        return false;
    uint64_t *next_ref = &e->next_own_ref;
    if (!own) {
        struct foreign *f = foreign_find(e, obj_stream);
        if (f == NULL)
            return false;
        next_ref = &f->next_ref;
    }
    /* 202 and 203 follow 200 and 201. */
    uint8_t *p = put_head(e, (uint8_t)(own ? op : op + 2), now_ticks);
    if (!own)
        p = sm_put_leb(p, obj_stream);
    p = sm_put_zz(p, (int64_t)(obj_seq - *next_ref));
    *next_ref = obj_seq + 1;
    e->at = p;
    return true;
}

bool sm_event_encode_extension(struct sm_event_encoder *e, uint64_t now_ticks, enum sm_op op,
                               const void *payload, size_t payload_bytes) {
    if (room(e) < sm_event_encoder_bound_extension(payload_bytes))
        return false;
    uint8_t *p = put_head(e, (uint8_t)op, now_ticks);
    p = sm_put_leb(p, payload_bytes);
    if (payload_bytes > 0)
        memcpy(p, payload, payload_bytes);
    e->at = p + payload_bytes;
    return true;
}
