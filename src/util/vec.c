/* See vec.h. */
#include "util/vec.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/memory.h"

#define LEAST_BYTES ((size_t)64 << 10)
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

void sm_vec_init(struct sm_vec *v, const char *directory) {
    *v = (struct sm_vec){0};
    if (directory != NULL) {
        int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        v->fd = fd < 0 ? 0 : fd + 1;
    }
}

void sm_vec_release(struct sm_vec *v) {
    if (v->data != NULL)
        munmap(v->data, v->capacity_bytes);
    if (v->fd > 0)
        close(v->fd - 1);
    *v = (struct sm_vec){0};
}

/* A full disk must be an error here, not a SIGBUS later: blocks are allocated. */
static int extend_file(const struct sm_vec *v, size_t bytes) {
    return posix_fallocate(v->fd - 1, (off_t)v->capacity_bytes, (off_t)(bytes - v->capacity_bytes));
}

void sm_vec_reserve(struct sm_vec *v, size_t bytes) {
    size_t wanted = v->capacity_bytes > 0 ? v->capacity_bytes : LEAST_BYTES;
    while (wanted < bytes)
        wanted += wanted;
    if (wanted <= v->capacity_bytes)
        return;
    if (v->fd > 0 && extend_file(v, wanted) != 0)
        sm_memory_failed(wanted);
    void *data;
    if (v->data == NULL)
        data = mmap(NULL, wanted, PROT_READ | PROT_WRITE,
                    v->fd > 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, v->fd - 1,
                    0);
    else
        data = mremap(v->data, v->capacity_bytes, wanted, MREMAP_MAYMOVE);
    if (data == MAP_FAILED)
        sm_memory_failed(wanted);
    if (v->fd == 0 && wanted >= HUGE_PAGE_BYTES)
        madvise(data, wanted,
                MADV_HUGEPAGE); /* a wish: random access to large arrays waits for the TLB */
    v->data = data;
    v->capacity_bytes = wanted;
}
