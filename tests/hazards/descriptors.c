/* A program that takes all descriptors for its own: it closes every one, and puts files of its own in their places; as daemons
   and shells do. The argument is a folder. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void *thread(void *x) {
    for (int i = 0; i < 20000; i++)
        free(malloc(100));
    return NULL;
}

__attribute__((noinline)) static void work(void) {
    pthread_t t;
    thread(NULL);
    pthread_create(&t, NULL, thread, NULL); /* a new stream: a new slot of the side file */
    pthread_join(t, NULL);
}

int main(int argc, char **argv) {
    char name[500];
    struct stat st;
    snprintf(name, sizeof name, "%s/mine", argv[1]);
    int first = open("/dev/null", O_RDONLY);
    printf("the first descriptor is %d\n", first);
    fflush(stdout);
    work();
    for (int fd = 3; fd < 2048; fd++)
        close(fd);
    work();
    int mine = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (int fd = 3; fd < 1020; fd++) {
        if (fd != mine)
            dup2(mine, fd);
    }
    work();
    fstat(mine, &st);
    printf("my file has %ld bytes\n", (long)st.st_size);
    return 0;
}
