/* The stacks of a batch (docs/format.md, sections 5.2 and 5.3).

   Only what differs from the stack before is written, as ids of the trace; the stack itself is kept as indices of the
   packet, which are the context of codes. See native_events.c for how the codes are read: most of them without a
   branch. Room is asked for once per stack: a code stands for two frames at most, but for the rare long predictions. */
#include <string.h>

#include "decode/batch_internal.h"

/* ---- locations ---- */

static bool new_location(struct sm_batch_decoder *d, struct sm_batch *b, uint64_t delta) {
    uint32_t index = d->n_locations + 1;
    if (index > SM_MAX_PACKET_LOCATIONS) {
        b->why = "numbers too many locations";
        return false;
    }
    d->n_locations = index;
    uint64_t code = d->previous_code += delta;
    uint32_t id;
    if (code == SM_LOCATION_CUT && d->cut_id != UINT32_MAX)
        id = d->cut_id;
    else
        id = sm_locations_find(d->pass->slots, d->pass->slots_capacity, code);
    if (id == UINT32_MAX) {
        if (b->n_new_codes == b->new_codes_capacity &&
            !sm_batch_room(b, (void **)&b->new_codes, &b->new_codes_capacity, sizeof *b->new_codes,
                           (uint64_t)b->n_new_codes + 1))
            return false;
        b->new_codes[b->n_new_codes] = code;
        id = SM_BATCH_NEW + b->n_new_codes++;
    }
    if (code == SM_LOCATION_CUT)
        d->cut_id = id;
    d->successors[index] = 0;
    d->ids[index] = id;
    return true;
}

/* ---- one stack ---- */

/* What a stack may grow by before its depth is looked at. */
#define MOST_FRAMES (SM_MAX_DEPTH + SM_BATCH_DEPTH_SLACK)

static inline bool room(struct sm_batch *b, uint32_t out, uint64_t frames) {
    return likely(out + frames <= b->frames_capacity) ||
           sm_batch_room(b, (void **)&b->frames, &b->frames_capacity, sizeof *b->frames,
                         out + frames);
}

/* Applies the codes q..end to the stack of which `kept` frames are left. Returns its depth, UINT32_MAX on an
   error (b->why). */
