/* The recorder for OCaml: start and stop, and the callbacks of Gc.Memprof. What the preload library looks
   up by name is linked here. Primitives marked noalloc neither allocate nor poll. */
#define CAML_INTERNALS
#include <caml/alloc.h>
#include <caml/backtrace_prim.h>
#include <caml/memory.h>
#include <caml/misc.h>
#include <caml/mlvalues.h>
#include <caml/version.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#if OCAML_VERSION < 50000
#include <caml/domain_state.h>
#endif

#include "ocaml/gc.h"
#include "ocaml/locations.h"
#include "ocaml/tracker.h"
#include "record/recorder.h"

/* Only the bytecode runtime has it. */
extern char caml_prim_table[] __attribute__((weak));
extern const int64_t *const caml_frametable[] __attribute__((weak)); /* native code */
/* OCaml 5: Domain.self. */
extern value caml_ml_domain_id(value unit) __attribute__((weak));
extern double caml_gc_minor_words_unboxed(void) __attribute__((weak));

#define COUNTERS_NS 100000000u /* between two readings of the runtime's figures */

static struct sm_ocaml_runtime runtime;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Function pointers of one type into the runtime's structure, which knows no OCaml headers. */
#define FUNCTION(field, f)                                                                         \
    do {                                                                                           \
        void *address = (void *)(f);                                                               \
        memcpy(&runtime.field, &address, sizeof address);                                          \
    } while (0)

static void stop_at_exit(void) {
    sm_recorder_stop(SM_REASON_EXIT);
}

static void init(void) {
    runtime.major = OCAML_VERSION_MAJOR;
    runtime.kind = caml_prim_table != NULL ? SM_OCAML_BYTECODE : SM_OCAML_NATIVE;
    runtime.locations_since_5_2 = OCAML_VERSION >= 50200;
    strncpy(runtime.version, OCAML_VERSION_STRING, sizeof runtime.version - 1);
    if (runtime.kind == SM_OCAML_NATIVE)
        runtime.frametable = caml_frametable;
    FUNCTION(debuginfo_extract, caml_debuginfo_extract);
    FUNCTION(debuginfo_next, caml_debuginfo_next);
    FUNCTION(debuginfo_location, caml_debuginfo_location);
    FUNCTION(domain_id, caml_ml_domain_id);
#if OCAML_VERSION < 50000
    FUNCTION(minor_words, caml_gc_minor_words_unboxed);
    runtime.state_4 = (const void *const *)&Caml_state;
#endif
    FUNCTION(minor_gc_begin_hook, &caml_minor_gc_begin_hook);
    FUNCTION(minor_gc_end_hook, &caml_minor_gc_end_hook);
    FUNCTION(major_slice_begin_hook, &caml_major_slice_begin_hook);
    FUNCTION(major_slice_end_hook, &caml_major_slice_end_hook);
    sm_ocaml_locations_init(&runtime);
    atexit(stop_at_exit);
}

/* start path rate rate_origin context params depth: "" when recording has begun, else what went wrong. */
CAMLprim value statmem_ml_start(value path, value rate, value rate_origin, value context,
                                value params, value depth) {
    char err[512] = "";
    pthread_once(&once, init);
    struct sm_recorder_config config = {
        .path = String_val(path),
        .fd = -1,
        .sample_rate = Double_val(rate),
        .rate_origin = (enum sm_rate_origin)Int_val(rate_origin),
        .depth_limit = (uint32_t)Long_val(depth),
        .mode = SM_MODE_LINKED,
        .ocaml_kind = runtime.kind,
        .ocaml_version = runtime.version,
        .runtime_params = String_val(params),
        .context = Is_block(context) ? String_val(Field(context, 0)) : NULL,
        .follow_children = getenv("STATMEM_FOLLOW") != NULL,
        .symbolize = sm_ocaml_symbolize,
        .current_domain = sm_tracker_current_domain,
    };
    sm_gc_watch(&runtime, COUNTERS_NS);
    sm_tracker_configure(&runtime, sm_tracker_callstack_size(config.depth_limit), 0);
    if (sm_recorder_start(&config, err, sizeof err) == 0)
        err[0] = 0;
    else if (err[0] == 0)
        strcpy(err, "recording cannot start");
    return caml_copy_string(err);
}

