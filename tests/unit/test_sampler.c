/* The sampler is unbiased and geometric. Seeds are fixed, so these tests never flake; the bounds are wide enough
   for any seed (5 standard deviations) and narrow enough to see an error of a fraction of a percent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "record/recorder.h"

static void start(double rate, uint64_t seed) {
    char err[256];
    struct sm_recorder_config c = {
        .path = "/dev/null", .fd = -1, .sample_rate = rate, .has_seed = true, .seed = seed};
    if (sm_recorder_start(&c, err, sizeof err) != 0)
        fail_msg("%s", err);
}

/* |z| < 5, without libm */
static void check_z(double observed, double expected, double variance) {
    double d = observed - expected;
    if (d * d > 25 * variance)
        fail_msg("observed %f, expected %f, variance %f", observed, expected, variance);
}

static void test_mean(void **state) {
    static const double rates[] = {1e-1, 1e-2, 1e-3, 1e-4, 3e-1, 0.9};
    static const uint64_t sizes[] = {1, 7, 100, 4096};
    for (size_t r = 0; r < 6; r++) {
        for (size_t k = 0; k < 4; k++) {
            for (uint64_t seed = 1; seed <= 3; seed++) {
                start(rates[r], seed);
                uint64_t n = 0, calls = (uint64_t)(300000 / (rates[r] * (double)sizes[k]));
                if (calls > 300000)
                    calls = 300000;
                for (uint64_t i = 0; i < calls; i++)
                    n += sm_recorder_sample(sizes[k]);
                double units = (double)calls * (double)sizes[k];
                check_z((double)n, units * rates[r], units * rates[r] * (1 - rates[r]) + 1);
                sm_recorder_stop(SM_REASON_EXIT);
            }
        }
    }
}

/* Gaps of single units follow the geometric law: chi-square over 20 classes of equal probability. */
static void test_gaps(void **state) {
    static const double rates[] = {0.5, 0.05, 0.001};
    for (size_t r = 0; r < 3; r++) {
        double rate = rates[r];
        start(rate, 99);
        static uint64_t counts[20001];
        memset(counts, 0, sizeof counts);
        uint64_t gap = 0, total = 0;
        while (total < 20000) {
            gap++;
            if (sm_recorder_sample(1) != 0) {
                counts[gap < 20000 ? gap : 20000]++;
                total++;
                gap = 0;
            }
        }
        sm_recorder_stop(SM_REASON_EXIT);
        double chi = 0, expected = 0, observed = 0, p = rate;
        uint32_t classes = 0;
        for (uint64_t g = 1; g < 20000; g++, p *= 1 - rate) {
            expected += (double)total * p;
            observed += (double)counts[g];
            if (expected >= (double)total / 20) {
                chi += (observed - expected) * (observed - expected) / expected;
                expected = observed = 0;
                classes++;
            }
        }
        if (chi >
            classes + 5 * 2 * (double)classes) /* far beyond 5 standard deviations' sqrt(2n) */
            fail_msg("rate %f: chi-square %f over %u classes", rate, chi, classes);
        assert_true(classes >= 1);
    }
}

/* Sizes whose samples are drawn at once agree with the rest. */
static void test_large(void **state) {
    start(0.01, 5);
    double sum = 0, squares = 0;
    for (int i = 0; i < 2000; i++) {
        double x = (double)sm_recorder_sample(100000000) - 1e6;
        sum += x;
        squares += x * x;
    }
    check_z(sum, 0, 2000 * 1e6 * 0.99);
    assert_true(squares / 2000 > 0.99e6 * 0.8 && squares / 2000 < 0.99e6 * 1.2);
    assert_true(sm_recorder_sample(UINT64_MAX) > 0); /* nonsense, but soon */
    sm_recorder_stop(SM_REASON_EXIT);
    start(1, 5);
    assert_true(sm_recorder_sample(1) == 1);
    assert_true(sm_recorder_sample(12345) == 12345);
    assert_true(sm_recorder_sample(1ull << 40) == 1ull << 40);
    assert_true(sm_recorder_sample(0) == 0);
    sm_recorder_stop(SM_REASON_EXIT);
    assert_true(sm_recorder_sample(1000000) == 0);
}

static void test_seeds(void **state) {
    uint64_t results[3];
    for (int i = 0; i < 3; i++) {
        start(0.01, i < 2 ? 7 : 8);
        uint64_t h = 0;
        for (int k = 0; k < 10000; k++)
            h = h * 31 + sm_recorder_sample(50);
        results[i] = h;
        sm_recorder_stop(SM_REASON_EXIT);
    }
    assert_true(results[0] == results[1]); /* a seed repeats */
    assert_true(results[0] != results[2]); /* another does not */
}

/* Published first outputs of xoshiro256++ for the state 1, 2, 3, 4. */
static void test_generator(void **state) {
    struct sm_prng g = {{1, 2, 3, 4}};
    assert_true(sm_prng_next(&g) == 41943041);
    assert_true(sm_prng_next(&g) == 58720359);
    assert_true(sm_prng_next(&g) == 3588806011781223ull);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_generator), cmocka_unit_test(test_mean),  cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_large),     cmocka_unit_test(test_seeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
