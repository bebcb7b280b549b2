/* Callgrind's format (valgrind's manual, "Callgrind Format Specification"), for callgrind_annotate, KCachegrind and
   gprof2dot. Costs of lines, and of calls with all that they lead to. In recursion a stack counts once for each call
   from one line to one function, as far as the format allows: it knows no context. */
#include <stdlib.h>
#include <string.h>

#include "export/model.h"
#include "util/map.h"
#include "util/memory.h"

#define N_EVENTS 4

struct edge {
    uint32_t from, to; /* keys; `to` stands for its function */
    uint32_t next;     /* of the same `from`; UINT32_MAX = none */
    uint32_t sample;   /* counted last, + 1 */
    uint64_t costs[N_EVENTS];
};

struct writer {
    struct sm_buffer *out;
    struct sm_ex_tree tree;
    uint32_t *function;       /* by key: number of its function, from 1 */
    uint32_t *representative; /* by function: a key */
    uint32_t n_functions;
    uint64_t (*own)[N_EVENTS]; /* by key */
    uint32_t *first_edge;      /* by key */
    struct edge *edges;
    size_t n_edges, capacity;
    uint32_t *edge_of; /* by node: the call that leads to it */
    struct sm_names files, names;
};

static void number_functions(struct writer *w) {
    uint32_t n = w->tree.view.n_keys;
    struct sm_map known = {0};
    w->function = sm_alloc(n * sizeof *w->function);
    w->representative = sm_alloc((n + 1) * sizeof *w->representative);
    for (uint32_t key = 0; key < n; key++) {
        struct sm_ex_place p = sm_ex_place(&w->tree, key);
        uint64_t id = sm_names_number(&w->names, p.name, strlen(p.name)) |
                      (uint64_t)sm_names_number(&w->files, p.file, strlen(p.file)) << 32;
        bool found;
        uint32_t *place = sm_map_place(&known, id, w->n_functions + 1, &found);
        w->function[key] = *place - 1;
        if (!found)
            w->representative[++w->n_functions] = key;
    }
    sm_map_release(&known);
}

static void find_edges(struct writer *w) {
    const struct sm_ex_tree *t = &w->tree;
    struct sm_map known = {0};
    w->edge_of = sm_alloc_zero(t->n_nodes, sizeof *w->edge_of);
    w->first_edge = sm_alloc(t->view.n_keys * sizeof *w->first_edge);
    memset(w->first_edge, 0xff, t->view.n_keys * sizeof *w->first_edge);
    for (uint32_t i = 1; i < t->n_nodes; i++) {
        uint32_t from = t->key[t->parent[i]], to = t->key[i];
        bool found;
        uint32_t *place = sm_map_place(&known, from | (uint64_t)w->function[to] << 32,
                                       (uint32_t)w->n_edges, &found);
        w->edge_of[i] = *place - 1;
        if (found)
            continue;
        w->edges = sm_grow(w->edges, &w->capacity, w->n_edges + 1, sizeof *w->edges);
        w->edges[w->n_edges] = (struct edge){.from = from, .to = to, .next = w->first_edge[from]};
        w->first_edge[from] = (uint32_t)w->n_edges++;
    }
    sm_map_release(&known);
}

static void count(struct writer *w, const struct sm_ex_samples *s) {
    w->own = sm_alloc_zero(w->tree.view.n_keys, sizeof *w->own);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct sm_ex_sample *x = &s->list[i];
        for (int e = 0; e < N_EVENTS; e++)
            w->own[w->tree.key[x->node]][e] += x->values[e];
        for (uint32_t at = x->node; at != 0; at = w->tree.parent[at]) {
            struct edge *edge = &w->edges[w->edge_of[at]];
            if (edge->sample == i + 1)
                continue;
            edge->sample = i + 1;
            for (int e = 0; e < N_EVENTS; e++)
                edge->costs[e] += x->values[e];
        }
    }
}

static void text(struct sm_buffer *out, const char *name) {
    struct sm_buffer clean;
    sm_buffer_init(&clean, -1);
    sm_ex_utf8(&clean, name[0] != 0 ? name : "???");
    for (size_t i = 0; i < clean.used; i++)
        sm_buffer_char(out, (unsigned char)clean.data[i] < 0x20 ? ' ' : clean.data[i]);
    sm_buffer_release(&clean);
}

/* "fl=(3) list.ml\nfn=(7) List.map\n"; names in full: readers differ in where they accept a bare number first. */
static void function_lines(struct writer *w, uint32_t function, const char *file_key,
                           const char *name_key) {
    struct sm_ex_place p = sm_ex_place(&w->tree, w->representative[function]);
    sm_buffer_printf(w->out, "%s=(%u) ", file_key,
                     sm_names_number(&w->files, p.file, strlen(p.file)) + 1);
    text(w->out, p.file);
    sm_buffer_printf(w->out, "\n%s=(%u) ", name_key, function);
    text(w->out, p.name);
    sm_buffer_char(w->out, '\n');
}

