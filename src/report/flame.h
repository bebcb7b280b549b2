/* `flame`: a flame graph as a self-contained SVG or HTML file, also of a difference. Hosted. */
#ifndef SM_REPORT_FLAME_H
#define SM_REPORT_FLAME_H

#include "report/tree.h"

struct sm_flame_options {
    const char *title; /* "" = made of program and weight */
    unsigned width;    /* pixels; 0 = 1200 */
    bool html;
    /* A second tree to compare with: boxes are as wide as in `r`, their colour tells what they
       were in `before`, scaled so that the totals agree when `normalise`. NULL = none. */
    const struct sm_tree_report *before;
    bool normalise;
};

/* Callees grow upwards, callers downwards. Boxes thinner than a third of a pixel are left out. */
void sm_flame_write(struct sm_buffer *out, const struct sm_tree_report *r,
                    const struct sm_flame_options *o);

#endif
