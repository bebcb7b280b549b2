/* Stepping over events without decoding them. */
#include "decode/memtrace_internal.h"

#include <string.h>

static const uint8_t *step_location(const uint8_t *p, const uint8_t *end, bool big) {
    if (end - p < 9)
        return NULL;
    uint32_t n = p[8];
    p += 9;
    while (n-- > 0) {
        if (end - p < 6)
            return NULL;
        uint64_t word = sm_mt_get_u32(p, big) | (uint64_t)sm_mt_get_u16(p + 4, big) << 32;
        p += 6;
        for (unsigned shift = 38; shift <= 43; shift += 5) {
            if ((word >> shift & 31) != SM_MT_MTF_NEW)
                continue;
            p = p < end ? memchr(p, 0, (size_t)(end - p)) : NULL;
            if (p == NULL)
                return NULL;
            p++;
        }
    }
    return p;
}

const uint8_t *sm_mt_step(const uint8_t *p, const uint8_t *end, enum sm_mt_order order,
                          uint32_t *id) {
    bool big = order == SM_MT_BIG;
    int64_t x;
    if (end - p < 4)
        return NULL;
    *id = sm_mt_get_u32(p, big) >> SM_MT_TIME_BITS;
    p += 4;
    if (*id == SM_MT_LOCATION)
        return step_location(p, end, big);
    if (*id == SM_MT_PROMOTE || *id == SM_MT_COLLECT)
        return sm_mt_get_vint(&p, end, big, &x) ? p : NULL;
    bool brief = *id > SM_MT_SHORT_BASE && *id <= SM_MT_SHORT_BASE + SM_MT_SHORT_MAX_WORDS;
    if (!brief) {
        if (*id != SM_MT_ALLOC || !sm_mt_get_vint(&p, end, big, &x) ||
            !sm_mt_get_vint(&p, end, big, &x) || p >= end || *p++ > 2)
            return NULL;
    }
    if (!sm_mt_get_vint(&p, end, big, &x) || x < 0 || end - p < (brief ? 1 : 2))
        return NULL;
    uint32_t n = brief ? p[0] : sm_mt_get_u16(p, order != SM_MT_LITTLE);
    return sm_mt_step_codewords(p + (brief ? 1 : 2), end, big, n);
}

void sm_mt_walk(const uint8_t *p, const uint8_t *end, enum sm_mt_order order,
                struct sm_mt_walk *w) {
    memset(w, 0, sizeof *w);
    while (p < end) {
        uint32_t id;
        p = sm_mt_step(p, end, order, &id);
        if (p == NULL)
            return;
        w->n_events++;
        w->n_allocs += id == SM_MT_ALLOC || id > SM_MT_SHORT_BASE;
        w->has_locations |= id == SM_MT_LOCATION;
    }
    w->complete = true;
}
