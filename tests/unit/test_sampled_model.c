/* A model check of src/native/sampled.c: the file itself, compiled with atomic operations that let another thread run first, under
   a scheduler that tries every interleaving of them (sequentially consistent; what weaker orders allow is argued in the file and
   watched by ThreadSanitizer in test_sampled.c).

   Pairs of single operations are tried in every interleaving there is; sequences of operations in all with a bounded number
   of preemptions (switches away from a thread that could have gone on), which is where errors of this kind show.

   Threads are coroutines. A run follows a list of choices, one for each step at which more than one thread could go on;
   afterwards the last choice that has another alternative is advanced, and everything begins anew. With three threads the number of
   preemptions is smaller. The table is tiny, one place in a bucket
   and two buckets in the first level, so that collisions are the rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

#include "base/os.h"

/* ---- the file under test ---- */

static void step(void);
static void *model_map(size_t bytes);
static void model_unmap(void *p, size_t bytes);

#define SM_SAMPLED_MODEL
#define LOAD(p, order) (step(), atomic_load_explicit(p, order))
#define STORE(p, x, order) (step(), atomic_store_explicit(p, x, order))
#define SWAP_IF(p, expected, x, success, failure)                                                  \
    (step(), atomic_compare_exchange_strong_explicit(p, expected, x, success, failure))
#define ADD(p, x, order) (step(), atomic_fetch_add_explicit(p, x, order))
#define PLACES 1u
#define LEVELS 3u
#define FIRST_LEVEL_BITS 1u
#define BITS_A_LEVEL 1u
#define sm_os_map_wiped_on_fork model_map
#define sm_os_unmap model_unmap
#include "../../src/native/sampled.c"

/* ---- the scheduler ---- */

#define MOST_THREADS 3
#define MOST_STEPS 400

static struct {
    ucontext_t context;
    char stack[32768];
    bool done;
} threads[MOST_THREADS];
static ucontext_t scheduler;
static int n_threads, running;
static bool in_model;

static void step(void) {
    if (in_model)
        swapcontext(&threads[running].context, &scheduler);
}

static uint8_t arena[4096] __attribute__((aligned(64)));
static size_t arena_used;
static void *model_map(size_t bytes) {
    assert_true(arena_used + bytes <= sizeof arena);
    void *p = arena + arena_used;
    memset(p, 0, bytes);
    arena_used += bytes;
    return p;
}
static void model_unmap(void *p, size_t bytes) {
    (void)p;
    (void)bytes;
}

static void (*body)(int thread);

static void thread_main(int thread) {
    body(thread);
    threads[thread].done = true;
    swapcontext(&threads[thread].context, &scheduler);
}

struct choices {
    uint8_t taken[MOST_STEPS], of[MOST_STEPS];
    int n, at;
};

static int choose(struct choices *c, int n) {
    if (n == 1)
        return 0;
    assert_true(c->at < MOST_STEPS);
    if (c->at == c->n) {
        c->taken[c->n] = 0;
        c->of[c->n++] = (uint8_t)n;
    }
    assert_int_equal(c->of[c->at], n); /* the run is a function of the choices */
    return c->taken[c->at++];
}

static bool advance(struct choices *c) {
    while (c->n > 0 && c->taken[c->n - 1] + 1 == c->of[c->n - 1])
        c->n--;
    if (c->n > 0)
        c->taken[c->n - 1]++;
    c->at = 0;
    return c->n > 0;
}

/* Apart: what getcontext may return to twice has no variables that live on. */
__attribute__((noinline)) static void make_threads(void) {
    for (volatile int i = 0; i < n_threads; i++) {
        getcontext(&threads[i].context);
        threads[i].context.uc_stack.ss_sp = threads[i].stack;
        threads[i].context.uc_stack.ss_size = sizeof threads[i].stack;
        threads[i].context.uc_link = NULL;
        threads[i].done = false;
        makecontext(&threads[i].context, (void (*)(void))thread_main, 1, (int)i);
    }
}

static void run_once(struct choices *c, int most_preemptions) {
    make_threads();
    in_model = true;
    running = -1;
    int preemptions = 0;
    for (;;) {
        int able[MOST_THREADS], n = 0;
        bool goes_on = running >= 0 && !threads[running].done;
        if (goes_on)
            able[n++] = running;
        for (int i = 0; i < n_threads; i++) {
            if (!threads[i].done && i != running && (!goes_on || preemptions < most_preemptions))
                able[n++] = i;
        }
        if (n == 0)
            break;
        int next = able[choose(c, n)];
        preemptions += goes_on && next != running;
        running = next;
        swapcontext(&scheduler, &threads[next].context);
    }
    in_model = false;
}