CAMLprim value statmem_ml_start_byte(value *argv, int argn) {
    (void)argn;
    return statmem_ml_start(argv[0], argv[1], argv[2], argv[3], argv[4], argv[5]);
}

CAMLprim value statmem_ml_callstack_size(value depth) {
    return Val_long(sm_tracker_callstack_size((uint32_t)Long_val(depth)));
}

CAMLprim value statmem_ml_stop(value unit) {
    sm_gc_final_counters();
    sm_recorder_stop(SM_REASON_STOPPED);
    return unit;
}

CAMLprim value statmem_ml_stop_at_exit(value unit) {
    if (sm_recorder_active())
        sm_gc_final_counters();
    sm_recorder_stop(SM_REASON_EXIT);
    return unit;
}

CAMLprim value statmem_ml_active(value unit) {
    (void)unit;
    return Val_bool(sm_recorder_active());
}

/* Which recording: a number that each start changes. */
CAMLprim value statmem_ml_generation(value unit) {
    (void)unit;
    return Val_long(sm_recorder_generation());
}

CAMLprim value statmem_ml_discarded(value unit) {
    (void)unit;
    return Val_long(sm_recorder_discarded());
}

CAMLprim value statmem_ml_unsetenv(value name) {
    unsetenv(String_val(name));
    return Val_unit;
}

CAMLprim value statmem_ml_mark(value text) {
    sm_recorder_mark(String_val(text), caml_string_length(text));
    return Val_unit;
}

CAMLprim value statmem_ml_thread_name(value name) {
    sm_recorder_thread_name(String_val(name), caml_string_length(name));
    return Val_unit;
}

/* ---- callbacks of Gc.Memprof, noalloc ---- */

CAMLprim value statmem_ml_alloc_minor(value info) {
    return (value)sm_tracker_alloc_minor((sm_value)info);
}

CAMLprim value statmem_ml_alloc_major(value info) {
    return (value)sm_tracker_alloc_major((sm_value)info);
}

CAMLprim value statmem_ml_promote(value token) {
    return (value)sm_tracker_promote((sm_value)token);
}

CAMLprim value statmem_ml_dealloc(value token) {
    return (value)sm_tracker_dealloc_minor((sm_value)token);
}

/* ---- memory that OCaml does not see ---- */

/* Samples that fall on so many words, noalloc; [@untagged]. */
CAMLprim intnat statmem_ml_sample(intnat words) {
    return words > 0 ? (intnat)sm_recorder_sample((uint64_t)words) : 0;
}

CAMLprim value statmem_ml_sample_byte(value words) {
    return Val_long(statmem_ml_sample(Long_val(words)));
}

/* ext_alloc words samples callstack: the token, 0 = not recorded; noalloc. The innermost slot of the callstack
   is the function of ours that asked for it. */
CAMLprim value statmem_ml_ext_alloc(value words, value samples, value callstack) {
    mlsize_t n = Wosize_val(callstack);
    mlsize_t own = n > 0;
    struct sm_raw_stack stack = {
        .innermost_first = (const uintptr_t *)Op_val(callstack) + own,
        .n_frames = (uint32_t)(n - own),
    };
    return Val_long(sm_recorder_alloc((uint64_t)Long_val(words), (uint64_t)Long_val(samples),
                                      SM_SOURCE(SM_HEAP_EXTERNAL, SM_ORIGIN_REPORTED), &stack));
}

CAMLprim value statmem_ml_ext_free(value token) {
    sm_recorder_collect((uint64_t)Long_val(token));
    return Val_unit;
}

/* The calling domain's number; 0 on OCaml 4. */
CAMLprim value statmem_ml_domain(value unit) {
    return caml_ml_domain_id != NULL ? caml_ml_domain_id(unit) : Val_long(0);
}
