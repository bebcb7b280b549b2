#include "util/arena.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (256u << 10)

struct sm_arena_chunk {
    struct sm_arena_chunk *next;
    size_t bytes;
    _Alignas(16) unsigned char data[];
};

void sm_arena_release(struct sm_arena *a) {
    struct sm_arena_chunk *next;
    for (struct sm_arena_chunk *c = a->chunks; c != NULL; c = next) {
        next = c->next;
        free(c);
    }
    free(a->strings);
    memset(a, 0, sizeof *a);
}

void *sm_arena_alloc(struct sm_arena *a, size_t bytes) {
    if (bytes > SIZE_MAX / 2)
        return NULL;
    bytes = (bytes + 15) & ~(size_t)15;
    if (a->limit_bytes != 0 && bytes > a->limit_bytes - a->total_bytes)
        return NULL;
    if (a->chunks == NULL || a->chunks->bytes - a->used_bytes < bytes) {
        size_t chunk_bytes = bytes > CHUNK_BYTES / 4 ? bytes : CHUNK_BYTES;
        struct sm_arena_chunk *c = malloc(sizeof *c + chunk_bytes);
        if (c == NULL)
            return NULL;
        c->bytes = chunk_bytes;
        if (chunk_bytes == bytes && a->chunks != NULL) {
            /* Large: behind the current chunk, which still has room. */
            c->next = a->chunks->next;
            a->chunks->next = c;
            a->total_bytes += bytes;
            return c->data;
        }
        c->next = a->chunks;
        a->chunks = c;
        a->used_bytes = 0;
    }
    void *p = a->chunks->data + a->used_bytes;
    a->used_bytes += bytes;
    a->total_bytes += bytes;
    return p;
}

char *sm_arena_text(struct sm_arena *a, const void *text, size_t bytes) {
    char *copy = sm_arena_alloc(a, bytes + 1);
    if (copy == NULL)
        return NULL;
    if (bytes > 0)
        memcpy(copy, text, bytes);
    copy[bytes] = 0;
    return copy;
}

static uint32_t hash_bytes(const uint8_t *p, size_t n) {
    uint64_t h = 0x9E3779B97F4A7C15ull ^ n;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = (h ^ word) * 0xD6E8FEB86659FD93ull;
        h ^= h >> 32;
    }
    while (n-- > 0)
        h = (h ^ *p++) * 0x100000001B3ull;
    h = (h ^ h >> 32) * 0xD6E8FEB86659FD93ull;
    return (uint32_t)(h >> 32);
}

static int grow(struct sm_arena *a) {
    size_t capacity = a->strings_capacity == 0 ? 256 : a->strings_capacity * 2;
    struct sm_interned *table = calloc(capacity, sizeof *table);
    if (table == NULL)
        return 0;
    for (size_t i = 0; i < a->strings_capacity; i++) {
        if (a->strings[i].text == NULL)
            continue;
        size_t at = a->strings[i].hash & (capacity - 1);
        while (table[at].text != NULL)
            at = (at + 1) & (capacity - 1);
        table[at] = a->strings[i];
    }
    free(a->strings);
    a->strings = table;
    a->strings_capacity = capacity;
    return 1;
}

const char *sm_arena_intern(struct sm_arena *a, const void *text, size_t bytes) {
    if (bytes >= UINT32_MAX || (a->n_strings * 2 >= a->strings_capacity && !grow(a)))
        return NULL;
    uint32_t hash = hash_bytes(text, bytes);
    size_t at = hash & (a->strings_capacity - 1);
    for (; a->strings[at].text != NULL; at = (at + 1) & (a->strings_capacity - 1)) {
        const struct sm_interned *s = &a->strings[at];
        if (s->hash == hash && s->bytes == bytes && memcmp(s->text, text, bytes) == 0)
            return s->text;
    }
    char *copy = sm_arena_text(a, text, bytes);
    if (copy == NULL)
        return NULL;
    a->strings[at] = (struct sm_interned){copy, (uint32_t)bytes, hash};
    a->n_strings++;
    return copy;
}
