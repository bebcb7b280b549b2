/* The recorder in one process: what is reported stands in the file. Processes that die are in
   test_recorder_death.c, forks in test_recorder_fork.c, many threads in test_recorder_threads.c. */
#include "trace_scan.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "record/recorder.h"

static char dir[64], path[128];
static char err[512];
static struct scan scan;

static struct sm_recorder_config config(void) {
    struct sm_recorder_config c = {.path = path, .fd = -1, .sample_rate = 0.01};
    return c;
}

static void start(const struct sm_recorder_config *c) {
    err[0] = 0;
    if (sm_recorder_start(c, err, sizeof err) != 0)
        fail_msg("start: %s", err);
}

static void load(void) {
    void (*on_event)(void *, uint32_t, const struct ref_event *) = scan.on_event;
    memset(&scan, 0, sizeof scan);
    scan.on_event = on_event;
    assert_true(scan_trace(path, &scan));
}

static uint64_t alloc(uint32_t depth, uintptr_t salt) {
    uintptr_t frames[2000];
    for (uint32_t i = 0; i < depth; i++)
        frames[i] = (0x400000 + (i < 2 ? salt : i) * 16) | 1;
    struct sm_raw_stack st = {frames, depth, false, 0};
    return sm_recorder_alloc(3, 1, 0, &st);
}

static uint32_t symbolize(uint64_t code, struct sm_source_location *l, uint32_t max) {
    static __thread char name[64];
    int n = snprintf(name, sizeof name, "f_%llx", (unsigned long long)code);
    *l = (struct sm_source_location){"a.ml", 4, name, (size_t)n, 1, 1, 2, 3, 0};
    return 1;
}

static void test_life(void **state) {
    assert_false(sm_recorder_active());
    assert_int_equal(alloc(3, 1), 0); /* before any start */
    struct sm_recorder_config c = config();
    c.symbolize = symbolize;
    c.context = "life";
    start(&c);
    assert_true(sm_recorder_active());
    assert_true(sm_recorder_sample_rate() == 0.01);
    assert_int_equal(sm_recorder_start(&c, err, sizeof err), -1);
    assert_non_null(strstr(err, "active already"));
    uint64_t tokens[1000];
    for (uint32_t i = 0; i < 1000; i++) {
        tokens[i] = alloc(10, i);
        assert_true(tokens[i] != 0 && tokens[i] >> 62 == 0);
        assert_true(i == 0 || tokens[i] != tokens[i - 1]);
    }
    for (uint32_t i = 0; i < 500; i++) {
        errno = 77;
        sm_recorder_promote(tokens[i]);
        sm_recorder_collect(tokens[i]);
        sm_recorder_collect(0);
        assert_int_equal(errno, 77);
    }
    sm_recorder_mark("half", 4);
    sm_recorder_thread_name("worker", 6);
    struct sm_counter_value v[] = {{SM_COUNTER_RSS, 12345}, {SM_COUNTER_HEAP_WORDS, -1}};
    sm_recorder_counters(v, 2);
    sm_recorder_final_counters(v, 2);
    /* The side file exists while recording. */
    char tail[160];
    snprintf(tail, sizeof tail, "%s.tail", path);
    assert_int_equal(access(tail, F_OK), 0);
    struct stat st;
    stat(path, &st);
    assert_int_equal(st.st_mode & 0777, 0600);
    sm_recorder_stop(SM_REASON_STOPPED);
    sm_recorder_stop(SM_REASON_STOPPED);
    assert_false(sm_recorder_active());
    assert_int_not_equal(access(tail, F_OK), 0);
    sm_recorder_collect(tokens[600]); /* late */
    assert_int_equal(alloc(3, 1), 0);

    load();
    assert_int_equal(scan.n_alloc, 1000);
    assert_int_equal(scan.n_promote, 500);
    assert_int_equal(scan.n_collect, 500);
    assert_int_equal(scan.n_own_refs, 1000);
    assert_int_equal(scan.n_marks, 1);
    assert_int_equal(scan.n_counters, 1);
    assert_int_equal(scan.n_owner, 2);
    assert_int_equal(scan.n_index, 1);
    assert_int_equal(scan.n_end, 1);
    assert_int_equal(scan.end_reason, SM_REASON_STOPPED);
    assert_int_equal(scan.end_n_events, scan.n_events);
    assert_int_equal(scan.end_discarded, 0);
    assert_int_equal(scan.end_owners, 1);
    assert_int_equal(scan.names, 1000); /* salts 0..999 contain the 8 outer frames */
    assert_int_equal(scan.torn_bytes, 0);
    assert_non_null(memmem(scan.meta, scan.meta_bytes, "life", 4));
    assert_non_null(memmem(scan.meta, scan.meta_bytes, "test_recorder", 13));
}

