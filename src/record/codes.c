/* The set of location codes whose names have been written in this session.

   Consulted once per location and packet, from all threads: an insert-only hash set without locks. It
   is a chain of tables of doubling size; a code is looked for in at most PROBES places of each, and lands in the
   first empty one. A place once taken never changes, so a code that found a table's places taken will find
   them taken for ever, and every thread walks the same way: exactly one of two threads wins the compare-and-
   swap, the other sees its code there. When the chain ends the code counts as seen: a name is missing then, nothing else. */
#include "record/internal.h"

#include <string.h>

#define PROBES 32u
#define TABLES 14u
#define FIRST_BITS 12u

static _Atomic(uint64_t *) tables[TABLES];

static size_t table_bytes(uint32_t k) {
    return sizeof(uint64_t) << (FIRST_BITS + k);
}

bool sm_codes_begin(void) {
    /* Nobody else is about: no session is active. */
    for (uint32_t k = 0; k < TABLES; k++) {
        uint64_t *table = atomic_exchange_explicit(&tables[k], NULL, memory_order_relaxed);
        sm_os_unmap(table, table_bytes(k));
    }
    return true;
}

void sm_codes_forget(void) {
    for (uint32_t k = 0; k < TABLES; k++)
        atomic_store_explicit(&tables[k], NULL, memory_order_relaxed);
}

static uint64_t *table_get(uint32_t k) {
    /* acquire: pairs with the publication below; the pages are zero anyway */
    uint64_t *table = atomic_load_explicit(&tables[k], memory_order_acquire);
    if (table != NULL)
        return table;
    uint64_t *fresh = sm_os_map(table_bytes(k));
    if (fresh == NULL)
        return NULL;
    if (atomic_compare_exchange_strong_explicit(&tables[k], &table, fresh, memory_order_acq_rel,
                                                memory_order_acquire))
        return fresh;
    sm_os_unmap(fresh, table_bytes(k));
    return table;
}

bool sm_codes_first_sight(uint64_t code) {
    uint64_t hash = code * 0x9E3779B97F4A7C15ull;
    for (uint32_t k = 0; k < TABLES; k++) {
        uint64_t *table = table_get(k);
        if (table == NULL)
            return false;
        uint32_t bits = FIRST_BITS + k;
        uint64_t mask = (1ull << bits) - 1;
        uint64_t at = hash >> (64 - bits);
        for (uint32_t i = 0; i < PROBES; i++) {
            uint64_t *place = &table[(at + i) & mask];
            /* relaxed: the code itself is all there is to know */
            uint64_t found = __atomic_load_n(place, __ATOMIC_RELAXED);
            if (found == 0 && __atomic_compare_exchange_n(place, &found, code, false,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                return true;
            if (found == code)
                return false;
        }
    }
    return false;
}
