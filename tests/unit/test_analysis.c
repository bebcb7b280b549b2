/* The engine on traces whose answers are computed by hand. The builder's rate is 1e-3 of 8-byte words: a unit is a
   sample, worth 8000 bytes. Its ticks are microseconds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyze/cache.h"
#include "analyze/curve.h"
#include "analyze/group.h"
#include "analyze/leaks.h"
#include "trace_builder.h"
#include "util/buffer.h"

enum { MAIN = 1, F = 2, G = 3, H = 4 };
#define MINOR SM_SOURCE(SM_HEAP_MINOR, SM_ORIGIN_NORMAL)
#define MAJOR SM_SOURCE(SM_HEAP_MAJOR, SM_ORIGIN_NORMAL)
#define SECOND ((uint64_t)1000000000)

static void begin(struct tb *b, uint32_t n_streams) {
    tb_init(b, n_streams);
    tb_meta(b);
    tb_name(b, MAIN, "main.ml", "Main.main", 1);
    tb_name(b, F, "lib.ml", "Lib.f", 11);
    tb_name(b, G, "lib.ml", "Lib.g", 22);
    tb_name(b, H, "other.ml", "Lib.f", 31); /* the name of F in another file */
    tb_flush_names(b);
}

static uint64_t at(const struct tb *b, uint64_t ns) {
    return b->start_ticks + ns / 1000;
}

static uint64_t alloc(struct tb *b, uint32_t stream, uint64_t ns, uint64_t samples,
                      const uint64_t *codes, uint32_t n) {
    return tb_alloc_full(b, stream, at(b, ns), samples, false, samples, MINOR, codes, n);
}

static struct sm_analysis *load(struct tb *b, unsigned threads) {
    struct sm_trace *t;
    struct sm_error err;
    struct sm_analysis *a;
    struct sm_analysis_options o = {.threads = threads};
    if (b->n_packets == 0 || b->packets[b->n_packets - 1].header.kind != SM_PACKET_END)
        tb_flush_all(b);
    assert_int_equal(sm_trace_open_memory(&t, b->data, b->bytes, NULL, &err), SM_OK);
    assert_int_equal(sm_analysis_of_trace(&a, t, &o, &err), SM_OK);
    sm_trace_free(t);
    return a;
}

static struct sm_weigher weigher(const struct sm_analysis *a, const char *text) {
    struct sm_weight w;
    struct sm_weigher to;
    struct sm_error err;
    assert_int_equal(sm_weight_parse(&w, text, a, &err), SM_OK);
    sm_weigher_init(&to, a, NULL, &w, 1);
    return to;
}

static uint64_t weight(const struct sm_analysis *a, const char *text) {
    struct sm_weigher w = weigher(a, text);
    struct sm_sum sum = sm_weigh(&w, 1);
    sm_weigher_release(&w);
    return sum.units;
}

static const uint64_t main_f[] = {MAIN, F}, main_f_g[] = {MAIN, F, G}, main_h[] = {MAIN, H};
static const uint64_t main_f_f_g[] = {MAIN, F, F, G};

/* time   1        2        3            4       5        6
          +10 a    +20 b    promote a    -b      +5 c     -a        live at the end: c */
static void story(struct tb *b) {
    begin(b, 1);
    uint64_t a = alloc(b, 0, 1000, 10, main_f, 2);
    uint64_t b2 = alloc(b, 0, 2000, 20, main_f_g, 3);
    tb_ref(b, 0, at(b, 3000), false, 0, a);
    tb_ref(b, 0, at(b, 4000), true, 0, b2);
    alloc(b, 0, 5000, 5, main_h, 2);
    tb_ref(b, 0, at(b, 6000), true, 0, a);
}

