/* The functions that stand in front of the allocator's. The usual way through each is a few instructions: count the bytes
   down, or look into the filter, and jump on. What is rare stands apart, so that the usual way needs no frame.

   A block is taken out of the table *before* it goes to the allocator, which may hand out its address again at once. */
#include "native/native.h"

#include <errno.h>

#include "native/next.h"

/* The lists' parameters and arguments come with their own parentheses. NOLINTBEGIN(bugprone-macro-parentheses) */

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

/* Larger than what is probed. An operator that throws meanwhile leaves the thread without samples for so many bytes. */
#define PROBE ((uint64_t)1 << 30)

#define X(name, parameters, arguments, bytes_)                                                     \
    RARE static void *rare_##name parameters {                                                     \
        bool sampled = sm_native_decide(bytes_);                                                   \
        void *block = NEXT.name arguments; /* may throw: nothing is held */                        \
        if (sampled && block != NULL)                                                              \
            sm_native_born(block, bytes_);                                                         \
        return block;                                                                              \
    }                                                                                              \
    /* Does it count down, through functions of ours that it calls? */                             \
    RARE static void *first_##name parameters {                                                    \
        uint64_t left = sm_native_thread_state.left;                                               \
        sm_native_thread_state.left = PROBE;                                                       \
        void *block = NEXT.name arguments;                                                         \
        bool calls_us = sm_native_thread_state.left != PROBE;                                      \
        sm_native_thread_state.left = left;                                                        \
        if (block != NULL && bytes_ != 0) {                                                        \
            NEXT.kind##name = calls_us ? SM_OPERATOR_CALLS_US : SM_OPERATOR_DIRECT;                \
            if (sm_native_count(bytes_) && sm_native_decide(bytes_))                               \
                sm_native_born(block, bytes_);                                                     \
        }                                                                                          \
        return block;                                                                              \
    }                                                                                              \
    EXPORTED void *name parameters;                                                                \
    EXPORTED void *name parameters {                                                               \
        if (__builtin_expect(NEXT.kind##name != SM_OPERATOR_CALLS_US, 0)) {                        \
            if (NEXT.kind##name == SM_OPERATOR_UNKNOWN && bytes_ < PROBE)                          \
                return first_##name arguments;                                                     \
            if (sm_native_count(bytes_))                                                           \
                return rare_##name arguments;                                                      \
        }                                                                                          \
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

EXPORTED int posix_memalign(void **p, size_t alignment, size_t bytes); /* banned: it is made here */
EXPORTED int posix_memalign(void **p, size_t alignment, size_t bytes) { /* banned: likewise */
    if (sm_native_count(bytes))
        return rare_posix_memalign(p, alignment, bytes);
    return NEXT.posix_memalign(p, alignment, bytes);
}

RARE static void *rare_realloc(void *p, size_t bytes, bool counted) {
    uint64_t token = 0;
    struct sm_sampled_place *old = NULL;
    bool sampled = !counted && sm_native_decide(bytes);
    if (p != NULL && sm_sampled_perhaps(p))
        old = sm_sampled_hold(p, &token);
    void *block = NEXT.realloc(p, bytes);
    /* Size 0 frees the block and gives NULL, or an empty block. */
    if (old != NULL && block == NULL && bytes != 0)
        sm_sampled_put(old, p, token);
    else if (old != NULL)
        sm_native_replaced(old, p, token);
    if (sampled && block != NULL)
        sm_native_born(block, bytes);
    return block;
}

EXPORTED void *realloc(void *p, size_t bytes);  /* banned: it is made here */
EXPORTED void *realloc(void *p, size_t bytes) { /* banned: likewise */
    if (sm_native_count(bytes))
        return rare_realloc(p, bytes, false);
    if (sm_sampled_perhaps(p))
        return rare_realloc(p, bytes, true);
    return NEXT.realloc(p, bytes);
}

/* Not handed on as it is: libc's own calls realloc, which would count the block twice. */
EXPORTED void *reallocarray(void *p, size_t n, size_t each);  /* banned: it is made here */
EXPORTED void *reallocarray(void *p, size_t n, size_t each) { /* banned: likewise */
    size_t bytes;
    if (__builtin_mul_overflow(n, each, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(p, bytes); /* banned: our own, which hands on */
}

/* NOLINTEND(bugprone-macro-parentheses) */
