/* What the process uses, as the system and its allocator tell: the values of COUNTERS records. Hook-safe. */
#ifndef SM_SERVICE_FIGURES_H
#define SM_SERVICE_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/descriptors.h"
#include "record/recorder.h"

enum { SM_FIGURES_MAX = 24 };

/* The system's files are opened once and read again and again: a number that is free for a moment is the program's
   next one, and it may count on that. */
struct sm_figures {
    struct {
        int fd; /* -1 = none */
        struct sm_file_id id;
    } status, own, rollup; /* of the process' first thread; of the service's, while it lives */
    uint64_t malloc_due_ns,
        pss_due_ns;   /* what is dear is asked for again when it has cost 1 % of the time since */
    uint32_t threads; /* as of the last reading, the calling one included; 0 = not known */
};

/* Opens the files, and finds out which allocator the process has. In a forked child again, after
   sm_figures_close. */
void sm_figures_open(struct sm_figures *f);
/* The service's thread, whose file has the process' memory when the first thread has ended. */
void sm_figures_own(struct sm_figures *f, uint32_t tid);
void sm_figures_close(struct sm_figures *f);
/* The process' first thread has ended, and of the others the service's alone is left. */
bool sm_figures_left_alone(const struct sm_figures *f);

/* Reads the figures into out, SM_FIGURES_MAX at most; those that cannot be had are left out. `now_ns` on
   CLOCK_MONOTONIC. Not for two threads at once with the same `f`. */
uint32_t sm_figures_read(struct sm_figures *f, uint64_t now_ns, struct sm_counter_value *out);

/* The value of line `name` ("VmRSS:") in the text of a status file, in the file's unit; -1 = there is none. */
int64_t sm_figures_line(const char *text, size_t bytes, const char *name);

#endif
