#include "convert/memtrace_stacks.h"

#include <stdlib.h>
#include <string.h>

void sm_mt_stacks_init(struct sm_mt_stack_encoder *e) {
    memset(e, 0, sizeof *e);
    e->verify_ix = SM_MT_VERIFY_FIRST;
}

void sm_mt_stacks_resume(struct sm_mt_stack_encoder *e) {
    sm_mt_stacks_init(e);
    memset(e->no_pred, 1, sizeof e->no_pred);
    e->verify_ix = SM_MT_NO_VERIFY;
}

void sm_mt_stacks_release(struct sm_mt_stack_encoder *e) {
    free(e->last);
    e->last = NULL;
}

uint32_t sm_mt_stacks_common(const struct sm_mt_stack_encoder *e, const uint64_t *codes,
                             uint32_t n_codes) {
    uint32_t n = n_codes < e->last_frames ? n_codes : e->last_frames, i = 0;
    while (i < n && codes[i] == e->last[i])
        i++;
    return i;
}

static bool remember(struct sm_mt_stack_encoder *e, const uint64_t *codes, uint32_t n_codes,
                     uint32_t common) {
    if (n_codes > e->last_capacity) {
        uint32_t capacity = n_codes + n_codes / 2 + 64;
        uint64_t *last = realloc(e->last, (size_t)capacity * sizeof *last);
        if (last == NULL)
            return false;
        e->last = last;
        e->last_capacity = capacity;
    }
    if (n_codes > common)
        memcpy(e->last + common, codes + common, (size_t)(n_codes - common) * sizeof *codes);
    e->last_frames = n_codes;
    return true;
}

static uint8_t *put_hit(uint8_t *p, uint32_t slot, uint32_t n_predicted) {
    uint32_t tag = n_predicted < 2 ? n_predicted : 2;
    sm_put_u16le(p, (uint16_t)(slot << 2 | tag));
    p += 2;
    if (tag == 2)
        *p++ = (uint8_t)n_predicted;
    return p;
}

static void link_slots(struct sm_mt_stack_encoder *e, uint32_t from, uint32_t to) {
    e->pred[from] = (uint16_t)to;
    e->no_pred[from] = false;
}

uint8_t *sm_mt_stacks_encode(struct sm_mt_stack_encoder *e, uint8_t *to, const uint64_t *codes,
                             uint32_t n_codes, uint32_t common, uint64_t alloc_id,
                             uint32_t *n_words) {
    uint8_t *p = to, *limit = to + SM_MT_STACK_LIMIT;
    uint32_t i = common, cur = 0, words = 0;
    if (!remember(e, codes, n_codes, common))
        return NULL;
    while (i < n_codes && p <= limit) {
        uint64_t code = codes[i++];
        uint32_t h1 = (uint32_t)(code * 0x4983723u >> 11) & (SM_MT_CACHE_SLOTS - 1);
        uint32_t h2 = (uint32_t)(code * 0xFDEA731u >> 21) & (SM_MT_CACHE_SLOTS - 1);
        if (e->val[h1] != code && e->val[h2] != code) {
            uint32_t slot = e->date[h1] < e->date[h2] ? h1 : h2;
            if (e->n_pending < SM_MT_PENDING_ROOM)
                e->pending[e->n_pending++] = code;
            e->val[slot] = code;
            e->date[slot] = alloc_id;
            link_slots(e, cur, slot);
            sm_put_u16le(p, (uint16_t)(slot << 2 | 3));
            sm_put_u64le(p + 2, code);
            p += 10;
            words++;
            cur = slot;
            continue;
        }
        /* Runs longer than a codeword can count go on with an explicit hit on the predicted slot,
           which need not be one of the code's own two. */
        uint32_t slot = e->val[h1] == code ? h1 : h2;
        bool full = false, again = true;
        while (again) {
            uint32_t n = 0;
            e->date[slot] = alloc_id;
            link_slots(e, cur, slot);
            cur = slot;
            again = false;
            while (i < n_codes) {
                if (p + 2 > limit) {
                    full = true;
                    break;
                }
                uint32_t next = e->pred[cur];
                if (e->no_pred[cur] || e->val[next] != codes[i])
                    break;
                if (n == 255) {
                    again = true;
                    break;
                }
                cur = next;
                n++;
                i++;
            }
            p = put_hit(p, slot, n);
            words++;
            if (again) {
                slot = e->pred[cur];
                i++;
            }
        }
        if (full)
            break;
    }
    *n_words = words;
    return p;
}

void sm_mt_stacks_verifier(struct sm_mt_stack_encoder *e, bool first_packet, uint16_t *ix,
                           uint16_t *pred, uint64_t *val) {
    *ix = SM_MT_NO_VERIFY;
    *pred = 0;
    *val = 0;
    if (first_packet || e->verify_ix == SM_MT_NO_VERIFY)
        return;
    *ix = (uint16_t)e->verify_ix;
    *pred = e->pred[e->verify_ix];
    *val = e->val[e->verify_ix];
    e->verify_ix = (e->verify_ix + SM_MT_VERIFY_STEP) & (SM_MT_CACHE_SLOTS - 1);
}
