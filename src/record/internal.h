/* What the files of the recorder share. The design stands at the top of stream.c. */
#ifndef SM_RECORD_INTERNAL_H
#define SM_RECORD_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/os.h"
#include "base/prng.h"
#include "encode/event_encoder.h"
#include "encode/syms_encoder.h"
#include "format/wire.h"
#include "record/clock.h"
#include "record/descriptors.h"
#include "record/recorder.h"

/* ---- control: the page that decides whether anything happens ----
   Mapped so that a forked child, however it was forked, finds it zeroed: no session, free locks. */
struct sm_control {
    /* Read by every event, written at start and stop only. */
    _Atomic uint32_t active; /* generation of the session, 0 = none */
    _Atomic uint32_t
        alive; /* 1 once set up in this process; release/acquire: the tables of slots.c stand */
    bool symmetric; /* no sm_os_barrier_all: both sides use full fences */
    char pad0[64 - 12];

    /* Rare. */
    struct sm_os_lock session_lock; /* start, stop */
    struct sm_os_lock slots_lock;   /* table, free list, counts of streams */
    struct sm_os_lock output_lock;  /* writes to an output that needs them one by one */
    char pad1[64 - 12];

    _Atomic uint64_t discarded; /* events of the session for which no stream exists */
};

/* ---- a stream: one slot and its writer ---- */

enum sm_attention {
    SM_ATTENTION_CLOSED = 1,  /* no packet is open */
    SM_ATTENTION_OWNER = 2,   /* OWNER has to be written */
    SM_ATTENTION_DISCARD = 4, /* so has DISCARD */
    SM_ATTENTION_BLOCKED = 8, /* nothing can be written any more in this session */
};

struct sm_stream {
    /* Owner thread; the stopper waits until it is 0. Pairs with sm_control.active. */
    _Atomic uint32_t busy;
    uint32_t attention; /* enum sm_attention */
    struct sm_event_encoder *encoder;
    uint8_t *slot; /* SM_TAIL_SLOT_BYTES, laid out as docs/format.md section 8; NULL = none */
    uint64_t token_base;
    struct sm_stream_clock clock;
    uint32_t safe_frames; /* a stack of so many frames fits into an empty packet */

    /* Of the session. */
    uint32_t generation; /* the session it was opened in */
    uint32_t id;
    size_t events_capacity; /* bytes at SM_TAIL_EVENTS_OFFSET that may be touched */
    uint64_t next_seq;      /* seq of the first allocation of the next packet */
    uint32_t packet_seq;
    uint32_t syms_seq;
    uint64_t n_events;     /* in packets that were appended */
    uint64_t packet_ticks; /* not before this: time of the last event of the packet before */
    enum sm_discard_reason blocked_reason;

    uint32_t discards[SM_DISCARD_REASONS]; /* not yet in a DISCARD record */
    _Atomic uint64_t discarded;            /* all */
    _Atomic uint32_t reentered;            /* written inside of signal handlers; taken over later */

    uint8_t owner[96]; /* payload of OWNER */
    uint32_t owner_bytes;
    uint32_t incarnation;

    struct sm_prng prng;
    struct sm_stream *next_free;
    uint64_t domain;          /* native streams: as written in OWNER last */
    uintptr_t *native_frames; /* SM_NATIVE_FRAMES of scratch, behind the encoder */
    struct sm_syms_encoder syms;
};

/* ---- the calling thread ---- */
struct sm_thread {
    struct sm_stream *stream;
    uint32_t generation; /* session for which `stream` is ready; 0 = look closer */
    uint32_t epoch;      /* process (fork) for which `stream` is valid */
    uint64_t sample_left;
    uint32_t sample_generation;
    uint8_t ended;    /* how often the thread's end has passed here */
    uint8_t entering; /* inside the slow part of entering */
    uint8_t native;   /* constant: this is sm_native_thread */
};
extern __thread struct sm_thread sm_thread;
/* The same for the thread's native events: a second stream. */
extern __thread struct sm_thread sm_native_thread;

/* Frames of a native stack. */
#define SM_NATIVE_FRAMES 4096u

/* ---- the session ---- */

struct sm_index {
    uint8_t *buf; /* payload of the INDEX packet, mapped */
    size_t used;
    size_t capacity;
    uint64_t end_of_last;
    uint64_t previous_ts;
    bool lost; /* no memory: no INDEX */
};

struct sm_session {
    struct sm_recorder_config config; /* strings point into `strings` */
    char strings[12288];
    char path[4096]; /* expanded; "" when recording to a descriptor */
    char tail_path[4096 + 8];
    uint32_t parent_pid;

    int fd;                             /* use sm_output_fd */
    struct sm_file_id file_id, tail_id; /* what fd and tail_fd were when they were opened */
    bool
        serial; /* writes go one by one, and offsets are counted here: anything but our own regular file */
    bool guard;   /* writes may raise signals */
    bool started; /* META has been written */
    uint64_t offset;
    struct sm_index index; /* kept while recording when serial, else built at the end */

