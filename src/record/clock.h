/* The time of events: CLOCK_MONOTONIC, in ticks, mostly without asking the system. Hook-safe.

   clock_gettime costs 25-30 ns, half of what a short event costs altogether; reading the processor's
   time-stamp counter costs 8-12. So a stream asks the system once in a while and adds what the counter
   has advanced since:

       ns = anchor_ns + (tsc - anchor_tsc) * ns_per_cycle          while tsc - anchor_tsc < window

   Why this may be trusted:
   - It is done only where the kernel itself keeps its clock by that counter (clocksource "tsc", which it
     drops when counters of processors disagree or stop), on a processor that calls it invariant.
   - A window is a millisecond, then the system is asked again; whatever went wrong in between (a virtual machine
     moved, say) is over by then. At each new anchor the two are compared; when they differ by more than
     SM_CLOCK_TOLERANCE_NS the stream asks the system for every event from then on.
   - ns_per_cycle comes from the session's start to the anchor, 4 ms at least; until then the system is asked.
     The error of a reading is about 50 ns, so that of the rate below 2e-5: 20 ns in a window, a fiftieth of a tick.
   - Times never decrease within a stream: the encoder gives the last one again (docs/format.md, 5).

   Where any of this is missing, every event asks the system. STATMEM_CLOCK=system in the environment makes it so too. */
#ifndef SM_RECORD_CLOCK_H
#define SM_RECORD_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>
static inline uint64_t sm_cycles(void) {
    return __rdtsc();
}
#else
static inline uint64_t sm_cycles(void) {
    return 0;
}
#endif

#define SM_CLOCK_WINDOW_NS 1000000u
#define SM_CLOCK_CALIBRATION_NS 4000000u
#define SM_CLOCK_TOLERANCE_NS 20000u

/* Of the session: written before it is published, then only read. */
struct sm_clock_base {
    bool usable; /* the counter is what the kernel's clock is made of */
    uint64_t start_cycles, start_ns;
};

/* Of a stream: its owner's alone. */
struct sm_event_clock {
    uint64_t anchor_cycles;
    uint64_t window_cycles; /* 0 = ask the system */
    uint64_t anchor_ns;
    uint64_t ns_per_cycle; /* times 2^32 */
    bool distrusted;       /* for the rest of the session */
};

void sm_clock_begin(struct sm_clock_base *base);

/* Asks the system, and sets the next anchor. */
uint64_t sm_clock_anchor(struct sm_event_clock *clock, const struct sm_clock_base *base);

/* Nanoseconds of CLOCK_MONOTONIC. */
static inline uint64_t sm_clock_now(struct sm_event_clock *clock,
                                    const struct sm_clock_base *base) {
    uint64_t advanced = sm_cycles() - clock->anchor_cycles;
    if (__builtin_expect(advanced < clock->window_cycles, 1))
        return clock->anchor_ns + (advanced * clock->ns_per_cycle >> 32);
    return sm_clock_anchor(clock, base);
}

#endif
