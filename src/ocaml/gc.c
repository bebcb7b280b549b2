/* See gc.h. OCaml 4 runs all collections under its lock; on OCaml 5 each domain runs the hooks for itself, several at
   once. What a domain measures between two hooks is its thread's own; the sums are shared, and are touched once in a
   collection. */
#include "ocaml/gc.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/os.h"
#include "record/recorder.h"

static const struct sm_ocaml_runtime *runtime;
static uint64_t interval;

/* Relaxed throughout: figures, beside which nothing is published. */
static _Atomic uint64_t pause_total_ns, pause_longest_ns, n_pauses;
static _Atomic uint64_t due_ns; /* whoever moves it on (compare and exchange) writes the counters */

static __thread struct {
    uint64_t began_ns;
    uint32_t depth; /* a slice can run a minor collection: the outermost pause counts */
} pause __attribute__((tls_model("initial-exec")));

static void (*next_minor_begin)(void), (*next_minor_end)(void);
static void (*next_slice_begin)(void), (*next_slice_end)(void);

/* ---- the runtime's figures ---- */

static uint32_t put(struct sm_counter_value *out, enum sm_counter counter, int64_t value) {
    *out = (struct sm_counter_value){counter, value};
    return 1;
}

static bool is_count(double x) {
    return x >= 0 && x < 9e15 && x == (double)(int64_t)x;
}

enum { FIRST_PLACE = 16, LAST_PLACE = 60, ROW = 8 };

/* Gc.full_major makes three major cycles with one minor collection. */
static bool fits_4(const char *place, double minor) {
    double d[3];
    int64_t n[5];
    memcpy(d, place, sizeof d);
    memcpy(n, place + 3 * ROW, sizeof n);
    return d[0] > 0 && is_count(d[0]) && d[0] <= minor && minor - d[0] <= 1 << 28 &&
           is_count(d[1]) && d[1] <= d[0] && is_count(d[2]) && d[2] >= d[1] && n[0] > 0 &&
           n[0] <= (int64_t)1 << 40 && n[1] >= 0 && n[1] <= 3 * n[0] + 2 && n[2] > 0 &&
           n[3] >= n[2] && n[3] <= (int64_t)1 << 48 && n[4] >= 0 && n[4] <= n[1];
}

/* OCaml 4 keeps its counters in the record that Caml_state points to, at a place that differs between
   versions: three doubles (minor, promoted, major words), then integers (minor and major
   collections, heap size, top heap size, compactions). The first is known from a function, but for
   the words of the minor heap in use now; that, and what must hold between the six, finds the
   place. Nothing is reported unless exactly one place fits. */
static uint32_t counters_4(struct sm_counter_value *out) {
    double minor = runtime->minor_words();
    const char *state = *runtime->state_4, *found = NULL;
    for (int i = FIRST_PLACE; i < LAST_PLACE; i++) {
        if (fits_4(state + i * ROW, minor)) {
            if (found != NULL)
                return 0;
            found = state + i * ROW;
        }
    }
    if (found == NULL)
        return 0;
    double d[3];
    int64_t words[5];
    memcpy(d, found, sizeof d);
    memcpy(words, found + 3 * ROW, sizeof words);
    uint32_t n = put(out, SM_COUNTER_PROMOTED_WORDS, (int64_t)d[1]);
    n += put(out + n, SM_COUNTER_MAJOR_WORDS, (int64_t)d[2]);
    n += put(out + n, SM_COUNTER_MINOR_COLLECTIONS, words[0]);
    n += put(out + n, SM_COUNTER_MAJOR_COLLECTIONS, words[1]);
    n += put(out + n, SM_COUNTER_HEAP_WORDS, words[2]);
    n += put(out + n, SM_COUNTER_COMPACTIONS, words[4]);
    /* The major heap's chunks come from malloc. */
    n += put(out + n, SM_COUNTER_HEAP_IN_MALLOC, words[2] * 8);
    return n;
}

/* The head of the runtime's struct gc_stats. */
enum { STAT_MINOR, STAT_PROMOTED, STAT_MAJOR, STAT_POOL_WORDS = 4, STAT_LARGE_WORDS = 9 };

static uint32_t counters_5(struct sm_counter_value *out) {
    uint64_t stats[64] = {0};
    runtime->compute_gc_stats(stats);
    uint32_t n = put(out, SM_COUNTER_MINOR_WORDS, (int64_t)stats[STAT_MINOR]);
    n += put(out + n, SM_COUNTER_PROMOTED_WORDS, (int64_t)stats[STAT_PROMOTED]);
    n += put(out + n, SM_COUNTER_MAJOR_WORDS, (int64_t)stats[STAT_MAJOR]);
    /* Another layout would show figures that are out of all bounds. */
    int64_t pool = (int64_t)stats[STAT_POOL_WORDS], large = (int64_t)stats[STAT_LARGE_WORDS];
    if (pool >= 0 && large >= 0 && pool < (int64_t)1 << 44 && large < (int64_t)1 << 44) {
        n += put(out + n, SM_COUNTER_HEAP_WORDS, pool + large);
        /* Large blocks come from malloc, pools from mmap. */
        n += put(out + n, SM_COUNTER_HEAP_IN_MALLOC, large * 8);
    }
    if (runtime->minor_collections != NULL)
        n += put(out + n, SM_COUNTER_MINOR_COLLECTIONS, (int64_t)*runtime->minor_collections);
    if (runtime->major_cycles != NULL)
        n += put(out + n, SM_COUNTER_MAJOR_COLLECTIONS, (int64_t)*runtime->major_cycles);
    return n;
}

