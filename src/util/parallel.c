/* See parallel.h. Threads are made for each call: at some 20 us each that is nothing beside the work they are
   for, and there is no pool to shut down or to deadlock in. */
#include "util/parallel.h"

#include <pthread.h>
#include <sched.h>

#define MAX_THREADS 64

unsigned sm_processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int n = CPU_COUNT(&set);
    return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (unsigned)n;
}

struct work {
    unsigned next, n_tasks;
    void (*run)(void *ctx, unsigned task);
    void *ctx;
};

static void *worker(void *argument) {
    struct work *w = argument;
    for (;;) {
        /* Relaxed: the number is all that is shared; pthread_create and pthread_join order the rest. */
        unsigned task = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED);
        if (task >= w->n_tasks)
            return NULL;
        w->run(w->ctx, task);
    }
}

void sm_parallel(unsigned n_tasks, unsigned threads, void (*run)(void *ctx, unsigned task),
                 void *ctx) {
    struct work w = {.n_tasks = n_tasks, .run = run, .ctx = ctx};
    pthread_t made[MAX_THREADS];
    unsigned n = 0;
    if (threads == 0)
        threads = sm_processors();
    if (threads > n_tasks)
        threads = n_tasks;
    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    while (n + 1 < threads && pthread_create(&made[n], NULL, worker, &w) == 0)
        n++;
    worker(&w);
    while (n > 0)
        pthread_join(made[--n], NULL);
}
