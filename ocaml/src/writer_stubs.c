/* memtrace's format for OCaml. Locations are told beforehand, since the C writer asks for them at places where OCaml
   code must not run. The lock is never held while OCaml memory is allocated, so no domain waits for it during a
   collection. */
#include <caml/alloc.h>
#include <caml/custom.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "convert/memtrace_writer.h"
#include "util/arena.h"
#include "util/map.h"
#include "util/memory.h"

/* Ids of a domain come in chunks of this size, so a chunk tells the domain. */
#define ID_CHUNK 10000

struct names {
    struct sm_location *list; /* owned; its texts are in the arena */
    uint32_t n;
};

struct writer {
    pthread_mutex_t lock;
    FILE *out;
    struct sm_memtrace_writer *w;
    struct sm_map codes; /* code -> index in names */
    struct names *names;
    size_t n_names, names_capacity;
    struct sm_arena texts;
    uint32_t *owners; /* by id / ID_CHUNK */
    size_t n_owners, owners_capacity;
};

#define Writer_val(v) (*(struct writer **)Data_custom_val(v))

static void writer_finalize(value v) {
    struct writer *x = Writer_val(v);
    sm_memtrace_writer_free(x->w);
    if (x->out != NULL)
        fclose(x->out);
    sm_map_release(&x->codes);
    sm_arena_release(&x->texts);
    for (size_t i = 0; i < x->n_names; i++)
        free(x->names[i].list);
    free(x->names);
    free(x->owners);
    pthread_mutex_destroy(&x->lock);
    free(x);
}

static struct custom_operations writer_ops = {
    .identifier = "statmem.memtrace_writer",
    .finalize = writer_finalize,
    .compare = custom_compare_default,
    .hash = custom_hash_default,
    .serialize = custom_serialize_default,
    .deserialize = custom_deserialize_default,
    .compare_ext = custom_compare_ext_default,
};

static uint32_t locate(void *ctx, uint64_t code, const struct sm_location **list) {
    struct writer *x = ctx;
    uint32_t i;
    if (!sm_map_get(&x->codes, code, &i))
        return 0;
    *list = x->names[i].list;
    return x->names[i].n;
}

/* create fd (rate, word size, executable, host, params, pid, domain, start, context) */
CAMLprim value statmem_ml_writer_create(value fd, value info) {
    CAMLparam2(fd, info);
    CAMLlocal1(v);
    struct sm_error err;
    int copy = dup(Int_val(fd));
    FILE *out = copy >= 0 ? fdopen(copy, "wb") : NULL;
    if (out == NULL) {
        if (copy >= 0)
            close(copy);
        caml_failwith("cannot write to this file descriptor");
    }
    struct writer *x = sm_alloc_zero(1, sizeof *x);
    pthread_mutex_init(&x->lock, NULL);
    x->out = out;
    value context = Field(info, 8);
    struct sm_memtrace_header header = {
        .version = 3,
        .sample_rate = Double_val(Field(info, 0)),
        .word_bits = (uint32_t)Long_val(Field(info, 1)),
        .executable = String_val(Field(info, 2)),
        .host = String_val(Field(info, 3)),
        .runtime_params = String_val(Field(info, 4)),
        .pid = (uint64_t)Int64_val(Field(info, 5)),
        .initial_domain = (uint32_t)Long_val(Field(info, 6)),
        .start_us = Int64_val(Field(info, 7)),
        .context = Is_block(context) ? String_val(Field(context, 0)) : NULL,
    };
    enum sm_status status =
        sm_memtrace_writer_new(&x->w, out, &header, SM_MEMTRACE_EXACT, locate, x, &err);
    v = caml_alloc_custom_mem(&writer_ops, sizeof x, 1 << 20);
    Writer_val(v) = x;
    if (status != SM_OK) {
        x->w = NULL;
        caml_failwith(err.text);
    }
    CAMLreturn(v);
}

CAMLprim value statmem_ml_writer_knows(value v, value code) {
    struct writer *x = Writer_val(v);
    uint32_t i;
    pthread_mutex_lock(&x->lock);
    bool known = sm_map_get(&x->codes, (uint64_t)Long_val(code), &i);
    pthread_mutex_unlock(&x->lock);
    return Val_bool(known);
}

