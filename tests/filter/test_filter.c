/* Filters: random trees through the printer and the parser, patterns against names, messages. The
   language itself is in cases.json. */
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/filter.h"
#include "analyze/match.h"
#include "base/prng.h"
#include "report/naming.h"

static struct sm_prng random_numbers;

static bool regex_valid(const char *text, size_t bytes) {
    struct sm_regex *r = sm_regex_new(text, bytes);
    sm_regex_free(r);
    return r != NULL;
}

static uint64_t below(uint64_t n) {
    return sm_prng_next(&random_numbers) % n;
}

/* ---- random trees, normalised as the parser makes them ---- */

static struct sm_filter_node *new_node(struct sm_filter *f, enum sm_filter_kind kind) {
    struct sm_filter_node *node = sm_arena_alloc(&f->arena, sizeof *node);
    memset(node, 0, sizeof *node);
    node->kind = kind;
    return node;
}

/* Small numbers, round ones, any. */
static uint64_t random_number(uint64_t limit) {
    static const uint64_t units[] = {1,        1000, 1024,    60000000000,   1000000000,
                                     1u << 20, 1000, 1000000, 86400000000000};
    uint64_t x = below(3) == 0 ? sm_prng_next(&random_numbers) >> below(64)
                               : below(100) * units[below(sizeof units / sizeof *units)];
    return x % limit;
}

static struct sm_filter_time random_time(void) {
    struct sm_filter_time t = {.anchor = (enum sm_filter_anchor)below(6)};
    switch (t.anchor) {
    case SM_FROM_END:
    case SM_FROM_PEAK:
        t.offset = (int64_t)random_number(INT64_MAX) * (below(2) ? 1 : -1);
        break;
    case SM_FROM_PERCENT:
        t.offset = (int64_t)(below(2) ? below(101) * 1000000 : below(100000001));
        break;
    case SM_FROM_EPOCH:
        t.offset = (int64_t)random_number(UINT64_C(9214646399) * 1000000000);
        break;
    case SM_FROM_MIDNIGHT:
        t.offset = (int64_t)random_number(UINT64_C(86400) * 1000000000);
        break;
    default:
        t.offset = (int64_t)random_number(INT64_MAX);
        break;
    }
    return t;
}

static const char *random_text(struct sm_filter *f, size_t *bytes, bool regex) {
    static const char *const bits[] = {"Foo.bar",  "\"", "\\",   "'", "/",    "é",   "\xff",
                                       "\n",       "\t", "\x01", " ", "size", "*",   "\xc2\x85",
                                       "\xe2\x82", "..", "x",    "𝄞", "\x7f", "[a]", "and"};
    static const char *const regex_bits[] = {"foo",  "/", "\\.", "\\\\", "é",    "(a|b)",
                                             "[x/]", "^", "$",   " ",    "a{2}", ".*"};
    char text[200] = "";
    for (uint64_t n = below(5); n > 0; n--) {
        const char *bit = regex ? regex_bits[below(sizeof regex_bits / sizeof *regex_bits)]
                                : bits[below(sizeof bits / sizeof *bits)];
        memcpy(text + strlen(text), bit, strlen(bit) + 1);
    }
    *bytes = strlen(text);
    return sm_arena_text(&f->arena, text, *bytes);
}

static struct sm_filter_pattern random_pattern(struct sm_filter *f, bool subject) {
    struct sm_filter_pattern p = {.match = (enum sm_filter_match)below(4),
                                  .subject = subject ? (enum sm_filter_subject)below(4) : 0};
    p.text = random_text(f, &p.bytes, p.match == SM_MATCH_REGEX);
    while (p.match == SM_MATCH_REGEX && !regex_valid(p.text, p.bytes))
        p.text = random_text(f, &p.bytes, true);
    return p;
}

