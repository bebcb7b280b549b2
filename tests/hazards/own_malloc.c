/* 11: an executable with a malloc of its own. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static char memory[64 << 20];
static size_t used;
static unsigned long calls;

void *malloc(size_t n) {
    size_t at = __atomic_fetch_add(&used, (n + 31) & ~(size_t)15, __ATOMIC_RELAXED);
    calls++;
    if (at + n + 32 > sizeof memory)
        return NULL;
    memcpy(memory + at, &n, sizeof n);
    return memory + at + 16;
}
void free(void *p) {}
void *calloc(size_t n, size_t each) {
    return malloc(n * each);
}
void *realloc(void *p, size_t n) {
    void *q = malloc(n);
    size_t old;
    if (p != NULL && q != NULL) {
        memcpy(&old, (char *)p - 16, sizeof old);
        memcpy(q, p, old < n ? old : n);
    }
    return q;
}

int main(void) {
    for (int i = 0; i < 1000; i++)
        free(malloc(100));
    printf("%s\n", calls >= 1000 ? "own malloc" : "other malloc");
    return 0;
}
