/* OpenTelemetry's profiles, signal v1development: a message ProfilesData, which is an ExportProfilesServiceRequest,
   too. The schema is not stable yet; field numbers are those of opentelemetry-proto's main branch since stacks have a
   table of their own (sample: stack 1, attributes 2, link 3, values 4). One Profile per kind of value,
   since a Profile has one. Entry 0 of each table is the empty one. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/pprof.h"
#include "util/memory.h"

struct writer {
    struct sm_ex_tables t;
    const struct sm_export *x;
    struct sm_buffer dictionary, resources, a, b, c;
    struct sm_names attributes; /* by encoded KeyValueAndUnit */
    uint32_t *stack_of;         /* by node of the tree */
    uint32_t n_stacks;
};

/* KeyValueAndUnit: key 1, value 2 (AnyValue: string 1, bool 2, int 3), unit 3. */
static uint32_t attribute(struct writer *w, const char *key, const char *text) {
    sm_proto_text(&w->b, 1, text);
    sm_proto_u64(&w->a, 1, sm_proto_string(&w->t.strings, key));
    sm_proto_message(&w->a, 2, &w->b);
    uint32_t n = sm_names_number(&w->attributes, w->a.data, w->a.used);
    w->a.used = 0;
    return n;
}

/* KeyValue of a resource: key 1, value 2. */
static void resource_text(struct writer *w, const char *key, const char *text) {
    if (text == NULL || text[0] == 0)
        return;
    sm_proto_text(&w->c, 1, text);
    sm_proto_text(&w->b, 1, key);
    sm_proto_message(&w->b, 2, &w->c);
    sm_proto_message(&w->a, 1, &w->b);
}

static void stacks(struct writer *w, const struct sm_ex_samples *s) {
    w->stack_of = sm_alloc_zero(w->t.tree->n_nodes, sizeof *w->stack_of);
    sm_proto_message(&w->dictionary, 7, &w->a);
    w->n_stacks = 1;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t node = s->list[i].node;
        if (w->stack_of[node] != 0 || node == 0)
            continue;
        uint32_t n = sm_ex_tables_stack(&w->t, node);
        for (uint32_t k = 0; k < n; k++)
            sm_proto_varint(&w->b, w->t.stack[k]);
        sm_proto_message(&w->a, 1, &w->b);
        sm_proto_message(&w->dictionary, 7, &w->a);
        w->stack_of[node] = w->n_stacks++;
    }
}

static void tables(struct writer *w) {
    uint32_t build_id = 0;
    sm_ex_build_id(&w->c, &w->x->a->meta);
    if (w->c.used > 0)
        build_id = attribute(w, "process.executable.build_id.gnu", sm_buffer_string(&w->c));
    w->c.used = 0;
    for (size_t i = 0; i < w->t.n_mappings; i++) {
        if (i > 0)
            sm_proto_u64(&w->a, 4, w->t.mappings[i]);
        if (i == 1 && build_id != 0) {
            sm_proto_varint(&w->b, build_id);
            sm_proto_message(&w->a, 5, &w->b);
        }
        sm_proto_message(&w->dictionary, 1, &w->a);
    }
    for (size_t i = 0; i < w->t.n_locations; i++) {
        sm_proto_u64(&w->a, 1, w->t.locations[i].mapping);
        for (uint32_t at = (uint32_t)i; at != 0; at = w->t.locations[at].outer) {
            sm_proto_u64(&w->b, 1, w->t.locations[at].function);
            sm_proto_u64(&w->b, 2, w->t.locations[at].line);
            sm_proto_u64(&w->b, 3, w->t.locations[at].column);
            sm_proto_message(&w->a, 3, &w->b);
        }
        sm_proto_message(&w->dictionary, 2, &w->a);
    }
    for (size_t i = 0; i < w->t.n_functions; i++) {
        sm_proto_u64(&w->a, 1, w->t.functions[i].name);
        sm_proto_u64(&w->a, 2, w->t.functions[i].name);
        sm_proto_u64(&w->a, 3, w->t.functions[i].file);
        sm_proto_message(&w->dictionary, 3, &w->a);
    }
    sm_proto_message(&w->dictionary, 4, &w->a); /* the empty link */
}

static void sample(struct writer *w, const struct sm_ex_sample *s, uint32_t value) {
    const struct sm_analysis *a = w->x->a;
    const struct sm_row_class *c = &a->classes[s->class_id];
    const struct sm_lane *lane = &a->lanes[c->lane];
    char text[64], source[48], domain[24];
    uint32_t list[3], n = 0;
    if (lane->kind != SM_OWNER_NATIVE) {
        snprintf(domain, sizeof domain, "%" PRIu64, lane->domain);
        list[n++] = attribute(w, "ocaml.domain", domain);
    }
    if (sm_ex_thread(lane, a->texts, text)[0] != 0)
        list[n++] = attribute(w, "thread.name", text);
    list[n++] = attribute(w, "memory.source", sm_ex_source(c, source));
    for (uint32_t i = 0; i < n; i++)
        sm_proto_varint(&w->b, list[i]);
    sm_proto_u64(&w->a, 1, w->stack_of[s->node]);
    sm_proto_message(&w->a, 2, &w->b);
    sm_proto_varint(&w->b, s->values[value]);
    sm_proto_message(&w->a, 4, &w->b);
    sm_proto_message(&w->c, 2, &w->a);
}

