/* The event encoder against the reference decoder: what goes in comes out, whatever the stacks. */
#include "ref_decoder.h"

#include <stdio.h>

#include "encode/event_encoder.h"

#define BUF_BYTES (1u << 20)

/* ---- a model: the expected events of one packet ---- */

struct model_event {
    uint8_t op;
    uint64_t ticks, size, n_samples, source, stream, seq;
    uint64_t *codes;
    uint32_t depth;
    uint8_t payload[64];
    size_t payload_bytes;
};

struct model {
    struct model_event *events;
    uint32_t n, checked;
    uint64_t new_codes[65536];
    uint32_t n_new;
};

static struct model model;
static struct sm_event_encoder *enc;
static uint8_t *buf;
static uint64_t rng_state = 88172645463325252ull;

static uint64_t rnd(void) {
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return rng_state * 0x2545F4914F6CDD1Dull >> 11;
}

static void on_new(void *ctx, uint64_t code) {
    struct model *m = ctx;
    m->new_codes[m->n_new++] = code;
}

static void model_reset(void) {
    for (uint32_t i = 0; i < model.n; i++)
        free(model.events[i].codes);
    model.n = model.checked = model.n_new = 0;
}

static struct model_event *model_add(void) {
    if (model.events == NULL)
        model.events = calloc(400000, sizeof *model.events);
    assert_true(model.n < 400000);
    memset(&model.events[model.n], 0, sizeof model.events[0]);
    return &model.events[model.n++];
}

static void check_event(void *ctx, const struct ref_event *ev) {
    struct model *m = ctx;
    assert_true(m->checked < m->n);
    const struct model_event *x = &m->events[m->checked++];
    assert_int_equal(ev->op, x->op);
    assert_true(ev->ticks == x->ticks);
    assert_true(ev->obj_seq == x->seq);
    if (x->op == SM_OP_ALLOC || x->op == SM_OP_ALLOC_BYTES) {
        assert_true(ev->size == x->size);
        assert_true(ev->n_samples == x->n_samples);
        assert_true(ev->source == x->source);
        assert_int_equal(ev->depth, x->depth);
        assert_true(x->depth == 0 || memcmp(ev->codes, x->codes, x->depth * sizeof(uint64_t)) == 0);
    } else if (x->op < SM_OP_EXTENSION_MIN) {
        assert_true(ev->obj_stream == x->stream);
    } else {
        assert_true(ev->payload_bytes == x->payload_bytes);
        assert_memory_equal(ev->payload, x->payload, x->payload_bytes);
    }
}

static void check_packet(uint64_t first_seq, uint64_t ts_begin) {
    struct sm_packet_header h = {0};
    sm_event_encoder_fill_header(enc, &h);
    assert_int_equal(h.raw_bytes, sm_event_encoder_used(enc));
    struct ref_totals t = ref_decode(buf, h.raw_bytes, first_seq, ts_begin, check_event, &model);
    assert_int_equal(model.checked, model.n);
    assert_int_equal(h.n_events, model.n);
    assert_int_equal(h.n_alloc, t.n_alloc);
    assert_int_equal(h.max_depth, t.max_depth);
    assert_int_equal(h.n_cut, t.n_cut);
    assert_true(h.first_seq == first_seq);
    assert_true(h.ts_begin_ticks == ts_begin);
    assert_true(h.ts_begin_ticks + h.ts_span_ticks == t.last_ticks);
}

/* The rule of docs/format.md 5.5 as this encoder documents it, frame by frame. */
static uint32_t cut_model(const uintptr_t *inner_first, uint32_t n, bool cut_outer, uint32_t limit,
                          uint64_t *out) {
    uint32_t d = 0;
    if (cut_outer) {
        out[d++] = 0;
        uint32_t inner = n < limit - 1 ? n : limit - 1;
        for (uint32_t i = inner; i-- > 0;)
            out[d++] = inner_first[i] & ~1ull;
        return d;
    }
    uint32_t inner = n <= limit ? 0 : limit / 2;
    uint32_t outer = n <= limit ? n : limit - 1 - inner;
    for (uint32_t i = 0; i < outer; i++)
        out[d++] = inner_first[n - 1 - i] & ~1ull;
    if (n > limit)
        out[d++] = 0;
    for (uint32_t i = inner; i-- > 0;)
        out[d++] = inner_first[i] & ~1ull;
    return d;
}

