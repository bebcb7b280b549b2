/* Streams into one order.

   The streams whose next event may be given out stand in a binary heap by (time, stream); `current`,
   the stream that gave the last event, stands outside. As long as its next event does not come after the
   heap's smallest, it goes straight from the decoder to the caller: the heap is not touched and nothing is
   copied. Frames point into the stream's decoder, so a stream is advanced only by the next call.

   Causality: an event on an object of another stream whose allocation has not been given out, but
   will be (has_object), takes its stream out of the heap into the waiting list of that other stream. It comes back
   when the allocation, or any later one (the awaited one turned out unreadable), is given out or the
   stream ends. Allocations never wait, so in a sound trace somebody can always go on; in a damaged one
   streams may wait for each other in a circle. Then the earliest waiting event goes without its
   allocation, and is counted. */
#include "merge/cursor.h"

#include <stdlib.h>
#include <string.h>

#include "decode/trace_internal.h"

#define NONE UINT32_MAX

struct source {
    struct sm_stream_cursor *stream;
    struct sm_event head;  /* the next event, while in the heap or waiting */
    uint64_t given_end;    /* 1 + seq of the last allocation given out */
    uint32_t first_waiter; /* streams that wait for an allocation of this one */
    uint64_t first_needed; /* the smallest seq among those they wait for */
    uint32_t next_waiter;  /* in the list this stream waits in */
    bool waiting, ended;
};

struct key {
    uint64_t ticks;
    uint32_t source;
};

enum mode { SINGLE, SEQUENTIAL, MERGED };

struct sm_cursor {
    enum mode mode;
    struct sm_stream_cursor *only; /* SINGLE, SEQUENTIAL: the stream being read */
    uint32_t next_stream;          /* SEQUENTIAL: index of the one after it */
    const struct sm_backend *backend;
    struct sm_trace *t;
    unsigned flags;
    bool marks_own_orphans; /* the backend's */
    uint64_t orphans, early;

    struct source *sources; /* MERGED, by stream index */
    uint32_t n_sources, n_waiting;
    uint32_t current; /* NONE = take from the heap */
    struct key *heap;
    uint32_t heap_size;
};

static inline bool before(struct key a, struct key b) {
    return a.ticks < b.ticks || (a.ticks == b.ticks && a.source < b.source);
}

static void heap_down(struct sm_cursor *c, uint32_t at, struct key k) {
    struct key *heap = c->heap;
    uint32_t n = c->heap_size;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= n)
            break;
        if (child + 1 < n && before(heap[child + 1], heap[child]))
            child++;
        if (!before(heap[child], k))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = k;
}