/* Tokens of one session mean nothing in the next. */
static void test_restart(void **state) {
    struct sm_recorder_config c = config();
    uint32_t generation = sm_recorder_generation();
    start(&c);
    assert_int_equal(sm_recorder_generation(), generation + 1);
    uint64_t old = alloc(4, 1);
    sm_recorder_stop(SM_REASON_STOPPED);
    start(&c);
    uint64_t fresh = alloc(4, 1);
    assert_true(old != fresh);
    sm_recorder_promote(old);
    sm_recorder_collect(old);
    sm_recorder_collect(fresh);
    sm_recorder_stop(SM_REASON_EXIT);
    load();
    assert_int_equal(scan.n_alloc, 1);
    assert_int_equal(scan.n_promote, 0);
    assert_int_equal(scan.n_collect, 1);
    assert_int_equal(scan.end_reason, SM_REASON_EXIT);
    /* Beyond the 255 generations that a token can tell apart: never zero, never too large. */
    for (int i = 0; i < 300; i++) {
        start(&c);
        uint64_t token = alloc(1, 1);
        assert_true(token >> 54 != 0 && token >> 62 == 0);
        sm_recorder_stop(SM_REASON_EXIT);
    }
}

/* Many packets; the file's index agrees with the file (checked by the scan). */
static void test_many_packets(void **state) {
    struct sm_recorder_config c = config();
    c.symbolize = symbolize;
    c.tick_ns = 1;
    start(&c);
    for (uint32_t i = 0; i < 200000; i++) {
        uint64_t token = alloc(10 + i % 40, i % 5000);
        if (i % 3 == 0)
            sm_recorder_collect(token);
    }
    sm_recorder_stop(SM_REASON_EXIT);
    load();
    assert_int_equal(scan.n_alloc, 200000);
    assert_int_equal(scan.n_collect, 66667);
    assert_true(scan.n_events_packets > 8);
    assert_true(scan.names >= 5000);
    assert_int_equal(scan.end_n_events, scan.n_events);
}

/* Stacks of any depth: cut in the middle at the limit; an event larger than a slot usually is. */
static void test_deep(void **state) {
    static uintptr_t frames[SM_MAX_DEPTH + 10000];
    uint32_t n = SM_MAX_DEPTH + 10000;
    struct sm_recorder_config c = config();
    for (uint32_t limit = 2; limit <= SM_MAX_DEPTH; limit *= 4) {
        c.depth_limit = limit;
        start(&c);
        for (uint32_t k = 0; k < 6; k++) {
            for (uint32_t i = 0; i < n; i++) /* hard to compress, all different each time */
                frames[i] =
                    ((uintptr_t)(i * 7919 + k * 1000003 + 1) * 0x9E3779B97F4A7C15ull >> 8) | 1;
            struct sm_raw_stack st = {frames, n, false, 0};
            assert_true(sm_recorder_alloc(1, 1, 0, &st) != 0);
        }
        sm_recorder_stop(SM_REASON_EXIT);
        load();
        assert_int_equal(scan.n_alloc, 6);
        assert_int_equal(scan.max_depth, limit);
        assert_int_equal(scan.n_cut, 6);
    }
}

