/* Codes are gathered by object file, the objects asked for in parallel (each in one pass, symbols.c), and the answers written in
   the order of codes, so that neighbours share strings. Memory: what the names take, and one record for each unnamed
   code. */
#include "symbols/name_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encode/syms_encoder.h"
#include "util/map.h"
#include "util/memory.h"
#include "util/parallel.h"

#define SYMS_CAPACITY (1u << 20)
#define SYMS_TARGET (128u << 10)
/* Deeper nests of inlined calls are cut; compilers stop earlier. */
#define MAX_FRAMES 64

struct object {
    const struct sm_unnamed *any; /* of this object: path and build-id */
    struct sm_symbol_query *queries;
    uint32_t *ids; /* locations that ask, by the queries' order before they are sorted */
    size_t n, capacity, ids_capacity;
    struct sm_arena arena;
    struct sm_symbols_outcome outcome;
};

struct gathered {
    struct object *list;
    size_t n, capacity;
    struct sm_map by_place; /* hash of path and build-id -> index + chain by linear search */
    const struct sm_symbols_options *options;
};

static uint64_t hash_of(const struct sm_unnamed *u) {
    /* Equal strings of a trace are one string. */
    return sm_mix64((uint64_t)(uintptr_t)u->path) ^ (uint64_t)(uintptr_t)u->build_id;
}

static struct object *object_of(struct gathered *g, const struct sm_unnamed *u) {
    bool found;
    uint32_t *place = sm_map_place(&g->by_place, hash_of(u), (uint32_t)g->n, &found);
    if (found)
        return &g->list[*place - 1];
    g->list = sm_grow(g->list, &g->capacity, g->n + 1, sizeof *g->list);
    g->list[g->n] = (struct object){.any = u};
    return &g->list[g->n++];
}

static void gather(struct gathered *g, const struct sm_trace *trace) {
    uint32_t n = sm_trace_n_locations(trace);
    for (uint32_t id = 0; id < n; id++) {
        const struct sm_location *l;
        if (sm_trace_location(trace, id, &l) != 1 || l->unnamed == NULL)
            continue;
        struct object *o = object_of(g, l->unnamed);
        o->queries = sm_grow(o->queries, &o->capacity, o->n + 1, sizeof *o->queries);
        o->ids = sm_grow(o->ids, &o->ids_capacity, o->n + 1, sizeof *o->ids);
        o->queries[o->n] = (struct sm_symbol_query){.offset = l->unnamed->offset};
        o->ids[o->n++] = id;
    }
}

