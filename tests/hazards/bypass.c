/* 12: calls that do not go through the dynamic linker: blocks freed and resized past the recorder, their addresses given
   out again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void __libc_free(void *p);
void *__libc_malloc(size_t n);
void *__libc_realloc(void *p, size_t n);

int main(void) {
    unsigned long sum = 0;
    for (int i = 0; i < 20000; i++) {
        char *p = malloc(100), *q = __libc_malloc(100);
        p[0] = 1;
        q[0] = 2;
        sum += (unsigned long)(p[0] + q[0]);
        if (i % 3 == 0) {
            __libc_free(p);
            free(q);
        } else {
            p = __libc_realloc(p, 3000);
            free(p);
            q = realloc(q, 50);
            __libc_free(q);
        }
    }
    printf("%lu\n", sum);
    return 0;
}
