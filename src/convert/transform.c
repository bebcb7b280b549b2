/* See transform.h. */
#include "convert/transform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/prng.h"
#include "convert/convert_internal.h"
#include "convert/native_writer.h"
#include "merge/cursor.h"
#include "util/arena.h"
#include "util/buffer.h"
#include "util/map.h"
#include "util/memory.h"

/* ---- what all three do: events from a cursor to a writer, changed on the way ---- */

struct copying {
    struct sm_trace *t;
    struct sm_native_writer *w;
    struct sm_transform_result *result;
    /* False: leave the event out. Changes event, codes and owner. */
    bool (*change)(struct copying *c, struct sm_event *e, uint64_t *codes, struct sm_owner *owner);
    void *ctx;
};

static enum sm_status copy(struct copying *c, struct sm_error *err) {
    struct sm_cursor *cursor;
    struct sm_event e;
    struct sm_code_buffer codes = {0};
    if (sm_cursor_new(&cursor, c->t, SM_CURSOR_STACKS | SM_CURSOR_EXTENSIONS, err) != SM_OK)
        return SM_FAILED;
    enum sm_status status = SM_OK;
    while (status == SM_OK && sm_cursor_next(cursor, &e) == SM_OK) {
        if (e.kind == SM_EVENT_EXTENSION && e.op == SM_OP_OWNER)
            continue;
        struct sm_owner owner = *sm_trace_owner(c->t, e.owner);
        sm_event_codes(c->t, &e, &codes);
        if (!c->change(c, &e, codes.codes, &owner)) {
            c->result->n_dropped += e.kind == SM_EVENT_ALLOC;
            continue;
        }
        c->result->n_events++;
        c->result->n_alloc += e.kind == SM_EVENT_ALLOC;
        status = sm_native_writer_event(c->w, &e, codes.codes, &owner, err);
    }
    sm_cursor_free(cursor);
    free(codes.codes);
    return status;
}

static struct sm_meta new_meta(const struct sm_trace *t) {
    struct sm_meta meta = *sm_trace_meta(t);
    if (meta.format != SM_TRACE_NATIVE)
        meta.imported_from = (uint32_t)meta.format;
    meta.mode = SM_MODE_CONVERTED;
    meta.writer = "statmem " SM_VERSION;
    return meta;
}

static enum sm_status close_writer(struct sm_native_writer *w, const struct sm_trace *t,
                                   struct sm_error *err) {
    struct sm_end end = sm_convert_end_of(t);
    return sm_native_writer_close(w, &end, err);
}

/* ---- strip ---- */

struct stripping {
    const char *key;
    struct sm_arena arena;
    struct sm_buffer text; /* the payload of a mark */
};

static uint64_t pseudonym(const char *key, const char *kind, const char *text, size_t bytes) {
    XXH3_state_t *state = XXH3_createState();
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, key, strlen(key) + 1);
    XXH3_64bits_update(state, kind, strlen(kind) + 1);
    XXH3_64bits_update(state, text, bytes);
    uint64_t hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return hash;
}

static void put_pseudonym(struct sm_buffer *out, const struct stripping *s, const char *kind,
                          const char *text, size_t bytes) {
    sm_buffer_printf(out, "%s%08x", kind, (unsigned)pseudonym(s->key, kind, text, bytes));
}

static const char *keep(struct stripping *s, struct sm_buffer *b) {
    const char *text = sm_arena_intern(&s->arena, b->data, b->used);
    sm_buffer_release(b);
    return text != NULL ? text : "";
}

static const char *one(struct stripping *s, const char *kind, const char *text) {
    if (text[0] == 0)
        return "";
    struct sm_buffer b;
    sm_buffer_init(&b, -1);
    put_pseudonym(&b, s, kind, text, strlen(text));
    return keep(s, &b);
}

/* "Stdlib.List.map.(fun)" -> "M3fa1c2d4.M0b12a9e8.f77d01e2a.(fun)": by component, kinds told apart by the
   first letter, what is in parentheses stays. */
static const char *function(struct stripping *s, const char *name) {
    struct sm_buffer b;
    sm_buffer_init(&b, -1);
    for (const char *at = name; *at != 0;) {
        size_t n = strcspn(at, ".");
        bool module = at[0] >= 'A' && at[0] <= 'Z';
        if (n > 0 && at[0] != '(')
            put_pseudonym(&b, s, module ? "M" : "f", at, n);
        else
            sm_buffer_bytes(&b, at, n);
        at += n;
        if (*at == '.') {
            sm_buffer_char(&b, '.');
            at++;
        }
    }
    return keep(s, &b);
}

