/* See figures.h. An allocator's own figures are taken from the one whose malloc the program reaches, and from no other:
   glibc's mallinfo2 says nothing where jemalloc stands in front of it. */
#include "service/figures.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/os.h"
#include "service/control.h"

/* glibc's struct mallinfo2: its header is malloc's, which hook-safe code does without. */
struct glibc_figures {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

/* Each NULL when the process has another allocator. Written by find_allocator alone. */
static struct {
    struct glibc_figures (*mallinfo)(void);                         /* glibc */
    int (*mallctl)(const char *, void *, size_t *, void *, size_t); /* jemalloc */
    int (*tc_property)(const char *name, size_t *value);            /* tcmalloc */
} allocator;

static const void *object_of(const void *p) {
    Dl_info info;
    return p != NULL && dladdr(p, &info) != 0 ? info.dli_fbase : NULL;
}

static void find(const char *name, const void *in_object, void *function_pointer) {
    void *p = dlsym(RTLD_DEFAULT, name);
    if (p != NULL && object_of(p) == in_object)
        memcpy(function_pointer, &p, sizeof p);
}

static void find_allocator(void) {
    const void *own = object_of((const void *)(uintptr_t)sm_figures_open);
    const void *malloc_object = object_of(dlsym(RTLD_DEFAULT, "malloc"));
    if (malloc_object == own) /* we stand in front: the next one */
        malloc_object = object_of(dlsym(RTLD_NEXT, "malloc"));
    find("mallctl", malloc_object, &allocator.mallctl);
    find("MallocExtension_GetNumericProperty", malloc_object, &allocator.tc_property);
    find("mallinfo2", malloc_object, &allocator.mallinfo); /* glibc 2.33 */
}

static int open_high(const char *path, struct sm_file_id *id) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        fd = sm_descriptor_high(fd);
        sm_descriptor_identify(fd, id);
    }
    return fd;
}

void sm_figures_open(struct sm_figures *f) {
    memset(f, 0, sizeof *f);
    f->own.fd = -1;
    f->status.fd = open_high("/proc/self/status", &f->status.id);
    f->rollup.fd = open_high("/proc/self/smaps_rollup", &f->rollup.id);
    find_allocator();
}

void sm_figures_own(struct sm_figures *f, uint32_t tid) {
    char path[64] = "/proc/self/task/";
    sm_control_append_number(path, sizeof path, tid);
    sm_control_append(path, sizeof path, "/status");
    if (sm_descriptor_is(f->own.fd, &f->own.id))
        close(f->own.fd);
    f->own.fd = open_high(path, &f->own.id);
}

void sm_figures_close(struct sm_figures *f) {
    if (sm_descriptor_is(f->own.fd, &f->own.id))
        close(f->own.fd);
    if (sm_descriptor_is(f->status.fd, &f->status.id))
        close(f->status.fd);
    if (sm_descriptor_is(f->rollup.fd, &f->rollup.id))
        close(f->rollup.fd);
    f->status.fd = f->own.fd = f->rollup.fd = -1;
}

/* From its begin; 0 when the program has closed it. */
static size_t read_again(int fd, const struct sm_file_id *id, char *text, size_t bytes) {
    size_t have = 0;
    while (sm_descriptor_is(fd, id) && have < bytes) {
        ssize_t n = pread(fd, text + have, bytes - have, (off_t)have);
        if (n <= 0)
            break;
        have += (size_t)n;
    }
    return have;
}

/* ---- text ---- */

int64_t sm_figures_line(const char *text, size_t bytes, const char *name) {
    size_t n = strlen(name);
    const char *end = text + bytes, *at = text;
    while (at < end && (size_t)(end - at) > n) {
        if (memcmp(at, name, n) == 0) {
            at += n;
            while (at < end && (*at == ' ' || *at == '\t'))
                at++;
            if (at == end || *at < '0' || *at > '9')
                return -1;
            int64_t x = 0;
            while (at < end && *at >= '0' && *at <= '9' && x < INT64_MAX / 16)
                x = x * 10 + (*at++ - '0');
            return x;
        }
        at = memchr(at, '\n', (size_t)(end - at));
        if (at == NULL)
            return -1;
        at++;
    }
    return -1;
}

struct out {
    struct sm_counter_value *values;
    uint32_t n;
};

static void put(struct out *o, enum sm_counter counter, int64_t value) {
    if (value >= 0 && o->n < SM_FIGURES_MAX)
        o->values[o->n++] = (struct sm_counter_value){counter, value};
}

static void put_kib(struct out *o, enum sm_counter counter, int64_t kib) {
    put(o, counter, kib >= 0 ? kib * 1024 : -1);
}

/* ---- sources ---- */

