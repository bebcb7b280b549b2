#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- memory ---- */

static void *checked(void *p) {
    if (p == MAP_FAILED)
        return NULL;
    return p;
}

void *sm_os_map(size_t bytes) {
    void *p = checked(mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (p != NULL) {
        madvise(p, bytes, MADV_DONTFORK);
        /* A huge page for a sparsely touched table would be 2 MiB a thread. */
        madvise(p, bytes, MADV_NOHUGEPAGE);
    }
    return p;
}

void *sm_os_map_wiped_on_fork(size_t bytes) {
    void *p = checked(mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (p != NULL && madvise(p, bytes, MADV_WIPEONFORK) != 0) {
        munmap(p, bytes);
        return NULL;
    }
    if (p != NULL)
        madvise(p, bytes, MADV_NOHUGEPAGE); /* as above */
    return p;
}

void *sm_os_map_file(int fd, uint64_t offset, size_t bytes) {
    void *p = checked(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset));
    if (p != NULL)
        madvise(p, bytes, MADV_DONTFORK);
    return p;
}

void sm_os_unmap(void *p, size_t bytes) {
    if (p != NULL)
        munmap(p, bytes);
}

/* ---- files ---- */

/* SIGXFSZ and SIGPIPE are sent to the writing thread. They are kept off by blocking them for the call, and one
   that our own call made pending is taken away again. */
struct guard {
    sigset_t ours, before;
    bool on;
};

static void guard_begin(struct guard *g, bool on) {
    g->on = on;
    if (!on)
        return;
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    sigemptyset(&g->ours);
    if (!sigismember(&pending, SIGPIPE))
        sigaddset(&g->ours, SIGPIPE);
    if (!sigismember(&pending, SIGXFSZ))
        sigaddset(&g->ours, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &g->ours, &g->before);
}

static void guard_end(struct guard *g, int error) {
    if (!g->on)
        return;
    if (error == -EPIPE || error == -EFBIG) {
        struct timespec now = {0, 0};
        while (sigtimedwait(&g->ours, NULL, &now) < 0 && errno == EINTR)
            ;
    }
    pthread_sigmask(SIG_SETMASK, &g->before, NULL);
}

int sm_os_write_all(int fd, const struct iovec *parts, int n, bool guard, uint64_t *written) {
    struct iovec rest[8];
    struct guard g;
    int error = 0;
    *written = 0;
    if (n > 8)
        return -EINVAL;
    memcpy(rest, parts, (size_t)n * sizeof *parts);
    int at = 0;
    guard_begin(&g, guard);
    while (at < n) {
        if (rest[at].iov_len == 0) {
            at++;
            continue;
        }
        ssize_t w = writev(fd, rest + at, n - at);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            sm_os_sleep_us(200); /* a pipe that somebody made non-blocking */
            continue;
        }
        if (w <= 0) {
            error = w < 0 ? -errno : -EIO;
            break;
        }
        *written += (uint64_t)w;
        for (size_t left = (size_t)w; left > 0;) {
            size_t part = rest[at].iov_len < left ? rest[at].iov_len : left;
            rest[at].iov_base = (char *)rest[at].iov_base + part;
            rest[at].iov_len -= part;
            left -= part;
            if (rest[at].iov_len == 0)
                at++;
        }
    }
    guard_end(&g, error);
    return error;
}

/* For file systems without fallocate. */
static int allocate_by_writing(int fd, uint64_t offset, uint64_t bytes) {
    static const char zeros[16384];
    while (bytes > 0) {
        size_t part = bytes < sizeof zeros ? (size_t)bytes : sizeof zeros;
        ssize_t w = pwrite(fd, zeros, part, (off_t)offset);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return w < 0 ? -errno : -ENOSPC;
        offset += (uint64_t)w;
        bytes -= (uint64_t)w;
    }
    return 0;
}

int sm_os_allocate(int fd, uint64_t offset, uint64_t bytes) {
    struct guard g;
    int error = 0;
    guard_begin(&g, true);
    while (fallocate(fd, 0, (off_t)offset, (off_t)bytes) != 0) {
        if (errno == EINTR)
            continue;
        error = errno == EOPNOTSUPP || errno == ENOSYS ? allocate_by_writing(fd, offset, bytes)
                                                       : -errno;
        break;
    }
    guard_end(&g, error);
    return error;
}

long sm_os_read_file(const char *path, void *buf, size_t bytes) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    size_t have = 0;
    while (have < bytes) {
        ssize_t r = read(fd, (char *)buf + have, bytes - have);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            break;
        have += (size_t)r;
    }
    close(fd);
    return (long)have;
}

int sm_os_lock_file(int fd) {
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_SETLK, &all) == 0)
        return 0;
    if (errno == EACCES || errno == EAGAIN)
        return -EAGAIN;
    return -errno;
}

bool sm_os_file_size_limited(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/* ---- process and thread ---- */

uint32_t sm_os_tid(void) {
    return (uint32_t)syscall(SYS_gettid);
}

void sm_os_thread_name(char *buf) {
    buf[0] = 0;
    syscall(SYS_prctl, PR_GET_NAME, buf, 0, 0, 0);
}

void sm_os_random(void *buf, size_t bytes) {
    if (getrandom(buf, bytes, GRND_NONBLOCK) == (ssize_t)bytes)
        return;
    /* Early in the life of a machine: time and addresses have to do. */
    uint64_t x = sm_os_realtime_ns() ^ (uint64_t)(uintptr_t)buf ^ (uint64_t)sm_os_tid() << 40;
    for (size_t i = 0; i < bytes; i++) {
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull + sm_os_monotonic_ns();
        ((uint8_t *)buf)[i] = (uint8_t)(x >> 32);
    }
}

const char *sm_os_error_text(int error) {
    const char *text = strerrordesc_np(error);
    return text != NULL ? text : "unknown error";
}

void sm_os_complain(const char *line) {
    ssize_t ignored = write(STDERR_FILENO, line, strlen(line));
    (void)ignored;
}

void sm_os_sleep_us(uint32_t us) {
    struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};
    nanosleep(&t, NULL);
}

/* ---- fence ---- */

bool sm_os_barrier_prepare(void) {
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void sm_os_barrier_all(void) {
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

/* ---- lock ---- */

bool sm_os_lock_acquire(struct sm_os_lock *lock, uint32_t limit_ms) {
    uint32_t me = sm_os_tid();
    uint64_t deadline = 0;
    for (uint32_t turn = 0;; turn++) {
        uint32_t owner = 0;
        /* acquire: pairs with the release in sm_os_lock_release */
        if (__atomic_compare_exchange_n(&lock->owner_tid, &owner, me, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return true;
        if (owner == me)
            return false;
        if (turn < 50) {
            sched_yield();
            continue;
        }
        uint64_t now = sm_os_monotonic_ns();
        if (deadline == 0)
            deadline = now + (uint64_t)limit_ms * 1000000u;
        else if (now > deadline)
            return false;
        sm_os_sleep_us(turn < 100 ? 50 : 500);
    }
}

void sm_os_lock_release(struct sm_os_lock *lock) {
    __atomic_store_n(&lock->owner_tid, 0, __ATOMIC_RELEASE);
}
