/* The runtime has an index of its own, but it is being rebuilt in the middle of mallocs, which are what we watch: asked from
   there it would answer from freed memory. So this is another one, of the descriptors that the executable's units were
   linked with; they never change.

   A descriptor: 64-bit return address, 16-bit frame size with flags, 16-bit number of live slots, the slots of 16 bits; with flag 2
   a byte n and n lengths of allocations; with flag 1, at a multiple of 4, one 32-bit offset of debug information, or n of them
   with flag 2; the next one begins at a multiple of 8. A frame size of 0xFFFF marks the call from C into OCaml: no flags.

   One thread makes the index; others, and signal handlers, find no descriptors until it is there. */
#include "ocaml/frames.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "unwind/modules.h"

enum { FLAG_DEBUG = 1, FLAG_ALLOCATIONS = 2, FROM_C = 0xFFFF };

/* Open addressing, at most half full. */
struct index {
    const uint8_t **descriptors;
    uint64_t mask;
};

static struct index the_index;
/* 0 nothing yet, 1 being made, 2 there, 3 cannot be had. Release in build, acquire in the look-up. */
static atomic_int state;

static uint16_t u16_at(const uint8_t *p) {
    uint16_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static uintptr_t return_address_of(const uint8_t *descriptor) {
    uintptr_t x;
    memcpy(&x, descriptor, sizeof x);
    return x;
}

static const uint8_t *aligned(const uint8_t *p, uintptr_t to) {
    return (const uint8_t *)(((uintptr_t)p + to - 1) & ~(to - 1));
}

static const uint8_t *next_descriptor(const uint8_t *d) {
    uint16_t frame = u16_at(d + 8);
    const uint8_t *p = d + 12 + 2 * (size_t)u16_at(d + 10);
    if (frame != FROM_C) {
        size_t n = 1;
        if (frame & FLAG_ALLOCATIONS) {
            n = *p;
            p += 1 + n;
        }
        if (frame & FLAG_DEBUG)
            p = aligned(p, 4) + 4 * n;
    }
    return aligned(p, 8);
}

static size_t slot_of(const struct index *x, uintptr_t return_address) {
    return (size_t)(return_address * 0x9E3779B97F4A7C15u >> 20 & x->mask);
}

static bool build(const int64_t *const *frametable) {
    uint64_t n = 0, capacity = 1024;
    for (size_t i = 0; frametable[i] != NULL; i++)
        n += (uint64_t)frametable[i][0];
    if (n > (uint64_t)1 << 32)
        return false;
    while (capacity < 2 * n)
        capacity *= 2;
    const struct sm_module *m = sm_module_at((uintptr_t)frametable);
    if (m == NULL)
        return false;
    void *memory = mmap(NULL, capacity * sizeof(uint8_t *), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    the_index = (struct index){memory, capacity - 1};
    for (size_t i = 0; frametable[i] != NULL; i++) {
        const uint8_t *d = (const uint8_t *)(frametable[i] + 1);
        for (int64_t k = 0; k < frametable[i][0]; k++) {
            uintptr_t return_address = return_address_of(d);
            if (return_address - m->start >= m->end - m->start)
                return false; /* not the layout that we know */
            size_t at = slot_of(&the_index, return_address);
            while (the_index.descriptors[at] != NULL)
                at = (at + 1) & the_index.mask;
            the_index.descriptors[at] = d;
            d = next_descriptor(d);
        }
    }
    return true;
}

const void *sm_ocaml_frame_descriptor(const int64_t *const *frametable, uintptr_t return_address) {
    int now = atomic_load_explicit(&state, memory_order_acquire); /* pairs with the release below */
    if (now == 0 && atomic_compare_exchange_strong_explicit(&state, &now, 1, memory_order_relaxed,
                                                            memory_order_relaxed)) {
        now = build(frametable) ? 2 : 3;
        atomic_store_explicit(&state, now, memory_order_release);
    }
    if (now != 2)
        return NULL;
    for (size_t at = slot_of(&the_index, return_address);; at = (at + 1) & the_index.mask) {
        const uint8_t *d = the_index.descriptors[at];
        if (d == NULL)
            return NULL;
        if (return_address_of(d) == return_address)
            return u16_at(d + 8) != FROM_C ? d : NULL;
    }
}
