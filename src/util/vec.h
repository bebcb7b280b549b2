/* Large growing arrays in their own mappings: they grow without copying, give memory back at once, and can
   lie in an unlinked file, so that the kernel may write them out when memory is short. Hosted, one
   thread at a time. */
#ifndef SM_UTIL_VEC_H
#define SM_UTIL_VEC_H

#include <stddef.h>
#include <stdint.h>

struct sm_vec {
    void *data;
    size_t used_bytes, capacity_bytes;
    int fd; /* + 1; 0 = anonymous memory */
};

/* directory: where the file lies; NULL = memory. When no file can be made there, memory is used. */
void sm_vec_init(struct sm_vec *v, const char *directory);
void sm_vec_release(struct sm_vec *v); /* {0} is an empty vector in memory */

void sm_vec_reserve(struct sm_vec *v, size_t bytes); /* capacity; sm_memory's handler on failure */

/* Where the next `bytes` go; they count as used. */
static inline void *sm_vec_push(struct sm_vec *v, size_t bytes) {
    size_t at = v->used_bytes;
    if (__builtin_expect(at + bytes > v->capacity_bytes, 0))
        sm_vec_reserve(v, at + bytes);
    v->used_bytes = at + bytes;
    return (char *)v->data + at;
}

static inline void sm_vec_push_u32(struct sm_vec *v, uint32_t x) {
    *(uint32_t *)sm_vec_push(v, sizeof x) = x;
}

static inline void sm_vec_push_u64(struct sm_vec *v, uint64_t x) {
    *(uint64_t *)sm_vec_push(v, sizeof x) = x;
}

#endif
