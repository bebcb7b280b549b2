/* See traces.h. One thread loads: first each trace once, then, when following, whatever has changed. A trace whose
   load takes long is looked at less often: at most a third of the time goes into loading. */
#include "view/traces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "util/memory.h"

struct entry {
    struct sm_viewed v;
    struct stat seen; /* of the file when it was loaded */
    off_t seen_tail;  /* size of the side file */
    double next_look;
};

struct sm_traces {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t loader;
    bool stop, follow, no_cache;
    uint64_t version;
    uint32_t n;
    struct entry *list;
};

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void change(struct sm_traces *t) {
    t->version++;
    pthread_cond_broadcast(&t->changed);
}

/* ---- snapshots ---- */

static void free_applied(struct sm_applied *a) {
    if (a == NULL)
        return;
    sm_selection_release(&a->selection);
    sm_filter_free(a->filter);
    free(a->hidden);
    free(a->collapsed);
    free(a->text);
    free(a);
}

static void free_snapshot(struct sm_snapshot *s) {
    for (unsigned i = 0; i < SM_KEPT_SELECTIONS; i++)
        free_applied(s->applied[i]);
    for (unsigned i = 0; i < SM_KEPT_ANSWERS; i++) {
        free(s->answers[i].key);
        free(s->answers[i].text);
    }
    pthread_mutex_destroy(&s->lock);
    sm_analysis_free(s->a);
    free(s);
}

struct sm_snapshot *sm_traces_hold(struct sm_traces *t, uint32_t i) {
    pthread_mutex_lock(&t->lock);
    struct sm_snapshot *s = i < t->n ? t->list[i].v.snapshot : NULL;
    if (s != NULL)
        s->users++;
    pthread_mutex_unlock(&t->lock);
    return s;
}

void sm_traces_drop(struct sm_traces *t, struct sm_snapshot *s) {
    pthread_mutex_lock(&t->lock);
    bool last = --s->users == 0;
    pthread_mutex_unlock(&t->lock);
    if (last)
        free_snapshot(s);
}

/* Where a kept filter stands, or where a new one may: empty, or used longest ago and by nobody. */
static unsigned place_of(const struct sm_snapshot *s, const char *text, bool *found) {
    unsigned oldest = SM_KEPT_SELECTIONS;
    *found = false;
    for (unsigned i = 0; i < SM_KEPT_SELECTIONS; i++) {
        const struct sm_applied *a = s->applied[i];
        if (a == NULL)
            return i;
        if (strcmp(a->text, text) == 0) {
            *found = true;
            return i;
        }
        if (a->users == 0 && (oldest == SM_KEPT_SELECTIONS || a->used < s->applied[oldest]->used))
            oldest = i;
    }
    return oldest;
}

static struct sm_applied *make_applied(const struct sm_snapshot *s, struct sm_filter *f,
                                       char *text) {
    struct sm_applied *a = sm_alloc_zero(1, sizeof *a);
    a->text = text;
    a->filter = f;
    sm_select(&a->selection, s->a, f, 0);
    sm_filter_views(s->a, f, &a->hidden, &a->collapsed);
    return a;
}

const struct sm_applied *sm_snapshot_apply(struct sm_snapshot *s, const char *filter,
                                           struct sm_filter_error *err) {
    struct sm_filter *f = sm_filter_parse(filter, strlen(filter), err);
    if (f == NULL)
        return NULL;
    struct sm_buffer b;
    sm_buffer_init(&b, -1);
    sm_filter_print(&b, f);
    char *text = sm_strdup(sm_buffer_string(&b));
    sm_buffer_release(&b);
    /* Selecting happens under the lock: two requests for one filter, the usual case when a page asks
       for several views, do the work once. */
    pthread_mutex_lock(&s->lock);
    bool found;
    unsigned i = place_of(s, text, &found);
    struct sm_applied *a;
    if (found) {
        a = s->applied[i];
        sm_filter_free(f);
        free(text);
    } else {
        a = make_applied(s, f, text);
        if (i < SM_KEPT_SELECTIONS) {
            free_applied(s->applied[i]);
            s->applied[i] = a;
        }
    }
    a->users++;
    a->used = ++s->clock;
    pthread_mutex_unlock(&s->lock);
    return a;
}

