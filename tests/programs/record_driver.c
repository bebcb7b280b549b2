/* Makes real traces with the recorder: several threads in rounds of short lives, names, marks, references across
   threads, deep and cut stacks.

       record_driver TRACE [THREADS [EVENTS_PER_THREAD [DEPTH_LIMIT [END]]]]
       END: stop (default), exit (no stop at all: the side file stays), kill (SIGKILL), follow (forks a child too) */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "record/recorder.h"

#define SHARED 4096

static uint32_t n_events = 20000;
static _Atomic uint64_t shared[SHARED]; /* objects that any thread may promote or collect */

static uint32_t symbolize(uint64_t code, struct sm_source_location *l, uint32_t max) {
    static __thread char names[3][64];
    uint32_t n = code / 16 % 7 == 0 ? 0 : code / 16 % 3 + 1;
    for (uint32_t i = 0; i < n && i < max; i++) {
        int bytes = snprintf(names[i], sizeof names[i], "Module.function_%llx_%u",
                             (unsigned long long)code, i);
        l[i] = (struct sm_source_location){"lib/module.ml",
                                           13,
                                           names[i],
                                           (size_t)bytes,
                                           (uint32_t)(code % 1000),
                                           (uint32_t)(code % 1000),
                                           3,
                                           17,
                                           0};
    }
    return n;
}

static uint64_t domain(void) {
    return sm_os_tid() % 5;
}

static void *worker(void *arg) {
    uint64_t r = 0x9E3779B97F4A7C15ull * (1 + (uintptr_t)arg);
    uintptr_t frames[3000];
    uint32_t depth = 0;
    char name[32];
    snprintf(name, sizeof name, "worker %u", (unsigned)(uintptr_t)arg);
    sm_recorder_thread_name(name, strlen(name));
    for (uint32_t i = 0; i < n_events; i++) {
        r ^= r << 13;
        r ^= r >> 7;
        r ^= r << 17;
        uint32_t top = r % 977 == 0 ? 3000 : 40;
        uint32_t keep = depth > 4 ? depth - (uint32_t)(r >> 8) % 4 : 0;
        uint32_t want = keep + (uint32_t)(r >> 16) % 6;
        if (r % 977 == 0)
            want = 1500 + (uint32_t)(r >> 20) % 1500;
        if (want > top)
            want = top;
        depth = want;
        for (uint32_t k = 0; k < depth; k++) /* innermost first; the outer ones stay the same */
            frames[k] =
                (0x400000 + (depth - k + (k < 3 ? (uint32_t)(r >> 30) % 50 * 64 : 0)) * 16) | 1;
        struct sm_raw_stack st = {frames, depth, r % 501 == 0, 0};
        uint64_t token;
        if (r % 20 == 0)
            token = sm_recorder_alloc_bytes(r >> 40, 1 + r % 3,
                                            SM_SOURCE(SM_HEAP_EXTERNAL, SM_ORIGIN_REPORTED), &st);
        else
            token = sm_recorder_alloc(1 + (r >> 50) % 40, 1,
                                      r % 11 == 0 ? SM_HEAP_MAJOR : SM_HEAP_MINOR, &st);
        uint64_t other = atomic_exchange(&shared[(r >> 24) % SHARED], token);
        if (r % 3 == 0)
            sm_recorder_promote(other);
        sm_recorder_collect(other);
        if (r % 5000 == 0)
            sm_recorder_mark("a mark", 6);
        if (r % 7000 == 0) {
            struct sm_counter_value v = {SM_COUNTER_HEAP_WORDS, (int64_t)i};
            sm_recorder_counters(&v, 1);
        }
    }
    return NULL;
}

static void rounds(uint32_t n_threads) {
    pthread_t t[64];
    for (uintptr_t round = 0; round < 3; round++) {
        for (uintptr_t i = 0; i < n_threads; i++)
            pthread_create(&t[i], NULL, worker, (void *)(round * n_threads + i));
        for (uintptr_t i = 0; i < n_threads; i++)
            pthread_join(t[i], NULL);
    }
}

int main(int argc, char **argv) {
    char err[512];
    if (argc < 2) {
        fprintf(stderr,
                "usage: record_driver TRACE [THREADS [EVENTS [DEPTH [stop|exit|kill|follow]]]]\n");
        return 2;
    }
    uint32_t n_threads = argc > 2 ? (uint32_t)atoi(argv[2]) : 4;
    if (n_threads < 1 || n_threads > 64)
        n_threads = 4;
    if (argc > 3)
        n_events = (uint32_t)atoi(argv[3]);
    const char *end = argc > 5 ? argv[5] : "stop";
    struct sm_recorder_config c = {.path = argv[1],
                                   .fd = -1,
                                   .sample_rate = 0.001,
                                   .rate_origin = SM_RATE_ARGUMENT,
                                   .depth_limit = argc > 4 ? (uint32_t)atoi(argv[4]) : 0,
                                   .mode = SM_MODE_LINKED,
                                   .context = "driver",
                                   .follow_children = strcmp(end, "follow") == 0,
                                   .current_domain = domain,
                                   .symbolize = symbolize};
    if (sm_recorder_start(&c, err, sizeof err) != 0) {
        fprintf(stderr, "record_driver: %s\n", err);
        return 1;
    }
    rounds(n_threads);
    if (strcmp(end, "follow") == 0) {
        pid_t child = fork();
        rounds(1);
        if (child == 0) {
            sm_recorder_stop(SM_REASON_EXIT);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    if (strcmp(end, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(end, "exit") != 0)
        sm_recorder_stop(SM_REASON_EXIT);
    return 0;
}
