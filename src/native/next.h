/* The allocator behind us: the first object after our own, in the loader's order, that defines each function. Hook-safe.

   dlsym(RTLD_NEXT) would say the same, but it may allocate (its error texts) and takes locks, and the first call of malloc
   comes from the loader itself, before any constructor has run. So the loaded objects' symbol tables are read
   here. The pointers begin with functions that look up and forward; afterwards a call costs a jump. */
#ifndef SM_NATIVE_NEXT_H
#define SM_NATIVE_NEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/entry_points.h"

/* The lists' parameters and arguments come with their own parentheses. NOLINTBEGIN(bugprone-macro-parentheses) */

/* How an operator new behind us gets its memory. */
enum sm_native_operator {
    SM_OPERATOR_CALLS_US =
        0,               /* by calling malloc or the like, as libstdc++'s do: it is counted there */
    SM_OPERATOR_UNKNOWN, /* it stands in the allocator's own library: its first call will show */
    SM_OPERATOR_DIRECT,  /* from the allocator itself */
};

struct sm_native_next {
#define X(name, parameters, arguments, bytes) void *(*name)parameters;
    SM_NATIVE_ALLOCATORS(X)
    SM_NATIVE_NEW(X)
#undef X
    /* enum sm_native_operator */
#define X(name, parameters, arguments, bytes) uint8_t kind##name;
    SM_NATIVE_NEW(X)
#undef X
#define X(name, parameters, arguments) void(*name) parameters;
    SM_NATIVE_RELEASERS(X)
    SM_NATIVE_DELETE(X)
#undef X
    void *(*realloc)(void *p, size_t bytes);
    int (*posix_memalign)(void **p, size_t alignment, size_t bytes);
};
/* Never NULL. Relaxed by nature: any thread that finds the old pointer looks up again, with the same result. */
extern struct sm_native_next sm_native_next __attribute__((visibility("hidden")));

/* Whose malloc a call from any object of the program reaches: ours, or that of an object which stands before us
   (the executable's own). */
bool sm_native_in_front(void);

/* NOLINTEND(bugprone-macro-parentheses) */

#endif
