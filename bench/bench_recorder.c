/* What one event costs in the recorder, clock read included: ns per event by depth and by how much
   neighbouring stacks differ. The stacks are those of a random walk over a call graph, made beforehand.

       bench_recorder [--json] [EVENTS]            (default 1 000 000) */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "record/recorder.h"

#define STACKS 2048
#define ROUNDS 5

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Of this thread: other programs on the machine do not count. */
static double cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

struct workload {
    const char *name;
    uint32_t depth;
    uint32_t change; /* at most so many innermost frames differ from the stack before */
    uint32_t sites;  /* callees of a function */
};

static const struct workload workloads[] = {
    {"depth 10, same stack", 10, 0, 1},
    {"depth 10, small steps", 10, 4, 3},
    {"depth 10, all frames change", 10, 10, 3},
    {"depth 100, same stack", 100, 0, 1},
    {"depth 100, small steps", 100, 6, 3},
    {"depth 100, large steps", 100, 30, 3},
    {"depth 100, all frames change", 100, 100, 2},
    {"depth 1000, small steps", 1000, 8, 3},
};

static uintptr_t *stacks;

static uint64_t rng = 0x243F6A8885A308D3ull;
static uint32_t rnd(uint32_t n) {
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (uint32_t)((rng >> 32) * n >> 32);
}

static void make_stacks(const struct workload *w) {
    static uintptr_t outer_first[4096];
    for (uint32_t k = 0; k < STACKS; k++) {
        uint32_t from = k == 0 ? 0 : w->depth - (w->change == 0 ? 0 : rnd(w->change + 1));
        for (uint32_t i = from; i < w->depth; i++) {
            /* A function calls one of `sites` others, mostly the first. */
            uint32_t pick = rnd(4) != 0 ? 0 : rnd(w->sites);
            uintptr_t caller = i > 0 ? outer_first[i - 1] : 0x400001;
            outer_first[i] = 0x400001 + ((caller * 31 + pick * 977 + i) % 5000) * 32;
        }
        for (uint32_t i = 0; i < w->depth; i++)
            stacks[(size_t)k * w->depth + i] = outer_first[w->depth - 1 - i];
    }
}

static double run(const struct workload *w, uint64_t events) {
    double begin = cpu_ns();
    for (uint64_t k = 0; k < events; k++) {
        struct sm_raw_stack st = {stacks + (k % STACKS) * w->depth, w->depth, false, 0};
        sm_recorder_alloc(3, 1, 0, &st);
    }
    return (cpu_ns() - begin) / (double)events;
}

static double run_refs(uint64_t events) {
    uint64_t tokens[1024];
    struct sm_raw_stack st = {stacks, 1, false, 0};
    for (uint32_t i = 0; i < 1024; i++)
        tokens[i] = sm_recorder_alloc(1, 1, 0, &st);
    double begin = cpu_ns();
    for (uint64_t k = 0; k < events; k++)
        sm_recorder_collect(tokens[k % 1024]);
    return (cpu_ns() - begin) / (double)events;
}

static double run_clock(void) {
    struct timespec t;
    double begin = cpu_ns();
    for (int k = 0; k < 1000000; k++)
        clock_gettime(CLOCK_MONOTONIC, &t);
    return (cpu_ns() - begin) / 1e6;
}

static double run_sampler(void) {
    uint64_t sum = 0;
    double begin = cpu_ns();
    for (int k = 0; k < 10000000; k++)
        sum += sm_recorder_sample(8);
    double took = cpu_ns() - begin;
    return sum == UINT64_MAX ? 0 : took / 1e7;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint64_t events = 1000000;

static void *thread_main(void *arg) {
    run(&workloads[1], events);
    return arg;
}

static double run_threads(int n) {
    pthread_t t[16];
    double begin = now_ns();
    for (int i = 0; i < n; i++)
        pthread_create(&t[i], NULL, thread_main, NULL);
    for (int i = 0; i < n; i++)
        pthread_join(t[i], NULL);
    return (now_ns() - begin) / (double)events / n;
}

static void start(const struct sm_recorder_config *c) {
    char err[256];
    if (sm_recorder_start(c, err, sizeof err) != 0) {
        fprintf(stderr, "bench_recorder: %s\n", err);
        exit(1);
    }
}

static void show(bool json, const char *name, double median, double least, double bytes) {
    static bool later;
    if (json)
        printf("%s\"%s\": {\"ns\": %.2f, \"least_ns\": %.2f, \"bytes\": %.2f}", later ? ", " : "{",
               name, median, least, bytes);
    else
        printf("%-32s %8.1f ns (least %.1f)  %.2f bytes\n", name, median, least, bytes);
    later = true;
}

int main(int argc, char **argv) {
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    if (argc > 1 + json)
        events = strtoull(argv[1 + json], NULL, 10);
    char path[64];
    snprintf(path, sizeof path, "/tmp/statmem-bench-%d.smtrace", getpid());
    stacks = malloc((size_t)STACKS * 1000 * sizeof *stacks);
    struct sm_recorder_config c = {.path = path, .fd = -1, .sample_rate = 1e-4};
    double clock_ns = run_clock();
    show(json, "clock read", clock_ns, clock_ns, 0);
    for (size_t i = 0; i < sizeof workloads / sizeof workloads[0]; i++) {
        const struct workload *w = &workloads[i];
        double ns[ROUNDS];
        uint64_t n = w->depth >= 1000 ? events / 10 + 1 : events;
        make_stacks(w);
        struct stat st = {0};
        for (int r = 0; r < ROUNDS; r++) {
            start(&c);
            ns[r] = run(w, n);
            sm_recorder_stop(SM_REASON_EXIT);
            stat(path, &st);
        }
        qsort(ns, ROUNDS, sizeof ns[0], compare);
        show(json, w->name, ns[ROUNDS / 2], ns[0], (double)st.st_size / (double)n);
    }
    start(&c);
    double refs = run_refs(events), sampler = run_sampler();
    show(json, "collect, own object", refs, refs, 0);
    show(json, "sampler, nothing sampled", sampler, sampler, 0);
    make_stacks(&workloads[1]);
    for (int n = 1; n <= 8; n *= 2) {
        char name[64];
        double each = run_threads(n);
        snprintf(name, sizeof name, "%d threads, depth 10, elapsed", n);
        show(json, name, each, each, 0);
    }
    sm_recorder_stop(SM_REASON_EXIT);
    if (json)
        printf("}\n");
    unlink(path);
    return 0;
}
