/* See memory.h. */
#include "util/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LARGE_BYTES ((size_t)4 << 20)
#define PAGE_BYTES ((uintptr_t)4096)

static void (*out_of_memory)(size_t bytes);

void sm_set_out_of_memory(void (*handler)(size_t bytes)) {
    out_of_memory = handler;
}

void sm_memory_failed(size_t bytes) {
    if (out_of_memory != NULL)
        out_of_memory(bytes);
    abort();
}

/* Columns and sums by node are hundreds of megabytes. Touching them first costs some 0.8 ns a byte in small pages,
   more than what is then done with them; the kernel is asked for large ones. It may refuse. */
static void *in_large_pages(void *p, size_t bytes) {
    if (bytes >= LARGE_BYTES) {
        uintptr_t from = ((uintptr_t)p + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
        uintptr_t to = ((uintptr_t)p + bytes) & ~(PAGE_BYTES - 1);
        (void)madvise((void *)from, to - from, MADV_HUGEPAGE);
    }
    return p;
}

void *sm_alloc(size_t bytes) {
    void *p = malloc(bytes ? bytes : 1);
    if (p == NULL)
        sm_memory_failed(bytes);
    return in_large_pages(p, bytes);
}

void *sm_alloc_zero(size_t n, size_t bytes_each) {
    void *p = calloc(n ? n : 1, bytes_each ? bytes_each : 1);
    if (p == NULL)
        sm_memory_failed(n * bytes_each);
    return in_large_pages(p, n * bytes_each);
}

void *sm_realloc_array(void *p, size_t n, size_t bytes_each) {
    size_t bytes;
    if (__builtin_mul_overflow(n, bytes_each, &bytes))
        sm_memory_failed((size_t)-1);
    void *q = realloc(p, bytes ? bytes : 1);
    if (q == NULL)
        sm_memory_failed(bytes);
    return q;
}

char *sm_strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    return memcpy(sm_alloc(bytes), text, bytes);
}

void *sm_grow(void *p, size_t *capacity, size_t n, size_t bytes_each) {
    if (n <= *capacity)
        return p;
    size_t wanted = *capacity ? *capacity : 16;
    while (wanted < n) {
        if (__builtin_mul_overflow(wanted, (size_t)2, &wanted))
            sm_memory_failed((size_t)-1);
    }
    p = sm_realloc_array(p, wanted, bytes_each);
    *capacity = wanted;
    return p;
}