static void rows_and_weights(void **state) {
    struct tb b;
    story(&b);
    struct sm_analysis *a = load(&b, 1);
    assert_int_equal(a->rows.n, 3);
    assert_int_equal(a->rows.n_freed, 2);
    assert_int_equal(sm_row_alloc_ns(a, 1), 2000);
    assert_int_equal(sm_row_free_ns(a, 0), 6000);
    assert_int_equal(sm_row_promote_ns(a, 0), 3000);
    assert_true(sm_row_free_ns(a, 2) == SM_NEVER_NS);
    assert_true(sm_row_promote_ns(a, 1) == SM_NEVER_NS);
    assert_int_equal(sm_row_bytes(a, 1), 160);
    assert_int_equal(weight(a, "allocated"), 35);
    assert_int_equal(weight(a, "live@end"), 5);
    assert_int_equal(weight(a, "live@peak"), 30);
    assert_int_equal(weight(a, "freed"), 30);
    assert_int_equal(weight(a, "promoted"), 10);
    assert_int_equal(weight(a, "early"), 20);
    assert_int_equal(weight(a, "live@4000ns"), 10); /* b ended at that moment */
    assert_int_equal(weight(a, "live@3999ns"), 30);
    assert_int_equal(weight(a, "live@5us"), 15);
    assert_int_equal(weight(a, "temporary<2000ns"), 20);
    assert_int_equal(weight(a, "temporary<1999ns"), 0);
    /* Nothing was allocated between b and its end; 25 x 8000 bytes between a and its. */
    assert_int_equal(weight(a, "temporary<0B"), 20);
    assert_int_equal(weight(a, "temporary<199999B"), 20);
    assert_int_equal(weight(a, "temporary<200000B"), 30);
    assert_int_equal(weight(a, "temporary<1allocs"), 20);
    assert_int_equal(weight(a, "temporary<2allocs"), 30);
    assert_int_equal(weight(a, "samples"), 35);
    assert_int_equal(a->peak.units, 30);
    assert_int_equal(a->peak.ns, 2000);
    assert_int_equal(a->peak.row, 1);
    sm_analysis_free(a);
    tb_release(&b);
}

static void bad_weights_say_what_is_expected(void **state) {
    struct tb b;
    story(&b);
    struct sm_analysis *a = load(&b, 1);
    struct sm_weight w;
    struct sm_error err;
    static const char *const bad[] = {"",           "alive",        "live@",    "live@x",
                                      "temporary<", "temporary<xB", "live@101%"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(sm_weight_parse(&w, bad[i], a, &err), SM_FAILED);
        assert_non_null(strstr(err.text, "live@end"));
    }
    sm_analysis_free(a);
    tb_release(&b);
}

static void the_tree_is_in_preorder(void **state) {
    struct tb b;
    story(&b);
    alloc(&b, 0, 7000, 1, main_f_f_g, 4);
    struct sm_analysis *a = load(&b, 1);
    const struct sm_calltree *t = &a->tree;
    /* (all) main f g f g h */
    assert_int_equal(t->n_nodes, 7);
    assert_int_equal(t->end[0], 7);
    assert_int_equal(t->end[1], 7);
    assert_int_equal(t->end[2], 6);
    for (uint32_t i = 1; i < t->n_nodes; i++) {
        assert_true(t->parent[i] < i);
        assert_true(t->end[i] <= t->end[t->parent[i]]);
        assert_int_equal(t->depth[i], t->depth[t->parent[i]] + 1);
    }
    /* F below F is not the top one; H is another function of the same name. */
    unsigned top_f = 0, f = 0;
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        if (strcmp(sm_text(a, a->functions[t->function[i]].name), "Lib.f") == 0) {
            f++;
            top_f += (t->flags[i] & SM_NODE_TOP_FUNCTION) != 0;
        }
    }
    assert_int_equal(f, 3);
    assert_int_equal(top_f, 2);
    sm_analysis_free(a);
    tb_release(&b);
}

static uint32_t key_of(const struct sm_view *v, const char *name, const char *file) {
    const struct sm_analysis *a = v->analysis;
    for (uint32_t k = 0; k < v->n_keys; k++) {
        const struct sm_function *f = &a->functions[a->frames[v->spot[k]].function];
        if (strcmp(sm_text(a, f->name), name) == 0 && strcmp(sm_text(a, f->file), file) == 0)
            return k;
    }
    fail_msg("no key for %s in %s", name, file);
    return 0;
}

