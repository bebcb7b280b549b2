/* What the preload library reported about the processes of one run (inject/request.h), and what to
   tell the user when nothing was recorded. Hosted. */
#ifndef SM_CLI_ANSWERS_H
#define SM_CLI_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

struct sm_answer_line {
    char *kind; /* "started", ... */
    uint64_t pid;
    char *text;
};

struct sm_answers {
    struct sm_answer_line *lines;
    size_t n;
    size_t capacity;
    char *data;
};

/* Reads the file; a missing one has no lines. */
void sm_answers_read(struct sm_answers *a, const char *path);
void sm_answers_release(struct sm_answers *a);

/* The last line of that kind; pid 0 = of any process. NULL when there is none. */
const struct sm_answer_line *sm_answers_find(const struct sm_answers *a, const char *kind,
                                             uint64_t pid);
size_t sm_answers_count(const struct sm_answers *a, const char *kind);

/* Why the program left no trace, and what to do: sets err's text. `program` is its path, NULL when unknown. */
void sm_explain_nothing(const struct sm_answers *a, uint64_t pid, const char *program, bool follow,
                        struct sm_error *err);

#endif
