/* Profile, grouping and order behind `top`. See top.h. */
#include "report/top.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/naming.h"
#include "util/memory.h"

const char *sm_group_by_name(enum sm_group_by by) {
    static const char *const names[] = {"site",   "function", "line",  "file",
                                        "domain", "thread",   "source"};
    return names[by];
}

const char *sm_metric_name(enum sm_metric metric) {
    static const char *const names[] = {"allocated", "live",      "peak",
                                        "promoted",  "collected", "blocks"};
    return names[metric];
}

bool sm_top_has_totals(const struct sm_top *top) {
    return top->options->by >= SM_BY_FUNCTION && top->options->by <= SM_BY_FILE;
}

uint64_t sm_top_key(const struct sm_top *top, uint32_t group) {
    const struct sm_group *g = &top->grouping.groups[group];
    return top->options->inclusive && sm_top_has_totals(top)
               ? g->total
               : sm_weight(&g->own, top->options->metric);
}

size_t sm_top_shown(const struct sm_top *top) {
    uint64_t n = top->options->n_rows;
    return n == 0 || n > top->n_rows ? top->n_rows : (size_t)n;
}

struct sm_estimate sm_top_estimate(const struct sm_top *top, uint64_t weight,
                                   const struct sm_seen *seen) {
    double r = top->profile.native_interval;
    if (r == 0)
        return sm_estimate(weight, sm_trace_meta(top->trace)->sample_rate, top->unit);
    /* A block's variance, w S / (exp(S/R) - 1), is at most w R. */
    struct sm_byte_sum sum = {.blocks = seen != NULL ? seen->blocks : weight > 0,
                              .bytes = (double)weight,
                              .variance = seen != NULL ? seen->variance
                                          : r > 1      ? (double)weight * r
                                                       : 0};
    struct sm_estimate e = sm_byte_estimate(&sum, r);
    if (seen == NULL)
        e.samples = 0;
    return e;
}

static int by_weight(const void *a, const void *b, void *ctx) {
    const struct sm_top *top = ctx;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    uint64_t x = sm_top_key(top, i), y = sm_top_key(top, j);
    if (x == y) {
        x = top->grouping.groups[i].own.allocated;
        y = top->grouping.groups[j].own.allocated;
    }
    if (x != y)
        return x < y ? 1 : -1;
    return i < j ? -1 : i > j;
}

enum sm_status sm_top_make(struct sm_top *top, struct sm_trace *t,
                           const struct sm_top_options *options, struct sm_error *err) {
    static const enum sm_leaf_kind leaves[] = {SM_LEAF_STACK, SM_LEAF_STACK,  SM_LEAF_STACK,
                                               SM_LEAF_STACK, SM_LEAF_DOMAIN, SM_LEAF_OWNER,
                                               SM_LEAF_SOURCE};
    *top = (struct sm_top){.trace = t, .options = options};
    struct sm_profile_options profile = options->profile;
    profile.leaf = leaves[options->by];
    if (sm_profile_collect(&top->profile, t, &profile, err) != SM_OK)
        return SM_FAILED;
    sm_grouping_make(&top->grouping, &top->profile, options->by, sm_top_has_totals(top),
                     options->metric);
    if (profile.leaf == SM_LEAF_STACK && options->caller_depth > 0)
        sm_leaf_index_make(&top->index, &top->grouping);
    uint32_t word_bits = sm_trace_meta(t)->word_bits;
    top->unit = word_bits >= 8 ? word_bits / 8 : 8;
    top->whole = sm_weight(&top->profile.all, options->metric);
    top->rows = sm_alloc_zero(top->grouping.n_groups, sizeof *top->rows);
    for (uint32_t i = 0; i < top->grouping.n_groups; i++) {
        if (sm_top_key(top, i) > 0)
            top->rows[top->n_rows++] = i;
    }
    if (top->n_rows > 0)
        qsort_r(top->rows, top->n_rows, sizeof *top->rows, by_weight, top);
    return SM_OK;
}

void sm_top_release(struct sm_top *top) {
    sm_leaf_index_release(&top->index);
    sm_grouping_release(&top->grouping);
    sm_profile_release(&top->profile);
    free(top->rows);
    *top = (struct sm_top){0};
}

void sm_spot_name(const struct sm_top *top, uint32_t number, struct sm_buffer *name,
                  struct sm_buffer *place) {
    const struct sm_spot *s = &top->grouping.spots[number];
    if (s->location != NULL) {
        sm_buffer_text(name, sm_function(s->location));
        sm_place(place, s->location, true);
    } else if (s->pseudo == SM_PSEUDO_EMPTY) {
        sm_buffer_text(name, "[no stack]");
    } else if (s->pseudo == SM_PSEUDO_LOST) {
        sm_buffer_text(name, "[stack lost in the trace]");
    } else if (s->pseudo == SM_PSEUDO_FOLDED) {
        sm_buffer_text(name, "[callers left out to save memory]");
    } else {
        sm_nameless_frame(name, s->code, top->options->utf8);
    }
}

static void source_name(uint32_t source, struct sm_buffer *name) {
    unsigned heap = SM_SOURCE_HEAP(source), origin = SM_SOURCE_ORIGIN(source);
    sm_buffer_printf(name, "%s%s", sm_heap_name(heap), heap < SM_HEAP_EXTERNAL ? " heap" : "");
    if (origin != SM_ORIGIN_NORMAL)
        sm_buffer_printf(name, ", %s", sm_origin_name(origin));
    else if (heap == SM_HEAP_NATIVE)
        sm_buffer_text(name, ", program");
}

void sm_top_name(const struct sm_top *top, uint32_t group, struct sm_buffer *name,
                 struct sm_buffer *place) {
    uint32_t key = top->grouping.groups[group].spot;
    const struct sm_owner *owner;
    switch (top->options->by) {
    case SM_BY_DOMAIN:
        sm_buffer_printf(name, "domain %" PRIu64, top->profile.domains[key]);
        return;
    case SM_BY_THREAD:
        owner = sm_trace_owner(top->trace, key);
        if (owner->tid != 0)
            sm_buffer_printf(name, "thread %" PRIu64, owner->tid);
        else
            sm_buffer_text(name, "thread");
        if (owner->name[0] != 0)
            sm_buffer_printf(name, " '%s'", owner->name);
        sm_buffer_printf(place, "domain %" PRIu64 ", stream %" PRIu32, owner->domain,
                         owner->stream);
        return;
    case SM_BY_SOURCE:
        source_name(key, name);
        return;
    default:
        break;
    }
    const struct sm_location *l = top->grouping.spots[key].location;
    if (l == NULL || top->options->by == SM_BY_SITE) {
        sm_spot_name(top, key, name, place);
        return;
    }
    if (top->options->by == SM_BY_FUNCTION) {
        sm_buffer_text(name, sm_function(l));
        sm_buffer_text(place, l->file);
    } else {
        sm_buffer_text(name, l->file[0] != 0 ? l->file : "?");
        if (top->options->by == SM_BY_LINE && l->line > 0)
            sm_buffer_printf(name, ":%" PRIu32, l->line);
    }
}
