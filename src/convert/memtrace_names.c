#include "convert/memtrace_names.h"

#include <stdlib.h>
#include <string.h>

void sm_mt_names_init(struct sm_mt_name_encoder *e) {
    memset(e, 0, sizeof *e);
}

static void file_free(struct sm_mt_name_file *f) {
    for (uint32_t i = 0; i < f->n_functions; i++)
        free(f->functions[i]);
    free(f->name);
    free(f);
}

void sm_mt_names_release(struct sm_mt_name_encoder *e) {
    for (uint32_t i = 0; i < e->n_files; i++)
        file_free(e->files[i]);
    e->n_files = 0;
}

/* Moves entry `i` of a list of pointers to the front; entries before it go one further. */
static void to_front(void **list, uint32_t i) {
    void *x = list[i];
    memmove(list + 1, list, i * sizeof *list);
    list[0] = x;
}

/* Code of the file, which is at the front afterwards; -1: no memory. */
static int file_code(struct sm_mt_name_encoder *e, const char *name) {
    for (uint32_t i = 0; i < e->n_files; i++) {
        if (strcmp(e->files[i]->name, name) == 0) {
            to_front((void **)e->files, i);
            return (int)i;
        }
    }
    struct sm_mt_name_file *f = calloc(1, sizeof *f);
    char *copy = strdup(name);
    if (f == NULL || copy == NULL) {
        free(f);
        free(copy);
        return -1;
    }
    f->name = copy;
    if (e->n_files == SM_MT_MTF_NEW)
        file_free(e->files[--e->n_files]);
    e->files[e->n_files] = f;
    to_front((void **)e->files, e->n_files++);
    return SM_MT_MTF_NEW;
}

static int function_code(struct sm_mt_name_file *f, const char *name) {
    for (uint32_t i = 0; i < f->n_functions; i++) {
        if (strcmp(f->functions[i], name) == 0) {
            to_front((void **)f->functions, i);
            return (int)i;
        }
    }
    char *copy = strdup(name);
    if (copy == NULL)
        return -1;
    if (f->n_functions == SM_MT_MTF_NEW)
        free(f->functions[--f->n_functions]);
    f->functions[f->n_functions] = copy;
    to_front((void **)f->functions, f->n_functions++);
    return SM_MT_MTF_NEW;
}

static uint32_t clamp(uint32_t x, uint32_t limit) {
    return x < limit ? x : limit;
}

static uint8_t *put_text(uint8_t *p, const char *text) {
    size_t n = strlen(text) + 1;
    memcpy(p, text, n);
    return p + n;
}

uint8_t *sm_mt_names_encode(struct sm_mt_name_encoder *e, uint8_t *to, uint64_t code,
                            const struct sm_location *list, uint32_t n) {
    static const struct sm_location unknown = {
        .file = "<unknown>", .function = "??", .line = 1, .start_char = 1, .end_char = 1};
    size_t worst = 9;
    for (uint32_t i = 0; i < n && worst <= SM_MT_LOCATION_BYTES; i++)
        worst += 6 + strlen(list[i].file) + 1 + strlen(list[i].function) + 1;
    if (n > 255 || worst > SM_MT_LOCATION_BYTES) {
        list = &unknown;
        n = 1;
    }
    uint8_t *p = to;
    sm_put_u64le(p, code);
    p[8] = (uint8_t)n;
    p += 9;
    for (uint32_t i = 0; i < n; i++) {
        const struct sm_location *l = &list[i];
        int file = file_code(e, l->file);
        int function = file < 0 ? -1 : function_code(e->files[0], l->function);
        if (function < 0)
            return NULL;
        uint64_t word = clamp(l->line, SM_MT_MAX_LINE) |
                        (uint64_t)clamp(l->start_char, SM_MT_MAX_START_CHAR) << 20 |
                        (uint64_t)clamp(l->end_char, SM_MT_MAX_END_CHAR) << 28 |
                        (uint64_t)file << 38 | (uint64_t)function << 43;
        sm_put_u32le(p, (uint32_t)word);
        sm_put_u16le(p + 4, (uint16_t)(word >> 32));
        p += 6;
        if (file == SM_MT_MTF_NEW)
            p = put_text(p, l->file);
        if (function == SM_MT_MTF_NEW)
            p = put_text(p, l->function);
    }
    return p;
}
