/* Into memtrace's formats. Events come in the merged order, so the exact order of the file is that of the
   events. Objects get new ids; which, is remembered in pages of a table keyed by (stream, seq). */
#include <stdlib.h>
#include <string.h>

#include "convert/convert_internal.h"
#include "convert/ctf_dir.h"
#include "merge/cursor.h"
#include "util/map.h"
#include "util/memory.h"

#define PAGE_OBJECTS 4096u
#define LAST_DOMAIN 65534u

/* The file's id of an object and its domain: id << 16 | domain + 1; 0 = none. */
struct objects {
    struct sm_map pages; /* (stream << 36 | seq) / PAGE_OBJECTS -> page */
    uint64_t **list;
    size_t n, capacity;
    uint64_t last_key; /* the page found last */
    uint64_t *last;
};

static uint64_t *object(struct objects *o, uint32_t stream, uint64_t seq) {
    uint64_t key = ((uint64_t)stream << 36 | (seq & (SM_MAX_SEQ - 1))) / PAGE_OBJECTS;
    if (o->last == NULL || o->last_key != key) {
        bool found;
        uint32_t *place = sm_map_place(&o->pages, key, (uint32_t)o->n, &found);
        uint32_t page = *place - 1;
        if (!found) {
            if (o->n == o->capacity)
                o->list = sm_grow(o->list, &o->capacity, o->n + 1, sizeof *o->list);
            o->list[o->n++] = sm_alloc_zero(PAGE_OBJECTS, sizeof **o->list);
        }
        o->last = o->list[page];
        o->last_key = key;
    }
    return &o->last[seq % PAGE_OBJECTS];
}

struct target {
    struct sm_trace *t;
    struct sm_memtrace_writer *w;
    struct sm_convert_result *r;
    struct sm_map ids; /* location code -> id in the trace */
    uint64_t cut_code; /* stands for frames that were cut */
    struct objects objects;
    uint32_t word_bytes;
    bool one_domain;       /* version 2 has no others */
    struct sm_map domains; /* domain -> its number in the file */
    uint32_t next_number;  /* none above is free */
    bool taken[LAST_DOMAIN + 1];
};

static const struct sm_location cut_location = {
    .file = "<statmem>", .function = "[frames cut]", .line = 1, .end_line = 1};

static uint32_t locate(void *ctx, uint64_t code, const struct sm_location **list) {
    const struct target *x = ctx;
    uint32_t id;
    if (code == x->cut_code) {
        *list = &cut_location;
        return 1;
    }
    *list = NULL;
    return sm_map_get(&x->ids, code, &id) ? sm_trace_location(x->t, id, list) : 0;
}

/* Codes of the file are 63 bits; 0 is not allowed there. */
static void codes_of(struct target *x, const struct sm_event *e, struct sm_code_buffer *b) {
    sm_event_codes(x->t, e, b);
    for (uint32_t i = 0; i < e->n_frames; i++) {
        if (b->codes[i] == SM_LOCATION_CUT) {
            b->codes[i] = x->cut_code;
        } else {
            bool found;
            sm_map_place(&x->ids, b->codes[i], e->frames[i], &found);
        }
    }
}

static uint32_t domain_of(struct target *x, uint64_t domain) {
    if (x->one_domain)
        return 0;
    bool found;
    uint32_t *place = sm_map_place(&x->domains, domain, LAST_DOMAIN, &found);
    if (!found) {
        uint32_t number = domain <= LAST_DOMAIN ? (uint32_t)domain : x->next_number;
        /* Its own number where that is free, else the next free one from above. */
        while (number > 0 && x->taken[number]) {
            if (number == x->next_number)
                x->next_number--;
            number = x->next_number;
        }
        x->taken[number] = true;
        *place = number + 1;
        x->r->n_renumbered += number != domain;
    }
    return *place - 1;
}

/* Objects that the target has no room for. No id is so large. */
#define LEFT_OUT UINT64_MAX

static enum sm_status alloc(struct target *x, const struct sm_event *e, uint32_t domain,
                            int64_t now_us, struct sm_code_buffer *b, struct sm_error *err) {
    uint64_t id, words = e->size;
    unsigned source = e->heap;
    if ((e->flags & SM_EVENT_SIZE_IN_BYTES) != 0)
        words = e->size / x->word_bytes + (e->size % x->word_bytes != 0);
    if (source > SM_HEAP_EXTERNAL) {
        source = SM_HEAP_EXTERNAL;
        x->r->n_other_heap++;
    }
    x->r->n_cut += (e->flags & SM_EVENT_STACK_CUT) != 0;
    x->r->n_lost_stacks += (e->flags & SM_EVENT_STACK_LOST) != 0;
    codes_of(x, e, b);
    if (sm_memtrace_put_alloc(x->w, domain, now_us, words, e->n_samples, source, b->codes,
                              e->n_frames, &id, err) != SM_OK)
        return SM_FAILED;
    *object(&x->objects, e->obj_stream, e->obj_seq) = id << 16 | (domain + 1);
    return SM_OK;
}

