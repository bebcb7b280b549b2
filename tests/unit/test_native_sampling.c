/* Byte sampling of native memory is unbiased: at every interval and size, from a thread's first byte, over mixed sizes, by
   the estimator of the reports. Seeds are fixed, so these tests never flake; the bounds are 5 standard deviations. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "native/native.h"
#include "record/recorder.h"

static void start(uint64_t interval, uint64_t seed) {
    char err[256];
    struct sm_recorder_config recorder = {.path = "/dev/null",
                                          .fd = -1,
                                          .native_interval_bytes = interval,
                                          .has_seed = true,
                                          .seed = seed};
    struct sm_native_config native = {.interval_bytes = interval, .has_seed = true, .seed = seed};
    sm_recorder_stop(SM_REASON_STOPPED);
    if (sm_recorder_start(&recorder, err, sizeof err) != 0)
        fail_msg("%s", err);
    assert_true(sm_native_start(&native));
}

/* What interpose.c does with an allocation: true when it is sampled. */
static bool allocate(size_t n) {
    return sm_native_count(n) && sm_native_decide(n);
}

static double probability(double size, double interval) {
    return interval <= 1 ? 1 : -expm1(-size / interval);
}

static void check_z(const char *what, double observed, double expected, double variance) {
    double d = observed - expected;
    if (d * d > 25 * variance)
        fail_msg("%s: observed %f, expected %f, standard deviation %f", what, observed, expected,
                 sqrt(variance));
}

static void test_probability(void **state) {
    static const uint64_t intervals[] = {2, 100, 4096, 65536, 524288, 1048576};
    static const size_t sizes[] = {1, 8, 64, 1000, 4096, 100000, 1048576, 10000000};
    for (size_t r = 0; r < sizeof intervals / sizeof intervals[0]; r++) {
        start(intervals[r], 1 + r);
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            double p = probability((double)sizes[k], (double)intervals[r]);
            uint64_t calls = p > 1e-3 ? 100000 : 3000000, n = 0;
            for (uint64_t i = 0; i < calls; i++)
                n += allocate(sizes[k]);
            char what[64];
            snprintf(what, sizeof what, "size %zu, interval %llu", sizes[k],
                     (unsigned long long)intervals[r]);
            check_z(what, (double)n, p * (double)calls, p * (1 - p) * (double)calls + 1);
        }
    }
}

/* The sum of S / p over the samples is the sum of S over all, within its own standard deviation. */
static void test_estimator(void **state) {
    static const uint64_t intervals[] = {4096, 16384, 65536, 262144, 524288, 1048576};
    for (size_t r = 0; r < sizeof intervals / sizeof intervals[0]; r++) {
        for (uint64_t seed = 1; seed <= 5; seed++) {
            double interval = (double)intervals[r], truth = 0, estimate = 0, variance = 0;
            uint64_t random = seed;
            start(intervals[r], seed * 1000 + r);
            for (int i = 0; i < 400000; i++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                /* 1 byte to 256 KiB, small ones most often, in an order that repeats nothing. */
                size_t size = (size_t)1 << (random >> 59 & 15);
                size += random >> 33 & (size - 1);
                if (i % 1000 == 0)
                    size += 200000;
                truth += (double)size;
                double p = probability((double)size, interval), w = (double)size / p;
                variance += (double)size * w * (1 - p);
                if (allocate(size))
                    estimate += w;
            }
            char what[64];
            snprintf(what, sizeof what, "interval %llu, seed %llu",
                     (unsigned long long)intervals[r], (unsigned long long)seed);
            check_z(what, estimate, truth, variance);
        }
    }
}

/* Threads that allocate less than the interval in all: their first bytes are as likely as any. */
enum { SHORT_THREADS = 4000, BYTES_A_THREAD = 2048 };
static uint64_t sampled_at[4]; /* by quarter of the thread's bytes */

static void *short_thread(void *ctx) {
    for (size_t i = 0; i < BYTES_A_THREAD / 64; i++)
        sampled_at[i * 4 / (BYTES_A_THREAD / 64)] += allocate(64);
    return NULL;
}

static void test_first_bytes(void **state) {
    start(4096, 77);
    memset(sampled_at, 0, sizeof sampled_at);
    for (int i = 0; i < SHORT_THREADS; i++) {
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, short_thread, NULL), 0);
        pthread_join(t, NULL);
    }
    double p = probability(64, 4096), calls = (double)SHORT_THREADS * BYTES_A_THREAD / 64 / 4;
    for (int q = 0; q < 4; q++)
        check_z("a quarter of short threads' bytes", (double)sampled_at[q], p * calls,
                p * (1 - p) * calls);
}

static void test_every_allocation(void **state) {
    start(1, 1);
    for (size_t n = 0; n < 1000; n++)
        assert_true(allocate(n));
    assert_true(allocate(SIZE_MAX)); /* it will fail, and is not recorded then */
    assert_true(allocate(0));
}

/* A size that cannot be: the countdown stays sane. */
static void test_absurd_sizes(void **state) {
    start(4096, 5);
    uint64_t n = 0;
    for (int i = 0; i < 100; i++) {
        allocate(SIZE_MAX);
        allocate((size_t)1 << 63);
    }
    for (int i = 0; i < 100000; i++)
        n += allocate(4096);
    check_z("after absurd sizes", (double)n, 100000 * probability(4096, 4096),
            100000 * 0.632 * 0.368);
}

/* Nothing is recorded: a look now and then, and the start of a session is noticed. */
static void test_idle(void **state) {
    sm_recorder_stop(SM_REASON_STOPPED);
    for (int i = 0; i < 100000; i++)
        assert_false(allocate(4096));
    start(1, 1);
    assert_true(allocate(16));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probability),  cmocka_unit_test(test_estimator),
        cmocka_unit_test(test_first_bytes),  cmocka_unit_test(test_every_allocation),
        cmocka_unit_test(test_absurd_sizes), cmocka_unit_test(test_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
