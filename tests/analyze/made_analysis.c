/* See made_analysis.h. */
#include "made_analysis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "util/memory.h"

struct maker {
    struct sm_prng random;
    struct sm_analysis *a;
    const struct made_options *o;
    char *texts;
    size_t texts_used;
    int64_t *alloc_ns, *free_ns;
};

static uint64_t below(struct maker *m, uint64_t n) {
    return sm_prng_next(&m->random) % n;
}

static sm_text_id text(struct maker *m, const char *s) {
    size_t bytes = strlen(s) + 1;
    memcpy(m->texts + m->texts_used, s, bytes);
    m->texts_used += bytes;
    return (sm_text_id)(m->texts_used - bytes);
}

static void make_names(struct maker *m) {
    static const char *const modules[] = {
        "Stdlib.List", "Stdlib", "Stdlib.Hashtbl", "Parser", "Parser.Lexer",
        "Main",        "",       "libc.so.6"};
    static const char *const files[] = {
        "list.ml",      "stdlib.ml",   "hashtbl.ml", "src/parser.ml",
        "src/lexer.ml", "bin/main.ml", "",           "[libc.so.6]"};
    struct sm_analysis *a = m->a;
    uint32_t n = m->o->n_functions > 2 ? m->o->n_functions : 2;
    struct sm_function *functions = sm_alloc_zero(n, sizeof *functions);
    struct sm_frame *frames = sm_alloc_zero(2 * (size_t)n, sizeof *frames);
    char name[64];
    m->texts = sm_alloc_zero(100 * (size_t)n + 4096, 1);
    m->texts_used = 1;
    functions[0].name = text(m, "(all)");
    for (uint32_t i = 1; i < n; i++) {
        uint32_t k = i % 8;
        snprintf(name, sizeof name, "%s%sf%u", modules[k], modules[k][0] != 0 ? "." : "", i / 8);
        functions[i] = (struct sm_function){
            .name = text(m, name), .file = text(m, files[k]), .module = text(m, modules[k])};
    }
    for (uint32_t i = 1; i < 2 * n; i++)
        frames[i] = (struct sm_frame){.function = 1 + (i - 1) % (n - 1), .line = i % 7};
    a->functions = functions;
    a->n_functions = n;
    a->frames = frames;
    a->n_frames = 2 * n;
}

static void make_tree(struct maker *m) {
    struct sm_calltree *t = &m->a->tree;
    uint32_t n = t->n_nodes = m->o->n_nodes;
    uint32_t *parent = sm_alloc_zero(n, 4), *end = sm_alloc_zero(n, 4);
    uint32_t *frame = sm_alloc_zero(n, 4), *function = sm_alloc_zero(n, 4);
    for (uint32_t i = 1; i < n; i++) {
        uint32_t p = i - 1;
        for (uint64_t up = below(m, 4); up > 0 && p != 0; up--)
            p = parent[p];
        parent[i] = p;
        frame[i] = 1 + (uint32_t)below(m, m->a->n_frames - 1);
        function[i] = m->a->frames[frame[i]].function;
    }
    for (uint32_t i = n; i-- > 0;) {
        if (end[i] == 0)
            end[i] = i + 1;
        if (end[parent[i]] < end[i])
            end[parent[i]] = end[i];
    }
    t->parent = parent;
    t->end = end;
    t->frame = frame;
    t->function = function;
}

static void make_classes(struct maker *m) {
    struct sm_analysis *a = m->a;
    struct sm_lane *lanes = sm_alloc_zero(5, sizeof *lanes);
    struct sm_row_class *classes = sm_alloc_zero(m->o->n_classes, sizeof *classes);
    for (uint32_t i = 0; i < 5; i++) {
        lanes[i] = (struct sm_lane){.stream = i,
                                    .domain = i / 2,
                                    .tid = i == 2 ? 0 : 1000 + i,
                                    .kind = i == 4 ? SM_OWNER_NATIVE : SM_OWNER_OCAML};
        lanes[i].name = text(m, i == 0 ? "main" : i == 3 ? "" : "worker");
    }
    for (uint32_t i = 0; i < m->o->n_classes; i++)
        classes[i] = (struct sm_row_class){.lane = (uint32_t)below(m, 5),
                                           .heap = (uint8_t)below(m, 4),
                                           .origin = (uint8_t)below(m, 5),
                                           .bytes = m->o->odd && below(m, 3) == 0};
    a->lanes = lanes;
    a->n_lanes = 5;
    a->classes = classes;
    a->n_classes = m->o->n_classes;
}

static uint32_t age(struct maker *m, uint64_t *wide, uint32_t *n_wide) {
    static const uint64_t edges[] = {0,          1,          1000,       0x7FFFFFFE,
                                     0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x100000000};
    if (below(m, 3) == 0)
        return SM_ROW_NEVER;
    uint64_t ns = m->o->odd && below(m, 2) == 0 ? edges[below(m, 8)]
                                                : sm_prng_next(&m->random) >> (28 + below(m, 30));
    if (ns < SM_ROW_WIDE_AGE)
        return (uint32_t)ns;
    wide[*n_wide] = ns;
    return SM_ROW_WIDE_AGE | (*n_wide)++;
}

