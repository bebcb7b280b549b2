/* 7: a signal handler that allocates and frees while it interrupts the recorder's hook. It does so only when it
   interrupted code of the preload library: inside of the allocator itself it would not be allowed to, without us either. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

static uintptr_t from, to;
static volatile sig_atomic_t inside;

static void handler(int n, siginfo_t *info, void *context) {
    uintptr_t pc = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    if (pc < from || pc >= to)
        return;
    inside++;
    void *p = malloc(100);
    p = realloc(p, 200);
    free(p);
}

int main(int argc, char **argv) {
    char line[500];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long a, b;
        char mode[8];
        if (strstr(line, "libstatmem-preload") != NULL &&
            sscanf(line, "%lx-%lx %7s", &a, &b, mode) == 3 && mode[2] == 'x') {
            from = a;
            to = b;
        }
    }
    fclose(maps);
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {{0, 100}, {0, 100}};
    setitimer(ITIMER_REAL, &timer, NULL);
    unsigned long sum = 0;
    for (int i = 0; i < 1000000; i++) {
        unsigned char *p = malloc((size_t)(i % 100) + 1);
        *p = (unsigned char)i;
        sum += *p;
        free(p);
    }
    timer = (struct itimerval){{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &timer, NULL);
    printf("%lu\n", sum);
    if (argc > 1)
        fprintf(stderr, "handlers inside: %d\n", (int)inside);
    return 0;
}
