/* Random events through the memtrace writer and back through the reader: what comes out must be what
   went in, whatever the depth of stacks, number of names, order of domains and jumps of the clock. The
   bytes in between are checked against the format's rules by a walk of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "convert/memtrace_writer.h"
#include "decode/backend.h"
#include "decode/memtrace_internal.h"

#define START_US 1700000000000000

static uint64_t random_state;

static uint64_t random_u64(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 0x2545F4914F6CDD1Du;
}

static uint32_t below(uint32_t n) {
    return (uint32_t)((random_u64() >> 32) * n >> 32);
}

/* ---- the model: what was reported ---- */

struct expected {
    unsigned kind;
    uint32_t domain;     /* whose stream it comes in */
    uint32_t obj_domain; /* its object */
    uint64_t obj_seq;
    int64_t us;
    uint64_t size, n_samples;
    unsigned heap;
    uint64_t *codes;
    uint32_t n_codes;
    uint32_t n_new; /* frames not shared with the stack before */
};

struct object {
    uint32_t domain;
    uint64_t id, seq;
    bool promoted, collected;
};

#define MAX_DOMAINS 300u

struct model {
    struct expected *events;
    uint32_t n_events, capacity;
    struct object *objects;
    uint32_t n_objects;
    uint64_t n_seq[MAX_DOMAINS];
    int64_t last_us[MAX_DOMAINS];
    uint64_t *stack[MAX_DOMAINS];
    uint32_t depth[MAX_DOMAINS];
    uint64_t *codes;
    uint32_t n_codes;
    struct sm_location *lists; /* of code i: lists[i * 4 ..] */
    uint32_t *n_lists;
    char (*names)[40];
    uint32_t deepest;
};

static uint32_t locate(void *ctx, uint64_t code, const struct sm_location **list) {
    struct model *m = ctx;
    for (uint32_t i = 0; i < m->n_codes; i++) {
        if (m->codes[i] == code) {
            *list = &m->lists[i * 4];
            return m->n_lists[i];
        }
    }
    return 0;
}

/* Codes of all widths, negative ones, and many that fall on the same cache slots. */
static uint64_t make_code(uint32_t i) {
    uint64_t x = random_u64();
    switch (i % 4) {
    case 0:
        return (0x400000 + (uint64_t)i * 16) | 1;
    case 1:
        return sm_mt_extend63(x) | 1;
    case 2:
        return (x & 0x7fffffff) << 1 | 1;
    default: /* equal in the product bits that the first hash takes: only high bits differ */
        return sm_mt_extend63((x & 0xfffff) << 40 | 0x123456 | (uint64_t)(i % 8) << 1);
    }
}

static void make_codes(struct model *m, uint32_t n) {
    m->codes = calloc(n, sizeof *m->codes);
    m->lists = calloc(n * 4, sizeof *m->lists);
    m->n_lists = calloc(n, sizeof *m->n_lists);
    m->names = calloc(128, sizeof *m->names);
    for (uint32_t i = 0; i < 128; i++)
        snprintf(m->names[i], sizeof m->names[i], "%s%u", i < 64 ? "dir/file" : "Module.fun", i);
    m->n_codes = 0;
    while (m->n_codes < n) {
        uint64_t code = make_code(m->n_codes);
        const struct sm_location *list;
        uint32_t i = m->n_codes, files = below(2) ? 64 : 5, functions = below(2) ? 64 : 5;
        if (code == 0 || locate(m, code, &list) != 0)
            continue;
        m->codes[m->n_codes++] = code;
        m->n_lists[i] = below(8) == 0 ? 0 : 1 + below(4);
        for (uint32_t k = 0; k < m->n_lists[i]; k++) {
            bool wild = below(10) == 0;
            m->lists[i * 4 + k] = (struct sm_location){
                .file = m->names[below(files)],
                .function = m->names[64 + below(functions)],
                .line = wild ? below(1u << 22) : below(5000),
                .start_char = wild ? below(1u << 13) : below(200),
                .end_char = wild ? below(1u << 13) : below(1000),
            };
        }
    }
}

