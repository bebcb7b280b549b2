/* The event path.

   Each thread writes into a stream of its own: a slot of the side file (or of anonymous memory), an encoder and
   a few counters. An event is a clock read, the encoding into the slot, and one store that says how
   many bytes of the slot are complete. Nothing else is shared while events flow:

     sm_control   one cache line that all threads read and nobody writes between start and stop
     sm_thread    the calling thread's static TLS (40 bytes): its stream; sm_native_thread: its native events'
     sm_stream    written by its owner alone; counters that others may look at are relaxed atomics

   **Stopping.** The only thing that another thread must know about a stream is whether its owner is
   inside of an event. That is Dekker's handshake:

     owner:    busy = 1;   fence;  if (active != my session) { busy = 0; go away }  ... event ...  busy = 0
     stopper:  active = 0; FENCE;  wait until every busy is 0; now all streams are the stopper's

   The owner's fence would cost more than the encoding of a small event, so it is only a compiler fence, and the
   stopper's is membarrier(2), which makes every running thread of the process execute a full one: either the
   owner's store to `busy` is visible after it, or its load of `active` comes after it and sees 0. Where
   membarrier is missing, and under ThreadSanitizer, both sides use sequentially consistent accesses.
   The release store busy = 0 hands the stream's contents over to the stopper's acquire load; at the next start,
   the release store of `active` hands the session's fields to the owners' acquire load.
   A wait has a limit: while an owner is stuck inside an event, its stream's memory and the file stay as they are, and
   the stop is completed later (session.c).

   **Death.** SIGKILL, a fatal signal or exec needs no handler here, and no handler is installed that could get into
   the program's way: slots are mapped shared from a file, so whatever was committed stays in the page cache,
   and readers take it from there. That is why every event ends with a store of `committed`, and why
   events are never kept anywhere else.

   **Re-entrance.** A signal handler may interrupt the event path and report an event itself. It finds `busy` set
   by its own thread, discards the event and counts it. (It must not touch the counters that the interrupted
   code may be in the middle of changing: hence `reentered`.)

   **Forks.** sm_control is a page that the kernel wipes in children, so any child, also one that did not come from
   fork(3), finds no session; slots and encoders are not even mapped there. See fork.c.

   **Trouble.** A stream that cannot write its packet (disk full) stays as it is: what it holds can still be
   read from the side file. It is marked as blocked and counts further events as discarded.

   Whatever is not on the plain path of an event (no packet open, a new owner, discards to be noted, blocked)
   sets a bit of `attention`, so that the plain path has one test for all of them. */
#include "record/internal.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"

__thread struct sm_thread sm_thread __attribute__((tls_model("initial-exec")));
__thread struct sm_thread sm_native_thread
    __attribute__((tls_model("initial-exec"))) = {.native = 1};
_Static_assert(sizeof(struct sm_thread) < 64, "static TLS is scarce for libraries loaded late");

#if defined(__SANITIZE_THREAD__)
#define ALWAYS_SYMMETRIC true
#else
#define ALWAYS_SYMMETRIC false
#endif

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* ---- discards ---- */

void sm_stream_discard(struct sm_stream *s, enum sm_discard_reason reason, uint32_t n) {
    if (s->slot == NULL) { /* never got one: there will be no packet that could say so */
        while (n-- > 0)
            sm_discard_without_stream();
        return;
    }
    s->discards[reason] += n;
    s->attention |= SM_ATTENTION_DISCARD;
    uint64_t all = atomic_load_explicit(&s->discarded, memory_order_relaxed) + n;
    atomic_store_explicit(&s->discarded, all, memory_order_relaxed);
    __atomic_store_n((uint64_t *)(void *)(s->slot + SM_TAIL_SLOT_DISCARDED), all, __ATOMIC_RELAXED);
}

void sm_stream_take_over_reentered(struct sm_stream *s) {
    uint32_t n = atomic_exchange_explicit(&s->reentered, 0, memory_order_relaxed);
    if (n > 0)
        sm_stream_discard(s, SM_DISCARD_REENTERED, n);
}

/* ---- entering and leaving ---- */

void sm_stream_leave(struct sm_stream *s) {
    /* release: pairs with the stopper's acquire in session.c */
    atomic_store_explicit(&s->busy, 0, memory_order_release);
}

