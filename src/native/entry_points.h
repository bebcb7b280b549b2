/* Every function by which a program gets and gives back memory, once. interpose.c makes the functions and next.c the
   way to the allocator's own from these lists; src/inject/preload.map and tests/layers/preload_symbols.txt name them too, and a
   test compares.

   SM_NATIVE_ALLOCATORS: X(name, parameters, arguments, bytes): they return the block, or NULL.
   SM_NATIVE_NEW: the same for C++'s operators, which libstdc++ makes of malloc and some allocators of their own code.
   SM_NATIVE_RELEASERS: X(name, parameters, arguments): the first parameter is the block.
   Beside them posix_memalign, realloc and reallocarray, which are unlike. */
#ifndef SM_NATIVE_ENTRY_POINTS_H
#define SM_NATIVE_ENTRY_POINTS_H

#define SM_NATIVE_ALLOCATORS(X)                                                                    \
    X(malloc, (size_t bytes), (bytes), bytes)                                                      \
    X(calloc, (size_t n, size_t each), (n, each), product(n, each))                                \
    X(memalign, (size_t alignment, size_t bytes), (alignment, bytes), bytes)                       \
    X(aligned_alloc, (size_t alignment, size_t bytes), (alignment, bytes), bytes)                  \
    X(valloc, (size_t bytes), (bytes), bytes)                                                      \
    X(pvalloc, (size_t bytes), (bytes), bytes)

/* operator new and new[]: plain, nothrow, aligned, both. */
#define SM_NATIVE_NEW(X)                                                                           \
    X(_Znwm, (size_t bytes), (bytes), bytes)                                                       \
    X(_Znam, (size_t bytes), (bytes), bytes)                                                       \
    X(_ZnwmRKSt9nothrow_t, (size_t bytes, const void *nothrow), (bytes, nothrow), bytes)           \
    X(_ZnamRKSt9nothrow_t, (size_t bytes, const void *nothrow), (bytes, nothrow), bytes)           \
    X(_ZnwmSt11align_val_t, (size_t bytes, size_t alignment), (bytes, alignment), bytes)           \
    X(_ZnamSt11align_val_t, (size_t bytes, size_t alignment), (bytes, alignment), bytes)           \
    X(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t bytes, size_t alignment, const void *nothrow),   \
      (bytes, alignment, nothrow), bytes)                                                          \
    X(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t bytes, size_t alignment, const void *nothrow),   \
      (bytes, alignment, nothrow), bytes)

#define SM_NATIVE_RELEASERS(X)                                                                     \
    X(free, (void *p), (p))                                                                        \
    X(cfree, (void *p), (p))                                                                       \
    X(free_sized, (void *p, size_t bytes), (p, bytes))                                             \
    X(free_aligned_sized, (void *p, size_t alignment, size_t bytes), (p, alignment, bytes))

/* operator delete and delete[]: plain, nothrow, sized, aligned, sized and aligned, aligned and nothrow. */
#define SM_NATIVE_DELETE(X)                                                                        \
    X(_ZdlPv, (void *p), (p))                                                                      \
    X(_ZdaPv, (void *p), (p))                                                                      \
    X(_ZdlPvRKSt9nothrow_t, (void *p, const void *nothrow), (p, nothrow))                          \
    X(_ZdaPvRKSt9nothrow_t, (void *p, const void *nothrow), (p, nothrow))                          \
    X(_ZdlPvm, (void *p, size_t bytes), (p, bytes))                                                \
    X(_ZdaPvm, (void *p, size_t bytes), (p, bytes))                                                \
    X(_ZdlPvSt11align_val_t, (void *p, size_t alignment), (p, alignment))                          \
    X(_ZdaPvSt11align_val_t, (void *p, size_t alignment), (p, alignment))                          \
    X(_ZdlPvmSt11align_val_t, (void *p, size_t bytes, size_t alignment), (p, bytes, alignment))    \
    X(_ZdaPvmSt11align_val_t, (void *p, size_t bytes, size_t alignment), (p, bytes, alignment))    \
    X(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *p, size_t alignment, const void *nothrow),       \
      (p, alignment, nothrow))                                                                     \
    X(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *p, size_t alignment, const void *nothrow),       \
      (p, alignment, nothrow))

#endif