/* One Profile into w->c. */
static void profile(struct writer *w, const struct sm_ex_samples *s, const struct sm_ex_measure *m,
                    uint32_t value) {
    const struct sm_analysis *a = w->x->a;
    sm_proto_u64(&w->a, 1, sm_proto_string(&w->t.strings, m->type));
    sm_proto_u64(&w->a, 2, sm_proto_string(&w->t.strings, m->unit));
    sm_proto_message(&w->c, 1, &w->a);
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->list[i].values[value] > 0)
            sample(w, &s->list[i], value);
    }
    sm_proto_fixed64(&w->c, 3, a->meta.start_real_ns > 0 ? (uint64_t)a->meta.start_real_ns : 0);
    sm_proto_u64(&w->c, 4, a->last_ns > 0 ? (uint64_t)a->last_ns : 0);
    sm_proto_u64(&w->a, 1, sm_proto_string(&w->t.strings, "space"));
    sm_proto_u64(&w->a, 2, sm_proto_string(&w->t.strings, "bytes"));
    sm_proto_message(&w->c, 5, &w->a);
    double period = a->meta.sample_rate > 0 ? a->word_bytes / a->meta.sample_rate : 0;
    sm_proto_u64(&w->c, 6, period < 1e18 ? (uint64_t)llround(period) : 0);
    /* The same trace and kind of value: the same profile, so that a collector may drop what it has. */
    uint64_t id[2] = {sm_mix64(a->meta.session ^ (uint64_t)a->meta.start_real_ns) | 1,
                      sm_mix64(a->meta.pid ^ a->trace_bytes << 20 ^ value)};
    sm_proto_bytes(&w->c, 7, id, sizeof id);
}

void sm_export_otlp(const struct sm_export *x, struct sm_buffer *out) {
    struct sm_ex_tree tree;
    struct sm_ex_measure measures[SM_EX_MEASURES];
    struct sm_ex_samples samples;
    struct sm_buffer scope;
    uint32_t shown, n = sm_ex_heap_measures(measures, x, &shown);
    sm_ex_tree_make(&tree, x, SM_KEY_FRAME);
    sm_ex_samples_make(&samples, &tree, measures, n, true);
    struct writer w = {.x = x};
    struct sm_buffer *buffers[] = {&w.dictionary, &w.resources, &w.a, &w.b, &w.c, &scope};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        sm_buffer_init(buffers[i], -1);
    sm_names_number(&w.attributes, "", 0);
    sm_ex_tables_make(&w.t, &tree);
    stacks(&w, &samples);
    tables(&w);
    /* Scope: name 1, version 2; the profile to look at first comes first. */
    sm_proto_text(&w.a, 1, "statmem");
    sm_proto_text(&w.a, 2, SM_VERSION);
    sm_proto_message(&scope, 1, &w.a);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t value = i == 0 ? shown : i <= shown ? i - 1 : i;
        profile(&w, &samples, &measures[value], value);
        sm_proto_message(&scope, 2, &w.c);
    }
    const char *program = strrchr(x->a->meta.executable, '/');
    char pid[24];
    snprintf(pid, sizeof pid, "%" PRIu64, x->a->meta.pid);
    resource_text(&w, "service.name", program != NULL ? program + 1 : x->a->meta.executable);
    resource_text(&w, "process.executable.path", x->a->meta.executable);
    resource_text(&w, "host.name", x->a->meta.host);
    resource_text(&w, "process.pid", x->a->meta.pid != 0 ? pid : NULL);
    resource_text(&w, "process.runtime.name", x->a->meta.ocaml_version[0] != 0 ? "ocaml" : NULL);
    resource_text(&w, "process.runtime.version", x->a->meta.ocaml_version);
    sm_proto_message(&w.resources, 1, &w.a);
    sm_proto_message(&w.resources, 2, &scope);
    for (size_t i = 0; i < w.attributes.n; i++)
        sm_proto_bytes(&w.dictionary, 6, w.attributes.list[i].text, w.attributes.list[i].bytes);
    sm_proto_strings_write(&w.t.strings, &w.dictionary, 5);
    sm_proto_message(out, 1, &w.resources);
    sm_proto_message(out, 2, &w.dictionary);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        sm_buffer_release(buffers[i]);
    sm_names_release(&w.attributes);
    free(w.stack_of);
    sm_ex_tables_release(&w.t);
    sm_ex_samples_release(&samples);
    sm_ex_tree_release(&tree);
    for (uint32_t i = 0; i < n; i++)
        sm_ex_measure_release(&measures[i]);
}
