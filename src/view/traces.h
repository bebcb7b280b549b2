/* The traces a viewer shows: loaded in the background, reloaded when they grow, shared by requests. Hosted,
   thread-safe.

   A *snapshot* is one load of one trace with what requests made of it (selections). Whoever uses it holds a
   reference; a reload puts a new snapshot in its place, the old one goes with its last user. */
#ifndef SM_VIEW_TRACES_H
#define SM_VIEW_TRACES_H

#include <pthread.h>

#include "analyze/filter.h"
#include "analyze/select.h"

enum sm_trace_state { SM_TRACE_LOADING = 0, SM_TRACE_READY, SM_TRACE_FAILED };

#define SM_KEPT_SELECTIONS 16
#define SM_KEPT_ANSWERS 64
#define SM_KEPT_ANSWER_BYTES ((size_t)4 << 20) /* longer ones are made anew */

/* A filter applied to a snapshot; shared like it. */
struct sm_applied {
    char *text; /* canonical */
    struct sm_filter *filter;
    struct sm_selection selection;
    uint64_t *hidden;
    sm_text_id *collapsed;
    unsigned users; /* under the snapshot's lock */
    uint64_t used;  /* clock of last use */
};

struct sm_snapshot {
    struct sm_analysis *a;
    uint64_t revision;
    unsigned users; /* under the traces' lock */
    pthread_mutex_t lock;
    struct sm_applied *applied[SM_KEPT_SELECTIONS];
    uint64_t clock;
    struct sm_kept_answer {
        char *key, *text;
        size_t bytes;
        uint64_t used;
    } answers[SM_KEPT_ANSWERS];
};

struct sm_viewed {
    char *path;
    enum sm_trace_state state;
    double progress;
    double load_seconds;
    char error[512];
    bool following, changed_on_disk;
    uint64_t revision;
    struct sm_snapshot *snapshot; /* NULL while loading or failed */
};

struct sm_traces;

/* Begins to load all; `follow`: look for changes twice a second and load anew. */
struct sm_traces *sm_traces_new(char *const *paths, uint32_t n, bool follow, bool no_cache);
void sm_traces_free(struct sm_traces *t); /* waits for loads to end */
uint32_t sm_traces_count(const struct sm_traces *t);

/* A copy of the state without the snapshot; `path` lives as long as the traces. */
void sm_traces_state(struct sm_traces *t, uint32_t i, struct sm_viewed *to);
/* NULL while there is none. */
struct sm_snapshot *sm_traces_hold(struct sm_traces *t, uint32_t i);
void sm_traces_drop(struct sm_traces *t, struct sm_snapshot *s);

/* The filter applied, from those kept or made; NULL with *err when it is wrong. */
const struct sm_applied *sm_snapshot_apply(struct sm_snapshot *s, const char *filter,
                                           struct sm_filter_error *err);
void sm_snapshot_done(struct sm_snapshot *s, const struct sm_applied *a);

/* Answers by their questions: going back and forth in the page asks the same again. A snapshot never changes, so that an
   answer about it stays right. `get` appends to *out. */
bool sm_snapshot_answer_get(struct sm_snapshot *s, const char *key, struct sm_buffer *out);
void sm_snapshot_answer_keep(struct sm_snapshot *s, const char *key, const char *text,
                             size_t bytes);

/* A number that rises with every change of any state; waits until it differs from `seen`, for at most ms. */
uint64_t sm_traces_wait(struct sm_traces *t, uint64_t seen, unsigned ms);
bool sm_traces_stopping(struct sm_traces *t);
/* Wakes all waiters, for the end. */
void sm_traces_wake(struct sm_traces *t);

#endif
