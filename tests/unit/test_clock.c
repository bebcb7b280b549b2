/* The time of events against CLOCK_MONOTONIC: every reading stands between two of the real clock, give or take
   the error that clock.h promises; and extrapolation does take place where it can. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "record/clock.h"

#define ERROR_NS 2000

struct course {
    uint64_t events, off, worst_ns, extrapolated, decreased, decreased_worst_ticks;
};

/* Reads for so long, with an optional pause now and then. */
static struct course follow(struct sm_stream_clock *c, uint64_t duration_ns, bool pauses) {
    struct course r = {0};
    uint64_t begin = sm_os_monotonic_ns(), last_ticks = 0;
    while (sm_os_monotonic_ns() - begin < duration_ns) {
        for (int k = 0; k < 200; k++) {
            uint64_t readings = c->ns;
            bool inside = c->span != 0;
            uint64_t low = sm_os_monotonic_ns();
            uint64_t ticks = sm_clock_ticks(c);
            uint64_t high = sm_os_monotonic_ns();
            r.events++;
            r.extrapolated += inside && c->span != 0 && c->ns == readings;
            uint64_t ns = ticks * c->tick_ns; /* the tick's begin: up to a tick before the time */
            uint64_t error = ns + c->tick_ns <= low ? low - ns - c->tick_ns + 1
                             : ns > high            ? ns - high
                                                    : 0;
            if (error > r.worst_ns)
                r.worst_ns = error;
            r.off += error > ERROR_NS;
            if (ticks < last_ticks) {
                r.decreased++;
                if (last_ticks - ticks > r.decreased_worst_ticks)
                    r.decreased_worst_ticks = last_ticks - ticks;
            }
            last_ticks = ticks;
        }
        if (pauses)
            sm_os_sleep_us(300 + (uint32_t)(r.events % 7) * 900);
    }
    return r;
}

static void test_follows_real_clock(void **state) {
    if (!sm_clock_usable())
        skip();
    for (int round = 0; round < 4; round++) {
        struct sm_stream_clock c;
        sm_clock_begin(&c, round & 1 ? 1 : 1000, false);
        struct course r = follow(&c, 500000000, round >= 2);
        print_message("%s, tick %u ns: %llu events, %llu extrapolated, worst error %llu ns\n",
                      round >= 2 ? "with pauses" : "dense", c.tick_ns, (unsigned long long)r.events,
                      (unsigned long long)r.extrapolated, (unsigned long long)r.worst_ns);
        /* A hypervisor may take the processor between a reading of the counter and one of the clock. */
        assert_true(r.off <= r.events / 100000);
        assert_true(r.extrapolated > r.events / (round >= 2 ? 20 : 2));
        assert_true(r.decreased_worst_ticks * c.tick_ns <= ERROR_NS);
    }
}

static void test_plain(void **state) {
    struct sm_stream_clock c;
    sm_clock_begin(&c, 1000, true);
    struct course r = follow(&c, 20000000, false);
    assert_int_equal(r.extrapolated, 0);
    assert_int_equal(r.worst_ns, 0);
    assert_int_equal(r.decreased, 0);
}

/* A counter that jumps, or changes its speed, is noticed at the next real reading and not trusted then. */
static void test_disturbed(void **state) {
    if (!sm_clock_usable())
        skip();
    struct sm_stream_clock c;
    sm_clock_begin(&c, 1000, false);
    follow(&c, 20000000, false);
    assert_true(c.span != 0);

    c.counter += (uint64_t)1 << 50; /* it went backwards */
    uint64_t low = sm_os_monotonic_ns() / 1000, ticks = sm_clock_ticks(&c);
    assert_true(ticks >= low && ticks <= sm_os_monotonic_ns() / 1000);
    struct course r = follow(&c, 20000000, false);
    assert_true(r.off <= 1);
    assert_true(c.span != 0);

    c.ns_scale += c.ns_scale / 1000; /* measured otherwise before: do not extrapolate at once */
    uint64_t ns = c.ns;
    while (c.ns == ns) {
        c.span = 0;
        sm_clock_ticks(&c);
    }
    assert_int_equal(c.span, 0);
    r = follow(&c, 20000000, false);
    assert_true(r.off <= 1);
    assert_true(c.span != 0);

    c.ns -= 2000000000u; /* a pause that the counter slept through */
    c.span = 0;
    sm_clock_ticks(&c);
    assert_int_equal(c.span, 0);
    r = follow(&c, 20000000, false);
    assert_true(r.off <= 1);
    assert_true(c.span != 0);
}

static void test_can_be_turned_off(void **state) {
    bool usable = sm_clock_usable();
    setenv("STATMEM_CLOCK", "system", 1);
    assert_false(sm_clock_usable());
    setenv("STATMEM_CLOCK", "", 1);
    assert_int_equal(sm_clock_usable(), usable);
    unsetenv("STATMEM_CLOCK");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows_real_clock),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_disturbed),
        cmocka_unit_test(test_can_be_turned_off),
    };
    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
