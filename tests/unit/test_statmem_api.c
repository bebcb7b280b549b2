/* statmem.h as a C program uses it: through the shared library, from several threads. */
#include "trace_scan.h"

#include <pthread.h>

#include "statmem.h"

static char path[128];
static struct scan scan;

static __attribute__((noinline)) statmem_token a_site_with_a_name(size_t bytes) {
    statmem_token t = statmem_ext_alloc(bytes);
    __asm__ volatile("" ::: "memory"); /* no tail call */
    return t;
}

static void *worker(void *arg) {
    statmem_thread_name("crunch");
    uint64_t *sampled = arg;
    for (int i = 0; i < 20000; i++) {
        statmem_token t = a_site_with_a_name(100);
        *sampled += t != 0;
        if (i % 2)
            statmem_ext_free(t);
    }
    return NULL;
}

static uint64_t sum_samples, n_sizes;
static void on_event(void *ctx, uint32_t stream, const struct ref_event *ev) {
    if (ev->op == SM_OP_ALLOC_BYTES) {
        sum_samples += ev->n_samples;
        n_sizes += ev->size == 100;
        assert_in_range(ev->depth, 3, 6); /* the site, worker, and what starts threads */
        assert_int_equal(SM_SOURCE_HEAP(ev->source), SM_HEAP_EXTERNAL);
    }
}

static void test_use(void **state) {
    char err[256] = "";
    assert_int_equal(statmem_ext_alloc(100), 0);
    assert_false(statmem_active());
    struct statmem_options o = {.struct_bytes = sizeof o,
                                .path = path,
                                .rate = 0.01,
                                .context = "from C",
                                .has_seed = 1,
                                .seed = 4};
    assert_int_equal(statmem_start(&o, err, sizeof err), 0);
    assert_true(statmem_active());
    assert_true(statmem_rate() == 0.01);
    assert_int_equal(statmem_start(&o, err, sizeof err), -1);
    assert_true(err[0] != 0);
    statmem_mark("begin");
    uint64_t sampled[4] = {0};
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, worker, &sampled[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    statmem_stop();
    assert_int_equal(statmem_discarded(), 0);
    scan.on_event = on_event;
    assert_true(scan_trace(path, &scan));
    uint64_t all = sampled[0] + sampled[1] + sampled[2] + sampled[3];
    assert_int_equal(scan.n_alloc, all);
    assert_int_equal(n_sizes, all);
    assert_int_equal(scan.n_marks, 1);
    assert_true(scan.n_collect > all / 3 && scan.n_collect < all);
    /* 80000 blocks of 12.5 words at 0.01: 10000 expected, standard deviation 100. */
    assert_true(sum_samples > 9300 && sum_samples < 10700);
    /* The site has its name. */
    size_t bytes;
    uint8_t *data = scan_load(path, &bytes);
    assert_non_null(memmem(data, bytes, "a_site_with_a_name", 18));
    assert_non_null(memmem(data, bytes, "crunch", 6));
    free(data);
}

static void test_environment(void **state) {
    char err[256] = "";
    unsetenv("MEMTRACE");
    assert_int_equal(statmem_start_if_requested(err, sizeof err), 0);
    setenv("MEMTRACE", path, 1);
    setenv("MEMTRACE_RATE", "2.5e-1", 1);
    assert_int_equal(statmem_start_if_requested(err, sizeof err), 1);
    assert_true(statmem_rate() == 0.25);
    statmem_stop();
    const char *wrong[] = {"",     "x",   "1e",     "-1",  "0",  "2",
                           "0.1x", "nan", "1e-999", "1/0", "1/", "3/2"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        setenv("MEMTRACE_RATE", wrong[i], 1);
        assert_int_equal(statmem_start_if_requested(err, sizeof err), -1);
    }
    setenv("STATMEM_RATE", "1/2", 1);
    assert_int_equal(statmem_start_if_requested(err, sizeof err), 1);
    assert_true(statmem_rate() == 0.5);
    statmem_stop();
}

int main(void) {
    snprintf(path, sizeof path, "/tmp/sm-api-%d.smtrace", getpid());
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_use),
                                       cmocka_unit_test(test_environment)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
