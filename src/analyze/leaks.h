/* Generations and leak scores of sites. Hosted; reads the analysis only. See docs/leaks.md for the
   definition and what it is good for. */
#ifndef SM_ANALYZE_LEAKS_H
#define SM_ANALYZE_LEAKS_H

#include "analyze/merged.h"

/* The run is cut into equal spans of time, the generations; for a site those count that do not end before its
   first allocation.
   - spread: of these generations, among those in which the program allocated anything, the share in which the
     site allocated at least one block that lives at the end;
   - trend: Pearson's correlation of the site's live bytes at the generations' ends with time, 0 if negative or
     when there are fewer than three;
   - score = spread x trend, in [0, 1]. Memory that is filled once has a small spread, what is replaced as it goes has no
     trend, what merely waits for the collector is young, and so has a small spread again;
   - slope: least squares of the same points, bytes per second, with the 95 % interval that Student's
     distribution gives (at least three points, else NAN). */
struct sm_leak {
    uint32_t key; /* of the view, of the allocation site */
    struct sm_sum allocated, live;
    int64_t first_ns, last_ns; /* oldest and youngest allocation alive at the end */
    double mean_age_ns;        /* weighted by units */
    uint32_t generations, generations_possible;
    double slope, slope_low, slope_high; /* bytes per second */
    double spread, trend, score;
};
struct sm_leaks {
    struct sm_leak *list; /* by falling score x live */
    uint32_t n;
    uint32_t n_generations;
};
/* n_generations: 3 to 64; 0 = 20. Sites without live blocks are not listed. */
void sm_leaks_make(struct sm_leaks *l, const struct sm_view *v, const struct sm_selection *s,
                   uint32_t n_generations, unsigned threads);
void sm_leaks_release(struct sm_leaks *l);

#endif