static void inclusive_sums_count_recursion_once(void **state) {
    struct tb b;
    story(&b);
    alloc(&b, 0, 7000, 100, main_f_f_g, 4);
    struct sm_analysis *a = load(&b, 1);
    struct sm_view v;
    sm_view_make(&v, a, SM_KEY_FUNCTION, NULL, NULL);
    struct sm_weigher w = weigher(a, "allocated");
    struct sm_sum *nodes = sm_weigh_nodes(&w, 1);
    struct sm_key_sum *sums = sm_view_sums(&v, nodes);
    uint32_t f = key_of(&v, "Lib.f", "lib.ml"), g = key_of(&v, "Lib.g", "lib.ml");
    uint32_t h = key_of(&v, "Lib.f", "other.ml");
    assert_int_equal(sums[f].own.units, 10);
    assert_int_equal(sums[f].total.units, 130);
    assert_int_equal(sums[g].own.units, 120);
    assert_int_equal(sums[h].total.units, 5);
    assert_int_equal(sums[0].total.units, 135);
    /* Fragments: f > g in both stacks, each once. */
    assert_int_equal(sm_fragment_sum(&v, nodes, (uint32_t[]){f, g}, 2).units, 120);
    assert_int_equal(sm_fragment_sum(&v, nodes, (uint32_t[]){f, f}, 2).units, 100);
    assert_int_equal(sm_fragment_sum(&v, nodes, (uint32_t[]){f}, 1).units, 130);
    assert_int_equal(sm_fragment_sum(&v, nodes, (uint32_t[]){g, f}, 2).units, 0);
    free(sums);
    free(nodes);
    sm_weigher_release(&w);
    sm_view_release(&v);
    sm_analysis_free(a);
    tb_release(&b);
}

static void merged_trees(void **state) {
    struct tb b;
    story(&b);
    alloc(&b, 0, 7000, 100, main_f_f_g, 4);
    struct sm_analysis *a = load(&b, 1);
    struct sm_view v;
    sm_view_make(&v, a, SM_KEY_FUNCTION, NULL, NULL);
    struct sm_weigher w = weigher(a, "allocated");
    struct sm_sum *nodes = sm_weigh_nodes(&w, 1);
    uint32_t f = key_of(&v, "Lib.f", "lib.ml"), g = key_of(&v, "Lib.g", "lib.ml");
    struct sm_merged m;
    struct sm_merge_options o = {.direction = SM_CALLEES};
    sm_merged_make(&m, &v, nodes, &o);
    /* (all) 135 > main 135 > [f 130 own 10 > [f 100 > g 100, g 20], h 5] */
    static const unsigned totals[] = {135, 135, 130, 100, 100, 20, 5},
                          depths[] = {0, 1, 2, 3, 4, 3, 2};
    assert_int_equal(m.n_nodes, 7);
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(m.nodes[i].total.units, totals[i]);
        assert_int_equal(m.nodes[i].depth, depths[i]);
    }
    assert_int_equal(m.nodes[2].own.units, 10);
    assert_int_equal(m.nodes[2].end, 6);
    sm_merged_release(&m);

    /* Callers of g: f 120 > [f 100 > main, main 20] */
    o = (struct sm_merge_options){.direction = SM_CALLERS, .focus = &g, .n_focus = 1};
    sm_merged_make(&m, &v, nodes, &o);
    static const unsigned callers[] = {120, 120, 100, 100, 20};
    assert_int_equal(m.n_nodes, 5);
    assert_int_equal(m.nodes[0].key, g);
    assert_int_equal(m.nodes[1].key, f);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(m.nodes[i].total.units, callers[i]);
    sm_merged_release(&m);

    /* From the sites, light ones left out and counted: g 120, f 10; h 5 is gone. */
    o = (struct sm_merge_options){.direction = SM_CALLERS, .min_units = 10, .max_depth = 1};
    sm_merged_make(&m, &v, nodes, &o);
    assert_int_equal(m.n_nodes, 3);
    assert_int_equal(m.nodes[1].total.units, 120);
    assert_int_equal(m.nodes[2].total.units, 10);
    assert_true(m.folded >= 5);
    sm_merged_release(&m);

    /* Direct recursion folded: main > f > g, nothing lost. */
    sm_view_fold_recursion(&v);
    o = (struct sm_merge_options){.direction = SM_CALLEES};
    sm_merged_make(&m, &v, nodes, &o);
    static const unsigned folded[] = {135, 135, 130, 120, 5};
    assert_int_equal(m.n_nodes, 5);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(m.nodes[i].total.units, folded[i]);
    sm_merged_release(&m);
    free(nodes);
    sm_weigher_release(&w);
    sm_view_release(&v);
    sm_analysis_free(a);
    tb_release(&b);
}

