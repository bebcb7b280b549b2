/* TLV lists (docs/format.md, section 1). Hook-safe, header only. A list that would overflow its
   buffer drops the entry and remembers it. */
#ifndef SM_ENCODE_TLV_H
#define SM_ENCODE_TLV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

struct sm_tlv_writer {
    uint8_t *buf;
    size_t capacity;
    size_t used;
    bool overflowed;
};

static inline void sm_tlv_bytes(struct sm_tlv_writer *w, uint32_t tag, const void *data,
                                size_t bytes) {
    if (w->capacity - w->used < bytes + 2 * SM_LEB_MAX_BYTES) {
        w->overflowed = true;
        return;
    }
    uint8_t *p = sm_put_leb(w->buf + w->used, tag);
    p = sm_put_leb(p, bytes);
    if (bytes > 0)
        memcpy(p, data, bytes);
    w->used = (size_t)(p + bytes - w->buf);
}

static inline void sm_tlv_text(struct sm_tlv_writer *w, uint32_t tag, const char *text) {
    sm_tlv_bytes(w, tag, text, strlen(text));
}

static inline void sm_tlv_leb(struct sm_tlv_writer *w, uint32_t tag, uint64_t value) {
    uint8_t leb[SM_LEB_MAX_BYTES];
    sm_tlv_bytes(w, tag, leb, (size_t)(sm_put_leb(leb, value) - leb));
}

static inline void sm_tlv_f64(struct sm_tlv_writer *w, uint32_t tag, double value) {
    uint8_t le[8];
    sm_put_f64le(le, value);
    sm_tlv_bytes(w, tag, le, sizeof le);
}

#endif
