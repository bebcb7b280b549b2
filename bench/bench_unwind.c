/* Time of a walk: bench_unwind [DEPTH...]. Median of several rounds, with a warm cache; the whole stack of that depth. */
#include <execinfo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "unwind/modules.h"
#include "unwind/unwind.h"

#define NOINLINE __attribute__((noinline, noclone))
#define ROUNDS 9

static uintptr_t frames[4096];
static void *pointers[4096];
static volatile int sink;

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static unsigned depth_seen;

NOINLINE static double measure(int walks, int kind) {
    double t[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        double start = now_ns();
        for (int i = 0; i < walks; i++) {
            if (kind == 1)
                sm_modules_unloaded(); /* forgets all rules */
            if (kind == 2)
                depth_seen = (unsigned)backtrace(pointers, 4096);
            else
                depth_seen = sm_unwind(frames, 4096, 0, NULL);
        }
        t[r] = (now_ns() - start) / walks;
    }
    qsort(t, ROUNDS, sizeof t[0], by_value);
    return t[ROUNDS / 2];
}

NOINLINE static void report(void) {
    double warm = measure(20000, 0), cold = measure(500, 1), glibc = measure(500, 2);
    sm_unwind(frames, 4096, 0, NULL);
    unsigned n = sm_unwind(frames, 4096, 0, NULL);
    printf("depth %4u: warm %8.0f ns (%.1f a frame), cold %8.0f ns, glibc's backtrace %8.0f ns\n",
           n, warm, warm / n, cold, glibc);
}

/* Frames that differ, as those of a real program do. */
#define LEVEL(name, next, before)                                                                  \
    NOINLINE static void name(int n) {                                                             \
        volatile char room[before];                                                                \
        room[0] = (char)n;                                                                         \
        if (n == 0)                                                                                \
            report();                                                                              \
        else                                                                                       \
            next(n - 1);                                                                           \
        sink = room[0];                                                                            \
    }
NOINLINE static void level_0(int n);
LEVEL(level_3, level_0, 24)
LEVEL(level_2, level_3, 104)
LEVEL(level_1, level_2, 40)
LEVEL(level_0, level_1, 8)

int main(int argc, char **argv) {
    static const int usual[] = {5, 20, 100, 1000};
    for (int i = 0; i < 4 && argc < 2; i++)
        level_0(usual[i] - 5);
    for (int i = 1; i < argc; i++)
        level_0(atoi(argv[i]) > 5 ? atoi(argv[i]) - 5 : 0);
    return 0;
}
