/* The live-object table against a plain one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "report/objects.h"
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(objects)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
