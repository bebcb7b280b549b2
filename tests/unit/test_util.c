/* Numbers, JSON, safe text, tables, maps, options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/json.h"
#include "util/map.h"
#include "util/number.h"
#include "util/table.h"
#include "util/text.h"

static void numbers(void **state) {
    char to[SM_NUMBER_BYTES];
    assert_string_equal(sm_number_count(to, 0), "0");
    assert_string_equal(sm_number_count(to, 999), "999");
    assert_string_equal(sm_number_count(to, 1000), "1,000");
    assert_string_equal(sm_number_count(to, 1234567), "1,234,567");
    assert_string_equal(sm_number_count(to, UINT64_MAX), "18,446,744,073,709,551,615");
    assert_string_equal(sm_number_bytes(to, 0, false), "0 B");
    assert_string_equal(sm_number_bytes(to, 999, false), "999 B");
    assert_string_equal(sm_number_bytes(to, 999.7, false), "1.00 kB");
    assert_string_equal(sm_number_bytes(to, 1234, false), "1.23 kB");
    assert_string_equal(sm_number_bytes(to, 99960, false), "100 kB");
    assert_string_equal(sm_number_bytes(to, 999999, false), "1.00 MB");
    assert_string_equal(sm_number_bytes(to, 41234567, false), "41.2 MB");
    assert_string_equal(sm_number_bytes(to, 1234567.4, true), "1,234,567");
    assert_string_equal(sm_number_bytes(to, 0.0 / 0.0, false), "?");
    assert_string_equal(sm_number_duration(to, 0), "0 ns");
    assert_string_equal(sm_number_duration(to, 1500), "1.50 us");
    assert_string_equal(sm_number_duration(to, 934703000), "935 ms");
    assert_string_equal(sm_number_duration(to, 999999999), "1.00 s");
    assert_string_equal(sm_number_duration(to, -12345678901), "-12.3 s");
    assert_string_equal(sm_number_duration(to, 123000000000), "2 min 03 s");
    assert_string_equal(sm_number_duration(to, 3600000000000), "1 h 00 min");
    assert_string_equal(sm_number_percent(to, 381, 1000), "38.1%");
    assert_string_equal(sm_number_percent(to, 1, 100000), "<0.1%");
    assert_string_equal(sm_number_percent(to, 0, 10), "0.0%");
    assert_string_equal(sm_number_percent(to, 10, 10), "100%");
    assert_string_equal(sm_number_percent(to, 10, 0), "-");
    assert_string_equal(sm_number_significant(to, 0.012345, 3), "0.0123");
    assert_string_equal(sm_number_significant(to, 12345, 3), "12,300");
}

static void parsing(void **state) {
    uint64_t u = 7;
    int64_t ns = 7;
    double rate = 7;
    assert_true(sm_parse_u64("18446744073709551615", &u) && u == UINT64_MAX);
    assert_true(sm_parse_bytes("64k", 0, &u) && u == 65536);
    assert_true(sm_parse_bytes("64KiB", 0, &u) && u == 65536);
    assert_true(sm_parse_bytes("1.5MB", 0, &u) && u == 1500000);
    assert_true(sm_parse_bytes("100w", 8, &u) && u == 800);
    assert_true(sm_parse_duration("10", &ns) && ns == 10000000000);
    assert_true(sm_parse_duration("1.5ms", &ns) && ns == 1500000);
    assert_true(sm_parse_duration("2m", &ns) && ns == 120000000000);
    assert_true(sm_parse_rate("1e-4", &rate) && rate == 1e-4);
    assert_true(sm_parse_rate("1/8", &rate) && rate == 0.125);
    assert_true(sm_parse_rate("1", &rate) && rate == 1);
    u = 7, ns = 7, rate = 7;
    static const char *const bad_u64[] = {"", "-1", " 1", "1 ", "18446744073709551616", "0x10"};
    for (size_t i = 0; i < sizeof bad_u64 / sizeof *bad_u64; i++)
        assert_false(sm_parse_u64(bad_u64[i], &u));
    static const char *const bad_bytes[] = {"", "k", "1kk", "1kb", "-1", "nan", "1e30", "1w"};
    for (size_t i = 0; i < sizeof bad_bytes / sizeof *bad_bytes; i++)
        assert_false(sm_parse_bytes(bad_bytes[i], 0, &u));
    static const char *const bad_rate[] = {"", "0", "1.1", "-0.1", "1/0", "nan", "0x1p-3", "1/2x"};
    for (size_t i = 0; i < sizeof bad_rate / sizeof *bad_rate; i++)
        assert_false(sm_parse_rate(bad_rate[i], &rate));
    assert_false(sm_parse_duration("1d", &ns));
    assert_false(sm_parse_duration("1e300h", &ns));
    assert_true(u == 7 && ns == 7 && rate == 7);
}

static void quote_is(const char *text, size_t bytes, const char *expected) {
    struct sm_buffer out;
    sm_buffer_init(&out, -1);
    sm_json_quote(&out, text, bytes);
    assert_string_equal(sm_buffer_string(&out), expected);
    sm_buffer_release(&out);
}

static void json(void **state) {
    quote_is("a\"b\\c", 5, "\"a\\\"b\\\\c\"");
    quote_is("\n\t\0\x1b\x7f", 5, "\"\\n\\t\\u0000\\u001b\\u007f\"");
    quote_is("\xff\xc0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    quote_is("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""); /* a surrogate */
    quote_is("\xe2\x80\xae", 3, "\"\\u202e\"");
    quote_is("\xf3\xa0\x80\x81", 4, "\"\\udb40\\udc01\"");
    quote_is("\xc3\xa9\xe2\x82", 4, "\"\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\"");

    struct sm_buffer out;
    sm_buffer_init(&out, -1);
    struct sm_json j;
    sm_json_init(&j, &out, true);
    sm_json_open(&j, NULL, '{');
    sm_json_u64(&j, "u", UINT64_MAX);
    sm_json_i64(&j, "i", INT64_MIN);
    sm_json_double(&j, "d", 0.1);
    sm_json_double(&j, "nan", 0.0 / 0.0);
    sm_json_open(&j, "a", '[');
    sm_json_open(&j, NULL, '[');
    sm_json_close(&j, ']');
    sm_json_bool(&j, NULL, true);
    sm_json_close(&j, ']');
    sm_json_text(&j, "t", "x");
    sm_json_close(&j, '}');
    sm_json_end(&j);
    assert_string_equal(sm_buffer_string(&out),
                        "{\"u\":18446744073709551615,\"i\":-9223372036854775808,\"d\":0.1,"
                        "\"nan\":null,\"a\":[[],true],\"t\":\"x\"}\n");
    sm_buffer_release(&out);
}

