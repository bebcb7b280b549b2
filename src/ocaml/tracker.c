/* What a callback may do is little: it runs inside an allocation of the program, on 5.x on the domain's
   C stack, and its caller trusts it not to move the heap. So it reads fields of the values it
   got, calls the recorder, and answers with an immediate or with a block outside the heap.

   The answer `Some token` lives in thread-local memory with a black header. The runtime reads field 0
   as soon as the callback returns, on the same thread and without releasing its lock, and forgets the
   block; so one block for each thread is enough, and no collector ever sees it in the heap. */
#include "ocaml/tracker.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "record/recorder.h"

/* Gc.Memprof.allocation */
enum { INFO_N_SAMPLES = 0, INFO_SIZE = 1, INFO_SOURCE = 2, INFO_CALLSTACK = 3 };

/* Gc.Memprof.allocation_source in order of declaration. In 4.11 the field is a bool, "unmarshalled": the
   same numbers for the two cases it knows. */
static const uint8_t origins[] = {SM_ORIGIN_NORMAL, SM_ORIGIN_MARSHAL, SM_ORIGIN_CUSTOM,
                                  SM_ORIGIN_MAPPED};

static const struct sm_ocaml_runtime *runtime;
static uint32_t callstack_limit;
static uint64_t deadline_ns;

/* 1 once the deadline has ended the profile. Set by the one thread that does it (exchange, acq_rel: its own
   partner), read relaxed as a hint elsewhere. */
static atomic_int ended;

static __thread struct {
    uintptr_t header;
    sm_value field;
} some __attribute__((aligned(16), tls_model("initial-exec")));

static sm_value some_token(uint64_t token) {
    some.header = SM_BLACK_HEADER(1, 0);
    some.field = SM_VAL_LONG(token);
    return (sm_value)&some.field;
}

uint32_t sm_tracker_callstack_size(uint32_t depth_limit) {
    uint64_t n = (uint64_t)depth_limit * 8;
    return n < SM_MAX_DEPTH ? (uint32_t)n : SM_MAX_DEPTH;
}

void sm_tracker_configure(const struct sm_ocaml_runtime *rt, uint32_t callstack_size,
                          uint64_t deadline) {
    runtime = rt;
    callstack_limit = callstack_size;
    deadline_ns = deadline;
    atomic_store_explicit(&ended, 0, memory_order_relaxed); /* no callback runs yet */
}

/* True when the time is up. The coarse clock (4 ms) costs a fifth of the exact one. Only an allocation's
   callback may end the profile: the others can run on a domain that has another one. */
static bool time_is_up(void) {
    if (atomic_load_explicit(&ended, memory_order_relaxed))
        return true;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec < deadline_ns)
        return false;
    if (atomic_exchange_explicit(&ended, 1, memory_order_acq_rel) == 0) {
        sm_recorder_stop(SM_REASON_STOPPED);
        /* Allowed in a callback; raises only when no profile runs, and this one does. */
        if (runtime->memprof_stop != NULL)
            runtime->memprof_stop(SM_VAL_UNIT);
    }
    return true;
}

bool sm_tracker_ended(void) {
    return atomic_load_explicit(&ended, memory_order_relaxed);
}

static sm_value on_alloc(sm_value info, enum sm_heap heap) {
    int saved_errno = errno;
    sm_value answer = SM_VAL_NONE;
    if (deadline_ns == 0 || !time_is_up()) {
        sm_value callstack = SM_FIELD(info, INFO_CALLSTACK);
        uintptr_t source = (uintptr_t)SM_LONG_VAL(SM_FIELD(info, INFO_SOURCE));
        uint8_t origin = source < sizeof origins ? origins[source] : SM_ORIGIN_NORMAL;
        uintptr_t n_frames = sm_block_words(callstack);
        if (n_frames > UINT32_MAX)
            n_frames = UINT32_MAX;
        struct sm_raw_stack stack = {
            .innermost_first = (const uintptr_t *)callstack,
            .n_frames = (uint32_t)n_frames,
            .cut_outermost = n_frames >= callstack_limit && callstack_limit != 0,
        };
        uint64_t token = sm_recorder_alloc((uint64_t)SM_LONG_VAL(SM_FIELD(info, INFO_SIZE)),
                                           (uint64_t)SM_LONG_VAL(SM_FIELD(info, INFO_N_SAMPLES)),
                                           SM_SOURCE(heap, origin), &stack);
        if (token != 0)
            answer = some_token(token);
    }
    errno = saved_errno;
    return answer;
}

sm_value sm_tracker_alloc_minor(sm_value info) {
    return on_alloc(info, SM_HEAP_MINOR);
}

sm_value sm_tracker_alloc_major(sm_value info) {
    return on_alloc(info, SM_HEAP_MAJOR);
}

sm_value sm_tracker_promote(sm_value token) {
    uint64_t t = (uint64_t)SM_LONG_VAL(token);
    sm_recorder_promote(t);
    return some_token(t); /* keep it: its death is still to come */
}

sm_value sm_tracker_dealloc_minor(sm_value token) {
    sm_recorder_collect((uint64_t)SM_LONG_VAL(token));
    return SM_VAL_UNIT;
}

sm_value sm_tracker_dealloc_major(sm_value token) {
    sm_recorder_collect((uint64_t)SM_LONG_VAL(token));
    return SM_VAL_UNIT;
}

uint64_t sm_tracker_current_domain(void) {
    return runtime->domain_id != NULL ? (uint64_t)SM_LONG_VAL(runtime->domain_id(SM_VAL_UNIT)) : 0;
}

uint64_t sm_tracker_domain_if_any(void) {
    if (runtime == NULL || runtime->domain_id == NULL || !sm_ocaml_thread_has_domain(runtime))
        return 0;
    return (uint64_t)SM_LONG_VAL(runtime->domain_id(SM_VAL_UNIT));
}
