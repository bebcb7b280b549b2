/* A file that appears under its name only when it is complete. Hosted. */
#ifndef SM_CONVERT_TEMPORARY_H
#define SM_CONVERT_TEMPORARY_H

#include <stdio.h>
#include <sys/types.h>

#include "decode/trace.h"
#include "util/error.h"

struct sm_temporary {
    FILE *out;
    char *path;      /* final name */
    char *temporary; /* in the same directory */
};

/* Opens a new file beside `path` with `mode`. */
enum sm_status sm_temporary_open(struct sm_temporary *t, const char *path, mode_t mode,
                                 struct sm_error *err);

/* Closes it and gives it its name, in place of what had it; or removes it and fails. */
enum sm_status sm_temporary_keep(struct sm_temporary *t, struct sm_error *err);
void sm_temporary_discard(struct sm_temporary *t);

#endif
