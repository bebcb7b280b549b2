/* pprof's profile.proto (https://github.com/google/pprof/blob/main/proto/profile.proto), field numbers as there.

   Addresses are left out: locations carry their functions and lines already, and OCaml code has no address that another
   machine could look up. */
#include "export/pprof.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/gzip.h"
#include "util/memory.h"
#include "util/number.h"

static uint32_t function_of(struct sm_ex_tables *t, const struct sm_ex_place *p) {
    uint32_t name = sm_proto_string(&t->strings, p->name), file = 0;
    file = sm_proto_string(&t->strings, p->file);
    bool found;
    uint32_t *place = sm_map_place(&t->function_numbers, name | (uint64_t)file << 32,
                                   (uint32_t)t->n_functions, &found);
    if (!found) {
        t->functions =
            sm_grow(t->functions, &t->functions_capacity, t->n_functions + 1, sizeof *t->functions);
        t->functions[t->n_functions++] = (struct sm_ex_function){name, file};
        return (uint32_t)t->n_functions - 1;
    }
    return *place - 1;
}

static uint32_t mapping_of(struct sm_ex_tables *t, const struct sm_ex_place *p) {
    if (!p->native || p->module[0] == 0)
        return 1;
    uint32_t name = sm_proto_string(&t->strings, p->module);
    bool found;
    uint32_t *place = sm_map_place(&t->mapping_numbers, name, (uint32_t)t->n_mappings, &found);
    if (found)
        return *place - 1;
    t->mappings =
        sm_grow(t->mappings, &t->mappings_capacity, t->n_mappings + 1, sizeof *t->mappings);
    t->mappings[t->n_mappings++] = name;
    return (uint32_t)t->n_mappings - 1;
}

/* The location that is `outer` and, inlined there, the key. */
static uint32_t location_of(struct sm_ex_tables *t, uint32_t outer, uint32_t key) {
    bool found;
    uint32_t *place = sm_map_place(&t->location_numbers, outer | (uint64_t)key << 32,
                                   (uint32_t)t->n_locations, &found);
    if (found)
        return *place - 1;
    struct sm_ex_place p = sm_ex_place(t->tree, key);
    uint32_t mapping = outer != 0 ? t->locations[outer].mapping : mapping_of(t, &p);
    t->locations =
        sm_grow(t->locations, &t->locations_capacity, t->n_locations + 1, sizeof *t->locations);
    t->locations[t->n_locations++] = (struct sm_ex_location){.outer = outer,
                                                             .function = function_of(t, &p),
                                                             .line = p.line,
                                                             .column = p.column,
                                                             .mapping = mapping};
    return (uint32_t)t->n_locations - 1;
}

void sm_ex_tables_make(struct sm_ex_tables *t, struct sm_ex_tree *tree) {
    *t = (struct sm_ex_tables){.tree = tree};
    const char *executable = tree->x->a->meta.executable;
    sm_proto_strings_init(&t->strings);
    t->n_functions = t->n_locations = 1;
    t->n_mappings = 2;
    t->functions = sm_grow(NULL, &t->functions_capacity, 1, sizeof *t->functions);
    t->locations = sm_grow(NULL, &t->locations_capacity, 1, sizeof *t->locations);
    t->mappings = sm_grow(NULL, &t->mappings_capacity, 2, sizeof *t->mappings);
    memset(t->functions, 0, sizeof *t->functions);
    memset(t->locations, 0, sizeof *t->locations);
    t->mappings[0] = 0;
    t->mappings[1] = sm_proto_string(&t->strings, executable[0] != 0 ? executable : "[program]");
    t->of_node = sm_alloc_zero(tree->n_nodes, sizeof *t->of_node);
    t->stack = sm_alloc(((size_t)tree->max_depth + 1) * sizeof *t->stack);
    for (uint32_t i = 1; i < tree->n_nodes; i++)
        t->of_node[i] =
            location_of(t, tree->inlined[i] ? t->of_node[tree->parent[i]] : 0, tree->key[i]);
}

void sm_ex_tables_release(struct sm_ex_tables *t) {
    sm_proto_strings_release(&t->strings);
    sm_map_release(&t->function_numbers);
    sm_map_release(&t->location_numbers);
    sm_map_release(&t->mapping_numbers);
    free(t->functions);
    free(t->locations);
    free(t->mappings);
    free(t->of_node);
    free(t->stack);
}