static void hidden_and_collapsed_frames_keep_their_bytes(void **state) {
    struct tb b;
    story(&b);
    struct sm_analysis *a = load(&b, 1);
    struct sm_view all, v;
    sm_view_make(&all, a, SM_KEY_FUNCTION, NULL, NULL);
    uint32_t g = all.spot[key_of(&all, "Lib.g", "lib.ml")],
             f = all.spot[key_of(&all, "Lib.f", "lib.ml")];
    uint64_t hidden[8] = {0};
    hidden[g >> 6] |= (uint64_t)1 << (g & 63);
    struct sm_weigher w = weigher(a, "allocated");
    struct sm_sum *nodes = sm_weigh_nodes(&w, 1);
    sm_view_make(&v, a, SM_KEY_FUNCTION, hidden, NULL);
    struct sm_key_sum *sums = sm_view_sums(&v, nodes);
    assert_int_equal(sums[key_of(&v, "Lib.f", "lib.ml")].own.units, 30);
    assert_int_equal(sums[0].total.units, 35);
    free(sums);
    sm_view_release(&v);
    /* f and g become one box named after their module. */
    sm_text_id *collapsed = calloc(a->n_frames, sizeof *collapsed);
    collapsed[f] = collapsed[g] = a->functions[a->frames[f].function].module;
    sm_view_make(&v, a, SM_KEY_FUNCTION, NULL, collapsed);
    struct sm_merged m;
    struct sm_merge_options o = {.direction = SM_CALLEES};
    sm_merged_make(&m, &v, nodes, &o);
    assert_int_equal(m.n_nodes, 4); /* (all) main Lib f-of-other */
    assert_int_equal(m.nodes[2].own.units, 30);
    struct sm_buffer name;
    sm_buffer_init(&name, -1);
    sm_view_name(&v, m.nodes[2].key, &name);
    assert_string_equal(sm_buffer_string(&name), "Lib");
    sm_buffer_release(&name);
    sm_merged_release(&m);
    free(collapsed);
    free(nodes);
    sm_weigher_release(&w);
    sm_view_release(&v);
    sm_view_release(&all);
    sm_analysis_free(a);
    tb_release(&b);
}

static void heavy_fragments(void **state) {
    struct tb b;
    story(&b);
    struct sm_analysis *a = load(&b, 1);
    struct sm_view v;
    sm_view_make(&v, a, SM_KEY_FUNCTION, NULL, NULL);
    struct sm_weigher w = weigher(a, "allocated");
    struct sm_sum *nodes = sm_weigh_nodes(&w, 1);
    struct sm_fragments f;
    sm_fragments_find(&f, &v, nodes, 20, 0.01, 16, 1000);
    /* main 35, main f 30, f 30, main f g 20, g 20; f g is part of main f g whenever it occurs */
    assert_int_equal(f.n, 5);
    assert_true(f.complete);
    unsigned maximal = 0;
    for (uint32_t i = 0; i < f.n; i++)
        maximal += f.list[i].maximal;
    assert_int_equal(maximal, 3); /* main; main f; main f g */
    assert_int_equal(f.list[0].total.units, 35);
    sm_fragments_release(&f);
    sm_fragments_find(&f, &v, nodes, 1, 0.01, 16, 2);
    assert_false(f.complete);
    sm_fragments_release(&f);
    free(nodes);
    sm_weigher_release(&w);
    sm_view_release(&v);
    sm_analysis_free(a);
    tb_release(&b);
}

