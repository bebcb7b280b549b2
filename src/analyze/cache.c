/* See cache.h. */
#include "analyze/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "util/memory.h"

#define SUFFIX ".columns"
#define END_BYTES 65536

static char *join(const char *a, const char *b) {
    char *to;
    if (asprintf(&to, "%s%s", a, b) < 0)
        sm_memory_failed(0);
    return to;
}

/* mkdir -p with mode 0700; false unless it is a directory of ours in the end. */
static bool make_directory(char *path) {
    for (char *at = path + 1; *at != 0; at++) {
        if (*at != '/')
            continue;
        *at = 0;
        mkdir(path, 0700);
        *at = '/';
    }
    mkdir(path, 0700);
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

char *sm_cache_directory(void) {
    const char *own = getenv("STATMEM_CACHE"), *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    char *path = NULL;
    if (own != NULL)
        path = own[0] != 0 ? sm_strdup(own) : NULL;
    else if (xdg != NULL && xdg[0] == '/')
        path = join(xdg, "/statmem/columns");
    else if (home != NULL && home[0] == '/')
        path = join(home, "/.cache/statmem/columns");
    if (path != NULL && !make_directory(path)) {
        free(path);
        path = NULL;
    }
    return path;
}

static uint64_t checksum_at(int fd, uint64_t offset) {
    char data[END_BYTES];
    ssize_t n = pread(fd, data, sizeof data, (off_t)offset);
    return n < 0 ? 0 : XXH3_64bits(data, (size_t)n);
}

bool sm_cache_identity(const char *trace_path, uint32_t part, struct sm_trace_identity *identity) {
    char *tail = join(trace_path, SM_TAIL_SUFFIX);
    bool growing = access(tail, F_OK) == 0;
    free(tail);
    int fd = growing ? -1 : open(trace_path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0)
        return false;
    bool ok = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    if (ok) {
        uint64_t bytes = (uint64_t)st.st_size;
        uint64_t facts[6] = {bytes,
                             (uint64_t)st.st_mtim.tv_sec,
                             (uint64_t)st.st_mtim.tv_nsec,
                             checksum_at(fd, 0),
                             checksum_at(fd, bytes > END_BYTES ? bytes - END_BYTES : 0),
                             part};
        XXH128_hash_t h = XXH3_128bits(facts, sizeof facts);
        *identity = (struct sm_trace_identity){h.low64, h.high64};
    }
    close(fd);
    return ok;
}

char *sm_cache_path(const char *directory, const struct sm_trace_identity *identity) {
    char *to;
    if (asprintf(&to, "%s/%016llx%016llx" SUFFIX, directory, (unsigned long long)identity->a,
                 (unsigned long long)identity->b) < 0)
        sm_memory_failed(0);
    return to;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static int compare_used(const void *left, const void *right) {
    const struct sm_cache_entry *x = left, *y = right;
    if (x->used_s != y->used_s)
        return x->used_s > y->used_s ? -1 : 1;
    return strcmp(x->name, y->name);
}

void sm_cache_list(const char *directory, struct sm_cache_list *out) {
    *out = (struct sm_cache_list){0};
    size_t capacity = 0;
    DIR *d = opendir(directory);
    struct dirent *e;
    while (d != NULL && (e = readdir(d)) != NULL) {
        struct stat st;
        if (!ends_with(e->d_name, SUFFIX) ||
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
            continue;
        char *path = join(directory, "/");
        char *full = join(path, e->d_name);
        out->list = sm_grow(out->list, &capacity, out->n + 1, sizeof *out->list);
        struct sm_cache_entry *to = &out->list[out->n++];
        *to = (struct sm_cache_entry){.name = sm_strdup(e->d_name),
                                      .bytes = (uint64_t)st.st_size,
                                      .used_s = st.st_atim.tv_sec};
        to->trace_path = sm_image_source(full, &to->usable);
        out->bytes += to->bytes;
        free(full);
        free(path);
    }
    if (d != NULL)
        closedir(d);
    if (out->n > 1)
        qsort(out->list, out->n, sizeof *out->list, compare_used);
}

void sm_cache_list_release(struct sm_cache_list *l) {
    for (size_t i = 0; i < l->n; i++) {
        free(l->list[i].name);
        free(l->list[i].trace_path);
    }
    free(l->list);
    *l = (struct sm_cache_list){0};
}

bool sm_cache_remove(const char *directory, const char *name) {
    if (strchr(name, '/') != NULL || !ends_with(name, SUFFIX)) {
        errno = EINVAL;
        return false;
    }
    int fd = open(directory, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && unlinkat(fd, name, 0) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

/* "HEX.columns.PID.tmp" of a process that is gone. */
static void remove_abandoned(const char *directory) {
    DIR *d = opendir(directory);
    struct dirent *e;
    while (d != NULL && (e = readdir(d)) != NULL) {
        const char *at = strstr(e->d_name, SUFFIX ".");
        if (at == NULL || !ends_with(e->d_name, ".tmp"))
            continue;
        long pid = strtol(at + strlen(SUFFIX "."), NULL, 10);
        if (pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH)
            unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d != NULL)
        closedir(d);
}

void sm_cache_prune(const char *directory, uint64_t max_bytes) {
    struct sm_cache_list list;
    remove_abandoned(directory);
    sm_cache_list(directory, &list);
    uint64_t bytes = 0;
    for (size_t i = 0; i < list.n; i++) {
        bytes += list.list[i].bytes;
        if (bytes > max_bytes || !list.list[i].usable)
            sm_cache_remove(directory, list.list[i].name);
    }
    sm_cache_list_release(&list);
}