static bool do_alloc(uint64_t now, uint64_t shown, uint64_t size, bool bytes, uint64_t n_samples,
                     uint8_t source, const uintptr_t *inner_first, uint32_t n, bool cut,
                     uint32_t limit) {
    struct sm_raw_stack st = {inner_first, n, cut, 0};
    uint64_t seq = 0;
    if (!sm_event_encode_alloc(enc, now, size, bytes, n_samples, source, &st, &seq))
        return false;
    struct model_event *x = model_add();
    x->op = bytes ? SM_OP_ALLOC_BYTES : SM_OP_ALLOC;
    x->ticks = shown;
    x->size = size;
    x->n_samples = n_samples;
    x->source = source;
    x->seq = seq;
    x->codes = malloc((size_t)(n + 2) * 8);
    x->depth = cut_model(inner_first, n, cut, limit, x->codes);
    return true;
}

/* ---- random programs: call graphs walked up and down ---- */

static uintptr_t code_for(uint32_t kind, uint64_t r) {
    /* Few sites, many sites, sites spread over the address space. */
    switch (kind % 3) {
    case 0:
        return 0x55550000u + (r % 12) * 16;
    case 1:
        return 0x7f0000000000u + (r % 3000) * 8;
    default:
        return (uintptr_t)((r % 40000 + 1) * 0x1000193u * 2);
    }
}

static void random_packet(uint32_t kind, uint32_t limit, size_t capacity) {
    static uintptr_t outer_first[70000], inner_first[70000];
    uint64_t now = 1000000 + rnd() % 100000, first_seq = rnd() % 100000;
    uint64_t ts_begin = now, shown = now;
    model_reset();
    sm_event_encoder_begin(enc, buf, capacity, first_seq, ts_begin, limit);
    sm_event_encoder_on_new_location(enc, on_new, &model);
    uint32_t depth = 0, max_depth = kind % 5 == 4 ? 3000 : 120;
    uint64_t allocs = 0;
    while (!sm_event_encoder_full(enc, SM_TARGET_RAW_BYTES) && model.n < 30000) {
        now += rnd() % 4 == 0 ? rnd() % 300 : rnd() % 3;
        if (rnd() % 50 == 0)
            now -= rnd() % 1000; /* a clock that steps back */
        if (now > shown)
            shown = now;
        uint64_t what = rnd() % 100;
        bool ok = true;
        if (what < 60) {
            uint64_t pops = rnd() % 4 == 0 ? rnd() % (depth + 1) : rnd() % 4;
            depth -= pops > depth ? depth : (uint32_t)pops;
            uint64_t pushes = rnd() % 40 == 0 ? rnd() % max_depth : rnd() % 5;
            bool recursive = rnd() % 8 == 0;
            uintptr_t rec = code_for(kind, rnd());
            while (pushes-- > 0 && depth < max_depth)
                outer_first[depth++] = recursive ? rec : code_for(kind, rnd());
            for (uint32_t i = 0; i < depth; i++)
                inner_first[i] = outer_first[depth - 1 - i] | 1;
            uint64_t size = rnd() % 5 == 0 ? rnd() % (1ull << rnd() % 62) : rnd() % 20;
            bool bytes = rnd() % 16 == 0;
            uint64_t n_samples = rnd() % 6 == 0 ? rnd() % 100000 : 1;
            uint8_t source = rnd() % 6 == 0 ? (uint8_t)(rnd() % 128) : 0;
            ok = do_alloc(now, shown, size, bytes, n_samples, source, inner_first, depth,
                          kind % 7 == 6 && rnd() % 3 == 0, limit);
            allocs += ok;
        } else if (what < 95) {
            bool own = rnd() % 4 != 0;
            bool promote = rnd() % 2;
            uint32_t stream = (uint32_t)(rnd() % (kind % 2 ? 6 : SM_MAX_STREAMS));
            uint64_t seq = own ? rnd() % (first_seq + allocs + 1) : rnd() % SM_MAX_SEQ;
            ok = sm_event_encode_ref(enc, now, promote ? SM_OP_PROMOTE : SM_OP_COLLECT, own, stream,
                                     seq);
            if (ok) {
                struct model_event *x = model_add();
                x->op = (uint8_t)((promote ? 200 : 201) + (own ? 0 : 2));
                x->ticks = shown;
                x->stream = own ? UINT64_MAX : stream;
                x->seq = seq;
            }
        } else {
            uint8_t payload[64];
            size_t n = rnd() % 64;
            for (size_t i = 0; i < n; i++)
                payload[i] = (uint8_t)rnd();
            uint8_t op = (uint8_t)(224 + rnd() % 32);
            ok = sm_event_encode_extension(enc, now, op, payload, n);
            if (ok) {
                struct model_event *x = model_add();
                x->op = op;
                x->ticks = shown;
                memcpy(x->payload, payload, n);
                x->payload_bytes = n;
            }
        }
        if (!ok) { /* no room, or no index: nothing may have changed; the packet ends here */
            assert_true(capacity < BUF_BYTES || sm_event_encoder_full(enc, SM_TARGET_RAW_BYTES));
            break;
        }
    }
    check_packet(first_seq, ts_begin);
}

