/* The reader of native traces on sound and damaged input. What a damaged trace must still give is worked
   out from what the builder knows: where each packet stands and where each event ends. */
#include "native_reading.h"

/* ---- sound ---- */

static void sound(void **state) {
    for (int compress = 0; compress < 2; compress++) {
        struct tb b;
        tb_init(&b, 4);
        b.compress = compress != 0;
        tb_mixed(&b, 4, 20000, 5);
        struct reading r;
        assert_true(read_memory(b.data, b.bytes, &r));
        assert_int_equal(r.n, b.events_made);
        assert_int_equal(r.n_losses, 0);
        check_events(&b, &r, &r, keep_all, NULL, "sound", 0);
        struct sm_trace *t;
        assert_int_equal(sm_trace_open_memory(&t, b.data, b.bytes, NULL, NULL), SM_OK);
        const struct sm_meta *m = sm_trace_meta(t);
        assert_string_equal(m->executable, "/usr/bin/prog");
        assert_int_equal(m->n_args, 2);
        assert_string_equal(m->args + 5, "a b");
        assert_int_equal(m->build_id_bytes, 4);
        assert_memory_equal(m->build_id, "\x01\x00\x02\x03", 4);
        assert_true(m->sample_rate == 1e-3);
        assert_true(m->start_real_ns == 1700000000000000000 + 1000 * 1000 - 5000000);
        assert_true(sm_trace_end(t)->present);
        assert_int_equal(sm_trace_end(t)->n_events, b.events_made);
        assert_int_equal(sm_trace_end(t)->n_gc, 2);
        assert_int_equal(sm_trace_n_streams(t), 4);
        /* stack-less reading gives the same but for the stacks, two passes give the same */
        struct reading plain, again;
        read_trace(t, SM_CURSOR_EXTENSIONS | SM_CURSOR_UNMERGED, &plain);
        read_trace(t, all, &again);
        assert_int_equal(plain.n, r.n);
        assert_int_equal(again.n, r.n);
        assert_memory_equal(again.records, r.records, r.n * sizeof *r.records);
        for (size_t i = 0; i < r.n; i++) {
            assert_true(plain.records[i].ticks == r.records[i].ticks);
            assert_true(plain.records[i].size == r.records[i].size);
            assert_true(plain.records[i].obj_seq == r.records[i].obj_seq);
        }
        sm_trace_free(t);
        release(&plain);
        release(&again);
        release(&r);
        tb_release(&b);
    }
}

/* What the stacks are, not only that they stay the same. */
static void stacks(void **state) {
    struct tb b;
    tb_init(&b, 1);
    tb_meta(&b);
    uint64_t codes[3000];
    uint32_t random = 9;
    uint64_t sums[300];
    uint32_t depths[300];
    for (uint32_t i = 0; i < 300; i++) {
        uint32_t n = i % 10 == 0 ? 3000 : tb_random(&random) % 80;
        uint64_t h = n;
        for (uint32_t k = 0; k < n; k++) {
            if (k > 20 || tb_random(&random) % 40 == 0)
                codes[k] = tb_random(&random) % (i % 7 == 0 ? 20000 : 30) * 8 + 8;
            if (tb_random(&random) % 1000 == 0)
                codes[k] = UINT64_MAX - k; /* as converted traces may have */
            if (codes[k] == 0)
                codes[k] = 16;
            h = (h ^ codes[k]) * 0x100000001B3ull;
        }
        sums[i] = h;
        depths[i] = n;
        tb_alloc(&b, 0, 2000 + i, 3, codes, n);
    }
    tb_end(&b, 9999);
    struct sm_trace *t;
    struct sm_cursor *c;
    struct sm_event e;
    assert_int_equal(sm_trace_open_memory(&t, b.data, b.bytes, NULL, NULL), SM_OK);
    assert_int_equal(sm_cursor_new(&c, t, SM_CURSOR_STACKS, NULL), SM_OK);
    uint32_t *last = calloc(4000, sizeof *last);
    for (uint32_t i = 0; i < 300; i++) {
        assert_int_equal(sm_cursor_next(c, &e), SM_OK);
        assert_int_equal(e.n_frames, depths[i]);
        assert_true(hash_stack(t, &e) == sums[i]);
        assert_true(e.common_prefix <= e.n_frames);
        assert_memory_equal(last, e.frames, e.common_prefix * sizeof *last);
        memcpy(last, e.frames, e.n_frames * sizeof *last);
    }
    assert_int_equal(sm_cursor_next(c, &e), SM_END);
    free(last);
    sm_cursor_free(c);
    sm_trace_free(t);
    tb_release(&b);
}

/* ---- damage ---- */

