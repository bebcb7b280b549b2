/* Many threads: recycled streams, foreign references, start and stop while others emit. Also run under
   ThreadSanitizer. */
#include "trace_scan.h"

#include <pthread.h>
#include <stdatomic.h>

#include "record/recorder.h"

static char path[128], err[512];
static struct scan scan;

static void start(void) {
    struct sm_recorder_config c = {.path = path, .fd = -1, .sample_rate = 0.01};
    if (sm_recorder_start(&c, err, sizeof err) != 0)
        fail_msg("start: %s", err);
}

static uint64_t alloc(uint32_t depth, uintptr_t salt) {
    uintptr_t frames[200];
    for (uint32_t i = 0; i < depth; i++)
        frames[i] = (0x400000 + (i < 2 ? salt : i) * 16) | 1;
    struct sm_raw_stack st = {frames, depth, false, 0};
    return sm_recorder_alloc(3, 1, 0, &st);
}

static void load(void) {
    memset(&scan, 0, sizeof scan);
    assert_true(scan_trace(path, &scan));
}

/* ---- short threads: memory and streams are bounded by the peak ---- */

static void *short_thread(void *arg) {
    alloc(5, (uintptr_t)arg & 1023);
    return NULL;
}

static void test_short_threads(void **state) {
    uint32_t n = getenv("SM_TEST_QUICK") != NULL ? 5000 : 100000;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    n = 3000;
#endif
    start();
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 65536);
    for (uint32_t i = 0; i < n;) {
        pthread_t t[4];
        int k = 0;
        for (; k < 4 && i < n; k++, i++)
            assert_int_equal(pthread_create(&t[k], &attr, short_thread, (void *)(uintptr_t)i), 0);
        while (k > 0)
            pthread_join(t[--k], NULL);
    }
    sm_recorder_stop(SM_REASON_EXIT);
    load();
    assert_int_equal(scan.n_alloc, n);
    assert_int_equal(scan.end_owners, n);
    assert_true(scan.end_peak <= 5);
    assert_true(scan.n_owner >= n);
    /* Five streams at most; which, depends on the threads of the tests before. */
    int n_streams = 0;
    for (size_t i = 0; i < sizeof scan.next_packet[0] / sizeof scan.next_packet[0][0]; i++)
        n_streams += scan.next_packet[0][i] != 0;
    assert_in_range(n_streams, 1, 5);
    assert_int_equal(scan.end_discarded, 0);
}

/* ---- references to other threads' objects ---- */

static _Atomic uint64_t handed[4][1000];

static pthread_barrier_t all_made;

static void *producer(void *arg) {
    uint32_t me = (uint32_t)(uintptr_t)arg;
    for (uint32_t i = 0; i < 1000; i++)
        atomic_store(&handed[me][i], alloc(20, i));
    pthread_barrier_wait(&all_made);
    for (uint32_t i = 0; i < 500; i++)
        sm_recorder_collect(atomic_exchange(&handed[(me + 1 + i % 3) % 4][i], 0));
    return NULL;
}

static void test_foreign(void **state) {
    start();
    pthread_t t[4];
    pthread_barrier_init(&all_made, NULL, 4);
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, producer, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 1000; k++)
            sm_recorder_promote(atomic_load(&handed[i][k])); /* own and foreign ones, and 0 */
    sm_recorder_stop(SM_REASON_EXIT);
    load();
    assert_int_equal(scan.n_alloc, 4000);
    assert_int_equal(scan.n_collect + scan.n_promote, 4000);
    /* Every thread referred to three others' objects; two of the main thread's promotions may be own ones
       only if it inherited a producer's stream, which holds 500 at most. */
    assert_true(scan.n_foreign_refs >= 2000 + 1000);
}

/* ---- events from destructors that run after ours ---- */

static pthread_key_t late_key;
static _Atomic uint32_t late_events, late_recorded;

static void late_destructor(void *value) {
    late_events++;
    late_recorded += alloc(3, 3) != 0;
    if ((uintptr_t)value < 6)
        pthread_setspecific(late_key, (void *)((uintptr_t)value + 1));
}

