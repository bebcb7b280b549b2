/* See naive_select.c. */
#ifndef NAIVE_SELECT_H
#define NAIVE_SELECT_H

#include "analyze/analysis.h"
#include "analyze/filter.h"

bool naive_select(const struct sm_analysis *a, const struct sm_filter *f, uint32_t row);

#endif