/* "src/table.ml" -> "d1234abcd/n5678cdef.ml"; "[libfoo.so]" -> "[n90ab12cd]". */
static const char *file(struct stripping *s, const char *path) {
    struct sm_buffer b;
    sm_buffer_init(&b, -1);
    for (const char *at = path; *at != 0;) {
        size_t n = strcspn(at, "/");
        const char *dot = memrchr(at, '.', n);
        bool last = at[n] == 0, bracket = at[0] == '[' && n > 2 && at[n - 1] == ']';
        size_t base = last && dot != NULL && dot != at && !bracket ? (size_t)(dot - at) : n;
        if (bracket)
            sm_buffer_char(&b, '[');
        if (n > 0)
            put_pseudonym(&b, s, last ? "n" : "d", at, base);
        if (bracket)
            sm_buffer_char(&b, ']');
        else if (base < n)
            sm_buffer_bytes(&b, at + base, n - base);
        at += n;
        if (*at == '/') {
            sm_buffer_char(&b, '/');
            at++;
        }
    }
    return keep(s, &b);
}

static bool strip_event(struct copying *c, struct sm_event *e, uint64_t *codes,
                        struct sm_owner *owner) {
    struct stripping *s = c->ctx;
    owner->name = one(s, "thread", owner->name);
    /* Object files have paths and build-ids in them. */
    if (e->kind == SM_EVENT_EXTENSION && e->op == SM_OP_MODULE)
        return false;
    if (e->kind == SM_EVENT_EXTENSION && e->op == SM_OP_MARK) {
        s->text.used = 0;
        put_pseudonym(&s->text, s, "mark", (const char *)e->payload, e->payload_bytes);
        e->payload = (const uint8_t *)s->text.data;
        e->payload_bytes = (uint32_t)s->text.used;
    }
    return true;
}

static enum sm_status strip_names(struct sm_trace *t, struct sm_native_writer *w,
                                  struct stripping *s, struct sm_error *err) {
    struct sm_location *list = NULL;
    size_t capacity = 0;
    enum sm_status status = SM_OK;
    for (uint32_t id = 0; id < sm_trace_n_locations(t) && status == SM_OK; id++) {
        const struct sm_location *from;
        uint32_t n = sm_trace_location(t, id, &from);
        uint64_t code = sm_trace_location_code(t, id);
        if (code == SM_LOCATION_CUT)
            continue;
        list = sm_grow(list, &capacity, n + 1u, sizeof *list);
        for (uint32_t i = 0; i < n; i++) {
            list[i] = from[i];
            list[i].function = function(s, from[i].function);
            list[i].file = file(s, from[i].file);
        }
        status = sm_native_writer_location(w, code, list, n, err);
    }
    free(list);
    return status;
}

enum sm_status sm_strip(struct sm_trace *t, FILE *out, const char *key,
                        struct sm_transform_result *result, struct sm_error *err) {
    struct stripping s = {.key = key != NULL ? key : ""};
    struct sm_native_writer *w;
    struct sm_native_writer_options wo = {.compress = true};
    struct sm_meta meta = new_meta(t);
    *result = (struct sm_transform_result){0};
    sm_buffer_init(&s.text, -1);
    meta.executable = one(&s, "program", meta.executable);
    meta.host = one(&s, "host", meta.host);
    meta.args = meta.context = meta.runtime_params = meta.boot_id = "";
    meta.n_args = 0;
    meta.has_context = false;
    meta.build_id_bytes = 0;
    enum sm_status status = sm_native_writer_new(&w, out, &meta, &wo, err);
    if (status == SM_OK) {
        struct copying c = {.t = t, .w = w, .result = result, .change = strip_event, .ctx = &s};
        status = copy(&c, err);
        if (status == SM_OK)
            status = strip_names(t, w, &s, err);
        if (status == SM_OK)
            status = close_writer(w, t, err);
        sm_native_writer_free(w);
    }
    sm_buffer_release(&s.text);
    sm_arena_release(&s.arena);
    return status;
}

/* ---- subsample ---- */

struct subsampling {
    const struct sm_subsample_options *o;
    struct sm_prng prng;
    struct sm_map seqs; /* old stream and number -> new number */
    struct sm_map next; /* stream -> next new number */
};

static uint64_t object_key(uint32_t stream, uint64_t seq) {
    return seq | (uint64_t)stream << 44; /* numbers are below 2^44, streams below 2^18 */
}