static void streams_are_merged_by_time(void **state) {
    struct tb b;
    begin(&b, 3);
    uint64_t x = alloc(&b, 1, 30000, 30, main_f, 2);
    alloc(&b, 2, 10000, 1, main_f, 2);
    tb_ref(&b, 2, at(&b, 35000), true, 1, x); /* another stream tells the end */
    uint64_t y = alloc(&b, 0, 20000, 2, main_f, 2);
    tb_ref(&b, 1, at(&b, 36000), false, 0, y);
    uint64_t z = alloc(&b, 2, 40000, 4, main_f, 2);
    tb_ref(&b, 0, at(&b, 25000), true, 2,
           z); /* told before the allocation's time: comes right after it */
    struct sm_analysis *a = load(&b, 2);
    assert_int_equal(a->rows.n, 4);
    static const unsigned units[] = {1, 2, 30, 4};
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(sm_row_units(a, i), units[i]);
    assert_int_equal(sm_row_free_ns(a, 2), 35000);
    assert_int_equal(sm_row_promote_ns(a, 1), 36000);
    assert_int_equal(sm_row_free_ns(a, 3), 40000);
    assert_int_equal(a->rows.n_freed, 2);
    assert_int_equal(a->rows.free_order[0], 2);
    assert_int_equal(a->rows.free_order[1], 3);
    assert_int_equal(a->rows.n_foreign, 2);
    assert_int_equal(a->peak.units, 33);
    assert_int_equal(a->peak.ns, 30000);
    sm_analysis_free(a);
    tb_release(&b);
}

/* Everything that does not fit its column: a large size, many samples, long lives, long gaps, many ends at once. */
static void wide_values(void **state) {
    struct tb b;
    begin(&b, 1);
    uint64_t big = (uint64_t)5 << 32;
    uint64_t a0 = tb_alloc_full(&b, 0, at(&b, 10000), big, false, 100000, MAJOR, main_f, 2);
    uint64_t first = 0;
    for (unsigned i = 0; i < 700; i++) {
        uint64_t seq = alloc(&b, 0, 20000 + i * 1000, 1, main_f_g, 3);
        first = i == 0 ? seq : first;
    }
    tb_ref(&b, 0, at(&b, 3 * SECOND), false, 0, a0);
    for (unsigned i = 0; i < 700; i++)
        tb_ref(&b, 0, at(&b, 10 * SECOND), true, 0, first + i);
    alloc(&b, 0, 10 * SECOND + 5000, 3, main_h, 2);
    tb_ref(&b, 0, at(&b, 20 * SECOND), true, 0, a0);
    struct sm_analysis *a = load(&b, 1);
    assert_int_equal(a->rows.n, 702);
    assert_int_equal(sm_row_bytes(a, 0), big * 8);
    assert_int_equal(sm_row_samples(a, 0), 100000);
    assert_int_equal(sm_row_promote_ns(a, 0), 3 * SECOND);
    assert_int_equal(sm_row_free_ns(a, 0), 20 * SECOND);
    assert_int_equal(sm_row_free_ns(a, 350), 10 * SECOND);
    assert_int_equal(sm_row_alloc_ns(a, 701), 10 * SECOND + 5000);
    assert_int_equal(a->rows.frees_before[701], SM_ROW_MANY);
    assert_int_equal(a->peak.units, 100700);
    assert_int_equal(weight(a, "live@15s"), 100003);
    struct sm_curve c;
    sm_curve_make(&c, a, NULL, 0, 20 * SECOND, 20, 1, NULL, NULL, 1);
    assert_int_equal(c.points[0].live, 100700);
    assert_int_equal(c.points[5].live, 100700); /* nothing happens then */
    assert_int_equal(c.points[10].low, 100000);
    assert_int_equal(c.points[10].high, 100700);
    assert_int_equal(c.points[10].live, 100003);
    assert_int_equal(c.points[10].freed, 700);
    assert_int_equal(c.points[19].live, 100003); /* the last end is at its border */
    assert_int_equal(c.peaks[0].units, 100700);
    sm_curve_release(&c);
    sm_analysis_free(a);
    tb_release(&b);
}

