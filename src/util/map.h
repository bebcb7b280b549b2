/* Hash tables: u64 -> u32, and texts -> dense numbers. Open addressing, at most 3/4 full. Hosted, one
   thread at a time. */
#ifndef SM_UTIL_MAP_H
#define SM_UTIL_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values are below UINT32_MAX. */
struct sm_map {
    struct sm_map_entry {
        uint64_t key;
        uint32_t value; /* + 1; 0 = free */
    } * entries;
    size_t n;
    size_t mask; /* capacity - 1; 0 = nothing allocated */
};

void sm_map_release(struct sm_map *m); /* {0} is an empty map */

/* False when absent. */
bool sm_map_get(const struct sm_map *m, uint64_t key, uint32_t *value);

/* Where the value of `key` is kept, inserted as `fresh` if absent; *found tells which. Valid until the
   next insertion. The stored number is the value + 1. */
uint32_t *sm_map_place(struct sm_map *m, uint64_t key, uint32_t fresh, bool *found);
void sm_map_put(struct sm_map *m, uint64_t key, uint32_t value);

static inline uint64_t sm_mix64(uint64_t x) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    return x;
}

/* Texts, numbered from 0 in order of first sight. Bytes may be any; copies are kept, NUL-terminated. */
struct sm_names {
    struct sm_map map; /* hash -> first number of a chain */
    struct sm_name {
        char *text;
        uint32_t bytes;
        uint32_t next; /* of the same hash; UINT32_MAX = none */
    } * list;
    size_t n, capacity;
};

void sm_names_release(struct sm_names *names);
uint32_t sm_names_number(struct sm_names *names, const void *text, size_t bytes);

#endif
