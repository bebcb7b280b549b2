/* Memtrace files as other writers, other machines and accidents make them, built by hand byte by
   byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/backend.h"
#include "decode/memtrace_internal.h"

#define START 1700000000000000

/* ---- a builder ---- */

struct builder {
    uint8_t bytes[1 << 18];
    size_t used, packet;
    unsigned version;
    enum sm_mt_order order;
    uint64_t pid;
};

static struct builder *b;

static void put(uint64_t x, unsigned n, bool big) {
    for (unsigned i = 0; i < n; i++)
        b->bytes[b->used + i] = (uint8_t)(x >> 8 * (big ? n - 1 - i : i));
    b->used += n;
}
static void plain(uint64_t x, unsigned n) {
    put(x, n, b->order == SM_MT_BIG);
}
static void patched(uint64_t x, unsigned n) {
    put(x, n, b->order != SM_MT_LITTLE);
}
static void text(const char *s) {
    memcpy(b->bytes + b->used, s, strlen(s) + 1);
    b->used += strlen(s) + 1;
}

static void packet(int64_t begin, int64_t end, unsigned domain, uint64_t id_begin,
                   uint64_t id_end) {
    b->packet = b->used;
    plain(SM_MT_MAGIC, 4);
    patched(0, 4);
    patched((uint64_t)begin, 8);
    patched((uint64_t)end, 8);
    patched(0, 4);
    plain(b->version, 2);
    plain(b->pid, 8);
    if (b->version >= 3)
        plain(domain, 2);
    plain(SM_MT_NO_VERIFY, 2);
    plain(0, 2);
    plain(0, 8);
    patched(id_begin, 8);
    patched(id_end, 8);
}

/* Sets the size; call at each packet's end. */
static void done(void) {
    size_t end = b->used;
    b->used = b->packet + 4;
    patched((end - b->packet) * 8, 4);
    b->used = end;
}

static void event(unsigned id, int64_t us) {
    plain(((uint64_t)us & SM_MT_TIME_MASK) | (uint64_t)id << SM_MT_TIME_BITS, 4);
}

static void begin(unsigned version, enum sm_mt_order order) {
    if (b == NULL)
        b = malloc(sizeof *b);
    b->used = 0;
    b->version = version;
    b->order = order;
    b->pid = 77;
}

static void info(unsigned word_bits) {
    packet(START, START, 0, 0, 0);
    event(SM_MT_INFO, START);
    plain(0x3FE0000000000000, 8); /* 0.5 */
    plain(word_bits, 1);
    text("prog");
    text("host");
    text("params");
    plain(77, 8);
    if (b->version >= 2)
        text("");
    done();
}

/* A short allocation of one word whose stack is the given codes, each sent anew to its own slot. */
static void alloc(int64_t us, unsigned common, unsigned n, const uint64_t *codes) {
    event(SM_MT_SHORT_BASE + 1, us);
    plain(common, 1);
    plain(n, 1);
    for (unsigned i = 0; i < n; i++) {
        plain((codes[i] & 0xFFF) << 2 | 3, 2);
        plain(codes[i], 8);
    }
}

static void location(int64_t us, uint64_t code, unsigned line, unsigned start, unsigned end,
                     unsigned file, unsigned function, const char *file_name, const char *name) {
    uint64_t word = line | (uint64_t)start << 20 | (uint64_t)end << 28 | (uint64_t)file << 38 |
                    (uint64_t)function << 43;
    event(SM_MT_LOCATION, us);
    plain(code, 8);
    plain(1, 1);
    plain(word & UINT32_MAX, 4);
    plain(word >> 32, 2);
    if (file == 31)
        text(file_name);
    if (function == 31)
        text(name);
}

/* ---- reading ---- */

struct seen {
    unsigned kind, flags;
    int64_t us;
    uint32_t stream, obj_stream;
    uint64_t obj_seq, size, n_samples, top; /* innermost code */
    uint32_t n_frames;
};
static struct seen seen[20000];
static uint32_t n_seen;
static struct sm_trace *t;