static void random_values(struct sm_filter_node *node) {
    node->op = (enum sm_filter_op)below(6);
    if (node->kind == SM_FILTER_LIVE && (node->op == SM_OP_LT || node->op == SM_OP_GT))
        node->op = SM_OP_EQ;
    for (int i = 0; i <= (node->op == SM_OP_BETWEEN); i++) {
        switch (node->kind) {
        case SM_FILTER_SIZE:
            node->number[i] = (struct sm_filter_number){random_number(INT64_MAX), below(2)};
            break;
        case SM_FILTER_LIFETIME:
        case SM_FILTER_SAMPLES:
        case SM_FILTER_DOMAIN:
            node->number[i].n = random_number(INT64_MAX);
            break;
        default:
            node->time[i] = random_time();
        }
    }
    if (node->op != SM_OP_BETWEEN)
        return;
    /* In order, and not the same. */
    if (node->number[0].words == node->number[1].words) {
        uint64_t a = node->number[0].n, b = node->number[1].n;
        node->number[0].n = a < b ? a : b;
        node->number[1].n = (a < b ? b : a) + (node->kind >= SM_FILTER_SIZE && a == b);
    }
    if (node->kind < SM_FILTER_SIZE && node->time[0].anchor == node->time[1].anchor) {
        int64_t a = node->time[0].offset, b = node->time[1].offset;
        node->time[0].offset = a < b ? a : b;
        node->time[1].offset = a < b ? b : a;
        if (a == b)
            node->time[1] = (struct sm_filter_time){
                node->time[0].anchor == SM_FROM_END ? SM_FROM_PEAK : SM_FROM_END, 5};
    }
}

static struct sm_filter_node *random_node(struct sm_filter *f, unsigned depth,
                                          enum sm_filter_kind not_this) {
    enum sm_filter_kind kind;
    do
        kind = (enum sm_filter_kind)below(16);
    while (kind == not_this || (depth == 0 && kind <= SM_FILTER_NOT));
    struct sm_filter_node *node = new_node(f, kind);
    switch (kind) {
    case SM_FILTER_AND:
    case SM_FILTER_OR: {
        struct sm_filter_node **last = &node->first;
        for (uint64_t n = 2 + below(3); n > 0; n--) {
            *last = random_node(f, depth - 1, kind);
            last = &(*last)->next;
        }
        break;
    }
    case SM_FILTER_NOT:
        node->first = random_node(f, depth - 1, SM_FILTER_NOT);
        break;
    case SM_FILTER_SOURCE:
        while (node->sources == 0)
            node->sources = (uint32_t)sm_prng_next(&random_numbers) & 0x1F0Fu;
        break;
    case SM_FILTER_THREAD_ID:
        node->number[0].n = random_number(INT64_MAX);
        break;
    case SM_FILTER_THREAD:
        node->pattern = random_pattern(f, false);
        break;
    case SM_FILTER_INSIDE:
    case SM_FILTER_SITE:
        node->pattern = random_pattern(f, true);
        break;
    case SM_FILTER_PROMOTED:
    case SM_FILTER_COLLECTED:
        node->any = below(2);
        if (!node->any)
            random_values(node);
        break;
    case SM_FILTER_DOMAIN:
        if (below(2)) {
            node->op = SM_OP_EQ;
            node->n_list = 2 + (uint32_t)below(4);
            uint64_t *list = sm_arena_alloc(&f->arena, node->n_list * sizeof *list);
            for (uint32_t i = 0; i < node->n_list; i++)
                list[i] = (i > 0 ? list[i - 1] + 1 : 0) + below(5);
            node->list = list;
            break;
        }
        random_values(node);
        break;
    default:
        random_values(node);
        break;
    }
    return node;
}

static void round_trip(void **state) {
    sm_prng_seed(&random_numbers, 20261201);
    for (int i = 0; i < 30000; i++) {
        struct sm_filter f = {0};
        if (below(20) > 0)
            f.root = random_node(&f, (unsigned)below(5), SM_FILTER_SITE + 1);
        struct sm_filter_view **last = &f.views;
        for (uint64_t n = below(3); n > 0; n--, f.n_views++, last = &(*last)->next) {
            *last = sm_arena_alloc(&f.arena, sizeof **last);
            **last = (struct sm_filter_view){(enum sm_filter_view_kind)below(2),
                                             random_pattern(&f, true), NULL};
        }
        struct sm_buffer text, again;
        sm_buffer_init(&text, -1);
        sm_buffer_init(&again, -1);
        sm_filter_print(&text, &f);
        struct sm_filter_error err = {.text = ""};
        struct sm_filter *g = sm_filter_parse(text.data, text.used, &err);
        if (g == NULL || !sm_filter_equal(&f, g)) {
            print_message("%s\n%s\n", sm_buffer_string(&text), err.text);
            fail();
        }
        sm_filter_print(&again, g);
        assert_string_equal(sm_buffer_string(&text), sm_buffer_string(&again));
        sm_filter_free(g);
        sm_buffer_release(&again);
        sm_buffer_release(&text);
        sm_arena_release(&f.arena);
    }
}

