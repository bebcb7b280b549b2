#include "convert/ctf_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/ctf_metadata.h"
#include "convert/memtrace_writer_internal.h"

struct sm_ctf_dir {
    int dir; /* descriptor */
    struct sm_memtrace_writer *writer;
};

static FILE *open_file(struct sm_ctf_dir *d, const char *name, bool again, struct sm_error *err) {
    int fd =
        openat(d->dir, name, O_WRONLY | O_CLOEXEC | (again ? O_APPEND : O_CREAT | O_EXCL), 0600);
    FILE *f = fd < 0 ? NULL : fdopen(fd, again ? "ab" : "wb");
    if (f == NULL) {
        sm_error_set(err, "cannot write %s in the CTF directory: %s", name, strerror(errno));
        if (fd >= 0)
            close(fd);
    }
    return f;
}

static FILE *open_stream(void *ctx, uint32_t domain, bool again, struct sm_error *err) {
    char name[32];
    snprintf(name, sizeof name, "domain-%u", domain);
    return open_file(ctx, name, again, err);
}

static bool write_metadata(struct sm_ctf_dir *d, struct sm_error *err) {
    FILE *f = open_file(d, "metadata", false, err);
    if (f == NULL)
        return false;
    bool written = sm_ctf_metadata_put(f);
    if (fclose(f) == 0 && written)
        return true;
    sm_error_set(err, "cannot write metadata in the CTF directory: %s", strerror(errno));
    return false;
}

/* A directory of ours: made, or there and empty. */
static int make_directory(const char *path, struct sm_error *err) {
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        sm_error_set(err, "cannot make the directory %s: %s", path, strerror(errno));
        return -1;
    }
    DIR *list = opendir(path);
    if (list == NULL) {
        sm_error_set(err, "cannot open the directory %s: %s", path, strerror(errno));
        return -1;
    }
    struct dirent *entry;
    bool empty = true;
    while ((entry = readdir(list)) != NULL)
        empty &= strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    closedir(list);
    if (!empty) {
        sm_error_set(err, "%s is not empty: name a new directory for the CTF trace", path);
        return -1;
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        sm_error_set(err, "cannot open the directory %s: %s", path, strerror(errno));
    return fd;
}

enum sm_status sm_ctf_dir_new(struct sm_ctf_dir **out, const char *path,
                              const struct sm_memtrace_header *header,
                              sm_memtrace_locate_fn *locate, void *locate_ctx,
                              struct sm_error *err) {
    int dir = make_directory(path, err);
    if (dir < 0)
        return SM_FAILED;
    struct sm_ctf_dir *d = calloc(1, sizeof *d);
    if (d == NULL) {
        sm_error_set(err, "out of memory while writing a CTF directory");
        close(dir);
        return SM_FAILED;
    }
    d->dir = dir;
    struct sm_memtrace_header three = *header;
    three.version = 3;
    if (!write_metadata(d, err) ||
        sm_mt_writer_new_split(&d->writer, NULL, open_stream, d, &three, SM_MEMTRACE_RELAXED,
                               locate, locate_ctx, err) != SM_OK) {
        sm_ctf_dir_free(d);
        return SM_FAILED;
    }
    *out = d;
    return SM_OK;
}

struct sm_memtrace_writer *sm_ctf_dir_writer(struct sm_ctf_dir *d) {
    return d->writer;
}

enum sm_status sm_ctf_dir_close(struct sm_ctf_dir *d, struct sm_error *err) {
    return sm_memtrace_writer_close(d->writer, err);
}

void sm_ctf_dir_free(struct sm_ctf_dir *d) {
    if (d == NULL)
        return;
    sm_memtrace_writer_free(d->writer);
    close(d->dir);
    free(d);
}
