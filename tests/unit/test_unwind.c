/* The unwinder (unwind/unwind.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unwind/unwind.h"

#define NOINLINE __attribute__((noinline, noclone))

static uintptr_t frames[300];
static struct sm_unwound unwound;
static uint32_t n_frames;

NOINLINE static int recurse(int depth, uint32_t max, uint32_t skip) {
    if (depth == 0)
        n_frames = sm_unwind(frames, max, skip, &unwound);
    else
        recurse(depth - 1, max, skip);
    __asm__ volatile("" ::: "memory"); /* no tail call */
    return depth;
}

static void test_recursion(void **state) {
    recurse(50, 300, 0);
    assert_true(n_frames > 51);
    assert_int_equal(unwound.n_cut, 0);
    /* The innermost call of `recurse`, then fifty times its call of itself. */
    assert_int_not_equal(frames[0], frames[1]);
    for (int i = 2; i <= 50; i++)
        assert_int_equal(frames[i], frames[1]);
    assert_int_not_equal(frames[51], frames[1]);
    /* Without the first. */
    uintptr_t second = frames[1], last = frames[n_frames - 1];
    uint32_t all = n_frames;
    recurse(50, 300, 1);
    assert_int_equal(n_frames, all - 1);
    assert_int_equal(frames[0], second);
    assert_int_equal(frames[n_frames - 1], last);
}

static void test_middle_cut(void **state) {
    recurse(200, 300, 0);
    uint32_t all = n_frames;
    uintptr_t whole[300];
    for (uint32_t i = 0; i < all; i++)
        whole[i] = frames[i];
    assert_true(all < 300);
    for (uint32_t max = 4; max < all; max += 7) {
        recurse(200, max, 0);
        assert_int_equal(n_frames, max);
        assert_int_equal(unwound.n_cut, all - (max - 1));
        assert_int_equal(unwound.cut_at, max / 2);
        for (uint32_t i = 0; i < max / 2; i++)
            assert_int_equal(frames[i], whole[i]);
        assert_int_equal(frames[max / 2], 0);
        for (uint32_t i = max / 2 + 1; i < max; i++)
            if (all - max + i !=
                201) /* the call in this function, which is another one each time */
                assert_int_equal(frames[i], whole[all - max + i]);
        assert_int_equal(frames[max - 1], whole[all - 1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_middle_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
