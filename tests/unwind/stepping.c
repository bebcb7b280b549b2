/* The processor's single-step flag gives a signal after each instruction; at each, ours is compared with libgcc's. So every
   instruction of prologues, epilogues, linkage tables, the loader's lazy binding and libc functions is once the
   interrupted one. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "oracle.h"

#define NOINLINE __attribute__((noinline, noclone))
#define TRAP_FLAG 0x100ul

static volatile sig_atomic_t stepping;
static unsigned steps, unlike;
static uintptr_t unlike_at[16];

static void on_step(int signal, siginfo_t *info, void *context) {
    ucontext_t *c = context;
    unsigned n, differ = oracle_compare(&n);
    steps++;
    if (differ != 0) {
        if (unlike < 16)
            unlike_at[unlike] = (uintptr_t)c->uc_mcontext.gregs[REG_RIP];
        unlike++;
    }
    if (!stepping)
        c->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static inline void begin(void) {
    stepping = 1;
    __asm__ volatile("pushfq\n\torq %0, (%%rsp)\n\tpopfq" ::"i"(TRAP_FLAG) : "memory", "cc");
}

static inline void end(void) {
    stepping = 0;
}

static volatile int sink;

NOINLINE static int leaf(int n) {
    return n * 3 + sink;
}

NOINLINE static int pushes(int n) {
    int a = sink, b = a + n, c = leaf(b), d = leaf(c), e = leaf(d), f = leaf(e);
    return a + b * c - d + e * f;
}

NOINLINE static int tail(int n) {
    sink = n;
    return pushes(n + 1);
}

NOINLINE static int variable(int n) {
    volatile char *p = __builtin_alloca((size_t)n * 64 + 1);
    p[0] = (char)leaf(n);
    return p[0];
}

static int compare_ints(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

int main(void) {
    struct sigaction a = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    char text[64], *rest;
    int v[16];
    for (int i = 0; i < 16; i++)
        v[i] = (i * 7) % 17;
    sigaction(SIGTRAP, &a, NULL);
    oracle_check("start");
    begin();
    sink = pushes(3);
    sink = tail(4);
    sink = variable(2);
    /* Bound lazily: the first call goes through the loader. */
    sink = (int)strtol("  1234", &rest, 10);
    snprintf(text, sizeof text, "%d %s %.3f", sink, "text", 1.5);
    qsort(v, 16, sizeof v[0], compare_ints);
    free(malloc(100));
    end();
    sink = 0;
    printf("%u instructions, %u unlike\n", steps, unlike);
    for (unsigned i = 0; i < unlike && i < 16; i++)
        printf("  at %#lx\n", (unsigned long)unlike_at[i]);
    return unlike > 0 || steps < 3000 || strcmp(text, "1234 text 1.500") != 0 || v[3] != 3;
}
