/* The table of sampled blocks: alone, full, and under threads that hand blocks to each other (the thread sanitizer's
   test). The interleavings of a few operations are tried exhaustively by test_sampled_model.c. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "native/sampled.h"

static void put(uintptr_t p, uint64_t token) {
    struct sm_sampled_place *place = sm_sampled_reserve((void *)p);
    assert_non_null(place);
    sm_sampled_put(place, (void *)p, token);
}

static uint64_t take(uintptr_t p) {
    return sm_sampled_take((void *)p);
}

static void test_put_and_take(void **state) {
    assert_true(sm_sampled_setup());
    assert_false(sm_sampled_perhaps((void *)0x1000));
    assert_int_equal(take(0x1000), 0);
    put(0x1000, 42);
    assert_true(sm_sampled_perhaps((void *)0x1000));
    assert_int_equal(sm_sampled_count(), 1);
    assert_int_equal(take(0x1000), 42);
    assert_int_equal(take(0x1000), 0);
    assert_false(sm_sampled_perhaps((void *)0x1000));
    struct sm_sampled_place *place = sm_sampled_reserve((void *)0x2000);
    sm_sampled_cancel(place, (void *)0x2000);
    assert_int_equal(take(0x2000), 0);
    assert_false(sm_sampled_perhaps((void *)0x2000));
    assert_int_equal(sm_sampled_count(), 0);
}

/* A failed realloc leaves the block as it was. */
static void test_hold(void **state) {
    uint64_t token = 0;
    put(0x3000, 7);
    assert_null(sm_sampled_hold((void *)0x3010, &token));
    struct sm_sampled_place *place = sm_sampled_hold((void *)0x3000, &token);
    assert_int_equal(token, 7);
    assert_int_equal(take(0x3000), 0); /* its address may be given out again meanwhile */
    put(0x3000, 8);
    assert_int_equal(take(0x3000), 8);
    sm_sampled_put(place, (void *)0x3000, token);
    assert_int_equal(take(0x3000), 7);
}

/* Half a million blocks: several levels, saturated filter counters; none is lost, and in any order. */
static void test_many(void **state) {
    enum { N = 500000 };
    const uintptr_t base = 0x7f0000000010;
    for (uintptr_t i = 0; i < N; i++)
        put(base + i * 48, i + 1);
    assert_int_equal(sm_sampled_count(), N);
    for (uintptr_t i = 0; i < N; i++) {
        uintptr_t k = i * 7919 % N;
        assert_true(sm_sampled_perhaps((void *)(base + k * 48)));
        assert_int_equal(take(base + k * 48), k + 1);
        assert_int_equal(take(base + k * 48), 0);
    }
    assert_int_equal(sm_sampled_count(), 0);
}

/* Addresses whose filter counter is the same one: more of them than it can count. */
static void test_saturated_filter(void **state) {
    enum { N = 1000 };
    uintptr_t p[N];
    size_t n = 0;
    for (uintptr_t a = 0x10000; n < N; a += 16) {
        if (sm_sampled_filter_index(a) == 5)
            p[n++] = a;
    }
    for (size_t i = 0; i < N; i++)
        put(p[i], i + 1);
    for (size_t i = 0; i < N; i++) {
        assert_true(sm_sampled_perhaps((void *)p[i]));
        assert_int_equal(take(p[i]), i + 1);
    }
}

/* The filter tells most of a program's blocks apart from few sampled ones. */
static void test_filter_is_selective(void **state) {
    enum { SAMPLED = 1000, OTHERS = 100000 };
    const uintptr_t base = 0x5555550002a0, step = 64;
    for (uintptr_t i = 0; i < SAMPLED; i++)
        put(base + i * 100 * step, i + 1);
    size_t alarms = 0;
    for (uintptr_t i = 0; i < OTHERS; i++)
        alarms += i % 100 != 0 && sm_sampled_perhaps((void *)(base + i * step));
    assert_true(alarms < OTHERS / 20);
    for (uintptr_t i = 0; i < SAMPLED; i++)
        assert_int_equal(take(base + i * 100 * step), i + 1);
}

/* A forked child finds nothing. */
static void test_fork(void **state) {
    put(0x9000, 3);
    pid_t child = fork();
    if (child == 0)
        _exit(take(0x9000) == 0 && take(0x9000) == 0 ? 0 : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(take(0x9000), 3);
}

/* ---- threads ----
   Each block is put in by one thread and taken out by the next, through a mailbox. */

enum { THREADS = 4, BOXES = 64, ROUNDS = 20000 };
static _Atomic uintptr_t boxes[THREADS][BOXES];
static atomic_uint wrong;

static void *worker(void *ctx) {
    size_t self = (size_t)ctx, next = (self + 1) % THREADS;
    uint64_t random = self + 1;
    for (uintptr_t i = 0; i < ROUNDS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uintptr_t p = (self * ROUNDS + i) * 16 + 0x7e0000000000;
        size_t box = random >> 40 & (BOXES - 1);
        put(p, p ^ 1);
        /* acq_rel: as a program's own hand-over would be */
        uintptr_t old = atomic_exchange_explicit(&boxes[next][box], p, memory_order_acq_rel);
        if (old != 0 && take(old) != (old ^ 1))
            atomic_fetch_add(&wrong, 1);
        old = atomic_exchange_explicit(&boxes[self][box], 0, memory_order_acq_rel);
        if (old != 0 && take(old) != (old ^ 1))
            atomic_fetch_add(&wrong, 1);
    }
    return NULL;
}

static void test_threads(void **state) {
    pthread_t threads[THREADS];
    assert_int_equal(sm_sampled_count(), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < THREADS; i++) {
        for (size_t b = 0; b < BOXES; b++) {
            uintptr_t p = boxes[i][b];
            assert_true(p == 0 || take(p) == (p ^ 1));
        }
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(sm_sampled_count(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_and_take),
        cmocka_unit_test(test_hold),
        cmocka_unit_test(test_filter_is_selective),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_saturated_filter),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
