/* Every way by which a stack of C code comes about, ours compared with libgcc's. Compiled several times, with
   different options. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "oracle.h"
#include "unwind/modules.h"

#define NOINLINE __attribute__((noinline, noclone))
static volatile int sink;

/* ---- plain calls, deep recursion, tail calls ---- */

NOINLINE static int deep(int n) {
    if (n == 0)
        return (int)oracle_check("deep");
    int got = deep(n - 1);
    sink = got;
    return got;
}

NOINLINE static int tail_end(int n) {
    int got = (int)oracle_check("tail");
    sink = n;
    return got;
}
NOINLINE static int tail_2(int n) {
    return tail_end(n + 1);
}
NOINLINE static int tail_1(int n) {
    sink = n;
    return tail_2(n + 1);
}

/* ---- frames of unusual shape ---- */

NOINLINE static void variable_frame(int n) {
    volatile char *p = __builtin_alloca((size_t)n * 100 + 1);
    p[0] = 1;
    oracle_check("alloca");
    sink = p[0];
}

typedef int wide __attribute__((vector_size(64)));
NOINLINE static void realigned_frame(int n) {
    wide v __attribute__((aligned(64)));
    memset(&v, n, sizeof v);
    volatile char *p = __builtin_alloca((size_t)n + 1);
    p[0] = (char)v[0];
    __asm__ volatile("" ::"r"(&v) : "memory");
    oracle_check("realigned");
    sink = v[1] + p[0];
}

NOINLINE static long many_arguments(long a, long b, long c, long d, long e, long f, long g, long h,
                                    long i, long j) {
    oracle_check("arguments");
    sink = (int)a;
    return a + b + c + d + e + f + g + h + i + j;
}

/* All callee-saved registers in use. */
NOINLINE static int busy_registers(int n) {
    int a = sink, b = a + n, c = b * 3, d = c ^ a, e = d + b, f = e * c, g = f - a;
    oracle_check("registers");
    sink = a;
    return a + b * c - d + e * f - g;
}

/* ---- callbacks through libc ---- */

static int compare_ints(const void *a, const void *b) {
    static int once;
    if (once++ == 0)
        oracle_check("qsort");
    return *(const int *)a - *(const int *)b;
}

NOINLINE static void through_qsort(void) {
    int v[40];
    for (int i = 0; i < 40; i++)
        v[i] = (i * 7919) % 41;
    qsort(v, 40, sizeof v[0], compare_ints);
    sink = v[0];
}

/* ---- signals ---- */

static void on_signal(int signal, siginfo_t *info, void *context) {
    oracle_check("signal");
}

NOINLINE static void signals(bool alternate) {
    static char stack[64 << 10];
    stack_t s = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction a = {.sa_sigaction = on_signal,
                          .sa_flags = SA_SIGINFO | (alternate ? SA_ONSTACK : 0)};
    if (alternate)
        sigaltstack(&s, NULL);
    sigaction(SIGUSR1, &a, NULL);
    raise(SIGUSR1);
    sink = 1;
    /* Two handlers, one upon the other. */
    sigaction(SIGUSR2, &a, NULL);
    kill(getpid(), SIGUSR2);
    sink = 2;
}

/* ---- threads ---- */

static void *thread_main(void *arg) {
    deep((int)(intptr_t)arg);
    if ((intptr_t)arg == 5) {
        static char stack[64 << 10];
        stack_t s = {.ss_sp = stack, .ss_size = sizeof stack};
        sigaltstack(&s, NULL);
        raise(SIGUSR1);
    }
    return NULL;
}

static void threads(void) {
    pthread_t t[8];
    for (intptr_t i = 0; i < 8; i++)
        pthread_create(&t[i], NULL, thread_main, (void *)i);
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    /* On memory of the program's own. */
    static char stack[1 << 20] __attribute__((aligned(4096)));
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, sizeof stack);
    pthread_create(&t[0], &attributes, thread_main, (void *)3);
    pthread_join(t[0], NULL);
}

static int clone_main(void *arg) {
    deep(4);
    return 0;
}

/* A bare clone shares everything, the thread-local storage too. */
static void bare_clone(void) {
    char *stack = mmap(NULL, 256 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int pid = clone(clone_main, stack + (256 << 10), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
    waitpid(pid, NULL, 0);
    munmap(stack, 256 << 10);
}

static void forked(void) {
    fflush(stdout);
    int status, pid = fork();
    if (pid == 0) {
        deep(3);
        _exit(oracle_failures > 0);
    }
    waitpid(pid, &status, 0);
    oracle_failures += status != 0;
}

/* ---- coroutines ---- */

static ucontext_t outside, inside;

static void coroutine(void) {
    deep(3);
    swapcontext(&inside, &outside);
    deep(30);
}

/* The stack stands right at the end of its mapping, and goes away afterwards. */
static void coroutines(void) {
    for (int round = 0; round < 3; round++) {
        size_t bytes = 128 << 10;
        char *stack =
            mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(stack + bytes, 4096, PROT_NONE);
        getcontext(&inside);
        inside.uc_stack.ss_sp = stack;
        inside.uc_stack.ss_size = bytes;
        inside.uc_link = &outside;
        makecontext(&inside, coroutine, 0);
        oracle_any_end = true;
        swapcontext(&outside, &inside);
        oracle_any_end = false;
        deep(2);
        oracle_any_end = true;
        swapcontext(&outside, &inside);
        oracle_any_end = false;
        munmap(stack, bytes + 4096);
        deep(2);
    }
}

int main(void) {
    sm_modules_refresh(); /* for a static program: nothing else tells of it */
    for (int i = 0; i < 100; i += 9)
        deep(i);
    deep(2000);
    tail_1(1);
    variable_frame(3);
    realigned_frame(5);
    many_arguments(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    busy_registers(2);
    through_qsort();
    signals(false);
    signals(true);
    threads();
    bare_clone();
    forked();
    coroutines();
    return oracle_result(40);
}
