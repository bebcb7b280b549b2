/* Selections: random filters on random columns, against the definition of each condition, row by row; what hide
   and collapse mark; that any number of threads gives the same. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/select.h"
#include "base/prng.h"
#include "made_analysis.h"
#include "naive_select.h"

static struct sm_prng random_numbers;

static uint64_t below(uint64_t n) {
    return sm_prng_next(&random_numbers) % n;
}

static void put_value(struct sm_buffer *out, const struct sm_analysis *a, char kind);

/* A test of a value: kind t(ime), s(ize), l(ifetime), n(umber). */
static void put_test(struct sm_buffer *out, const struct sm_analysis *a, char kind) {
    static const char *const ops[] = {"<", "<=", ">", ">=", "=", "!="};
    if (below(2)) {
        sm_buffer_printf(out, " %s ", ops[below(6)]);
        put_value(out, a, kind);
        return;
    }
    sm_buffer_text(out, " in ");
    uint64_t form = below(3);
    if (form > 0)
        put_value(out, a, kind);
    sm_buffer_text(out, "..");
    if (form < 2)
        put_value(out, a, kind);
    sm_buffer_char(out, ' ');
}

/* Often exactly what some row has. */
static void put_value(struct sm_buffer *out, const struct sm_analysis *a, char kind) {
    uint32_t row = a->rows.n > 0 ? (uint32_t)below(a->rows.n) : 0;
    int64_t born = 5, freed = 7, promoted = 8;
    uint64_t bytes = 16, samples = 1;
    if (a->rows.n > 0) {
        born = sm_row_alloc_ns(a, row);
        freed = sm_row_free_ns(a, row);
        promoted = sm_row_promote_ns(a, row);
        bytes = sm_row_bytes(a, row);
        samples = sm_row_samples(a, row);
    }
    int64_t ns = below(3) == 0 || freed == SM_NEVER_NS      ? born
                 : below(3) == 0 && promoted != SM_NEVER_NS ? promoted
                                                            : freed;
    static const char *const clocks[] = {"@10:00:05", "@10:00:06.5", "@2026-12-01",
                                         "@2026-12-01T10:00:05.000001Z", "@2026-12-02"};
    switch (kind) {
    case 't':
        switch (below(8)) {
        case 0:
            sm_buffer_printf(out, "%u.%06u%%", (unsigned)below(100), (unsigned)below(1000000));
            break;
        case 1:
            sm_buffer_printf(out, below(2) ? "end" : "end-%lluns",
                             (unsigned long long)below((uint64_t)a->last_ns + 1));
            break;
        case 2:
            sm_buffer_printf(out,
                             below(2)   ? "peak"
                             : below(2) ? "peak-%lluns"
                                        : "peak+%lluns",
                             (unsigned long long)below(1000000));
            break;
        case 3:
            sm_buffer_text(out, clocks[below(5)]);
            break;
        default:
            sm_buffer_printf(out, "%lldns", (long long)ns);
        }
        break;
    case 's':
        if (below(2))
            sm_buffer_printf(out, "%" PRIu64 "B", bytes + below(3));
        else
            sm_buffer_printf(out, "%" PRIu64 "w", bytes / a->word_bytes + below(2));
        break;
    case 'l':
        sm_buffer_printf(
            out, "%lldns",
            (long long)(freed == SM_NEVER_NS ? 2147483647 + (int64_t)below(3) : freed - born));
        break;
    default:
        sm_buffer_u64(out, samples);
    }
}

