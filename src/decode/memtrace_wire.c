#include "decode/memtrace_wire.h"

bool sm_mt_header_get(const uint8_t *p, size_t bytes, enum sm_mt_order order,
                      struct sm_mt_header *h) {
    bool big = order == SM_MT_BIG, patched = order != SM_MT_LITTLE;
    if (bytes < 66 || sm_mt_get_u32(p, big) != SM_MT_MAGIC)
        return false;
    uint32_t bits = sm_mt_get_u32(p + 4, patched);
    h->version = sm_mt_get_u16(p + 28, big);
    if (h->version < 1 || h->version > 3 || bits % 8 != 0 || bits > INT32_MAX)
        return false;
    h->header_bytes = h->version >= 3 ? 68 : 66;
    h->packet_bytes = bits / 8;
    if (bytes < h->header_bytes || h->packet_bytes < h->header_bytes)
        return false;
    h->ts_begin_us = (int64_t)sm_mt_get_u64(p + 8, patched);
    h->ts_end_us = (int64_t)sm_mt_get_u64(p + 16, patched);
    h->pid = sm_mt_get_u64(p + 30, big);
    h->domain = h->version >= 3 ? sm_mt_get_u16(p + 38, big) : 0;
    p += h->header_bytes - 28;
    h->verify_ix = sm_mt_get_u16(p, big);
    h->verify_pred = sm_mt_get_u16(p + 2, big);
    h->verify_val = sm_mt_get_u64(p + 4, big);
    h->alloc_begin = sm_mt_get_u64(p + 12, patched);
    h->alloc_end = sm_mt_get_u64(p + 20, patched);
    return true;
}

bool sm_mt_detect(const uint8_t *p, size_t bytes, enum sm_mt_order *order, struct sm_mt_header *h) {
    /* Wrong guesses fail at the magic or, between the first two, nearly always at the size: a
       little-endian size in bits read the other way round has its low byte from the top of a number
       below 2^18, so it comes out beyond any file. */
    bool found = false;
    for (int guess = SM_MT_LITTLE; guess <= SM_MT_BIG; guess++) {
        struct sm_mt_header x;
        if (!sm_mt_header_get(p, bytes, (enum sm_mt_order)guess, &x))
            continue;
        if (!found || (h->packet_bytes > bytes && x.packet_bytes <= bytes)) {
            *h = x;
            *order = (enum sm_mt_order)guess;
            found = true;
        }
    }
    return found;
}
