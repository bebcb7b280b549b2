/* See native.h. Everything here runs inside of the program's malloc: no lock is taken that somebody waits for with the
   allocator's locks in hand, nothing is allocated, and errno is kept. */
#include "native/native.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/ln.h"
#include "base/os.h"
#include "record/native_code.h"
#include "record/recorder.h"
#include "unwind/unwind.h"

/* While nothing is recorded a thread looks again after so many bytes: a session may begin. */
#define IDLE_BYTES (1u << 20)

__thread struct sm_native_thread sm_native_thread_state __attribute__((tls_model("initial-exec")));
_Static_assert(sizeof(struct sm_native_thread) <= 32, "static TLS is scarce");

static struct sm_native_config config;
static _Atomic bool started; /* release in sm_native_start, acquire in sm_native_decide */
static _Atomic uint64_t threads_seeded; /* relaxed: it only numbers */
static uint64_t process_seed;

/* ---- gaps ---- */

/* splitmix64: a state of 8 bytes, and any seed will do. */
static uint64_t next_random(struct sm_native_thread *t) {
    uint64_t z = (t->random += 0x9E3779B97F4A7C15ull);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
}

static uint64_t draw_gap(struct sm_native_thread *t) {
    if (config.interval_bytes <= 1)
        return 0;
    /* Uniform in (0,1), never an end. */
    double u = ((double)(next_random(t) >> 12) + 0.5) * 0x1p-52;
    double gap = -sm_ln(u) * (double)config.interval_bytes;
    return gap < 0x1p62 ? 1 + (uint64_t)gap : (uint64_t)1 << 62;
}

static void seed(struct sm_native_thread *t) {
    uint64_t number = atomic_fetch_add_explicit(&threads_seeded, 1, memory_order_relaxed);
    t->random = process_seed + number * 0x632BE59BD9B4E019ull;
    next_random(t); /* neighbouring seeds part */
    t->random = next_random(t);
    t->seeded = 1;
}

static bool time_is_up(void) {
    struct timespec now;
    if (config.deadline_ns == 0)
        return false;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec >= config.deadline_ns;
}

__attribute__((noinline)) bool sm_native_decide(size_t n) {
    struct sm_native_thread *t = &sm_native_thread_state;
    uint32_t session = 0;
    if (atomic_load_explicit(&started, memory_order_acquire))
        session = sm_recorder_session();
    if (session == 0) {
        t->left = IDLE_BYTES;
        return false;
    }
    if (t->session != session) { /* the thread's first bytes in this session */
        t->session = session;
        if (!t->seeded)
            seed(t);
        t->left = draw_gap(t);
        if (n < t->left) {
            t->left -= n;
            return false;
        }
    }
    t->left = draw_gap(t);
    if (t->inside) { /* a signal handler's allocation, or one that libc makes for us */
        sm_recorder_native_lost(SM_DISCARD_REENTERED, 1);
        return false;
    }
    return true;
}

/* ---- births and deaths ---- */

/* A cancellation request must not take effect in here: malloc and free are no cancellation points, and their callers
   are not prepared to be unwound. */
struct hook {
    int saved_errno;
    int cancel_state;
    uint8_t inside; /* of the hook that a signal handler interrupted */
};

static inline void enter_hook(struct hook *h) {
    h->saved_errno = errno;
    h->inside = sm_native_thread_state.inside;
    sm_native_thread_state.inside = 1;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &h->cancel_state);
}

static inline void leave_hook(const struct hook *h) {
    int ignored;
    pthread_setcancelstate(h->cancel_state, &ignored);
    sm_native_thread_state.inside = h->inside;
    errno = h->saved_errno;
}

/* Where this library's own code ends and begins. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

static uint64_t record_birth(size_t n) {
    uint32_t max;
    uintptr_t *pcs = sm_recorder_native_begin(&max);
    if (pcs == NULL)
        return 0;
    struct sm_unwound unwound;
    uint32_t n_pcs = sm_unwind(pcs, max, 0, &unwound);
    uint32_t own = 0; /* our own functions are the innermost */
    while (own < n_pcs && sm_frame_address(pcs[own]) - (uintptr_t)__ehdr_start <
                              (uintptr_t)etext - (uintptr_t)__ehdr_start)
        own++;
    uint8_t origin = SM_ORIGIN_NORMAL;
    if (config.classify != NULL)
        origin = config.classify(pcs + own, n_pcs - own);
    for (uint32_t i = own; i < n_pcs; i++)
        pcs[i - own] = sm_native_element_of(sm_frame_address(pcs[i]), sm_frame_generation(pcs[i]));
    uint32_t cut_at = unwound.n_cut > 0 && unwound.cut_at > own ? unwound.cut_at - own : 0;
    return sm_recorder_native_end(n, SM_SOURCE(SM_HEAP_NATIVE, origin), n_pcs - own, cut_at);
}

__attribute__((noinline)) void sm_native_born(const void *p, size_t n) {
    struct hook h;
    enter_hook(&h);
    if (time_is_up()) {
        sm_recorder_stop(SM_REASON_STOPPED);
        leave_hook(&h);
        return;
    }
    /* A block whose end we did not see: freed past us, by a call that does not go through the dynamic linker. */
    uint64_t stale = sm_sampled_perhaps(p) ? sm_sampled_take(p) : 0;
    if (stale != 0)
        sm_recorder_native_collect(stale);
    struct sm_sampled_place *place = sm_sampled_reserve(p);
    uint64_t token = 0;
    if (place == NULL)
        sm_recorder_native_lost(SM_DISCARD_MEMORY, 1);
    else
        token = record_birth(n);
    if (token != 0)
        sm_sampled_put(place, p, token);
    else if (place != NULL)
        sm_sampled_cancel(place, p);
    leave_hook(&h);
}

__attribute__((noinline)) void sm_native_dies(const void *p) {
    uint64_t token = sm_sampled_take(p);
    if (token == 0)
        return;
    struct hook h;
    enter_hook(&h);
    sm_recorder_native_collect(token);
    leave_hook(&h);
}

void sm_native_replaced(struct sm_sampled_place *place, const void *p, uint64_t token) {
    struct hook h;
    enter_hook(&h);
    sm_sampled_cancel(place, p);
    sm_recorder_native_collect(token);
    leave_hook(&h);
}

/* ---- start ---- */

bool sm_native_start(const struct sm_native_config *c) {
    if (!sm_sampled_setup())
        return false;
    config = *c;
    if (c->has_seed)
        process_seed = c->seed;
    else
        sm_os_random(&process_seed, sizeof process_seed);
    sm_native_thread_state.left = 0; /* from this thread's next byte on */
    atomic_store_explicit(&started, true, memory_order_release);
    return true;
}

uint64_t sm_native_not_counted(void) {
    uint64_t left = sm_native_thread_state.left;
    sm_native_thread_state.left = UINT64_MAX; /* no allocation gets there */
    return left;
}

void sm_native_counted(uint64_t left) {
    sm_native_thread_state.left = left;
}

void sm_native_after_fork(void) {
    sm_native_thread_state.left = 0;
    sm_native_thread_state.inside = 0;
    if (!config
             .has_seed) /* else parent and child would draw the same numbers; with a seed they are meant to */
        sm_os_random(&process_seed, sizeof process_seed);
    sm_native_thread_state.seeded = 0;
}