static void read_status(struct sm_figures *f, struct out *o) {
    static const struct {
        enum sm_counter counter;
        const char *name;
    } lines[] = {{SM_COUNTER_RSS, "VmRSS:"},
                 {SM_COUNTER_RSS_ANON, "RssAnon:"},
                 {SM_COUNTER_RSS_FILE, "RssFile:"},
                 {SM_COUNTER_RSS_SHMEM, "RssShmem:"},
                 {SM_COUNTER_SWAP, "VmSwap:"}};
    char text[4096];
    size_t n = read_again(f->own.fd, &f->own.id, text, sizeof text);
    if (n == 0) /* it has ended */
        n = read_again(f->status.fd, &f->status.id, text, sizeof text);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        put_kib(o, lines[i].counter, sm_figures_line(text, n, lines[i].name));
    int64_t threads = sm_figures_line(text, n, "Threads:");
    f->threads = threads > 0 ? (uint32_t)threads : 0;
}

bool sm_figures_left_alone(const struct sm_figures *f) {
    char text[4096];
    size_t n = read_again(f->status.fd, &f->status.id, text, sizeof text);
    return sm_figures_line(text, n, "Threads:") == 2 && memmem(text, n, "\nState:\tZ", 9) != NULL;
}

/* The kernel walks the page tables for it. */
static void read_pss(const struct sm_figures *f, struct out *o) {
    char text[2048];
    size_t n = read_again(f->rollup.fd, &f->rollup.id, text, sizeof text);
    put_kib(o, SM_COUNTER_PSS, sm_figures_line(text, n, "Pss:"));
}

static void read_faults(struct out *o) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        put(o, SM_COUNTER_PAGE_FAULTS, usage.ru_minflt + usage.ru_majflt);
        put(o, SM_COUNTER_MAJOR_FAULTS, usage.ru_majflt);
    }
}

static int64_t jemalloc_figure(const char *name) {
    size_t value = 0, bytes = sizeof value;
    return allocator.mallctl(name, &value, &bytes, NULL, 0) == 0 ? (int64_t)value : -1;
}

static int64_t tcmalloc_figure(const char *name) {
    size_t value = 0;
    return allocator.tc_property(name, &value) != 0 ? (int64_t)value : -1;
}

static void read_allocator(struct out *o) {
    if (allocator.mallctl != NULL) {
        uint64_t epoch = 1; /* its figures are renewed by this */
        size_t bytes = sizeof epoch;
        allocator.mallctl("epoch", &epoch, &bytes, &epoch, sizeof epoch);
        put(o, SM_COUNTER_MALLOC_USED, jemalloc_figure("stats.allocated"));
        put(o, SM_COUNTER_MALLOC_TOTAL, jemalloc_figure("stats.resident"));
        put(o, SM_COUNTER_MALLOC_MAPPED, jemalloc_figure("stats.mapped"));
    } else if (allocator.tc_property != NULL) {
        int64_t heap = tcmalloc_figure("generic.heap_size");
        int64_t unmapped = tcmalloc_figure("tcmalloc.pageheap_unmapped_bytes");
        put(o, SM_COUNTER_MALLOC_USED, tcmalloc_figure("generic.current_allocated_bytes"));
        put(o, SM_COUNTER_MALLOC_TOTAL, heap >= 0 && unmapped >= 0 ? heap - unmapped : heap);
    } else if (allocator.mallinfo != NULL) {
        struct glibc_figures m = allocator.mallinfo();
        put(o, SM_COUNTER_MALLOC_USED, (int64_t)(m.uordblks + m.hblkhd));
        put(o, SM_COUNTER_MALLOC_TOTAL, (int64_t)(m.arena + m.hblkhd));
        put(o, SM_COUNTER_MALLOC_MAPPED, (int64_t)m.hblkhd);
    }
}

static uint64_t processor_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Asks for what is dear, and puts the next time off by a hundred times what it has cost. */
#define IF_DUE(due, now, least_ns, action)                                                         \
    do {                                                                                           \
        if ((now) >= (due)) {                                                                      \
            uint64_t began = processor_ns();                                                       \
            action;                                                                                \
            uint64_t rest = 100 * (processor_ns() - began);                                        \
            (due) = (now) + (rest > (least_ns) ? rest : (least_ns));                               \
        }                                                                                          \
    } while (0)

uint32_t sm_figures_read(struct sm_figures *f, uint64_t now_ns, struct sm_counter_value *out) {
    struct out o = {.values = out};
    read_status(f, &o);
    read_faults(&o);
    if (f->threads != 0)
        put(&o, SM_COUNTER_THREADS, f->threads);
    IF_DUE(f->malloc_due_ns, now_ns, 0, read_allocator(&o));
    IF_DUE(f->pss_due_ns, now_ns, 1000000000u, read_pss(f, &o));
    return o.n;
}