/* A change anywhere in a filter makes it another one. */
static void inequality(void **state) {
    static const char *const texts[] = {"",
                                        "promoted",
                                        "collected",
                                        "not promoted",
                                        "promoted > 1s",
                                        "promoted >= 1s",
                                        "promoted > 2s",
                                        "promoted > end",
                                        "promoted in 1s..2s",
                                        "promoted in 1s..3s",
                                        "size > 1B",
                                        "size > 1w",
                                        "domain = 1",
                                        "domain in 1,2",
                                        "domain in 1,3",
                                        "domain in 1,2,3",
                                        "source = minor",
                                        "source = normal",
                                        "thread 1",
                                        "thread \"1\"",
                                        "site x",
                                        "inside x",
                                        "inside ~ x",
                                        "inside file x",
                                        "inside y",
                                        "inside xx",
                                        "promoted and collected",
                                        "promoted or collected",
                                        "collected and promoted",
                                        "promoted and collected and samples = 1",
                                        "hide x",
                                        "collapse x",
                                        "hide x; hide y",
                                        "hide y; hide x",
                                        "promoted; hide x"};
    enum { N = sizeof texts / sizeof *texts };
    struct sm_filter *f[N];
    for (int i = 0; i < N; i++)
        assert_non_null(f[i] = sm_filter_parse(texts[i], strlen(texts[i]), NULL));
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < N; k++)
            assert_int_equal(sm_filter_equal(f[i], f[k]), i == k);
    }
    for (int i = 0; i < N; i++)
        sm_filter_free(f[i]);
    sm_filter_free(NULL);
}

/* ---- patterns ---- */

enum how { WHOLE, FILE_NAME, MODULE };

static bool matches(const char *pattern, const char *name, enum how how) {
    struct sm_filter *f;
    struct sm_matcher m;
    char text[200];
    snprintf(text, sizeof text, "site %s", pattern);
    assert_non_null(f = sm_filter_parse(text, strlen(text), NULL));
    assert_true(sm_matcher_init(&m, &f->root->pattern));
    bool yes = how == FILE_NAME ? sm_match_file(&m, name, strlen(name))
               : how == MODULE  ? sm_match_module(&m, name, strlen(name))
                                : sm_match(&m, name, strlen(name));
    sm_matcher_release(&m);
    sm_filter_free(f);
    return yes;
}

static void names(void **state) {
    assert_true(matches("a.b", "a.b", WHOLE));
    assert_false(matches("a.b", "a.bc", WHOLE));
    assert_false(matches("a.b", "xa.b", WHOLE));
    assert_true(matches("\"\"", "", WHOLE));
    assert_false(matches("\"\"", "a", WHOLE));
    assert_true(matches("~ b", "abc", WHOLE));
    assert_true(matches("~ \"\"", "", WHOLE));
    assert_false(matches("~ bd", "abc", WHOLE));
    assert_true(matches("\"\\xff\"", "\xff", WHOLE));

    assert_true(matches("file b.ml", "src/b.ml", FILE_NAME));
    assert_true(matches("file src/b.ml", "/x/src/b.ml", FILE_NAME));
    assert_true(matches("file b.ml", "b.ml", FILE_NAME));
    assert_false(matches("file b.ml", "src/ab.ml", FILE_NAME));
    assert_false(matches("file src/b.ml", "b.ml", FILE_NAME));
    assert_false(matches("file \"\"", "b/", FILE_NAME));
    assert_true(matches("file glob *.ml", "src/b.ml", FILE_NAME));

    assert_true(matches("module Stdlib", "Stdlib", MODULE));
    assert_true(matches("module Stdlib", "Stdlib.List", MODULE));
    assert_false(matches("module Stdlib", "Stdlib_x", MODULE));
    assert_false(matches("module Stdlib.List", "Stdlib", MODULE));
    assert_false(matches("module List", "Stdlib.List", MODULE));
    assert_false(matches("module \"\"", ".x", MODULE));
}