/* add writer code locations: an array of (file, line, start, end, function) */
CAMLprim value statmem_ml_writer_add(value v, value code, value locations) {
    struct writer *x = Writer_val(v);
    uint32_t n = (uint32_t)Wosize_val(locations);
    bool found;
    pthread_mutex_lock(&x->lock);
    sm_map_place(&x->codes, (uint64_t)Long_val(code), (uint32_t)x->n_names, &found);
    if (!found) {
        struct sm_location *list = sm_alloc_zero(n > 0 ? n : 1, sizeof *list);
        for (uint32_t i = 0; i < n; i++) {
            value l = Field(locations, i);
            list[i].file = sm_arena_intern(&x->texts, String_val(Field(l, 0)),
                                           caml_string_length(Field(l, 0)));
            list[i].line = (uint32_t)Long_val(Field(l, 1));
            list[i].start_char = (uint32_t)Long_val(Field(l, 2));
            list[i].end_char = (uint32_t)Long_val(Field(l, 3));
            list[i].function = sm_arena_intern(&x->texts, String_val(Field(l, 4)),
                                               caml_string_length(Field(l, 4)));
        }
        if (x->n_names == x->names_capacity)
            x->names = sm_grow(x->names, &x->names_capacity, x->n_names + 1, sizeof *x->names);
        x->names[x->n_names++] = (struct names){list, n};
    }
    pthread_mutex_unlock(&x->lock);
    return Val_unit;
}

static void note_owner(struct writer *x, uint64_t id, uint32_t domain) {
    size_t chunk = (size_t)(id / ID_CHUNK);
    while (x->n_owners <= chunk) {
        if (x->n_owners == x->owners_capacity)
            x->owners = sm_grow(x->owners, &x->owners_capacity, x->n_owners + 1, sizeof(uint32_t));
        x->owners[x->n_owners++] = domain;
    }
    x->owners[chunk] = domain;
}

/* put_alloc writer (domain, length, samples, heap, n) time codes */
CAMLprim value statmem_ml_writer_alloc(value v, value figures, value time, value codes) {
    struct writer *x = Writer_val(v);
    struct sm_error err;
    uint64_t id = 0;
    uint32_t domain = (uint32_t)Long_val(Field(figures, 0));
    uint32_t n = (uint32_t)Long_val(Field(figures, 4));
    uint64_t few[256], *list = n <= 256 ? few : sm_alloc_zero(n, sizeof *list);
    for (uint32_t i = 0; i < n; i++)
        list[i] = (uint64_t)Long_val(Field(codes, i));
    pthread_mutex_lock(&x->lock);
    enum sm_status status =
        sm_memtrace_put_alloc(x->w, domain, Int64_val(time), (uint64_t)Long_val(Field(figures, 1)),
                              (uint64_t)Long_val(Field(figures, 2)),
                              (unsigned)Long_val(Field(figures, 3)), list, n, &id, &err);
    if (status == SM_OK)
        note_owner(x, id, domain);
    pthread_mutex_unlock(&x->lock);
    if (list != few)
        free(list);
    if (status != SM_OK)
        caml_failwith(err.text);
    return Val_long((intnat)id);
}

/* ref writer promote domain time id */
CAMLprim value statmem_ml_writer_ref(value v, value promote, value domain, value time, value id) {
    struct writer *x = Writer_val(v);
    struct sm_error err;
    uint64_t obj = (uint64_t)Long_val(id);
    uint32_t at = (uint32_t)Long_val(domain);
    pthread_mutex_lock(&x->lock);
    uint32_t owner = obj / ID_CHUNK < x->n_owners ? x->owners[obj / ID_CHUNK] : at;
    enum sm_status status = (Bool_val(promote) ? sm_memtrace_put_promote : sm_memtrace_put_collect)(
        x->w, at, owner, Int64_val(time), obj, &err);
    pthread_mutex_unlock(&x->lock);
    if (status != SM_OK)
        caml_failwith(err.text);
    return Val_unit;
}

/* flush writer last */
CAMLprim value statmem_ml_writer_flush(value v, value last) {
    struct writer *x = Writer_val(v);
    struct sm_error err;
    pthread_mutex_lock(&x->lock);
    enum sm_status status = x->out == NULL   ? SM_OK
                            : Bool_val(last) ? sm_memtrace_writer_close(x->w, &err)
                                             : sm_memtrace_writer_flush(x->w, &err);
    if (status == SM_OK && x->out != NULL && fflush(x->out) != 0) {
        sm_error_set(&err, "cannot write the trace: %s", strerror(errno));
        status = SM_FAILED;
    }
    if (Bool_val(last) && x->out != NULL) {
        fclose(x->out);
        x->out = NULL;
    }
    pthread_mutex_unlock(&x->lock);
    if (status != SM_OK)
        caml_failwith(err.text);
    return Val_unit;
}