static void read_part(uint32_t part) {
    struct sm_error err;
    struct sm_trace_options options = {.part = part};
    sm_trace_free(t);
    t = NULL;
    assert_int_equal(sm_trace_open_memory(&t, b->bytes, b->used, &options, &err), SM_OK);
    n_seen = 0;
    for (uint32_t i = 0; i < sm_trace_n_streams(t); i++) {
        struct sm_stream_cursor *c = t->backend->stream_new(t, i, SM_CURSOR_STACKS);
        struct sm_event e;
        int64_t last = INT64_MIN;
        while (t->backend->stream_next(c, &e) == SM_OK) {
            assert_true(n_seen < 20000);
            seen[n_seen++] = (struct seen){
                e.kind,
                e.flags,
                (int64_t)e.ticks,
                e.stream,
                e.obj_stream,
                e.obj_seq,
                e.size,
                e.n_samples,
                e.n_frames > 0 ? sm_trace_location_code(t, e.frames[e.n_frames - 1]) : 0,
                e.n_frames};
            assert_true((int64_t)e.ticks >= last);
            last = (int64_t)e.ticks;
        }
        t->backend->stream_free(c);
    }
}

static void read_all(void) {
    read_part(0);
}

static const struct sm_loss *loss(enum sm_loss_kind kind) {
    const struct sm_loss *list;
    size_t n = sm_trace_losses(t, &list);
    for (size_t i = 0; i < n; i++)
        if (list[i].kind == kind)
            return &list[i];
    return NULL;
}

static void no_losses(void) {
    const struct sm_loss *list;
    if (sm_trace_losses(t, &list) > 0)
        fail_msg("%s", list[0].detail);
}

static const uint64_t codes[] = {101, 102, 103, 104, 105, 106};

/* ---- tests ---- */

static void byte_orders(void **state) {
    for (unsigned version = 1; version <= 3; version++) {
        for (int order = SM_MT_LITTLE; order <= SM_MT_BIG; order++) {
            begin(version, (enum sm_mt_order)order);
            info(32);
            packet(START, START, 0, 0, 0);
            location(START, 101, 7, 1, 2, 31, 31, "file.ml", "f");
            done();
            packet(START, START + 70000, 0, 0, 2);
            alloc(START + 5, 0, 1, codes);
            event(SM_MT_ALLOC, START + 6); /* long: 300 words, 70000 samples, major */
            plain(253, 1);
            plain(300, 2);
            plain(254, 1);
            plain(70000, 4);
            plain(1, 1);
            plain(1, 1);
            patched(1, 2);
            plain(101 << 2 | 0, 2);
            event(SM_MT_COLLECT, START + 70000);
            plain(1, 1);
            done();
            read_all();
            no_losses();
            assert_int_equal(sm_trace_meta(t)->word_bits, 32);
            assert_true(sm_trace_meta(t)->sample_rate == 0.5);
            assert_int_equal(sm_trace_meta(t)->format, (int)version);
            assert_int_equal(n_seen, 3);
            assert_int_equal(seen[0].us, START + 5);
            assert_int_equal(seen[1].size, 300);
            assert_int_equal(seen[1].n_samples, 70000);
            assert_int_equal(seen[1].n_frames, 2);
            assert_int_equal(seen[1].top, 101);
            assert_int_equal(seen[2].obj_seq, 0);
            const struct sm_location *list;
            assert_int_equal(sm_trace_location(t, 0, &list), 1);
            assert_string_equal(list[0].file, "file.ml");
            assert_int_equal(list[0].line, 7);
            assert_int_equal(list[0].end_char, 2);
        }
    }
}

static void numbers_of_old_encoders(void **state) {
    begin(1, SM_MT_LITTLE);
    info(64);
    packet(START, START, 0, 0, 1);
    event(SM_MT_ALLOC, START);
    plain(254, 1); /* 3 000 000 000 words, written as a signed 32-bit number */
    plain(3000000000u, 4);
    plain(1, 1);
    plain(1, 1);
    plain(0, 1);
    plain(0, 2);
    done();
    read_all();
    no_losses();
    assert_int_equal(seen[0].size, 3000000000u);
}

