/* C functions for mixed.ml: each compares the stack, ours with libgcc's, and checks that it goes through to main. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CAML_NAME_SPACE
#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <caml/signals.h>

#include "oracle.h"
#include "unwind/unwind.h"

static int too_short;
static unsigned by_kind[8];

static bool alone;

value stub_alone(value on) {
    alone = Bool_val(on);
    return Val_unit;
}

/* Ours alone: it must not fault, and find the frames that can be found. */
static unsigned ours_alone(void) {
    static uintptr_t frames[1000];
    struct sm_unwound how;
    uint32_t n = sm_unwind(frames, 1000, 0, &how);
    if (n < 6 || (how.end != SM_UNWIND_BAD_STACK && how.end != SM_UNWIND_OUTERMOST)) {
        printf("alone: %u frames, end %d\n", n, how.end);
        oracle_failures++;
    }
    return n;
}

static unsigned check(int kind, const char *where) {
    unsigned n = alone ? ours_alone() : oracle_check(where);
    by_kind[kind]++;
    return n;
}

/* Through caml_c_call; the depth goes back to OCaml. */
value stub_check(value unit) {
    return Val_long(check(0, "c_call"));
}

/* Without caml_c_call: 4.x calls directly, 5.x on the C stack with rbx as frame base. */
value stub_noalloc(value unit) {
    return Val_long(check(1, "noalloc"));
}

value stub_untagged(value n) {
    return n;
}

intnat stub_untagged_native(intnat n) {
    check(2, "untagged");
    return n;
}

value stub_many(value a, value b, value c, value d, value e, value f, value g, value h) {
    check(3, "many");
    return a;
}

value stub_many_bytecode(value *arguments, int n) {
    return arguments[0];
}

/* Calls back. */
value stub_callback(value closure, value n) {
    CAMLparam1(closure);
    check(4, "before callback");
    value v = caml_callback(closure, n);
    check(4, "after callback");
    CAMLreturn(v);
}

value stub_callback_exn(value closure, value n) {
    CAMLparam1(closure);
    value v = caml_callback_exn(closure, n);
    check(5, "after exception");
    CAMLreturn(Is_exception_result(v) ? Val_long(-1) : v);
}

/* In the middle of OCaml code, wherever it is. */
static void on_alarm(int signal) {
    unsigned n;
    by_kind[6]++;
    if (oracle_compare(&n) != 0 && by_kind[7]++ < 3)
        oracle_check("alarm");
}

value stub_alarms(value five) {
    oracle_ocaml_5 = Bool_val(five);
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = on_alarm;
    a.sa_flags = SA_RESTART | SA_ONSTACK;
    sigaction(SIGUSR2, &a, NULL);
    return Val_unit;
}

value stub_raise_signal(value unit) {
    raise(SIGUSR2);
    return Val_unit;
}

value stub_result(value least) {
    printf("c_call %u noalloc %u untagged %u many %u callback %u exception %u alarm %u\n",
           by_kind[0], by_kind[1], by_kind[2], by_kind[3], by_kind[4], by_kind[5], by_kind[6]);
    for (int i = 0; i < 7; i++)
        too_short += by_kind[i] == 0;
    return Val_long(oracle_result((unsigned)Long_val(least)) + too_short);
}