static void costs(struct writer *w, uint32_t line, const uint64_t *list) {
    sm_buffer_u64(w->out, line);
    for (int e = 0; e < N_EVENTS; e++)
        sm_buffer_printf(w->out, " %llu", (unsigned long long)list[e]);
    sm_buffer_char(w->out, '\n');
}

static void one_key(struct writer *w, uint32_t key) {
    uint32_t line = sm_ex_place(&w->tree, key).line;
    const uint64_t *own = w->own[key];
    if ((own[0] | own[1] | own[2] | own[3]) != 0)
        costs(w, line, own);
    for (uint32_t i = w->first_edge[key]; i != UINT32_MAX; i = w->edges[i].next) {
        const struct edge *e = &w->edges[i];
        if ((e->costs[0] | e->costs[1] | e->costs[2] | e->costs[3]) == 0)
            continue;
        function_lines(w, w->function[e->to], "cfi", "cfn");
        /* The number of calls is not known; of what they allocated it is. */
        sm_buffer_printf(w->out, "calls=%llu %u\n",
                         (unsigned long long)(e->costs[1] > 0 ? e->costs[1] : 1),
                         sm_ex_place(&w->tree, e->to).line);
        costs(w, line, e->costs);
    }
}

static int by_function(const void *left, const void *right, void *ctx) {
    const struct writer *w = ctx;
    uint32_t x = *(const uint32_t *)left, y = *(const uint32_t *)right;
    if (w->function[x] != w->function[y])
        return w->function[x] < w->function[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

void sm_export_callgrind(const struct sm_export *x, struct sm_buffer *out) {
    struct writer w = {.out = out};
    struct sm_ex_measure all[SM_EX_MEASURES], measures[N_EVENTS];
    struct sm_ex_samples samples;
    uint32_t shown, n = sm_ex_heap_measures(all, x, &shown);
    static const int order[N_EVENTS] = {1, 0, 3, 2};
    for (int e = 0; e < N_EVENTS; e++)
        measures[e] = all[order[e]];
    if (shown == 4)
        measures[0] = all[4];
    sm_ex_tree_make(&w.tree, x, SM_KEY_LINE);
    sm_ex_samples_make(&samples, &w.tree, measures, N_EVENTS, false);
    number_functions(&w);
    find_edges(&w);
    count(&w, &samples);
    uint64_t totals[N_EVENTS] = {0};
    for (uint32_t i = 0; i < samples.n; i++) {
        for (int e = 0; e < N_EVENTS; e++)
            totals[e] += samples.list[i].values[e];
    }
    sm_buffer_printf(
        out, "# callgrind format\nversion: 1\ncreator: statmem " SM_VERSION "\npid: %llu\ncmd: ",
        (unsigned long long)x->a->meta.pid);
    text(out, x->a->meta.executable);
    sm_buffer_text(out, "\npositions: line\nevents:");
    for (int e = 0; e < N_EVENTS; e++)
        sm_buffer_printf(out, " %s", measures[e].type);
    sm_buffer_text(out, "\nsummary:");
    for (int e = 0; e < N_EVENTS; e++)
        sm_buffer_printf(out, " %llu", (unsigned long long)totals[e]);
    sm_buffer_text(out, "\n\n");
    uint32_t n_keys = w.tree.view.n_keys, *keys = sm_alloc(n_keys * sizeof *keys);
    for (uint32_t key = 0; key < n_keys; key++)
        keys[key] = key;
    qsort_r(keys, n_keys, sizeof *keys, by_function, &w);
    for (uint32_t i = 0; i < n_keys; i++) {
        if (i == 0 || w.function[keys[i]] != w.function[keys[i - 1]]) {
            sm_buffer_char(out, '\n');
            function_lines(&w, w.function[keys[i]], "fl", "fn");
        }
        one_key(&w, keys[i]);
    }
    sm_buffer_text(out, "\ntotals:");
    for (int e = 0; e < N_EVENTS; e++)
        sm_buffer_printf(out, " %llu", (unsigned long long)totals[e]);
    sm_buffer_char(out, '\n');
    free(keys);
    free(w.function);
    free(w.representative);
    free(w.own);
    free(w.first_edge);
    free(w.edges);
    free(w.edge_of);
    sm_names_release(&w.files);
    sm_names_release(&w.names);
    sm_ex_samples_release(&samples);
    sm_ex_tree_release(&w.tree);
    for (uint32_t i = 0; i < n; i++)
        sm_ex_measure_release(&all[i]);
}