/* How many of n are kept: exactly for the usual few, by the normal approximation beyond 10,000. */
static uint64_t binomial(struct subsampling *s, uint64_t n) {
    double p = s->o->factor;
    if (p >= 1)
        return n;
    if (n > 10000) {
        double mean = (double)n * p, deviation = sqrt(mean * (1 - p));
        double u = sm_prng_unit(&s->prng), v = sm_prng_unit(&s->prng);
        double z = sqrt(-2 * log(u)) * cos(2 * M_PI * v);
        double k = nearbyint(mean + deviation * z);
        return k < 0 ? 0 : k > (double)n ? n : (uint64_t)k;
    }
    uint64_t kept = 0;
    for (uint64_t i = 0; i < n; i++)
        kept += sm_prng_unit(&s->prng) < p;
    return kept;
}

static bool subsample_event(struct copying *c, struct sm_event *e, uint64_t *codes,
                            struct sm_owner *owner) {
    struct subsampling *s = c->ctx;
    bool found;
    if (e->kind == SM_EVENT_EXTENSION)
        return true;
    if (e->kind != SM_EVENT_ALLOC) {
        uint32_t seq;
        found = sm_map_get(&s->seqs, object_key(e->obj_stream, e->obj_seq), &seq);
        e->obj_seq = seq;
        return found;
    }
    int64_t ns = sm_trace_time_ns(c->t, e->ticks);
    /* Byte-sampled blocks were chosen in another way, at an interval of their own: all stay. */
    bool memprof = e->heap != SM_HEAP_NATIVE;
    uint64_t kept = memprof ? binomial(s, e->n_samples) : e->n_samples;
    if (kept == 0 || ns < s->o->from_ns || ns > s->o->to_ns)
        return false;
    uint32_t *next = sm_map_place(&s->next, e->obj_stream, 0, &found);
    uint32_t seq = (*next)++ - 1;
    sm_map_put(&s->seqs, object_key(e->obj_stream, e->obj_seq), seq);
    e->obj_seq = seq;
    e->n_samples = kept;
    return true;
}

enum sm_status sm_subsample(struct sm_trace *t, FILE *out, const struct sm_subsample_options *o,
                            struct sm_transform_result *result, struct sm_error *err) {
    struct subsampling s = {.o = o};
    struct sm_native_writer *w;
    struct sm_native_writer_options wo = {.compress = true};
    struct sm_meta meta = new_meta(t);
    *result = (struct sm_transform_result){0};
    sm_prng_seed(&s.prng, o->seed != 0 ? o->seed : 1);
    meta.sample_rate *= o->factor;
    enum sm_status status = sm_native_writer_new(&w, out, &meta, &wo, err);
    if (status != SM_OK)
        return status;
    struct copying c = {.t = t, .w = w, .result = result, .change = subsample_event, .ctx = &s};
    status = copy(&c, err);
    if (status == SM_OK)
        status = sm_convert_names(t, w, err);
    if (status == SM_OK)
        status = close_writer(w, t, err);
    sm_native_writer_free(w);
    sm_map_release(&s.seqs);
    sm_map_release(&s.next);
    return status;
}

/* ---- merge ---- */

struct merging {
    uint32_t number;       /* of the trace */
    uint32_t first_stream; /* its streams' numbers begin here */
    int64_t shift_ns;      /* from its start to the result's */
    uint32_t tick_ns;      /* of the result */
    struct sm_map domains; /* trace and domain -> new domain */
    struct sm_map *taken;  /* domains of the result */
    struct sm_arena *arena;
    uint64_t pid;
};

/* The domain's own number where it is free, else the next free one. */
static uint64_t domain_of(struct merging *m, uint64_t domain) {
    bool found;
    uint32_t *place = sm_map_place(&m->domains, domain, 0, &found);
    if (found)
        return *place - 1;
    uint32_t wanted = domain < UINT32_MAX - 2 ? (uint32_t)domain : 0, unused;
    while (sm_map_get(m->taken, wanted, &unused))
        wanted++;
    sm_map_put(m->taken, wanted, 0);
    sm_map_put(&m->domains, domain, wanted);
    return wanted;
}

static bool merge_event(struct copying *c, struct sm_event *e, uint64_t *codes,
                        struct sm_owner *owner) {
    struct merging *m = c->ctx;
    int64_t ns = sm_trace_time_ns(c->t, e->ticks) + m->shift_ns;
    struct sm_buffer name;
    e->ticks = ns > 0 ? (uint64_t)ns / m->tick_ns : 0;
    e->stream += m->first_stream;
    e->obj_stream += m->first_stream;
    owner->stream = e->stream;
    owner->domain = owner->kind == SM_OWNER_NATIVE ? owner->domain : domain_of(m, owner->domain);
    sm_buffer_init(&name, -1);
    sm_buffer_printf(&name, "pid %llu%s%s", (unsigned long long)m->pid, owner->name[0] ? " " : "",
                     owner->name);
    owner->name = sm_arena_intern(m->arena, name.data, name.used);
    sm_buffer_release(&name);
    /* Codes are addresses: two processes give one address to two places. */
    for (uint32_t i = 0; i < e->n_frames; i++) {
        if (codes[i] != SM_LOCATION_CUT)
            codes[i] = ((uint64_t)(m->number + 1) << 32) + e->frames[i];
    }
    return true;
}

