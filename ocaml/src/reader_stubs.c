/* Traces for OCaml: an open trace and one cursor in a custom block. Events come as integers in an array that
   the caller owns, so that reading allocates nothing on the OCaml heap. */
#include <caml/alloc.h>
#include <caml/custom.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <string.h>

#include "merge/cursor.h"

struct reader {
    struct sm_trace *trace;
    struct sm_cursor *cursor;
    struct sm_event event;
};

#define Reader_val(v) (*(struct reader **)Data_custom_val(v))

static void reader_close(struct reader *r) {
    if (r->cursor != NULL)
        sm_cursor_free(r->cursor);
    sm_trace_free(r->trace);
    r->cursor = NULL;
    r->trace = NULL;
}

static void reader_finalize(value v) {
    struct reader *r = Reader_val(v);
    reader_close(r);
    caml_stat_free(r);
}

static struct custom_operations reader_ops = {
    .identifier = "statmem.reader",
    .finalize = reader_finalize,
    .compare = custom_compare_default,
    .hash = custom_hash_default,
    .serialize = custom_serialize_default,
    .deserialize = custom_deserialize_default,
    .compare_ext = custom_compare_ext_default,
};

static struct reader *open_reader(value v) {
    struct reader *r = Reader_val(v);
    if (r->trace == NULL)
        caml_failwith("Statmem.Reader: the trace is closed");
    return r;
}

CAMLprim value statmem_ml_open(value path) {
    CAMLparam1(path);
    CAMLlocal1(v);
    struct sm_error err;
    struct sm_trace *t;
    if (sm_trace_open(&t, String_val(path), NULL, &err) != SM_OK)
        caml_failwith(err.text);
    struct reader *r = caml_stat_alloc(sizeof *r);
    memset(r, 0, sizeof *r);
    r->trace = t;
    v = caml_alloc_custom_mem(&reader_ops, sizeof r, 1 << 20);
    Reader_val(v) = r;
    CAMLreturn(v);
}

CAMLprim value statmem_ml_close(value v) {
    reader_close(Reader_val(v));
    return Val_unit;
}

CAMLprim value statmem_ml_size_bytes(value v) {
    return caml_copy_int64((int64_t)sm_trace_bytes(open_reader(v)->trace));
}

/* (rate, word bits, executable, host, parameters, pid, initial domain, start in us, context option) */
CAMLprim value statmem_ml_info(value v) {
    CAMLparam1(v);
    CAMLlocal3(info, x, context);
    const struct sm_meta *m = sm_trace_meta(open_reader(v)->trace);
    info = caml_alloc_tuple(9);
    Store_field(info, 0, caml_copy_double(m->sample_rate));
    Store_field(info, 1, Val_long(m->word_bits));
    x = caml_copy_string(m->executable);
    Store_field(info, 2, x);
    x = caml_copy_string(m->host);
    Store_field(info, 3, x);
    x = caml_copy_string(m->runtime_params);
    Store_field(info, 4, x);
    x = caml_copy_int64((int64_t)m->pid);
    Store_field(info, 5, x);
    Store_field(info, 6, Val_long(m->initial_domain));
    x = caml_copy_int64(m->start_real_ns / 1000);
    Store_field(info, 7, x);
    context = Val_int(0);
    if (m->has_context) {
        x = caml_copy_string(m->context);
        context = caml_alloc_small(1, 0);
        Field(context, 0) = x;
    }
    Store_field(info, 8, context);
    CAMLreturn(info);
}

CAMLprim value statmem_ml_n_streams(value v) {
    return Val_long(sm_trace_n_streams(open_reader(v)->trace));
}

/* Begins a pass; ends the one before. */
CAMLprim value statmem_ml_rewind(value v, value stacks) {
    struct reader *r = open_reader(v);
    struct sm_error err;
    if (r->cursor != NULL)
        sm_cursor_free(r->cursor);
    r->cursor = NULL;
    if (sm_cursor_new(&r->cursor, r->trace, Bool_val(stacks) ? SM_CURSOR_STACKS : 0, &err) != SM_OK)
        caml_failwith(err.text);
    return Val_unit;
}

