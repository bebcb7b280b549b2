/* Byte order and variable-length integers. Hook-safe, header only.
   Writers trust their caller for room; readers are bounded by `end` and never read past it. */
#ifndef SM_BASE_BYTES_H
#define SM_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SM_LEB_MAX_BYTES 10

static inline void sm_put_u16le(uint8_t *p, uint16_t x) {
    p[0] = (uint8_t)x;
    p[1] = (uint8_t)(x >> 8);
}

static inline void sm_put_u32le(uint8_t *p, uint32_t x) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap32(x);
#endif
    memcpy(p, &x, sizeof x);
}

static inline void sm_put_u64le(uint8_t *p, uint64_t x) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    memcpy(p, &x, sizeof x);
}

static inline uint16_t sm_get_u16le(const uint8_t *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t sm_get_u32le(const uint8_t *p) {
    uint32_t x;
    memcpy(&x, p, sizeof x);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap32(x);
#endif
    return x;
}

static inline uint64_t sm_get_u64le(const uint8_t *p) {
    uint64_t x;
    memcpy(&x, p, sizeof x);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

static inline double sm_get_f64le(const uint8_t *p) {
    uint64_t bits = sm_get_u64le(p);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline void sm_put_f64le(uint8_t *p, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    sm_put_u64le(p, bits);
}

/* Unsigned LEB128; returns the byte after the last one written (1..10 bytes). */
static inline uint8_t *sm_put_leb(uint8_t *p, uint64_t x) {
    while (x >= 0x80) {
        *p++ = (uint8_t)(x | 0x80);
        x >>= 7;
    }
    *p++ = (uint8_t)x;
    return p;
}

static inline uint64_t sm_zigzag(int64_t x) {
    return ((uint64_t)x << 1) ^ (uint64_t)(x >> 63);
}
static inline int64_t sm_unzigzag(uint64_t z) {
    return (int64_t)((z >> 1) ^ (0 - (z & 1)));
}

static inline uint8_t *sm_put_zz(uint8_t *p, int64_t x) {
    return sm_put_leb(p, sm_zigzag(x));
}

/* Reads one LEB at *p and advances it. False (with *p unspecified) when it does not end before
   `end`, has more than 10 bytes, or exceeds 64 bits. */
static inline bool sm_get_leb(const uint8_t **p, const uint8_t *end, uint64_t *x) {
    const uint8_t *q = *p;
    if (q < end && *q < 0x80) { /* nearly always */
        *x = *q;
        *p = q + 1;
        return true;
    }
    uint64_t value = 0;
    for (unsigned shift = 0; q < end && shift < 70; shift += 7) {
        uint8_t b = *q++;
        if (shift == 63 && b > 1)
            return false;
        value |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80) {
            *x = value;
            *p = q;
            return true;
        }
    }
    return false;
}

static inline bool sm_get_zz(const uint8_t **p, const uint8_t *end, int64_t *x) {
    uint64_t z;
    if (!sm_get_leb(p, end, &z))
        return false;
    *x = sm_unzigzag(z);
    return true;
}

#endif