static enum sm_status merge_names(struct sm_trace *t, struct sm_native_writer *w, uint32_t number,
                                  struct sm_error *err) {
    for (uint32_t id = 0; id < sm_trace_n_locations(t); id++) {
        const struct sm_location *list;
        uint32_t n = sm_trace_location(t, id, &list);
        if (sm_trace_location_code(t, id) != SM_LOCATION_CUT &&
            sm_native_writer_location(w, ((uint64_t)(number + 1) << 32) + id, list, n, err) !=
                SM_OK)
            return SM_FAILED;
    }
    return SM_OK;
}

static bool fit_together(struct sm_trace *const *traces, uint32_t n, struct sm_error *err) {
    const struct sm_meta *first = sm_trace_meta(traces[0]);
    for (uint32_t i = 1; i < n; i++) {
        const struct sm_meta *m = sm_trace_meta(traces[i]);
        if (m->sample_rate != first->sample_rate) {
            sm_error_set(err,
                         "the traces have different sampling rates (%g and %g); `statmem subsample "
                         "--factor` makes "
                         "the higher one lower",
                         first->sample_rate, m->sample_rate);
            return false;
        }
        if (m->word_bits != first->word_bits) {
            sm_error_set(err, "the traces have different word sizes");
            return false;
        }
    }
    return true;
}

enum sm_status sm_merge_traces(struct sm_trace *const *traces, uint32_t n, FILE *out,
                               struct sm_transform_result *result, struct sm_error *err) {
    *result = (struct sm_transform_result){0};
    if (!fit_together(traces, n, err))
        return SM_FAILED;
    struct sm_meta meta = new_meta(traces[0]);
    int64_t start = meta.start_real_ns;
    for (uint32_t i = 1; i < n; i++) {
        int64_t other = sm_trace_meta(traces[i])->start_real_ns;
        start = other < start ? other : start;
    }
    meta.clock = SM_CLOCK_REALTIME;
    meta.start_real_ns = start;
    meta.anchor_real_ns = (uint64_t)start;
    meta.anchor_clock_ns = meta.start_ticks = 0;
    meta.pid = meta.parent_pid = 0;
    struct sm_native_writer *w;
    struct sm_native_writer_options wo = {.compress = true};
    struct sm_arena arena = {0};
    struct sm_map taken = {0};
    uint32_t streams = 0;
    uint64_t end_ticks = 0;
    enum sm_status status = sm_native_writer_new(&w, out, &meta, &wo, err);
    for (uint32_t i = 0; i < n && status == SM_OK; i++) {
        struct sm_trace *t = traces[i];
        struct merging m = {.number = i,
                            .first_stream = streams,
                            .shift_ns = sm_trace_meta(t)->start_real_ns - start,
                            .tick_ns = meta.tick_ns,
                            .taken = &taken,
                            .arena = &arena,
                            .pid = sm_trace_meta(t)->pid};
        struct copying c = {.t = t, .w = w, .result = result, .change = merge_event, .ctx = &m};
        status = copy(&c, err);
        if (status == SM_OK)
            status = merge_names(t, w, i, err);
        for (uint32_t k = 0; k < sm_trace_n_streams(t); k++) {
            uint32_t id = m.first_stream + sm_trace_stream_id(t, k) + 1;
            streams = id > streams ? id : streams;
        }
        const struct sm_end *end = sm_trace_end(t);
        if (end->present) {
            int64_t ns = sm_trace_time_ns(t, end->end_ticks) + m.shift_ns;
            uint64_t ticks = ns > 0 ? (uint64_t)ns / meta.tick_ns : 0;
            end_ticks = ticks > end_ticks ? ticks : end_ticks;
        }
        sm_map_release(&m.domains);
    }
    if (status == SM_OK) {
        struct sm_end end = {.reason = SM_REASON_CONVERTED, .end_ticks = end_ticks};
        for (uint32_t i = 0; i < n; i++) {
            struct sm_end one = sm_convert_end_of(traces[i]);
            end.discarded += one.discarded;
            end.lost_events += one.lost_events;
            end.lost_bytes += one.lost_bytes;
            end.lost_names += one.lost_names;
        }
        status = sm_native_writer_close(w, &end, err);
    }
    sm_native_writer_free(w);
    sm_map_release(&taken);
    sm_arena_release(&arena);
    return status;
}
