/* Threads that are cancelled: malloc and free are no cancellation points, so a thread ends at its own
   pthread_testcancel and nowhere else. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int bad;
static __thread volatile int critical;

static void cleanup(void *x) {
    if (critical)
        __atomic_add_fetch(&bad, 1, __ATOMIC_RELAXED);
}

static void *cancelled(void *x) {
    pthread_cleanup_push(cleanup, NULL);
    for (;;) {
        critical = 1;
        for (int i = 0; i < 2000; i++)
            free(malloc((size_t)i));
        critical = 0;
        pthread_testcancel();
    }
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void) {
    for (int i = 0; i < 60; i++) {
        pthread_t t;
        pthread_create(&t, NULL, cancelled, NULL);
        usleep((unsigned)(i % 7) * 300);
        pthread_cancel(t);
        pthread_join(t, NULL);
    }
    printf("bad %d\n", bad);
    return 0;
}
