/* Native allocations: which are sampled, and what is recorded of them. Hook-safe. The functions that stand in front of the
   allocator's are in interpose.c.

   **Sampling.** Bytes are sampled as by a Poisson process: the gap from one sampled byte to the next has an exponential
   distribution with mean R (rounded up: a geometric one in whole bytes). A thread counts down to the next sampled
   byte; the block that holds it is recorded. A block of S bytes is thus recorded with probability
   1 - exp(-S/R), independently of all others, and stands for S / (1 - exp(-S/R)) bytes. The first gap of a thread is
   drawn before its first byte counts, so that no byte is more likely than another. R = 1 means every allocation,
   blocks of 0 bytes included.

   **Life of a block.** Recorded blocks are in the table of sampled.h from the moment the program gets them to the moment
   before the allocator gets them back. A realloc that succeeds ends the old block and makes a new one, which is sampled
   anew with its new size; one that fails leaves the old one as it was. Allocations that fail are not recorded.

   Synchronisation: the countdown and its generator belong to the thread. What all threads read is written at start and
   stop only (relaxed: the recorder's session, read with acquire order, guards it). */
#ifndef SM_NATIVE_NATIVE_H
#define SM_NATIVE_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/sampled.h"

/* What kind of memory a stack (frames of unwind/unwind.h, innermost first) allocates: an enum sm_origin. */
typedef uint8_t sm_native_classify_fn(const uintptr_t *pcs, size_t n);

struct sm_native_config {
    uint64_t interval_bytes; /* mean distance of samples; 1 = every allocation */
    bool has_seed;
    uint64_t seed;
    uint64_t deadline_ns;            /* CLOCK_MONOTONIC: the session is stopped then; 0 = never */
    sm_native_classify_fn *classify; /* NULL = all is the program's */
};

/* Native allocations become events of the recorder's sessions from now on: of the active one, and of those that
   begin later. False = no memory. Call while no other thread does. */
bool sm_native_start(const struct sm_native_config *config);

/* What the calling thread allocates is not the program's from now on, until sm_native_counted with what the first call
   gave. */
uint64_t sm_native_not_counted(void);
void sm_native_counted(uint64_t left);

/* In a forked child that begins a session of its own. */
void sm_native_after_fork(void);

/* ---- for interpose.c ---- */

/* 32 bytes of static TLS. */
struct sm_native_thread {
    uint64_t
        left; /* bytes to the next sampled one; 0 in a new thread: the first call looks closer */
    uint64_t random;
    uint32_t session; /* for which `left` was drawn */
    uint8_t inside;   /* in a hook */
    uint8_t seeded;
};
extern __thread struct sm_native_thread sm_native_thread_state
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Counts n bytes; true when the sampled one may be among them: then sm_native_decide has to be asked. */
static inline bool sm_native_count(size_t n) {
    uint64_t left = sm_native_thread_state.left;
    if (__builtin_expect(n >= left, 0))
        return true;
    sm_native_thread_state.left = left - n;
    return false;
}

/* True: the allocation of n bytes is sampled; if it succeeds, sm_native_born has to follow. */
bool sm_native_decide(size_t n);
/* Keeps errno. */
void sm_native_born(const void *p, size_t n);

/* Before a block goes back to the allocator, when sm_sampled_perhaps(p). Keeps errno. */
void sm_native_dies(const void *p);
/* After a realloc that moved or resized a block whose place was held. Keeps errno. */
void sm_native_replaced(struct sm_sampled_place *place, const void *p, uint64_t token);

#endif