static void new_stack(struct model *m, uint32_t d, bool huge) {
    uint32_t depth = m->depth[d], kept = below(depth + 1);
    if (below(4) != 0 && depth > 8)
        kept = depth - below(8);
    uint32_t more = below(4) == 0 ? below(40) : below(6);
    if (huge)
        more = 300000;
    else if (below(60) == 0)
        more = 200 + below(900);
    if (kept + more > m->deepest && !huge)
        kept = below(kept < 10 ? kept + 1 : 10);
    m->stack[d] = realloc(m->stack[d], (kept + more + 1) * sizeof(uint64_t));
    uint32_t style = huge ? 2 : below(5), period = 1 + below(3), base = below(m->n_codes);
    for (uint32_t i = 0; i < more; i++) {
        uint32_t c = style >= 2 ? base + i % period : style == 1 ? below(20) : below(m->n_codes);
        if (style == 4) /* a long path that comes again and again */
            c = i;
        m->stack[d][kept + i] = m->codes[c % m->n_codes];
    }
    m->depth[d] = kept + more;
}

static struct expected *new_event(struct model *m) {
    if (m->n_events == m->capacity) {
        m->capacity = m->capacity * 2 + 256;
        m->events = realloc(m->events, m->capacity * sizeof *m->events);
        m->objects = realloc(m->objects, m->capacity * sizeof *m->objects);
    }
    struct expected *e = &m->events[m->n_events++];
    memset(e, 0, sizeof *e);
    return e;
}

struct plan {
    unsigned version;
    enum sm_memtrace_order order;
    uint32_t n_domains, n_events, n_codes, deepest;
    bool clock_steps, huge;
    uint64_t seed;
};

static void drive(struct model *m, struct sm_memtrace_writer *w, const struct plan *plan) {
    struct sm_error err = {""};
    int64_t now = START_US;
    for (uint32_t i = 0; i < plan->n_events; i++) {
        uint32_t domain = below(3) == 0 ? below(plan->n_domains) : i / 50 % plan->n_domains;
        uint32_t stream = plan->version == 3 ? domain : 0;
        now += below(200) == 0 ? (int64_t)below(70000000) : (int64_t)below(300);
        if (plan->clock_steps && below(100) == 0)
            now -= below(9000000);
        struct expected *e = new_event(m); /* may move the objects */
        uint32_t what = m->n_objects == 0 ? 0 : below(5);
        struct object *o = what > 2 ? &m->objects[m->n_objects - 1 - below(m->n_objects)] : NULL;
        if (o != NULL && (o->collected || (what == 3 && o->promoted)))
            o = NULL;
        if (o == NULL) {
            new_stack(m, stream, plan->huge && i % 50 == 7);
            e->kind = SM_EVENT_ALLOC;
            e->domain = e->obj_domain = stream;
            e->heap = below(6) == 0 ? below(3) : 0;
            e->size = below(3) == 0 ? random_u64() >> (2 + below(62)) : 1 + below(20);
            e->n_samples = below(4) == 0 ? random_u64() >> (2 + below(62)) : 1;
            e->n_codes = m->depth[stream];
            e->codes = malloc((e->n_codes + 1) * sizeof *e->codes);
            memcpy(e->codes, m->stack[stream], e->n_codes * sizeof *e->codes);
            e->obj_seq = m->n_seq[stream]++;
            struct object *fresh = &m->objects[m->n_objects++];
            *fresh = (struct object){.domain = stream, .seq = e->obj_seq};
            assert_int_equal(sm_memtrace_put_alloc(w, domain, now, e->size, e->n_samples, e->heap,
                                                   e->codes, e->n_codes, &fresh->id, &err),
                             SM_OK);
        } else {
            e->kind = what == 3 ? SM_EVENT_PROMOTE : SM_EVENT_COLLECT;
            e->domain = what == 3 ? o->domain : stream;
            e->obj_domain = o->domain;
            e->obj_seq = o->seq;
            if (what == 3) {
                o->promoted = true;
                assert_int_equal(sm_memtrace_put_promote(w, domain, o->domain, now, o->id, &err),
                                 SM_OK);
            } else {
                o->collected = true;
                assert_int_equal(sm_memtrace_put_collect(w, domain, o->domain, now, o->id, &err),
                                 SM_OK);
            }
        }
        e->us = now > m->last_us[e->domain] ? now : m->last_us[e->domain];
        m->last_us[e->domain] = e->us;
    }
    assert_int_equal(sm_memtrace_writer_close(w, &err), SM_OK);
}

