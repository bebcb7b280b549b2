/* Which addresses are sampled.

   Every free of the program asks this table, nearly always for an address that is not in it: that question is
   answered by the filter, one byte load. What is behind it is looked at for sampled blocks and for the filter's
   false alarms only.

   **Layout.** Levels of growing size, each an array of buckets of two cache lines:

     keys[7]    address, 0 free, 1 reserved      overflow: blocks of this home bucket that live on deeper levels
     tokens[7]

   A block lies in its home bucket on some level: in any of the seven places. It goes to the next level only when all are
   taken, and adds one to `overflow` first; who looks for it reads all seven keys and goes deeper only when `overflow`
   is not 0. So nothing is ever moved, there are no tombstones, and no search depends on the state of any
   place but the one that holds the address. That is what makes it simple to argue:

   *A search finds its address.* put(p) happens before take(p), because the program got p from the one and gave
   it to the other. So take(p) sees the key in its place, or, on the way there, an `overflow` that counts p:
   only take(p) itself (or cancel) takes that one off again. Other threads change other places and add and subtract
   their own ones; atomic additions lose none.

   *A place belongs to one.* It is claimed by a compare-and-swap 0 -> reserved, filled, and published by the store
   of the key (release). It is left by a compare-and-swap p -> 0, which only one of two racing frees of the same
   address can win: a program's double free cannot take out a block twice.

   *The filter counts p.* Its counter is raised before p is published and lowered after p has gone. A counter that has
   reached 255 stays there: it no longer tells anything apart, but it cannot come down to 0 while blocks remain.

   **Forks.** All memory is mapped such that a child finds it zeroed, however it was forked (the filter, which is copied,
   then only costs time): a child that is not recorded has no sampled blocks, and a followed one begins anew.

   **Signals.** There is no lock, and no step that another must wait for; a handler that interrupts an operation and
   itself allocates and frees works on other places.

   tests/unit/test_sampled_model.c runs this file under a scheduler that tries all interleavings. */
#include "native/sampled.h"

#include "base/os.h"

/* The model check (see above) replaces these by operations that change threads first. */
#ifndef SM_SAMPLED_MODEL
#define LOAD(p, order) atomic_load_explicit(p, order)
#define STORE(p, x, order) atomic_store_explicit(p, x, order)
#define SWAP_IF(p, expected, x, success, failure)                                                  \
    atomic_compare_exchange_strong_explicit(p, expected, x, success, failure)
#define ADD(p, x, order) atomic_fetch_add_explicit(p, x, order)
#define PLACES 7u
#define LEVELS 6u
#define FIRST_LEVEL_BITS 10u /* buckets: 1024, 16384, ... 2^30 */
#define BITS_A_LEVEL 4u
#endif

#define RESERVED ((uintptr_t)1)

struct sm_sampled_place {
    _Atomic uintptr_t key;
};

struct bucket {
    struct sm_sampled_place keys[PLACES];
    _Atomic uint64_t overflow;
    _Atomic uint64_t tokens[PLACES];
    uint64_t unused;
};

_Atomic uint8_t sm_sampled_filter[1u << SM_SAMPLED_FILTER_BITS];

/* acq_rel when published, acquire when found: the pages are zero, so this orders the address only. */
static struct bucket *_Atomic levels[LEVELS];
static _Atomic uint64_t n_present; /* relaxed: a figure */

static size_t level_buckets(unsigned level) {
    return (size_t)1 << (FIRST_LEVEL_BITS + BITS_A_LEVEL * level);
}

static struct bucket *level_get(unsigned level, bool make) {
    struct bucket *there = LOAD(&levels[level], memory_order_acquire);
    if (there != NULL || !make)
        return there;
    size_t bytes = level_buckets(level) * sizeof(struct bucket);
    struct bucket *fresh = sm_os_map_wiped_on_fork(bytes);
    if (fresh == NULL)
        return NULL;
    if (SWAP_IF(&levels[level], &there, fresh, memory_order_acq_rel, memory_order_acquire))
        return fresh;
    sm_os_unmap(fresh, bytes); /* another thread was faster */
    return there;
}

static inline struct bucket *home(struct bucket *level, unsigned k, uintptr_t p) {
    uint64_t hash = ((uint64_t)p >> 3) * 0x9E3779B97F4A7C15ull;
    return &level[hash >> (64 - FIRST_LEVEL_BITS - BITS_A_LEVEL * k)];
}

/* Where the token of a place stands: buckets are aligned to their size. */
static inline _Atomic uint64_t *token_of(struct sm_sampled_place *place) {
    uintptr_t at = (uintptr_t)place;
    struct bucket *b = (struct bucket *)(at & ~(sizeof(struct bucket) - 1));
    return &b->tokens[place - b->keys];
}

/* ---- filter ---- */