/* Long random traces: the answers do not depend on the number of threads, and the curve's highest point is
   the peak. */
static void threads_agree(void **state) {
    for (uint32_t seed = 1; seed <= 3; seed++) {
        struct tb b;
        tb_init(&b, 5);
        tb_mixed(&b, 5, 300000, seed);
        struct sm_analysis *one = load(&b, 1), *four = load(&b, 4);
        assert_int_equal(one->rows.n, four->rows.n);
        assert_true(one->rows.n > 100000);
        size_t n = one->rows.n;
        assert_memory_equal(one->rows.alloc_delta, four->rows.alloc_delta, n * 4);
        assert_memory_equal(one->rows.node, four->rows.node, n * 4);
        assert_memory_equal(one->rows.frees_before, four->rows.frees_before, n);
        assert_memory_equal(one->rows.free_order, four->rows.free_order, one->rows.n_freed * 4);
        assert_int_equal(one->peak.units, four->peak.units);
        assert_int_equal(one->peak.row, four->peak.row);
        struct sm_curve c1, c4;
        sm_curve_make(&c1, one, NULL, 0, one->last_ns + 1, 97, 1, NULL, NULL, 1);
        sm_curve_make(&c4, one, NULL, 0, one->last_ns + 1, 97, 1, NULL, NULL, 4);
        uint64_t high = 0;
        for (unsigned i = 0; i < 97; i++) {
            assert_int_equal(c1.points[i].live, c4.points[i].live);
            assert_int_equal(c1.points[i].low, c4.points[i].low);
            assert_int_equal(c1.points[i].high, c4.points[i].high);
            assert_int_equal(c1.points[i].freed, c4.points[i].freed);
            high = c1.points[i].high > high ? c1.points[i].high : high;
        }
        assert_int_equal(high, one->peak.units);
        assert_int_equal(c1.points[96].live, weight(one, "live@end"));
        assert_int_equal(weight(one, "live@peak"), one->peak.units);
        sm_curve_release(&c1);
        sm_curve_release(&c4);
        sm_analysis_free(one);
        sm_analysis_free(four);
        tb_release(&b);
    }
}

static void groups(void **state) {
    struct tb b;
    story(&b);
    tb_alloc_full(&b, 0, at(&b, 7000), 100, false, 3, MAJOR, main_f, 2);
    struct sm_analysis *a = load(&b, 1);
    struct sm_view v;
    sm_view_make(&v, a, SM_KEY_FUNCTION, NULL, NULL);
    struct sm_weigher w[] = {weigher(a, "allocated"), weigher(a, "live@end")};
    struct sm_dimension d[] = {{.kind = SM_BY_PLACE, .view = &v}, {.kind = SM_BY_HEAP}};
    struct sm_groups g;
    sm_groups_make(&g, d, 2, w, 2, 1);
    /* g minor 20/0, f minor 10/0, h minor 5/5, f major 3/3 */
    static const unsigned allocated[] = {20, 10, 5, 3}, live[] = {0, 0, 5, 3};
    assert_int_equal(g.n_groups, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(g.list[i].sums[0].units, allocated[i]);
        assert_int_equal(g.list[i].sums[1].units, live[i]);
    }
    struct sm_buffer name;
    sm_buffer_init(&name, -1);
    sm_groups_name(&g, 0, g.list[3].value[0], &name);
    sm_buffer_char(&name, '/');
    sm_groups_name(&g, 1, g.list[3].value[1], &name);
    assert_string_equal(sm_buffer_string(&name), "Lib.f/major");
    sm_buffer_release(&name);
    sm_groups_release(&g);
    struct sm_dimension size = {.kind = SM_BY_SIZE};
    sm_groups_make(&g, &size, 1, w, 1, 1);
    sm_buffer_init(&name, -1);
    for (uint32_t i = 0; i < g.n_groups; i++) {
        sm_groups_name(&g, 0, g.list[i].value[0], &name);
        sm_buffer_char(&name, ';');
    }
    /* 160, 80, 40, 800 bytes */
    assert_string_equal(sm_buffer_string(&name), "128-255 B;64-127 B;32-63 B;512-1023 B;");
    sm_buffer_release(&name);
    sm_groups_release(&g);
    sm_weigher_release(&w[0]);
    sm_weigher_release(&w[1]);
    sm_view_release(&v);
    sm_analysis_free(a);
    tb_release(&b);
}

