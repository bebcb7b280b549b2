/* The preload library: starts a recording in an unmodified OCaml program.

   Decision (constructor, before main): is this process asked for, and can it be recorded? Then the library only
   waits. Native code: OCaml's start asks for the name of the executable, readlink("/proc/self/exe"),
   after it has made its heap and before it runs OCaml code; the caller holds the runtime lock. Bytecode: it
   closes the file of the program when code and data are loaded. We interpose these calls, and at
   that moment open the trace and begin the profile. On OCaml 5 all domains spawned later inherit it.

   The end: exit() runs our destructor after OCaml's own at_exit functions. A program that ends in another way
   (a signal, _exit, exec) leaves what was recorded in the file and its side file.

   Synchronisation: everything here is written before the program has a second thread; `armed` is
   then cleared for good. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "inject/request.h"
#include "inject/yield.h"
#include "ocaml/closures.h"
#include "ocaml/locations.h"
#include "ocaml/runtime.h"
#include "ocaml/tracker.h"
#include "record/recorder.h"

#define EXPORTED __attribute__((visibility("default")))

static struct sm_request request;
static struct sm_ocaml_runtime runtime;
static pid_t recording_pid; /* 0 = none */
static bool runtime_frees_itself;

/* Relaxed throughout: see the head of the file. */
static atomic_bool armed;

static ssize_t (*next_readlink)(const char *, char *, size_t);
static ssize_t (*next_readlink_chk)(const char *, char *, size_t, size_t);
static int (*next_close)(int);

static const char *executable(char *buf, size_t bytes) {
    long n = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", buf, bytes - 1);
    buf[n > 0 ? n : 0] = 0;
    return buf;
}

/* The trace's name with "%p" replaced, as the recorder does it. */
static const char *expanded(const char *path, char *out, size_t bytes) {
    size_t n = 0;
    for (const char *s = path; *s != 0 && n + 21 < bytes; s++) {
        if (s[0] == '%' && s[1] == 'p') {
            char digits[20];
            size_t i = sizeof digits;
            for (unsigned long pid = (unsigned long)getpid(); pid != 0; pid /= 10)
                digits[--i] = (char)('0' + pid % 10);
            memcpy(out + n, digits + i, sizeof digits - i);
            n += sizeof digits - i;
            s++;
        } else {
            out[n++] = *s;
            s += s[0] == '%' && s[1] == '%';
        }
    }
    out[n] = 0;
    return out;
}

static void answer_started(void) {
    char path[4096 + 64];
    sm_answer(&request, SM_ANSWER_STARTED, expanded(request.out, path, sizeof path));
}

static void after_fork_in_child(void) {
    recording_pid = getpid();
    answer_started();
}

/* OCAMLRUNPARAM=c: the runtime frees all its memory at exit, before we are called. */
static bool has_cleanup_option(const char *params) {
    for (const char *s = params; s != NULL; s = strchr(s, ',')) {
        s += *s == ',';
        if (*s == 'c')
            return true;
    }
    return false;
}

static void end_recording(enum sm_end_reason reason) {
    /* On OCaml 5 the runtime's state is per thread; exit() may be called by a thread without one. */
    void *const *state = runtime.major == 5 ? dlsym(RTLD_DEFAULT, "caml_state") : NULL;
    bool has_state = runtime.major == 4 || (state != NULL && *state != NULL);
    if (has_state && !(reason == SM_REASON_EXIT && runtime_frees_itself))
        sm_tracker_final_counters();
    sm_recorder_stop(reason);
}