/* ---- the bytes ---- */

/* Rules of the format, and the order within the file. */
static void check_packets(const struct plan *plan, const uint8_t *data, size_t bytes) {
    uint8_t *made = calloc(1u << 23, 1); /* by id: 1 allocated, 2 promoted, 3 collected */
    size_t offset = 0;
    int64_t last = 0;
    while (offset < bytes) {
        struct sm_mt_header h;
        assert_true(sm_mt_header_get(data + offset, bytes - offset, SM_MT_LITTLE, &h));
        assert_true(h.packet_bytes <= SM_MT_PACKET_BYTES && h.packet_bytes <= bytes - offset);
        assert_int_equal(h.version, plan->version);
        assert_true(h.ts_begin_us <= h.ts_end_us);
        if (plan->order == SM_MEMTRACE_EXACT && !plan->clock_steps && h.alloc_end > h.alloc_begin) {
            assert_true(h.ts_end_us >= last);
            last = h.ts_end_us;
        }
        const uint8_t *p = data + offset + h.header_bytes, *end = data + offset + h.packet_bytes;
        uint64_t next = h.alloc_begin;
        while (p < end && offset > 0) {
            uint32_t id;
            const uint8_t *q = sm_mt_step(p, end, SM_MT_LITTLE, &id);
            assert_non_null(q);
            int64_t us = sm_mt_event_time(sm_get_u32le(p), h.ts_begin_us);
            assert_true(us <= h.ts_end_us);
            if (id == SM_MT_ALLOC || id > SM_MT_SHORT_BASE) {
                assert_true(made[next] == 0);
                made[next++] = 1;
            } else if (id == SM_MT_PROMOTE || id == SM_MT_COLLECT) {
                int64_t delta = 0;
                const uint8_t *r = p + 4;
                assert_true(sm_mt_get_vint(&r, end, false, &delta));
                uint64_t object = next - 1 - (uint64_t)delta;
                assert_true(object < 1u << 23);
                assert_true(id == SM_MT_COLLECT || delta >= 0);
                assert_true(made[object] >= 1 && made[object] <= (id == SM_MT_COLLECT ? 2 : 1));
                made[object] = id == SM_MT_COLLECT ? 3 : 2;
            }
            p = q;
        }
        assert_int_equal(next, h.alloc_end);
        offset += h.packet_bytes;
    }
    free(made);
}

static uint32_t clamped(uint32_t x, uint32_t limit) {
    return x < limit ? x : limit;
}

static void check_names(const struct model *m, struct sm_trace *t, uint64_t code, uint32_t id) {
    const struct sm_location *want, *got;
    uint32_t n = locate((void *)m, code, &want);
    assert_int_equal(sm_trace_location(t, id, &got), n);
    if (!t->locations.entries[id].known)
        fail_msg("code %llx (id %u of %u) was not announced", (unsigned long long)code, id,
                 sm_trace_n_locations(t));
    for (uint32_t i = 0; i < n; i++) {
        assert_string_equal(got[i].file, want[i].file);
        assert_string_equal(got[i].function, want[i].function);
        assert_int_equal(got[i].line, clamped(want[i].line, 0xFFFFF));
        assert_int_equal(got[i].start_char, clamped(want[i].start_char, 0xFF));
        assert_int_equal(got[i].end_char, clamped(want[i].end_char, 0x3FF));
        bool cut =
            want[i].line >= 0xFFFFF || want[i].start_char >= 0xFF || want[i].end_char >= 0x3FF;
        assert_int_equal(got[i].flags & SM_SYMS_CLAMPED, cut ? SM_SYMS_CLAMPED : 0);
    }
}