static enum sm_status event(struct target *x, const struct sm_event *e, struct sm_code_buffer *b,
                            struct sm_error *err) {
    const struct sm_meta *meta = sm_trace_meta(x->t);
    int64_t ns = sm_trace_time_ns(x->t, e->ticks); /* since the start, which has its own rounding */
    int64_t now_us = meta->start_real_ns / 1000 + (ns >= 0 ? ns / 1000 : -((-ns + 999) / 1000));
    if (e->kind == SM_EVENT_ALLOC && e->heap == SM_HEAP_NATIVE &&
        meta->native_interval_bytes != 0) {
        *object(&x->objects, e->obj_stream, e->obj_seq) = LEFT_OUT;
        x->r->n_native++;
        return SM_OK;
    }
    if (sm_trace_owner(x->t, e->owner)->kind == SM_OWNER_NATIVE &&
        meta->native_interval_bytes != 0 && e->kind != SM_EVENT_EXTENSION &&
        *object(&x->objects, e->obj_stream, e->obj_seq) == LEFT_OUT)
        return SM_OK;
    uint32_t domain = domain_of(x, sm_trace_owner(x->t, e->owner)->domain);
    if (e->kind == SM_EVENT_EXTENSION) {
        x->r->n_records += e->op != SM_OP_OWNER;
        return SM_OK;
    }
    x->r->n_rounded += ns % 1000 != 0;
    if (e->kind == SM_EVENT_ALLOC) {
        x->r->n_events++;
        x->r->n_alloc++;
        return alloc(x, e, domain, now_us, b, err);
    }
    uint64_t o = *object(&x->objects, e->obj_stream, e->obj_seq);
    if (o == 0) {
        x->r->n_orphans++;
        return SM_OK;
    }
    x->r->n_events++;
    uint32_t obj_domain = (uint32_t)(o & 0xffff) - 1;
    if (e->kind == SM_EVENT_PROMOTE) {
        x->r->n_promote++;
        return sm_memtrace_put_promote(x->w, domain, obj_domain, now_us, o >> 16, err);
    }
    x->r->n_collect++;
    return sm_memtrace_put_collect(x->w, domain, obj_domain, now_us, o >> 16, err);
}

/* A code that no location of the trace has. */
static uint64_t unused_code(const struct sm_trace *t) {
    uint64_t code = 1;
    uint32_t n = sm_trace_n_locations(t);
    struct sm_map codes = {0};
    for (uint32_t i = 0; i < n; i++)
        sm_map_put(&codes, sm_trace_location_code(t, i), 0);
    uint32_t ignored;
    while (sm_map_get(&codes, code, &ignored))
        code++;
    sm_map_release(&codes);
    return code;
}

static enum sm_status copy_events(struct target *x, struct sm_error *err) {
    struct sm_cursor *cursor;
    struct sm_event e;
    struct sm_code_buffer codes = {0};
    if (sm_cursor_new(&cursor, x->t, SM_CURSOR_STACKS | SM_CURSOR_EXTENSIONS, err) != SM_OK)
        return SM_FAILED;
    enum sm_status status = SM_OK;
    while (status == SM_OK && sm_cursor_next(cursor, &e) == SM_OK)
        status = event(x, &e, &codes, err);
    sm_cursor_free(cursor);
    free(codes.codes);
    return status;
}

static struct sm_memtrace_header header_of(const struct sm_trace *t, bool version_2) {
    const struct sm_meta *m = sm_trace_meta(t);
    int64_t start = m->start_real_ns;
    return (struct sm_memtrace_header){
        .version = version_2 ? 2 : 3,
        .sample_rate = m->sample_rate,
        .word_bits = m->word_bits,
        .executable = m->executable,
        .host = m->host,
        .runtime_params = m->runtime_params,
        .context = m->has_context ? m->context : NULL,
        .pid = m->pid,
        .start_us = start / 1000,
        .initial_domain =
            version_2 || m->initial_domain > LAST_DOMAIN ? 0 : (uint32_t)m->initial_domain,
    };
}

static void count_threads(struct target *x) {
    uint32_t n = sm_trace_n_owners(x->t);
    struct sm_map domains = {0};
    for (uint32_t i = 0; i < n; i++) {
        const struct sm_owner *o = sm_trace_owner(x->t, i);
        bool found;
        if (o->kind == SM_OWNER_NATIVE && sm_trace_meta(x->t)->native_interval_bytes != 0)
            continue; /* nothing of it was written */
        sm_map_place(&domains, x->one_domain ? 0 : o->domain, 0, &found);
        x->r->n_threads_merged += found;
    }
    sm_map_release(&domains);
}

static void release(struct target *x) {
    for (size_t i = 0; i < x->objects.n; i++)
        free(x->objects.list[i]);
    free(x->objects.list);
    sm_map_release(&x->objects.pages);
    sm_map_release(&x->ids);
    sm_map_release(&x->domains);
    free(x);
}

enum sm_status sm_convert_to_memtrace(struct sm_trace *t, FILE *out, const char *path,
                                      const struct sm_convert_options *options,
                                      struct sm_convert_result *result, struct sm_error *err) {
    bool ctf = options->target == SM_TO_CTF;
    struct target *x = sm_alloc_zero(1, sizeof *x);
    x->t = t;
    x->r = result;
    x->one_domain = options->target == SM_TO_MEMTRACE_2;
    x->word_bytes = sm_trace_meta(t)->word_bits / 8;
    x->cut_code = unused_code(t);
    x->next_number = LAST_DOMAIN;
    struct sm_memtrace_header header = header_of(t, x->one_domain);
    struct sm_ctf_dir *dir = NULL;
    enum sm_status status =
        ctf ? sm_ctf_dir_new(&dir, path, &header, locate, x, err)
            : sm_memtrace_writer_new(&x->w, out, &header, options->order, locate, x, err);
    if (status == SM_OK) {
        if (ctf)
            x->w = sm_ctf_dir_writer(dir);
        status = copy_events(x, err);
        count_threads(x);
        if (status == SM_OK)
            status = ctf ? sm_ctf_dir_close(dir, err) : sm_memtrace_writer_close(x->w, err);
        if (ctf)
            sm_ctf_dir_free(dir);
        else
            sm_memtrace_writer_free(x->w);
    }
    release(x);
    return status;
}