uint32_t sm_ex_tables_stack(struct sm_ex_tables *t, uint32_t node) {
    const struct sm_ex_tree *tree = t->tree;
    uint32_t n = 0;
    while (node != 0) {
        t->stack[n++] = t->of_node[node];
        while (tree->inlined[node])
            node = tree->parent[node];
        node = tree->parent[node];
    }
    return n;
}

void sm_ex_build_id(struct sm_buffer *out, const struct sm_meta *meta) {
    for (uint32_t i = 0; i < meta->build_id_bytes; i++)
        sm_buffer_printf(out, "%02x", meta->build_id[i]);
}

const char *sm_ex_comment(const struct sm_export *x, uint32_t index, char to[256]) {
    const struct sm_analysis *a = x->a;
    if (index == 0) {
        char number[SM_NUMBER_BYTES], rate[SM_NUMBER_BYTES];
        sm_number_count(number, a->rows.n);
        if (a->meta.sample_rate > 0)
            snprintf(to, 256,
                     "statmem: estimates from %s sampled blocks; sampling rate %s per word", number,
                     sm_number_significant(rate, a->meta.sample_rate, 3));
        else
            snprintf(to, 256,
                     "statmem: %s sampled blocks; the trace tells no rate, so that samples "
                     "are counted",
                     number);
        return to;
    }
    if (index == 1 && x->filter_text != NULL && x->filter_text[0] != 0) {
        snprintf(to, 256, "filter: %s", x->filter_text);
        return to;
    }
    index -= x->filter_text != NULL && x->filter_text[0] != 0 ? 2 : 1;
    if (index >= a->n_losses)
        return NULL;
    snprintf(to, 256, "loss: %s: %s", sm_loss_kind_name(a->losses[index].kind),
             a->losses[index].detail);
    return to;
}

/* ---- the file ---- */

struct writer {
    struct sm_ex_tables t;
    const struct sm_export *x;
    struct sm_buffer out, inner, deeper;
};

static void value_type(struct writer *w, unsigned field, const char *type, const char *unit) {
    sm_proto_u64(&w->inner, 1, sm_proto_string(&w->t.strings, type));
    sm_proto_u64(&w->inner, 2, sm_proto_string(&w->t.strings, unit));
    sm_proto_message(&w->out, field, &w->inner);
}

static void label(struct writer *w, const char *key, const char *text, uint64_t number) {
    sm_proto_u64(&w->deeper, 1, sm_proto_string(&w->t.strings, key));
    if (text != NULL)
        sm_proto_u64(&w->deeper, 2, sm_proto_string(&w->t.strings, text));
    else
        sm_proto_u64(&w->deeper, 3, number);
    sm_proto_message(&w->inner, 3, &w->deeper);
}

static void sample(struct writer *w, const struct sm_ex_sample *s, uint32_t n_values) {
    const struct sm_analysis *a = w->x->a;
    const struct sm_row_class *c = &a->classes[s->class_id];
    const struct sm_lane *lane = &a->lanes[c->lane];
    uint32_t n = sm_ex_tables_stack(&w->t, s->node);
    for (uint32_t i = 0; i < n; i++)
        sm_proto_varint(&w->deeper, w->t.stack[i]);
    sm_proto_message(&w->inner, 1, &w->deeper);
    for (uint32_t i = 0; i < n_values; i++)
        sm_proto_varint(&w->deeper, s->values[i]);
    sm_proto_message(&w->inner, 2, &w->deeper);
    char text[64], source[48];
    if (lane->kind != SM_OWNER_NATIVE) {
        /* A text: a number that is 0 would be a label without a value. */
        char domain[24];
        snprintf(domain, sizeof domain, "%" PRIu64, lane->domain);
        label(w, "domain", domain, 0);
    }
    if (sm_ex_thread(lane, a->texts, text)[0] != 0)
        label(w, "thread", text, 0);
    label(w, "source", sm_ex_source(c, source), 0);
    sm_proto_message(&w->out, 2, &w->inner);
}