static void filter_raise(uintptr_t p) {
    _Atomic uint8_t *counter = &sm_sampled_filter[sm_sampled_filter_index(p)];
    uint8_t n = LOAD(counter, memory_order_relaxed);
    while (n != UINT8_MAX &&
           !SWAP_IF(counter, &n, (uint8_t)(n + 1), memory_order_relaxed, memory_order_relaxed))
        ;
}

static void filter_lower(uintptr_t p) {
    _Atomic uint8_t *counter = &sm_sampled_filter[sm_sampled_filter_index(p)];
    uint8_t n = LOAD(counter, memory_order_relaxed);
    /* 0 only in a forked child, whose table was wiped, or after a double free. */
    while (n != UINT8_MAX && n != 0 &&
           !SWAP_IF(counter, &n, (uint8_t)(n - 1), memory_order_relaxed, memory_order_relaxed))
        ;
}

/* ---- table ---- */

/* Takes back what a block of level `level` added on its way there. */
static void leave_levels(uintptr_t p, unsigned level) {
    for (unsigned k = 0; k < level; k++)
        /* relaxed: nobody but p's own operations relies on p's share */
        ADD(&home(level_get(k, false), k, p)->overflow, (uint64_t)-1, memory_order_relaxed);
}

bool sm_sampled_setup(void) {
    return level_get(0, true) != NULL;
}

struct sm_sampled_place *sm_sampled_reserve(const void *address) {
    uintptr_t p = (uintptr_t)address;
    for (unsigned k = 0; k < LEVELS; k++) {
        struct bucket *level = level_get(k, true);
        if (level == NULL) {
            leave_levels(p, k);
            return NULL;
        }
        struct bucket *b = home(level, k, p);
        for (unsigned i = 0; i < PLACES; i++) {
            uintptr_t found = LOAD(&b->keys[i].key, memory_order_relaxed);
            /* acquire: pairs with the swap by which the one before left, so that its token store is over */
            if (found == 0 && SWAP_IF(&b->keys[i].key, &found, RESERVED, memory_order_acquire,
                                      memory_order_relaxed)) {
                filter_raise(p);
                return &b->keys[i];
            }
        }
        ADD(&b->overflow, 1, memory_order_relaxed);
    }
    leave_levels(p, LEVELS);
    return NULL;
}

void sm_sampled_put(struct sm_sampled_place *place, const void *p, uint64_t token) {
    STORE(token_of(place), token, memory_order_relaxed);
    ADD(&n_present, 1, memory_order_relaxed);
    /* release: pairs with the acquire in find() */
    STORE(&place->key, (uintptr_t)p, memory_order_release);
}

/* The level of a place that p reserved. */
static unsigned level_of(const struct sm_sampled_place *place) {
    for (unsigned k = 0; k < LEVELS; k++) {
        const struct bucket *level = level_get(k, false);
        uintptr_t from = (uintptr_t)level, at = (uintptr_t)place;
        if (level != NULL && at - from < level_buckets(k) * sizeof(struct bucket))
            return k;
    }
    return 0;
}

void sm_sampled_cancel(struct sm_sampled_place *place, const void *p) {
    leave_levels((uintptr_t)p, level_of(place));
    /* release: pairs with the acquire of the next one's claim */
    STORE(&place->key, 0, memory_order_release);
    filter_lower((uintptr_t)p);
}

/* p's place, its key swapped for `left`, its token and its level; NULL = not there. */
static struct sm_sampled_place *find(uintptr_t p, uintptr_t left, uint64_t *token,
                                     unsigned *level_found) {
    for (unsigned k = 0; k < LEVELS; k++) {
        struct bucket *level = level_get(k, false);
        if (level == NULL)
            return NULL;
        struct bucket *b = home(level, k, p);
        for (unsigned i = 0; i < PLACES; i++) {
            /* acquire: pairs with the release in put() */
            if (LOAD(&b->keys[i].key, memory_order_acquire) != p)
                continue;
            *token = LOAD(&b->tokens[i], memory_order_relaxed);
            uintptr_t expected = p;
            /* release: the token was read before the place is anybody's; relaxed on failure: a double free lost */
            if (!SWAP_IF(&b->keys[i].key, &expected, left, memory_order_acq_rel,
                         memory_order_relaxed))
                return NULL;
            ADD(&n_present, (uint64_t)-1, memory_order_relaxed);
            *level_found = k;
            return &b->keys[i];
        }
        if (LOAD(&b->overflow, memory_order_relaxed) == 0)
            return NULL;
    }
    return NULL;
}

uint64_t sm_sampled_take(const void *p) {
    uint64_t token;
    unsigned level;
    if (find((uintptr_t)p, 0, &token, &level) == NULL)
        return 0;
    leave_levels((uintptr_t)p, level);
    filter_lower((uintptr_t)p);
    return token;
}

struct sm_sampled_place *sm_sampled_hold(const void *p, uint64_t *token) {
    unsigned level;
    return find((uintptr_t)p, RESERVED, token, &level);
}

uint64_t sm_sampled_count(void) {
    return LOAD(&n_present, memory_order_relaxed);
}
