/* The preload library: starts a recording in an unmodified program.

   Decision (constructor, before main): is this process asked for, and what of it can be recorded?

   *Native memory*: the functions of native/interpose.c stand in front of the allocator's in any case; from the constructor on,
   when it is to be recorded, they tell the recorder. The trace is opened then.

   *OCaml's memory*: the library waits. Native code: OCaml's start asks for the name of the executable,
   readlink("/proc/self/exe"), after it has made its heap and before it runs OCaml code; the caller holds the runtime lock.
   Bytecode: it closes the file of the program when code and data are loaded. We interpose these calls, and at
   that moment open the trace, if it is not open yet, and begin the profile. On OCaml 5 all domains spawned later inherit
   it.

   The end: exit() runs our destructor after OCaml's own at_exit functions. A program that ends in another way
   (a signal, _exit, exec) leaves what was recorded in the file and its side file.

   Synchronisation: everything here is written before the program has a second thread; `armed` is
   then cleared for good. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "inject/launcher.h"
#include "inject/request.h"
#include "inject/yield.h"
#include "native/native.h"
#include "native/next.h"
#include "ocaml/closures.h"
#include "ocaml/gc.h"
#include "ocaml/locations.h"
#include "ocaml/native.h"
#include "ocaml/origins.h"
#include "ocaml/runtime.h"
#include "ocaml/tracker.h"
#include "record/recorder.h"
#include "service/service.h"
#include "unwind/modules.h"

#define EXPORTED __attribute__((visibility("default")))

static struct sm_request request;
static struct sm_ocaml_runtime runtime;
static pid_t recording_pid; /* 0 = none */
static bool runtime_frees_itself;
static uint64_t deadline_ns; /* 0 = none */

/* Relaxed throughout: see the head of the file. */
static atomic_bool armed;

static ssize_t (*next_readlink)(const char *, char *, size_t);
static ssize_t (*next_readlink_chk)(const char *, char *, size_t, size_t);
static int (*next_close)(int);
static int (*next_dlclose)(void *);

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
    sm_native_after_fork();
    sm_service_after_fork();
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
        sm_gc_final_counters();
    sm_service_stop(); /* its last figures are to be seen beside OCaml's */
    sm_recorder_stop(reason);
}