static void references_across_domains(void **state) {
    begin(3, SM_MT_LITTLE);
    info(64);
    packet(START, START + 1, 0, 0, 1);
    alloc(START, 0, 0, codes);
    done();
    packet(START, START + 1, 5, 10000, 10002);
    alloc(START, 0, 0, codes);
    alloc(START, 0, 0, codes);
    done();
    packet(START + 2, START + 3, 0, 1, 1);
    event(SM_MT_PROMOTE, START + 2); /* object 10001 = 1 - 1 - delta */
    plain(254, 1);
    plain((uint32_t)-10001, 4);
    event(SM_MT_COLLECT, START + 3); /* object 10000 */
    plain(254, 1);
    plain((uint32_t)-10000, 4);
    event(SM_MT_COLLECT, START + 3); /* object 9999, which nobody made */
    plain(254, 1);
    plain((uint32_t)-9999, 4);
    done();
    read_all();
    no_losses();
    assert_int_equal(sm_trace_n_streams(t), 2);
    assert_int_equal(n_seen, 6);
    assert_int_equal(seen[1].kind, SM_EVENT_PROMOTE);
    assert_int_equal(seen[1].obj_stream, 5);
    assert_int_equal(seen[1].obj_seq, 1);
    assert_int_equal(seen[2].obj_stream, 5);
    assert_int_equal(seen[2].obj_seq, 0);
    assert_int_equal(seen[2].flags & SM_EVENT_ORPHAN, 0);
    assert_int_equal(seen[3].flags & SM_EVENT_ORPHAN, SM_EVENT_ORPHAN);
    assert_true(t->backend->has_object(t, 5, 1));
    assert_false(t->backend->has_object(t, 5, 2));
    assert_false(t->backend->has_object(t, 6, 0));
}

static void code_zero_and_no_locations(void **state) {
    begin(2, SM_MT_LITTLE);
    info(64);
    packet(START, START, 0, 0, 0);
    event(SM_MT_LOCATION, START);
    plain(101, 8);
    plain(0, 1);
    done();
    packet(START, START, 0, 0, 2);
    alloc(START, 0, 1, codes);
    event(SM_MT_SHORT_BASE + 1, START);
    plain(0, 1);
    plain(1, 1);
    plain(9 << 2 | 0, 2); /* an empty slot */
    done();
    read_all();
    no_losses();
    const struct sm_location *list;
    assert_int_equal(seen[0].top, 101);
    assert_int_equal(sm_trace_location(t, 0, &list), 0);
    assert_int_equal(seen[1].n_frames, 1);
    assert_int_equal(seen[1].top, 0);
}

static void prefix_beyond_the_stack(void **state) {
    begin(2, SM_MT_LITTLE);
    info(64);
    packet(START, START, 0, 0, 3);
    alloc(START, 0, 2, codes);
    alloc(START, 5, 2, codes + 2); /* built on frames that were never sent */
    alloc(START, 1, 1, codes + 4);
    done();
    read_all();
    no_losses();
    assert_int_equal(seen[1].flags, SM_EVENT_STACK_LOST);
    assert_int_equal(seen[1].n_frames, 2);
    assert_int_equal(seen[1].top, 102);
    assert_int_equal(seen[2].flags, 0);
    assert_int_equal(seen[2].n_frames, 2);
    assert_int_equal(seen[2].top, 105);
}

static void packet_beyond_32k(void **state) {
    begin(3, SM_MT_LITTLE);
    info(64);
    packet(START, START + 7999, 0, 0, 8000);
    for (int i = 0; i < 8000; i++)
        alloc(START + i, 0, 0, codes);
    done();
    assert_true(b->used > SM_MT_PACKET_BYTES);
    read_all();
    no_losses();
    assert_int_equal(n_seen, 8000);
}

static void clock_set_back(void **state) {
    begin(3, SM_MT_LITTLE);
    info(64);
    packet(START, START - 5000000 + 1, 0, 0, 2); /* 5 s back in mid-packet */
    alloc(START + 10, 0, 0, codes);
    alloc(START - 5000000, 0, 0, codes);
    done();
    packet(START - 4000000, START - 3000000, 0, 2, 3);
    alloc(START - 3500000, 0, 0, codes);
    done();
    packet(START + 100, START + 200, 0, 3, 4);
    alloc(START + 150, 0, 0, codes);
    done();
    read_all();
    assert_int_equal(n_seen, 4);
    assert_int_equal(seen[0].us, START + 10);
    assert_int_equal(seen[1].us, START + 10);
    assert_int_equal(seen[2].us, START + 10);
    assert_int_equal(seen[3].us, START + 150);
    assert_non_null(loss(SM_LOSS_TIME));
}

/* One packet's begin is damaged to a far future: the others keep their times. */
static void damaged_time(void **state) {
    begin(2, SM_MT_LITTLE);
    info(64);
    for (int i = 0; i < 4; i++) {
        int64_t at = START + i * 1000 + (i == 1 ? 1ll << 45 : 0);
        packet(at, at + 10, 0, (uint64_t)i, (uint64_t)i + 1);
        alloc(at, 0, 0, codes);
        done();
    }
    read_all();
    assert_int_equal(n_seen, 4);
    assert_int_equal(seen[1].us, START);
    assert_int_equal(seen[2].us, START + 2000);
    assert_int_equal(seen[3].us, START + 3000);
    assert_non_null(loss(SM_LOSS_TIME));
}