static void stream_open(struct sm_stream *s, uint32_t generation) {
    struct sm_session *session = &sm_session;
    s->generation = generation;
    sm_clock_begin(&s->clock, session->tick_ns, session->plain_clock);
    s->token_base = (uint64_t)((generation - 1) % 255 + 1) << 54 | (uint64_t)s->id << 36;
    s->next_seq = 0;
    s->packet_seq = s->syms_seq = 0;
    s->n_events = 0;
    s->packet_ticks = 0;
    s->incarnation = UINT32_MAX;
    s->attention = SM_ATTENTION_CLOSED;
    memset(s->discards, 0, sizeof s->discards);
    atomic_store_explicit(&s->discarded, 0, memory_order_relaxed);
    atomic_store_explicit(&s->reentered, 0, memory_order_relaxed);

    uint64_t seed = session->config.seed + s->id * 0x632BE59BD9B4E019ull;
    if (!session->config.has_seed)
        sm_os_random(&seed, sizeof seed);
    sm_prng_seed(&s->prng, seed);

    if (!sm_tail_slot_open(session, s)) {
        s->attention |= SM_ATTENTION_BLOCKED;
        s->blocked_reason = session->tail_fd >= 0 ? SM_DISCARD_DEVICE : SM_DISCARD_MEMORY;
        return;
    }
    sm_syms_encoder_begin(&s->syms, s->slot + SM_TAIL_SYMS_OFFSET, SM_TAIL_SYMS_BYTES);
    sm_tail_slot_header(s, SM_PACKET_SYMS, 0);
}

/* The OWNER record of the calling thread. */
static void stream_owned(struct sm_stream *s, bool native, const char *name, size_t name_bytes) {
    const struct sm_recorder_config *config = &sm_session.config;
    uint64_t (*domain)(void) = native ? config->native_domain : config->current_domain;
    bool ocaml = config->current_domain != NULL && !native;
    s->domain = domain != NULL ? domain() : 0;
    struct {
        uint32_t tag;
        uint64_t value;
    } fields[] = {
        {SM_OWNER_DOMAIN, s->domain},
        {SM_OWNER_TID, sm_os_tid()},
        {SM_OWNER_KIND, ocaml ? SM_OWNER_OCAML : SM_OWNER_NATIVE},
        {SM_OWNER_INCARNATION, s->incarnation},
    };
    uint8_t *p = s->owner;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        uint8_t value[SM_LEB_MAX_BYTES];
        size_t bytes = (size_t)(sm_put_leb(value, fields[i].value) - value);
        *p++ = (uint8_t)fields[i].tag;
        *p++ = (uint8_t)bytes;
        memcpy(p, value, bytes);
        p += bytes;
    }
    size_t room = sizeof s->owner - (size_t)(p - s->owner) - 2;
    if (name_bytes > room)
        name_bytes = room;
    if (name_bytes > 0) {
        *p++ = SM_OWNER_NAME;
        *p++ = (uint8_t)name_bytes;
        memcpy(p, name, name_bytes);
        p += name_bytes;
    }
    s->owner_bytes = (uint32_t)(p - s->owner);
    s->attention |= SM_ATTENTION_OWNER;
}

/* First event of the thread, or of the session in this thread. */
__attribute__((noinline, cold)) static struct sm_stream *enter_slow(struct sm_control *c,
                                                                    struct sm_thread *t) {
    if (t->entering) {
        sm_discard_without_stream();
        return NULL;
    }
    int saved_errno = errno;
    t->entering = 1;
    atomic_signal_fence(memory_order_seq_cst);

    struct sm_stream *s = t->epoch == sm_epoch ? t->stream : NULL;
    if (s == NULL)
        s = sm_slots_attach(t);
    if (s != NULL) {
        atomic_store_explicit(&s->busy, 1, memory_order_seq_cst);
        uint32_t active = atomic_load_explicit(&c->active, memory_order_seq_cst);
        if (active == 0) {
            sm_stream_leave(s);
            s = NULL;
        } else {
            if (s->generation != active)
                stream_open(s, active);
            t->generation = active;
            s->incarnation++;
            sm_slots_new_owner(t);
            char name[16];
            sm_os_thread_name(name);
            stream_owned(s, t->native, name, strnlen(name, sizeof name));
        }
    }
    atomic_signal_fence(memory_order_seq_cst);
    t->entering = 0;
    errno = saved_errno;
    return s;
}