    int tail_fd; /* -1 = slots in anonymous memory */
    uint8_t *tail;

    uint32_t generation;
    uint64_t id; /* "session" of the format */
    uint32_t pid;
    uint32_t tick_ns;
    bool plain_clock; /* every event asks the system for the time */
    uint32_t depth_limit;
    double rate;
    double log1p_rate; /* ln(1 - rate) */

    _Atomic uint32_t failed; /* errno value of the first failed write */
    _Atomic bool told;       /* the user has been told; once, though the stopper tries again */
    _Atomic uint32_t forks;
    uint32_t owners;       /* slots_lock */
    uint32_t peak_streams; /* slots_lock */

    struct sm_counter_value final_counters[16];
    uint32_t n_final_counters;
};
extern struct sm_session sm_session;
extern struct sm_control *_Atomic sm_control;

/* Number of this process' incarnation; grows when a forked child starts over. */
extern uint32_t sm_epoch;

/* ---- stream.c ---- */
struct sm_stream *sm_stream_enter(struct sm_thread *t);
void sm_stream_leave(struct sm_stream *s);
bool sm_stream_prepare(struct sm_stream *s, uint64_t now_ticks);
void sm_stream_discard(struct sm_stream *s, enum sm_discard_reason reason, uint32_t n);
void sm_stream_take_over_reentered(struct sm_stream *s);

/* ---- slots.c: which stream belongs to whom ---- */
int sm_slots_setup(void);   /* once per process: the key that tells of a thread's end */
void sm_slots_forget(void); /* in a forked child */
void sm_slots_session_begins(void);
struct sm_stream *sm_slots_attach(struct sm_thread *t);
void sm_slots_detach(struct sm_thread *t);
bool sm_slots_ending(const struct sm_thread *t); /* nobody will detach this thread any more */
void sm_slots_new_owner(struct sm_thread *t);    /* counts */
uint32_t sm_slots_count(void);
struct sm_stream *sm_slots_get(uint32_t id);
void sm_discard_without_stream(void);

/* ---- tail.c ---- */
int sm_tail_begin(struct sm_session *session); /* 0 or -errno */
void sm_tail_state(struct sm_session *session, uint32_t state, uint64_t end_ticks);
void sm_tail_counts(struct sm_session *session); /* slots_lock held, or nobody about */
void sm_tail_end(struct sm_session *session, bool keep);
bool sm_tail_slot_open(struct sm_session *session, struct sm_stream *s);
bool sm_tail_slot_extend(struct sm_session *session, struct sm_stream *s);
void sm_tail_slot_close(struct sm_stream *s);
void sm_tail_slot_header(struct sm_stream *s, enum sm_packet_kind kind, uint64_t ts_begin_ticks);

static inline void sm_tail_commit_events(struct sm_stream *s, size_t bytes) {
    /* release: pairs with the reader of the side file, another process. */
    __atomic_store_n((uint64_t *)(void *)(s->slot + SM_TAIL_SLOT_EVENTS_COMMITTED), bytes,
                     __ATOMIC_RELEASE);
}
static inline void sm_tail_commit_syms(struct sm_stream *s, size_t bytes) {
    __atomic_store_n((uint64_t *)(void *)(s->slot + SM_TAIL_SLOT_SYMS_COMMITTED), bytes,
                     __ATOMIC_RELEASE);
}

/* ---- output.c: packets into the file ---- */
int sm_output_open(struct sm_session *session, const char *path, int fd, char *err,
                   size_t err_bytes);
bool sm_output_append(struct sm_session *session, const struct iovec *parts, int n);
bool sm_output_packet(struct sm_session *session, struct sm_packet_header *h, const void *payload,
                      size_t bytes);
void sm_output_repair(
    struct sm_session *session); /* stopped, after a failure: cuts a torn end off */
void sm_output_end(struct sm_session *session, enum sm_end_reason reason, uint64_t end_ticks);
void sm_output_close(struct sm_session *session);
void sm_recorder_error(char *err, size_t err_bytes, const char *what, const char *why);

/* ---- flush.c ---- */
bool sm_stream_flush(
    struct sm_stream *s); /* false = it stays in the slot, and the stream is blocked */
void sm_stream_new_location(void *ctx, uint64_t code);

/* ---- codes.c: codes whose names stand in the trace or are about to ---- */
bool sm_codes_begin(void);
bool sm_codes_first_sight(uint64_t code);
void sm_codes_forget(void); /* in a forked child */

/* ---- meta.c ---- */
size_t sm_meta_build(struct sm_session *session, uint8_t *buf, size_t capacity,
                     uint64_t *start_ticks);

/* ---- sampler.c ---- */
double sm_log1p_negative(double x); /* ln(1 - x), exact for small x */

/* ---- fork.c ---- */
void sm_fork_setup(void);

/* ---- session.c ---- */
int sm_session_start_locked(const struct sm_recorder_config *config, uint32_t parent_pid, char *err,
                            size_t err_bytes);
void sm_session_after_fork(void);
struct sm_control *sm_control_setup(void);

#endif
