/* Object files that the traced program had mapped, from MODULE records (docs/format.md, section 5.4). Several cursors
   may meet a record; it is kept once, known by a hash of its bytes and time. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "decode/trace_internal.h"

static uint64_t hash_record(const uint8_t *p, const uint8_t *end, uint64_t ticks) {
    uint64_t h = sm_mix64(ticks) ^ (uint64_t)(end - p);
    for (; p < end; p++)
        h = (h ^ *p) * 0x100000001B3ull;
    return h;
}

static bool room(struct sm_modules *m) {
    if (m->n < m->capacity)
        return true;
    uint32_t capacity = m->capacity == 0 ? 32 : m->capacity * 2;
    struct sm_trace_module *list = realloc(m->list, capacity * sizeof *list);
    if (list == NULL)
        return false;
    m->list = list;
    m->capacity = capacity;
    return true;
}

void sm_trace_add_module(struct sm_trace *t, uint64_t ticks, const uint8_t *p, const uint8_t *end) {
    struct sm_modules *m = &t->modules;
    bool found;
    if (m->n >= SM_MAX_TRACE_MODULES || !room(m)) {
        if (m->n_lost++ == 0)
            sm_trace_add_loss(t, SM_LOSS_NAMES, UINT32_MAX, 0, 0, 0, false,
                              "more than %u object files, or no memory for them: further ones are "
                              "not known",
                              m->n);
        return;
    }
    sm_map_place(&m->known, hash_record(p, end, ticks), m->n, &found);
    if (found)
        return;
    struct sm_trace_module *module = &m->list[m->n++];
    *module = (struct sm_trace_module){.mapped = true, .ticks = ticks, .path = ""};
    while (p < end) {
        uint64_t tag, bytes, x = 0;
        if (!sm_get_leb(&p, end, &tag) || !sm_get_leb(&p, end, &bytes) || bytes > (size_t)(end - p))
            break;
        const uint8_t *q = p;
        if (!sm_get_leb(&q, p + bytes, &x))
            x = 0;
        switch (tag) {
        case SM_MODULE_STATE:
            module->mapped = x != 0;
            break;
        case SM_MODULE_START:
            module->start = x;
            break;
        case SM_MODULE_END:
            module->end = x;
            break;
        case SM_MODULE_FILE_OFFSET:
            module->file_offset = x;
            break;
        case SM_MODULE_LOAD_GENERATION:
            module->load_generation = x;
            break;
        case SM_MODULE_BUILD_ID:
            module->build_id = (const uint8_t *)sm_arena_intern(&t->arena, p, (size_t)bytes);
            module->build_id_bytes = module->build_id == NULL ? 0 : (uint32_t)bytes;
            break;
        case SM_MODULE_PATH:
            module->path = sm_trace_intern(t, p, (size_t)bytes);
            break;
        default:
            break; /* of later versions */
        }
        p += bytes;
    }
}

void sm_modules_release(struct sm_modules *m) {
    free(m->list);
    sm_map_release(&m->known);
    memset(m, 0, sizeof *m);
}

uint32_t sm_trace_n_modules(const struct sm_trace *t) {
    return t->modules.n;
}

const struct sm_trace_module *sm_trace_module(const struct sm_trace *t, uint32_t index) {
    static const struct sm_trace_module nothing = {.path = ""};
    return index < t->modules.n ? &t->modules.list[index] : &nothing;
}