static void safe_is(const char *text, size_t bytes, const char *expected) {
    struct sm_buffer out;
    sm_buffer_init(&out, -1);
    sm_text_safe(&out, text, bytes);
    assert_string_equal(sm_buffer_string(&out), expected);
    sm_buffer_release(&out);
}

static void shortened_is(const char *text, unsigned columns, bool utf8, const char *expected) {
    struct sm_buffer out;
    sm_buffer_init(&out, -1);
    unsigned used = sm_text_shortened(&out, text, strlen(text), columns, utf8);
    assert_string_equal(sm_buffer_string(&out), expected);
    assert_int_equal(used, sm_text_columns(expected, strlen(expected)));
    assert_true(used <= columns);
    sm_buffer_release(&out);
}

static void text(void **state) {
    safe_is("plain", 5, "plain");
    safe_is("\033[31mred\0", 9, "\\x1b[31mred\\x00");
    safe_is("a\xe2\x80\xae"
            "b",
            5, "a<U+202E>b");
    safe_is("\xc2\x9b", 2, "<U+009B>");
    safe_is("caf\xc3\xa9 \xff", 7, "caf\xc3\xa9 \\xff");
    shortened_is("short", 5, true, "short");
    shortened_is("abcdefghijkl", 10, true, "abc…ghijkl");
    shortened_is("abcdefghijkl", 10, false, "ab..ghijkl");
    shortened_is("漢字漢字漢字", 7, true, "漢…漢字");
    shortened_is("abc", 1, true, "…");
}