static void globs(void **state) {
    assert_true(matches("glob a*c", "abbc", WHOLE));
    assert_true(matches("glob a*c", "ac", WHOLE));
    assert_false(matches("glob a*c", "abcd", WHOLE));
    assert_true(matches("glob *", "", WHOLE));
    assert_true(matches("glob \"**a**\"", "xxaxx", WHOLE));
    assert_false(matches("glob ?", "", WHOLE));
    assert_true(matches("glob a?c", "abc", WHOLE));
    assert_true(matches("glob [a-c]x", "bx", WHOLE));
    assert_false(matches("glob [a-c]x", "dx", WHOLE));
    assert_true(matches("glob \"[!a-c]x\"", "dx", WHOLE));
    assert_true(matches("glob \"[^a-c]x\"", "dx", WHOLE));
    assert_true(matches("glob []]", "]", WHOLE));
    assert_true(matches("glob [a-]", "-", WHOLE));
    assert_true(matches("glob [ab", "[ab", WHOLE));
    assert_true(matches("glob \"\\\\*\"", "*", WHOLE));
    assert_false(matches("glob \"\\\\*\"", "a", WHOLE));
    assert_true(matches("glob \"\\\\[a]\"", "[a]", WHOLE));
    assert_true(matches("glob \"a\\\\\"", "a\\", WHOLE));
    assert_true(matches("glob *ab*ab*", "xabxxabx", WHOLE));
    assert_false(matches("glob *ab*ab*", "xabx", WHOLE));
}

static void regexes(void **state) {
    assert_true(matches("/^List\\.(map|iter)$/", "List.map", WHOLE));
    assert_false(matches("/^List\\.(map|iter)$/", "List.mapi", WHOLE));
    assert_true(matches("/a/", "bab", WHOLE));
    assert_true(matches("//", "", WHOLE));
    assert_true(matches("~ /a\\/b/", "a/b", WHOLE));
    static const char *const valid[] = {
        "",           "a|",    "|a",          "()",        "(|)",
        "[]]",        "[^]]",  "[a-]",        "[]{9999}]", "[[:alpha:]{9999}]",
        "\\{9999\\}", "]",     "a{0}",        "a{3}",      "a{3,}",
        "a{3,5}",     "(a*)*", "((a+)+)+",    "()*",       "\\d\\W\\.",
        "^$",         "a^b",   "(a{31}){32}", "a{1999}",   "-",
        "a,b"};
    static const char *const wrong[] = {"*",
                                        "+a",
                                        "a|*",
                                        "(*a)",
                                        "a**",
                                        "a+?",
                                        "a{2}{3}",
                                        "^*",
                                        "a$+",
                                        "{",
                                        "a{",
                                        "a{x}",
                                        "a{2",
                                        "a{2,1}",
                                        "a{,3}",
                                        "}",
                                        "(",
                                        ")",
                                        "(a))",
                                        "((a)",
                                        "[",
                                        "[a",
                                        "[]",
                                        "[^]",
                                        "[b-a]",
                                        "[[:foo:]]",
                                        "[[:alpha]]",
                                        "[[.a.]]",
                                        "[a-[:digit:]]",
                                        "\\",
                                        "\\b",
                                        "\\1",
                                        "(.)\\1",
                                        "a{2000}",
                                        "(a{50}){50}",
                                        "((a{20}){20}){20}",
                                        "(()*){2000}",
                                        "a{99999999999}"};
    for (size_t i = 0; i < sizeof valid / sizeof *valid; i++) {
        if (!regex_valid(valid[i], strlen(valid[i])))
            fail_msg("%s", valid[i]);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (regex_valid(wrong[i], strlen(wrong[i])))
            fail_msg("%s", wrong[i]);
    }
    assert_false(regex_valid("a\0b", 3));
    char deep[400] = "";
    for (int i = 0; i < 64; i++)
        strcat(deep, "(");
    memset(deep + 64, ')', 64);
    assert_true(regex_valid(deep, 128));
    memmove(deep + 1, deep, 129);
    deep[129] = ')';
    assert_false(regex_valid(deep, 130));
    assert_true(matches("/^\\d+\\.\\w$/", "12._", WHOLE));
    assert_false(matches("/^\\D/", "12", WHOLE));
    assert_true(matches("/^[[:upper:][:digit:]x]+$/", "A1x", WHOLE));
    assert_false(matches("/^[^[:upper:]]/", "A1x", WHOLE));
    assert_true(matches("/^[]x-]+$/", "]x-", WHOLE));
    assert_true(matches("/^.$/", "\xff", WHOLE));
}

/* Random expressions and texts, judged by the C library's regular expressions. */
static void put_expression(char *to, unsigned depth) {
    static const char *const atoms[] = {"a", "b", "c", ".", "[ab]", "[^a]", "[b-c]", "\\.", "x"};
    static const char *const repetitions[] = {"",    "",      "",      "*",    "+",  "?",
                                              "{2}", "{1,2}", "{0,3}", "{2,}", "{0}"};
    for (uint64_t n = 1 + below(4); n > 0; n--) {
        uint64_t kind = below(12);
        if (kind == 0 && depth > 0) {
            strcat(to, "|");
            if (below(2))
                continue;
        }
        if (kind < 5 && depth > 0) {
            strcat(to, "(");
            put_expression(to, depth - 1);
            strcat(to, ")");
        } else {
            strcat(to, atoms[below(sizeof atoms / sizeof *atoms)]);
        }
        strcat(to, repetitions[below(sizeof repetitions / sizeof *repetitions)]);
    }
}

