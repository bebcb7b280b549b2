/* The live-object table against a plain one, and the profile when its tree is full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "report/group.h"
#include "report/objects.h"
#include "report/profile.h"
#include "trace_builder.h"

#define N 3000

/* Random additions and removals, with neighbouring and with far-apart numbers. */
static void objects(void **state) {
    static struct {
        uint64_t seq, samples;
        uint32_t stream;
        bool alive;
    } plain[N];
    uint32_t random = 1;
    struct sm_objects o;
    sm_objects_init(&o);
    for (unsigned i = 0; i < N; i++) {
        plain[i].stream = i % 3;
        plain[i].seq = i % 5 == 0 ? (uint64_t)i << 22 : i;
        plain[i].samples = i % 100 == 0 ? (1ull << 30) + i : i;
    }
    for (unsigned step = 0; step < 40 * N; step++) {
        unsigned i = tb_random(&random) % N;
        struct sm_object *found = sm_objects_find(&o, plain[i].stream, plain[i].seq);
        assert_int_equal(found != NULL, plain[i].alive);
        if (found != NULL) {
            assert_int_equal(found->what, i);
            assert_true(sm_object_samples(&o, found) == plain[i].samples);
            assert_null(sm_objects_add(&o, plain[i].stream, plain[i].seq, 0, 1));
            sm_objects_remove(&o, plain[i].stream, plain[i].seq);
        } else {
            assert_non_null(sm_objects_add(&o, plain[i].stream, plain[i].seq, i, plain[i].samples));
        }
        plain[i].alive = !plain[i].alive;
    }
    sm_objects_release(&o);

    /* Memory follows the living: a million objects, one alive at a time. */
    for (uint64_t seq = 0; seq < 1000000; seq++) {
        sm_objects_add(&o, 0, seq, 0, 1);
        sm_objects_remove(&o, 0, seq);
    }
    assert_int_equal(o.n_chunks, 1);
    sm_objects_release(&o);
}

static void profile(struct sm_trace *t, uint32_t max_nodes, struct sm_profile *p) {
    struct sm_error err;
    struct sm_profile_options options = {.leaf = SM_LEAF_STACK,
                                         .heap = -1,
                                         .from_ns = INT64_MIN,
                                         .to_ns = INT64_MAX,
                                         .max_nodes = max_nodes};
    assert_int_equal(sm_profile_collect(p, t, &options, &err), SM_OK);
}

static void same_weights(const struct sm_weights *a, const struct sm_weights *b) {
    assert_true(a->allocated == b->allocated && a->live == b->live && a->peak == b->peak &&
                a->promoted == b->promoted && a->collected == b->collected &&
                a->blocks == b->blocks);
}

/* A small tree keeps all sums, and the sites they belong to; only callers are lost, and counted. */
static void full_tree(void **state) {
    struct tb b;
    struct sm_trace *t;
    struct sm_error err;
    tb_init(&b, 3);
    tb_mixed(&b, 3, 20000, 7);
    assert_int_equal(sm_trace_open_memory(&t, b.data, b.bytes, NULL, &err), SM_OK);
    struct sm_profile whole, small;
    profile(t, 0, &whole);
    profile(t, 100, &small);
    assert_true(whole.n_folded == 0 && whole.n_nodes > 1000 && whole.peak > 0);
    assert_true(small.n_folded > 0 && small.n_nodes < whole.n_nodes);
    same_weights(&whole.all, &small.all);
    assert_true(whole.peak == small.peak && whole.all.peak == whole.peak);

    struct sm_grouping g, h;
    sm_grouping_make(&g, &whole, SM_BY_SITE, false, SM_ALLOCATED);
    sm_grouping_make(&h, &small, SM_BY_SITE, false, SM_ALLOCATED);
    assert_int_equal(g.n_groups, h.n_groups);
    unsigned compared = 0;
    for (size_t i = 0; i < g.n_groups; i++) {
        same_weights(&g.groups[i].own, &h.groups[i].own);
        compared += g.groups[i].own.blocks > 0;
    }
    assert_true(compared > 100);
    sm_grouping_release(&g);
    sm_grouping_release(&h);
    sm_profile_release(&whole);
    sm_profile_release(&small);
    sm_trace_free(t);
    tb_release(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(objects), cmocka_unit_test(full_tree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
