/* Who wrote: owners are repeated at the head of every packet, so equal ones are found by hash and
   kept once. */
#include <stdlib.h>
#include <string.h>

#include "decode/trace_internal.h"

static uint32_t hash_owner(const struct sm_owner *o) {
    uint64_t h = o->stream * 0x9E3779B97F4A7C15ull;
    h = (h ^ o->domain) * 0xD6E8FEB86659FD93ull;
    h = (h ^ h >> 29 ^ o->tid) * 0xD6E8FEB86659FD93ull;
    h = (h ^ h >> 29 ^ o->incarnation ^ (uint64_t)o->kind << 32) * 0xD6E8FEB86659FD93ull;
    h = (h ^ h >> 29 ^ (uintptr_t)o->name) * 0xD6E8FEB86659FD93ull;
    return (uint32_t)(h >> 32);
}

static bool same_owner(const struct sm_owner *a, const struct sm_owner *b) {
    return a->stream == b->stream && a->kind == b->kind && a->domain == b->domain &&
           a->tid == b->tid && a->incarnation == b->incarnation && a->name == b->name;
}

static bool grow(struct sm_owners *o) {
    if (o->n == o->capacity) {
        uint32_t capacity = o->capacity == 0 ? 64 : o->capacity * 2;
        struct sm_owner *list = realloc(o->list, capacity * sizeof *list);
        if (list == NULL)
            return false;
        o->list = list;
        o->capacity = capacity;
    }
    if (o->n * 2 + 2 <= o->slots_capacity)
        return true;
    uint32_t capacity = o->slots_capacity == 0 ? 256 : o->slots_capacity * 2;
    uint32_t *slots = calloc(capacity, sizeof *slots);
    if (slots == NULL)
        return false;
    for (uint32_t i = 0; i < o->n; i++) {
        uint32_t at = hash_owner(&o->list[i]) & (capacity - 1);
        while (slots[at] != 0)
            at = (at + 1) & (capacity - 1);
        slots[at] = i + 1;
    }
    free(o->slots);
    o->slots = slots;
    o->slots_capacity = capacity;
    return true;
}

uint32_t sm_trace_add_owner(struct sm_trace *t, const struct sm_owner *owner) {
    struct sm_owners *o = &t->owners;
    static const char no_name[] = ""; /* one pointer for all: names are compared by pointer */
    struct sm_owner added = *owner;
    added.name = owner->name == NULL || owner->name[0] == 0
                     ? no_name
                     : sm_trace_intern(t, owner->name, strlen(owner->name));
    if (o->slots_capacity != 0)
        for (uint32_t at = hash_owner(&added) & (o->slots_capacity - 1); o->slots[at] != 0;
             at = (at + 1) & (o->slots_capacity - 1))
            if (same_owner(&o->list[o->slots[at] - 1], &added))
                return o->slots[at] - 1;
    if (o->n >= SM_MAX_OWNERS || !grow(o))
        return 0;
    uint32_t at = hash_owner(&added) & (o->slots_capacity - 1);
    while (o->slots[at] != 0)
        at = (at + 1) & (o->slots_capacity - 1);
    o->slots[at] = o->n + 1;
    o->list[o->n] = added;
    return o->n++;
}

void sm_owners_release(struct sm_owners *o) {
    free(o->list);
    free(o->slots);
    memset(o, 0, sizeof *o);
}

uint32_t sm_trace_n_owners(const struct sm_trace *t) {
    return t->owners.n;
}

const struct sm_owner *sm_trace_owner(const struct sm_trace *t, uint32_t index) {
    static const struct sm_owner nobody = {.name = ""};
    return index < t->owners.n ? &t->owners.list[index] : &nobody;
}