static void test_random_packets(void **state) {
    for (uint32_t kind = 0; kind < 210; kind++) {
        uint32_t limits[] = {SM_MAX_DEPTH, 2, 3, 17, 100, 1024};
        size_t capacity = kind % 10 == 9 ? 3000 + rnd() % 30000 : BUF_BYTES;
        random_packet(kind, limits[kind % 6], capacity);
    }
}

/* Every location is reported once, in the order of its first appearance, cut frames excepted. */
static void test_new_locations_are_reported(void **state) {
    uintptr_t a[] = {0x31, 0x21, 0x11}, b[] = {0x41, 0x21, 0x11};
    for (int round = 0; round < 3; round++) {
        model_reset();
        sm_event_encoder_begin(enc, buf, BUF_BYTES, 0, 0, 100);
        sm_event_encoder_on_new_location(enc, on_new, &model);
        assert_true(do_alloc(0, 0, 1, false, 1, 0, a, 3, true, 100));
        assert_true(do_alloc(0, 0, 1, false, 1, 0, b, 3, false, 100));
        assert_true(do_alloc(0, 0, 1, false, 1, 0, a, 3, false, 100));
        assert_int_equal(model.n_new, 4);
        uint64_t want[] = {0x10, 0x20, 0x30, 0x40};
        assert_memory_equal(model.new_codes, want, sizeof want);
        check_packet(0, 0);
    }
}

/* Known bytes: this is the format, not merely something that our own decoder reads. */
static void test_known_bytes(void **state) {
    uintptr_t a[] = {0x31, 0x21, 0x11};
    uintptr_t b[] = {0x31, 0x21, 0x21, 0x11};
    uintptr_t c[] = {0x31, 0x21, 0x51};
    model_reset();
    sm_event_encoder_begin(enc, buf, BUF_BYTES, 7, 100, 100);
    sm_event_encoder_on_new_location(enc, NULL, NULL);
    assert_true(do_alloc(100, 100, 2, false, 1, 0, a, 3, false, 100));
    assert_true(do_alloc(103, 103, 2, false, 1, 0, b, 4, false, 100));
    assert_true(do_alloc(103, 103, 300, false, 2, 1, c, 3, false, 100));
    assert_true(sm_event_encode_ref(enc, 104, SM_OP_COLLECT, true, 0, 8));
    assert_true(sm_event_encode_ref(enc, 104, SM_OP_PROMOTE, false, 5, 0));
    const uint8_t want[] = {
        2,    0,    0, 6, 0xF4, 0x20, 0xF4, 0x20, 0xF4, 0x20, /* three new, deltas +0x10 */
        2,    3,    1, 2,                                     /* pop 0x30, keep 0x10 0x20 */
        0x00, 0x09, /* 0x20 by index 2, one predicted... */
    };
    /* In context 0x20 the successor list is [0x30]; after the explicit 0x20 it is [0x20, 0x30], so
       the frame predicted after it is 0x20 again and 0x30 has to be named: rank 1. */
    const uint8_t want_b[] = {0x00, 0x08, 0xE4};
    assert_memory_equal(buf, want, 10);
    const uint8_t head_b[] = {2, 3, 1, 3};
    assert_memory_equal(buf + 10, head_b, 4);
    assert_memory_equal(buf + 14, want_b, 3);
    /* Third: all popped (4); 0x50 new; 0x20 by index; its first successor is now 0x30. */
    const uint8_t want_c[] = {64,   0,    0xAC, 2, 2, 1,   4, 4, 0xF4, 0x40,
                              0x00, 0x09, 201,  1, 2, 202, 0, 5, 0};
    assert_memory_equal(buf + 17, want_c, sizeof want_c);
    assert_int_equal(sm_event_encoder_used(enc), 17 + sizeof want_c);
}