static void *late_thread(void *arg) {
    pthread_setspecific(late_key, (void *)1);
    alloc(3, 1);
    return NULL;
}

static void test_destructors(void **state) {
    pthread_key_create(&late_key, late_destructor);
    start();
    for (int i = 0; i < 200; i++) {
        pthread_t t;
        pthread_create(&t, NULL, late_thread, NULL);
        pthread_join(t, NULL);
    }
    uint64_t discarded = sm_recorder_discarded();
    sm_recorder_stop(SM_REASON_EXIT);
    load();
    assert_true(late_events >= 600);
    assert_int_equal(scan.n_alloc, 200 + late_recorded);
    assert_int_equal(late_events - late_recorded, discarded);
    assert_int_equal(scan.end_discarded, discarded);
    assert_true(scan.end_peak <= 3);
}

/* ---- start and stop while others emit ---- */

static _Atomic int quit;
static _Atomic uint64_t total_accepted;

static void *emitter(void *arg) {
    uint64_t kept[64] = {0}, accepted = 0;
    uint32_t i = 0;
    while (!atomic_load(&quit)) {
        i++;
        uint64_t token = alloc(i % 30, i % 100);
        accepted += token != 0;
        sm_recorder_collect(kept[i % 64]); /* often of an earlier session */
        kept[i % 64] = token;
        atomic_store(&handed[(uintptr_t)arg % 4][i % 1000], token);
        sm_recorder_promote(atomic_load(&handed[i % 4][i % 997]));
        if (sm_recorder_sample(100) > 0)
            sm_recorder_mark("m", 1);
        if (i % 1000 == 0)
            sm_recorder_thread_name("emitter", 7);
    }
    atomic_fetch_add(&total_accepted, accepted);
    return NULL;
}

static void *spawner(void *arg) {
    while (!atomic_load(&quit)) {
        pthread_t t;
        pthread_create(&t, NULL, short_thread, NULL);
        pthread_join(t, NULL);
        usleep(300);
    }
    return NULL;
}

static void *rival(void *arg) { /* starts and stops too */
    struct sm_recorder_config c = {.path = path, .fd = -1, .sample_rate = 0.01};
    char e[256];
    while (!atomic_load(&quit)) {
        sm_recorder_start(&c, e, sizeof e);
        usleep(500);
        if (sm_recorder_discarded() == 1)
            usleep(1);
        sm_recorder_stop(SM_REASON_STOPPED);
    }
    return NULL;
}

static void hostile(int rounds, bool with_rival) {
    atomic_store(&quit, 0);
    pthread_t t[10];
    int n = 0;
    for (uintptr_t i = 0; i < 8; i++)
        pthread_create(&t[n++], NULL, emitter, (void *)i);
    pthread_create(&t[n++], NULL, spawner, NULL);
    if (with_rival)
        pthread_create(&t[n++], NULL, rival, NULL);
    for (int i = 0; i < rounds; i++) {
        if (with_rival) {
            usleep(3000);
            sm_recorder_stop(SM_REASON_STOPPED);
            continue;
        }
        start();
        usleep(i % 10 * 1000);
        sm_recorder_stop(SM_REASON_STOPPED);
        load(); /* complete and well-formed each time */
        assert_int_equal(scan.n_end, 1);
        assert_int_equal(scan.n_index, 1);
        assert_int_equal(scan.end_n_events, scan.n_events);
        assert_int_equal(scan.torn_bytes, 0);
        assert_false(scan.has_tail);
    }
    atomic_store(&quit, 1);
    for (int i = 0; i < n; i++)
        pthread_join(t[i], NULL);
    sm_recorder_stop(SM_REASON_STOPPED);
}

static void test_restart_under_fire(void **state) {
    hostile(40, false);
    assert_true(atomic_load(&total_accepted) > 1000);
}

static void test_rival(void **state) {
    hostile(60, true);
    load();
    assert_int_equal(scan.n_end, 1);
}

int main(void) {
    snprintf(path, sizeof path, "/tmp/sm-threads-%d.smtrace", getpid());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_destructors),        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_restart_under_fire), cmocka_unit_test(test_rival),
        cmocka_unit_test(test_short_threads),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