static void table(void **state) {
    struct sm_table t;
    sm_table_init(&t, 2, 30, false, true);
    t.align[0] = SM_RIGHT;
    sm_table_cell(&t, SM_PLAIN, "1");
    sm_table_cell(&t, SM_BOLD, "a name that is far too long for it");
    sm_table_cell(&t, SM_PLAIN, "1,000");
    sm_table_row_end(&t);
    struct sm_buffer out;
    sm_buffer_init(&out, -1);
    sm_table_print(&t, &out);
    assert_string_equal(sm_buffer_string(&out), "    1  a name …too long for it\n1,000\n");
    sm_buffer_release(&out);
    sm_table_release(&t);
}

/* One named cell in a column of `width`. */
static void named_is(unsigned width, const char *drawing, const char *name, const char *place,
                     const char *expected) {
    struct sm_table t;
    struct sm_buffer out;
    sm_table_init(&t, 1, width, false, true);
    sm_table_named(&t, SM_PLAIN, drawing, name, place);
    sm_buffer_init(&out, -1);
    sm_table_print(&t, &out);
    out.used--; /* the line end */
    assert_string_equal(sm_buffer_string(&out), expected);
    sm_buffer_release(&out);
    sm_table_release(&t);
}

static void named_cells(void **state) {
    named_is(40, "├─ ", "Lib.func", "src/lib.ml:12", "├─ Lib.func  src/lib.ml:12");
    named_is(26, "├─ ", "Lib.func", "src/lib.ml:12", "├─ Lib.func  src/lib.ml:12");
    named_is(25, "├─ ", "Lib.func", "src/lib.ml:12", "├─ Lib.func  lib.ml:12");
    named_is(20, NULL, "Lib.function", "lib.ml:12", "Li…nction  lib.ml:12");
    named_is(20, NULL, "Lib.function", "lib.ml", "Lib.function  lib.ml");
    named_is(19, NULL, "Lib.function", "lib.ml", "Lib.function");
    named_is(16, "│  │  │  │  └─ ", "Lib.function", NULL, "… │  └─ Li…ction");
    named_is(16, NULL, "Lib.f", "a_very_long_place.ml:1", "Lib.f");
    named_is(16, NULL, NULL, "lib.ml", "");
}

static void maps(void **state) {
    struct sm_map m = {0};
    uint32_t value;
    assert_false(sm_map_get(&m, 0, &value));
    for (uint64_t k = 0; k < 10000; k++)
        sm_map_put(&m, k << 32 | (k & 7), (uint32_t)k);
    for (uint64_t k = 0; k < 10000; k++)
        assert_true(sm_map_get(&m, k << 32 | (k & 7), &value) && value == k);
    assert_false(sm_map_get(&m, 1, &value));
    sm_map_put(&m, 0, 77);
    assert_true(sm_map_get(&m, 0, &value) && value == 77 && m.n == 10000);
    sm_map_release(&m);

    struct sm_names names = {0};
    char name[16];
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(sm_names_number(&names, name, (size_t)sprintf(name, "n%u", i)), i);
    assert_int_equal(sm_names_number(&names, "n500", 4), 500);
    assert_int_equal(sm_names_number(&names, "", 0), 1000);
    assert_int_equal(sm_names_number(&names, "n500\0", 5), 1001);
    assert_string_equal(names.list[500].text, "n500");
    sm_names_release(&names);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers), cmocka_unit_test(parsing), cmocka_unit_test(json),
        cmocka_unit_test(text),    cmocka_unit_test(table),   cmocka_unit_test(named_cells),
        cmocka_unit_test(maps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
