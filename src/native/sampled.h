/* The sampled blocks that are alive: address to token. Hook-safe, lock-free, safe in signal handlers, any number of
   threads. sampled.c begins with the argument.

   One contract: operations on the *same* address do not overlap. The program's allocator sees to that, as long as an address
   is taken out before the block is given back to it, and put in after it was handed out. A program that breaks it
   (a double free) gets a wrong answer at most. */
#ifndef SM_NATIVE_SAMPLED_H
#define SM_NATIVE_SAMPLED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the filter ----
   For each address one of 65536 counters: 0 = no block with such an address is in the table. It may say "perhaps"
   wrongly, never "no". Neighbouring addresses have neighbouring counters, so that a program which frees
   neighbouring blocks finds them in its cache: one line for 1 KiB of heap. */
#define SM_SAMPLED_FILTER_BITS 16
extern _Atomic uint8_t sm_sampled_filter[1u << SM_SAMPLED_FILTER_BITS]
    __attribute__((visibility("hidden")));

static inline size_t sm_sampled_filter_index(uintptr_t address) {
    return (uint16_t)(address >> 4 ^ address >> 20);
}

/* relaxed: the block's own way from malloc to free orders this load behind the increment (sampled.c) */
static inline bool sm_sampled_perhaps(const void *p) {
    return __builtin_expect(
        atomic_load_explicit(&sm_sampled_filter[sm_sampled_filter_index((uintptr_t)p)],
                             memory_order_relaxed) != 0,
        0);
}

/* ---- the table ---- */

struct sm_sampled_place; /* NULL = none */

/* Call once before the first use; false = no memory. */
bool sm_sampled_setup(void);

/* A place for `address`, which must not be in the table; NULL = no memory. Must be followed by sm_sampled_put, or by
   sm_sampled_cancel of the same address. */
struct sm_sampled_place *sm_sampled_reserve(const void *address);
void sm_sampled_put(struct sm_sampled_place *place, const void *p, uint64_t token);
void sm_sampled_cancel(struct sm_sampled_place *place, const void *p);

/* Takes `p` out; its token, or 0 when it is not there. */
uint64_t sm_sampled_take(const void *p);

/* Takes `p` out, but keeps its place: for a realloc whose end is not known yet. Then either sm_sampled_put puts it
   back, which cannot fail, or sm_sampled_cancel ends it. NULL = not there. */
struct sm_sampled_place *sm_sampled_hold(const void *p, uint64_t *token);

/* Blocks in the table; a moment's figure. */
uint64_t sm_sampled_count(void);

#endif
