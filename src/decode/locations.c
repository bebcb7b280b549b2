/* Location codes to dense ids, and ids to source locations. The hash is asked once per location and
   packet, not per frame, yet traces of large programs ask millions of times: one multiply, linear probing, code
   and id side by side. */
#include <stdlib.h>
#include <string.h>

#include "decode/trace_internal.h"

static size_t slot_of(uint64_t code, uint32_t capacity) {
    uint64_t h = code * 0x9E3779B97F4A7C15ull;
    return (size_t)((h ^ h >> 32) & (capacity - 1));
}

uint32_t sm_locations_find(const struct sm_location_slot *slots, uint32_t capacity, uint64_t code) {
    if (capacity == 0)
        return UINT32_MAX;
    size_t at = slot_of(code, capacity);
    for (; slots[at].id_plus_1 != 0; at = (at + 1) & (capacity - 1))
        if (slots[at].code == code)
            return slots[at].id_plus_1 - 1;
    return UINT32_MAX;
}

static bool grow_slots(struct sm_locations *l) {
    uint32_t capacity = l->slots_capacity == 0 ? 1024 : l->slots_capacity * 2;
    struct sm_location_slot *slots = calloc(capacity, sizeof *slots);
    if (slots == NULL)
        return false;
    for (uint32_t id = 0; id < l->n; id++) {
        size_t at = slot_of(l->codes[id], capacity);
        while (slots[at].id_plus_1 != 0)
            at = (at + 1) & (capacity - 1);
        slots[at] = (struct sm_location_slot){l->codes[id], id + 1};
    }
    free(l->slots);
    l->slots = slots;
    l->slots_capacity = capacity;
    return true;
}

static bool grow_entries(struct sm_locations *l) {
    uint32_t capacity = l->capacity == 0 ? 512 : l->capacity * 2;
    uint64_t *codes = realloc(l->codes, capacity * sizeof *codes);
    if (codes == NULL)
        return false;
    l->codes = codes;
    struct sm_location_entry *entries = realloc(l->entries, capacity * sizeof *entries);
    if (entries == NULL)
        return false;
    l->entries = entries;
    l->capacity = capacity;
    return true;
}

uint32_t sm_locations_intern(struct sm_trace *t, uint64_t code) {
    struct sm_locations *l = &t->locations;
    uint32_t known = sm_locations_find(l->slots, l->slots_capacity, code);
    if (known != UINT32_MAX)
        return known;
    if (l->n >= SM_MAX_LOCATIONS ||
        ((uint64_t)l->n * 2 + 2 > l->slots_capacity && !grow_slots(l)) ||
        (l->n == l->capacity && !grow_entries(l))) {
        if (l->overflowed++ == 0)
            sm_trace_add_loss(
                t, SM_LOSS_NAMES, UINT32_MAX, 0, 0, 1, false,
                "more than %u locations, or no memory for them: further ones are shown as one",
                l->n);
        return 0;
    }
    size_t at = slot_of(code, l->slots_capacity);
    while (l->slots[at].id_plus_1 != 0)
        at = (at + 1) & (l->slots_capacity - 1);
    uint32_t id = l->n++;
    l->slots[at] = (struct sm_location_slot){code, id + 1};
    l->codes[id] = code;
    l->entries[id] = (struct sm_location_entry){NULL, 0, false};
    return id;
}

static bool same_location(const struct sm_location *a, const struct sm_location *b) {
    return a->file == b->file && a->function == b->function && a->line == b->line &&
           a->end_line == b->end_line && a->start_char == b->start_char &&
           a->end_char == b->end_char && a->flags == b->flags;
}

enum sm_announced sm_locations_set(struct sm_trace *t, uint32_t id, const struct sm_location *list,
                                   uint32_t n) {
    if (id >= t->locations.n)
        return SM_ANNOUNCED_NO_ROOM;
    struct sm_location_entry *e = &t->locations.entries[id];
    bool was_unnamed = e->known && e->n == 1 && e->list[0].unnamed != NULL;
    bool is_unnamed = n == 1 && list[0].unnamed != NULL;
    if (e->known && !was_unnamed && is_unnamed)
        return SM_ANNOUNCED_SAME; /* names count, wherever they stand */
    if (e->known && was_unnamed == is_unnamed) {
        if (e->n != n)
            return SM_ANNOUNCED_DIFFERENT;
        for (uint32_t i = 0; i < n; i++)
            if (!same_location(&e->list[i], &list[i]))
                return SM_ANNOUNCED_DIFFERENT;
        return SM_ANNOUNCED_SAME;
    }
    if (n > 0) {
        struct sm_location *copy = sm_arena_alloc(&t->arena, n * sizeof *copy);
        if (copy == NULL)
            return SM_ANNOUNCED_NO_ROOM;
        memcpy(copy, list, n * sizeof *copy);
        e->list = copy;
    }
    e->n = n;
    e->known = true;
    return SM_ANNOUNCED_NEW;
}

void sm_locations_release(struct sm_locations *l) {
    free(l->slots);
    free(l->codes);
    free(l->entries);
    memset(l, 0, sizeof *l);
}

uint32_t sm_trace_n_locations(const struct sm_trace *t) {
    return t->locations.n;
}

uint64_t sm_trace_location_code(const struct sm_trace *t, uint32_t id) {
    return id < t->locations.n ? t->locations.codes[id] : 0;
}

uint32_t sm_trace_location(const struct sm_trace *t, uint32_t id, const struct sm_location **list) {
    if (id >= t->locations.n) {
        *list = NULL;
        return 0;
    }
    *list = t->locations.entries[id].list;
    return t->locations.entries[id].n;
}
