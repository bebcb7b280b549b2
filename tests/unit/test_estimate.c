/* Estimates and their intervals, against values computed by summing Poisson probabilities elsewhere,
   and against a simulation of the sampler. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/estimate.h"

static void near(double a, double b, double relative) {
    if (fabs(a - b) > relative * fabs(b))
        fail_msg("%.9g is not %.9g", a, b);
}

static void poisson_limits(void **state) {
    static const struct {
        uint64_t n;
        double low, high;
    } known[] = {{1, 0.02531780798, 5.571643391}, {5, 1.62348639, 11.66833208},
                 {10, 4.795388696, 18.39035604},  {100, 81.36399125, 121.6267938},
                 {101, 82.26615879, 122.7241557}, {1000, 938.9730184, 1063.952136}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        double low, high;
        sm_poisson_interval(known[i].n, &low, &high);
        near(low, known[i].low, known[i].n > 100 ? 1e-4 : 1e-8);
        near(high, known[i].high, known[i].n > 100 ? 1e-4 : 1e-8);
    }
    double low, high;
    sm_poisson_interval(0, &low, &high);
    assert_true(low == 0);
    near(high, 3.688879454, 1e-8);
}

static void rates(void **state) {
    struct sm_estimate e = sm_estimate(1000, 1, 8);
    assert_true(e.exact && e.value == 8000 && e.low == 8000 && e.high == 8000);
    assert_true(sm_estimate_error(&e) == 0);
    e = sm_estimate(1000, 1e-3, 8);
    assert_false(e.exact);
    near(e.value, 8e6, 1e-12);
    near(e.low, 1e6 * 8 * (1 - 0.061026982 * sqrt(0.999)), 1e-4);
    near(e.high, 1e6 * 8 * (1 + 0.063952136 * sqrt(0.999)), 1e-4);
    e = sm_estimate(3, 0.9, 1);
    assert_true(e.low == 3); /* three were seen */
    e = sm_estimate(5, 0, 8);
    assert_true(isnan(e.value) && isnan(e.low) && isnan(e.high) && e.samples == 5);
    e = sm_estimate(0, 0.5, 8);
    assert_true(e.value == 0 && e.high > 0 && isnan(sm_estimate_error(&e)));
}

/* 4000 traces of N words each: the interval must hold N in 95 %, within four standard errors
   (and above; the interval may be too careful). Fixed seed. */
static void coverage(void **state) {
    static const struct {
        unsigned words;
        double rate;
    } cases[] = {{400, 0.01}, {300, 0.5}, {2000, 0.1}, {50, 0.9}};
    uint64_t random = 88172645463325252u;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        unsigned held = 0;
        double sum = 0;
        for (unsigned i = 0; i < 4000; i++) {
            uint64_t n = 0;
            for (unsigned w = 0; w < cases[c].words; w++) {
                random ^= random << 13, random ^= random >> 7, random ^= random << 17;
                n += (double)(random >> 11) * 0x1p-53 < cases[c].rate;
            }
            struct sm_estimate e = sm_estimate(n, cases[c].rate, 1);
            held += e.low <= cases[c].words && cases[c].words <= e.high;
            sum += e.value;
        }
        assert_true(held >= 0.95 * 4000 - 4 * sqrt(4000 * 0.95 * 0.05));
        near(sum / 4000, cases[c].words,
             4 * sqrt(cases[c].words * (1 - cases[c].rate) / cases[c].rate / 4000) /
                 cases[c].words);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(poisson_limits),
        cmocka_unit_test(rates),
        cmocka_unit_test(coverage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