static void yield_to_program(void) {
    if (request.native_interval_bytes == 0) {
        end_recording(SM_REASON_STOPPED);
        recording_pid = 0;
    }
    sm_answer(&request, SM_ANSWER_YIELDED, "the program started Gc.Memprof itself");
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- start ---- */

static const char *runtime_params(void) {
    const char *params = getenv("OCAMLRUNPARAM");
    if (params == NULL)
        params = getenv("CAMLRUNPARAM");
    return params != NULL ? params : "";
}

static struct sm_recorder_config recording;
static unsigned n_windows;

static bool begin_session(char *err, size_t bytes) {
    if (sm_recorder_start(&recording, err, bytes) != 0)
        return false;
    recording_pid = getpid();
    answer_started();
    n_windows++;
    return true;
}

static void append_trace(char *text, size_t bytes) {
    char path[4096 + 64];
    sm_control_append(text, bytes, expanded(request.out, path, sizeof path));
}

static bool on_status(char *text, size_t bytes) {
    if (n_windows == 0) {
        sm_control_append(text, bytes, "not recording yet");
        return true;
    }
    sm_control_append(text, bytes,
                      sm_recorder_active() ? "recording into " : "not recording; last: ");
    append_trace(text, bytes);
    uint64_t discarded = sm_recorder_discarded();
    if (discarded > 0) {
        sm_control_append(text, bytes, ", events discarded: ");
        sm_control_append_number(text, bytes, discarded);
    }
    return true;
}

/* OCaml's profile goes on without a session: its callbacks find none, and do nothing. */
static bool on_stop(char *text, size_t bytes) {
    bool active = sm_recorder_active();
    if (active)
        sm_recorder_stop(SM_REASON_STOPPED);
    sm_control_append(text, bytes,
                      active           ? "stopped; the trace is "
                      : n_windows == 0 ? "it is not recording yet"
                                       : "it is not recording; last: ");
    if (n_windows > 0)
        append_trace(text, bytes);
    return active;
}

/* Each window has a trace of its own: NAME, NAME.2, NAME.3, ... */
static void name_window(unsigned n) {
    static size_t name_bytes;
    if (name_bytes == 0)
        name_bytes = strlen(request.out);
    request.out[name_bytes] = 0;
    if (n > 1) {
        sm_control_append(request.out, sizeof request.out, ".");
        sm_control_append_number(request.out, sizeof request.out, n);
    }
}

static bool on_start(char *text, size_t bytes) {
    char err[512] = "";
    if (sm_recorder_active()) {
        sm_control_append(text, bytes, "it is recording already, into ");
        append_trace(text, bytes);
        return false;
    }
    if (deadline_ns != 0 && now_ns() >= deadline_ns) {
        sm_control_append(text, bytes, "the time of its --duration is over");
        return false;
    }
    name_window(n_windows + 1);
    if (!begin_session(err, sizeof err)) {
        sm_answer(&request, SM_ANSWER_FAILED, err);
        name_window(n_windows);
        sm_control_append(text, bytes, err);
        return false;
    }
    sm_control_append(text, bytes, "recording into ");
    append_trace(text, bytes);
    return true;
}

static const struct sm_control_actions actions = {on_start, on_stop, on_status};

/* Opens the trace. `ocaml`: the process has an OCaml runtime whose memory is to be recorded, now or soon. */
static bool open_trace(bool ocaml) {
    char err[512] = "";
    sm_request_chain(&request);
    recording = (struct sm_recorder_config){
        .path = request.out,
        .fd = -1,
        .sample_rate = ocaml ? request.rate : 0,
        .native_interval_bytes = request.native_interval_bytes,
        .rate_origin = request.rate_origin,
        .depth_limit = request.depth,
        .has_seed = request.has_seed,
        .seed = request.seed,
        .follow_children = request.follow,
        .mode = SM_MODE_INJECTED,
        .symbolize = sm_native_symbolize,
        .after_fork_in_child = after_fork_in_child,
    };
    sm_native_names_later(); /* `statmem record` names C code when the program has ended */
    if (ocaml) {
        sm_ocaml_locations_init(&runtime);
        recording.ocaml_kind = runtime.kind;
        recording.ocaml_version = runtime.version;
        recording.runtime_params = runtime_params();
        recording.symbolize = sm_ocaml_symbolize;
        recording.current_domain = sm_tracker_current_domain;
        recording.native_domain = sm_tracker_domain_if_any;
    }
    if (request.paused) {
        recording_pid = getpid();
        sm_answer(&request, SM_ANSWER_PAUSED, "");
    } else if (!begin_session(err, sizeof err)) {
        sm_answer(&request, SM_ANSWER_FAILED, err);
        return false;
    }
    if (request.toggle_signal != 0)
        sm_control_toggle_by((int)request.toggle_signal);
    if (request.counters_ns != 0)
        sm_service_start(request.counters_ns, &actions);
    if (request.paused && !sm_control_is_open())
        sm_answer(&request, SM_ANSWER_FAILED,
                  "the socket for statmem ctl cannot be made: set XDG_RUNTIME_DIR to a folder that "
                  "is yours alone");
    return true;
}

static void start_native(void) {
    sm_ocaml_origins_init();
    sm_modules_refresh();
    struct sm_native_config config = {
        .interval_bytes = request.native_interval_bytes,
        .has_seed = request.has_seed,
        .seed = request.seed,
        .deadline_ns = deadline_ns,
        .classify = sm_ocaml_native_origin,
    };
    if (!sm_native_start(&config))
        request.native_interval_bytes = 0;
    else if (!sm_native_in_front())
        sm_answer(&request, SM_ANSWER_OWN_MALLOC, "the executable has a malloc of its own");
}

/* OCaml's runtime stands ready. */
static void start(void) {
    runtime_frees_itself = has_cleanup_option(runtime_params());
    if (!sm_yield_possible(&runtime) && !request.force) {
        sm_answer(
            &request, SM_ANSWER_REFUSED,
            "its code cannot be changed in memory here, so that it would fail if it used "
            "Gc.Memprof itself: if it does not, record it with STATMEM_FORCE=1 in the environment");
        return;
    }
    uint32_t callstack_size = sm_tracker_callstack_size(request.depth != 0 ? request.depth : 1024);
    sm_tracker_configure(&runtime, callstack_size, deadline_ns);
    if (request.native_interval_bytes == 0 && !open_trace(true))
        return;
    sm_gc_watch(&runtime, request.counters_ns);
    sm_ocaml_start_profile(&runtime, request.rate, callstack_size);
    sm_yield_install(&runtime, yield_to_program);
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
    if (waiting_for(SM_OCAML_BYTECODE) && !sm_service_is_here())
        start_if_ready();
    if (next_close != NULL)
        return next_close(fd);
    return (int)syscall(SYS_close, fd);
}

/* Other code may come to where a library was. */
EXPORTED int dlclose(void *handle) {
    int result = next_dlclose != NULL ? next_dlclose(handle) : 0; /* NULL: before our constructor */
    sm_modules_unloaded();
    return result;
}

/* What the system grants to processes with a single thread only. A child of vfork has our memory, and no thread of ours. */
static int alone(bool needed, long number, long a, long b) {
    bool ours = needed && recording_pid != 0 && recording_pid == getpid();
    if (ours)
        sm_service_pause();
    int result = (int)syscall(number, a, b);
    if (ours)
        sm_service_resume();
    return result;
}

EXPORTED int unshare(int flags) {
    /* Of processes with new ids (CLONE_NEWPID) no thread can be made afterwards; ours stays as it is. */
    bool needed = (flags & (CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM)) != 0;
    return alone(needed, SYS_unshare, flags, 0);
}

EXPORTED int setns(int fd, int type) {
    return alone(true, SYS_setns, fd, type);
}

/* ---- begin and end of the process ---- */

static void find_next(const char *name, void *function_pointer) {
    void *p = dlsym(RTLD_NEXT, name);
    memcpy(function_pointer, &p, sizeof p);
}

/* What is to be recorded of this process, and from when on. */
static void begin(enum sm_ocaml_refusal refusal) {
    char path[4096];
    bool native = request.native_interval_bytes != 0;
    bool ocaml = refusal == SM_OCAML_TRACEABLE && !request.native_only;
    if (request.duration_ns != 0)
        deadline_ns = now_ns() + request.duration_ns;
    if (refusal != SM_OCAML_TRACEABLE && refusal != SM_OCAML_NOT_OCAML && !request.native_only)
        sm_answer(&request, SM_ANSWER_REFUSED, sm_ocaml_refusal_text(refusal));
    if (native) {
        start_native();
        native = open_trace(ocaml);
        if (!native)
            return;
    }
    if (ocaml) {
        sm_answer(&request, SM_ANSWER_ARMED, executable(path, sizeof path));
        atomic_store_explicit(&armed, true, memory_order_relaxed);
    } else if (refusal == SM_OCAML_NOT_OCAML && !native) {
        sm_answer(&request, SM_ANSWER_NONE, executable(path, sizeof path));
    }
}

__attribute__((constructor)) static void decide(void) {
    int saved_errno = errno;
    char path[4096];
    find_next("readlink", &next_readlink);
    find_next("__readlink_chk", &next_readlink_chk);
    find_next("close", &next_close);
    find_next("dlclose", &next_dlclose);
    if (sm_request_read(&request)) {
        bool asked =
            request.follow || request.target_pid == 0 || request.target_pid == (uint32_t)getpid();
        enum sm_ocaml_refusal refusal = sm_ocaml_runtime_resolve(&runtime);
        bool hands_on;
        executable(path, sizeof path);
        if (asked) {
            begin(refusal);
            /* It may become another program by exec, which is the one that is meant. */
            hands_on = refusal == SM_OCAML_NOT_OCAML &&
                       (request.native_interval_bytes == 0 || sm_is_launcher(path));
        } else {
            hands_on = false;
            if (refusal != SM_OCAML_NOT_OCAML)
                sm_answer(&request, SM_ANSWER_CHILD, path);
            else if (request.native_interval_bytes != 0)
                sm_answer(&request, SM_ANSWER_OTHER, path);
        }
        if (!request.follow && !hands_on)
            sm_request_remove();
    }
    errno = saved_errno;
}

__attribute__((destructor)) static void finish(void) {
    if (atomic_load_explicit(&armed, memory_order_relaxed))
        sm_answer(&request, SM_ANSWER_REFUSED,
                  sm_ocaml_embedded(&runtime) ? sm_ocaml_refusal_text(SM_OCAML_EMBEDDED)
                                              : "it ended before any of its OCaml code ran");
    /* A forked child that isn't followed has a copy of this memory, but no recording. */
    if (recording_pid != 0 && recording_pid == getpid())
        end_recording(SM_REASON_EXIT);
}