/* Three sites over 10 s: F keeps one block of each second, G fills at the start, H is replaced each second. */
static void leak_scores(void **state) {
    struct tb b;
    begin(&b, 1);
    uint64_t previous = 0;
    for (uint64_t s = 0; s < 10; s++) {
        alloc(&b, 0, s * SECOND + SECOND / 2, 10, main_f, 2);
        if (s == 0)
            alloc(&b, 0, SECOND / 2, 1000, main_f_g, 3);
        uint64_t seq = alloc(&b, 0, s * SECOND + SECOND * 3 / 5, 50, main_h, 2);
        if (s > 0)
            tb_ref(&b, 0, at(&b, s * SECOND + SECOND * 3 / 5), true, 0, previous);
        previous = seq;
    }
    tb_flush_all(&b);
    tb_end(&b, at(&b, 10 * SECOND - 1));
    struct sm_analysis *a = load(&b, 1);
    struct sm_view v;
    sm_view_make(&v, a, SM_KEY_FUNCTION, NULL, NULL);
    struct sm_leaks l;
    sm_leaks_make(&l, &v, NULL, 10, 1);
    assert_int_equal(l.n, 3);
    const struct sm_leak *f = &l.list[0];
    assert_int_equal(f->key, key_of(&v, "Lib.f", "lib.ml"));
    assert_int_equal(f->generations, 10);
    assert_true(f->score > 0.999);
    assert_true(f->slope > 79999 && f->slope < 80001); /* 10 samples a second */
    assert_true(f->slope_low > 79000 && f->slope_high < 81000);
    assert_int_equal(f->first_ns, SECOND / 2);
    for (uint32_t i = 1; i < 3; i++)
        assert_true(l.list[i].score < 0.2);
    sm_leaks_release(&l);
    sm_view_release(&v);
    sm_analysis_free(a);
    tb_release(&b);
}

/* ---- the cache ---- */

static char directory[] = "/tmp/statmem-cache-XXXXXX";

static struct sm_analysis *open_cached(const char *path) {
    struct sm_analysis *a;
    struct sm_error err;
    struct sm_analysis_options o = {.cache_min_bytes = 1};
    assert_int_equal(sm_analysis_open(&a, path, &o, &err), SM_OK);
    return a;
}