static int compare_u64(const void *x, const void *y) {
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

/* Ends by time, then row; the peak at any row. */
static void make_order(struct maker *m) {
    struct sm_analysis *a = m->a;
    struct sm_rows *r = &a->rows;
    struct end {
        uint64_t ns, row;
    } *ends = sm_alloc_zero((size_t)r->n + 1, sizeof *ends);
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        int64_t ns = sm_row_free_ns(a, i);
        if (ns != SM_NEVER_NS)
            ends[n++] = (struct end){(uint64_t)ns, i};
        if (ns != SM_NEVER_NS && ns > a->last_ns)
            a->last_ns = ns;
    }
    qsort(ends, n, sizeof *ends, compare_u64);
    uint32_t *order = sm_alloc_zero((size_t)n + 1, sizeof *order);
    for (uint32_t i = 0; i < n; i++)
        order[i] = (uint32_t)ends[i].row;
    r->free_order = order;
    r->n_freed = n;
    a->peak.row = UINT32_MAX;
    if (r->n > 0) {
        a->peak.row = (uint32_t)(r->n / 2 + below(m, r->n - r->n / 2));
        a->peak.ns = sm_row_alloc_ns(a, a->peak.row);
        while (a->peak.freed < n && ends[a->peak.freed].ns <= (uint64_t)a->peak.ns)
            a->peak.freed++;
    }
    free(ends);
}

static void make_rows(struct maker *m) {
    struct sm_analysis *a = m->a;
    struct sm_rows *r = &a->rows;
    uint32_t n = r->n = m->o->n_rows;
    bool odd = m->o->odd;
    int64_t *block_ns = sm_alloc_zero((n >> SM_ROW_BLOCK_SHIFT) + 1, 8), ns = 0;
    uint32_t *delta = sm_alloc_zero(n, 4), *promote = sm_alloc_zero(n, 4),
             *freed = sm_alloc_zero(n, 4);
    uint32_t *size = sm_alloc_zero(n, 4), *node = sm_alloc_zero(n, 4),
             *class_id = sm_alloc_zero(n, 4);
    uint8_t *samples = sm_alloc_zero(n, 1);
    struct sm_wide *deltas = sm_alloc_zero(n, sizeof *deltas),
                   *sizes = sm_alloc_zero(n, sizeof *sizes);
    struct sm_wide *many = sm_alloc_zero(n, sizeof *many);
    uint64_t *wide = sm_alloc_zero(2 * (size_t)n + 1, 8);
    for (uint32_t i = 0; i < n; i++) {
        ns += odd && below(m, 2) == 0     ? 0
              : odd && below(m, 200) == 0 ? 5000000000
                                          : (int64_t)below(m, 2000);
        if ((i & 255) == 0)
            block_ns[i >> SM_ROW_BLOCK_SHIFT] = ns;
        uint64_t d = (uint64_t)(ns - block_ns[i >> SM_ROW_BLOCK_SHIFT]);
        delta[i] = d < SM_ROW_ESCAPE ? (uint32_t)d : SM_ROW_ESCAPE;
        if (delta[i] == SM_ROW_ESCAPE)
            deltas[r->n_wide_deltas++] = (struct sm_wide){i, d};
        promote[i] = age(m, wide, &r->n_wide_ages);
        freed[i] = age(m, wide, &r->n_wide_ages);
        uint64_t s = odd && below(m, 50) == 0
                         ? 0xFFFFFFF0u + below(m, 32)
                         : 1 + (sm_prng_next(&m->random) >> (40 + below(m, 24)));
        size[i] = s < SM_ROW_ESCAPE ? (uint32_t)s : SM_ROW_ESCAPE;
        if (size[i] == SM_ROW_ESCAPE)
            sizes[r->n_wide_sizes++] = (struct sm_wide){i, s};
        uint64_t k = odd && below(m, 20) == 0 ? 250 + below(m, 10) : 1 + below(m, 3);
        samples[i] = k < SM_ROW_MANY ? (uint8_t)k : SM_ROW_MANY;
        if (samples[i] == SM_ROW_MANY)
            many[r->n_wide_samples++] = (struct sm_wide){i, k};
        node[i] = (uint32_t)below(m, a->tree.n_nodes);
        class_id[i] = (uint32_t)below(m, a->n_classes);
    }
    r->block_ns = block_ns;
    r->alloc_delta = delta;
    r->promote_age = promote;
    r->free_age = freed;
    r->size = size;
    r->samples = samples;
    r->node = node;
    r->class_id = class_id;
    r->wide_deltas = deltas;
    r->wide_sizes = sizes;
    r->wide_samples = many;
    r->wide_ages = wide;
    a->last_ns = ns;
}

struct sm_analysis *made_analysis(uint64_t seed, const struct made_options *options) {
    struct maker m = {.o = options, .a = sm_alloc_zero(1, sizeof *m.a)};
    sm_prng_seed(&m.random, seed);
    m.a->word_bytes = seed % 5 == 0 ? 4 : 8;
    m.a->meta.start_real_ns = 1796119205000000000; /* 2026-12-01T10:00:05Z */
    m.a->bytes_per_unit = m.a->word_bytes;
    make_names(&m);
    make_tree(&m);
    make_classes(&m);
    m.a->texts = m.texts;
    m.a->texts_bytes = m.texts_used;
    make_rows(&m);
    make_order(&m);
    return m.a;
}

void made_analysis_free(struct sm_analysis *a) {
    const struct sm_rows *r = &a->rows;
    const void *all[] = {r->block_ns,      r->alloc_delta, r->promote_age, r->free_age,
                         r->size,          r->samples,     r->node,        r->class_id,
                         r->free_order,    r->wide_ages,   r->wide_deltas, r->wide_sizes,
                         r->wide_samples,  a->tree.parent, a->tree.end,    a->tree.frame,
                         a->tree.function, a->functions,   a->frames,      a->lanes,
                         a->classes,       a->texts};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free((void *)all[i]);
    free(a);
}
