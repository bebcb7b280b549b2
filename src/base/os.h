/* Everything the recorder needs of the operating system. Hook-safe: no malloc, no stdio; nothing
   waits without a limit, but for writes to a pipe that nobody empties. Functions that can fail
   return 0 or a negative errno value; `errno` itself may change (callers keep it). One file per system:
   os_linux.c. */
#ifndef SM_BASE_OS_H
#define SM_BASE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <time.h>

/* ---- time ---- */

static inline uint64_t sm_os_monotonic_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t sm_os_realtime_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- memory ---- */

/* Private zeroed memory, NULL when there is none. Reserved, touched lazily. Forked children do not get it. */
void *sm_os_map(size_t bytes);
/* Memory that a forked child, however forked, finds zeroed. NULL where that cannot be had. */
void *sm_os_map_wiped_on_fork(size_t bytes);
/* Part of a file, shared. Forked children do not get it. */
void *sm_os_map_file(int fd, uint64_t offset, size_t bytes);
void sm_os_unmap(void *p, size_t bytes);

/* ---- files ---- */

/* Makes the blocks of a part of a file exist, so that touching its mapping cannot fail for want of space. */
int sm_os_allocate(int fd, uint64_t offset, uint64_t bytes);

/* Writes everything, whatever the pieces. `guard` keeps SIGPIPE and SIGXFSZ from the
   program (two more system calls). *written counts the bytes that got out, also on failure. */
int sm_os_write_all(int fd, const struct iovec *parts, int n, bool guard, uint64_t *written);

/* Reads up to `bytes` of a file by name into buf; the number read, or negative. */
long sm_os_read_file(const char *path, void *buf, size_t bytes);

/* An advisory lock on the whole file for this process; -EAGAIN when another process has it. */
int sm_os_lock_file(int fd);

/* True when the process has a limit on the size of files. */
bool sm_os_file_size_limited(void);

/* ---- process and thread ---- */

uint32_t sm_os_tid(void);
/* The calling thread's name into buf (16 bytes). */
void sm_os_thread_name(char *buf);
void sm_os_random(void *buf, size_t bytes);
/* Text for a positive errno value. */
const char *sm_os_error_text(int error);
/* One line to stderr by write(2). */
void sm_os_complain(const char *line);
void sm_os_sleep_us(uint32_t us);

/* ---- asymmetric fence ----
   sm_os_barrier_all makes every running thread of the process pass a full memory barrier, so that the other side
   of a Dekker-style handshake needs only a compiler barrier. Prepare once; false = not available. */
bool sm_os_barrier_prepare(void);
void sm_os_barrier_all(void);

/* ---- a lock for rare things (threads coming and going, start, stop, packets into a pipe) ----
   Polls with growing pauses, for at most `limit_ms`; false also when this thread has it already.
   A zeroed lock is free. */
struct sm_os_lock {
    uint32_t owner_tid; /* 0 = free */
};
bool sm_os_lock_acquire(struct sm_os_lock *lock, uint32_t limit_ms);
void sm_os_lock_release(struct sm_os_lock *lock);

#endif
