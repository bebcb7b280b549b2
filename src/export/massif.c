/* Massif's text, for ms_print and massif-visualizer: live bytes at equal steps of time, and as trees of callers the
   peak and the end. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/curve.h"
#include "export/model.h"

#define SNAPSHOTS 72
#define LEAST_SHARE 0.005

struct writer {
    const struct sm_export *x;
    struct sm_buffer *out;
    struct sm_view view;
    uint32_t n;
};

static uint64_t bytes_of(const struct writer *w, uint64_t units) {
    return (uint64_t)llround((double)units * w->x->a->bytes_per_unit);
}

/* ms_print takes what follows a '#' for a comment. */
static void one_line(struct sm_buffer *out, const char *text) {
    for (; *text != 0; text++)
        sm_buffer_char(out, *text == '#' ? '~' : (unsigned char)*text < 0x20 ? ' ' : *text);
}

static void place(struct writer *w, uint32_t key) {
    struct sm_ex_tree view_only = {.x = w->x, .view = w->view};
    struct sm_ex_place p = sm_ex_place(&view_only, key);
    struct sm_buffer clean;
    sm_buffer_init(&clean, -1);
    sm_ex_utf8(&clean, p.name);
    if (p.file[0] != 0) {
        sm_buffer_text(&clean, " (");
        sm_ex_utf8(&clean, p.file);
        if (p.line > 0)
            sm_buffer_printf(&clean, ":%u", p.line);
        sm_buffer_char(&clean, ')');
    }
    one_line(w->out, sm_buffer_string(&clean));
    sm_buffer_release(&clean);
}

/* Nodes stand in preorder, so that depth alone places a line. */
static void tree(struct writer *w, const struct sm_merged *m) {
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        const struct sm_merged_node *n = &m->nodes[i];
        uint32_t children = 0;
        uint64_t told = n->own.units;
        for (uint32_t c = i + 1; c < n->end; c = m->nodes[c].end) {
            children++;
            told += m->nodes[c].total.units;
        }
        uint64_t rest = n->total.units > told ? n->total.units - told : 0;
        sm_buffer_fill(w->out, ' ', n->depth);
        sm_buffer_printf(w->out, "n%u: %llu ", children + (rest > 0),
                         (unsigned long long)bytes_of(w, n->total.units));
        if (i == 0)
            sm_buffer_text(w->out, "(sampled allocations, extrapolated by statmem)");
        else
            place(w, n->key);
        sm_buffer_char(w->out, '\n');
        if (rest > 0) {
            /* ms_print sorts nothing: it may stand before its larger sisters. */
            sm_buffer_fill(w->out, ' ', n->depth + 1);
            sm_buffer_printf(w->out, "n0: %llu in places, all below statmem's threshold (%.2f%%)\n",
                             (unsigned long long)bytes_of(w, rest), LEAST_SHARE * 100);
        }
    }
}

static void snapshot(struct writer *w, int64_t ns, uint64_t units, const char *kind) {
    sm_buffer_printf(w->out,
                     "#-----------\nsnapshot=%u\n#-----------\ntime=%lld\nmem_heap_B=%llu\n"
                     "mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=%s\n",
                     w->n++, (long long)(ns > 0 ? ns / 1000000 : 0),
                     (unsigned long long)bytes_of(w, units), kind);
}

static void detailed(struct writer *w, int64_t ns, const char *kind, enum sm_weight_kind weight) {
    struct sm_weigher weigher;
    struct sm_merged merged;
    struct sm_sum *nodes, total;
    sm_weigher_init(&weigher, w->x->a, w->x->selection, &(struct sm_weight){.kind = weight},
                    w->x->threads);
    total = sm_weigh(&weigher, w->x->threads);
    nodes = sm_weigh_nodes(&weigher, w->x->threads);
    uint64_t least = (uint64_t)ceil((double)total.units * LEAST_SHARE);
    sm_merged_make(&merged, &w->view, nodes,
                   &(struct sm_merge_options){.direction = SM_CALLERS,
                                              .min_units = least > 0 ? least : 1,
                                              .max_depth = 200});
    snapshot(w, ns, total.units, kind);
    tree(w, &merged);
    sm_merged_release(&merged);
    free(nodes);
    sm_weigher_release(&weigher);
}

void sm_export_massif(const struct sm_export *x, struct sm_buffer *out) {
    struct writer w = {.x = x, .out = out};
    const struct sm_analysis *a = x->a;
    struct sm_curve c;
    struct sm_peak peak = sm_selection_peak(a, x->selection, x->threads);
    int64_t end = a->last_ns > 0 ? a->last_ns : 0;
    sm_view_make(&w.view, a, SM_KEY_LINE, x->hidden, x->collapsed);
    if (x->fold_recursion)
        sm_view_fold_recursion(&w.view);
    sm_buffer_text(out, "desc: estimated by statmem " SM_VERSION " from ");
    sm_buffer_printf(out, "%u samples\ncmd: ", a->rows.n);
    const char *word = a->meta.args;
    if (a->meta.n_args == 0)
        one_line(out, a->meta.executable);
    for (uint32_t i = 0; i < a->meta.n_args; i++, word += strlen(word) + 1) {
        if (i > 0)
            sm_buffer_char(out, ' ');
        one_line(out, word);
    }
    sm_buffer_text(out, "\ntime_unit: ms\n");
    sm_curve_make(&c, a, x->selection, 0, end + 1, SNAPSHOTS, 1, NULL, NULL, x->threads);
    bool told = peak.row == UINT32_MAX;
    snapshot(&w, 0, 0, "empty");
    for (uint32_t i = 0; i + 1 < SNAPSHOTS; i++) {
        int64_t at = (int64_t)((double)(end + 1) * (i + 1) / SNAPSHOTS);
        if (!told && peak.ns <= at) {
            detailed(&w, peak.ns, "peak", SM_WEIGHT_LIVE_OWN_PEAK);
            told = true;
        }
        snapshot(&w, at, c.points[i].live, "empty");
    }
    if (!told)
        detailed(&w, peak.ns, "peak", SM_WEIGHT_LIVE_OWN_PEAK);
    detailed(&w, end, "detailed", SM_WEIGHT_LIVE_END);
    sm_curve_release(&c);
    sm_view_release(&w.view);
}
