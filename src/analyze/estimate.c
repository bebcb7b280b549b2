/* See estimate.h. */
#include "analyze/estimate.h"

#include <math.h>

#define EXACT_LIMIT 100
#define Z 1.959963984540054 /* 97.5 % quantile of the normal distribution */

/* P(X <= n) for a Poisson variable of mean m, n at most EXACT_LIMIT. */
static double poisson_at_most(uint64_t n, double m) {
    double term = exp(-m), sum = term;
    for (uint64_t k = 1; k <= n; k++) {
        term *= m / (double)k;
        sum += term;
    }
    return sum;
}

/* The mean for which P(X <= n) = p. The probability falls as the mean grows. */
static double solve(uint64_t n, double p) {
    double low = 0, high = 4 + 2 * (double)n;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (poisson_at_most(n, middle) > p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

static double wilson_hilferty(double n, double z) {
    double x = 1 - 1 / (9 * n) + z / (3 * sqrt(n));
    return n * x * x * x;
}

void sm_poisson_interval(uint64_t n, double *low, double *high) {
    if (n <= EXACT_LIMIT) {
        *low = n == 0 ? 0 : solve(n - 1, 0.975);
        *high = solve(n, 0.025);
    } else {
        *low = wilson_hilferty((double)n, -Z);
        *high = wilson_hilferty((double)n + 1, Z);
    }
}

struct sm_estimate sm_estimate(uint64_t samples, double rate, double unit) {
    struct sm_estimate e = {.samples = samples, .value = NAN, .low = NAN, .high = NAN};
    if (!(rate > 0 && rate <= 1))
        return e;
    double n = (double)samples, low, high, narrow = sqrt(1 - rate);
    sm_poisson_interval(samples, &low, &high);
    e.exact = rate == 1;
    e.value = n / rate * unit;
    low = (n - (n - low) * narrow) / rate;
    e.low = (low > n ? low : n) * unit;
    e.high = (n + (high - n) * narrow) / rate * unit;
    return e;
}

double sm_estimate_error(const struct sm_estimate *e) {
    if (!(e->value > 0))
        return NAN;
    return fmax(e->high - e->value, e->value - e->low) / e->value;
}

double sm_byte_probability(double size_bytes, double interval_bytes) {
    return interval_bytes <= 1 ? 1 : -expm1(-size_bytes / interval_bytes);
}

static void weigh(struct sm_byte_sum *sum, double size, double interval, double sign) {
    double p = sm_byte_probability(size, interval);
    double weight = p > 0 ? size / p : interval; /* the limit for size 0, which is not sampled */
    sum->bytes += sign * weight;
    sum->seen += sign * size;
    sum->variance += sign * weight * weight * (1 - p);
}

void sm_byte_sum_add(struct sm_byte_sum *sum, double size_bytes, double interval_bytes) {
    sum->blocks++;
    weigh(sum, size_bytes, interval_bytes, 1);
}

void sm_byte_sum_subtract(struct sm_byte_sum *sum, double size_bytes, double interval_bytes) {
    sum->blocks--;
    if (sum->blocks == 0) /* rounding errors end here */
        *sum = (struct sm_byte_sum){0};
    else
        weigh(sum, size_bytes, interval_bytes, -1);
}

struct sm_estimate sm_byte_estimate(const struct sm_byte_sum *sum, double interval_bytes) {
    struct sm_estimate e = {.samples = sum->blocks, .value = NAN, .low = NAN, .high = NAN};
    if (!(interval_bytes >= 1))
        return e;
    e.exact = interval_bytes == 1;
    e.value = sum->bytes;
    double none, unseen, half = Z * sqrt(sum->variance > 0 ? sum->variance : 0);
    sm_poisson_interval(0, &none, &unseen);
    e.low = fmax(e.value - half, sum->seen);
    e.high = sum->blocks > 0 || e.exact ? e.value + half : unseen * interval_bytes;
    return e;
}