static uint32_t shared(const struct expected *a, const struct expected *b) {
    uint32_t i = 0;
    while (a != NULL && i < a->n_codes && i < b->n_codes && a->codes[i] == b->codes[i])
        i++;
    return i;
}

/* The stack read for `e`. Only stacks with more new frames than fit may differ, and those built on
   them. A writer that has given a domain's coding state away begins a stack anew (resumed). Returns
   whether it was cut. */
static bool check_stack(const struct expected *e, const struct expected *before, struct sm_trace *t,
                        const struct sm_event *got, bool may_be_lost, bool resumed) {
    uint32_t common = shared(before, e);
    if (resumed && got->common_prefix == 0)
        common = 0;
    assert_int_equal(got->common_prefix, common);
    if ((got->flags & SM_EVENT_STACK_LOST) != 0) {
        assert_true(may_be_lost && got->n_frames < common);
        return true;
    }
    if (got->n_frames != e->n_codes) {
        assert_true(got->n_frames < e->n_codes && e->n_codes - common > 400);
        assert_true(got->n_frames >= common + 400);
    }
    for (uint32_t i = 0; i < got->n_frames; i++)
        assert_int_equal(sm_trace_location_code(t, got->frames[i]), e->codes[i]);
    return got->n_frames != e->n_codes;
}

static void check_stream(const struct model *m, struct sm_trace *t, uint32_t index, uint32_t *n,
                         uint32_t *n_cut) {
    uint32_t domain = sm_trace_stream_id(t, index), at = 0;
    const struct expected *before = NULL;
    bool lost = false;
    struct sm_stream_cursor *c = t->backend->stream_new(t, index, 1);
    struct sm_stream_cursor *skipping = t->backend->stream_new(t, index, 0);
    struct sm_event got, brief;
    assert_non_null(c);
    while (t->backend->stream_next(c, &got) == SM_OK) {
        assert_int_equal(t->backend->stream_next(skipping, &brief), SM_OK);
        while (at < m->n_events && m->events[at].domain != domain)
            at++;
        assert_true(at < m->n_events);
        const struct expected *e = &m->events[at++];
        assert_int_equal(got.kind, e->kind);
        assert_int_equal(got.ticks, e->us);
        assert_int_equal(got.stream, domain);
        assert_int_equal(got.obj_stream, e->obj_domain);
        assert_int_equal(got.obj_seq, e->obj_seq);
        assert_int_equal(got.flags & SM_EVENT_ORPHAN, 0);
        assert_true(t->backend->has_object(t, got.obj_stream, got.obj_seq));
        assert_int_equal(brief.ticks, got.ticks);
        assert_int_equal(brief.obj_seq, got.obj_seq);
        assert_int_equal(brief.n_frames, 0);
        (*n)++;
        if (e->kind != SM_EVENT_ALLOC)
            continue;
        assert_int_equal(got.size, e->size);
        assert_int_equal(got.n_samples, e->n_samples);
        assert_int_equal(got.heap, e->heap);
        assert_int_equal(brief.size, e->size);
        lost = check_stack(e, before, t, &got, lost, sm_trace_n_streams(t) > 128);
        *n_cut += lost;
        before = e;
    }
    assert_int_equal(t->backend->stream_next(skipping, &brief), SM_END);
    t->backend->stream_free(c);
    t->backend->stream_free(skipping);
}

