/* See service.h.

   The thread waits in a futex on `state` for the interval's length; who wants it to end stores STOPPING there and wakes it.
   The C library counts it as a thread of the program: when the program's last thread ends without exit() (its first
   one by pthread_exit), ours is the last, leaves at its next turn, and the C library calls exit() as it would have. */
#include "service/service.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/os.h"
#include "native/native.h"
#include "service/figures.h"

enum { NONE, RUNNING, STOPPING, ENDED };
enum {
    TURN_NS = 100000000
}; /* a request waits so long at most, and the end of a process of which nothing is left */
enum { LIMIT_MS = 200, STACK_BYTES = 256 << 10 };

/* release when the thread is to see what was written before, or has ended; acquire where that is read. */
static _Atomic uint32_t state;
static uint64_t interval;
static const struct sm_control_actions *actions;
static struct sm_figures figures; /* the thread's; the stopper's when it has ended */
static pthread_t thread;
/* The thread stores its number, and waits until the starter, who opens that thread's file, has put 0 back (release: the
   file's descriptor is seen then). */
static _Atomic uint32_t service_tid;
static __thread bool is_service __attribute__((tls_model("initial-exec")));
static struct sm_os_lock pausing; /* several threads may pause at once */

bool sm_service_is_here(void) {
    return is_service;
}

static void write_figures(void) {
    struct sm_counter_value values[SM_FIGURES_MAX];
    uint32_t n = sm_figures_read(&figures, sm_os_monotonic_ns(), values);
    for (uint32_t i = 0; i < n; i++)
        if (values[i].counter == SM_COUNTER_THREADS && is_service)
            values[i].value--;
    if (n < SM_FIGURES_MAX)
        values[n++] = (struct sm_counter_value){SM_COUNTER_INTERVAL_NS, (int64_t)interval};
    sm_recorder_process_counters(values, n);
}

static void wait_for(uint64_t ns) {
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    syscall(SYS_futex, &state, FUTEX_WAIT_PRIVATE, RUNNING, &t, NULL, 0);
}

static void *serve(void *unused) {
    prctl(PR_SET_NAME, "statmem");
    is_service = true;
    sm_native_not_counted(); /* for good */
    atomic_store_explicit(&service_tid, sm_os_tid(), memory_order_release);
    while (atomic_load_explicit(&service_tid, memory_order_acquire) != 0)
        sm_os_sleep_us(20); /* the starter holds no lock */
    uint64_t next = sm_os_monotonic_ns() + interval, check = 0;
    while (atomic_load_explicit(&state, memory_order_acquire) == RUNNING) {
        uint64_t now = sm_os_monotonic_ns();
        sm_control_serve();
        if (now >= check) { /* a file to read: once in a turn, however short the interval is */
            if (sm_figures_left_alone(&figures))
                break;
            check = now + TURN_NS;
        }
        if (now < next) {
            wait_for(next - now < TURN_NS ? next - now : TURN_NS);
            continue;
        }
        write_figures();
        next += interval;
        if (next < now) /* held up: no figures are made up for */
            next = now + interval;
    }
    atomic_store_explicit(&state, ENDED, memory_order_release);
    return unused;
}

static bool begin_thread(void) {
    sigset_t all, before;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread inherits it */
    atomic_store_explicit(&service_tid, 0, memory_order_relaxed);
    atomic_store_explicit(&state, RUNNING, memory_order_release);
    bool begun = pthread_create(&thread, &attributes, serve, NULL) == 0;
    if (!begun)
        atomic_store_explicit(&state, NONE, memory_order_relaxed);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return begun;
}

/* What the C library allocates for the thread, and for looking names up, is not the program's. */
static bool begin(bool anew) {
    uint64_t left = sm_native_not_counted();
    if (anew) {
        sm_control_open(actions);
        sm_figures_open(&figures);
        write_figures(); /* however soon the program ends */
    }
    bool begun = begin_thread();
    uint32_t tid;
    while (begun && (tid = atomic_load_explicit(&service_tid, memory_order_acquire)) == 0)
        sm_os_sleep_us(20);
    if (begun) {
        sm_figures_own(&figures, tid);
        atomic_store_explicit(&service_tid, 0, memory_order_release);
    }
    if (!begun) /* nobody will answer */
        sm_control_close();
    sm_native_counted(left);
    return begun;
}

/* True: the thread is no more. */
static bool end_thread(void) {
    uint32_t running = RUNNING;
    if (atomic_compare_exchange_strong_explicit(&state, &running, STOPPING, memory_order_acq_rel,
                                                memory_order_acquire))
        syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    else if (running == NONE)
        return true;
    if (is_service) /* it has ended the program itself */
        return true;
    for (uint32_t waited_us = 0; waited_us < LIMIT_MS * 1000; waited_us += 100) {
        if (pthread_tryjoin_np(thread, NULL) == 0) {
            atomic_store_explicit(&state, NONE, memory_order_relaxed);
            return true;
        }
        sm_os_sleep_us(100);
    }
    return false;
}

bool sm_service_start(uint64_t interval_ns, const struct sm_control_actions *a) {
    int saved_errno = errno;
    actions = a;
    interval = interval_ns;
    bool begun = begin(true);
    errno = saved_errno;
    return begun;
}

void sm_service_stop(void) {
    int saved_errno = errno;
    if (interval != 0 && end_thread()) {
        figures.malloc_due_ns = figures.pss_due_ns = 0; /* all of them, at last */
        write_figures();
        sm_control_close();
    }
    interval = 0;
    errno = saved_errno;
}

void sm_service_pause(void) {
    int saved_errno = errno;
    if (interval != 0 && sm_os_lock_acquire(&pausing, LIMIT_MS)) {
        end_thread();
        errno = saved_errno;
        return; /* the lock is kept until sm_service_resume */
    }
    errno = saved_errno;
}

void sm_service_resume(void) {
    int saved_errno = errno;
    if (interval != 0 && pausing.owner_tid == sm_os_tid()) {
        if (atomic_load_explicit(&state, memory_order_acquire) == NONE)
            begin(false);
        sm_os_lock_release(&pausing);
    }
    errno = saved_errno;
}

void sm_service_after_fork(void) {
    int saved_errno = errno;
    pausing.owner_tid = 0;
    atomic_store_explicit(&state, NONE, memory_order_relaxed); /* the child's only thread is here */
    if (interval != 0) {
        sm_figures_close(&figures);
        sm_control_close();
        begin(true);
    }
    errno = saved_errno;
}
