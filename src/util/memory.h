/* Memory for hosted code. Nobody can go on usefully without memory here, so these do not return
   NULL: they call the handler, which must not return (the command line prints and exits; without one
   the process aborts). Sizes that overflow count as out of memory. Hosted; thread-safe but for the setter. */
#ifndef SM_UTIL_MEMORY_H
#define SM_UTIL_MEMORY_H

#include <stddef.h>

void sm_set_out_of_memory(void (*handler)(size_t bytes));

void *sm_alloc(size_t bytes) __attribute__((returns_nonnull));
void *sm_alloc_zero(size_t n, size_t bytes_each) __attribute__((returns_nonnull));
void *sm_realloc_array(void *p, size_t n, size_t bytes_each) __attribute__((returns_nonnull));
char *sm_strdup(const char *text) __attribute__((returns_nonnull));

/* What the above do when there is none: the handler, or abort. */
void sm_memory_failed(size_t bytes) __attribute__((noreturn));

/* Room for at least n elements in a growing array: doubles *capacity. */
void *sm_grow(void *p, size_t *capacity, size_t n, size_t bytes_each)
    __attribute__((returns_nonnull));

#endif