/* Fields of the array; OCaml's Reader has the same. */
enum {
    F_KIND,
    F_TIME_US,
    F_DOMAIN,
    F_OBJECT,
    F_LENGTH,
    F_SAMPLES,
    F_HEAP,
    F_FRAMES,
    F_PREFIX,
    F_STREAM,
};

/* One number for an object: its own of a trace with one stream, else with the stream above bit 36. */
static intnat object_number(const struct sm_event *e) {
    return (intnat)((uint64_t)e->obj_stream << 36 | (e->obj_seq & (SM_MAX_SEQ - 1)));
}

/* next reader fields: false at the end; noalloc. Only immediates are stored. */
CAMLprim value statmem_ml_next(value v, value fields) {
    struct reader *r = Reader_val(v);
    struct sm_event *e = &r->event;
    if (r->cursor == NULL || sm_cursor_next(r->cursor, e) != SM_OK)
        return Val_false;
    int64_t ns = sm_trace_time_ns(r->trace, e->ticks);
    uint64_t words = e->size;
    if ((e->flags & SM_EVENT_SIZE_IN_BYTES) != 0)
        words = (words + 7) / 8;
    Field(fields, F_KIND) = Val_long(e->kind);
    Field(fields, F_TIME_US) = Val_long(ns / 1000);
    Field(fields, F_DOMAIN) = Val_long(sm_trace_owner(r->trace, e->owner)->domain);
    Field(fields, F_OBJECT) = Val_long(object_number(e));
    Field(fields, F_LENGTH) = Val_long(words);
    Field(fields, F_SAMPLES) = Val_long(e->n_samples);
    Field(fields, F_HEAP) = Val_long(e->heap > SM_HEAP_EXTERNAL ? SM_HEAP_EXTERNAL : e->heap);
    Field(fields, F_FRAMES) = Val_long(e->n_frames);
    Field(fields, F_PREFIX) = Val_long(e->common_prefix);
    Field(fields, F_STREAM) = Val_long(e->stream);
    return Val_true;
}

/* frames reader buffer from: the event's stack from frame `from` on, outermost first, as location numbers
   (from 1); the buffer is long enough; noalloc. */
CAMLprim value statmem_ml_frames(value v, value buffer, value from) {
    const struct sm_event *e = &Reader_val(v)->event;
    for (uint32_t i = (uint32_t)Long_val(from); i < e->n_frames; i++)
        Field(buffer, i) = Val_long((intnat)e->frames[i] + 1);
    return Val_unit;
}

/* The source locations of a number, outermost first: an array of (file, line, start, end, function). */
CAMLprim value statmem_ml_location(value v, value number) {
    CAMLparam1(v);
    CAMLlocal3(array, loc, text);
    const struct sm_trace *t = open_reader(v)->trace;
    const struct sm_location *list = NULL;
    intnat id = Long_val(number) - 1;
    uint32_t n = 0;
    if (id >= 0 && id < (intnat)sm_trace_n_locations(t))
        n = sm_trace_location(t, (uint32_t)id, &list);
    else
        caml_raise_not_found();
    array = caml_alloc(n, 0);
    for (uint32_t i = 0; i < n; i++) {
        loc = caml_alloc_tuple(5);
        text = caml_copy_string(list[i].file);
        Store_field(loc, 0, text);
        Store_field(loc, 1, Val_long(list[i].line));
        Store_field(loc, 2, Val_long(list[i].start_char));
        Store_field(loc, 3, Val_long(list[i].end_char));
        text = caml_copy_string(list[i].function);
        Store_field(loc, 4, text);
        Store_field(array, i, loc);
    }
    CAMLreturn(array);
}

/* Sentences on what could not be read, complete after a pass. */
CAMLprim value statmem_ml_losses(value v) {
    CAMLparam1(v);
    CAMLlocal2(array, text);
    const struct sm_loss *list;
    size_t n = sm_trace_losses(open_reader(v)->trace, &list);
    array = caml_alloc(n, 0);
    for (size_t i = 0; i < n; i++) {
        text = caml_copy_string(list[i].detail);
        Store_field(array, i, text);
    }
    CAMLreturn(array);
}
