/* Processes that are killed, fork, or run out of disk: what was recorded can be read. */
#include "trace_scan.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "record/recorder.h"

static char dir[64], path[128], err[512];
static struct scan scan;

static int try_start(const char *p, bool follow) {
    struct sm_recorder_config c = {
        .path = p, .fd = -1, .sample_rate = 0.01, .follow_children = follow};
    return sm_recorder_start(&c, err, sizeof err);
}

static uint64_t alloc(uint32_t depth, uintptr_t salt) {
    uintptr_t frames[200];
    for (uint32_t i = 0; i < depth; i++)
        frames[i] = (0x400000 + (i < 2 ? salt : i) * 16) | 1;
    struct sm_raw_stack st = {frames, depth, false, 0};
    return sm_recorder_alloc(3, 1, 0, &st);
}

static void load(const char *p) {
    memset(&scan, 0, sizeof scan);
    assert_true(scan_trace(p, &scan));
}

/* ---- SIGKILL: nothing that was recorded is lost ---- */

static _Atomic uint64_t *counts; /* shared: events reported by each thread of the child */

static void *victim(void *arg) {
    uintptr_t me = (uintptr_t)arg;
    for (uint32_t i = 0;; i++) {
        alloc(10 + i % 20, i % 500);
        atomic_fetch_add(&counts[me * 8], 1);
    }
    return NULL;
}

static void test_sigkill(void **state) {
    counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t from_tail = 0;
    for (int round = 0; round < 12; round++) {
        memset((void *)counts, 0, 4096);
        pid_t child = fork();
        if (child == 0) {
            signal(SIGSEGV, SIG_DFL); /* the test framework's */
            if (try_start(path, false) != 0)
                _exit(9);
            pthread_t t[3];
            for (uintptr_t i = 1; i < 4; i++)
                pthread_create(&t[i - 1], NULL, victim, (void *)i);
            victim((void *)0);
        }
        while (atomic_load(&counts[0]) + atomic_load(&counts[8]) < 2000)
            usleep(100);
        usleep((unsigned)(round * 7919 % 40000));
        kill(child, round % 3 == 2 ? SIGSEGV : SIGKILL);
        int status;
        waitpid(child, &status, 0);
        assert_true(WIFSIGNALED(status));
        uint64_t reported = 0;
        for (int i = 0; i < 4; i++)
            reported += atomic_load(&counts[i * 8]);
        load(path);
        assert_true(scan.has_tail);
        assert_int_equal(scan.tail_state, 1);
        assert_int_equal(scan.n_end, 0);
        /* Each thread may have finished one event that it had not counted yet. */
        if (scan.n_alloc < reported || scan.n_alloc > reported + 4)
            fail_msg("reported %llu, found %llu", (unsigned long long)reported,
                     (unsigned long long)scan.n_alloc);
        from_tail += scan.tail_events;
    }
    assert_true(from_tail > 0);
}