static void foreign_and_concatenated(void **state) {
    begin(3, SM_MT_LITTLE);
    for (int part = 0; part < 2; part++) {
        info(64);
        packet(START, START, 0, 0, 1);
        alloc(START, 0, (unsigned)part, codes);
        done();
        b->pid = 78;
        packet(START, START, 0, 1, 4);
        for (int i = 0; i < 3; i++)
            alloc(START, 0, 0, codes);
        done();
        b->pid = 77;
    }
    for (uint32_t part = 0; part < 2; part++) {
        read_part(part);
        assert_int_equal(n_seen, 1);
        assert_int_equal(seen[0].n_frames, part);
        assert_int_equal(loss(SM_LOSS_FOREIGN)->events, 3);
        assert_int_equal(loss(SM_LOSS_CONCATENATED) != NULL, part == 0);
    }
    struct sm_trace_options options = {.part = 2};
    struct sm_error err = {""};
    struct sm_trace *none;
    assert_int_equal(sm_trace_open_memory(&none, b->bytes, b->used, &options, &err), SM_FAILED);
    assert_non_null(strstr(err.text, "2 traces"));
}

static void lost_packet(void **state) {
    begin(3, SM_MT_LITTLE);
    info(64);
    packet(START, START + 1, 0, 0, 1);
    alloc(START, 0, 3, codes);
    done();
    /* the packet with allocations 1 and 2 is missing */
    packet(START + 2, START + 9, 0, 3, 6);
    alloc(START + 3, 2, 1, codes + 3); /* rests on a stack that is not known */
    alloc(START + 4, 0, 2, codes + 4); /* complete */
    event(SM_MT_SHORT_BASE + 1, START + 5);
    plain(0, 1);
    plain(1, 1);
    plain(102 << 2 | 0, 2); /* a slot that the lost packet may have changed */
    event(SM_MT_COLLECT, START + 9);
    plain(5, 1);
    done();
    read_all();
    assert_int_equal(n_seen, 5);
    assert_int_equal(seen[0].flags, 0);
    assert_int_equal(seen[1].flags, SM_EVENT_STACK_LOST);
    assert_int_equal(seen[1].size, 1);
    assert_int_equal(seen[2].flags, 0);
    assert_int_equal(seen[2].top, 106);
    assert_int_equal(seen[3].flags, SM_EVENT_STACK_LOST);
    assert_int_equal(seen[4].obj_seq, 0);
    assert_int_equal(loss(SM_LOSS_GAP)->events, 2);
    assert_int_equal(loss(SM_LOSS_GAP)->offset, b->packet);
}

static void wrong_verifier(void **state) {
    begin(3, SM_MT_LITTLE);
    info(64);
    packet(START, START + 1, 0, 0, 1);
    alloc(START, 0, 3, codes);
    done();
    packet(START + 2, START + 9, 0, 1, 2);
    alloc(START + 3, 3, 0, codes);
    done();
    sm_put_u16le(b->bytes + b->packet + 40, 102); /* slot 102 ... */
    sm_put_u16le(b->bytes + b->packet + 42, 103); /* ... links to 103 ... */
    sm_put_u64le(b->bytes + b->packet + 44, 102); /* ... and holds 102 */
    read_all();
    no_losses();
    sm_put_u64le(b->bytes + b->packet + 44, 999);
    read_all();
    assert_int_equal(n_seen, 2);
    assert_int_equal(seen[1].flags, SM_EVENT_STACK_LOST);
    assert_int_equal(loss(SM_LOSS_CORRUPT)->offset, b->packet);
}