static void put_condition(struct sm_buffer *out, const struct sm_analysis *a, unsigned depth) {
    static const char *const fixed[] = {"promoted",
                                        "collected",
                                        "promoted never",
                                        "live at peak",
                                        "live at end",
                                        "source = minor",
                                        "source in major,marshal",
                                        "source != native",
                                        "source in custom,mapped,reported",
                                        "domain = 0",
                                        "domain != 1",
                                        "domain in 0,2",
                                        "domain >= 1",
                                        "thread main",
                                        "thread 1001",
                                        "thread 0",
                                        "thread ~ work",
                                        "thread \"\"",
                                        "thread glob \"?ain\"",
                                        "inside module Stdlib",
                                        "inside Parser.f1",
                                        "inside ~ Lexer",
                                        "inside file lexer.ml",
                                        "inside line main.ml:3",
                                        "inside /f[12]$/",
                                        "inside \"f1\"",
                                        "site module Stdlib.List",
                                        "site glob Stdlib*",
                                        "site file ~ src",
                                        "site line glob *:2",
                                        "site file \"\"",
                                        "inside ~ \"\"",
                                        "site ~ \"\"",
                                        "site module \"\"",
                                        "inside file libc.so.6",
                                        "inside file \"[libc.so.6]\"",
                                        "inside \"(all)\"",
                                        "thread x"};
    switch (depth > 0 ? below(16) : 4 + below(12)) {
    case 0:
    case 1:
        sm_buffer_char(out, '(');
        put_condition(out, a, depth - 1);
        for (uint64_t n = 1 + below(3); n > 0; n--) {
            sm_buffer_text(out, below(2) ? " or " : " and ");
            put_condition(out, a, depth - 1);
        }
        sm_buffer_char(out, ')');
        break;
    case 2:
    case 3:
        sm_buffer_text(out, "not ");
        put_condition(out, a, depth - 1);
        break;
    case 4:
        sm_buffer_text(out, "allocated");
        put_test(out, a, 't');
        break;
    case 5:
        sm_buffer_text(out, "promoted");
        put_test(out, a, 't');
        break;
    case 6:
        sm_buffer_text(out, "collected");
        put_test(out, a, 't');
        break;
    case 7:
        sm_buffer_text(out, "live at ");
        put_value(out, a, 't');
        break;
    case 8:
        sm_buffer_text(out, "live in ");
        if (below(4) > 0)
            put_value(out, a, 't');
        sm_buffer_text(out, "..");
        put_value(out, a, 't');
        break;
    case 9:
        sm_buffer_text(out, "size");
        put_test(out, a, 's');
        break;
    case 10:
        sm_buffer_text(out, "lifetime");
        put_test(out, a, 'l');
        break;
    case 11:
        sm_buffer_text(out, "samples");
        put_test(out, a, 'n');
        break;
    default:
        sm_buffer_text(out, fixed[below(sizeof fixed / sizeof *fixed)]);
    }
}

static void check(const struct sm_analysis *a, const char *text, size_t bytes, unsigned threads) {
    struct sm_filter_error err;
    struct sm_filter *f = sm_filter_parse(text, bytes, &err);
    if (f == NULL) { /* a range whose ends happen to be in the wrong order */
        assert_non_null(strstr(err.text, "upper end"));
        return;
    }
    struct sm_selection s;
    uint32_t n = 0;
    sm_select(&s, a, f, threads);
    for (uint32_t row = 0; row < a->rows.n; row++) {
        bool yes = naive_select(a, f, row);
        n += yes;
        if (yes != sm_selected(&s, row)) {
            print_message("%.*s: row %u must be %s\n", (int)bytes, text, row, yes ? "in" : "out");
            fail();
        }
    }
    assert_int_equal(s.n_rows, n);
    for (uint32_t i = a->rows.n; i < (a->rows.n / 64 + 1) * 64; i++)
        assert_false(s.words != NULL && s.words[i / 64] >> (i % 64) & 1);
    sm_selection_release(&s);
    sm_filter_free(f);
}

static void random_filters(void **state) {
    unsigned both = 0, tried = 0;
    sm_prng_seed(&random_numbers, 14);
    for (uint64_t seed = 1; seed <= 60; seed++) {
        static const uint32_t sizes[] = {0,   1,    63,   64,   65,   255, 256,
                                         257, 1000, 4095, 4096, 4097, 5000};
        struct made_options o = {.n_rows = sizes[seed % 13],
                                 .n_nodes = 1 + (uint32_t)below(300),
                                 .n_functions = 30,
                                 .n_classes = 1 + (uint32_t)below(20),
                                 .odd = seed % 4 != 0};
        struct sm_analysis *a = made_analysis(seed, &o);
        for (int i = 0; i < 40; i++) {
            struct sm_buffer text;
            sm_buffer_init(&text, -1);
            put_condition(&text, a, (unsigned)below(4));
            check(a, text.data, text.used, 1);
            struct sm_filter *f = sm_filter_parse(text.data, text.used, NULL);
            if (f != NULL && a->rows.n > 100) {
                struct sm_selection s;
                sm_select(&s, a, f, 1);
                tried++;
                both += s.n_rows > 0 && s.n_rows < a->rows.n;
                sm_selection_release(&s);
            }
            sm_filter_free(f);
            sm_buffer_release(&text);
        }
        made_analysis_free(a);
    }
    /* The filters must tell rows apart, else this tests nothing. */
    assert_true(both > tried / 2);
}

