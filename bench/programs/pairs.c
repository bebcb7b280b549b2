/* ns of processor time for a malloc and a free of 64 bytes, called from `depth` frames down. Arguments: depth, pairs. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

__attribute__((noinline)) static double run(int depth, long pairs) {
    if (depth > 0) {
        volatile double x = run(depth - 1, pairs);
        return x;
    }
    double from = now();
    for (long i = 0; i < pairs; i++) {
        void *volatile p = malloc(64);
        free(p);
    }
    return (now() - from) / (double)pairs;
}

int main(int argc, char **argv) {
    int depth = argc > 1 ? atoi(argv[1]) : 0;
    long pairs = argc > 2 ? atol(argv[2]) : 10000000;
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        double x = run(depth, pairs / 5);
        best = x < best ? x : best;
    }
    printf("%.3f\n", best);
    return 0;
}
