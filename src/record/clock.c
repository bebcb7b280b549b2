/* Real readings of the clock, and whether the counter may stand in between; see clock.h. */
#include "record/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#if SM_CLOCK_HAVE_COUNTER
#include <cpuid.h>
#endif

/* A reading between two counts further apart is not trusted: clock_gettime takes some 30 ns. */
#define WINDOW_NS 500u
/* Two measurements of the factor must agree to 1/2000. */
#define AGREEMENT 2000u
/* The factor is measured over at least a span and at most this: counts * 2^32 must not overflow. */
#define LONGEST_NS 1000000000u

bool sm_clock_usable(void) {
#if SM_CLOCK_HAVE_COUNTER
    const char *wish = getenv("STATMEM_CLOCK");
    if (wish != NULL && strcmp(wish, "system") == 0)
        return false;
    unsigned a, b, c, d = 0;
    if (__get_cpuid(0x80000007, &a, &b, &c, &d) == 0 || (d & 1u << 8) == 0)
        return false;
    char source[8];
    int saved_errno = errno;
    long n = sm_os_read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                             source, sizeof source);
    errno = saved_errno;
    return n >= 4 && memcmp(source, "tsc\n", 4) == 0;
#else
    return false;
#endif
}

void sm_clock_begin(struct sm_stream_clock *c, uint32_t tick_ns, bool plain) {
    memset(c, 0, sizeof *c);
    c->tick_ns = tick_ns;
    c->plain = plain || !SM_CLOCK_HAVE_COUNTER;
}

static uint64_t ticks_of(const struct sm_stream_clock *c, uint64_t ns) {
    return c->tick_ns == 1000 ? ns / 1000 : ns / c->tick_ns; /* a constant's division is cheaper */
}

/* Whether the factor measured just now may be used: it must agree with the one before. */
static bool agree(uint64_t scale, uint64_t before) {
    uint64_t apart = scale > before ? scale - before : before - scale;
    return before != 0 && apart <= before / AGREEMENT;
}

__attribute__((noinline)) uint64_t sm_clock_read(struct sm_stream_clock *c) {
    if (c->plain)
        return ticks_of(c, sm_os_monotonic_ns());

    uint64_t before = sm_clock_counter();
    uint64_t ns = sm_os_monotonic_ns();
    uint64_t window = sm_clock_counter() - before;
    uint64_t now_ticks = ticks_of(c, ns);
    uint64_t counter = before + window / 2;

    /* No counter runs faster than 8 counts in a nanosecond: a bound while the factor is not known. */
    uint64_t window_ns =
        c->ns_scale != 0 && window < UINT32_MAX ? (window * c->ns_scale) >> 32 : window / 8;
    if (window_ns > WINDOW_NS) { /* preempted in between */
        c->span = 0;
        return now_ticks;
    }
    uint64_t passed_ns = ns - c->ns, counts = counter - c->counter;
    if (c->anchored && passed_ns < SM_CLOCK_SPAN_NS)
        return now_ticks; /* too early to measure the factor */
    c->span = 0;
    if (c->anchored && passed_ns <= LONGEST_NS && counts != 0 && counts < (uint64_t)1 << 40) {
        uint64_t scale = (passed_ns << 32) / counts;
        if (agree(scale, c->ns_scale) && scale != 0) {
            c->tick_scale = scale / c->tick_ns;
            c->span = ((uint64_t)SM_CLOCK_SPAN_NS << 32) / scale;
        }
        c->ns_scale = scale;
    } else if (c->anchored && c->ns_scale != 0 && passed_ns > LONGEST_NS &&
               counts < (uint64_t)1 << 40) {
        /* After a long pause: the factor known serves when it still explains the pause. */
        uint64_t expected = (uint64_t)(((unsigned __int128)counts * c->ns_scale) >> 32);
        uint64_t apart = expected > passed_ns ? expected - passed_ns : passed_ns - expected;
        if (apart <= passed_ns / AGREEMENT) {
            c->tick_scale = c->ns_scale / c->tick_ns;
            c->span = ((uint64_t)SM_CLOCK_SPAN_NS << 32) / c->ns_scale;
        } else {
            c->ns_scale = 0;
        }
    } else if (c->anchored) {
        c->ns_scale = 0;
    }
    c->anchored = true;
    c->counter = counter;
    c->ns = ns;
    c->ticks = now_ticks;
    c->fraction = ((ns - now_ticks * c->tick_ns) << 32) / c->tick_ns;
    return now_ticks;
}
