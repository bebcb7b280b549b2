/* The numbers of file descriptors belong to the program. It may close ours with all others (a daemon's way), or put a file
   of its own in the place of one (a shell's `exec 3>file`); what we wrote then would go into that file.

   So ours get high numbers, which programs leave alone; and before each use that matters (a packet, that is 128 KiB of
   events, a new slot, the end) the descriptor is asked whether it still is the file that was opened. If
   not, the file is opened once more by its name, when that still leads to it; the number that is not ours any more is
   left alone. A program that does this between the question and the write, in another thread, is not helped. */
#include "record/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define HIGHEST 1000 /* select() knows 1024 */
#define LOCK_LIMIT_MS 1000

int sm_descriptor_high(int fd) {
    struct rlimit limit;
    int from = HIGHEST;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < HIGHEST + 8)
        from = limit.rlim_cur > 16 ? (int)limit.rlim_cur - 8 : 0;
    int high = fd < from ? fcntl(fd, F_DUPFD_CLOEXEC, from) : -1;
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

void sm_descriptor_identify(int fd, struct sm_file_id *id) {
    struct stat st;
    *id = (struct sm_file_id){0};
    if (fstat(fd, &st) == 0)
        *id = (struct sm_file_id){.device = (uint64_t)st.st_dev, .inode = (uint64_t)st.st_ino};
}

bool sm_descriptor_is(int fd, const struct sm_file_id *id) {
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && (uint64_t)st.st_dev == id->device &&
           (uint64_t)st.st_ino == id->inode;
}

int sm_descriptor_sure(int *fd, const struct sm_file_id *id, const char *path, int flags) {
    /* relaxed: any thread that finds the old number comes here as well */
    int now = __atomic_load_n(fd, __ATOMIC_RELAXED);
    if (sm_descriptor_is(now, id))
        return now;
    struct sm_control *c = atomic_load_explicit(&sm_control, memory_order_acquire);
    if (path[0] == 0 || !sm_os_lock_acquire(&c->output_lock, LOCK_LIMIT_MS))
        return -1;
    now = __atomic_load_n(fd, __ATOMIC_RELAXED);
    if (!sm_descriptor_is(now, id)) {
        int again = open(path, flags | O_CLOEXEC);
        now = -1;
        if (again >= 0 && sm_descriptor_is(again, id)) {
            now = sm_descriptor_high(again);
            sm_os_lock_file(now);
            __atomic_store_n(fd, now, __ATOMIC_RELAXED);
        } else if (again >= 0) {
            close(again);
        }
    }
    sm_os_lock_release(&c->output_lock);
    return now;
}
