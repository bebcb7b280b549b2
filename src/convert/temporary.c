#include "convert/temporary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/memory.h"

enum { BUFFER_BYTES = 1 << 20 };

static void release(struct sm_temporary *t) {
    free(t->path);
    free(t->temporary);
    *t = (struct sm_temporary){0};
}

enum sm_status sm_temporary_open(struct sm_temporary *t, const char *path, mode_t mode,
                                 struct sm_error *err) {
    static const char suffix[] = ".XXXXXX";
    /* A link keeps pointing: what it points at is replaced. */
    char *real = realpath(path, NULL);
    t->path = real != NULL ? real : sm_strdup(path);
    size_t n = strlen(t->path);
    t->temporary = sm_alloc(n + sizeof suffix);
    memcpy(t->temporary, t->path, n);
    memcpy(t->temporary + n, suffix, sizeof suffix);
    int fd = mkstemp(t->temporary);
    t->out = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (t->out == NULL) {
        sm_error_set(err, "cannot make a file beside %s: %s", path, strerror(errno));
        if (fd >= 0) {
            close(fd);
            unlink(t->temporary);
        }
        release(t);
        return SM_FAILED;
    }
    (void)fchmod(fd, mode); /* else it stays readable by its owner alone, which is safe */
    setvbuf(t->out, NULL, _IOFBF, BUFFER_BYTES);
    return SM_OK;
}

enum sm_status sm_temporary_keep(struct sm_temporary *t, struct sm_error *err) {
    int failed = fclose(t->out) != 0 ? errno : 0;
    if (failed == 0 && rename(t->temporary, t->path) != 0)
        failed = errno;
    if (failed != 0) {
        sm_error_set(err, "cannot write %s: %s", t->path, strerror(failed));
        unlink(t->temporary);
    }
    release(t);
    return failed == 0 ? SM_OK : SM_FAILED;
}

void sm_temporary_discard(struct sm_temporary *t) {
    fclose(t->out);
    unlink(t->temporary);
    release(t);
}
