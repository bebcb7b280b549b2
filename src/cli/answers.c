/* Answers come from processes of the user's own, but through a file that others of the user could
   write: they are shown, counted and compared, and paths in them are opened only as traces. */
#include "cli/answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/elf.h"
#include "cli/probe.h"
#include "util/memory.h"

void sm_answers_read(struct sm_answers *a, const char *path) {
    memset(a, 0, sizeof *a);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return;
    size_t used = 0, room = 0;
    do {
        a->data = sm_grow(a->data, &room, used + 4096, 1);
        used += fread(a->data + used, 1, room - used - 1, f);
    } while (!feof(f) && !ferror(f) && used < 64u << 20);
    fclose(f);
    a->data[used] = 0;
    for (char *line = a->data, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = 0;
        char *pid = strchr(line, ' '), *text = pid != NULL ? strchr(pid + 1, ' ') : NULL;
        if (text == NULL)
            continue;
        *pid++ = 0;
        *text++ = 0;
        a->lines = sm_grow(a->lines, &a->capacity, a->n + 1, sizeof *a->lines);
        a->lines[a->n++] = (struct sm_answer_line){line, strtoull(pid, NULL, 10), text};
    }
}

void sm_answers_release(struct sm_answers *a) {
    free(a->lines);
    free(a->data);
    memset(a, 0, sizeof *a);
}

const struct sm_answer_line *sm_answers_find(const struct sm_answers *a, const char *kind,
                                             uint64_t pid) {
    for (size_t i = a->n; i-- > 0;)
        if (strcmp(a->lines[i].kind, kind) == 0 && (pid == 0 || a->lines[i].pid == pid))
            return &a->lines[i];
    return NULL;
}

size_t sm_answers_count(const struct sm_answers *a, const char *kind) {
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++)
        n += strcmp(a->lines[i].kind, kind) == 0;
    return n;
}

/* The library was never loaded: the file says why. */
static void explain_silence(const char *program, struct sm_error *err) {
    struct sm_probe probe;
    if (program == NULL || !sm_probe_file(&probe, program)) {
        sm_error_set(err, "nothing was recorded: the program did not load %s",
                     "the recorder (LD_PRELOAD was not honoured)");
        return;
    }
    sm_error_set(err, "nothing was recorded: %s", probe.reason);
}

void sm_explain_nothing(const struct sm_answers *a, uint64_t pid, const char *program, bool follow,
                        struct sm_error *err) {
    const struct sm_answer_line *line;
    if ((line = sm_answers_find(a, "failed", 0)) != NULL) {
        sm_error_set(err, "nothing was recorded: %s", line->text);
    } else if ((line = sm_answers_find(a, "refused", follow ? 0 : pid)) != NULL) {
        sm_error_set(err, "nothing was recorded: %s", line->text);
    } else if (sm_answers_find(a, "paused", 0) != NULL) {
        sm_error_set(err, "nothing was recorded: no window was begun, with statmem ctl PID start "
                          "or the signal of --toggle-signal");
    } else if ((line = sm_answers_find(a, "child", 0)) != NULL) {
        sm_error_set(
            err,
            "nothing was recorded: the program itself holds no OCaml, but started %zu OCaml "
            "process%s (%.200s): record it with --follow-children",
            sm_answers_count(a, "child"), sm_answers_count(a, "child") == 1 ? "" : "es",
            line->text);
    } else if (sm_answers_find(a, "armed", 0) != NULL) {
        sm_error_set(err,
                     "nothing was recorded: the program ended before any of its OCaml code ran");
    } else if ((line = sm_answers_find(a, "none", follow ? 0 : pid)) != NULL) {
        sm_error_set(err, "nothing was recorded: %.200s is no OCaml program%s", line->text,
                     follow ? "" : "; if it starts one, record with --follow-children");
    } else {
        explain_silence(program, err);
    }
}