static void round_trip(const struct plan *plan) {
    random_state = plan->seed * 0x9E3779B97F4A7C15u + 1;
    struct model m = {.deepest = plan->deepest};
    struct sm_memtrace_header header = {.version = plan->version,
                                        .sample_rate = 0.125,
                                        .word_bits = 64,
                                        .executable = "/bin/prog",
                                        .host = "host",
                                        .runtime_params = "s=1",
                                        .context = plan->seed % 2 ? "context" : NULL,
                                        .pid = 4321,
                                        .start_us = START_US};
    make_codes(&m, plan->n_codes);
    for (uint32_t i = 0; i < MAX_DOMAINS; i++)
        m.last_us[i] = START_US;
    char *data = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&data, &bytes);
    struct sm_memtrace_writer *w;
    struct sm_error err = {""};
    assert_int_equal(sm_memtrace_writer_new(&w, f, &header, plan->order, locate, &m, &err), SM_OK);
    drive(&m, w, plan);
    sm_memtrace_writer_free(w);
    fclose(f);
    check_packets(plan, (const uint8_t *)data, bytes);

    struct sm_trace *t;
    assert_int_equal(sm_trace_open_memory(&t, (const uint8_t *)data, bytes, NULL, &err), SM_OK);
    const struct sm_meta *meta = sm_trace_meta(t);
    assert_int_equal(meta->format, plan->version == 3 ? SM_TRACE_MEMTRACE_3 : SM_TRACE_MEMTRACE_2);
    assert_int_equal(meta->start_ticks, START_US);
    assert_int_equal(meta->pid, 4321);
    assert_int_equal(meta->has_context, plan->seed % 2);
    assert_string_equal(meta->executable, "/bin/prog");
    uint32_t n = 0, n_cut = 0;
    for (uint32_t i = 0; i < sm_trace_n_streams(t); i++)
        check_stream(&m, t, i, &n, &n_cut);
    assert_int_equal(n, m.n_events);
    const struct sm_loss *losses;
    if (sm_trace_losses(t, &losses) > 0)
        fail_msg("seed %llu: %s", (unsigned long long)plan->seed, losses[0].detail);
    for (uint32_t id = 0; id < sm_trace_n_locations(t); id++)
        check_names(&m, t, sm_trace_location_code(t, id), id);
    sm_trace_free(t);
    free(data);
    for (uint32_t i = 0; i < m.n_events; i++)
        free(m.events[i].codes);
    for (uint32_t i = 0; i < MAX_DOMAINS; i++)
        free(m.stack[i]);
    free(m.events);
    free(m.objects);
    free(m.codes);
    free(m.lists);
    free(m.n_lists);
    free(m.names);
}

static void one_domain(void **state) {
    for (uint64_t seed = 1; seed <= 16; seed++)
        round_trip(&(struct plan){.version = 2 + seed % 2,
                                  .order = seed / 2 % 2 ? SM_MEMTRACE_RELAXED : SM_MEMTRACE_EXACT,
                                  .n_domains = 1,
                                  .n_events = 6000,
                                  .n_codes = seed % 3 ? 300 : 1500,
                                  .deepest = 900,
                                  .clock_steps = seed % 4 == 0,
                                  .seed = seed});
}

static void several_domains(void **state) {
    for (uint64_t seed = 101; seed <= 116; seed++)
        round_trip(&(struct plan){.version = seed % 5 ? 3 : 2,
                                  .order = seed / 2 % 2 ? SM_MEMTRACE_RELAXED : SM_MEMTRACE_EXACT,
                                  .n_domains = 2 + seed % 6,
                                  .n_events = 6000,
                                  .n_codes = 300,
                                  .deepest = 300,
                                  .clock_steps = seed % 4 == 0,
                                  .seed = seed});
}

/* More domains than the writer keeps coding state for. */
static void many_domains(void **state) {
    for (uint64_t seed = 201; seed <= 202; seed++)
        round_trip(&(struct plan){.version = 3,
                                  .order = seed % 2 ? SM_MEMTRACE_RELAXED : SM_MEMTRACE_EXACT,
                                  .n_domains = MAX_DOMAINS,
                                  .n_events = 8000,
                                  .n_codes = 100,
                                  .deepest = 60,
                                  .seed = seed});
}

