/* The sampled objects that are alive, by (stream, seq). Hosted, one thread at a time.

   Objects stand in chunks of 64 neighbours, found by a hash of the chunk's number; a chunk whose objects
   have all died is used again. Memory thus follows the live objects (plus 16 bytes per 64 ever
   made), whatever the numbers of a damaged trace are. */
#ifndef SM_REPORT_OBJECTS_H
#define SM_REPORT_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/map.h"

struct sm_object {
    uint32_t what;         /* the user's: which leaf, domain, ... */
    uint32_t samples : 30; /* or an index in `large` */
    uint32_t is_large : 1;
    uint32_t promoted : 1;
};

#define SM_OBJECTS_RECENT 256

struct sm_objects {
    struct sm_map index; /* (stream, seq / 64) -> chunk, NO_CHUNK when given back */
    struct sm_object_chunk {
        uint64_t present;
        struct sm_object objects[64];
    } * chunks;
    size_t n_chunks, capacity;
    uint32_t *free_chunks;
    size_t n_free, free_capacity;
    uint64_t *large; /* sample counts of 2^30 and more */
    size_t n_large, large_capacity;
    /* Chunks found lately, by the low bits of their key: births go on in one place, deaths in a few
       others. */
    struct {
        uint64_t key; /* UINT64_MAX = none */
        uint32_t chunk;
    } recent[SM_OBJECTS_RECENT];
};

void sm_objects_init(struct sm_objects *o);
void sm_objects_release(struct sm_objects *o);

/* A new object, NULL when it is there already (a damaged trace). Valid until the next addition. */
struct sm_object *sm_objects_add(struct sm_objects *o, uint32_t stream, uint64_t seq, uint32_t what,
                                 uint64_t samples);

/* NULL when there is none. Valid until the next addition. */
struct sm_object *sm_objects_find(struct sm_objects *o, uint32_t stream, uint64_t seq);
void sm_objects_remove(struct sm_objects *o, uint32_t stream, uint64_t seq);
uint64_t sm_object_samples(const struct sm_objects *o, const struct sm_object *object);

#endif
