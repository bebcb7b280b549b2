/* Why a SIGBUS handler: a mapped file that another process cuts while we read it faults on its missing
   pages, and no check beforehand can close that window. The handler puts zero pages in the place of the missing
   ones and lets the read go on; a packet full of zeros fails its checksum and is reported like any other
   damage. It touches only ranges mapped here, and passes other faults on to the handler before it.

   Synchronisation: ranges are published slot by slot. A slot's `begin` is written last when it is set up
   and first when it is taken down (release), and read by the handler (acquire). The handler runs in the thread
   that faulted, which holds the mapping alive. Registration is serialised by a mutex. */
#include "decode/input.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/wire.h"

#define RANGES 64
/* A pipe that shows no packet in its first bytes is given up. */
#define PROBE_BYTES (1u << 20)

struct range {
    _Atomic uintptr_t begin; /* 0 = free */
    uintptr_t end;
    int fd; /* our own, to ask for the file's present size */
};

static struct range ranges[RANGES];
static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;
static bool handler_installed; /* under ranges_lock */
static struct sigaction handler_before;
static uintptr_t page_bytes;

static void on_sigbus(int signal, siginfo_t *info, void *context) {
    int saved_errno = errno;
    uintptr_t at = (uintptr_t)info->si_addr;
    for (unsigned i = 0; i < RANGES; i++) {
        struct range *r = &ranges[i];
        /* acquire: pairs with the release store in range_add */
        uintptr_t begin = atomic_load_explicit(&r->begin, memory_order_acquire);
        if (begin == 0 || at < begin || at >= r->end)
            continue;
        uintptr_t page = at & ~(page_bytes - 1);
        uintptr_t stop = page + page_bytes;
        struct stat st;
        if (fstat(r->fd, &st) == 0 && page - begin >= (uintptr_t)st.st_size)
            stop =
                r->end; /* cut: nothing comes behind it. Else a page that the device cannot read */
        void *p = mmap((void *)page, stop - page, PROT_READ,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        errno = saved_errno;
        if (p != MAP_FAILED)
            return;
    }
    if ((handler_before.sa_flags & SA_SIGINFO) != 0)
        handler_before.sa_sigaction(signal, info, context);
    else if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN)
        handler_before.sa_handler(signal);
    else
        sigaction(SIGBUS, &handler_before, NULL); /* the fault comes again and ends us */
    errno = saved_errno;
}

static bool range_add(uintptr_t begin, size_t bytes, int fd) {
    bool done = false;
    pthread_mutex_lock(&ranges_lock);
    /* Somebody may have put a handler of their own over ours since the last time. */
    struct sigaction now;
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    handler_installed = sigaction(SIGBUS, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
                        now.sa_sigaction == on_sigbus;
    if (!handler_installed) {
        struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_NODEFER};
        sigemptyset(&sa.sa_mask);
        handler_before = now;
        handler_installed = sigaction(SIGBUS, &sa, NULL) == 0;
    }
    for (unsigned i = 0; i < RANGES && handler_installed && !done; i++) {
        struct range *r = &ranges[i];
        /* relaxed: all writers hold ranges_lock */
        if (atomic_load_explicit(&r->begin, memory_order_relaxed) != 0)
            continue;
        r->end = begin + bytes;
        r->fd = fd;
        /* release: pairs with the acquire load in on_sigbus */
        atomic_store_explicit(&r->begin, begin, memory_order_release);
        done = true;
    }
    pthread_mutex_unlock(&ranges_lock);
    return done;
}

static void range_remove(uintptr_t begin) {
    pthread_mutex_lock(&ranges_lock);
    for (unsigned i = 0; i < RANGES; i++) {
        struct range *r = &ranges[i];
        /* relaxed: all writers hold ranges_lock */
        if (atomic_load_explicit(&r->begin, memory_order_relaxed) != begin)
            continue;
        int fd = r->fd;
        /* release: pairs with the acquire load in on_sigbus */
        atomic_store_explicit(&r->begin, 0, memory_order_release);
        close(fd);
        break;
    }
    pthread_mutex_unlock(&ranges_lock);
}

/* Takes fd over when it succeeds. */
static bool map_file(struct sm_input *in, int fd, uint64_t bytes) {
    if (bytes > SIZE_MAX / 2)
        return false;
    void *p = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return false;
    if (!range_add((uintptr_t)p, (size_t)bytes, fd)) {
        munmap(p, (size_t)bytes);
        return false; /* more traces open than ranges: the caller reads it instead */
    }
    in->data = p;
    in->bytes = bytes;
    in->mapped = true;
    return true;
}

static bool could_be_trace(const uint8_t *data, size_t bytes) {
    return memmem(data, bytes, SM_PACKET_MAGIC, SM_PACKET_MAGIC_BYTES) != NULL ||
           memmem(data, bytes, "\xC1\x1F\xFC\xC1", 4) != NULL;
}

static int temporary_file(void) {
    const char *dir = getenv("TMPDIR");
    if (dir == NULL || dir[0] == 0)
        dir = "/tmp";
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    char name[4096];
    if (snprintf(name, sizeof name, "%s/statmem-XXXXXX", dir) >= (int)sizeof name)
        return -1;
    fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        unlink(name);
    return fd;
}