/* A recursion 300 000 frames deep, which runs of predictions hold in a few thousand bytes. */
static void deep_recursion(void **state) {
    for (uint64_t seed = 301; seed <= 302; seed++)
        round_trip(&(struct plan){.version = 2 + seed % 2,
                                  .n_domains = 1,
                                  .n_events = 120,
                                  .n_codes = 50,
                                  .deepest = 400000,
                                  .huge = true,
                                  .seed = seed});
}

/* ---- lists of locations that the format cannot hold ---- */

static struct sm_location long_list[300];
static char long_name[6000];

static uint32_t locate_long(void *ctx, uint64_t code, const struct sm_location **list) {
    for (uint32_t i = 0; i < 300; i++)
        long_list[i] = (struct sm_location){.file = "f", .function = "g", .line = i};
    if (code == 3) {
        memset(long_name, 'x', sizeof long_name - 1);
        long_list[0].file = long_name;
    }
    *list = long_list;
    return code == 1 ? 255 : code == 2 ? 256 : 1;
}

static void impossible_lists(void **state) {
    char *data = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&data, &bytes);
    struct sm_memtrace_header header = {.version = 3, .sample_rate = 1, .word_bits = 32};
    struct sm_memtrace_writer *w;
    struct sm_error err = {""};
    uint64_t codes[] = {1, 2, 3}, id;
    assert_int_equal(
        sm_memtrace_writer_new(&w, f, &header, SM_MEMTRACE_EXACT, locate_long, NULL, &err), SM_OK);
    assert_int_equal(sm_memtrace_put_alloc(w, 0, 5, 1, 1, 0, codes, 3, &id, &err), SM_OK);
    assert_int_equal(sm_memtrace_put_alloc(w, 0, 5, 1, 1, 3, codes, 3, &id, &err), SM_FAILED);
    assert_true(strlen(err.text) > 0);
    assert_int_equal(sm_memtrace_put_promote(w, 0, 0, 5, 7, &err), SM_FAILED);
    assert_int_equal(sm_memtrace_writer_close(w, &err), SM_OK);
    sm_memtrace_writer_free(w);
    fclose(f);
    struct sm_trace *t;
    assert_int_equal(sm_trace_open_memory(&t, (const uint8_t *)data, bytes, NULL, &err), SM_OK);
    const struct sm_location *list;
    assert_int_equal(sm_trace_meta(t)->word_bits, 32);
    assert_int_equal(sm_trace_n_locations(t), 3);
    assert_int_equal(sm_trace_location(t, 0, &list), 255);
    assert_int_equal(list[254].line, 254);
    assert_int_equal(sm_trace_location(t, 1, &list), 1);
    assert_string_equal(list[0].file, "<unknown>");
    assert_int_equal(sm_trace_location(t, 2, &list), 1);
    assert_string_equal(list[0].function, "??");
    sm_trace_free(t);
    free(data);
}

/* A device that is full: an error with a reason, from the call that meets it. */
static void full_device(void **state) {
    FILE *f = fopen("/dev/full", "wb");
    if (f == NULL)
        skip();
    setvbuf(f, NULL, _IONBF, 0);
    struct sm_memtrace_header header = {.version = 2, .sample_rate = 1, .word_bits = 64};
    struct sm_memtrace_writer *w;
    struct sm_error err = {""};
    assert_int_equal(sm_memtrace_writer_new(&w, f, &header, SM_MEMTRACE_EXACT, NULL, NULL, &err),
                     SM_FAILED);
    assert_non_null(strstr(err.text, "No space"));
    fclose(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_domain),       cmocka_unit_test(several_domains),
        cmocka_unit_test(many_domains),     cmocka_unit_test(deep_recursion),
        cmocka_unit_test(impossible_lists), cmocka_unit_test(full_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
