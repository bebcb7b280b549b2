/* Runs a program and waits for it, the way `time` and `perf record` do: the keyboard's signals go to
   the program, not to us; SIGTERM and SIGHUP are handed on; its way of ending becomes ours. */
#ifndef SM_CLI_LAUNCH_H
#define SM_CLI_LAUNCH_H

#include <stdint.h>
#include <sys/types.h>

struct sm_launch {
    char *const *argv;          /* ended by NULL; argv[0] is looked for in PATH */
    void (*prepare)(void *ctx); /* called in the new process, before the program replaces it */
    void *ctx;

    /* results */
    pid_t pid;
    int exec_errno;  /* the program could not be run; 0 = it ran */
    int wait_status; /* as waitpid gives it */
    uint64_t elapsed_ns;
    uint64_t peak_rss_bytes;
};

/* Returns 0 when the program ran or could not be executed (exec_errno), or -1 with errno when there is no new
   process to be had. */
int sm_launch(struct sm_launch *l);

/* The shell's exit code for the program's end: its own, or 128 + signal. */
int sm_launch_exit_code(int wait_status);

/* Ends this process as the program ended: with its exit code, or by its signal (without a core
   file). */
void sm_launch_end_alike(int wait_status) __attribute__((noreturn));

#endif