static bool write_all(int fd, const uint8_t *p, size_t n) {
    while (n > 0) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        p += done;
        n -= (size_t)done;
    }
    return true;
}

/* Reads to the end: into memory first, and what grows too large into a temporary file. */
static bool read_all(struct sm_input *in, int fd, const char *path, struct sm_error *err) {
    size_t capacity = PROBE_BYTES, used = 0;
    uint64_t spooled = 0;
    int spool = -1;
    bool probed = false;
    uint8_t *buf = malloc(capacity);
    if (buf == NULL) {
        sm_error_set(err, "%s: out of memory", path);
        return false;
    }
    for (;;) {
        if (used == capacity && used < SM_INPUT_SPOOL_BYTES) {
            uint8_t *larger = realloc(buf, capacity * 2);
            if (larger == NULL) {
                sm_error_set(err, "%s: out of memory after %zu bytes", path, used);
                goto failed;
            }
            buf = larger;
            capacity *= 2;
        } else if (used == capacity) {
            if (spool < 0)
                spool = temporary_file();
            if (spool < 0 || !write_all(spool, buf, used)) {
                sm_error_set(err,
                             "%s: cannot keep the input in a temporary file (%s): point TMPDIR to "
                             "a directory with room, or save it to a file first",
                             path, strerror(errno));
                goto failed;
            }
            spooled += used;
            used = 0;
        }
        ssize_t n = read(fd, buf + used, capacity - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            sm_error_set(err, "%s: cannot read: %s", path, strerror(errno));
            goto failed;
        }
        used += (size_t)n;
        if (n == 0)
            break;
        if (!probed && used >= PROBE_BYTES) {
            probed = true;
            if (!could_be_trace(buf, used))
                break; /* and let the caller say what it is not */
        }
    }
    if (spool < 0) {
        in->data = buf;
        in->bytes = used;
        in->owned = true;
        return true;
    }
    if (!write_all(spool, buf, used) || !map_file(in, spool, spooled + used)) {
        sm_error_set(err, "%s: cannot map the temporary copy: %s", path, strerror(errno));
        goto failed;
    }
    free(buf);
    return true;
failed:
    if (spool >= 0)
        close(spool);
    free(buf);
    return false;
}

bool sm_input_open(struct sm_input *in, const char *path, struct sm_error *err) {
    memset(in, 0, sizeof *in);
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                      : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        sm_error_set(err, "%s: cannot open: %s", is_stdin ? "standard input" : path,
                     strerror(errno));
        return false;
    }
    struct stat st;
    if (fstat(fd, &st) != 0) {
        sm_error_set(err, "%s: cannot examine: %s", path, strerror(errno));
        close(fd);
        return false;
    }
    if (S_ISDIR(st.st_mode)) {
        sm_error_set(err, "%s: is a directory, not a trace; name the trace file itself", path);
        close(fd);
        return false;
    }
    if (is_stdin && isatty(fd)) {
        sm_error_set(err, "standard input is a terminal: name a trace file, or pipe one in");
        close(fd);
        return false;
    }
    in->path = strdup(path);
    if (in->path == NULL) {
        sm_error_set(err, "%s: out of memory", path);
        close(fd);
        return false;
    }
    in->regular = S_ISREG(st.st_mode) && !is_stdin;
    /* Size 0 is read, not mapped: files of /proc have contents nevertheless. */
    if (S_ISREG(st.st_mode) && st.st_size > 0 && lseek(fd, 0, SEEK_CUR) == 0 &&
        map_file(in, fd, (uint64_t)st.st_size))
        return true;
    bool ok = read_all(in, fd, is_stdin ? "standard input" : path, err);
    close(fd);
    if (!ok)
        sm_input_release(in);
    return ok;
}

void sm_input_memory(struct sm_input *in, const uint8_t *data, size_t bytes) {
    memset(in, 0, sizeof *in);
    in->data = data;
    in->bytes = bytes;
}

void sm_input_release(struct sm_input *in) {
    if (in->mapped) {
        range_remove((uintptr_t)in->data);
        munmap((void *)(uintptr_t)in->data, (size_t)in->bytes);
    } else if (in->owned) {
        free((void *)(uintptr_t)in->data);
    }
    free((void *)(uintptr_t)in->path);
    memset(in, 0, sizeof *in);
}

void sm_input_done(const struct sm_input *in, uint64_t from, uint64_t to) {
    if (!in->mapped)
        return;
    from &= ~(uint64_t)(page_bytes - 1);
    to &= ~(uint64_t)(page_bytes - 1);
    if (from < to && to <= in->bytes)
        madvise((void *)((uintptr_t)in->data + from), (size_t)(to - from), MADV_DONTNEED);
}

void sm_input_sequential(const struct sm_input *in) {
    if (in->mapped)
        madvise((void *)(uintptr_t)in->data, (size_t)in->bytes, MADV_SEQUENTIAL);
}