static void heap_push(struct sm_cursor *c, struct key k) {
    uint32_t at = c->heap_size++;
    while (at > 0 && before(k, c->heap[(at - 1) / 2])) {
        c->heap[at] = c->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    c->heap[at] = k;
}

static uint32_t heap_pop(struct sm_cursor *c) {
    uint32_t top = c->heap[0].source;
    struct key last = c->heap[--c->heap_size];
    if (c->heap_size > 0)
        heap_down(c, 0, last);
    return top;
}

static inline bool is_reference(const struct sm_event *e) {
    return e->kind == SM_EVENT_PROMOTE || e->kind == SM_EVENT_COLLECT;
}

static inline void mark_orphan(struct sm_cursor *c, struct sm_event *e) {
    if ((e->obj_stream != e->stream || !c->marks_own_orphans) &&
        !c->backend->has_object(c->t, e->obj_stream, e->obj_seq))
        e->flags |= SM_EVENT_ORPHAN;
    c->orphans += (e->flags & SM_EVENT_ORPHAN) != 0;
}

/* Index of the stream whose allocation the event must wait for, or NONE. */
static uint32_t waits_for(const struct sm_cursor *c, const struct sm_event *e) {
    if (e->obj_stream == e->stream)
        return NONE; /* program order */
    uint32_t index = sm_trace_stream_index(c->t, e->obj_stream);
    if (index == NONE)
        return NONE;
    const struct source *s = &c->sources[index];
    if (s->ended || e->obj_seq < s->given_end ||
        !c->backend->has_object(c->t, e->obj_stream, e->obj_seq))
        return NONE;
    return index;
}

/* Puts the stream, whose head is set, into the waiting list it belongs in; false when it need not
   wait. */
static bool put_waiting(struct sm_cursor *c, uint32_t index) {
    struct source *s = &c->sources[index];
    if (!is_reference(&s->head))
        return false;
    uint32_t other = waits_for(c, &s->head);
    if (other == NONE)
        return false;
    struct source *o = &c->sources[other];
    s->next_waiter = o->first_waiter;
    o->first_waiter = index;
    if (s->next_waiter == NONE || s->head.obj_seq < o->first_needed)
        o->first_needed = s->head.obj_seq;
    s->waiting = true;
    c->n_waiting++;
    return true;
}

/* Lets go the streams that wait for an allocation of `o` below its given_end, or all. */
static void release_waiters(struct sm_cursor *c, struct source *o) {
    uint32_t index = o->first_waiter;
    o->first_waiter = NONE;
    o->first_needed = UINT64_MAX;
    while (index != NONE) {
        struct source *s = &c->sources[index];
        uint32_t next = s->next_waiter;
        if (o->ended || s->head.obj_seq < o->given_end) {
            s->waiting = false;
            c->n_waiting--;
            heap_push(c, (struct key){s->head.ticks, index});
        } else {
            s->next_waiter = o->first_waiter;
            o->first_waiter = index;
            if (s->head.obj_seq < o->first_needed)
                o->first_needed = s->head.obj_seq;
        }
        index = next;
    }
}

/* Gives out `e`, an event of c->current. */
static inline enum sm_status give(struct sm_cursor *c, struct sm_event *e) {
    if (e->kind == SM_EVENT_ALLOC) {
        struct source *s = &c->sources[c->current];
        if (e->obj_seq >= s->given_end)
            s->given_end = e->obj_seq + 1;
        if (__builtin_expect(s->first_waiter != NONE && s->first_needed < s->given_end, 0))
            release_waiters(c, s);
    } else if (is_reference(e)) {
        mark_orphan(c, e);
    }
    return SM_OK;
}

/* All streams wait for each other: takes the earliest out of its list. */
static void break_circle(struct sm_cursor *c) {
    uint32_t best = NONE;
    for (uint32_t i = 0; i < c->n_sources; i++)
        if (c->sources[i].waiting &&
            (best == NONE || c->sources[i].head.ticks < c->sources[best].head.ticks))
            best = i;
    struct source *s = &c->sources[best];
    struct source *o = &c->sources[sm_trace_stream_index(c->t, s->head.obj_stream)];
    uint32_t *link = &o->first_waiter;
    while (*link != best)
        link = &c->sources[*link].next_waiter;
    *link = s->next_waiter;
    s->waiting = false;
    c->n_waiting--;
    c->early++;
    heap_push(c, (struct key){s->head.ticks, best});
}

static void report_at_end(struct sm_cursor *c) {
    if (c->t->orphans_reported)
        return;
    sm_trace_report_orphans(c->t, c->orphans, c->mode != SEQUENTIAL);
    if (c->early > 0)
        sm_trace_add_loss(c->t, SM_LOSS_TIME, UINT32_MAX, 0, 0, 0, true,
                          "%llu events come before the allocation of their object, because streams "
                          "refer to each other in a circle",
                          (unsigned long long)c->early);
}

static enum sm_status next_merged(struct sm_cursor *c, struct sm_event *e) {
    for (;;) {
        if (c->current == NONE) {
            if (c->heap_size == 0) {
                if (c->n_waiting == 0) {
                    report_at_end(c);
                    return SM_END;
                }
                break_circle(c);
            }
            c->current = heap_pop(c);
            *e = c->sources[c->current].head;
            return give(c, e);
        }
        struct source *s = &c->sources[c->current];
        if (c->backend->stream_next(s->stream, e) != SM_OK) {
            s->ended = true;
            c->backend->stream_free(s->stream);
            s->stream = NULL;
            c->current = NONE;
            release_waiters(c, s);
            continue;
        }
        if (is_reference(e) && e->obj_stream != e->stream) {
            s->head = *e;
            if (put_waiting(c, c->current)) {
                c->current = NONE;
                continue;
            }
        }
        struct key k = {e->ticks, c->current};
        if (c->heap_size == 0 || before(k, c->heap[0]))
            return give(c, e);
        s->head = *e;
        c->current = c->heap[0].source;
        heap_down(c, 0, k);
        *e = c->sources[c->current].head;
        return give(c, e);
    }
}

static enum sm_status next_sequential(struct sm_cursor *c, struct sm_event *e) {
    for (;;) {
        if (c->only != NULL) {
            if (c->backend->stream_next(c->only, e) == SM_OK) {
                if (is_reference(e))
                    mark_orphan(c, e);
                return SM_OK;
            }
            c->backend->stream_free(c->only);
            c->only = NULL;
        }
        if (c->mode == SINGLE || c->next_stream >= c->n_sources) {
            report_at_end(c);
            return SM_END;
        }
        c->only = c->backend->stream_new(c->t, c->next_stream++, c->flags);
        if (c->only == NULL)
            sm_trace_add_loss(c->t, SM_LOSS_CORRUPT, c->t->stream_ids[c->next_stream - 1], 0, 0, 0,
                              false, "no memory to read stream %u",
                              c->t->stream_ids[c->next_stream - 1]);
    }
}

enum sm_status sm_cursor_next(struct sm_cursor *c, struct sm_event *event) {
    if (c->mode == MERGED)
        return next_merged(c, event);
    if (__builtin_expect(c->only != NULL && c->backend->stream_next(c->only, event) == SM_OK, 1)) {
        if (is_reference(event))
            mark_orphan(c, event);
        return SM_OK;
    }
    return next_sequential(c, event);
}

static bool start_merge(struct sm_cursor *c) {
    c->sources = calloc(c->n_sources, sizeof *c->sources);
    c->heap = calloc(c->n_sources, sizeof *c->heap);
    if (c->sources == NULL || c->heap == NULL)
        return false;
    c->current = NONE;
    for (uint32_t i = 0; i < c->n_sources; i++) {
        struct source *s = &c->sources[i];
        s->first_waiter = s->next_waiter = NONE;
        s->first_needed = UINT64_MAX;
        s->stream = c->backend->stream_new(c->t, i, c->flags);
        if (s->stream == NULL)
            return false;
        if (c->backend->stream_next(s->stream, &s->head) != SM_OK) {
            s->ended = true;
            c->backend->stream_free(s->stream);
            s->stream = NULL;
        }
    }
    for (uint32_t i = 0; i < c->n_sources; i++)
        if (!c->sources[i].ended && !put_waiting(c, i))
            heap_push(c, (struct key){c->sources[i].head.ticks, i});
    return true;
}

enum sm_status sm_cursor_new(struct sm_cursor **out, struct sm_trace *t, unsigned flags,
                             struct sm_error *err) {
    struct sm_cursor *c = calloc(1, sizeof *c);
    if (c == NULL) {
        sm_error_set(err, "out of memory");
        return SM_FAILED;
    }
    c->t = t;
    c->backend = t->backend;
    c->marks_own_orphans = t->backend->marks_own_orphans;
    c->flags = flags;
    c->n_sources = t->n_streams;
    t->done_bytes = t->progress_bytes = 0;
    bool unmerged = (flags & SM_CURSOR_UNMERGED) != 0;
    bool ok = true;
    if (t->n_streams == 1) {
        c->mode = SINGLE;
        c->only = c->backend->stream_new(t, 0, flags);
        ok = c->only != NULL;
    } else if (unmerged || t->n_streams == 0) {
        c->mode = SEQUENTIAL;
    } else {
        c->mode = MERGED;
        ok = start_merge(c);
    }
    if (!ok) {
        sm_error_set(err, "out of memory for the cursors of %u streams", t->n_streams);
        sm_cursor_free(c);
        return SM_FAILED;
    }
    *out = c;
    return SM_OK;
}

void sm_cursor_free(struct sm_cursor *c) {
    if (c == NULL)
        return;
    if (c->only != NULL)
        c->backend->stream_free(c->only);
    for (uint32_t i = 0; c->sources != NULL && i < c->n_sources; i++)
        if (c->sources[i].stream != NULL)
            c->backend->stream_free(c->sources[i].stream);
    free(c->sources);
    free(c->heap);
    free(c);
}