static inline uint32_t one_stack(struct sm_batch_decoder *d, struct sm_batch *b, const uint8_t *q,
                                 const uint8_t *end, uint32_t kept) {
    uint64_t *successors = d->successors;
    const uint32_t *ids = d->ids;
    uint16_t *locals = d->locals;
    uint64_t n_locations = d->n_locations;
    uint64_t most = 2 * (uint64_t)(end - q);
    if (!room(b, b->n_frames, most < MOST_FRAMES ? most : MOST_FRAMES))
        return UINT32_MAX;
    uint32_t *frames = b->frames + b->n_frames;
    uint32_t depth = kept, out = 0;
    uint64_t context = depth == 0 ? 0 : locals[depth - 1];
    while (q < end) {
        uint64_t byte = *q;
        uint64_t s = successors[context];
        uint64_t pair = byte << 8 | q[1];
        uint64_t i = s >> (byte << 2 & 48) & 0xFFFF; /* 16 * bits 2..3 */
        bool is_index = byte < SM_CODE_SHORT_LIMIT;
        uint64_t tag = (is_index ? pair : byte) & 3;
        i = is_index ? pair >> 2 : i;
        q += 1 + is_index;
        if (unlikely(byte >= SM_CODE_LONG)) {
            struct number number = leb(q);
            q = number.p;
            i = number.x;
            if (unlikely(q == NULL || tag == 3 || byte > SM_CODE_NEW + 3))
                goto bad_code;
            if (byte >= SM_CODE_NEW) {
                if (unlikely(!new_location(d, b, (uint64_t)sm_unzigzag(i))))
                    return UINT32_MAX;
                i = n_locations = d->n_locations;
            }
        }
        if (unlikely(i - 1 >= n_locations))
            goto bad_index;
        if (unlikely(depth > SM_MAX_DEPTH))
            goto too_deep;
        successors[context] = to_front(s, i);
        frames[out++] = ids[i];
        locals[depth++] = (uint16_t)i;
        if (likely(tag < 2)) {
            uint64_t next = successors[i] & 0xFFFF; /* written, and kept if predicted */
            frames[out] = ids[next];
            locals[depth] = (uint16_t)next;
            depth += (uint32_t)tag;
            out += (uint32_t)tag;
            if (unlikely(tag > next)) /* predicted and absent */
                goto bad_index;
            context = tag != 0 ? next : i;
            continue;
        }
        if (unlikely(tag == 3))
            goto bad_code;
        uint32_t more = *q++;
        most = more + (q < end ? 2 * (uint64_t)(end - q) : 0);
        if (!room(b, b->n_frames + out, most < MOST_FRAMES ? most : MOST_FRAMES))
            return UINT32_MAX;
        frames = b->frames + b->n_frames;
        while (more-- > 0) {
            i = successors[i] & 0xFFFF;
            if (unlikely(i == 0))
                goto bad_index;
            frames[out++] = ids[i];
            locals[depth++] = (uint16_t)i;
        }
        context = i;
    }
    if (unlikely(q != end)) {
        b->why = "holds a stack of another length than announced";
        return UINT32_MAX;
    }
    if (unlikely(depth > SM_MAX_DEPTH))
        goto too_deep;
    if (unlikely(b->n_frames + out > SM_MAX_PACKET_FRAMES)) {
        b->why = "expands to more frames than a packet may";
        return UINT32_MAX;
    }
    b->n_frames += out;
    return depth;
too_deep:
    b->why = "holds a stack that is too deep";
    return UINT32_MAX;
bad_index:
    b->why = "refers to a location that it did not number";
    return UINT32_MAX;
bad_code:
    b->why = "holds a reserved or unreadable code in a stack";
    b->unsupported = true;
    return UINT32_MAX;
}

/* Marks the stacks in which frames were cut; only for packets that have such. */
static void mark_cuts(struct sm_batch *b, uint32_t n, uint32_t cut_id) {
    uint32_t cut_at = 0; /* depth of the outermost mark + 1, 0 = none */
    for (uint32_t i = 0; i < n; i++) {
        struct sm_batch_alloc *a = &b->allocs[i];
        if (cut_at > a->common_prefix)
            cut_at = 0;
        for (uint32_t k = a->common_prefix; cut_at == 0 && k < a->n_frames; k++)
            if (b->frames[a->first_frame + k - a->common_prefix] == cut_id)
                cut_at = k + 1;
        if (cut_at != 0)
            a->flags |= SM_EVENT_STACK_CUT;
    }
}

uint32_t sm_batch_expand(struct sm_batch_decoder *d, struct sm_batch *b, const uint8_t *data) {
    uint32_t depth = 0, n = 0;
    d->n_locations = 0;
    d->previous_code = 0;
    d->cut_id = UINT32_MAX;
    d->successors[0] = 0;
    d->ids[0] = 0;
    b->n_frames = 0;
    b->n_new_codes = 0;
    for (; n < b->n_allocs; n++) {
        struct sm_batch_alloc *a = &b->allocs[n];
        const uint8_t *q = data + a->first_frame;
        uint32_t pops = a->common_prefix, code_bytes = a->n_frames;
        if (unlikely(pops > depth)) {
            b->why = "takes more frames from a stack than it has";
            break;
        }
        uint32_t kept = depth - pops, first = b->n_frames;
        uint32_t now = kept;
        if (code_bytes > 0 &&
            unlikely((now = one_stack(d, b, q, q + code_bytes, kept)) == UINT32_MAX))
            break;
        a->first_frame = first;
        a->common_prefix = kept;
        a->n_frames = depth = now;
    }
    if (d->cut_id != UINT32_MAX)
        mark_cuts(b, n, d->cut_id);
    return n;
}