/* A writer of before September 2024: the column's high bits fall on the file's number. */
static void columns_over_the_limit(void **state) {
    begin(2, SM_MT_LITTLE);
    info(64);
    packet(START, START, 0, 0, 0);
    location(START, 101, 1, 1, 2, 31, 31, "a.ml", "fa");
    location(START, 102, 1, 1, 1500, 0, 0, "", ""); /* file 0, column 1500: reads as file 1 */
    location(START, 103, 1, 1, 2, 31, 31, "b.ml", "fb");
    location(START, 104, 1, 1, 2, 0, 0, "", "");
    done();
    packet(START, START, 0, 0, 1);
    alloc(START, 0, 4, codes);
    done();
    read_all();
    assert_int_equal(n_seen, 1);
    assert_int_equal(seen[0].n_frames, 4);
    assert_int_equal(loss(SM_LOSS_NAMES)->events, 1);
    const struct sm_location *list;
    for (uint32_t id = 0; id < 4; id++) {
        static const char *const file[] = {"a.ml", "", "b.ml", "b.ml"};
        static const char *const function[] = {"fa", "", "fb", "fb"};
        assert_int_equal(sm_trace_location(t, id, &list), 1);
        assert_string_equal(list[0].file, file[id]);
        assert_string_equal(list[0].function, function[id]);
    }
}

static void locations_among_events(void **state) {
    begin(3, SM_MT_LITTLE);
    info(64);
    packet(START, START, 0, 0, 2);
    location(START, 101, 1, 1, 2, 31, 31, "a.ml", "fa");
    alloc(START, 0, 1, codes);
    location(START, 102, 2, 1, 2, 0, 31, "", "fb");
    alloc(START, 0, 2, codes);
    done();
    packet(START, START, 0, 2, 2);
    location(START, 103, 3, 1, 2, 0, 1, "", "");
    done();
    read_all();
    assert_int_equal(n_seen, 2);
    const struct sm_location *list;
    assert_int_equal(sm_trace_location(t, sm_locations_intern(t, 102), &list), 1);
    assert_string_equal(list[0].function, "fb");
    assert_string_equal(list[0].file, "a.ml");
}

static void junk_around_packets(void **state) {
    begin(3, SM_MT_LITTLE);
    memset(b->bytes, 0x5a, 50);
    b->used = 50;
    info(64);
    packet(START, START, 0, 0, 1);
    alloc(START, 0, 1, codes);
    done();
    memset(b->bytes + b->used, 0, 777);
    b->used += 777;
    packet(START, START, 0, 1, 2);
    alloc(START, 0, 1, codes);
    done();
    size_t end = b->used;
    packet(START, START, 0, 2, 3);
    b->used = end + 40; /* a cut header */
    read_all();
    assert_int_equal(n_seen, 2);
    assert_int_equal(seen[1].flags, 0);
    const struct sm_loss *list;
    assert_int_equal(sm_trace_losses(t, &list), 3);
    assert_int_equal(list[0].kind, SM_LOSS_GARBAGE);
    assert_int_equal(list[0].bytes, 50);
    assert_int_equal(list[1].kind, SM_LOSS_GARBAGE);
    assert_int_equal(list[1].bytes, 777);
    assert_non_null(strstr(list[1].detail, "zero"));
    assert_int_equal(list[2].kind, SM_LOSS_CUT);
    assert_int_equal(list[2].offset, end);
}

/* A size that is damaged loses nothing when the next packet is in its place. */
static void damaged_size(void **state) {
    begin(3, SM_MT_LITTLE);
    info(64);
    packet(START, START, 0, 0, 2);
    alloc(START, 0, 3, codes);
    alloc(START, 0, 3, codes);
    done();
    size_t victim = b->packet;
    packet(START, START, 0, 2, 3);
    alloc(START, 0, 1, codes);
    done();
    for (uint32_t bytes = 68; bytes < 1000; bytes++) {
        sm_put_u32le(b->bytes + victim + 4, bytes * 8);
        read_all();
        assert_true(n_seen >= 1 && n_seen <= 3);
        if (n_seen < 3 || loss(SM_LOSS_CORRUPT) != NULL)
            assert_true(bytes + victim != b->packet);
        assert_int_equal(n_seen, 3);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_orders),
        cmocka_unit_test(numbers_of_old_encoders),
        cmocka_unit_test(references_across_domains),
        cmocka_unit_test(code_zero_and_no_locations),
        cmocka_unit_test(prefix_beyond_the_stack),
        cmocka_unit_test(packet_beyond_32k),
        cmocka_unit_test(clock_set_back),
        cmocka_unit_test(damaged_time),
        cmocka_unit_test(foreign_and_concatenated),
        cmocka_unit_test(lost_packet),
        cmocka_unit_test(wrong_verifier),
        cmocka_unit_test(columns_over_the_limit),
        cmocka_unit_test(locations_among_events),
        cmocka_unit_test(junk_around_packets),
        cmocka_unit_test(damaged_size),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sm_trace_free(t);
    free(b);
    return failed;
}
