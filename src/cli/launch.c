/* A failure of exec is told through a pipe that a successful exec closes. Signals are blocked between fork and
   the moment when both sides have their handlers, so that none is lost or hits the wrong one. */
#include "cli/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t child_pid;

static void hand_on(int signal_number) {
    int saved_errno = errno;
    if (child_pid > 0)
        kill((pid_t)child_pid, signal_number);
    errno = saved_errno;
}

static const int ignored[] = {SIGINT, SIGQUIT};
static const int handed_on[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
enum { N_IGNORED = 2, N_HANDED_ON = 4 };

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void run_program(const struct sm_launch *l, int error_fd, const sigset_t *mask) {
    if (l->prepare != NULL)
        l->prepare(l->ctx);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(l->argv[0], l->argv);
    int code = errno;
    ssize_t written = write(error_fd, &code, sizeof code);
    (void)written;
    _exit(127);
}

int sm_launch(struct sm_launch *l) {
    int fds[2];
    sigset_t all, mask;
    struct sigaction old_ignored[N_IGNORED], old_handed_on[N_HANDED_ON];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return -1;
    fflush(NULL);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask);
    uint64_t begun_ns = now_ns();
    l->pid = fork();
    if (l->pid < 0) {
        int code = errno;
        sigprocmask(SIG_SETMASK, &mask, NULL);
        close(fds[0]);
        close(fds[1]);
        errno = code;
        return -1;
    }
    if (l->pid == 0)
        run_program(l, fds[1], &mask);
    close(fds[1]);
    child_pid = l->pid;
    struct sigaction action = {.sa_handler = SIG_IGN};
    for (int i = 0; i < N_IGNORED; i++)
        sigaction(ignored[i], &action, &old_ignored[i]);
    action.sa_handler = hand_on;
    for (int i = 0; i < N_HANDED_ON; i++) {
        sigaction(handed_on[i], NULL, &old_handed_on[i]);
        if (old_handed_on[i].sa_handler != SIG_IGN) /* nohup: the program ignores it as well */
            sigaction(handed_on[i], &action, NULL);
    }
    sigprocmask(SIG_SETMASK, &mask, NULL);

    l->exec_errno = 0;
    ssize_t got;
    while ((got = read(fds[0], &l->exec_errno, sizeof l->exec_errno)) < 0 && errno == EINTR)
        continue;
    if (got != (ssize_t)sizeof l->exec_errno)
        l->exec_errno = 0;
    close(fds[0]);
    struct rusage usage = {0};
    while (wait4(l->pid, &l->wait_status, 0, &usage) < 0 && errno == EINTR)
        continue;
    child_pid = 0;
    l->elapsed_ns = now_ns() - begun_ns;
    l->peak_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
    for (int i = 0; i < N_IGNORED; i++)
        sigaction(ignored[i], &old_ignored[i], NULL);
    for (int i = 0; i < N_HANDED_ON; i++)
        sigaction(handed_on[i], &old_handed_on[i], NULL);
    return 0;
}

int sm_launch_exit_code(int wait_status) {
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

void sm_launch_end_alike(int wait_status) {
    fflush(NULL);
    if (WIFSIGNALED(wait_status)) {
        int signal_number = WTERMSIG(wait_status);
        struct rlimit none = {0, 0};
        sigset_t set;
        setrlimit(RLIMIT_CORE, &none);
        signal(signal_number, SIG_DFL);
        sigemptyset(&set);
        sigaddset(&set, signal_number);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        raise(signal_number);
    }
    _exit(sm_launch_exit_code(wait_status));
}
