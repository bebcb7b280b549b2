/* See texts.h. */
#include "analyze/texts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"

void sm_texts_init(struct sm_texts *t) {
    memset(t, 0, sizeof *t);
    sm_texts_add_bytes(t, "", 0); /* id 0 */
}

void sm_texts_release(struct sm_texts *t) {
    sm_names_release(&t->names);
    free(t->offsets);
    sm_vec_release(&t->blob);
}

sm_text_id sm_texts_add_bytes(struct sm_texts *t, const char *text, size_t bytes) {
    /* The blob's offsets are 32 bits wide; the reader keeps at most 2 GiB of names. */
    if (t->blob.used_bytes + bytes + 1 > UINT32_MAX)
        return 0;
    uint32_t number = sm_names_number(&t->names, text, bytes);
    if (number < t->n_offsets)
        return t->offsets[number];
    t->offsets = sm_grow(t->offsets, &t->offsets_capacity, number + 1, sizeof *t->offsets);
    t->n_offsets = number + 1;
    uint32_t at = (uint32_t)t->blob.used_bytes;
    char *to = sm_vec_push(&t->blob, bytes + 1);
    memcpy(to, text, bytes);
    to[bytes] = 0;
    return t->offsets[number] = at;
}

sm_text_id sm_texts_add(struct sm_texts *t, const char *text) {
    return sm_texts_add_bytes(t, text, strlen(text));
}

static size_t copy(char *to, size_t to_bytes, const char *from, size_t bytes) {
    if (bytes >= to_bytes)
        bytes = to_bytes - 1;
    memcpy(to, from, bytes);
    to[bytes] = 0;
    return bytes;
}

/* Bytes of the dotted prefix whose components begin with a capital: 11 in "Stdlib.List.map.(fun)". */
static size_t ocaml_modules(const char *name) {
    size_t end = 0;
    for (const char *at = name; isupper((unsigned char)*at);) {
        size_t n = 0;
        while (isalnum((unsigned char)at[n]) || at[n] == '_' || at[n] == '\'')
            n++;
        if (at[n] != '.')
            break; /* a constructor or a module without a member */
        end = (size_t)(at - name) + n;
        at += n + 1;
    }
    return end;
}

size_t sm_module_of(const char *name, const char *file, char *to, size_t to_bytes) {
    size_t n = strlen(file), modules = ocaml_modules(name);
    if (n > 2 && file[0] == '[' && file[n - 1] == ']')
        return copy(to, to_bytes, file + 1, n - 2);
    if (modules > 0)
        return copy(to, to_bytes, name, modules);
    const char *base = strrchr(file, '/');
    base = base == NULL ? file : base + 1;
    const char *dot = strrchr(base, '.');
    n = copy(to, to_bytes, base, dot == NULL || dot == base ? strlen(base) : (size_t)(dot - base));
    if (n > 0)
        to[0] = (char)toupper((unsigned char)to[0]);
    return n;
}

static uint32_t function(struct sm_places *p, const char *name, const char *file, uint32_t flags) {
    sm_text_id name_id = sm_texts_add(p->texts, name), file_id = sm_texts_add(p->texts, file);
    bool found;
    uint32_t fresh = (uint32_t)(p->functions.used_bytes / sizeof(struct sm_function));
    uint32_t *place =
        sm_map_place(&p->function_numbers, name_id | (uint64_t)file_id << 32, fresh, &found);
    if (found)
        return *place - 1;
    char module[256];
    size_t bytes = flags & SM_FUNCTION_PSEUDO ? 0 : sm_module_of(name, file, module, sizeof module);
    struct sm_function f = {.name = name_id,
                            .file = file_id,
                            .module = sm_texts_add_bytes(p->texts, module, bytes),
                            .flags = flags};
    *(struct sm_function *)sm_vec_push(&p->functions, sizeof f) = f;
    return fresh;
}

static uint32_t frame(struct sm_places *p, const struct sm_frame *f) {
    uint64_t h = sm_mix64(f->function | (uint64_t)f->line << 32);
    h = sm_mix64(h ^ (f->end_line | (uint64_t)f->start_char << 32));
    h = sm_mix64(h ^ f->end_char);
    bool found;
    uint32_t fresh = (uint32_t)(p->frames.used_bytes / sizeof *f), next = UINT32_MAX;
    uint32_t *place = sm_map_place(&p->frame_numbers, h, fresh, &found);
    if (found) {
        const struct sm_frame *frames = p->frames.data;
        const uint32_t *nexts = p->frame_next.data;
        for (uint32_t i = *place - 1; i != UINT32_MAX; i = nexts[i]) {
            if (memcmp(&frames[i], f, sizeof *f) == 0)
                return i;
        }
        next = *place - 1;
        *place = fresh + 1;
    }
    *(struct sm_frame *)sm_vec_push(&p->frames, sizeof *f) = *f;
    sm_vec_push_u32(&p->frame_next, next);
    return fresh;
}

uint32_t sm_places_pseudo(struct sm_places *p, const char *name) {
    struct sm_frame f = {.function = function(p, name, "", SM_FUNCTION_PSEUDO)};
    return frame(p, &f);
}

void sm_places_init(struct sm_places *p, struct sm_texts *texts) {
    memset(p, 0, sizeof *p);
    p->texts = texts;
    sm_places_pseudo(p, "(all)");
}

void sm_places_release(struct sm_places *p) {
    sm_map_release(&p->function_numbers);
    sm_map_release(&p->frame_numbers);
    sm_vec_release(&p->functions);
    sm_vec_release(&p->frames);
    sm_vec_release(&p->frame_next);
    sm_vec_release(&p->list);
    free(p->first);
}

static uint32_t nameless(struct sm_places *p, uint64_t code) {
    char name[32];
    if (code == SM_LOCATION_CUT)
        return sm_places_pseudo(p, "(frames cut)");
    snprintf(name, sizeof name, "0x%llx", (unsigned long long)code);
    struct sm_frame f = {.function = function(p, name, "", 0)};
    return frame(p, &f);
}

void sm_places_of_trace(struct sm_places *p, const struct sm_trace *t) {
    uint32_t n = sm_trace_n_locations(t);
    p->n_locations = n;
    p->first = sm_alloc_zero((size_t)n + 1, sizeof *p->first);
    for (uint32_t id = 0; id < n; id++) {
        const struct sm_location *list;
        uint32_t k = sm_trace_location(t, id, &list);
        for (uint32_t i = 0; i < k; i++) {
            const struct sm_location *l = &list[i];
            const char *name = l->function[0] != 0 ? l->function : "?";
            struct sm_frame f = {.function = function(p, name, l->file, l->flags),
                                 .line = l->line,
                                 .end_line = l->end_line,
                                 .start_char = l->start_char,
                                 .end_char = l->end_char};
            sm_vec_push_u32(&p->list, frame(p, &f));
        }
        if (k == 0)
            sm_vec_push_u32(&p->list, nameless(p, sm_trace_location_code(t, id)));
        p->first[id + 1] = (uint32_t)(p->list.used_bytes / sizeof(uint32_t));
    }
}