/* Deep recursion costs few bytes; runs longer than one count can say are split. */
static void test_recursion(void **state) {
    static uintptr_t deep[SM_MAX_DEPTH];
    for (uint32_t i = 0; i < SM_MAX_DEPTH; i++)
        deep[i] = i % 2 ? 0x101 : 0x201;
    model_reset();
    sm_event_encoder_begin(enc, buf, BUF_BYTES, 0, 0, SM_MAX_DEPTH);
    assert_true(do_alloc(0, 0, 1, false, 1, 0, deep, SM_MAX_DEPTH, false, SM_MAX_DEPTH));
    assert_true(do_alloc(0, 0, 1, false, 1, 0, deep, 10, false, SM_MAX_DEPTH));
    assert_true(do_alloc(0, 0, 1, false, 1, 0, deep, SM_MAX_DEPTH, false, SM_MAX_DEPTH));
    assert_true(sm_event_encoder_used(enc) < 1000);
    check_packet(0, 0);
}

/* All frames new, up to the limit of indices; then the encoder refuses and stays as it was. */
static void test_tables_full(void **state) {
    static uintptr_t deep[SM_MAX_DEPTH];
    model_reset();
    uint8_t *own_buf = buf;
    sm_event_encoder_begin(enc, own_buf, BUF_BYTES, 0, 0, SM_MAX_DEPTH);
    uint64_t next = 2;
    uint32_t accepted = 0;
    for (;;) {
        for (uint32_t i = 0; i < 20000; i++, next += 2)
            deep[i] = next | 1;
        size_t before = sm_event_encoder_used(enc);
        if (!do_alloc(0, 0, 1, false, 1, 0, deep, 20000, false, SM_MAX_DEPTH)) {
            assert_int_equal(before, sm_event_encoder_used(enc));
            break;
        }
        accepted++;
    }
    assert_int_equal(accepted, 3); /* 60000 of 65535 */
    assert_true(sm_event_encoder_full(enc, BUF_BYTES));
    /* 5535 are left, and the last index is usable. */
    for (uint32_t i = 0; i < 5536; i++, next += 2)
        deep[i] = next | 1;
    assert_false(do_alloc(0, 0, 1, false, 1, 0, deep, 5536, false, SM_MAX_DEPTH));
    assert_true(do_alloc(0, 0, 1, false, 1, 0, deep, 5535, false, SM_MAX_DEPTH));
    assert_true(do_alloc(0, 0, 1, false, 1, 0, deep + 5534, 1, false, SM_MAX_DEPTH));
    check_packet(0, 0);

    /* Foreign streams. */
    model_reset();
    sm_event_encoder_begin(enc, own_buf, BUF_BYTES, 0, 0, SM_MAX_DEPTH);
    uint32_t streams = 0;
    while (!sm_event_encoder_full(enc, BUF_BYTES)) {
        assert_true(sm_event_encode_ref(enc, 0, SM_OP_COLLECT, false, streams, 5));
        streams++;
        assert_true(streams < 100000);
    }
    assert_false(sm_event_encode_ref(enc, 0, SM_OP_COLLECT, false, streams, 5));
    assert_true(sm_event_encode_ref(enc, 0, SM_OP_COLLECT, false, 0, 6));
    struct ref_totals t = ref_decode(own_buf, sm_event_encoder_used(enc), 0, 0, NULL, NULL);
    assert_int_equal(t.n_events, streams + 1);
}