static void test_refusals(void **state) {
    struct sm_recorder_config c = config();
    c.path = "/nonexistent/dir/file";
    assert_int_equal(sm_recorder_start(&c, err, sizeof err), -1);
    assert_non_null(strstr(err, "/nonexistent/dir/file"));
    c.path = "/tmp";
    assert_int_equal(sm_recorder_start(&c, err, sizeof err), -1);
    assert_non_null(strstr(err, "directory"));
    c = config();
    c.sample_rate = 0;
    assert_int_equal(sm_recorder_start(&c, err, sizeof err), -1);
    c.sample_rate = 1.5;
    assert_int_equal(sm_recorder_start(&c, err, sizeof err), -1);
    c.sample_rate = 0.0 / 0.0;
    assert_int_equal(sm_recorder_start(&c, err, sizeof err), -1);
    c = config();
    c.path = "/dev/full";
    assert_int_equal(sm_recorder_start(&c, err, sizeof err), -1);
    assert_non_null(strstr(err, "No space left"));
    assert_false(sm_recorder_active());

    /* Another process records into the file: refused, and the file stays as it is. */
    int ready[2], done[2];
    assert_int_equal(pipe(ready) | pipe(done), 0);
    pid_t child = fork();
    if (child == 0) {
        char b;
        c = config();
        int r = sm_recorder_start(&c, err, sizeof err);
        alloc(3, 1);
        if (write(ready[1], &r, 1) != 1 || read(done[0], &b, 1) != 1)
            _exit(1);
        sm_recorder_stop(SM_REASON_EXIT);
        _exit(0);
    }
    char b;
    assert_int_equal(read(ready[0], &b, 1), 1);
    c = config();
    assert_int_equal(sm_recorder_start(&c, err, sizeof err), -1);
    assert_non_null(strstr(err, "another process"));
    assert_int_equal(write(done[1], "x", 1), 1);
    waitpid(child, NULL, 0);
    close(ready[0]), close(ready[1]), close(done[0]), close(done[1]);
    load();
    assert_int_equal(scan.n_alloc, 1);
    assert_int_equal(scan.n_end, 1);
}

static void test_percent_p(void **state) {
    char with_p[160], expected[160];
    snprintf(with_p, sizeof with_p, "%s/t.%%p.%%%%", dir);
    snprintf(expected, sizeof expected, "%s/t.%d.%%", dir, getpid());
    struct sm_recorder_config c = config();
    c.path = with_p;
    start(&c);
    alloc(1, 1);
    sm_recorder_stop(SM_REASON_EXIT);
    assert_int_equal(access(expected, F_OK), 0);
    unlink(expected);
}

/* A signal handler that reports an event while its thread is inside one. */
static volatile uint64_t handler_tokens, handler_runs;
static volatile int pester_done;
static void on_signal(int sig) {
    handler_runs++;
    handler_tokens += alloc(5, handler_runs) != 0;
}

