/* Numbers and successor lists of native packets, for the decoders' hot loops. Internal to src/decode.

   Nothing here checks bounds: every payload has SM_NATIVE_PADDING readable bytes behind its end. */
#ifndef SM_DECODE_NATIVE_CODES_H
#define SM_DECODE_NATIVE_CODES_H

#include <stddef.h>
#include <stdint.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* A number and what follows it, in registers: no address is taken of anything in the hot loop. p is
   NULL when it is not a number of 64 bits. */
struct number {
    const uint8_t *p;
    uint64_t x;
};

/* Three bytes and more. */
static __attribute__((noinline, unused)) struct number long_leb(const uint8_t *q) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint64_t b = *q++;
        if (shift == 63 && b > 1)
            break;
        value |= (b & 0x7f) << shift;
        if (b < 0x80)
            return (struct number){q, value};
    }
    return (struct number){NULL, 0};
}

static inline struct number leb(const uint8_t *q) {
    uint64_t b = q[0];
    if (likely(b < 0x80))
        return (struct number){q + 1, b};
    uint64_t b1 = q[1];
    if (likely(b1 < 0x80))
        return (struct number){q + 2, (b & 0x7f) | b1 << 7};
    return long_leb(q);
}

/* i to the front of the successors s: those before its place move up by one, the others stay. An
   absent one takes the place of the fourth. Without a branch. */
static inline uint64_t to_front(uint64_t s, uint64_t i) {
    const uint64_t ones = 0x0001000100010001, tops = 0x8000800080008000;
    uint64_t x = s ^ i * ones;
    uint64_t zero = ((x - ones) & ~x & tops) | 1ull << 63; /* the lowest mark is a true one */
    uint64_t from = ~0ull << (__builtin_ctzll(zero) & 48); /* the lanes from its place on */
    return (s & from << 16) | (s & ~from) << 16 | i;
}

#endif