static void yield_to_program(void) {
    end_recording(SM_REASON_STOPPED);
    recording_pid = 0;
    sm_answer(&request, SM_ANSWER_YIELDED, "the program started Gc.Memprof itself");
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void start(void) {
    char err[512] = "";
    const char *params = getenv("OCAMLRUNPARAM");
    if (params == NULL)
        params = getenv("CAMLRUNPARAM");
    runtime_frees_itself = has_cleanup_option(params);
    if (!sm_yield_possible(&runtime) && !request.force) {
        sm_answer(
            &request, SM_ANSWER_REFUSED,
            "its code cannot be changed in memory here, so that it would fail if it used "
            "Gc.Memprof itself: if it does not, record it with STATMEM_FORCE=1 in the environment");
        return;
    }
    sm_request_chain(&request);
    struct sm_recorder_config config = {
        .path = request.out,
        .fd = -1,
        .sample_rate = request.rate,
        .rate_origin = request.rate_origin,
        .depth_limit = request.depth,
        .has_seed = request.has_seed,
        .seed = request.seed,
        .follow_children = request.follow,
        .mode = SM_MODE_INJECTED,
        .ocaml_kind = runtime.kind,
        .ocaml_version = runtime.version,
        .runtime_params = params != NULL ? params : "",
        .symbolize = sm_ocaml_symbolize,
        .current_domain = sm_tracker_current_domain,
        .after_fork_in_child = after_fork_in_child,
    };
    uint32_t callstack_size = sm_tracker_callstack_size(request.depth != 0 ? request.depth : 1024);
    sm_ocaml_locations_init(&runtime);
    sm_tracker_configure(&runtime, callstack_size,
                         request.duration_ns != 0 ? now_ns() + request.duration_ns : 0);
    if (sm_recorder_start(&config, err, sizeof err) != 0) {
        sm_answer(&request, SM_ANSWER_FAILED, err);
        return;
    }
    recording_pid = getpid();
    sm_ocaml_start_profile(&runtime, request.rate, callstack_size);
    sm_yield_install(&runtime, yield_to_program);
    answer_started();
}

static void start_if_ready(void) {
    int saved_errno = errno;
    if (sm_ocaml_ready(&runtime)) {
        atomic_store_explicit(&armed, false, memory_order_relaxed);
        start();
    }
    errno = saved_errno;
}

static inline bool waiting_for(enum sm_ocaml_kind kind) {
    return __builtin_expect(atomic_load_explicit(&armed, memory_order_relaxed), 0) &&
           runtime.kind == kind;
}

/* ---- interposed functions ---- */

EXPORTED ssize_t readlink(const char *path, char *buf, size_t len) {
    if (waiting_for(SM_OCAML_NATIVE) && strcmp(path, "/proc/self/exe") == 0)
        start_if_ready();
    if (next_readlink != NULL)
        return next_readlink(path, buf, len);
    return syscall(SYS_readlinkat, AT_FDCWD, path, buf, len); /* before our constructor */
}

/* What readlink is in programs built with _FORTIFY_SOURCE. */
EXPORTED ssize_t __readlink_chk(const char *path, char *buf, size_t bytes, size_t room);
EXPORTED ssize_t __readlink_chk(const char *path, char *buf, size_t bytes, size_t room) {
    if (waiting_for(SM_OCAML_NATIVE) && strcmp(path, "/proc/self/exe") == 0)
        start_if_ready();
    if (next_readlink_chk != NULL)
        return next_readlink_chk(path, buf, bytes, room);
    return syscall(SYS_readlinkat, AT_FDCWD, path, buf, bytes < room ? bytes : room);
}

EXPORTED int close(int fd) {
    if (waiting_for(SM_OCAML_BYTECODE))
        start_if_ready();
    if (next_close != NULL)
        return next_close(fd);
    return (int)syscall(SYS_close, fd);
}

/* ---- begin and end of the process ---- */

static void find_next(const char *name, void *function_pointer) {
    void *p = dlsym(RTLD_NEXT, name);
    memcpy(function_pointer, &p, sizeof p);
}

__attribute__((constructor)) static void decide(void) {
    int saved_errno = errno;
    char path[4096];
    find_next("readlink", &next_readlink);
    find_next("__readlink_chk", &next_readlink_chk);
    find_next("close", &next_close);
    if (sm_request_read(&request)) {
        bool asked =
            request.follow || request.target_pid == 0 || request.target_pid == (uint32_t)getpid();
        enum sm_ocaml_refusal refusal = sm_ocaml_runtime_resolve(&runtime);
        if (refusal == SM_OCAML_NOT_OCAML) {
            /* It may become an OCaml program by exec: the request stays. */
            if (asked)
                sm_answer(&request, SM_ANSWER_NONE, executable(path, sizeof path));
            else
                sm_request_remove();
        } else {
            if (!asked)
                sm_answer(&request, SM_ANSWER_CHILD, executable(path, sizeof path));
            else if (refusal != SM_OCAML_TRACEABLE)
                sm_answer(&request, SM_ANSWER_REFUSED, sm_ocaml_refusal_text(refusal));
            else {
                sm_answer(&request, SM_ANSWER_ARMED, executable(path, sizeof path));
                atomic_store_explicit(&armed, true, memory_order_relaxed);
            }
            if (!request.follow)
                sm_request_remove();
        }
    }
    errno = saved_errno;
}

__attribute__((destructor)) static void finish(void) {
    /* A forked child that isn't followed has a copy of this memory, but no recording. */
    if (recording_pid != 0 && recording_pid == getpid())
        end_recording(SM_REASON_EXIT);
    else if (atomic_load_explicit(&armed, memory_order_relaxed))
        sm_answer(&request, SM_ANSWER_REFUSED,
                  sm_ocaml_embedded(&runtime) ? sm_ocaml_refusal_text(SM_OCAML_EMBEDDED)
                                              : "it ended before any of its OCaml code ran");
}
