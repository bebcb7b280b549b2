/* Analyses out of nothing, with every case that columns have: escapes, wide ages, equal times. */
#ifndef MADE_ANALYSIS_H
#define MADE_ANALYSIS_H

#include "analyze/analysis.h"

struct made_options {
    uint32_t n_rows, n_nodes, n_functions, n_classes;
    bool odd; /* many escapes and equal times; else as programs are */
};

/* The same seed gives the same analysis. */
struct sm_analysis *made_analysis(uint64_t seed, const struct made_options *options);
void made_analysis_free(struct sm_analysis *a);

#endif
