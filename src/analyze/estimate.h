/* What samples say about what was allocated. Hosted, pure.

   Memprof looks at each word of a block, header included, and samples it with probability r,
   independently of all others. Of N words n are sampled: n is binomial (N, r), and n / r is an unbiased
   estimate of N. At r = 1 it is N itself.

   The 95 % interval [low, high] holds N in at least 95 of 100 traces:
   1. Poisson limits of the count (F. Garwood, "Fiducial limits for the Poisson distribution",
      Biometrika 28, 1936): the mean m_low for which P(X >= n) = 2.5 % and m_high for which P(X <= n) =
      2.5 %. Up to 100 samples these are solved exactly; above, by Wilson and Hilferty's cube-root
      form of the chi-square quantile (PNAS 17, 1931), whose error there is below 0.01 %.
   2. The binomial's variance is smaller by the factor 1 - r: both distances from n are multiplied by
      sqrt(1 - r), so that the interval closes at r = 1.
   3. The n words that were seen exist: low is not less than n.
   With n = 0: [0, 3.69 sqrt(1 - r) / r]. */
#ifndef SM_ANALYZE_ESTIMATE_H
#define SM_ANALYZE_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

struct sm_estimate {
    uint64_t samples;
    double value;     /* NAN when the rate is unknown; so are low and high */
    double low, high; /* 95 % */
    bool exact;       /* rate 1 */
};

/* Words estimated from `samples` at `rate` (0 = unknown), each counting `unit` (bytes per word, or 1). */
struct sm_estimate sm_estimate(uint64_t samples, double rate, double unit);

/* The Poisson limits of step 1. */
void sm_poisson_interval(uint64_t n, double *low, double *high);

/* Memory sampled by bytes (docs/format.md, section 5.6): a block of S bytes is seen with the probability
   p = 1 - exp(-S/R), R being the mean interval, and counts S / p bytes when it is (Horvitz and Thompson, JASA 47, 1952). R = 1: p = 1. */
struct sm_byte_sum {
    uint64_t blocks;
    double bytes;    /* sum of S / p: the estimate */
    double seen;     /* sum of S */
    double variance; /* of the estimate: sum of (S / p)^2 (1 - p) */
};
/* The probability p. */
double sm_byte_probability(double size_bytes, double interval_bytes);
void sm_byte_sum_add(struct sm_byte_sum *sum, double size_bytes, double interval_bytes);
void sm_byte_sum_subtract(struct sm_byte_sum *sum, double size_bytes, double interval_bytes);
/* value +- 1.96 standard deviations, not below what was seen. Without a block: 0 to 3.69 R, as above. */
struct sm_estimate sm_byte_estimate(const struct sm_byte_sum *sum, double interval_bytes);

/* The larger half of the interval relative to the value: 0.021 = 2.1 %. NAN when undefined. */
double sm_estimate_error(const struct sm_estimate *e);

#endif