void sm_snapshot_done(struct sm_snapshot *s, const struct sm_applied *applied) {
    struct sm_applied *a = (struct sm_applied *)applied;
    if (a == NULL)
        return;
    pthread_mutex_lock(&s->lock);
    bool kept = false;
    for (unsigned i = 0; i < SM_KEPT_SELECTIONS; i++)
        kept |= s->applied[i] == a;
    bool last = --a->users == 0 && !kept;
    pthread_mutex_unlock(&s->lock);
    if (last)
        free_applied(a);
}

bool sm_snapshot_answer_get(struct sm_snapshot *s, const char *key, struct sm_buffer *out) {
    bool found = false;
    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < SM_KEPT_ANSWERS && !found; i++) {
        struct sm_kept_answer *a = &s->answers[i];
        if (a->key == NULL || strcmp(a->key, key) != 0)
            continue;
        sm_buffer_bytes(out, a->text, a->bytes);
        a->used = ++s->clock;
        found = true;
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

void sm_snapshot_answer_keep(struct sm_snapshot *s, const char *key, const char *text,
                             size_t bytes) {
    if (bytes > SM_KEPT_ANSWER_BYTES)
        return;
    pthread_mutex_lock(&s->lock);
    struct sm_kept_answer *oldest = &s->answers[0];
    for (unsigned i = 1; i < SM_KEPT_ANSWERS; i++) {
        if (s->answers[i].used < oldest->used)
            oldest = &s->answers[i];
    }
    free(oldest->key);
    free(oldest->text);
    oldest->key = sm_strdup(key);
    oldest->text = memcpy(sm_alloc(bytes), text, bytes);
    oldest->bytes = bytes;
    oldest->used = ++s->clock;
    pthread_mutex_unlock(&s->lock);
}

/* ---- loading ---- */

struct progress {
    struct sm_traces *t;
    struct entry *e;
};

static void progress(void *ctx, uint64_t done, uint64_t total) {
    const struct progress *p = ctx;
    pthread_mutex_lock(&p->t->lock);
    p->e->v.progress = total > 0 ? (double)done / (double)total : 0;
    change(p->t);
    pthread_mutex_unlock(&p->t->lock);
}

static void look(const struct entry *e, struct stat *file, struct stat *tail) {
    char name[4200];
    memset(file, 0, sizeof *file);
    memset(tail, 0, sizeof *tail);
    if (stat(e->v.path, file) != 0)
        memset(file, 0, sizeof *file);
    snprintf(name, sizeof name, "%s" SM_TAIL_SUFFIX, e->v.path);
    if (stat(name, tail) != 0)
        memset(tail, 0, sizeof *tail);
}

static bool same_time(struct timespec a, struct timespec b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* A mapped side file changes without its times: while there is one, the trace counts as growing. */
static bool is_changed(const struct entry *e) {
    struct stat file, tail;
    look(e, &file, &tail);
    return file.st_size != e->seen.st_size || file.st_ino != e->seen.st_ino ||
           !same_time(file.st_mtim, e->seen.st_mtim) || tail.st_size != e->seen_tail ||
           tail.st_size > 0;
}

static void load(struct sm_traces *t, struct entry *e) {
    struct stat tail;
    struct sm_error err;
    struct progress p = {t, e};
    struct sm_analysis_options o = {.no_cache = t->no_cache,
                                    .trace = {.progress = progress, .progress_ctx = &p}};
    struct sm_analysis *a = NULL;
    double begin = seconds();
    look(e, &e->seen, &tail);
    e->seen_tail = tail.st_size;
    enum sm_status status = sm_analysis_open(&a, e->v.path, &o, &err);
    double took = seconds() - begin;
    struct sm_snapshot *fresh = NULL, *old;
    if (status == SM_OK) {
        fresh = sm_alloc_zero(1, sizeof *fresh);
        fresh->a = a;
        fresh->users = 1;
        pthread_mutex_init(&fresh->lock, NULL);
    }
    pthread_mutex_lock(&t->lock);
    e->v.load_seconds = took;
    e->next_look = seconds() + (took * 2 > 0.4 ? took * 2 : 0.4);
    old = NULL;
    if (fresh != NULL) {
        old = e->v.snapshot;
        fresh->revision = ++e->v.revision;
        e->v.snapshot = fresh;
        e->v.state = SM_TRACE_READY;
        e->v.progress = 1;
        e->v.changed_on_disk = false;
    } else if (e->v.snapshot == NULL) {
        /* A trace that was readable once stays as it was. */
        e->v.state = SM_TRACE_FAILED;
        snprintf(e->v.error, sizeof e->v.error, "%s", err.text);
    } else {
        e->v.changed_on_disk = true;
    }
    change(t);
    pthread_mutex_unlock(&t->lock);
    if (old != NULL)
        sm_traces_drop(t, old);
}

bool sm_traces_stopping(struct sm_traces *t) {
    pthread_mutex_lock(&t->lock);
    bool stop = t->stop;
    pthread_mutex_unlock(&t->lock);
    return stop;
}

static void *loader(void *argument) {
    struct sm_traces *t = argument;
    for (uint32_t i = 0; i < t->n && !sm_traces_stopping(t); i++)
        load(t, &t->list[i]);
    for (;;) {
        pthread_mutex_lock(&t->lock);
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 300000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (!t->stop)
            pthread_cond_timedwait(&t->changed, &t->lock, &until);
        bool stop = t->stop;
        pthread_mutex_unlock(&t->lock);
        if (stop)
            return NULL;
        for (uint32_t i = 0; i < t->n; i++) {
            struct entry *e = &t->list[i];
            if (seconds() < e->next_look || !is_changed(e))
                continue;
            if (t->follow) {
                load(t, e);
            } else if (!e->v.changed_on_disk) {
                pthread_mutex_lock(&t->lock);
                e->v.changed_on_disk = true;
                change(t);
                pthread_mutex_unlock(&t->lock);
            }
        }
    }
}

struct sm_traces *sm_traces_new(char *const *paths, uint32_t n, bool follow, bool no_cache) {
    struct sm_traces *t = sm_alloc_zero(1, sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    t->n = n;
    t->follow = follow;
    t->no_cache = no_cache;
    t->list = sm_alloc_zero(n, sizeof *t->list);
    for (uint32_t i = 0; i < n; i++) {
        t->list[i].v.path = sm_strdup(paths[i]);
        t->list[i].v.following = follow;
    }
    if (pthread_create(&t->loader, NULL, loader, t) != 0)
        sm_memory_failed(0);
    return t;
}

void sm_traces_wake(struct sm_traces *t) {
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    change(t);
    pthread_mutex_unlock(&t->lock);
}

void sm_traces_free(struct sm_traces *t) {
    if (t == NULL)
        return;
    sm_traces_wake(t);
    pthread_join(t->loader, NULL);
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->list[i].v.snapshot != NULL)
            sm_traces_drop(t, t->list[i].v.snapshot);
        free(t->list[i].v.path);
    }
    free(t->list);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

uint32_t sm_traces_count(const struct sm_traces *t) {
    return t->n;
}

void sm_traces_state(struct sm_traces *t, uint32_t i, struct sm_viewed *to) {
    pthread_mutex_lock(&t->lock);
    *to = t->list[i].v;
    to->snapshot = NULL;
    pthread_mutex_unlock(&t->lock);
}

uint64_t sm_traces_wait(struct sm_traces *t, uint64_t seen, unsigned ms) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&t->lock);
    while (t->version == seen && !t->stop &&
           pthread_cond_timedwait(&t->changed, &t->lock, &until) == 0) {
    }
    uint64_t version = t->version;
    pthread_mutex_unlock(&t->lock);
    return version;
}
