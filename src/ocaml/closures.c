/* A closure is a block: code address, then information about the closure (arity 1, environment from word 2),
   which OCaml 4.11 reads as something else and ignores. Headers are black, so that no collector follows or moves
   them; they stand in static memory, which OCaml 4 accepts as out-of-heap and OCaml 5 as static
   data.

   Native code: the argument comes in rax. On OCaml 4 the trampoline goes straight to the C
   callback: r14 and r15, where OCaml keeps its state, are callee-saved in C. On OCaml 5, where
   OCaml code runs on small stacks of its own, it goes through caml_c_call, which changes to the C
   stack, and whose frames unwinders and the runtime know. Bytecode: three instructions that call a
   primitive which we add to the table. */
#include "ocaml/closures.h"

#include <dlfcn.h>
#include <string.h>

#include "ocaml/tracker.h"

/* Where trampolines go: caml_c_call on OCaml 5, 0 on OCaml 4. Read by the code below. */
__attribute__((visibility("hidden"))) void *sm_trampoline_through;

#if defined(__x86_64__)
#define TRAMPOLINE(callback)                                                                       \
    __asm__(".text\n"                                                                              \
            ".p2align 4\n"                                                                         \
            ".hidden " #callback "\n"                                                              \
            ".hidden sm_trampoline_through\n"                                                      \
            ".type sm_to_" #callback ", @function\n"                                               \
            "sm_to_" #callback ":\n"                                                               \
            "  .cfi_startproc\n"                                                                   \
            "  endbr64\n"                                                                          \
            "  movq %rax, %rdi\n"                                                                  \
            "  leaq " #callback "(%rip), %rax\n"                                                   \
            "  movq sm_trampoline_through(%rip), %r11\n"                                           \
            "  testq %r11, %r11\n"                                                                 \
            "  jnz 1f\n"                                                                           \
            "  jmp *%rax\n"                                                                        \
            "1: jmp *%r11\n"                                                                       \
            "  .cfi_endproc\n"                                                                     \
            ".size sm_to_" #callback ", . - sm_to_" #callback "\n");                               \
    extern const char sm_to_##callback[] __attribute__((visibility("hidden")))
#else
#define TRAMPOLINE(callback) static const char sm_to_##callback[1]
#endif
TRAMPOLINE(sm_tracker_alloc_minor);
TRAMPOLINE(sm_tracker_alloc_major);
TRAMPOLINE(sm_tracker_promote);
TRAMPOLINE(sm_tracker_dealloc_minor);
TRAMPOLINE(sm_tracker_dealloc_major);

enum { N_CALLBACKS = 5 };

/* The fields of Gc.Memprof.tracker, in order. */
static sm_value (*const callbacks[N_CALLBACKS])(sm_value) = {
    sm_tracker_alloc_minor, sm_tracker_alloc_major, sm_tracker_promote, sm_tracker_dealloc_minor,
    sm_tracker_dealloc_major};
static const char *const trampolines[N_CALLBACKS] = {
    sm_to_sm_tracker_alloc_minor, sm_to_sm_tracker_alloc_major, sm_to_sm_tracker_promote,
    sm_to_sm_tracker_dealloc_minor, sm_to_sm_tracker_dealloc_major};

static struct {
    uintptr_t header;
    const void *code;
    uintptr_t info;
} closures[N_CALLBACKS] __attribute__((aligned(16)));

static struct {
    uintptr_t header;
    sm_value fields[N_CALLBACKS];
} tracker __attribute__((aligned(16)));

static struct {
    uintptr_t header;
    double value;
} boxed_rate __attribute__((aligned(16)));

/* ---- bytecode ---- */

enum { BYTE_ACC0 = 0, BYTE_RETURN = 40, BYTE_C_CALL1 = 93 };
enum { BYTE_LENGTH = 5 };
static int32_t bytecode[N_CALLBACKS][BYTE_LENGTH];

static const void *bytecode_for(const struct sm_ocaml_runtime *rt, int i) {
    struct sm_ext_table *prims = rt->prim_table;
    int primitive = prims->size;
    void *function;
    memcpy(&function, &callbacks[i], sizeof function);
    rt->ext_table_add(prims, function);
    const int32_t code[BYTE_LENGTH] = {BYTE_ACC0, BYTE_C_CALL1, primitive, BYTE_RETURN, 1};
    memcpy(bytecode[i], code, sizeof code);
    if (rt->thread_code != NULL)
        rt->thread_code(bytecode[i], sizeof code);
    return bytecode[i];
}

bool sm_ocaml_embedded(const struct sm_ocaml_runtime *rt) {
    Dl_info info;
    return rt->kind == SM_OCAML_BYTECODE && *rt->start_code != 0 &&
           dladdr((const void *)*rt->start_code, &info) != 0;
}

bool sm_ocaml_ready(const struct sm_ocaml_runtime *rt) {
    if (rt->major == 4 && rt->state_4 != NULL && *rt->state_4 == NULL)
        return false;
    if (rt->kind != SM_OCAML_BYTECODE)
        return true;
    const struct sm_ext_table *prims = rt->prim_table;
    return prims->size > 0 && *rt->start_code != 0 && *rt->global_data != 0 &&
           *rt->global_data != SM_VAL_UNIT && !sm_ocaml_embedded(rt);
}

void sm_ocaml_start_profile(const struct sm_ocaml_runtime *rt, double rate,
                            uint32_t callstack_size) {
    sm_trampoline_through = rt->major == 5 ? rt->c_call : NULL;
    tracker.header = SM_BLACK_HEADER(N_CALLBACKS, 0);
    for (int i = 0; i < N_CALLBACKS; i++) {
        closures[i].header = SM_BLACK_HEADER(2, SM_TAG_CLOSURE);
        closures[i].code =
            rt->kind == SM_OCAML_BYTECODE ? bytecode_for(rt, i) : (const void *)trampolines[i];
        closures[i].info = ((uintptr_t)1 << 56) | (2 << 1) | 1;
        tracker.fields[i] = (sm_value)&closures[i].code;
    }
    boxed_rate.header = SM_BLACK_HEADER(1, SM_TAG_DOUBLE);
    boxed_rate.value = rate;
    rt->memprof_start((sm_value)&boxed_rate.value, SM_VAL_LONG(callstack_size),
                      (sm_value)tracker.fields);
}