/* exec keeps what was recorded, as death does. */
static void test_exec(void **state) {
    pid_t child = fork();
    if (child == 0) {
        if (try_start(path, false) != 0)
            _exit(9);
        for (int i = 0; i < 100; i++)
            alloc(5, 1);
        execl("/bin/true", "true", NULL);
        _exit(8);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    load(path);
    assert_int_equal(scan.n_alloc, 100);
    assert_int_equal(scan.tail_events, scan.n_events);
}

/* ---- full disk ---- */

static void test_disk_full(void **state) {
    char mount_point[128], file[256];
    snprintf(mount_point, sizeof mount_point, "%s/small", dir);
    mkdir(mount_point, 0700);
    if (mount("tmpfs", mount_point, "tmpfs", 0, "size=2m") != 0)
        skip();
    snprintf(file, sizeof file, "%s/t", mount_point);
    pid_t child = fork(); /* a SIGBUS would kill it */
    if (child == 0) {
        uint64_t accepted = 0, tried = 0;
        if (try_start(file, false) != 0)
            _exit(9);
        while (tried < 1000000) {
            tried++;
            accepted += alloc(30, tried * 7919 % 100003) != 0;
        }
        if (sm_recorder_active() || sm_recorder_discarded() != tried - accepted)
            _exit(10);
        sm_recorder_stop(SM_REASON_EXIT);
        FILE *f = fopen(path, "w");
        fprintf(f, "%llu %llu", (unsigned long long)accepted, (unsigned long long)tried);
        fclose(f);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    unsigned long long accepted = 0, tried = 0;
    FILE *f = fopen(path, "r");
    int fields = f != NULL ? fscanf(f, "%llu %llu", &accepted, &tried) : 0;
    if (f != NULL)
        fclose(f);
    memset(&scan, 0, sizeof scan);
    bool there = scan_trace(file, &scan);
    umount(mount_point);
    rmdir(mount_point);
    assert_int_equal(status, 0);
    assert_int_equal(fields, 2);
    assert_true(there);
    assert_true(accepted > 10000 && accepted < tried);
    assert_int_equal(scan.n_alloc, accepted); /* each event that was accepted can be read */
    assert_int_equal(scan.header_discarded, tried - accepted);
    assert_true(scan.n_end == 1 || (scan.has_tail && scan.tail_state == 3));
}

static void test_no_room_for_a_slot(void **state) {
    char mount_point[128], file[256];
    snprintf(mount_point, sizeof mount_point, "%s/tiny", dir);
    mkdir(mount_point, 0700);
    if (mount("tmpfs", mount_point, "tmpfs", 0, "size=64k") != 0)
        skip();
    snprintf(file, sizeof file, "%s/t", mount_point);
    pid_t child = fork();
    if (child == 0) {
        if (try_start(file, false) != 0)
            _exit(9);
        for (int i = 0; i < 100; i++)
            if (alloc(30, 1) != 0)
                _exit(10);
        if (sm_recorder_discarded() != 100)
            _exit(11);
        sm_recorder_stop(SM_REASON_EXIT);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    memset(&scan, 0, sizeof scan);
    bool there = scan_trace(file, &scan);
    umount(mount_point);
    rmdir(mount_point);
    assert_int_equal(status, 0);
    assert_true(there);
    assert_int_equal(scan.end_discarded, 100);
}

/* A limit on file sizes: no SIGXFSZ. */
static void test_file_size_limit(void **state) {
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {1000000, 1000000};
        setrlimit(RLIMIT_FSIZE, &limit);
        if (try_start(path, false) != 0)
            _exit(9);
        for (uint32_t i = 0; i < 1000000; i++)
            alloc(30, i * 7919 % 100003);
        sm_recorder_stop(SM_REASON_EXIT);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    load(path);
    assert_true(scan.n_alloc > 10000);
}

/* ---- forks ---- */

extern char **environ;

static void test_fork_silent(void **state) {
    assert_int_equal(try_start(path, false), 0);
    uint64_t before = alloc(5, 1);
    for (int i = 0; i < 5; i++) {
        pid_t child = i < 3 ? fork() : (pid_t)syscall(SYS_fork);
        if (child == 0) {
            if (sm_recorder_active() || alloc(5, 2) != 0)
                _exit(7);
            sm_recorder_collect(before);
            sm_recorder_stop(SM_REASON_EXIT); /* as an at_exit handler would */
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        assert_int_equal(status, 0);
        alloc(5, 3);
    }
    /* vfork and posix_spawn */
    pid_t spawned;
    char *argv[] = {"true", NULL};
    assert_int_equal(posix_spawn(&spawned, "/bin/true", NULL, NULL, argv, environ), 0);
    waitpid(spawned, NULL, 0);
    alloc(5, 4);
    sm_recorder_stop(SM_REASON_EXIT);
    load(path);
    assert_int_equal(scan.n_alloc, 7);
    assert_int_equal(scan.n_collect, 0);
    assert_int_equal(scan.end_forks, 3); /* the bare system call runs no handlers */
    assert_int_equal(scan.n_end, 1);
}

static void *forked_thread(void *arg) {
    for (int i = 0; i < 50; i++)
        alloc(7, 2);
    return NULL;
}

static void test_fork_follow(void **state) {
    for (int with_p = 0; with_p < 2; with_p++) {
        char pattern[160], child_path[160], parent_path[160];
        snprintf(pattern, sizeof pattern, with_p ? "%s/f.%%p" : "%s/f", dir);
        assert_int_equal(try_start(pattern, true), 0);
        alloc(5, 1);
        int status;
        pid_t child = fork();
        if (child == 0) {
            if (!sm_recorder_active())
                _exit(7);
            for (int i = 0; i < 10; i++)
                if (alloc(5, 2) == 0)
                    _exit(8);
            pthread_t t;
            pthread_create(&t, NULL, forked_thread, NULL);
            pthread_join(t, NULL);
            sm_recorder_stop(SM_REASON_EXIT);
            _exit(0);
        }
        alloc(5, 3);
        waitpid(child, &status, 0);
        assert_int_equal(status, 0);
        sm_recorder_stop(SM_REASON_EXIT);
        snprintf(child_path, sizeof child_path, "%s/f.%d", dir, child);
        snprintf(parent_path, sizeof parent_path, with_p ? "%s/f.%d" : "%s/f", dir, getpid());
        load(child_path);
        assert_int_equal(scan.n_alloc, 60);
        assert_int_equal(scan.meta_parent, getpid());
        assert_int_equal(scan.pid, child);
        assert_int_equal(scan.n_end, 1);
        load(parent_path);
        assert_int_equal(scan.n_alloc, 2);
        assert_int_equal(scan.end_forks, 1);
        unlink(child_path);
        unlink(parent_path);
    }
}

/* A child may start a recording of its own, also when another thread of the parent was inside an event. */
static void *busy_thread(void *arg) {
    /* relaxed: only an end to the loop; pairs with test_fork_while_busy */
    while (!atomic_load_explicit((atomic_int *)arg, memory_order_relaxed))
        alloc(20, 5);
    return NULL;
}

static void test_fork_while_busy(void **state) {
    atomic_int quit = 0;
    assert_int_equal(try_start(path, false), 0);
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, busy_thread, &quit);
    char child_path[160];
    snprintf(child_path, sizeof child_path, "%s/child", dir);
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(30);
            if (try_start(child_path, false) != 0 || alloc(3, 3) == 0)
                _exit(7);
            sm_recorder_stop(SM_REASON_EXIT);
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        assert_int_equal(status, 0);
        load(child_path);
        assert_int_equal(scan.n_alloc, 1);
        assert_int_equal(scan.n_end, 1);
    }
    atomic_store_explicit(&quit, 1, memory_order_relaxed);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    sm_recorder_stop(SM_REASON_EXIT);
    unlink(child_path);
    load(path);
    assert_int_equal(scan.n_end, 1);
    assert_int_equal(scan.end_forks, 50);
}

int main(void) {
    snprintf(dir, sizeof dir, "/tmp/sm-death-%d", getpid());
    mkdir(dir, 0700);
    snprintf(path, sizeof path, "%s/t.smtrace", dir);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sigkill),         cmocka_unit_test(test_exec),
        cmocka_unit_test(test_disk_full),       cmocka_unit_test(test_no_room_for_a_slot),
        cmocka_unit_test(test_file_size_limit), cmocka_unit_test(test_fork_silent),
        cmocka_unit_test(test_fork_follow),     cmocka_unit_test(test_fork_while_busy),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char tail[160];
    snprintf(tail, sizeof tail, "%s.tail", path);
    unlink(tail);
    unlink(path);
    rmdir(dir);
    return failed;
}
