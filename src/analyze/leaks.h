/* Generations and leak scores of sites. Hosted; reads the analysis only. See docs/leaks.md for the
   definition and what it is good for. */
#ifndef SM_ANALYZE_LEAKS_H
#define SM_ANALYZE_LEAKS_H

#include "analyze/merged.h"

/* The run is cut into `n_generations` equal spans (of time). For a site:
   - live: never freed at the end; spread: the share of generations in whose span at least one block was
     allocated that lives at the end, from the site's first allocation on;
   - survival: live units / allocated units;
   - growth: slope of live bytes per second by least squares over the generations' ends, after the site's first allocation, with the
     95 % interval of the slope;
   - score in [0, 1]: spread x survival-of-older-half x (growth interval above 0 ? 1 : 1/2). */
struct sm_leak {
    uint32_t key; /* of the view, of the allocation site */
    struct sm_sum allocated, live;
    int64_t first_ns, last_ns; /* oldest and youngest allocation alive at the end */
    double mean_age_ns;        /* weighted by units */
    uint32_t generations, generations_possible;
    double slope, slope_low, slope_high; /* bytes per second */
    double score;
};
struct sm_leaks {
    struct sm_leak *list; /* by falling score x live */
    uint32_t n;
    uint32_t n_generations;
};
void sm_leaks_make(struct sm_leaks *l, const struct sm_view *v, const struct sm_selection *s,
                   uint32_t n_generations, unsigned threads);
void sm_leaks_release(struct sm_leaks *l);

#endif