static size_t bytes_of(const char *hex, uint8_t *out, size_t room) {
    size_t n = 0;
    for (; hex[0] != 0 && hex[1] != 0 && n < room; hex += 2) {
        const char digits[3] = {hex[0], hex[1], 0};
        out[n++] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return n;
}

static void resolve(void *ctx, unsigned task) {
    struct gathered *g = ctx;
    struct object *o = &g->list[task];
    uint8_t build_id[64];
    size_t build_id_bytes = bytes_of(o->any->build_id, build_id, sizeof build_id);
    if (o->any->path[0] == 0) {
        snprintf(o->outcome.why, sizeof o->outcome.why, "%s",
                 "the code lies in no object file: it was made at run time");
        return;
    }
    sm_symbols_resolve(g->options, o->any->path, build_id, build_id_bytes, o->queries, o->n,
                       &o->arena, &o->outcome);
}

/* ---- writing ---- */

struct writer {
    struct sm_syms_encoder encoder;
    uint8_t *buf;
    sm_put_names_fn *put;
    void *to;
};

static enum sm_status flush(struct writer *w, struct sm_error *err) {
    enum sm_status status = SM_OK;
    if (w->encoder.n_records > 0)
        status = w->put(w->to, w->buf, (uint32_t)w->encoder.used, w->encoder.n_records, err);
    sm_syms_encoder_begin(&w->encoder, w->buf, SYMS_CAPACITY);
    return status;
}

static enum sm_status write_one(struct writer *w, uint64_t code, const struct sm_unnamed *u,
                                const struct sm_symbol_query *q, struct sm_error *err) {
    struct sm_source_location all[MAX_FRAMES];
    uint32_t n = q->n_frames < MAX_FRAMES ? q->n_frames : MAX_FRAMES;
    for (uint32_t i = 0; i < n; i++) {
        const struct sm_symbol_frame *f = &q->frames[i];
        const char *file = f->file != NULL ? f->file : u->path;
        all[i] = (struct sm_source_location){
            .file = file,
            .file_bytes = strlen(file),
            .function = f->function,
            .function_bytes = strlen(f->function),
            .line = f->file != NULL ? f->line : 0,
            .end_line = f->file != NULL ? f->line : 0,
            .flags = (uint8_t)(SM_SYMS_NATIVE | SM_SYMS_NO_COLUMNS |
                               (f->file != NULL ? 0 : SM_SYMS_NO_DEBUG))};
    }
    if (w->encoder.used >= SYMS_TARGET && flush(w, err) != SM_OK)
        return SM_FAILED;
    if (sm_syms_encode(&w->encoder, code, all, n))
        return SM_OK;
    if (flush(w, err) != SM_OK)
        return SM_FAILED;
    sm_syms_encode(&w->encoder, code, all, n); /* an empty packet takes any record */
    return SM_OK;
}

/* An answer and the location that it belongs to. */
struct answer {
    uint64_t code;
    const struct sm_unnamed *unnamed;
    const struct sm_symbol_query *query;
};

static int by_code(const void *a, const void *b) {
    const struct answer *x = a, *y = b;
    return (x->code > y->code) - (x->code < y->code);
}

static int by_query(const void *a, const void *b) {
    const struct sm_symbol_query *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static enum sm_status write_all(const struct gathered *g, const struct sm_trace *trace,
                                sm_put_names_fn *put, void *to, struct sm_error *err) {
    size_t n = 0, room = 0;
    for (size_t i = 0; i < g->n; i++)
        room += g->list[i].outcome.n_named > 0 ? g->list[i].n : 0;
    struct answer *answers = sm_alloc_zero(room + 1, sizeof *answers);
    for (size_t i = 0; i < g->n; i++) {
        const struct object *o = &g->list[i];
        for (size_t k = 0; o->outcome.n_named > 0 && k < o->n; k++) {
            const struct sm_location *l;
            sm_trace_location(trace, o->ids[k], &l);
            const struct sm_symbol_query wanted = {.offset = l->unnamed->offset};
            const struct sm_symbol_query *q =
                bsearch(&wanted, o->queries, o->n, sizeof *o->queries, by_query);
            if (q != NULL && q->n_frames > 0)
                answers[n++] =
                    (struct answer){sm_trace_location_code(trace, o->ids[k]), l->unnamed, q};
        }
    }
    qsort(answers, n, sizeof *answers, by_code);
    struct writer *w = sm_alloc_zero(1, sizeof *w);
    w->buf = sm_alloc(SYMS_CAPACITY);
    w->put = put;
    w->to = to;
    sm_syms_encoder_begin(&w->encoder, w->buf, SYMS_CAPACITY);
    enum sm_status status = SM_OK;
    for (size_t i = 0; i < n && status == SM_OK; i++)
        status = write_one(w, answers[i].code, answers[i].unnamed, answers[i].query, err);
    if (status == SM_OK)
        status = flush(w, err);
    free(w->buf);
    free(w);
    free(answers);
    return status;
}

static int most_codes_first(const void *a, const void *b) {
    const struct sm_named_object *x = a, *y = b;
    if (x->n_codes != y->n_codes)
        return x->n_codes < y->n_codes ? 1 : -1;
    return strcmp(x->path, y->path);
}

enum sm_status sm_naming_add(void *naming, const struct sm_trace *trace, sm_put_names_fn *put,
                             void *to, struct sm_error *err) {
    struct sm_naming *n = naming;
    struct gathered g = {.options = &n->options};
    gather(&g, trace);
    sm_parallel((unsigned)g.n, 0, resolve, &g);
    n->objects = sm_alloc_zero(g.n + 1, sizeof *n->objects);
    for (size_t i = 0; i < g.n; i++) {
        const struct object *o = &g.list[i];
        struct sm_named_object *out = &n->objects[n->n_objects++];
        out->path = sm_strdup(o->any->path);
        out->build_id = sm_strdup(o->any->build_id);
        out->n_codes = o->n;
        out->n_named = o->outcome.n_named;
        out->source = o->outcome.source;
        memcpy(out->why, o->outcome.why, sizeof out->why);
        n->n_codes += out->n_codes;
        n->n_named += out->n_named;
    }
    qsort(n->objects, n->n_objects, sizeof *n->objects, most_codes_first);
    enum sm_status status = n->n_named > 0 ? write_all(&g, trace, put, to, err) : SM_OK;
    for (size_t i = 0; i < g.n; i++) {
        free(g.list[i].queries);
        free(g.list[i].ids);
        sm_arena_release(&g.list[i].arena);
    }
    free(g.list);
    sm_map_release(&g.by_place);
    return status;
}

void sm_naming_release(struct sm_naming *n) {
    for (size_t i = 0; i < n->n_objects; i++) {
        free(n->objects[i].path);
        free(n->objects[i].build_id);
    }
    free(n->objects);
    n->objects = NULL;
    n->n_objects = 0;
}
