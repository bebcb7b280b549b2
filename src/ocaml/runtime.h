/* OCaml's runtime, without its headers: the parts of its ABI that a tracer needs, for native code
   and bytecode of 4.11-4.14 and of 5.3 and later (5.2 with Memprof ported back). Hook-safe.

   The functions are reached through struct sm_ocaml_runtime. The preload library fills it by
   symbol look-up (sm_ocaml_runtime_resolve); a library that is linked with the runtime fills the
   first part itself. */
#ifndef SM_OCAML_RUNTIME_H
#define SM_OCAML_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf.h"
#include "format/wire.h"

/* An OCaml value: an odd number is an integer, an even one the address of a block's field 0. */
typedef intptr_t sm_value;

#define SM_VAL_LONG(x) ((sm_value)(((uintptr_t)(x) << 1) + 1))
#define SM_LONG_VAL(v) ((v) >> 1)
#define SM_VAL_UNIT SM_VAL_LONG(0)
#define SM_VAL_NONE SM_VAL_LONG(0)
#define SM_FIELD(v, i) (((sm_value *)(v))[i])
#define SM_HEADER(v) (((uintptr_t *)(v))[-1])

/* Header words of blocks outside the OCaml heap: black, so that no collector looks inside. */
#define SM_BLACK_HEADER(words, tag) (((uintptr_t)(words) << 10) | (3u << 8) | (tag))
#define SM_TAG_CLOSURE 247
#define SM_TAG_DOUBLE 253

/* Words of a block. Versions can be configured to keep other data in the topmost bits of the header; no block that we
   look at has 2^38 words. */
static inline uintptr_t sm_block_words(sm_value v) {
    return (SM_HEADER(v) & 0xFFFFFFFFFFFFu) >> 10;
}

/* What caml_debuginfo_location fills: the first four fields are the same everywhere, then
   `before_5_2` or `since_5_2`. Larger than either, for versions to come. */
struct sm_ocaml_location {
    int valid;
    int is_raise;
    const char *file;
    const char *function;
    union {
        struct {
            int line, start_char, end_char, inlined;
        } before_5_2;
        struct {
            int line, start_char, end_line, end_char, end_offset, inlined;
        } since_5_2;
        char room[128];
    } u;
};

/* The runtime's growing array. */
struct sm_ext_table {
    int size;
    int capacity;
    void **contents;
};

struct sm_ocaml_runtime {
    int major; /* 4 or 5 */
    enum sm_ocaml_kind kind;
    bool locations_since_5_2; /* layout of struct sm_ocaml_location */
    char version[32];         /* "5.3.0", or what is known: "4.11-4.14", "5.3+" */

    sm_value (*memprof_start)(sm_value rate, sm_value callstack_size, sm_value tracker);
    sm_value (*memprof_stop)(sm_value unit);
    void *(*debuginfo_extract)(void *slot);
    void *(*debuginfo_next)(void *debuginfo);
    void (*debuginfo_location)(void *debuginfo, struct sm_ocaml_location *location);
    /* Native code: the frame tables of the executable's units, NULL at the end. NULL = not known. */
    const int64_t *const *frametable;
    sm_value (*domain_id)(sm_value unit); /* NULL on OCaml 4 */

    /* For the preload library only. */
    void *c_call;                                  /* native code */
    struct sm_ext_table *prim_table;               /* bytecode */
    int (*ext_table_add)(void *table, void *fn);   /* bytecode */
    void (*thread_code)(void *code, size_t bytes); /* bytecode; NULL = not threaded */
    const uintptr_t *start_code;                   /* bytecode: where its address is kept */
    const sm_value *global_data;                   /* bytecode */
    const void *const *state_4;                    /* OCaml 4: the variable Caml_state */
    bool has_state_5;                              /* OCaml 5: where a thread's state pointer */
    intptr_t state_5_offset;                       /* stands, counted from its thread pointer */

    /* The runtime's own counters; each NULL when it has none that can be read safely. */
    double (*minor_words)(void);
    void (*compute_gc_stats)(void *buf); /* OCaml 5 */
    const uintptr_t *minor_collections;  /* OCaml 5 */
    const uintptr_t *major_cycles;       /* OCaml 5 */

    /* Called by the runtime around collections; each NULL when there is none. */
    void (*_Atomic *minor_gc_begin_hook)(void);
    void (*_Atomic *minor_gc_end_hook)(void);
    void (*_Atomic *major_slice_begin_hook)(void);
    void (*_Atomic *major_slice_end_hook)(void);
};

/* Why a process cannot be traced. */
enum sm_ocaml_refusal {
    SM_OCAML_TRACEABLE = 0,
    SM_OCAML_NOT_OCAML,       /* no OCaml runtime in the process */
    SM_OCAML_TOO_OLD,         /* before 4.11: no Memprof */
    SM_OCAML_WITHOUT_MEMPROF, /* 5.0-5.2: Memprof was taken out */
    SM_OCAML_EMBEDDED,        /* bytecode that stands in the executable as data */
    SM_OCAML_UNRESOLVABLE,    /* symbols hidden and stripped */
    SM_OCAML_PROCESSOR,       /* no trampolines for this processor */
};

/* Looks the runtime up in this process: in the dynamic symbol tables, else in the symbol table of
   the executable's file. Not for use on the event path (maps and unmaps that file). */
enum sm_ocaml_refusal sm_ocaml_runtime_resolve(struct sm_ocaml_runtime *rt);

/* A runtime whose symbols are hidden and stripped still has its words among the executable's constants. */
bool sm_ocaml_has_words(const struct sm_elf *executable);

/* OCaml 5, filled by sm_ocaml_runtime_resolve: the calling thread is in a domain. */
bool sm_ocaml_thread_has_domain(const struct sm_ocaml_runtime *rt);

/* Finds the version among the data of the module Stdlib.Sys, which keeps it as a string. */
bool sm_ocaml_find_version(const char *from, const char *to, char out[32]);

/* One clause: the reason and the way out. */
const char *sm_ocaml_refusal_text(enum sm_ocaml_refusal refusal);

#endif