static bool keep_before(const struct tb *b, const struct tb_event *e, const void *arg) {
    size_t cut = *(const size_t *)arg;
    const struct tb_packet *p = tb_find(b, SM_PACKET_EVENTS, e->stream, e->packet_seq);
    if (p->header.codec != SM_CODEC_NONE)
        return p->offset + p->bytes <= cut;
    return p->offset + SM_PACKET_HEADER_BYTES + e->raw_end <= cut;
}

/* A32: cut at every byte, everything before the cut is read. */
static void truncation(void **state) {
    for (int compress = 0; compress < 2; compress++) {
        struct tb b;
        struct reading full, r;
        small_trace(&b, compress != 0);
        assert_true(read_memory(b.data, b.bytes, &full));
        for (size_t cut = 0; cut < b.bytes; cut++) {
            bool ok = read_memory(b.data, cut, &r);
            assert_true(ok == (cut >= SM_PACKET_HEADER_BYTES));
            if (ok) {
                check_events(&b, &full, &r, keep_before, &cut, "cut", cut);
                assert_true(has_loss(&r, SM_LOSS_EXTENT));
                size_t packet = 0;
                while (packet < b.n_packets &&
                       b.packets[packet].offset + b.packets[packet].bytes <= cut)
                    packet++;
                const struct tb_packet *p = &b.packets[packet];
                if (p->offset != cut)
                    assert_true(has_loss(&r, SM_LOSS_CUT));
                if (p->header.kind == SM_PACKET_EVENTS &&
                    cut >= p->offset + SM_PACKET_HEADER_BYTES) {
                    size_t there = 0; /* of the cut packet's events */
                    for (size_t i = 0; i < b.events_made; i++)
                        there += b.events[i].stream == p->header.stream &&
                                 b.events[i].packet_seq == p->header.packet_seq &&
                                 keep_before(&b, &b.events[i], &cut);
                    assert_int_equal(r.lost_events, p->header.n_events - there);
                }
            }
            release(&r);
        }
        release(&full);
        tb_release(&b);
    }
}

struct hit {
    size_t from, to; /* bytes of the sound trace that are touched */
};

static bool keep_unhit(const struct tb *b, const struct tb_event *e, const void *arg) {
    const struct hit *h = arg;
    const struct tb_packet *p = tb_find(b, SM_PACKET_EVENTS, e->stream, e->packet_seq);
    return h->to <= p->offset || h->from >= p->offset + p->bytes;
}

static void bit_flips(void **state) {
    struct tb b;
    struct reading full, r;
    small_trace(&b, false);
    assert_true(read_memory(b.data, b.bytes, &full));
    for (size_t at = 0; at < b.bytes; at++) {
        struct hit h = {at, at + 1};
        uint8_t bit = (uint8_t)(1u << (at * 5 % 8));
        b.data[at] ^= bit;
        assert_true(read_memory(b.data, b.bytes, &r));
        check_events(&b, &full, &r, keep_unhit, &h, "bit flip", at);
        if (r.n_losses == 0)
            fail_msg("bit flip at %zu went unseen", at);
        b.data[at] ^= bit;
        release(&r);
    }
    release(&full);
    tb_release(&b);
}

static void regions(void **state) {
    struct tb b;
    struct reading full, r;
    uint32_t random = 77;
    tb_init(&b, 3);
    b.target_bytes = 500;
    tb_mixed(&b, 3, 2000, 3);
    assert_true(read_memory(b.data, b.bytes, &full));
    uint8_t *copy = malloc(b.bytes * 2);
    for (int round = 0; round < 600; round++) {
        size_t from = SM_PACKET_HEADER_BYTES + tb_random(&random) % (b.bytes - 200);
        size_t length = 1 + tb_random(&random) % (round % 3 == 0 ? 4000 : 300);
        if (from + length > b.bytes)
            length = b.bytes - from - 1; /* cuts at the end have their own test */
        struct hit h = {from, from + length};
        size_t bytes = b.bytes;
        memcpy(copy, b.data, b.bytes);
        const char *what = "zeroed";
        switch (round % 4) {
        case 0:
            memset(copy + from, 0, length);
            break;
        case 1:
            what = "removed";
            memmove(copy + from, copy + from + length, b.bytes - from - length);
            bytes -= length;
            break;
        case 2:
            what = "inserted";
            for (size_t i = 0; i < length; i++)
                copy[from + i] = (uint8_t)tb_random(&random);
            memcpy(copy + from + length, b.data + from, b.bytes - from);
            bytes += length;
            h.to = from; /* touches the packet around it only, and none at a boundary */
            for (size_t i = 0; i < b.n_packets; i++)
                if (b.packets[i].offset < from && from < b.packets[i].offset + b.packets[i].bytes)
                    h.to = from + 1;
            break;
        default:
            what = "overwritten";
            for (size_t i = 0; i < length; i++)
                copy[from + i] = (uint8_t)tb_random(&random);
            break;
        }
        assert_true(read_memory(copy, bytes, &r));
        if (h.to > h.from || round % 4 == 2)
            check_events(&b, &full, &r, keep_unhit, &h, what, from);
        if (memcmp(copy, b.data, b.bytes) != 0)
            assert_true(r.n_losses > 0);
        release(&r);
    }
    free(copy);
    release(&full);
    tb_release(&b);
}

