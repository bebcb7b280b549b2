/* What a process with a thread of the recorder's in it must still do as without it. argv[1] says what. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *last(void *unused) {
    usleep(150000);
    free(malloc(100));
    puts("the last thread ends");
    return unused;
}

/* The C library calls exit() when the last thread has ended. */
static void first_thread_ends(void) {
    pthread_t t;
    pthread_create(&t, NULL, last, NULL);
    pthread_exit(NULL);
}

static void farewell(void) {
    puts("at exit");
}

/* The system refuses it to processes with more than one thread. */
static void single_thread(void) {
    usleep(30000);
    puts(unshare(CLONE_NEWUSER) == 0 ? "a user namespace" : "no user namespace");
    usleep(30000);
}

/* A daemon's way to get the standard descriptors: the lowest free number is the next one. */
static void lowest_descriptor(void) {
    int wrong = 0;
    for (int i = 0; i < 300000; i++) {
        close(0);
        int fd = open("/dev/null", O_RDONLY);
        wrong += fd != 0;
        if (fd > 0)
            close(fd);
    }
    printf("%d wrong\n", wrong);
}

/* Its readings end; nobody else's file is read or closed in their place. */
static void all_closed(void) {
    static const char text[] = "Threads:\t99\nVmRSS:\t 99 kB\n";
    char path[] = "/tmp/companion.XXXXXX";
    usleep(30000);
    for (int fd = 3; fd < 4096; fd++)
        close(fd);
    int fd = mkstemp(path), n = 0;
    unlink(path);
    write(fd, text, sizeof text - 1);
    for (int i = fd + 1; i < 1024; i++)
        n += dup2(fd, i) == i;
    usleep(100000);
    for (int i = fd; i < 1024; i++)
        n -= fcntl(i, F_GETFD) >= 0;
    printf("%d missing, at %d\n", n + 1, (int)lseek(fd, 0, SEEK_CUR));
}

static int got;
static void *waits(void *set) {
    int number;
    sigwait(set, &number);
    got = number;
    return NULL;
}

/* A signal for the process goes to the program's thread that waits for it. */
static void process_signal(void) {
    sigset_t set;
    pthread_t t;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_create(&t, NULL, waits, &set);
    usleep(20000);
    kill(getpid(), SIGUSR1);
    pthread_join(t, NULL);
    printf("signal %d\n", got);
}

/* Children have no companion, and end; so has what fork's child starts by exec. */
static void forks(void) {
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        if (child == 0) {
            free(malloc(1000));
            usleep(5000);
            _exit(3);
        }
        int status;
        waitpid(child, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 3)
            puts("a child went wrong");
        usleep(2000);
    }
    puts("50 children");
}

/* Changes every thread's credentials by a signal that the C library keeps for itself. */
static void credentials(void) {
    usleep(20000);
    printf("%d\n", setuid(getuid()));
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    atexit(farewell);
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"first-thread-ends", first_thread_ends},
               {"single-thread", single_thread},
               {"lowest-descriptor", lowest_descriptor},
               {"all-closed", all_closed},
               {"process-signal", process_signal},
               {"forks", forks},
               {"credentials", credentials}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (argc > 1 && strcmp(argv[1], all[i].name) == 0)
            all[i].run();
    return 7;
}