static void *pester(void *target) {
    pthread_t thread = *(pthread_t *)target;
    for (int i = 0; i < 3000; i++) {
        pthread_kill(thread, SIGUSR1);
        usleep(50);
    }
    __atomic_store_n(&pester_done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void test_reentered(void **state) {
    struct sm_recorder_config c = config();
    struct sigaction sa = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &sa, NULL);
    start(&c);
    /* The stream exists when the first signal comes: events inside of its opening are counted elsewhere. */
    uint64_t mine = alloc(20, 0) != 0;
    pthread_t self = pthread_self(), other;
    pthread_create(&other, NULL, pester, &self);
    while (!__atomic_load_n(&pester_done, __ATOMIC_ACQUIRE))
        mine += alloc(20, mine % 100) != 0;
    pthread_join(other, NULL);
    alloc(1, 1);
    mine++;
    sm_recorder_stop(SM_REASON_EXIT);
    load();
    assert_true(handler_runs > handler_tokens); /* some did come inside of an event */
    assert_int_equal(scan.n_alloc, mine + handler_tokens);
    assert_int_equal(scan.discarded, handler_runs - handler_tokens);
    assert_int_equal(scan.header_discarded, handler_runs - handler_tokens);
    assert_int_equal(scan.end_discarded, handler_runs - handler_tokens);
}

/* A reader at the other end of a pipe gets the whole trace, index included. */
static void *drain(void *arg) {
    int fd = *(int *)arg;
    FILE *f = fopen(path, "wb");
    char buf[65536];
    ssize_t n;
    while ((n = read(fd, buf, sizeof buf)) > 0)
        fwrite(buf, 1, (size_t)n, f);
    fclose(f);
    return NULL;
}

static void *pipe_writer(void *arg) {
    for (uint32_t i = 0; i < 100000; i++)
        alloc(30, i % 3000);
    return NULL;
}

static void test_pipe(void **state) {
    for (int kind = 0; kind < 2; kind++) {
        int fds[2];
        assert_int_equal(kind == 0 ? pipe(fds) : socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        pthread_t reader, writers[3];
        unlink(path);
        pthread_create(&reader, NULL, drain, &fds[0]);
        struct sm_recorder_config c = config();
        c.path = NULL;
        c.fd = fds[1];
        start(&c);
        for (int i = 0; i < 3; i++)
            pthread_create(&writers[i], NULL, pipe_writer, NULL);
        for (int i = 0; i < 3; i++)
            pthread_join(writers[i], NULL);
        sm_recorder_stop(SM_REASON_EXIT);
        close(fds[1]);
        pthread_join(reader, NULL);
        close(fds[0]);
        load();
        assert_int_equal(scan.n_alloc, 300000);
        assert_int_equal(scan.n_index, 1);
        assert_int_equal(scan.n_end, 1);
        assert_true(scan.n_events_packets > 3);
    }
}

/* A reader that goes away neither kills the program nor stops it. */
static void test_broken_pipe(void **state) {
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    struct sm_recorder_config c = config();
    c.path = NULL;
    c.fd = fds[1];
    signal(SIGPIPE, SIG_DFL);
    start(&c);
    close(fds[0]);
    for (uint32_t i = 0; i < 100000; i++)
        alloc(30, i % 3000);
    assert_false(sm_recorder_active());
    assert_true(sm_recorder_discarded() > 1000);
    sm_recorder_stop(SM_REASON_EXIT);
    close(fds[1]);
    sigset_t pending;
    sigpending(&pending);
    assert_false(sigismember(&pending, SIGPIPE));
}

/* Stop called from within an event, as a signal handler that calls exit would: it returns soon, the event is completed, and
   nothing is lost; the trace is finished by the next stop or start. */
static int stop_inside;
static uint32_t symbolize_and_stop(uint64_t code, struct sm_source_location *l, uint32_t max) {
    if (stop_inside) {
        stop_inside = 0;
        sm_recorder_stop(SM_REASON_EXIT);
    }
    return symbolize(code, l, max);
}

static void test_stop_inside_event(void **state) {
    struct sm_recorder_config c = config();
    c.symbolize = symbolize_and_stop;
    for (int again = 0; again < 2; again++) {
        start(&c);
        alloc(5, 1);
        stop_inside = 1;
        time_t before = time(NULL);
        assert_true(alloc(5, 77) != 0);
        assert_true(time(NULL) - before < 4);
        assert_false(sm_recorder_active());
        load(); /* as a reader would find it now */
        assert_true(scan.has_tail);
        assert_int_equal(scan.n_alloc, 2);
        assert_int_equal(scan.n_end, 0);
        if (again == 0) {
            sm_recorder_stop(SM_REASON_STOPPED);
            load();
            assert_false(scan.has_tail);
            assert_int_equal(scan.n_alloc, 2);
            assert_int_equal(scan.n_end, 1);
            assert_int_equal(scan.end_reason, SM_REASON_EXIT);
        } else {
            char other[160];
            snprintf(other, sizeof other, "%s/other", dir);
            c.path = other;
            start(&c);
            load();
            assert_int_equal(scan.n_end, 1);
            sm_recorder_stop(SM_REASON_STOPPED);
            unlink(other);
        }
    }
}

static void test_dev_null(void **state) {
    struct sm_recorder_config c = config();
    c.path = "/dev/null";
    start(&c);
    for (uint32_t i = 0; i < 100000; i++)
        alloc(30, i % 3000);
    assert_true(sm_recorder_active());
    sm_recorder_stop(SM_REASON_EXIT);
    assert_int_not_equal(access("/dev/null.tail", F_OK), 0);
}

int main(void) {
    snprintf(dir, sizeof dir, "/tmp/sm-recorder-%d", getpid());
    mkdir(dir, 0700);
    snprintf(path, sizeof path, "%s/t.smtrace", dir);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_many_packets),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_percent_p),
        cmocka_unit_test(test_reentered),
        cmocka_unit_test(test_pipe),
        cmocka_unit_test(test_broken_pipe),
        cmocka_unit_test(test_dev_null),
        cmocka_unit_test(test_stop_inside_event),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    rmdir(dir);
    return failed;
}