/* ---- what is checked ---- */

/* Addresses of one home on the first level, three of them also on the second; all share a counter of the filter. */
static const void *keys[4];

static const void *key_with(unsigned home0, unsigned home1, const void *unlike,
                            const void *or_unlike) {
    for (uintptr_t p = 16;; p += 16) {
        uint64_t hash = (p >> 3) * 0x9E3779B97F4A7C15ull;
        if (hash >> 63 == home0 && hash >> 62 == (home0 << 1 | home1) &&
            sm_sampled_filter_index(p) == 5 && (const void *)p != unlike &&
            (const void *)p != or_unlike)
            return (const void *)p;
    }
}

static uint64_t got[MOST_THREADS][4];

static void put(const void *p, uint64_t token) {
    struct sm_sampled_place *place = sm_sampled_reserve(p);
    assert_non_null(place);
    sm_sampled_put(place, p, token);
}

static void empty_now(void) {
    for (unsigned k = 0; k < LEVELS; k++) {
        struct bucket *level = atomic_load(&levels[k]);
        for (size_t i = 0; level != NULL && i < level_buckets(k); i++) {
            assert_int_equal(level[i].overflow, 0);
            for (unsigned j = 0; j < PLACES; j++)
                assert_int_equal(level[i].keys[j].key, 0);
        }
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(sm_sampled_filter[sm_sampled_filter_index((uintptr_t)keys[i])], 0);
    assert_int_equal(sm_sampled_count(), 0);
}

static uint64_t explore(int n, int most_preemptions, void (*set_up)(void), void (*thread)(int),
                        void (*check)(void)) {
    struct choices c = {.n = 0};
    uint64_t runs = 0;
    n_threads = n;
    body = thread;
    do {
        arena_used = 0;
        for (unsigned k = 0; k < LEVELS; k++)
            atomic_store(&levels[k], NULL);
        memset(got, 0, sizeof got);
        assert_true(sm_sampled_setup());
        if (set_up != NULL)
            set_up();
        run_once(&c, most_preemptions);
        check();
        empty_now();
        runs++;
    } while (advance(&c));
    return runs;
}

/* Every thread puts its own block in, sees that it is there, and takes it out. */
static void own_block(int i) {
    put(keys[i], 100 + (uint64_t)i);
    got[i][1] = sm_sampled_perhaps(keys[i]);
    got[i][0] = sm_sampled_take(keys[i]);
}
static void check_own(void) {
    for (int i = 0; i < n_threads; i++) {
        assert_int_equal(got[i][0], 100 + i);
        assert_true(got[i][1]);
    }
}

static void test_two_threads(void **state) {
    uint64_t runs = explore(2, 4, NULL, own_block, check_own);
    print_message("two threads: %llu interleavings, all with up to 4 preemptions\n",
                  (unsigned long long)runs);
    assert_true(runs > 1000);
}

static void test_three_threads(void **state) {
    uint64_t runs = explore(3, 2, NULL, own_block, check_own);
    print_message("three threads: %llu interleavings, all with up to 2 preemptions\n",
                  (unsigned long long)runs);
    assert_true(runs > 1000);
}

/* One operation against one, exhaustively: thread 0 puts a block in, takes one out or has one on hold, in the same buckets
   where thread 1 does. Set-up and end are outside of the race. */
enum operation { PUT, TAKE, HOLD, N_OPERATIONS };
static enum operation operations[2];
static struct sm_sampled_place *held[2];

static void pair_set_up(void) {
    for (int i = 0; i < 2; i++) {
        if (operations[i] != PUT)
            put(keys[i], 20 + (uint64_t)i);
    }
}
static void pair(int i) {
    if (operations[i] == PUT)
        put(keys[i], 20 + (uint64_t)i);
    else if (operations[i] == TAKE)
        got[i][0] = sm_sampled_take(keys[i]);
    else
        held[i] = sm_sampled_hold(keys[i], &got[i][0]);
}
static void check_pair(void) {
    for (int i = 0; i < 2; i++) {
        uint64_t expected = 20 + (uint64_t)i;
        if (operations[i] == PUT) {
            assert_true(sm_sampled_perhaps(keys[i]));
            assert_int_equal(sm_sampled_take(keys[i]), expected);
        } else {
            assert_int_equal(got[i][0], expected);
            assert_int_equal(sm_sampled_take(keys[i]), 0);
        }
        if (operations[i] == HOLD)
            sm_sampled_cancel(held[i], keys[i]);
    }
}
static void test_pairs_exhaustively(void **state) {
    uint64_t runs = 0;
    for (int a = 0; a < N_OPERATIONS; a++) {
        for (int b = 0; b < N_OPERATIONS; b++) {
            operations[0] = (enum operation)a;
            operations[1] = (enum operation)b;
            runs += explore(2, 1000, pair_set_up, pair, check_pair);
        }
    }
    print_message("pairs of operations: %llu interleavings, all of them\n",
                  (unsigned long long)runs);
    assert_true(runs > 5000);
}

/* A block on a deeper level is found while the ones before it come and go. */
static void deep_set_up(void) {
    put(keys[0], 1);
    put(keys[1], 2); /* on the second level: keys[0] has the first place */
}
static void deep(int i) {
    if (i == 0) {
        got[0][0] = sm_sampled_take(keys[0]);
        put(keys[2], 3);
        got[0][1] = sm_sampled_take(keys[2]);
    } else {
        got[1][0] = sm_sampled_take(keys[1]);
    }
}
static void check_deep(void) {
    assert_int_equal(got[0][0], 1);
    assert_int_equal(got[0][1], 3);
    assert_int_equal(got[1][0], 2);
}
static void test_deeper_levels(void **state) {
    explore(2, 4, deep_set_up, deep, check_deep);
}

/* A double free: the two calls overlap; one of them gets the token. */
static void double_set_up(void) {
    put(keys[3], 9);
    put(keys[0], 7);
}
static void double_free(int i) {
    got[i][0] = sm_sampled_take(keys[0]);
    if (i == 0)
        got[0][1] = sm_sampled_take(keys[3]);
}
static void check_double(void) {
    assert_int_equal(got[0][0] + got[1][0], 7);
    assert_int_equal(got[0][1], 9);
}
static void test_double_free(void **state) {
    explore(2, 4, double_set_up, double_free, check_double);
}

/* realloc: held, put back or given up, while another thread takes places. */
static void hold_set_up(void) {
    put(keys[0], 5);
}
static void hold(int i) {
    uint64_t token = 0;
    if (i == 0) {
        struct sm_sampled_place *place = sm_sampled_hold(keys[0], &token);
        got[0][0] = token;
        sm_sampled_put(place, keys[0], token); /* it failed */
        place = sm_sampled_hold(keys[0], &token);
        got[0][1] = token;
        sm_sampled_cancel(place, keys[0]); /* it succeeded */
    } else {
        put(keys[1], 6);
        got[1][0] = sm_sampled_take(keys[1]);
    }
}
static void check_hold(void) {
    assert_int_equal(got[0][0], 5);
    assert_int_equal(got[0][1], 5);
    assert_int_equal(got[1][0], 6);
}
static void test_hold(void **state) {
    explore(2, 3, hold_set_up, hold, check_hold);
}

/* All places taken: refused, and nothing is left behind. */
static void full_set_up(void) {
    for (int i = 0; i < 3; i++)
        put(keys[i], 10 + (uint64_t)i);
}
static void full(int i) {
    if (i == 0) {
        struct sm_sampled_place *place = sm_sampled_reserve(keys[3]);
        got[0][0] = place != NULL;
        if (place != NULL)
            sm_sampled_cancel(place, keys[3]);
    } else {
        for (int k = 2; k >= 0; k--)
            got[1][k] = sm_sampled_take(keys[k]);
    }
}
static void check_full(void) {
    for (int k = 0; k < 3; k++)
        assert_int_equal(got[1][k], 10 + k);
}
static void test_full(void **state) {
    explore(2, 3, full_set_up, full, check_full);
}

int main(void) {
    keys[0] = key_with(0, 0, NULL, NULL);
    keys[1] = key_with(0, 0, keys[0], NULL);
    keys[2] = key_with(0, 1, NULL, NULL);
    keys[3] = key_with(0, 0, keys[0], keys[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs_exhaustively),
        cmocka_unit_test(test_two_threads),
        cmocka_unit_test(test_three_threads),
        cmocka_unit_test(test_deeper_levels),
        cmocka_unit_test(test_double_free),
        cmocka_unit_test(test_hold),
        cmocka_unit_test(test_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
