/* The runtime is one archive, so that its functions stand together in the executable (or are all of libasmrun_shared.so). Where it begins
   and ends is taken from functions of its files, first and last ones among them. An allocation is the runtime's when
   its malloc was called from there; the names of the runtime's functions on the stack tell what for.

   caml_stat_alloc and its like only hand on: called by a stub, the memory is the program's.

   What a return address means is looked up once and then remembered in a table of single words (address, meaning),
   so that a relaxed load and store are enough; two addresses that share a place take it from each other. */
#include "ocaml/origins.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "format/wire.h"
#include "ocaml/symbols.h"
#include "unwind/unwind.h"

/* One function or more of each file of the runtime that 4.11 to 5.x have. */
static const char *const landmarks[] = {
    "caml_alloc_shr",
    "caml_alloc_string",
    "caml_array_get",
    "caml_get_exception_raw_backtrace",
    "caml_ba_alloc",
    "caml_ba_create",
    "caml_callback_exn",
    "caml_compare",
    "caml_alloc_custom",
    "caml_ensure_stack_capacity",
    "caml_output_value",
    "caml_raise",
    "caml_final_register",
    "caml_format_float",
    "caml_alloc_some",
    "caml_gc_stat",
    "caml_register_generational_global_root",
    "caml_hash",
    "caml_input_value",
    "caml_format_int",
    "caml_ml_open_descriptor_in",
    "caml_new_lex_engine",
    "caml_lex_engine",
    "caml_main",
    "caml_startup",
    "caml_md5_string",
    "caml_alloc_for_heap",
    "caml_stat_alloc",
    "caml_memprof_start",
    "caml_minor_collection",
    "caml_empty_minor_heap",
    "caml_set_minor_heap_wsz",
    "caml_gc_message",
    "caml_obj_dup",
    "caml_parse_engine",
    "caml_lf_skiplist_find",
    "caml_init_domains",
    "caml_domain_spawn",
    "caml_ml_domain_id",
    "caml_alloc_stack",
    "caml_init_frame_descriptors",
    "caml_printexc",
    "caml_install_signal_handler",
    "caml_skiplist_find",
    "caml_string_compare",
    "caml_sys_exit",
    "caml_read_directory",
    "caml_executable_name",
    "caml_weak_create",
    "caml_ephe_create",
    "caml_major_collection_slice",
    "caml_init_major_heap",
    "caml_finish_major_cycle",
    "caml_runtime_events_start",
    "caml_shared_try_alloc",
    "caml_teardown_major_gc",
    "caml_mem_map",
    "caml_init_gc",
    "caml_init_ieee_floats",
    "caml_compact_heap",
    "caml_init_atom_table",
    "caml_alloc_table",
    "caml_unregister_frametable",
};

static const struct {
    const char *name;
    uint8_t origin;
} purposes[] = {
    {"caml_ba_alloc", SM_ORIGIN_CUSTOM},
    {"caml_ba_create", SM_ORIGIN_CUSTOM},
    {"caml_alloc_for_heap", SM_ORIGIN_OCAML_HEAP},
    {"caml_init_major_heap", SM_ORIGIN_OCAML_HEAP},
    {"expand_heap", SM_ORIGIN_OCAML_HEAP},
    {"large_allocate", SM_ORIGIN_OCAML_HEAP},
    {"pool_allocate", SM_ORIGIN_OCAML_HEAP},
    {"pool_acquire", SM_ORIGIN_OCAML_HEAP},
    {"caml_shared_try_alloc", SM_ORIGIN_OCAML_HEAP},
    {"caml_alloc_shr", SM_ORIGIN_OCAML_HEAP},
    {"caml_alloc_shr_noexc", SM_ORIGIN_OCAML_HEAP},
    {"caml_set_minor_heap_wsz", SM_ORIGIN_MINOR_HEAP},
    {"allocate_minor_heap", SM_ORIGIN_MINOR_HEAP},
    {"caml_reallocate_minor_heap", SM_ORIGIN_MINOR_HEAP},
    {"caml_init_domains", SM_ORIGIN_MINOR_HEAP},
    {"caml_alloc_stack", SM_ORIGIN_OCAML_STACK},
    {"caml_alloc_main_stack", SM_ORIGIN_OCAML_STACK},
    {"caml_alloc_stack_noexc", SM_ORIGIN_OCAML_STACK},
    {"alloc_size_class_stack_noexc", SM_ORIGIN_OCAML_STACK},
    {"caml_try_realloc_stack", SM_ORIGIN_OCAML_STACK},
    {"caml_init_stack", SM_ORIGIN_OCAML_STACK},
    {"caml_realloc_stack", SM_ORIGIN_OCAML_STACK},
};

