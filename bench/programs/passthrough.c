/* What standing before malloc costs in itself: functions that do nothing but go on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

void *__libc_malloc(size_t n);
void __libc_free(void *p);
static void *(*next_malloc)(size_t) = __libc_malloc;
static void (*next_free)(void *) = __libc_free;

void *malloc(size_t n) {
    return next_malloc(n);
}
void free(void *p) {
    next_free(p);
}
