/* Preloaded: the wall clock goes back by 5 s, again and again, as a bad time server makes it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static _Atomic long calls;

static long stepped(void) {
    return 5 * (atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) / 3);
}

int clock_gettime(clockid_t id, struct timespec *t) {
    int rc = (int)syscall(SYS_clock_gettime, id, t);
    if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        t->tv_sec -= stepped();
    return rc;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}