/* The bounds hold: a buffer of the bound's size takes the worst event. */
static void test_bounds(void **state) {
    static uintptr_t frames[1000];
    for (uint32_t n = 0; n < 1000; n += 37) {
        for (uint32_t i = 0; i < n; i++)
            frames[i] = ((i % 2 ? 0x7fffffffffff0000ull : 0x2) + i * 4) | 1;
        model_reset();
        sm_event_encoder_begin(enc, buf, sm_event_encoder_bound_alloc(n), 0, 0, SM_MAX_DEPTH);
        assert_true(do_alloc(UINT64_MAX, UINT64_MAX, UINT64_MAX, false, UINT64_MAX, 255, frames, n,
                             false, SM_MAX_DEPTH));
        check_packet(0, 0);
        sm_event_encoder_begin(enc, buf, sm_event_encoder_bound_extension(n), 0, 0, SM_MAX_DEPTH);
        assert_true(sm_event_encode_extension(enc, UINT64_MAX, SM_OP_MARK, frames, n));
    }
}

/* Codes of any value, odd ones and 0 included; not confused with raw stacks before them. */
static void test_codes(void **state) {
    model_reset();
    sm_event_encoder_begin(enc, buf, BUF_BYTES, 0, 0, 4);
    uintptr_t raw[] = {0x11};
    assert_true(do_alloc(0, 0, 1, false, 1, 0, raw, 1, false, 4));
    for (int k = 0; k < 2000; k++) {
        uint64_t codes[40];
        uint32_t n = (uint32_t)(rnd() % 40);
        static const uint64_t values[] = {0,    1,          2,          3,         0x11,
                                          0x10, UINT64_MAX, 1ull << 63, 1ull << 62};
        for (uint32_t i = 0; i < n; i++)
            codes[i] = i < n / 2 ? values[i % 9] : values[rnd() % 9];
        uint64_t seq;
        assert_true(sm_event_encode_alloc_codes(enc, 0, 3, false, 1, 0, codes, n, &seq));
        struct model_event *x = model_add();
        x->op = SM_OP_ALLOC;
        x->size = 3;
        x->n_samples = 1;
        x->seq = seq;
        x->depth = n;
        x->codes = malloc(40 * 8);
        memcpy(x->codes, codes, n * 8);
    }
    assert_true(do_alloc(0, 0, 1, false, 1, 0, raw, 1, false, 4));
    check_packet(0, 0);
    uint64_t *deep = calloc(SM_MAX_DEPTH + 1, 8), seq;
    assert_true(sm_event_encode_alloc_codes(enc, 0, 3, false, 1, 0, deep, SM_MAX_DEPTH, &seq));
    assert_false(sm_event_encode_alloc_codes(enc, 0, 3, false, 1, 0, deep, SM_MAX_DEPTH + 1, &seq));
    free(deep);
}

/* More packets than the hash has generations. */
static void test_generations(void **state) {
    uintptr_t a[] = {0x31, 0x21, 0x11};
    for (uint32_t k = 0; k < 70000; k++) {
        a[0] = (uintptr_t)(0x1000 + (k % 977) * 2) | 1;
        model_reset();
        sm_event_encoder_begin(enc, buf, BUF_BYTES, 0, 0, 100);
        sm_event_encoder_on_new_location(enc, NULL, NULL);
        assert_true(do_alloc(0, 0, 1, false, 1, 0, a, 3, false, 100));
        assert_true(do_alloc(0, 0, 1, false, 1, 0, a, 3, false, 100));
        assert_int_equal(buf[0], 1);
        if (k % 100 == 0 || k > 65500)
            check_packet(0, 0);
    }
}

int main(void) {
    enc = calloc(1, sm_event_encoder_bytes());
    buf = malloc(BUF_BYTES);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_bytes),
        cmocka_unit_test(test_random_packets),
        cmocka_unit_test(test_new_locations_are_reported),
        cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_tables_full),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_generations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