static inline struct sm_stream *enter(struct sm_thread *t) {
    /* acquire: the page is set up before its address is published */
    struct sm_control *c = atomic_load_explicit(&sm_control, memory_order_acquire);
    if (unlikely(c == NULL))
        return NULL;
    /* acquire: pairs with the release in session.c's start */
    uint32_t active = atomic_load_explicit(&c->active, memory_order_acquire);
    if (active == 0)
        return NULL;
    if (unlikely(t->generation != active))
        return enter_slow(c, t);
    struct sm_stream *s = t->stream;
    if (unlikely(atomic_load_explicit(&s->busy, memory_order_relaxed) != 0)) {
        atomic_fetch_add_explicit(&s->reentered, 1, memory_order_relaxed);
        return NULL;
    }
    /* The handshake of the essay above; pairs with stop's exchange of `active`. */
    if (ALWAYS_SYMMETRIC || unlikely(c->symmetric)) {
        atomic_store_explicit(&s->busy, 1, memory_order_seq_cst);
        active = atomic_load_explicit(&c->active, memory_order_seq_cst);
    } else {
        atomic_store_explicit(&s->busy, 1, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
        active = atomic_load_explicit(&c->active, memory_order_acquire);
    }
    if (unlikely(active != t->generation)) {
        sm_stream_leave(s);
        return NULL;
    }
    return s;
}

bool sm_recorder_busy(void) {
    const struct sm_thread *t = &sm_thread;
    return t->epoch == sm_epoch && t->stream != NULL &&
           atomic_load_explicit(&t->stream->busy, memory_order_relaxed) != 0; /* our own store */
}

struct sm_stream *sm_stream_enter(struct sm_thread *t) {
    return enter(t);
}

/* ---- events ---- */

static inline void commit(struct sm_stream *s) {
    sm_tail_commit_events(s, sm_event_encoder_used(s->encoder));
}

static void open_packet(struct sm_stream *s, uint64_t now_ticks) {
    if (now_ticks < s->packet_ticks)
        now_ticks = s->packet_ticks;
    sm_event_encoder_begin(s->encoder, s->slot + SM_TAIL_EVENTS_OFFSET, s->events_capacity,
                           s->next_seq, now_ticks, sm_session.depth_limit);
    sm_event_encoder_on_new_location(
        s->encoder, sm_session.config.symbolize != NULL ? sm_stream_new_location : NULL, s);
    sm_tail_slot_header(s, SM_PACKET_EVENTS, now_ticks);
    s->attention &= ~(uint32_t)SM_ATTENTION_CLOSED;
    s->attention |= SM_ATTENTION_OWNER;
}

static void put_discards(struct sm_stream *s, uint64_t now_ticks) {
    uint8_t payload[SM_DISCARD_REASONS * 2 * SM_LEB_MAX_BYTES];
    uint8_t *p = payload;
    for (uint32_t reason = 1; reason < SM_DISCARD_REASONS; reason++) {
        if (s->discards[reason] != 0) {
            p = sm_put_leb(p, reason);
            p = sm_put_leb(p, s->discards[reason]);
        }
    }
    if (sm_event_encode_extension(s->encoder, now_ticks, SM_OP_DISCARD, payload,
                                  (size_t)(p - payload))) {
        memset(s->discards, 0, sizeof s->discards);
        s->attention &= ~(uint32_t)SM_ATTENTION_DISCARD;
    }
}

/* Does what `attention` asks for; afterwards a packet is open. False: blocked (the caller counts its event). */
__attribute__((noinline, cold)) bool sm_stream_prepare(struct sm_stream *s, uint64_t now_ticks) {
    if (s->attention & SM_ATTENTION_BLOCKED)
        return false;
    if (s->attention & SM_ATTENTION_CLOSED) {
        if (s->next_seq > SM_MAX_SEQ - SM_MAX_RAW_BYTES) {
            s->attention |= SM_ATTENTION_BLOCKED;
            s->blocked_reason = SM_DISCARD_STREAMS;
            return false;
        }
        sm_stream_take_over_reentered(s);
        open_packet(s, now_ticks);
    }
    if (s->attention & SM_ATTENTION_OWNER) {
        if (sm_event_encode_extension(s->encoder, now_ticks, SM_OP_OWNER, s->owner, s->owner_bytes))
            s->attention &= ~(uint32_t)SM_ATTENTION_OWNER;
    }
    if (s->attention & SM_ATTENTION_DISCARD)
        put_discards(s, now_ticks);
    commit(s);
    return true;
}

/* An event did not fit: the packet is closed, the next one opened. False: it cannot be. */
__attribute__((noinline, cold)) static bool next_packet(struct sm_stream *s, uint64_t now_ticks) {
    return !(s->attention & SM_ATTENTION_BLOCKED) && sm_stream_flush(s) &&
           sm_stream_prepare(s, now_ticks);
}

/* A stack that an ordinary slot may not hold: makes all of the slot usable. */
__attribute__((noinline, cold)) static bool make_room(struct sm_stream *s, uint64_t now_ticks) {
    int saved_errno = errno;
    bool done = sm_tail_slot_extend(&sm_session, s) && next_packet(s, now_ticks);
    errno = saved_errno;
    return done;
}

__attribute__((noinline, cold)) static uint64_t drop(struct sm_stream *s,
                                                     enum sm_discard_reason reason) {
    sm_stream_discard(s, s->attention & SM_ATTENTION_BLOCKED ? s->blocked_reason : reason, 1);
    sm_stream_leave(s);
    return 0;
}

static inline void finish(struct sm_stream *s) {
    commit(s);
    if (unlikely(sm_event_encoder_full(s->encoder, SM_TARGET_RAW_BYTES)))
        sm_stream_flush(s);
    if (unlikely(atomic_load_explicit(&s->reentered, memory_order_relaxed) != 0))
        sm_stream_take_over_reentered(s);
    sm_stream_leave(s);
}

static inline uint64_t alloc_in(struct sm_stream *s, uint64_t size, bool in_bytes,
                                uint64_t n_samples, uint8_t source,
                                const struct sm_raw_stack *stack) {
    uint64_t now = sm_clock_ticks(&s->clock);
    if (unlikely(s->attention != 0) && !sm_stream_prepare(s, now))
        return drop(s, SM_DISCARD_MEMORY);
    if (unlikely(stack->n_frames > s->safe_frames) && !make_room(s, now))
        return drop(s, SM_DISCARD_DEVICE);
    uint64_t seq;
    if (unlikely(!sm_event_encode_alloc(s->encoder, now, size, in_bytes, n_samples, source, stack,
                                        &seq))) {
        if (!next_packet(s, now) ||
            !sm_event_encode_alloc(s->encoder, now, size, in_bytes, n_samples, source, stack, &seq))
            return drop(s, SM_DISCARD_MEMORY);
    }
    uint64_t token = s->token_base | seq;
    finish(s);
    return token;
}

static inline uint64_t record_alloc(uint64_t size, bool in_bytes, uint64_t n_samples,
                                    uint8_t source, const struct sm_raw_stack *stack) {
    struct sm_stream *s = enter(&sm_thread);
    return s != NULL ? alloc_in(s, size, in_bytes, n_samples, source, stack) : 0;
}

uint64_t sm_recorder_alloc(uint64_t size_words, uint64_t n_samples, uint8_t source,
                           const struct sm_raw_stack *stack) {
    return record_alloc(size_words, false, n_samples, source, stack);
}

uint64_t sm_recorder_alloc_bytes(uint64_t size_bytes, uint64_t n_samples, uint8_t source,
                                 const struct sm_raw_stack *stack) {
    return record_alloc(size_bytes, true, n_samples, source, stack);
}

static inline void record_ref(struct sm_thread *t, uint64_t token, enum sm_op op) {
    if (token == 0)
        return;
    struct sm_stream *s = enter(t);
    if (s == NULL)
        return;
    if (unlikely(token >> 54 != s->token_base >> 54)) { /* of an earlier session */
        sm_stream_leave(s);
        return;
    }
    bool own = token >> 36 == s->token_base >> 36;
    uint32_t stream = (uint32_t)(token >> 36) & (SM_MAX_STREAMS - 1);
    uint64_t seq = token & (SM_MAX_SEQ - 1);
    uint64_t now = sm_clock_ticks(&s->clock);
    if (unlikely(s->attention != 0) && !sm_stream_prepare(s, now)) {
        drop(s, SM_DISCARD_MEMORY);
        return;
    }
    if (unlikely(!sm_event_encode_ref(s->encoder, now, op, own, stream, seq))) {
        if (!next_packet(s, now) || !sm_event_encode_ref(s->encoder, now, op, own, stream, seq)) {
            drop(s, SM_DISCARD_MEMORY);
            return;
        }
    }
    finish(s);
}

void sm_recorder_promote(uint64_t token) {
    record_ref(&sm_thread, token, SM_OP_PROMOTE);
}

void sm_recorder_collect(uint64_t token) {
    record_ref(&sm_thread, token, SM_OP_COLLECT);
}

/* ---- native events ---- */

/* After an event of a thread whose end has passed for good: nobody else gives its stream back. */
static inline void give_back(void) {
    if (unlikely(sm_native_thread.ended != 0) && sm_slots_ending(&sm_native_thread) &&
        sm_native_thread.stream != NULL)
        sm_slots_detach(&sm_native_thread);
}

/* A thread can enter an OCaml domain, or leave it. */
__attribute__((noinline, cold)) static void in_another_domain(struct sm_stream *s) {
    char name[16];
    int saved_errno = errno;
    sm_os_thread_name(name);
    stream_owned(s, true, name, strnlen(name, sizeof name));
    errno = saved_errno;
}

uintptr_t *sm_recorder_native_begin(uint32_t *max_frames) {
    struct sm_stream *s = enter(&sm_native_thread);
    if (s == NULL)
        return NULL;
    uint64_t (*domain)(void) = sm_session.config.native_domain;
    if (domain != NULL && unlikely(domain() != s->domain))
        in_another_domain(s);
    *max_frames =
        sm_session.depth_limit < SM_NATIVE_FRAMES ? sm_session.depth_limit : SM_NATIVE_FRAMES;
    return s->native_frames;
}

uint64_t sm_recorder_native_end(uint64_t size_bytes, uint8_t source, uint32_t n_frames,
                                uint32_t cut_at) {
    struct sm_stream *s = sm_native_thread.stream;
    struct sm_raw_stack stack = {
        .innermost_first = s->native_frames, .n_frames = n_frames, .cut_at = cut_at};
    uint64_t token = alloc_in(s, size_bytes, true, 1, source, &stack);
    give_back();
    return token;
}

void sm_recorder_native_collect(uint64_t token) {
    record_ref(&sm_native_thread, token, SM_OP_COLLECT);
    give_back();
}

void sm_recorder_native_lost(enum sm_discard_reason reason, uint32_t n) {
    struct sm_stream *s = enter(&sm_native_thread);
    if (s != NULL) {
        sm_stream_discard(s, reason, n);
        sm_stream_leave(s);
    }
    give_back();
}

static void record_extension(struct sm_thread *t, enum sm_op op, const void *payload,
                             size_t bytes) {
    struct sm_stream *s = enter(t);
    if (s == NULL)
        return;
    uint64_t now = sm_clock_ticks(&s->clock);
    if (s->attention != 0 && !sm_stream_prepare(s, now)) {
        drop(s, SM_DISCARD_MEMORY);
        return;
    }
    if (!sm_event_encode_extension(s->encoder, now, op, payload, bytes) &&
        !(next_packet(s, now) && sm_event_encode_extension(s->encoder, now, op, payload, bytes))) {
        drop(s, SM_DISCARD_MEMORY);
        return;
    }
    finish(s);
}

static void record_mark(struct sm_thread *t, const char *text, size_t bytes) {
    record_extension(t, SM_OP_MARK, text,
                     bytes < SM_MAX_EXTENSION_BYTES ? bytes : SM_MAX_EXTENSION_BYTES);
}

void sm_recorder_mark(const char *text, size_t bytes) {
    record_mark(&sm_thread, text, bytes);
}

void sm_recorder_process_mark(const char *text, size_t bytes) {
    record_mark(&sm_native_thread, text, bytes);
}

void sm_recorder_thread_name(const char *name, size_t bytes) {
    struct sm_stream *s = enter(&sm_thread);
    if (s == NULL)
        return;
    stream_owned(s, false, name, bytes);
    if (!sm_stream_prepare(s, sm_clock_ticks(&s->clock))) {
        drop(s, SM_DISCARD_MEMORY);
        return;
    }
    finish(s);
}

static void record_counters(struct sm_thread *t, const struct sm_counter_value *values,
                            uint32_t n) {
    uint8_t payload[32 * 2 * SM_LEB_MAX_BYTES];
    uint8_t *p = payload;
    for (uint32_t i = 0; i < n && i < 32; i++) {
        p = sm_put_leb(p, values[i].counter);
        p = sm_put_zz(p, values[i].value);
    }
    record_extension(t, SM_OP_COUNTERS, payload, (size_t)(p - payload));
}

void sm_recorder_counters(const struct sm_counter_value *values, uint32_t n) {
    record_counters(&sm_thread, values, n);
}

void sm_recorder_process_counters(const struct sm_counter_value *values, uint32_t n) {
    record_counters(&sm_native_thread, values, n);
}

void sm_recorder_gc_pause(enum sm_gc_pause kind, uint64_t ns) {
    uint8_t payload[1 + 2 * SM_LEB_MAX_BYTES] = {SM_GC_PHASE_PAUSE};
    uint8_t *p = sm_put_leb(sm_put_leb(payload + 1, kind), ns);
    record_extension(&sm_thread, SM_OP_GC_PHASE, payload, (size_t)(p - payload));
}
