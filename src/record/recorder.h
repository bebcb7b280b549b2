/* The recorder: events in, one trace file out. Hook-safe: callable inside a garbage collector's
   callback or an allocator; needs libc's system-call wrappers and pthread only; takes memory from
   the operating system alone.

   One session at a time and per process. Any thread may report events at any time; the first
   event of a thread gives it a stream (a slot that an ended thread left, or a new one). On the
   event path there is no lock, no atomic read-modify-write, no system call and no cache line
   written by two threads; a system call happens when a packet is full (one write), when a thread's
   first event arrives, and nowhere else.

   When something goes wrong on the event path, the event is discarded and counted, and the count
   reaches the trace. errno is preserved by every function here. */
#ifndef SM_RECORD_RECORDER_H
#define SM_RECORD_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encode/event_encoder.h"
#include "encode/syms_encoder.h"
#include "format/wire.h"

/* What a location code stands for, outermost inlined caller first. Strings stay valid until the
   next call on the same thread. Returns the number of locations stored (at most `max`); 0 = unknown.
   Hook-safe, called on the thread and inside the event that saw `code` first. */
typedef uint32_t sm_symbolize_fn(uint64_t code, struct sm_source_location *locations, uint32_t max);

struct sm_recorder_config {
    const char *path; /* "%p" becomes the pid, "%%" a percent sign. Opened 0600, locked
                               (advisory), then truncated */
    int fd;           /* used instead of path when >= 0 (pipe, socket, file) */
    double
        sample_rate; /* (0,1]; 0 = OCaml's memory is not sampled (native_interval_bytes is given then) */
    /* Mean distance of samples in the memory that the process takes from malloc, in bytes; 1 = every
       allocation; 0 = native memory is not recorded. */
    uint64_t native_interval_bytes;
    enum sm_rate_origin rate_origin;
    uint32_t tick_ns;     /* 0 = 1000 */
    uint32_t depth_limit; /* 0 = 1024 */
    bool has_seed;        /* else drawn from the system */
    uint64_t seed;
    bool follow_children; /* a forked child begins a trace of its own; needs %p in path (else
                               ".%p" is appended for children) */
    enum sm_mode mode;
    enum sm_ocaml_kind ocaml_kind;
    const char *executable; /* NULL = /proc/self/exe */
    const char *ocaml_version;
    const char *runtime_params;
    const char *context; /* NULL = none */
    bool hide_args;      /* leave the command line out of the header */
    sm_symbolize_fn *symbolize;
    /* Unique id of the OCaml domain of the calling thread; NULL = always 0. Called at a thread's
       first event. */
    uint64_t (*current_domain)(void);
    /* The same for any thread at any time, before OCaml's start too: 0 when it is in no domain. Called at the start
       and for each sampled native allocation. NULL = always 0. */
    uint64_t (*native_domain)(void);
    /* Called in a forked child after its own session began (follow_children), else NULL. */
    void (*after_fork_in_child)(void);
};

/* Begins a session. Returns 0, or -1 with one line in err (untouched on success): a session is
   active already, the file cannot be opened or locked, no memory. Strings are copied. */
int sm_recorder_start(const struct sm_recorder_config *config, char *err, size_t err_bytes);

/* Ends the session from any thread: no event is accepted any more, those being written are waited
   for, all packets are appended, INDEX and END written, the side file removed. Idempotent. */
void sm_recorder_stop(enum sm_end_reason reason);

bool sm_recorder_active(void);

/* The calling thread is inside an OCaml event: what it reported now would be discarded. */
bool sm_recorder_busy(void);

/* Sampling rate of the active session; 0 when there is none. */
double sm_recorder_sample_rate(void);

/* Changes at each start; 0 before the first. */
uint32_t sm_recorder_generation(void);

/* ---- events ----
   A token names a recorded object: non-zero, below 2^62, valid for the session that made it. 0 means "not
   recorded"; all functions accept it and tokens of earlier sessions, and do nothing then. */

uint64_t sm_recorder_alloc(uint64_t size_words, uint64_t n_samples, uint8_t source,
                           const struct sm_raw_stack *stack);
uint64_t sm_recorder_alloc_bytes(uint64_t size_bytes, uint64_t n_samples, uint8_t source,
                                 const struct sm_raw_stack *stack);
void sm_recorder_promote(uint64_t token);
void sm_recorder_collect(uint64_t token);

/* ---- native allocations: those that a program makes by malloc and the like ----
   They go through a stream of their own in each thread, so that a call from inside of an OCaml event is no re-entry, and
   native stacks stand beside native ones.

   An allocation is recorded in two steps, with the capture of its stack in between; the stream is held
   meanwhile, and what a signal handler reports then is discarded and counted. sm_recorder_native_begin gives
   room for *max_frames return addresses, innermost first; NULL = nothing is recorded, and
   sm_recorder_native_end must not be called. The elements are those of record/native_code.h, or
   location slots of OCaml's runtime. */
uintptr_t *sm_recorder_native_begin(uint32_t *max_frames);
uint64_t sm_recorder_native_end(uint64_t size_bytes, uint8_t source, uint32_t n_frames,
                                uint32_t cut_at); /* as in struct sm_raw_stack */
void sm_recorder_native_collect(uint64_t token);
/* `n` native events could not be recorded for a reason of the caller's. */
void sm_recorder_native_lost(enum sm_discard_reason reason, uint32_t n);

/* The active session's generation, 0 = none: a cheap question. */
uint32_t sm_recorder_session(void);

/* A note in the trace at this time, and the name of the calling thread. */
void sm_recorder_mark(const char *text, size_t bytes);
void sm_recorder_thread_name(const char *name, size_t bytes);

/* The runtime's own figures, (counter, value) pairs, written at once as COUNTERS and, at the end,
   in END. */
struct sm_counter_value {
    enum sm_counter counter;
    int64_t value;
};
void sm_recorder_counters(const struct sm_counter_value *values, uint32_t n);
/* A pause for a collection, which ends now; on the thread that paused. */
void sm_recorder_gc_pause(enum sm_gc_pause kind, uint64_t ns);
/* The same as sm_recorder_counters and _mark, from a thread that need not be in an OCaml domain. */
void sm_recorder_process_counters(const struct sm_counter_value *values, uint32_t n);
void sm_recorder_process_mark(const char *text, size_t bytes);
void sm_recorder_final_counters(const struct sm_counter_value *values, uint32_t n);

/* ---- sampler for memory that OCaml does not sample (external, later malloc) ----
   Number of samples that fall on `size` units when each unit is sampled with the session's rate
   (geometric gaps, generator of the calling thread's stream). 0 nearly always, in a few ns. */
uint64_t sm_recorder_sample(uint64_t size);

/* Events discarded so far, all streams. */
uint64_t sm_recorder_discarded(void);

#endif
