/* A program with inlined calls, static functions and a cold part. */
#include <stdio.h>
#include <stdlib.h>

static inline __attribute__((always_inline)) int innermost(int n) {
    return abs(n) * 7 + rand();
}

static inline __attribute__((always_inline)) int middle(int n) {
    int a = innermost(n);
    int b = innermost(n + a);
    return a ^ b;
}

__attribute__((noinline)) int outer(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += middle(i);
    return sum;
}

static __attribute__((noinline)) int fails(const char *why) {
    fprintf(stderr, "%s\n", why);
    exit(3);
}

__attribute__((noinline)) int checked(int n) {
    if (__builtin_expect(n > 1000000, 0))
        fails("too large");
    return middle(n) + outer(n / 2);
}

int main(int argc, char **argv) {
    (void)argv;
    return (outer(argc) + checked(argc)) & 1;
}