static uint32_t runtime_counters(struct sm_counter_value *out) {
    uint32_t n = 0;
    if (runtime->major == 4 && runtime->minor_words != NULL && runtime->state_4 != NULL &&
        *runtime->state_4 != NULL) {
        n += put(out, SM_COUNTER_MINOR_WORDS, (int64_t)runtime->minor_words());
        n += counters_4(out + n);
    }
    if (runtime->major == 5 && runtime->compute_gc_stats != NULL)
        n += counters_5(out);
    if (interval != 0) {
        n += put(out + n, SM_COUNTER_GC_PAUSES,
                 (int64_t)atomic_load_explicit(&n_pauses, memory_order_relaxed));
        n += put(out + n, SM_COUNTER_GC_PAUSE_NS,
                 (int64_t)atomic_load_explicit(&pause_total_ns, memory_order_relaxed));
        n += put(out + n, SM_COUNTER_GC_LONGEST_PAUSE_NS,
                 (int64_t)atomic_load_explicit(&pause_longest_ns, memory_order_relaxed));
    }
    return n;
}

enum { MOST_COUNTERS = 16 };

void sm_gc_final_counters(void) {
    struct sm_counter_value values[MOST_COUNTERS];
    if (runtime == NULL)
        return;
    int saved_errno = errno;
    uint32_t n = runtime_counters(values);
    if (n > 0)
        sm_recorder_final_counters(values, n);
    if (n > 0 && interval != 0) /* the last reading, too */
        sm_recorder_counters(values, n);
    errno = saved_errno;
}

/* ---- hooks ---- */

static void begin(void) {
    if (pause.depth++ == 0)
        pause.began_ns = sm_os_monotonic_ns();
}

static void write_if_due(uint64_t now) {
    uint64_t due = atomic_load_explicit(&due_ns, memory_order_relaxed);
    if (now < due || !sm_recorder_active() ||
        !atomic_compare_exchange_strong_explicit(&due_ns, &due, now + interval,
                                                 memory_order_relaxed, memory_order_relaxed))
        return;
    struct sm_counter_value values[MOST_COUNTERS];
    sm_recorder_counters(values, runtime_counters(values));
}

static void end(enum sm_gc_pause phase, bool may_write) {
    if (pause.depth == 0 || --pause.depth > 0)
        return;
    int saved_errno = errno;
    uint64_t now = sm_os_monotonic_ns(), ns = now - pause.began_ns;
    atomic_fetch_add_explicit(&n_pauses, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&pause_total_ns, ns, memory_order_relaxed);
    uint64_t longest = atomic_load_explicit(&pause_longest_ns, memory_order_relaxed);
    while (ns > longest &&
           !atomic_compare_exchange_weak_explicit(&pause_longest_ns, &longest, ns,
                                                  memory_order_relaxed, memory_order_relaxed))
        continue;
    /* Bytecode's debug information is read, and allocated, inside of an event: figures wait for the next pause. */
    bool busy = sm_recorder_busy();
    if (ns >= SM_GC_LONG_PAUSE_NS && !busy)
        sm_recorder_gc_pause(phase, ns);
    if (may_write && !busy)
        write_if_due(now);
    errno = saved_errno;
}

static void chain(void (*next)(void)) {
    if (next != NULL)
        next();
}

static void on_minor_begin(void) {
    chain(next_minor_begin);
    begin();
}

/* On OCaml 5 the other domains may be in the middle of adding up their figures here; a slice follows. */
static void on_minor_end(void) {
    end(SM_GC_PAUSE_MINOR, runtime->major == 4);
    chain(next_minor_end);
}

static void on_slice_begin(void) {
    chain(next_slice_begin);
    begin();
}

static void on_slice_end(void) {
    end(SM_GC_PAUSE_MAJOR_SLICE, true);
    chain(next_slice_end);
}

/* The runtime reads its hooks with relaxed order; a program that sets one later takes ours away, and loses nothing. */
static void set(void (*_Atomic *hook)(void), void (*ours)(void), void (**next)(void)) {
    if (hook == NULL)
        return;
    *next = atomic_load_explicit(hook, memory_order_relaxed);
    atomic_store_explicit(hook, ours, memory_order_relaxed);
}

void sm_gc_watch(const struct sm_ocaml_runtime *rt, uint64_t interval_ns) {
    if (runtime != NULL)
        return;
    runtime = rt;
    interval = interval_ns;
    if (interval_ns == 0)
        return;
    set(rt->minor_gc_begin_hook, on_minor_begin, &next_minor_begin);
    set(rt->minor_gc_end_hook, on_minor_end, &next_minor_end);
    set(rt->major_slice_begin_hook, on_slice_begin, &next_slice_begin);
    set(rt->major_slice_end_hook, on_slice_end, &next_slice_end);
}
