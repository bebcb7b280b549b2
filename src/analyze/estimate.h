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

/* The larger half of the interval relative to the value: 0.021 = 2.1 %. NAN when undefined. */
double sm_estimate_error(const struct sm_estimate *e);

#endif