/* Of one return address. */
enum meaning {
    UNKNOWN = 0,
    OUTSIDE,  /* not the runtime's code */
    RUNTIME,  /* the runtime's, for no purpose of the list */
    NAMELESS, /* the runtime's, a local function of a stripped executable */
    HANDS_ON,
    PURPOSE /* + origin */
};

static uintptr_t from, to; /* the runtime's code; written at the start only */

#define REMEMBERED 512u
static _Atomic uint64_t remembered[REMEMBERED];

void sm_ocaml_origins_init(void) {
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (size_t i = 0; i < sizeof landmarks / sizeof landmarks[0]; i++) {
        uintptr_t at = (uintptr_t)dlsym(RTLD_DEFAULT, landmarks[i]);
        if (at == 0)
            continue;
        low = at < low ? at : low;
        high = at > high ? at : high;
    }
    if (high == 0)
        return;
    from = low;
    to = high + 4096; /* the last function has a length */
}

static uint64_t look_up(uintptr_t pc) {
    struct sm_symbol symbol;
    if (!sm_symbol_at(pc - 1, &symbol) || symbol.name == NULL)
        return NAMELESS;
    if (strncmp(symbol.name, "caml_stat_", 10) == 0)
        return HANDS_ON;
    /* The compiler's copies of a function have its name, a dot and more. */
    size_t n = strcspn(symbol.name, ".");
    for (size_t i = 0; i < sizeof purposes / sizeof purposes[0]; i++) {
        if (strncmp(purposes[i].name, symbol.name, n) == 0 && purposes[i].name[n] == 0)
            return (uint64_t)PURPOSE + purposes[i].origin;
    }
    return RUNTIME;
}

static unsigned meaning_of(uintptr_t pc) {
    if (pc < from || pc >= to)
        return OUTSIDE;
    _Atomic uint64_t *place = &remembered[(pc ^ pc >> 9) % REMEMBERED];
    uint64_t word = __atomic_load_n((uint64_t *)place, __ATOMIC_RELAXED); /* all in one word */
    if (word >> 8 == pc)
        return (unsigned)(word & 0xff);
    uint64_t meaning = look_up(pc);
    __atomic_store_n((uint64_t *)place, (uint64_t)pc << 8 | meaning, __ATOMIC_RELAXED);
    return (unsigned)meaning;
}

uint8_t sm_ocaml_native_origin(const uintptr_t *frames, size_t n) {
    enum { LOOKED_AT = 16 };
    bool runtime = false;
    size_t i = 0;
    for (; i < n && i < LOOKED_AT; i++) {
        unsigned meaning = meaning_of(sm_frame_address(frames[i]));
        if (meaning >= PURPOSE)
            return (uint8_t)(meaning - PURPOSE);
        if (meaning == RUNTIME) /* a table of its own, whoever made it necessary */
            return SM_ORIGIN_RUNTIME;
        if (meaning == OUTSIDE)
            break;
        runtime |= meaning == NAMELESS;
    }
    /* Only functions that hand on, and nobody known who called them: the runtime's as well. */
    return runtime || (i > 0 && i == n) ? SM_ORIGIN_RUNTIME : SM_ORIGIN_NORMAL;
}
