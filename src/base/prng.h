/* xoshiro256++ by Blackman and Vigna, seeded by splitmix64. Hook-safe, header only. Not for secrets.
   One generator per stream: no sharing, no synchronisation. */
#ifndef SM_BASE_PRNG_H
#define SM_BASE_PRNG_H

#include <stdint.h>

struct sm_prng {
    uint64_t s[4];
};

static inline void sm_prng_seed(struct sm_prng *g, uint64_t seed) {
    for (int i = 0; i < 4; i++) {
        uint64_t z = (seed += 0x9E3779B97F4A7C15ull);
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ z >> 27) * 0x94D049BB133111EBull;
        g->s[i] = z ^ z >> 31;
    }
}

static inline uint64_t sm_prng_rotl(uint64_t x, int k) {
    return x << k | x >> (64 - k);
}

static inline uint64_t sm_prng_next(struct sm_prng *g) {
    uint64_t result = sm_prng_rotl(g->s[0] + g->s[3], 23) + g->s[0];
    uint64_t t = g->s[1] << 17;
    g->s[2] ^= g->s[0];
    g->s[3] ^= g->s[1];
    g->s[1] ^= g->s[2];
    g->s[0] ^= g->s[3];
    g->s[2] ^= t;
    g->s[3] = sm_prng_rotl(g->s[3], 45);
    return result;
}

/* Uniform in (0,1): the 52 upper bits, in the middle of their interval; never 0, never 1. */
static inline double sm_prng_unit(struct sm_prng *g) {
    return ((double)(sm_prng_next(g) >> 12) + 0.5) * 0x1p-52;
}

#endif
