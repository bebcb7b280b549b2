/* A filter change on a trace of ten million allocations: selecting rows, and grouping them again by function. The
   columns are made, not read: 1 M call-stack nodes, 20 000 functions, one row in eleven with a wide age. Figures are
   the best of five. Usage: bench_select [ROWS] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analyze/merged.h"
#include "analyze/select.h"
#include "made_analysis.h"

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

struct times {
    double select, group;
    uint32_t n_rows;
};

static void measure(struct times *best, const struct sm_analysis *a, const struct sm_view *view,
                    const struct sm_filter *f, unsigned threads) {
    struct sm_weight weight = {.kind = SM_WEIGHT_ALLOCATED};
    struct sm_selection s;
    struct sm_weigher w;
    double start = now_ms();
    sm_select(&s, a, f, threads);
    double selected = now_ms();
    sm_weigher_init(&w, a, &s, &weight, threads);
    struct sm_sum *nodes = sm_weigh_nodes(&w, threads);
    struct sm_key_sum *sums = sm_view_sums(view, nodes);
    double end = now_ms();
    if (selected - start < best->select)
        best->select = selected - start;
    if (end - selected < best->group)
        best->group = end - selected;
    best->n_rows = s.n_rows;
    free(sums);
    free(nodes);
    sm_weigher_release(&w);
    sm_selection_release(&s);
}

int main(int argc, char **argv) {
    static const char *const filters[] = {
        "allocated in 1ms..5s",
        "live at peak",
        "live at 50%",
        "live in 20%..30%",
        "collected in 20%..30%",
        "promoted",
        "size in 16w..32w",
        "lifetime <= 10us",
        "source in major,external",
        "inside module Stdlib",
        "site /f[12]+$/",
        "inside ~ List and not inside ~ Pars",
        "size > 64B and lifetime < 1ms and inside module Stdlib and live in 10%..90%",
        "not (size > 64B or promoted) or lifetime < 1us and domain = 1"};
    struct made_options o = {.n_rows = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10000000,
                             .n_nodes = 1000000,
                             .n_functions = 20000,
                             .n_classes = 30};
    struct sm_analysis *a = made_analysis(77, &o);
    struct sm_view view;
    sm_view_make(&view, a, SM_KEY_FUNCTION, NULL, NULL);
    printf("  %-78s %10s %8s %8s %8s %8s\n", "", "rows", "select", "group", "select", "group");
    printf("  %-78s %10s %8s %8s %8s %8s\n", "", "", "1 thread", "", "2", "");
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        struct sm_filter *f = sm_filter_parse(filters[i], strlen(filters[i]), NULL);
        if (f == NULL)
            return 1;
        struct times best[2] = {{1e9, 1e9, 0}, {1e9, 1e9, 0}};
        for (int k = 0; k < 5; k++) {
            measure(&best[0], a, &view, f, 1);
            measure(&best[1], a, &view, f, 2);
        }
        printf("  %-78s %10u %8.1f %8.1f %8.1f %8.1f\n", filters[i], best[0].n_rows, best[0].select,
               best[0].group, best[1].select, best[1].group);
        sm_filter_free(f);
    }
    sm_view_release(&view);
    made_analysis_free(a);
    return 0;
}
