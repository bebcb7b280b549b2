/* See objects.h. */
#include "report/objects.h"

#include <stdlib.h>
#include <string.h>

#include "util/memory.h"

#define NO_CHUNK (UINT32_MAX - 2)
#define LARGE (1u << 30)

void sm_objects_init(struct sm_objects *o) {
    *o = (struct sm_objects){0};
    for (unsigned i = 0; i < SM_OBJECTS_RECENT; i++)
        o->recent[i].key = UINT64_MAX;
}

void sm_objects_release(struct sm_objects *o) {
    sm_map_release(&o->index);
    free(o->chunks);
    free(o->free_chunks);
    free(o->large);
    sm_objects_init(o);
}

/* Streams are below 2^18 and seqs below 2^36 in sound traces; others may share a key, which mixes up
   objects of a damaged trace but does no harm. */
static uint64_t chunk_key(uint32_t stream, uint64_t seq) {
    return (uint64_t)stream << 40 ^ seq >> 6;
}

static void remember(struct sm_objects *o, uint64_t key, uint32_t number) {
    o->recent[key % SM_OBJECTS_RECENT].key = key;
    o->recent[key % SM_OBJECTS_RECENT].chunk = number;
}

static inline struct sm_object_chunk *find_chunk(struct sm_objects *o, uint64_t key) {
    uint32_t number = o->recent[key % SM_OBJECTS_RECENT].chunk;
    if (key == o->recent[key % SM_OBJECTS_RECENT].key)
        return &o->chunks[number];
    if (!sm_map_get(&o->index, key, &number) || number == NO_CHUNK)
        return NULL;
    remember(o, key, number);
    return &o->chunks[number];
}

static struct sm_object_chunk *make_chunk(struct sm_objects *o, uint64_t key) {
    uint32_t number;
    if (o->n_free > 0) {
        number = o->free_chunks[--o->n_free];
    } else {
        o->chunks = sm_grow(o->chunks, &o->capacity, o->n_chunks + 1, sizeof *o->chunks);
        number = (uint32_t)o->n_chunks++;
    }
    o->chunks[number].present = 0;
    sm_map_put(&o->index, key, number);
    remember(o, key, number);
    return &o->chunks[number];
}

struct sm_object *sm_objects_add(struct sm_objects *o, uint32_t stream, uint64_t seq, uint32_t what,
                                 uint64_t samples) {
    uint64_t key = chunk_key(stream, seq), bit = 1ull << (seq & 63);
    struct sm_object_chunk *chunk = find_chunk(o, key);
    if (chunk == NULL)
        chunk = make_chunk(o, key);
    if (chunk->present & bit)
        return NULL;
    chunk->present |= bit;
    struct sm_object *object = &chunk->objects[seq & 63];
    *object = (struct sm_object){.what = what};
    if (samples < LARGE) {
        object->samples = (uint32_t)samples;
    } else {
        o->large = sm_grow(o->large, &o->large_capacity, o->n_large + 1, sizeof *o->large);
        o->large[o->n_large] = samples;
        object->samples = (uint32_t)o->n_large++;
        object->is_large = 1;
    }
    return object;
}

struct sm_object *sm_objects_find(struct sm_objects *o, uint32_t stream, uint64_t seq) {
    struct sm_object_chunk *chunk = find_chunk(o, chunk_key(stream, seq));
    return chunk != NULL && chunk->present >> (seq & 63) & 1 ? &chunk->objects[seq & 63] : NULL;
}

void sm_objects_remove(struct sm_objects *o, uint32_t stream, uint64_t seq) {
    uint64_t key = chunk_key(stream, seq);
    struct sm_object_chunk *chunk = find_chunk(o, key);
    if (chunk == NULL)
        return;
    chunk->present &= ~(1ull << (seq & 63));
    if (chunk->present != 0)
        return;
    o->free_chunks =
        sm_grow(o->free_chunks, &o->free_capacity, o->n_free + 1, sizeof *o->free_chunks);
    o->free_chunks[o->n_free++] = (uint32_t)(chunk - o->chunks);
    sm_map_put(&o->index, key, NO_CHUNK);
    o->recent[key % SM_OBJECTS_RECENT].key = UINT64_MAX;
}

uint64_t sm_object_samples(const struct sm_objects *o, const struct sm_object *object) {
    return object->is_large ? o->large[object->samples] : object->samples;
}
