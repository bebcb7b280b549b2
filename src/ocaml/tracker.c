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

/* ---- the runtime's own counters ---- */

static bool is_count(double x) {
    return x >= 0 && x < 9e15 && x == (double)(int64_t)x;
}

/* OCaml 4 keeps its counters in the record that Caml_state points to, at a place that differs between
   versions: three doubles (minor, promoted, major words), then integers (minor and major
   collections, heap size, top heap size, compactions). The first is known from a function, but for
   the words of the minor heap in use now; that, and what must hold between the six, finds the
   place. Nothing is reported unless exactly one place fits. */
static uint32_t counters_4(struct sm_counter_value *out) {
    double minor = runtime->minor_words();
    const char *state = *runtime->state_4;
    enum { FIRST = 16, LAST = 60, ROW = 8 };
    const char *found = NULL;
    for (int i = FIRST; i < LAST; i++) {
        double d[3];
        int64_t n[5];
        memcpy(d, state + i * ROW, sizeof d);
        memcpy(n, state + (i + 3) * ROW, sizeof n);
        if (!(d[0] > 0) || !is_count(d[0]) || d[0] > minor || minor - d[0] > 1 << 28 ||
            !is_count(d[1]) || d[1] > d[0] || !is_count(d[2]) || d[2] < d[1] || n[0] <= 0 ||
            n[0] > (int64_t)1 << 40 || n[1] < 0 || n[1] > n[0] || n[2] <= 0 || n[3] < n[2] ||
            n[3] > (int64_t)1 << 48 || n[4] < 0 || n[4] > n[1])
            continue;
        if (found != NULL)
            return 0;
        found = state + i * ROW;
    }
    if (found == NULL)
        return 0;
    double d[3];
    int64_t n[5];
    memcpy(d, found, sizeof d);
    memcpy(n, found + 3 * ROW, sizeof n);
    out[0] = (struct sm_counter_value){SM_COUNTER_PROMOTED_WORDS, (int64_t)d[1]};
    out[1] = (struct sm_counter_value){SM_COUNTER_MAJOR_WORDS, (int64_t)d[2]};
    out[2] = (struct sm_counter_value){SM_COUNTER_MINOR_COLLECTIONS, n[0]};
    out[3] = (struct sm_counter_value){SM_COUNTER_MAJOR_COLLECTIONS, n[1]};
    out[4] = (struct sm_counter_value){SM_COUNTER_HEAP_WORDS, n[2]};
    out[5] = (struct sm_counter_value){SM_COUNTER_COMPACTIONS, n[4]};
    return 6;
}

void sm_tracker_final_counters(void) {
    int saved_errno = errno;
    struct sm_counter_value values[8];
    uint32_t n = 0;
    if (runtime == NULL)
        return;
    if (runtime->major == 4 && runtime->minor_words != NULL && runtime->state_4 != NULL &&
        *runtime->state_4 != NULL) {
        values[n++] =
            (struct sm_counter_value){SM_COUNTER_MINOR_WORDS, (int64_t)runtime->minor_words()};
        n += counters_4(values + n);
    }
    if (runtime->major == 5 && runtime->compute_gc_stats != NULL) {
        /* struct gc_stats begins with minor, promoted and major words; the rest, sizes of heaps, differs. */
        uint64_t stats[64] = {0};
        runtime->compute_gc_stats(stats);
        values[n++] = (struct sm_counter_value){SM_COUNTER_MINOR_WORDS, (int64_t)stats[0]};
        values[n++] = (struct sm_counter_value){SM_COUNTER_PROMOTED_WORDS, (int64_t)stats[1]};
        values[n++] = (struct sm_counter_value){SM_COUNTER_MAJOR_WORDS, (int64_t)stats[2]};
        if (runtime->minor_collections != NULL)
            values[n++] = (struct sm_counter_value){SM_COUNTER_MINOR_COLLECTIONS,
                                                    (int64_t)*runtime->minor_collections};
        if (runtime->major_cycles != NULL)
            values[n++] = (struct sm_counter_value){SM_COUNTER_MAJOR_COLLECTIONS,
                                                    (int64_t)*runtime->major_cycles};
    }
    if (n > 0)
        sm_recorder_final_counters(values, n);
    errno = saved_errno;
}