static void regexes_as_in_libc(void **state) {
    unsigned found = 0, tried = 0;
    sm_prng_seed(&random_numbers, 4);
    for (int i = 0; i < 20000; i++) {
        static char text[100000];
        regex_t theirs;
        /* Anchors at the ends only: inside repetitions the C library takes them for more than they are. */
        strcpy(text, below(4) == 0 ? "^(" : "(");
        put_expression(text, 3);
        strcat(text, below(4) == 0 ? ")$" : ")");
        struct sm_regex *ours = sm_regex_new(text, strlen(text));
        if (ours == NULL) {
            assert_true(strlen(text) > 20); /* too large; else each is well-formed */
            continue;
        }
        assert_int_equal(regcomp(&theirs, text, REG_EXTENDED | REG_NOSUB), 0);
        for (int k = 0; k < 20; k++) {
            char name[16];
            uint64_t n = below(10);
            for (uint64_t at = 0; at < n; at++)
                name[at] = "aabbc.x\xc3"[below(8)];
            name[n] = 0;
            bool yes = regexec(&theirs, name, 0, NULL, 0) == 0;
            if (sm_regex_match(ours, name, n) != yes)
                fail_msg("/%s/ and \"%s\": should be %d", text, name, yes);
            found += yes;
            tried++;
        }
        regfree(&theirs);
        sm_regex_free(ours);
    }
    assert_true(found > tried / 5 && found < tried / 5 * 4);
}

/* Sources are called as in reports. */
static void sources(void **state) {
    char text[100];
    for (unsigned i = 0; i < 9; i++) {
        bool heap = i < 4;
        snprintf(text, sizeof text, "source %s", heap ? sm_heap_name(i) : sm_origin_name(i - 4));
        struct sm_filter *f = sm_filter_parse(text, strlen(text), NULL);
        assert_non_null(f);
        assert_int_equal(f->root->sources, heap ? SM_FILTER_HEAP(i) : SM_FILTER_ORIGIN(i - 4));
        sm_filter_free(f);
    }
}

/* Time: a pattern of stars, an expression of nested repetitions, and names as long as there are. */
static void costs(void **state) {
    static char name[65536];
    memset(name, 'a', sizeof name - 1);
    assert_false(matches("glob *a*a*a*a*a*a*a*a*a*b", name, WHOLE));
    assert_false(matches("/(a*)*b$/", name, WHOLE));
    assert_false(matches("/^(a|aa|a*)*$x/", name, WHOLE));
    assert_false(matches("/(a|aa|aaa|aaaa)*b/", name, WHOLE));
    assert_false(matches("/(a?a?){300}b/", name, WHOLE));
    assert_false(matches("/(a|b)*a(a|b){200}c/", name, WHOLE));
}

static void messages(void **state) {
    static const char *const pairs[][2] = {
        {"inside x and size >= many",
         "column 22: expected a size such as 4kB, 100B or 12w, not many"},
        {"size > ", "column 8: expected a size such as 4kB, 100B or 12w, not the end"},
        {"lifetme > 3s",
         "column 1: expected a condition such as size > 1kB, not lifetme; did you mean lifetime?"},
        {"sise > 3s",
         "column 1: expected a condition such as size > 1kB, not sise; did you mean size?"},
        {"qqq > 3s", "column 1: expected a condition such as size > 1kB, not qqq"},
        {"size > \x1b[31m", "column 8: expected a size such as 4kB, 100B or 12w, not \\x1b"},
        {"size > aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "column 8: expected a size such as 4kB, 100B or 12w, not "
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."},
        {"thread \"é", "column 10: expected a closing quote"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct sm_filter_error err = {.text = ""};
        assert_null(sm_filter_parse(pairs[i][0], strlen(pairs[i][0]), &err));
        assert_string_equal(err.text, pairs[i][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip), cmocka_unit_test(inequality),
        cmocka_unit_test(names),      cmocka_unit_test(globs),
        cmocka_unit_test(regexes),    cmocka_unit_test(regexes_as_in_libc),
        cmocka_unit_test(costs),      cmocka_unit_test(messages),
        cmocka_unit_test(sources)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