static void garbage_in_front(void **state) {
    struct tb b;
    struct reading full, r;
    small_trace(&b, false);
    assert_true(read_memory(b.data, b.bytes, &full));
    uint8_t *copy = malloc(b.bytes + 1000);
    memset(copy, 'x', 1000);
    memcpy(copy + 1000, b.data, b.bytes);
    assert_true(read_memory(copy, b.bytes + 1000, &r));
    check_events(&b, &full, &r, keep_all, NULL, "garbage in front", 0);
    assert_int_equal(r.n_losses, 1);
    assert_int_equal(r.losses[0].kind, SM_LOSS_GARBAGE);
    assert_int_equal(r.losses[0].bytes, 1000);
    free(copy);
    release(&r);
    release(&full);
    tb_release(&b);
}

/* ---- packets of others, copies, several traces ---- */

static size_t copy_packet(uint8_t *to, const struct tb *b, const struct tb_packet *p,
                          uint64_t session, uint32_t pid) {
    struct sm_packet_header h = p->header;
    h.session = session;
    h.pid = pid;
    sm_packet_header_put(to, &h);
    memcpy(to + SM_PACKET_HEADER_BYTES, b->data + p->offset + SM_PACKET_HEADER_BYTES,
           p->bytes - SM_PACKET_HEADER_BYTES);
    return p->bytes;
}

static void foreign_and_copies(void **state) {
    struct tb b;
    struct reading full, r;
    small_trace(&b, false);
    assert_true(read_memory(b.data, b.bytes, &full));
    uint8_t *data = malloc(b.bytes * 3);
    for (int kind = 0; kind < 3; kind++) {
        size_t bytes = 0;
        uint64_t events = 0;
        for (size_t i = 0; i < b.n_packets; i++) {
            const struct tb_packet *p = &b.packets[i];
            bytes += copy_packet(data + bytes, &b, p, b.session, b.pid);
            if (p->header.kind != SM_PACKET_EVENTS || i % 2 == 0)
                continue;
            events += p->header.n_events;
            bytes += copy_packet(data + bytes, &b, p, b.session + (kind == 0), b.pid + (kind == 1));
        }
        assert_true(read_memory(data, bytes, &r));
        check_events(&b, &full, &r, keep_all, NULL, "packets of others", (size_t)kind);
        assert_true(has_loss(&r, kind == 2 ? SM_LOSS_GARBAGE : SM_LOSS_FOREIGN));
        if (kind < 2)
            assert_int_equal(r.losses[0].events, events);
        release(&r);
    }
    free(data);
    release(&full);
    tb_release(&b);
}

static void concatenated(void **state) {
    struct tb a, b;
    struct reading full_a, full_b, r;
    struct sm_error err;
    struct sm_trace *t;
    small_trace(&a, false);
    tb_init(&b, 2);
    b.session = 99;
    b.pid = 5;
    tb_mixed(&b, 2, 300, 4);
    assert_true(read_memory(a.data, a.bytes, &full_a));
    assert_true(read_memory(b.data, b.bytes, &full_b));
    uint8_t *data = malloc(a.bytes + b.bytes);
    memcpy(data, a.data, a.bytes);
    memcpy(data + a.bytes, b.data, b.bytes);
    for (uint32_t part = 0; part < 3; part++) {
        struct sm_trace_options options = {.part = part};
        enum sm_status status = sm_trace_open_memory(&t, data, a.bytes + b.bytes, &options, &err);
        assert_int_equal(status, part < 2 ? SM_OK : SM_FAILED);
        if (part == 2) {
            assert_non_null(strstr(err.text, "2 traces"));
            break;
        }
        read_trace(t, all, &r);
        check_events(part == 0 ? &a : &b, part == 0 ? &full_a : &full_b, &r, keep_all, NULL, "part",
                     part);
        assert_int_equal(r.n_losses, 1);
        assert_int_equal(r.losses[0].kind, SM_LOSS_CONCATENATED);
        assert_int_equal(r.losses[0].events, part == 0 ? b.events_made : a.events_made);
        release(&r);
        sm_trace_free(t);
    }
    free(data);
    release(&full_a);
    release(&full_b);
    tb_release(&a);
    tb_release(&b);
}

int main(void) {
    if (!make_directory())
        return 99;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound),        cmocka_unit_test(stacks),
        cmocka_unit_test(truncation),   cmocka_unit_test(bit_flips),
        cmocka_unit_test(regions),      cmocka_unit_test(garbage_in_front),
        cmocka_unit_test(concatenated), cmocka_unit_test(foreign_and_copies),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(directory);
    return failed;
}
