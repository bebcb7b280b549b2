/* The encoder of names against a plain decoder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "encode/syms_encoder.h"

struct text {
    const uint8_t *p;
    size_t bytes;
};
struct loc {
    struct text file, function;
    uint64_t line, end_line, start, end;
    uint8_t flags;
};
struct rec {
    uint64_t code;
    uint32_t n;
    struct loc locs[300];
};
struct dec {
    const uint8_t *p, *end;
    uint64_t previous;
    struct text strings[70000];
    uint32_t n_strings;
};

static struct sm_syms_encoder enc;
static struct dec dec;
static struct rec rec;
static uint8_t buf[65536];

static uint64_t leb(void) {
    uint64_t x = 0;
    assert_true(sm_get_leb(&dec.p, dec.end, &x));
    return x;
}

static struct text string(void) {
    uint64_t k = leb();
    if (k > 0) {
        assert_true(k <= dec.n_strings);
        return dec.strings[k];
    }
    struct text t = {.bytes = leb()};
    t.p = dec.p;
    assert_true(t.bytes <= (size_t)(dec.end - dec.p));
    dec.p += t.bytes;
    dec.strings[++dec.n_strings] = t;
    return t;
}

static void dec_begin(void) {
    dec.p = buf;
    dec.end = buf + enc.used;
    dec.previous = 0;
    dec.n_strings = 0;
}

static void dec_record(void) {
    uint64_t z = leb();
    rec.code = dec.previous += (uint64_t)sm_unzigzag(z);
    rec.n = (uint32_t)leb();
    assert_true(rec.n <= 300);
    for (uint32_t i = 0; i < rec.n; i++) {
        struct loc *l = &rec.locs[i];
        l->file = string();
        l->function = string();
        l->line = leb();
        l->end_line = l->line + (uint64_t)sm_unzigzag(leb());
        l->start = leb();
        l->end = leb();
        assert_true(dec.p < dec.end);
        l->flags = *dec.p++;
    }
}

static struct sm_source_location location(char *file, char *function, uint32_t line) {
    return (struct sm_source_location){file,     strlen(file), function,  strlen(function),   line,
                                       line + 2, line % 100,   line % 80, (uint8_t)(line % 2)};
}

static void test_round_trip(void **state) {
    static char names[2000][32];
    for (int i = 0; i < 2000; i++)
        snprintf(names[i], sizeof names[i], i % 3 ? "function_%d" : "dir/file_%d.ml", i);
    sm_syms_encoder_begin(&enc, buf, sizeof buf);
    uint32_t n = 0;
    for (;; n++) {
        struct sm_source_location l[3];
        for (uint32_t i = 0; i < n % 4; i++)
            l[i] = location(names[n * 7 % 2000], names[(n + i) % 2000], n * 10 + i);
        size_t used = enc.used;
        if (!sm_syms_encode(&enc, n % 2 ? 0x7fff00000000ull + n * 8 : n, l, n % 4)) {
            assert_int_equal(used, enc.used);
            break;
        }
    }
    assert_true(n > 1000);
    assert_int_equal(enc.n_records, n);
    dec_begin();
    for (uint32_t k = 0; k < n; k++) {
        dec_record();
        assert_true(rec.code == (k % 2 ? 0x7fff00000000ull + k * 8 : k));
        assert_int_equal(rec.n, k % 4);
        for (uint32_t i = 0; i < rec.n; i++) {
            const char *file = names[k * 7 % 2000], *function = names[(k + i) % 2000];
            assert_int_equal(rec.locs[i].file.bytes, strlen(file));
            assert_memory_equal(rec.locs[i].file.p, file, strlen(file));
            assert_int_equal(rec.locs[i].function.bytes, strlen(function));
            assert_memory_equal(rec.locs[i].function.p, function, strlen(function));
            assert_true(rec.locs[i].line == k * 10 + i);
            assert_true(rec.locs[i].end_line == k * 10 + i + 2);
            assert_true(rec.locs[i].start == (k * 10 + i) % 100);
            assert_true(rec.locs[i].end == (k * 10 + i) % 80);
            assert_int_equal(rec.locs[i].flags, (k * 10 + i) % 2);
        }
    }
    assert_true(dec.p == dec.end);
}

static void test_strings_are_written_once(void **state) {
    sm_syms_encoder_begin(&enc, buf, sizeof buf);
    struct sm_source_location l = location("a_rather_long_file_name.ml", "and_a_function_name", 3);
    assert_true(sm_syms_encode(&enc, 16, &l, 1));
    size_t first = enc.used;
    assert_true(sm_syms_encode(&enc, 32, &l, 1));
    assert_true(enc.used - first < 12);
    assert_int_equal(enc.n_strings, 2);
}

/* Names and inlining lists beyond any buffer are cut, marked, and still decode. */
static void test_too_large(void **state) {
    static char huge[200000];
    memset(huge, 'x', sizeof huge - 1);
    struct sm_source_location l = location(huge, huge, 9);
    for (size_t capacity = 200; capacity < sizeof buf; capacity = capacity * 3 / 2) {
        sm_syms_encoder_begin(&enc, buf, capacity);
        assert_true(sm_syms_encode(&enc, 16, &l, 1));
        assert_true(enc.used <= capacity);
        dec_begin();
        dec_record();
        assert_int_equal(rec.n, 1);
        assert_true(rec.locs[0].flags & SM_SYMS_CLAMPED);
        assert_true(rec.locs[0].file.bytes > 0 && rec.locs[0].file.p[0] == 'x');
        assert_true(rec.locs[0].line == 9);
    }
    static struct sm_source_location many[300];
    for (uint32_t i = 0; i < 300; i++)
        many[i] = location("file", "function", i);
    sm_syms_encoder_begin(&enc, buf, 1000);
    assert_true(sm_syms_encode(&enc, 16, many, 300));
    dec_begin();
    dec_record();
    assert_true(rec.n > 0 && rec.n < 300);
    assert_true(rec.locs[rec.n - 1].line == 299); /* the innermost stays */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_strings_are_written_once),
        cmocka_unit_test(test_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
