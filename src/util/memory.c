/* See memory.h. */
#include "util/memory.h"

#include <stdlib.h>
#include <string.h>

static void (*out_of_memory)(size_t bytes);

void sm_set_out_of_memory(void (*handler)(size_t bytes)) {
    out_of_memory = handler;
}

void sm_memory_failed(size_t bytes) {
    if (out_of_memory != NULL)
        out_of_memory(bytes);
    abort();
}

void *sm_alloc(size_t bytes) {
    void *p = malloc(bytes ? bytes : 1);
    if (p == NULL)
        sm_memory_failed(bytes);
    return p;
}

void *sm_alloc_zero(size_t n, size_t bytes_each) {
    void *p = calloc(n ? n : 1, bytes_each ? bytes_each : 1);
    if (p == NULL)
        sm_memory_failed(n * bytes_each);
    return p;
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