static void mappings(struct writer *w) {
    for (size_t i = 1; i < w->t.n_mappings; i++) {
        sm_proto_u64(&w->inner, 1, i);
        sm_proto_u64(&w->inner, 5, w->t.mappings[i]);
        if (i == 1) {
            sm_ex_build_id(&w->deeper, &w->x->a->meta);
            sm_proto_u64(&w->inner, 6,
                         sm_proto_string(&w->t.strings, sm_buffer_string(&w->deeper)));
            w->deeper.used = 0;
        }
        for (unsigned field = 7; field <= 10; field++)
            sm_proto_u64(&w->inner, field, 1);
        sm_proto_message(&w->out, 3, &w->inner);
    }
}

static void locations(struct writer *w) {
    for (size_t i = 1; i < w->t.n_locations; i++) {
        sm_proto_u64(&w->inner, 1, i);
        sm_proto_u64(&w->inner, 2, w->t.locations[i].mapping);
        for (uint32_t at = (uint32_t)i; at != 0; at = w->t.locations[at].outer) {
            sm_proto_u64(&w->deeper, 1, w->t.locations[at].function);
            sm_proto_u64(&w->deeper, 2, w->t.locations[at].line);
            sm_proto_u64(&w->deeper, 3, w->t.locations[at].column);
            sm_proto_message(&w->inner, 4, &w->deeper);
        }
        sm_proto_message(&w->out, 4, &w->inner);
    }
    for (size_t i = 1; i < w->t.n_functions; i++) {
        sm_proto_u64(&w->inner, 1, i);
        sm_proto_u64(&w->inner, 2, w->t.functions[i].name);
        sm_proto_u64(&w->inner, 3, w->t.functions[i].name);
        sm_proto_u64(&w->inner, 4, w->t.functions[i].file);
        sm_proto_message(&w->out, 5, &w->inner);
    }
}

void sm_export_pprof(const struct sm_export *x, struct sm_buffer *out, bool gzip) {
    struct sm_ex_tree tree;
    struct sm_ex_measure measures[SM_EX_MEASURES];
    struct sm_ex_samples samples;
    uint32_t shown, n = sm_ex_heap_measures(measures, x, &shown);
    sm_ex_tree_make(&tree, x, SM_KEY_FRAME);
    sm_ex_samples_make(&samples, &tree, measures, n, true);
    struct writer w = {.x = x};
    sm_buffer_init(&w.out, -1);
    sm_buffer_init(&w.inner, -1);
    sm_buffer_init(&w.deeper, -1);
    sm_ex_tables_make(&w.t, &tree);
    for (uint32_t i = 0; i < n; i++)
        value_type(&w, 1, measures[i].type, measures[i].unit);
    for (uint32_t i = 0; i < samples.n; i++)
        sample(&w, &samples.list[i], n);
    mappings(&w);
    locations(&w);
    const struct sm_analysis *a = x->a;
    if (a->meta.start_real_ns > 0)
        sm_proto_u64(&w.out, 9, (uint64_t)a->meta.start_real_ns);
    sm_proto_u64(&w.out, 10, a->last_ns > 0 ? (uint64_t)a->last_ns : 0);
    double period = a->meta.sample_rate > 0 ? a->word_bytes / a->meta.sample_rate : 0;
    value_type(&w, 11, "space", "bytes");
    sm_proto_u64(&w.out, 12, period < 1e18 ? (uint64_t)llround(period) : 0);
    char text[256];
    for (uint32_t i = 0; i < 64 && sm_ex_comment(x, i, text) != NULL; i++)
        sm_proto_u64(&w.out, 13, sm_proto_string(&w.t.strings, text));
    sm_proto_u64(&w.out, 14, sm_proto_string(&w.t.strings, measures[shown].type));
    sm_proto_strings_write(&w.t.strings, &w.out, 6);
    if (!gzip || !sm_gzip(out, w.out.data, w.out.used))
        sm_buffer_bytes(out, w.out.data, w.out.used);
    sm_buffer_release(&w.out);
    sm_buffer_release(&w.inner);
    sm_buffer_release(&w.deeper);
    sm_ex_tables_release(&w.t);
    sm_ex_samples_release(&samples);
    sm_ex_tree_release(&tree);
    for (uint32_t i = 0; i < n; i++)
        sm_ex_measure_release(&measures[i]);
}
