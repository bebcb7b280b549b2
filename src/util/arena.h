/* Memory that is given back all at once, and interned strings in it. Hosted; not thread-safe. */
#ifndef SM_UTIL_ARENA_H
#define SM_UTIL_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct sm_arena {
    struct sm_arena_chunk *chunks;
    size_t used_bytes;  /* of the first chunk */
    size_t total_bytes; /* given out so far */
    size_t limit_bytes; /* 0 = none; beyond it every request fails */

    /* Interned strings: open addressing, at most half full. */
    struct sm_interned {
        const char *text; /* NULL = free */
        uint32_t bytes;
        uint32_t hash;
    } * strings;
    size_t n_strings;
    size_t strings_capacity; /* a power of two, or 0 */
};

/* A zeroed arena is an empty one. */
void sm_arena_release(struct sm_arena *a);

/* Memory aligned for any type, not cleared; NULL when there is none or the limit is reached. */
void *sm_arena_alloc(struct sm_arena *a, size_t bytes);

/* A copy ended by NUL; NULL as above. */
char *sm_arena_text(struct sm_arena *a, const void *text, size_t bytes);

/* The same, but equal strings give the same pointer, so that pointers can be compared. */
const char *sm_arena_intern(struct sm_arena *a, const void *text, size_t bytes);

#endif
