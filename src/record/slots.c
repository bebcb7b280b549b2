/* Which stream belongs to which thread.

   A stream is made when more threads are alive than ever before, and is never freed: memory is bounded by the peak
   of threads that record at the same time. A thread's end (a pthread key's destructor) puts its stream
   onto the free list; the next new thread takes it, open packet and all, and begins with an OWNER record.

   The lock is taken when a thread comes or goes, at start and at stop; never by an event.

   Other destructors of the thread may still report events after ours has run. They get a stream again, and the
   key's destructor a second run; when the rounds that pthread grants are used up, events are
   discarded and counted. Native ones (libc itself frees memory then) get a stream for one event at a time.

   A thread has a second stream for its native events (recorder.h); one key serves both. */
#include "record/internal.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

#define LOCK_LIMIT_MS 5000

static struct sm_stream **table; /* SM_MAX_STREAMS, mapped */
static uint32_t n_streams;       /* under the lock; also read by sm_recorder_discarded */
static uint32_t n_attached;
static struct sm_stream *free_list;
static pthread_key_t key;
static bool has_key;
uint32_t sm_epoch = 1;

static size_t round_up(size_t bytes) {
    return (bytes + 63) & ~(size_t)63;
}

static struct sm_control *control(void) {
    return atomic_load_explicit(&sm_control, memory_order_acquire);
}

void sm_slots_detach(struct sm_thread *t) {
    struct sm_control *c = control();
    struct sm_stream *s = t->stream;
    if (s == NULL)
        return;
    t->stream = NULL;
    t->generation = 0;
    t->sample_generation = 0;
    if (!c->alive || t->epoch != sm_epoch) /* a forked child that has no streams */
        return;
    sm_stream_leave(s); /* left by longjmp or cancellation, perhaps */
    if (!sm_os_lock_acquire(&c->slots_lock, LOCK_LIMIT_MS))
        return; /* lost to recycling, harmless otherwise */
    s->next_free = free_list;
    free_list = s;
    n_attached--;
    sm_os_lock_release(&c->slots_lock);
}

static void thread_ends(void *ignored) {
    sm_slots_detach(&sm_thread);
    sm_thread.ended++;
    sm_slots_detach(&sm_native_thread);
    sm_native_thread.ended++;
}

/* After a thread's first end its native events come from other destructors and from libc, which frees the thread's
   memory when all destructors have run. */
bool sm_slots_ending(const struct sm_thread *t) {
    return t->ended >= (t->native ? 1 : PTHREAD_DESTRUCTOR_ITERATIONS - 1);
}

int sm_slots_setup(void) {
    if (table == NULL) {
        table = sm_os_map(SM_MAX_STREAMS * sizeof *table);
        if (table == NULL)
            return -1;
    }
    if (!has_key) {
        if (pthread_key_create(&key, thread_ends) != 0)
            return -1;
        has_key = true;
    }
    return 0;
}

void sm_slots_forget(void) {
    table = NULL; /* not mapped in a child */
    free_list = NULL;
    __atomic_store_n(&n_streams, 0, __ATOMIC_RELAXED);
    n_attached = 0;
    sm_epoch++;
}

void sm_slots_session_begins(void) {
    sm_session.owners = 0;
    sm_session.peak_streams = 0;
}

static struct sm_stream *stream_new(void) {
    if (n_streams >= SM_MAX_STREAMS)
        return NULL;
    size_t own = round_up(sizeof(struct sm_stream));
    size_t encoder = round_up(sm_event_encoder_bytes());
    uint8_t *memory = sm_os_map(own + encoder + SM_NATIVE_FRAMES * sizeof(uintptr_t));
    if (memory == NULL)
        return NULL;
    struct sm_stream *s = (struct sm_stream *)(void *)memory;
    s->encoder = (struct sm_event_encoder *)(void *)(memory + own);
    s->native_frames = (uintptr_t *)(void *)(memory + own + encoder);
    s->id = n_streams;
    __atomic_store_n(&table[s->id], s, __ATOMIC_RELEASE);
    __atomic_store_n(&n_streams, n_streams + 1, __ATOMIC_RELEASE); /* pairs with sm_slots_count */
    return s;
}

struct sm_stream *sm_slots_attach(struct sm_thread *t) {
    struct sm_control *c = control();
    if (!t->native && sm_slots_ending(t)) {
        sm_discard_without_stream();
        return NULL;
    }
    if (!sm_os_lock_acquire(&c->slots_lock, LOCK_LIMIT_MS)) {
        sm_discard_without_stream();
        return NULL;
    }
    struct sm_stream *s = free_list;
    if (s != NULL)
        free_list = s->next_free;
    else
        s = stream_new();
    if (s != NULL)
        n_attached++;
    sm_os_lock_release(&c->slots_lock);
    if (s == NULL) {
        sm_discard_without_stream();
        return NULL;
    }
    t->stream = s;
    t->epoch = sm_epoch;
    if (!sm_slots_ending(t))
        pthread_setspecific(key, s);
    return s;
}

void sm_slots_new_owner(struct sm_thread *t) {
    struct sm_control *c = control();
    /* A thread counts once, whichever of its streams comes first; its end has passed already when libc frees its memory. */
    uint32_t other = t->native ? sm_thread.generation : sm_native_thread.generation;
    bool counted = other == sm_session.generation || (t->native && t->ended != 0);
    if (!sm_os_lock_acquire(&c->slots_lock, LOCK_LIMIT_MS))
        return;
    sm_session.owners += !counted;
    if (n_attached > sm_session.peak_streams)
        sm_session.peak_streams = n_attached;
    sm_os_lock_release(&c->slots_lock);
}

uint32_t sm_slots_count(void) {
    return __atomic_load_n(&n_streams, __ATOMIC_ACQUIRE);
}

struct sm_stream *sm_slots_get(uint32_t id) {
    return __atomic_load_n(&table[id], __ATOMIC_ACQUIRE);
}

/* The lock keeps the side file's header mapped while it is written; a signal handler that interrupted its holder
   goes without, and the next one here brings the sum up to date. */
void sm_discard_without_stream(void) {
    struct sm_control *c = control();
    atomic_fetch_add_explicit(&c->discarded, 1, memory_order_relaxed);
    if (!sm_os_lock_acquire(&c->slots_lock, 100))
        return;
    sm_tail_counts(&sm_session);
    sm_os_lock_release(&c->slots_lock);
}
