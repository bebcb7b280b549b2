/* Gc.Memprof.start is the runtime's C function caml_memprof_start. In bytecode it is called through the table
   of primitives: we change the entry. In native code its address is linked into the program, so we put a jump
   to our function over its first bytes; our function puts the bytes back before it calls it. The
   program makes the call with the runtime lock held, after our own start. On OCaml 5 two domains
   could make it at the same time; the first takes the jump away, and both end in the original function. */
#include "inject/yield.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ocaml/tracker.h"

static const struct sm_ocaml_runtime *runtime;
static void (*yield_callback)(void);

/* acq_rel exchange, its own partner: one caller yields. */
static atomic_bool yielded;

enum { JUMP_BYTES = 14, ENDBR_BYTES = 4 };
static uint8_t original[JUMP_BYTES];
static uint8_t *patched_at; /* NULL = nothing patched */

static bool write_code(uint8_t *at, const uint8_t *bytes, size_t n) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = (uintptr_t)at & ~(page - 1), to = ((uintptr_t)at + n + page - 1) & ~(page - 1);
    if (mprotect((void *)from, to - from, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        return false;
    memcpy(at, bytes, n);
    return mprotect((void *)from, to - from, PROT_READ | PROT_EXEC) == 0;
}

static sm_value start_of_program(sm_value rate, sm_value callstack_size, sm_value tracker) {
    if (!atomic_exchange_explicit(&yielded, true, memory_order_acq_rel)) {
        if (patched_at != NULL)
            write_code(patched_at, original, JUMP_BYTES);
        if (!sm_tracker_ended())
            runtime->memprof_stop(SM_VAL_UNIT);
        yield_callback();
    }
    return runtime->memprof_start(rate, callstack_size, tracker);
}

static bool patch_primitive(const struct sm_ocaml_runtime *rt) {
    struct sm_ext_table *prims = rt->prim_table;
    void *theirs, *ours;
    sm_value (*function)(sm_value, sm_value, sm_value) = start_of_program;
    memcpy(&theirs, &rt->memprof_start, sizeof theirs);
    memcpy(&ours, &function, sizeof ours);
    bool found = false;
    for (int i = 0; i < prims->size; i++) {
        if (prims->contents[i] == theirs) {
            prims->contents[i] = ours;
            found = true;
        }
    }
    return found;
}

static bool patch_code(const struct sm_ocaml_runtime *rt) {
#if defined(__x86_64__)
    static const uint8_t endbr64[ENDBR_BYTES] = {0xf3, 0x0f, 0x1e, 0xfa};
    /* jmp *0(%rip), then the address */
    uint8_t jump[JUMP_BYTES] = {0xff, 0x25, 0, 0, 0, 0};
    sm_value (*function)(sm_value, sm_value, sm_value) = start_of_program;
    memcpy(jump + 6, &function, sizeof function);
    uint8_t *at;
    memcpy(&at, &rt->memprof_start, sizeof at);
    if (memcmp(at, endbr64, ENDBR_BYTES) == 0)
        at += ENDBR_BYTES;
    memcpy(original, at, JUMP_BYTES);
    if (!write_code(at, jump, JUMP_BYTES))
        return false;
    patched_at = at;
    return true;
#else
    return false;
#endif
}

bool sm_yield_possible(const struct sm_ocaml_runtime *rt) {
    if (rt->kind == SM_OCAML_BYTECODE)
        return true;
#if defined(__x86_64__)
    uint8_t same[JUMP_BYTES + ENDBR_BYTES], *at;
    memcpy(&at, &rt->memprof_start, sizeof at);
    memcpy(same, at, sizeof same);
    return write_code(at, same, sizeof same);
#else
    return false;
#endif
}

bool sm_yield_install(const struct sm_ocaml_runtime *rt, void (*on_yield)(void)) {
    runtime = rt;
    yield_callback = on_yield;
    return rt->kind == SM_OCAML_BYTECODE ? patch_primitive(rt) : patch_code(rt);
}
