/* 5, 6: forks while other threads are inside of malloc and free, and all the ways to start a program. */
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int stop;

static void *busy(void *x) {
    unsigned long r = (unsigned long)x;
    while (!stop) {
        r = r * 6364136223846793005ul + 1442695040888963407ul;
        free(malloc(r >> 52));
    }
    return NULL;
}

int main(void) {
    extern char **environ;
    char *arguments[] = {"true", NULL};
    pthread_t t[3];
    int good = 0, status;
    void *kept = malloc(1000);
    for (long i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, busy, (void *)(i + 1));
    for (int i = 0; i < 60; i++) {
        pid_t child = fork();
        if (child == 0) {
            free(kept); /* recorded in the parent */
            for (int k = 0; k < 100; k++)
                free(malloc((size_t)k * 10));
            _exit(7);
        }
        waitpid(child, &status, 0);
        good += WIFEXITED(status) && WEXITSTATUS(status) == 7;
        if (i % 10 == 0) {
            if ((child = vfork()) == 0) {
                execv("/bin/true", arguments);
                _exit(1);
            }
            waitpid(child, &status, 0);
            good += status == 0;
            good += posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0;
            waitpid(child, &status, 0);
            good += system("true") == 0;
        }
    }
    stop = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    free(kept);
    printf("%d good\n", good);
    return 0;
}
