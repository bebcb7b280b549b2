/* See top.h: sums, order and names. */
#include "report/top.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/naming.h"
#include "util/memory.h"

static const enum sm_weight_kind kinds[] = {SM_WEIGHT_ALLOCATED, SM_WEIGHT_LIVE_END,
                                            SM_WEIGHT_LIVE_PEAK, SM_WEIGHT_PROMOTED,
                                            SM_WEIGHT_FREED};

const char *sm_top_metric_name(const struct sm_top *top, char to[64]) {
    static const char *const names[] = {"allocated", "live",      "peak",
                                        "promoted",  "collected", "blocks"};
    return top->options->metric == SM_TOP_OTHER ? sm_weight_text(&top->options->weight, to)
                                                : names[top->options->metric];
}

uint64_t sm_top_weight(const struct sm_top *top, const struct sm_sum *sum) {
    return top->options->metric == SM_TOP_BLOCKS ? sum->rows : sum->units;
}

uint32_t sm_top_shown(const struct sm_top *top) {
    uint64_t n = top->asked->top;
    return n == 0 || n > top->n_rows ? top->n_rows : (uint32_t)n;
}

static bool find_dimension(struct sm_top *top) {
    static const struct {
        const char *name;
        enum sm_dimension_kind kind;
        enum sm_key_kind key;
        bool totals;
    } known[] = {
        {"site", SM_BY_PLACE, SM_KEY_FRAME, false},
        {"function", SM_BY_PLACE, SM_KEY_FUNCTION, true},
        {"line", SM_BY_PLACE, SM_KEY_LINE, true},
        {"file", SM_BY_PLACE, SM_KEY_FILE, true},
        {"module", SM_BY_PLACE, SM_KEY_MODULE, true},
        {"domain", SM_BY_DOMAIN, 0, false},
        {"thread", SM_BY_LANE, 0, false},
        {"source", SM_BY_SOURCE, 0, false},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, top->options->by) != 0)
            continue;
        top->dimension = (struct sm_dimension){.kind = known[i].kind};
        top->places = known[i].kind == SM_BY_PLACE;
        top->totals = known[i].totals;
        if (top->places) {
            sm_asked_view(top->asked, &top->view, known[i].key);
            top->dimension.view = &top->view;
        }
        return true;
    }
    return false;
}

static uint64_t sort_key(const struct sm_top *top, const struct sm_top_row *row) {
    return sm_top_weight(top, top->options->inclusive && top->totals ? &row->total
                                                                     : &row->own[top->which]);
}

