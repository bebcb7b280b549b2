/* One line per sampled block that counts: CSV (RFC 4180, with a head) or JSON lines. The column `value` is what the
   block stands for in the chosen weight, a decimal fraction; its sum is the estimate. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/model.h"
#include "util/json.h"

struct writer {
    const struct sm_export *x;
    struct sm_ex_tree tree;
    struct sm_ex_measure m;
    struct sm_buffer stack; /* "main > f > g" of `stack_node` */
    uint32_t stack_node;
};

static const char *stack_text(struct writer *w, uint32_t node) {
    if (node != w->stack_node) {
        w->stack_node = node;
        w->stack.used = 0;
        uint32_t n = sm_ex_path(&w->tree, node);
        for (uint32_t k = 0; k < n; k++) {
            if (k > 0)
                sm_buffer_text(&w->stack, " > ");
            sm_view_name(&w->tree.view, w->tree.key[w->tree.path[k]], &w->stack);
        }
    }
    return sm_buffer_string(&w->stack);
}

static void csv_text(struct sm_buffer *out, const char *text) {
    if (strpbrk(text, ",\"\r\n") == NULL) {
        sm_ex_utf8(out, text);
        return;
    }
    struct sm_buffer clean;
    sm_buffer_init(&clean, -1);
    sm_ex_utf8(&clean, text);
    sm_buffer_char(out, '"');
    for (size_t i = 0; i < clean.used; i++) {
        if (clean.data[i] == '"')
            sm_buffer_char(out, '"');
        sm_buffer_char(out, clean.data[i]);
    }
    sm_buffer_char(out, '"');
    sm_buffer_release(&clean);
}

struct row {
    uint64_t samples, bytes;
    int64_t allocated, promoted, freed;
    double value;
    const struct sm_row_class *class;
    const struct sm_lane *lane;
    struct sm_ex_place site;
    const char *stack;
    char thread[64];
};

static void csv_row(struct sm_buffer *out, const struct row *r) {
    sm_buffer_printf(out, "%" PRId64 ",%" PRIu64 ",%" PRIu64 ",%.17g,", r->allocated, r->bytes,
                     r->samples, r->value);
    if (r->promoted != SM_NEVER_NS)
        sm_buffer_printf(out, "%" PRId64, r->promoted);
    sm_buffer_char(out, ',');
    if (r->freed != SM_NEVER_NS)
        sm_buffer_printf(out, "%" PRId64, r->freed);
    sm_buffer_char(out, ',');
    if (r->lane->kind != SM_OWNER_NATIVE)
        sm_buffer_u64(out, r->lane->domain);
    sm_buffer_char(out, ',');
    csv_text(out, r->thread);
    sm_buffer_printf(out, ",%s,%s,", sm_ex_heap(r->class->heap), sm_ex_origin(r->class->origin));
    csv_text(out, r->site.name);
    sm_buffer_char(out, ',');
    csv_text(out, r->site.file);
    sm_buffer_char(out, ',');
    if (r->site.line > 0)
        sm_buffer_u64(out, r->site.line);
    sm_buffer_char(out, ',');
    csv_text(out, r->stack);
    sm_buffer_char(out, '\n');
}

static void json_time(struct sm_json *j, const char *key, int64_t ns) {
    if (ns != SM_NEVER_NS)
        sm_json_i64(j, key, ns);
    else
        sm_json_null(j, key);
}

static void json_row(struct sm_buffer *out, struct writer *w, const struct row *r, uint32_t node) {
    struct sm_json j;
    sm_json_init(&j, out, true);
    sm_json_open(&j, NULL, '{');
    sm_json_i64(&j, "allocated_ns", r->allocated);
    sm_json_u64(&j, "size_bytes", r->bytes);
    sm_json_u64(&j, "samples", r->samples);
    sm_json_double(&j, "value", r->value);
    json_time(&j, "promoted_ns", r->promoted);
    json_time(&j, "freed_ns", r->freed);
    if (r->lane->kind != SM_OWNER_NATIVE)
        sm_json_u64(&j, "domain", r->lane->domain);
    else
        sm_json_null(&j, "domain");
    sm_json_text(&j, "thread", r->thread);
    sm_json_text(&j, "heap", sm_ex_heap(r->class->heap));
    sm_json_text(&j, "origin", sm_ex_origin(r->class->origin));
    sm_json_open(&j, "stack", '[');
    uint32_t n = sm_ex_path(&w->tree, node);
    for (uint32_t k = 0; k < n; k++) {
        struct sm_ex_place p = sm_ex_place(&w->tree, w->tree.key[w->tree.path[k]]);
        sm_json_open(&j, NULL, '{');
        sm_json_text(&j, "function", p.name);
        if (p.file[0] != 0)
            sm_json_text(&j, "file", p.file);
        if (p.line > 0)
            sm_json_u64(&j, "line", p.line);
        if (p.column > 0)
            sm_json_u64(&j, "column", p.column);
        sm_json_close(&j, '}');
    }
    sm_json_close(&j, ']');
    sm_json_close(&j, '}');
    sm_json_end(&j);
}

static void one_row(struct writer *w, struct sm_buffer *out, uint32_t number, bool json) {
    const struct sm_analysis *a = w->x->a;
    struct sm_sum sum = {0};
    uint32_t node = w->tree.of_node[a->rows.node[number]];
    const struct sm_row_class *c = &a->classes[a->rows.class_id[number]];
    sm_weigher_add(&w->m.weigher, number, &sum);
    struct row r = {.allocated = sm_row_alloc_ns(a, number),
                    .bytes = sm_row_bytes(a, number),
                    .samples = sm_row_samples(a, number),
                    .value = sm_ex_value(&w->m, &sum),
                    .promoted = sm_row_promote_ns(a, number),
                    .freed = sm_row_free_ns(a, number),
                    .class = c,
                    .lane = &a->lanes[c->lane],
                    .site = sm_ex_place(&w->tree, w->tree.key[node])};
    sm_ex_thread(r.lane, a->texts, r.thread);
    if (json) {
        json_row(out, w, &r, node);
    } else {
        r.stack = stack_text(w, node);
        csv_row(out, &r);
    }
}

void sm_export_rows(const struct sm_export *x, struct sm_buffer *out, bool json) {
    struct writer w = {.x = x, .stack_node = UINT32_MAX};
    sm_buffer_init(&w.stack, -1);
    sm_ex_tree_make(&w.tree, x, SM_KEY_FRAME);
    sm_ex_measure_make(&w.m, x, &x->weight, NULL, "value");
    if (!json)
        sm_buffer_text(out, "allocated_ns,size_bytes,samples,value,promoted_ns,freed_ns,domain,"
                            "thread,heap,origin,function,file,line,stack\n");
    for (uint32_t word = 0; word < ((uint64_t)x->a->rows.n + 63) / 64 && out->error == 0; word++) {
        for (uint64_t bits = sm_weigher_word(&w.m.weigher, word); bits != 0; bits &= bits - 1)
            one_row(&w, out, word * 64 + (uint32_t)__builtin_ctzll(bits), json);
    }
    sm_ex_measure_release(&w.m);
    sm_ex_tree_release(&w.tree);
    sm_buffer_release(&w.stack);
}