/* Several tasks on several threads: the same bits. */
static void threads(void **state) {
    static const char *const texts[] = {
        "live at peak", "lifetime < 5us and size > 10w or inside module Parser",
        "not (promoted in 1ms..10ms or domain = 1)", "live in 20%..30%"};
    struct made_options o = {
        .n_rows = 300001, .n_nodes = 600001, .n_functions = 100, .n_classes = 12};
    struct sm_analysis *a = made_analysis(77, &o);
    assert_true(a->peak.freed > 1u << 16); /* the parallel way */
    for (size_t i = 0; i < 4; i++) {
        struct sm_selection one, many;
        struct sm_filter *f = sm_filter_parse(texts[i], strlen(texts[i]), NULL);
        sm_select(&one, a, f, 1);
        sm_select(&many, a, f, 5);
        assert_int_equal(one.n_rows, many.n_rows);
        assert_true(one.n_rows > 0 && one.n_rows < o.n_rows);
        assert_memory_equal(one.words, many.words, (o.n_rows / 64 + 1) * 8);
        for (uint32_t row = 0; i != 0 && row < o.n_rows; row += 97)
            assert_int_equal(sm_selected(&one, row), naive_select(a, f, row));
        sm_selection_release(&one);
        sm_selection_release(&many);
        sm_filter_free(f);
    }
    made_analysis_free(a);
}

static void all_rows(void **state) {
    struct made_options o = {.n_rows = 100, .n_nodes = 10, .n_functions = 10, .n_classes = 2};
    struct sm_analysis *a = made_analysis(3, &o);
    struct sm_selection s;
    struct sm_filter *f = sm_filter_parse("hide x", 6, NULL);
    sm_select(&s, a, NULL, 0);
    assert_true(s.words == NULL && s.n_rows == 100);
    sm_select(&s, a, f, 0);
    assert_true(s.words == NULL && s.n_rows == 100);
    sm_filter_free(f);
    made_analysis_free(a);
}

static void times(void **state) {
    struct sm_analysis a = {.last_ns = 10000000001, .meta = {.start_real_ns = 1796119205000000000}};
    a.peak.ns = 77;
    static const struct {
        struct sm_filter_time time;
        int64_t ns;
    } cases[] = {
        {{SM_FROM_START, 5}, 5},
        {{SM_FROM_END, -1}, 10000000000},
        {{SM_FROM_PEAK, 3}, 80},
        {{SM_FROM_PERCENT, 50000000}, 5000000000},
        {{SM_FROM_PERCENT, 100000000}, 10000000001},
        {{SM_FROM_EPOCH, 1796119205000000009}, 9},
        {{SM_FROM_EPOCH, 0}, -1796119205000000000},
        {{SM_FROM_MIDNIGHT, 36006000000000}, 1000000000},
        {{SM_FROM_MIDNIGHT, 0}, -36005000000000},
        {{SM_FROM_END, INT64_MAX}, INT64_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(sm_filter_time_ns(&a, &cases[i].time), cases[i].ns);
}

static void views(void **state) {
    struct made_options o = {.n_rows = 1, .n_nodes = 10, .n_functions = 40, .n_classes = 2};
    struct sm_analysis *a = made_analysis(3, &o);
    uint64_t *hidden;
    sm_text_id *collapsed;
    const char *text = "hide ~ f1; hide file main.ml; collapse module Stdlib; collapse file "
                       "list.ml; collapse Parser.f2";
    struct sm_filter *f = sm_filter_parse(text, strlen(text), NULL);
    sm_filter_views(a, f, &hidden, &collapsed);
    assert_true(hidden != NULL && collapsed != NULL && (hidden[0] & 1) == 0 && collapsed[0] == 0);
    unsigned n_hidden = 0, n_collapsed = 0;
    for (uint32_t i = 1; i < a->n_frames; i++) {
        const struct sm_function *g = &a->functions[a->frames[i].function];
        const char *name = sm_text(a, g->name), *module = sm_text(a, g->module);
        bool hide = strstr(name, "f1") != NULL || strcmp(sm_text(a, g->file), "bin/main.ml") == 0;
        sm_text_id to = strncmp(module, "Stdlib", 6) == 0 ? g->module
                        : strcmp(name, "Parser.f2") == 0  ? g->name
                                                          : 0;
        assert_int_equal(hidden[i / 64] >> (i % 64) & 1, hide);
        assert_int_equal(collapsed[i], to);
        n_hidden += hide;
        n_collapsed += to != 0;
    }
    assert_true(n_hidden > 5 && n_collapsed > 5);
    free(hidden);
    free(collapsed);
    sm_filter_free(f);
    f = sm_filter_parse("promoted", 8, NULL);
    sm_filter_views(a, f, &hidden, &collapsed);
    assert_true(hidden == NULL && collapsed == NULL);
    sm_filter_free(f);
    made_analysis_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_filters), cmocka_unit_test(threads),
                                       cmocka_unit_test(all_rows), cmocka_unit_test(times),
                                       cmocka_unit_test(views)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
