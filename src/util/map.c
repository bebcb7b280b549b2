/* See map.h. */
#include "util/map.h"

#include <stdlib.h>
#include <string.h>

#include "util/memory.h"

void sm_map_release(struct sm_map *m) {
    free(m->entries);
    *m = (struct sm_map){0};
}

static struct sm_map_entry *slot(const struct sm_map *m, uint64_t key) {
    size_t i = sm_mix64(key) & m->mask;
    while (m->entries[i].value != 0 && m->entries[i].key != key)
        i = (i + 1) & m->mask;
    return &m->entries[i];
}

static void enlarge(struct sm_map *m) {
    struct sm_map old = *m;
    size_t capacity = old.mask ? 2 * (old.mask + 1) : 64;
    m->entries = sm_alloc_zero(capacity, sizeof *m->entries);
    m->mask = capacity - 1;
    for (size_t i = 0; old.mask > 0 && i <= old.mask; i++) {
        if (old.entries[i].value != 0)
            *slot(m, old.entries[i].key) = old.entries[i];
    }
    free(old.entries);
}

bool sm_map_get(const struct sm_map *m, uint64_t key, uint32_t *value) {
    if (m->mask == 0)
        return false;
    const struct sm_map_entry *e = slot(m, key);
    if (e->value == 0)
        return false;
    *value = e->value - 1;
    return true;
}

uint32_t *sm_map_place(struct sm_map *m, uint64_t key, uint32_t fresh, bool *found) {
    if (m->mask == 0 || m->n >= (m->mask + 1) / 4 * 3)
        enlarge(m);
    struct sm_map_entry *e = slot(m, key);
    *found = e->value != 0;
    if (!*found) {
        *e = (struct sm_map_entry){.key = key, .value = fresh + 1};
        m->n++;
    }
    return &e->value;
}

void sm_map_put(struct sm_map *m, uint64_t key, uint32_t value) {
    bool found;
    *sm_map_place(m, key, value, &found) = value + 1;
}

void sm_names_release(struct sm_names *names) {
    for (size_t i = 0; i < names->n; i++)
        free(names->list[i].text);
    free(names->list);
    sm_map_release(&names->map);
    *names = (struct sm_names){0};
}

uint32_t sm_names_number(struct sm_names *names, const void *text, size_t bytes) {
    uint64_t hash = bytes;
    const unsigned char *p = text;
    size_t i = 0;
    for (; i + 8 <= bytes; i += 8) {
        uint64_t word;
        memcpy(&word, p + i, 8);
        hash = sm_mix64(hash ^ word) * 0x9e3779b97f4a7c15u;
    }
    for (; i < bytes; i++)
        hash = (hash ^ p[i]) * 0x100000001b3u;
    bool found;
    uint32_t *head = sm_map_place(&names->map, hash, (uint32_t)names->n, &found);
    uint32_t next = UINT32_MAX;
    if (found) {
        next = *head - 1;
        for (uint32_t k = next; k != UINT32_MAX; k = names->list[k].next) {
            if (names->list[k].bytes == bytes && memcmp(names->list[k].text, text, bytes) == 0)
                return k;
        }
        *head = (uint32_t)names->n + 1;
    }
    names->list = sm_grow(names->list, &names->capacity, names->n + 1, sizeof *names->list);
    char *copy = sm_alloc(bytes + 1);
    if (bytes > 0)
        memcpy(copy, text, bytes);
    copy[bytes] = 0;
    names->list[names->n] = (struct sm_name){.text = copy, .bytes = (uint32_t)bytes, .next = next};
    return (uint32_t)names->n++;
}
