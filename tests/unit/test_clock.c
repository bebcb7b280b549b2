/* The clock of events against the system's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "base/os.h"
#include "record/clock.h"

/* Reads the clock between two readings of the system's, for `ms`; returns how often it told a time that lay outside
   of them by more than `slack_ns`, and in *asked how often it asked the system. */
static uint32_t compare(struct sm_event_clock *clock, const struct sm_clock_base *base, unsigned ms,
                        uint64_t slack_ns, uint32_t *readings, uint32_t *asked) {
    uint32_t wrong = 0;
    *readings = *asked = 0;
    uint64_t begin = sm_os_monotonic_ns();
    for (uint64_t before = begin; before - begin < (uint64_t)ms * 1000000u;) {
        uint64_t anchor = clock->anchor_cycles;
        uint64_t told = sm_clock_now(clock, base);
        uint64_t after = sm_os_monotonic_ns();
        *asked += clock->anchor_cycles != anchor || clock->window_cycles == 0;
        wrong += told + slack_ns < before || told > after + slack_ns;
        ++*readings;
        before = after;
    }
    return wrong;
}

static void test_follows_the_system(void **state) {
    struct sm_clock_base base;
    struct sm_event_clock clock = {0};
    uint32_t readings, asked;
    sm_clock_begin(&base);
    /* A thousandth of a microsecond's tick is not asked for, two microseconds are. */
    uint32_t wrong = compare(&clock, &base, 300, 2000, &readings, &asked);
    assert_int_equal(wrong, 0);
    assert_true(readings > 1000);
    if (base.usable && !clock.distrusted)
        assert_true(asked < readings / 2);
    else
        assert_int_equal(asked, readings);
}

static void test_wrong_counter_is_found_out(void **state) {
    struct sm_clock_base base;
    struct sm_event_clock clock = {0};
    uint32_t readings, asked;
    sm_clock_begin(&base);
    if (!base.usable)
        skip();
    compare(&clock, &base, 10, 2000, &readings, &asked);
    /* As if the counter ran at half its rate: off by half a millisecond at the window's end. */
    clock.ns_per_cycle *= 2;
    compare(&clock, &base, 5, 2000, &readings, &asked);
    assert_true(clock.distrusted);
    assert_int_equal(compare(&clock, &base, 5, 0, &readings, &asked), 0);
    assert_int_equal(asked, readings);
}

static void test_can_be_turned_off(void **state) {
    struct sm_clock_base base;
    setenv("STATMEM_CLOCK", "system", 1);
    sm_clock_begin(&base);
    unsetenv("STATMEM_CLOCK");
    assert_false(base.usable);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows_the_system),
        cmocka_unit_test(test_wrong_counter_is_found_out),
        cmocka_unit_test(test_can_be_turned_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
