/* 8: small stacks: coroutines, an alternate signal stack, threads with the least stack; and frames that stand at a
   stack's very end. */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { COROUTINES = 50, STACK = 16384 };
static ucontext_t main_context, contexts[COROUTINES];
static unsigned long sum;

static void coroutine(int i) {
    for (int k = 0; k < 20; k++) {
        char *p = malloc((size_t)(i * 10 + k));
        sum += (unsigned long)(i + k);
        swapcontext(&contexts[i], &main_context);
        free(p);
    }
}

static void on_signal(int n) {
    free(malloc(1000));
    sum++;
}

static void *small_thread(void *x) {
    free(malloc(1000));
    return malloc(10);
}

int main(void) {
    for (int i = 0; i < COROUTINES; i++) {
        /* A page that cannot be read on either side. */
        char *area = mmap(NULL, STACK + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(area + 4096, STACK, PROT_READ | PROT_WRITE);
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = area + 4096;
        contexts[i].uc_stack.ss_size = STACK;
        contexts[i].uc_link = &main_context;
        makecontext(&contexts[i], (void (*)(void))coroutine, 1, i);
    }
    for (int k = 0; k < 20; k++) {
        for (int i = 0; i < COROUTINES; i++)
            swapcontext(&main_context, &contexts[i]);
    }
    stack_t alternate = {.ss_size = 16384, .ss_sp = malloc(16384)};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 1000; i++)
        raise(SIGUSR1);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN) + 4096);
    for (int i = 0; i < 100; i++) {
        pthread_t t;
        void *p;
        if (pthread_create(&t, &attributes, small_thread, NULL) != 0)
            return 1;
        pthread_join(t, &p);
        free(p);
    }
    printf("%lu\n", sum);
    return 0;
}