static void the_cache_gives_the_same(void **state) {
    char trace[64], *file = NULL;
    assert_non_null(mkdtemp(directory));
    setenv("STATMEM_CACHE", directory, 1);
    snprintf(trace, sizeof trace, "%s/trace.stm", directory);
    struct tb b;
    tb_init(&b, 3);
    tb_mixed(&b, 3, 5000, 7);
    tb_save(&b, trace);
    struct sm_analysis *fresh = open_cached(trace), *cached = open_cached(trace);
    assert_false(fresh->from_cache);
    assert_true(cached->from_cache);
    assert_int_equal(fresh->rows.n, cached->rows.n);
    assert_memory_equal(fresh->rows.node, cached->rows.node, fresh->rows.n * 4);
    assert_memory_equal(fresh->texts, cached->texts, fresh->texts_bytes);
    assert_string_equal(fresh->meta.executable, cached->meta.executable);
    assert_int_equal(fresh->n_losses, cached->n_losses);
    for (size_t i = 0; i < fresh->n_losses; i++)
        assert_string_equal(fresh->losses[i].detail, cached->losses[i].detail);
    assert_int_equal(weight(fresh, "live@end"), weight(cached, "live@end"));
    sm_analysis_free(fresh);
    sm_analysis_free(cached);

    struct sm_cache_list list;
    sm_cache_list(directory, &list);
    assert_int_equal(list.n, 1);
    assert_true(list.list[0].usable);
    assert_string_equal(list.list[0].trace_path, trace);
    assert_true(asprintf(&file, "%s/%s", directory, list.list[0].name) > 0);
    sm_cache_list_release(&list);

    /* Each page damaged in turn: the file is not used, and the answers stay. */
    FILE *f = fopen(file, "r+b");
    assert_non_null(f);
    struct stat st;
    assert_int_equal(stat(file, &st), 0);
    for (long offset = 16; offset < st.st_size; offset += 4096) {
        fseek(f, offset, SEEK_SET);
        int c = fgetc(f);
        fseek(f, offset, SEEK_SET);
        fputc(c ^ 0x55, f);
        fflush(f);
        struct sm_analysis *a = open_cached(trace);
        /* Bytes between sections belong to nothing; all others count. */
        assert_int_equal(a->rows.n_freed > 0, 1);
        if (!a->from_cache) {
            fclose(f);
            f = fopen(file, "r+b"); /* it was written anew */
            assert_non_null(f);
        } else {
            fseek(f, offset, SEEK_SET);
            fputc(c, f);
            fflush(f);
            assert_true(offset % 4096 == 16);
        }
        sm_analysis_free(a);
    }
    fclose(f);

    /* Another trace under the same name is another trace. */
    struct tb other;
    tb_init(&other, 3);
    tb_mixed(&other, 3, 5000, 8);
    tb_save(&other, trace);
    struct sm_analysis *a = open_cached(trace);
    assert_false(a->from_cache);
    sm_analysis_free(a);
    sm_cache_prune(directory, 0);
    sm_cache_list(directory, &list);
    assert_int_equal(list.n, 0);
    sm_cache_list_release(&list);
    unlink(trace);
    rmdir(directory);
    free(file);
    tb_release(&b);
    tb_release(&other);
}

static void nothing_was_allocated(void **state) {
    struct tb b;
    begin(&b, 1);
    struct sm_analysis *a = load(&b, 1);
    assert_int_equal(a->rows.n, 0);
    assert_int_equal(a->peak.units, 0);
    assert_int_equal(weight(a, "allocated"), 0);
    assert_int_equal(weight(a, "live@peak"), 0);
    struct sm_curve c;
    sm_curve_make(&c, a, NULL, 0, 100, 10, 1, NULL, NULL, 0);
    assert_int_equal(c.points[9].live, 0);
    sm_curve_release(&c);
    struct sm_view v;
    sm_view_make(&v, a, SM_KEY_FUNCTION, NULL, NULL);
    struct sm_leaks l;
    sm_leaks_make(&l, &v, NULL, 0, 0);
    assert_int_equal(l.n, 0);
    sm_leaks_release(&l);
    sm_view_release(&v);
    sm_analysis_free(a);
    tb_release(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_weights),
        cmocka_unit_test(bad_weights_say_what_is_expected),
        cmocka_unit_test(the_tree_is_in_preorder),
        cmocka_unit_test(inclusive_sums_count_recursion_once),
        cmocka_unit_test(merged_trees),
        cmocka_unit_test(hidden_and_collapsed_frames_keep_their_bytes),
        cmocka_unit_test(heavy_fragments),
        cmocka_unit_test(streams_are_merged_by_time),
        cmocka_unit_test(wide_values),
        cmocka_unit_test(threads_agree),
        cmocka_unit_test(groups),
        cmocka_unit_test(leak_scores),
        cmocka_unit_test(the_cache_gives_the_same),
        cmocka_unit_test(nothing_was_allocated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
