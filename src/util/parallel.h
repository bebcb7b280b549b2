/* Independent pieces of work on several threads. Hosted. */
#ifndef SM_UTIL_PARALLEL_H
#define SM_UTIL_PARALLEL_H

/* Processors this process may run on, at least 1, at most 64. */
unsigned sm_processors(void);

/* Calls run(ctx, task) for each task below n_tasks, on up to `threads` threads (0 = sm_processors()), the
   caller's among them, and returns when all are done; everything they wrote is then visible. Tasks are taken
   in order. Without further threads (or when none can be made) the caller does it all. */
void sm_parallel(unsigned n_tasks, unsigned threads, void (*run)(void *ctx, unsigned task),
                 void *ctx);

#endif
