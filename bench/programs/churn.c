/* Two threads that allocate blocks of 16 bytes to 4 KiB in a window of live ones, from changing depths of call. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { WINDOW = 4096 };
static long rounds;

__attribute__((noinline)) static void *take(int depth, size_t n) {
    if (depth > 0) {
        void *volatile p = take(depth - 1, n);
        return p;
    }
    return malloc(n);
}

static void *churn(void *x) {
    void **window = calloc(WINDOW, sizeof *window);
    uint64_t r = (uint64_t)(uintptr_t)x;
    for (long i = 0; i < rounds; i++) {
        r = r * 6364136223846793005u + 1442695040888963407u;
        size_t n = (size_t)16 << (r >> 40 & 7);
        unsigned at = (unsigned)(r >> 50) % WINDOW;
        free(window[at]);
        char *p = window[at] = take((int)(r >> 34 & 15) + 4, n + (r >> 20 & 15));
        p[0] = 1;
    }
    for (int i = 0; i < WINDOW; i++)
        free(window[i]);
    free(window);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t t;
    rounds = argc > 1 ? atol(argv[1]) : 5000000;
    pthread_create(&t, NULL, churn, (void *)2);
    churn((void *)1);
    pthread_join(t, NULL);
    printf("done\n");
    return 0;
}
