/* The sampler for memory that OCaml does not sample.

   Each unit (word, byte) is sampled with probability r, independently; the gap from one sampled unit to the next is
   then geometric: 1 + floor(ln U / ln(1 - r)) for U uniform in (0,1). A thread counts its units down to the next
   sampled one, so that the common case is a comparison and a subtraction. The state is the thread's, the
   generator its stream's: no two threads draw the same numbers, unless a seed was asked for, and then a stream's
   numbers depend on the seed and the stream's number alone.

   The logarithm is computed here: hook-safe code does without libm. */
#include "record/internal.h"

#include <errno.h>

#include "base/ln.h"

/* Gaps beyond this are not told apart. */
#define GAP_MAX ((uint64_t)1 << 62)

/* From so many expected samples on, their number is drawn at once. */
#define MANY_SAMPLES 1e5

double sm_log1p_negative(double x) {
    if (x >= 1)
        return -1e300;
    if (x > 1e-3)
        return sm_ln(1 - x);
    double sum = 0;
    for (int k = 8; k >= 1; k--)
        sum = sum * x + 1.0 / k;
    return -x * sum;
}

static double square_root(double x) {
    double y = x > 1 ? x : 1;
    for (int i = 0; i < 64; i++) {
        double next = 0.5 * (y + x / y);
        if (next >= y)
            break;
        y = next;
    }
    return y;
}

static uint64_t gap(struct sm_prng *g) {
    double units = sm_ln(sm_prng_unit(g)) / sm_session.log1p_rate;
    return units < (double)GAP_MAX ? 1 + (uint64_t)units : GAP_MAX;
}

/* Binomial(size, rate) for a large expectation, by the normal law: its error there is far below what any
   estimate could show, and the time does not grow with a size that may be nonsense. */
static uint64_t many(struct sm_prng *g, uint64_t size) {
    double n = (double)size, r = sm_session.rate;
    if (r >= 1)
        return size;
    double normal = -6;
    for (int i = 0; i < 12; i++)
        normal += sm_prng_unit(g);
    double drawn = n * r + square_root(n * r * (1 - r)) * normal + 0.5;
    return drawn <= 0 ? 0 : drawn >= n ? size : (uint64_t)drawn;
}

__attribute__((noinline)) static uint64_t sample_slow(struct sm_thread *t, uint64_t size) {
    struct sm_stream *s = sm_stream_enter(t);
    if (s == NULL)
        return 0;
    /* The session's fields may be read only here, between enter and leave: a restart writes them. A rate of 0 samples
       nothing: only native memory is recorded. */
    if (sm_session.rate <= 0) {
        t->sample_left = GAP_MAX;
        t->sample_generation = t->generation;
        sm_stream_leave(s);
        return 0;
    }
    if (t->sample_generation != t->generation) {
        t->sample_left = gap(&s->prng);
        t->sample_generation = t->generation;
    }
    uint64_t n = 0;
    if ((double)size * sm_session.rate > MANY_SAMPLES) {
        n = many(&s->prng, size);
        t->sample_left = gap(&s->prng);
    } else {
        while (size >= t->sample_left) {
            size -= t->sample_left;
            t->sample_left = gap(&s->prng);
            n++;
        }
        t->sample_left -= size;
    }
    sm_stream_leave(s);
    return n;
}

uint64_t sm_recorder_sample(uint64_t size) {
    struct sm_control *c = atomic_load_explicit(&sm_control, memory_order_acquire);
    if (c == NULL)
        return 0;
    uint32_t active = atomic_load_explicit(&c->active, memory_order_acquire);
    if (active == 0)
        return 0;
    struct sm_thread *t = &sm_thread;
    if (t->sample_generation == active && size < t->sample_left) {
        t->sample_left -= size;
        return 0;
    }
    return sample_slow(t, size);
}
