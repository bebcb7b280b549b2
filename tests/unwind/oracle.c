#include "oracle.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

#include "unwind/unwind.h"

unsigned oracle_checks, oracle_failures, oracle_deepest;
bool oracle_any_end, oracle_ocaml_5;

struct theirs {
    uintptr_t pcs[ORACLE_MAX];
    unsigned n;
};

static _Unwind_Reason_Code one_frame(struct _Unwind_Context *context, void *arg) {
    struct theirs *t = arg;
    int exact = 0;
    uintptr_t pc = _Unwind_GetIPInfo(context, &exact);
    if (pc == 0 || t->n == ORACLE_MAX)
        return _URC_END_OF_STACK;
    t->pcs[t->n++] = pc + (exact != 0);
    return _URC_NO_REASON;
}

static __thread struct theirs theirs;
static __thread uintptr_t ours[ORACLE_MAX];
static __thread struct sm_unwound how;

__attribute__((noinline)) unsigned oracle_compare(unsigned *n_out) {
    theirs.n = 0;
    unsigned n = sm_unwind(ours, ORACLE_MAX, 0, &how);
    _Unwind_Backtrace(one_frame, &theirs);
    *n_out = n;
    for (unsigned i = 1; i < n || i < theirs.n; i++)
        if (i >= n || i >= theirs.n ||
            (ours[i] != theirs.pcs[i] && !(oracle_ocaml_5 && ours[i] + 1 == theirs.pcs[i])))
            return 1 + i;
    return how.n_cut == 0 && (oracle_any_end || how.end == SM_UNWIND_OUTERMOST) ? 0 : 1 + n;
}

static void show(const char *name, uintptr_t pc) {
    Dl_info info;
    if (pc != 0 && dladdr((void *)(pc - 1), &info) != 0)
        printf("  %s %#lx %s %s+%#lx", name, (unsigned long)pc, info.dli_fname,
               info.dli_sname ? info.dli_sname : "", pc - (uintptr_t)info.dli_fbase);
    else
        printf("  %s %#lx", name, (unsigned long)pc);
}

__attribute__((noinline)) unsigned oracle_check(const char *where) {
    unsigned n, differ = oracle_compare(&n);
    __atomic_add_fetch(&oracle_checks, 1, __ATOMIC_RELAXED);
    if (n > oracle_deepest)
        oracle_deepest = n;
    if (differ != 0) {
        if (__atomic_add_fetch(&oracle_failures, 1, __ATOMIC_RELAXED) > 5)
            return n;
        printf("%s: frame %u differs; ours: %u frames, end %d, theirs: %u\n", where, differ - 1, n,
               how.end, theirs.n);
        for (unsigned i = 0; (i < n || i < theirs.n) && i < differ + 3; i++) {
            show("ours", i < n ? ours[i] : 0);
            show("theirs", i < theirs.n ? theirs.pcs[i] : 0);
            printf("\n");
        }
        fflush(stdout);
    }
    return n;
}

int oracle_result(unsigned least) {
    printf("%u stacks compared, deepest %u, %u failed\n", oracle_checks, oracle_deepest,
           oracle_failures);
    return oracle_failures > 0 || oracle_checks < least;
}
