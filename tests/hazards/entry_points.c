/* 15, 16: every function that gives or takes memory, used as it should be and at its edges. Prints what it sees, and the
   number and bytes of the blocks that it got from `work`, so that a recording of every allocation can be compared. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long n_blocks, n_bytes, n_freed;
static int bad;

static void *got(void *p, size_t bytes, size_t alignment) {
    if (p == NULL || (uintptr_t)p % alignment != 0)
        bad++;
    else
        memset(p, 1, bytes);
    n_blocks++;
    n_bytes += bytes;
    return p;
}

static void gone(void *p) {
    if (p != NULL)
        n_freed++;
    free(p);
}

static void check(int holds, const char *what) {
    if (!holds)
        printf("wrong: %s\n", what);
}

__attribute__((noinline)) void work(int rounds) {
    for (int i = 0; i < rounds; i++) {
        size_t n = (size_t)(i % 40) * 7;
        void *volatile p = got(malloc(n), n, 16), *q;
        check(malloc_usable_size(p) >= n, "usable size");
        gone(p);
        p = got(calloc(3, n), 3 * n, 16);
        gone(p);
        p = got(memalign(64, n), n, 64);
        gone(p);
        p = got(aligned_alloc(256, 512), 512, 256);
        gone(p);
        p = got(valloc(n + 1), n + 1, 4096);
        gone(p);
        p = got(pvalloc(5000), 5000, 4096);
        gone(p);
        void *r = NULL;
        check(posix_memalign(&r, 128, n + 3) == 0, "posix_memalign");
        gone(got(r, n + 3, 128));
        check(posix_memalign(&r, 3, 8) == EINVAL, "posix_memalign with an odd alignment");

        /* realloc: from NULL, growing, shrinking, to nothing */
        p = got(realloc(NULL, 100), 100, 16);
        q = realloc(p, 5000);
        n_freed++;
        got(q, 5000, 16);
        p = realloc(q, 10);
        n_freed++;
        got(p, 10, 16);
        q = reallocarray(p, 11, 13);
        n_freed++;
        got(q, 143, 16);
        /* failing: the old block stays */
        strcpy(q, "still here");
        errno = 0;
        check(realloc(q, SIZE_MAX / 2) == NULL && errno == ENOMEM, "realloc of too much");
        check(reallocarray(q, SIZE_MAX / 2, 4) == NULL && errno == ENOMEM, "an overflow");
        check(strcmp(q, "still here") == 0, "the block after a failed realloc");
        check(realloc(q, 0) == NULL, "realloc to 0 frees");
        n_freed++;
        errno = 77;
        gone(got(malloc(0), 0, 16));
        check(errno == 77, "errno");
        check(malloc(SIZE_MAX / 2) == NULL && errno == ENOMEM, "malloc of too much");
        check(calloc(SIZE_MAX / 2, 4) == NULL && errno == ENOMEM, "calloc of too much");
        gone(NULL);
    }
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    setvbuf(stdout, NULL, _IONBF, 0);
    work(rounds);
    printf("blocks %lu bytes %lu freed %lu bad %d\n", n_blocks, n_bytes, n_freed, bad);
    return 0;
}
