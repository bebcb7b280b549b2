/* The time of events, in ticks of CLOCK_MONOTONIC. clock_gettime is the largest single cost of an event; the
   processor's counter costs less than half. So each stream reads the real clock once in SM_CLOCK_SPAN_NS and
   extrapolates with the counter in between.

   Why that is sound:
   - It is done only where the counter never stops nor changes its speed (CPUID says so) and the kernel itself
     keeps time with it ("tsc" is its clock source: it has verified that the cores' counters agree, and watches
     them). Then CLOCK_MONOTONIC *is* this counter, scaled by a factor that only the kernel's discipline changes
     (at most 500 ppm: 0.5 us in a span).
   - A real reading counts when it stands between two readings of the counter so close together that
     it is exact to a fraction of a microsecond; otherwise (the thread was preempted there) it is used for its
     event and the next event reads the clock again.
   - The factor is not assumed but measured, between two such readings at least a span apart, and again at
     each. Extrapolation begins when two measurements in a row agree to 500 ppm, and ends when they do
     not (a suspended machine, a migrated guest): then every event reads the clock until they do again.
   - A counter that runs backwards or jumps leaves the span, because the difference is unsigned.
   Where any of this is missing, or with STATMEM_CLOCK=system in the environment, every event asks the system.
   Errors are thus bounded by span * 500 ppm and the readings' own inexactness, below 2 us together, and
   do not add up. The encoder never lets the time of a stream decrease.

   The state belongs to the stream's owner; sm_clock_usable may be called by any thread. */
#ifndef SM_RECORD_CLOCK_H
#define SM_RECORD_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/os.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#define SM_CLOCK_HAVE_COUNTER 1
static inline uint64_t sm_clock_counter(void) {
    return __rdtsc();
}
#else
#define SM_CLOCK_HAVE_COUNTER 0
static inline uint64_t sm_clock_counter(void) {
    return 0;
}
#endif

#define SM_CLOCK_SPAN_NS 1000000u

struct sm_stream_clock {
    /* Of every event. */
    uint64_t counter;    /* of the last real reading that counts */
    uint64_t span;       /* extrapolate for so many counts; 0 = read the clock */
    uint64_t ticks;      /* time at `counter` */
    uint64_t fraction;   /* and its fraction of a tick, 2^-32 */
    uint64_t tick_scale; /* ticks in a count, 2^-32 */
    /* Of readings. */
    uint64_t ns;       /* time at `counter` */
    uint64_t ns_scale; /* nanoseconds in a count as last measured, 2^-32; 0 = not known */
    uint32_t tick_ns;
    bool plain;    /* never extrapolate */
    bool anchored; /* `counter` and `ns` stand */
};

/* True when this machine's counter will do and STATMEM_CLOCK=system is not in the environment. Reads a file: call it at the start of a session. */
bool sm_clock_usable(void);

void sm_clock_begin(struct sm_stream_clock *c, uint32_t tick_ns, bool plain);

/* Reads the real clock; not inline. */
uint64_t sm_clock_read(struct sm_stream_clock *c);

static inline uint64_t sm_clock_ticks(struct sm_stream_clock *c) {
    uint64_t counts = SM_CLOCK_HAVE_COUNTER ? sm_clock_counter() - c->counter : 0;
    if (__builtin_expect(counts >= c->span, 0))
        return sm_clock_read(c);
    return c->ticks + ((c->fraction + counts * c->tick_scale) >> 32);
}

#endif