static int by_weight(const void *left, const void *right, void *ctx) {
    const struct sm_top *top = ctx;
    const struct sm_top_row *x = left, *y = right;
    uint64_t a = sort_key(top, x), b = sort_key(top, y);
    if (a == b) {
        a = x->own[SM_TOP_ALLOCATED].units;
        b = y->own[SM_TOP_ALLOCATED].units;
    }
    if (a != b)
        return a < b ? 1 : -1;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* Rows that allocate nothing themselves have these sums. */
static const struct sm_sum nothing[SM_TOP_METRICS + 1];

static void make_rows(struct sm_top *top) {
    uint32_t n = top->totals ? top->view.n_keys : top->groups.n_groups;
    top->rows = sm_alloc_zero(n + 1u, sizeof *top->rows);
    if (top->totals) {
        struct sm_key_sum *sums = sm_view_sums(&top->view, top->nodes);
        for (uint32_t key = 0; key < n; key++)
            top->rows[key] =
                (struct sm_top_row){.value = key, .own = nothing, .total = sums[key].total};
        for (uint32_t i = 0; i < top->groups.n_groups; i++)
            top->rows[top->groups.list[i].value[0]].own = top->groups.list[i].sums;
        free(sums);
        /* The root is everybody's caller, and no place. */
        top->rows[0].total = top->rows[0].own[top->which];
    } else {
        for (uint32_t i = 0; i < n; i++)
            top->rows[i] = (struct sm_top_row){.value = top->groups.list[i].value[0],
                                               .own = top->groups.list[i].sums};
    }
    for (uint32_t i = 0; i < n; i++) {
        if (sort_key(top, &top->rows[i]) > 0)
            top->rows[top->n_rows++] = top->rows[i];
    }
    if (top->n_rows > 1)
        qsort_r(top->rows, top->n_rows, sizeof *top->rows, by_weight, top);
}

static void make_view(const void *ctx, struct sm_view *v, enum sm_key_kind kind) {
    sm_asked_view(ctx, v, kind);
}

bool sm_top_make(struct sm_top *top, const struct sm_asked *asked,
                 const struct sm_top_options *options) {
    *top = (struct sm_top){.asked = asked, .options = options};
    if (!find_dimension(top))
        return false;
    for (unsigned i = 0; i < SM_TOP_METRICS; i++) {
        struct sm_weight weight = {.kind = kinds[i]};
        sm_asked_weigher(asked, &top->weighers[top->n_weighers++], &weight);
    }
    top->which = options->metric == SM_TOP_BLOCKS ? SM_TOP_ALLOCATED : (uint32_t)options->metric;
    if (options->metric == SM_TOP_OTHER) {
        top->which = top->n_weighers;
        sm_asked_weigher(asked, &top->weighers[top->n_weighers++], &options->weight);
    }
    for (uint32_t i = 0; i < top->n_weighers; i++)
        top->all[i] = sm_weigh(&top->weighers[i], asked->threads);
    top->whole = sm_top_weight(top, &top->all[top->which]);
    sm_groups_make(&top->groups, &top->dimension, 1, top->weighers, top->n_weighers,
                   asked->threads);
    if (top->totals || (top->places && options->caller_depth > 0))
        top->nodes = sm_weigh_nodes(&top->weighers[top->which], asked->threads);
    make_rows(top);
    if (top->places && options->caller_depth > 0)
        sm_callers_init(&top->callers, &top->view, top->nodes, options->metric == SM_TOP_BLOCKS,
                        make_view, asked);
    return true;
}

void sm_top_release(struct sm_top *top) {
    sm_callers_release(&top->callers);
    sm_groups_release(&top->groups);
    for (uint32_t i = 0; i < top->n_weighers; i++)
        sm_weigher_release(&top->weighers[i]);
    if (top->places)
        sm_view_release(&top->view);
    free(top->nodes);
    free(top->rows);
    *top = (struct sm_top){0};
}

/* ---- names ---- */

void sm_top_spot_name(const struct sm_view *v, uint32_t key, struct sm_buffer *name,
                      struct sm_buffer *place) {
    const struct sm_analysis *a = v->analysis;
    const struct sm_frame *f = &a->frames[v->spot[key]];
    const struct sm_function *fn = &a->functions[f->function];
    if (v->names[key] != 0 || v->kind == SM_KEY_MODULE || v->kind == SM_KEY_FILE) {
        sm_view_name(v, key, name);
        return;
    }
    struct sm_location l = {.function = sm_text(a, fn->name),
                            .file = sm_text(a, fn->file),
                            .line = v->kind == SM_KEY_FUNCTION ? 0 : f->line,
                            .end_line = f->end_line,
                            .start_char = f->start_char,
                            .end_char = f->end_char,
                            .flags = (uint8_t)fn->flags};
    sm_buffer_text(name, l.function);
    if (v->kind == SM_KEY_FUNCTION && f->line != 0 && (fn->flags & SM_SYMS_NO_DEBUG) == 0)
        sm_buffer_text(place, l.file);
    else
        sm_place(place, &l, v->kind == SM_KEY_FRAME);
}

static void source_name(uint32_t source, struct sm_buffer *name) {
    unsigned heap = SM_SOURCE_HEAP(source), origin = SM_SOURCE_ORIGIN(source);
    sm_buffer_printf(name, "%s%s", sm_heap_name(heap), heap < SM_HEAP_EXTERNAL ? " heap" : "");
    if (origin != SM_ORIGIN_NORMAL)
        sm_buffer_printf(name, ", %s", sm_origin_name(origin));
    else if (heap == SM_HEAP_NATIVE)
        sm_buffer_text(name, ", program");
}

static void thread_name(const struct sm_analysis *a, uint32_t lane, struct sm_buffer *name,
                        struct sm_buffer *place) {
    const struct sm_lane *l = &a->lanes[lane];
    sm_buffer_text(name, "thread");
    if (l->tid != 0)
        sm_buffer_printf(name, " %" PRIu64, l->tid);
    if (l->name != 0)
        sm_buffer_printf(name, " '%s'", sm_text(a, l->name));
    if (l->kind == SM_OWNER_NATIVE)
        sm_buffer_printf(place, "native, stream %" PRIu32, l->stream);
    else
        sm_buffer_printf(place, "domain %" PRIu64 ", stream %" PRIu32, l->domain, l->stream);
}

void sm_top_name(const struct sm_top *top, uint32_t value, struct sm_buffer *name,
                 struct sm_buffer *place) {
    const struct sm_analysis *a = top->asked->a;
    if (top->places)
        sm_top_spot_name(&top->view, value, name, place);
    else if (top->dimension.kind == SM_BY_LANE && value < a->n_lanes)
        thread_name(a, value, name, place);
    else if (top->dimension.kind == SM_BY_SOURCE)
        source_name(value, name);
    else
        sm_groups_name(&top->groups, 0, value, name);
}
