/* The unwinder (unwind/unwind.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

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

/* What a frame says of its caller is replaced by any number, for the time of a walk. */
NOINLINE static void with_frame_words(uintptr_t frame_pointer, uintptr_t return_address) {
    volatile uintptr_t *frame = __builtin_frame_address(0);
    uintptr_t saved[2] = {frame[0], frame[1]};
    frame[0] = frame_pointer != 0 ? frame_pointer : saved[0];
    frame[1] = return_address != 0 ? return_address : saved[1];
    n_frames = sm_unwind(frames, 300, 0, &unwound);
    frame[0] = saved[0];
    frame[1] = saved[1];
}

static void test_garbage(void **state) {
    uint64_t random = 88172645463325252u;
    uint8_t *page =
        mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    mprotect(page, 4096, PROT_NONE);
    mprotect(page + 8192, 4096, PROT_NONE);
    uintptr_t near = (uintptr_t)__builtin_frame_address(0), code = (uintptr_t)&test_garbage;
    uintptr_t special[] = {1,
                           8,
                           4096,
                           UINTPTR_MAX,
                           UINTPTR_MAX - 7,
                           (uintptr_t)1 << 63,
                           ((uintptr_t)1 << 47) - 8,
                           (uintptr_t)page,
                           (uintptr_t)page + 4095,
                           (uintptr_t)page + 4096,
                           (uintptr_t)page + 8184,
                           (uintptr_t)page + 8188,
                           near & ~(uintptr_t)4095,
                           near - 8,
                           near | 7,
                           code,
                           code + 3};
    enum { N = sizeof special / sizeof special[0] };
    with_frame_words(0, 0);
    assert_int_equal(unwound.end, SM_UNWIND_OUTERMOST);
    unsigned ended_badly = 0;
    for (int i = 0; i < 60000; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        uintptr_t a = random % 5 == 0   ? special[random / 5 % N]
                      : random % 5 == 1 ? near + (random >> 8) % 65536 - 32768
                      : random % 5 == 2 ? random >> 17
                      : random % 5 == 3 ? 0
                                        : random;
        uintptr_t b = (random >> 40) % 3 == 0   ? special[(random >> 45) % N]
                      : (random >> 40) % 3 == 1 ? code + (random >> 50) % 4096
                                                : 0;
        with_frame_words(a, b);
        assert_true(n_frames >= 1 && n_frames <= 300);
        ended_badly += unwound.end != SM_UNWIND_OUTERMOST;
    }
    assert_true(ended_badly > 20000);
    munmap(page, 3 * 4096);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_middle_cut),
        cmocka_unit_test(test_garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
