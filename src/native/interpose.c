/* The functions that stand in front of the allocator's. The usual way through each is a few instructions: count the bytes
   down, or look into the filter, and jump on. What is rare stands apart, so that the usual way needs no frame.

   A block is taken out of the table *before* it goes to the allocator, which may hand out its address again at once. */
#include "native/native.h"

#include <errno.h>

#include "native/next.h"

#define EXPORTED __attribute__((visibility("default")))
#define RARE __attribute__((noinline, cold))
#define NEXT sm_native_next

/* SIZE_MAX when it overflows: the allocation fails then. */
static inline size_t product(size_t n, size_t each) {
    size_t bytes;
    return __builtin_mul_overflow(n, each, &bytes) ? SIZE_MAX : bytes;
}

#define X(name, parameters, arguments, bytes_)                                                     \
    RARE static void *rare_##name parameters {                                                     \
        bool sampled = sm_native_decide(bytes_);                                                   \
        void *block = NEXT.name arguments;                                                         \
        if (sampled && block != NULL)                                                              \
            sm_native_born(block, bytes_);                                                         \
        return block;                                                                              \
    }                                                                                              \
    EXPORTED void *name parameters;                                                                \
    EXPORTED void *name parameters {                                                               \
        if (sm_native_count(bytes_))                                                               \
            return rare_##name arguments;                                                          \
        return NEXT.name arguments;                                                                \
    }
SM_NATIVE_ALLOCATORS(X)
#undef X

#define X(name, parameters, arguments, bytes_)                                                     \
    RARE static void *rare_##name parameters {                                                     \
        bool sampled = sm_native_decide(bytes_);                                                   \
        void *block = NEXT.name arguments; /* may throw: nothing is held */                        \
        if (sampled && block != NULL)                                                              \
            sm_native_born(block, bytes_);                                                         \
        return block;                                                                              \
    }                                                                                              \
    EXPORTED void *name parameters;                                                                \
    EXPORTED void *name parameters {                                                               \
        if (NEXT.new_is_direct && sm_native_count(bytes_))                                         \
            return rare_##name arguments;                                                          \
        return NEXT.name arguments;                                                                \
    }
SM_NATIVE_NEW(X)
#undef X

#define X(name, parameters, arguments)                                                             \
    RARE static void rare_##name parameters {                                                      \
        sm_native_dies(p);                                                                         \
        NEXT.name arguments;                                                                       \
    }                                                                                              \
    EXPORTED void name parameters;                                                                 \
    EXPORTED void name parameters {                                                                \
        if (sm_sampled_perhaps(p)) {                                                               \
            rare_##name arguments;                                                                 \
            return;                                                                                \
        }                                                                                          \
        NEXT.name arguments;                                                                       \
    }
SM_NATIVE_RELEASERS(X)
SM_NATIVE_DELETE(X)
#undef X

/* ---- the unlike ones ---- */

RARE static int rare_posix_memalign(void **p, size_t alignment, size_t bytes) {
    bool sampled = sm_native_decide(bytes);
    int result = NEXT.posix_memalign(p, alignment, bytes);
    if (sampled && result == 0 && *p != NULL)
        sm_native_born(*p, bytes);
    return result;
}

EXPORTED int posix_memalign(void **p, size_t alignment, size_t bytes);
EXPORTED int posix_memalign(void **p, size_t alignment, size_t bytes) {
    if (sm_native_count(bytes))
        return rare_posix_memalign(p, alignment, bytes);
    return NEXT.posix_memalign(p, alignment, bytes);
}

/* One of both with n = 1 and each = bytes: so that a product which overflows fails where it should. */
static inline void *next_realloc(void *p, size_t n, size_t each, bool array) {
    return array ? NEXT.reallocarray(p, n, each) : NEXT.realloc(p, each);
}

RARE static void *rare_realloc(void *p, size_t n, size_t each, bool array, bool counted) {
    size_t bytes = product(n, each);
    uint64_t token = 0;
    struct sm_sampled_place *old = NULL;
    bool sampled = !counted && sm_native_decide(bytes);
    if (p != NULL && sm_sampled_perhaps(p))
        old = sm_sampled_hold(p, &token);
    void *block = next_realloc(p, n, each, array);
    /* Size 0 frees the block and gives NULL, or an empty block. */
    if (old != NULL && block == NULL && bytes != 0)
        sm_sampled_put(old, p, token);
    else if (old != NULL)
        sm_native_replaced(old, p, token);
    if (sampled && block != NULL)
        sm_native_born(block, bytes);
    return block;
}

EXPORTED void *realloc(void *p, size_t bytes);
EXPORTED void *realloc(void *p, size_t bytes) {
    if (sm_native_count(bytes))
        return rare_realloc(p, 1, bytes, false, false);
    if (sm_sampled_perhaps(p))
        return rare_realloc(p, 1, bytes, false, true);
    return NEXT.realloc(p, bytes);
}

EXPORTED void *reallocarray(void *p, size_t n, size_t each);
EXPORTED void *reallocarray(void *p, size_t n, size_t each) {
    if (sm_native_count(product(n, each)))
        return rare_realloc(p, n, each, true, false);
    if (sm_sampled_perhaps(p))
        return rare_realloc(p, n, each, true, true);
    return NEXT.reallocarray(p, n, each);
}
