/* See group.h. */
#include "report/group.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/naming.h"
#include "util/buffer.h"
#include "util/memory.h"

#define N_PSEUDO 3

uint64_t sm_weight(const struct sm_weights *w, enum sm_metric metric) {
    switch (metric) {
    case SM_ALLOCATED:
        return w->allocated;
    case SM_LIVE:
        return w->live;
    case SM_PEAK:
        return w->peak;
    case SM_PROMOTED:
        return w->promoted;
    case SM_COLLECTED:
        return w->collected;
    case SM_BLOCKS:
        return w->blocks;
    }
    return 0;
}

struct sm_seen sm_weight_seen(const struct sm_weights *w, enum sm_metric metric) {
    switch (metric) {
    case SM_ALLOCATED:
    case SM_BLOCKS:
        return w->seen_allocated;
    case SM_LIVE:
        return w->seen_live;
    case SM_PEAK:
        return w->seen_peak;
    case SM_COLLECTED:
        return (struct sm_seen){w->seen_allocated.blocks - w->seen_live.blocks,
                                w->seen_allocated.variance - w->seen_live.variance};
    case SM_PROMOTED:
        break;
    }
    return (struct sm_seen){0};
}

static uint32_t new_group(struct sm_grouping *g, uint32_t spot) {
    g->groups = sm_grow(g->groups, &g->groups_capacity, g->n_groups + 1, sizeof *g->groups);
    g->groups[g->n_groups] = (struct sm_group){.spot = spot};
    return (uint32_t)g->n_groups++;
}

/* Numbers of a spot's group and function. Texts are joined by NUL, which no name holds. */
static void place_spot(struct sm_grouping *g, uint32_t number) {
    struct sm_spot *s = &g->spots[number];
    const struct sm_location *l = s->location;
    struct sm_buffer key;
    sm_buffer_init(&key, -1);
    if (l == NULL) {
        sm_buffer_printf(&key, "%c%" PRIx64 ".%" PRIx32, 0, s->code, s->pseudo);
    } else {
        sm_buffer_bytes(&key, l->file, strlen(l->file) + 1);
        sm_buffer_text(&key, l->function);
    }
    s->function = sm_names_number(&g->function_names, key.data, key.used);
    if (l != NULL && g->by == SM_BY_FILE) {
        key.used = strlen(l->file) + 1;
    } else if (l != NULL && g->by == SM_BY_LINE) {
        key.used = strlen(l->file) + 1;
        sm_buffer_printf(&key, "%" PRIu32, l->line);
    } else if (l != NULL && g->by == SM_BY_SITE) {
        sm_buffer_printf(&key, "%c%" PRIu32 ":%" PRIu32 "-%" PRIu32 ":%" PRIu32, 0, l->line,
                         l->start_char, l->end_line, l->end_char);
    }
    s->group = sm_names_number(&g->group_names, key.data, key.used);
    if (s->group == g->n_groups)
        new_group(g, number);
    sm_buffer_release(&key);
}

/* The number of a spot; equal places have one, whatever their codes. */
static uint32_t spot_number(struct sm_grouping *g, const struct sm_location *l, uint64_t code,
                            uint32_t pseudo) {
    struct sm_buffer key;
    sm_buffer_init(&key, -1);
    if (l != NULL) {
        sm_buffer_bytes(&key, l->file, strlen(l->file) + 1);
        sm_buffer_bytes(&key, l->function, strlen(l->function) + 1);
        sm_buffer_printf(&key, "%" PRIu32 ":%" PRIu32 "-%" PRIu32 ":%" PRIu32, l->line,
                         l->start_char, l->end_line, l->end_char);
    } else {
        sm_buffer_printf(&key, "%c%" PRIx64 ".%" PRIx32, 0, code, pseudo);
    }
    uint32_t number = sm_names_number(&g->spot_names, key.data, key.used);
    sm_buffer_release(&key);
    if (number < g->n_spots)
        return number;
    g->spots = sm_grow(g->spots, &g->spots_capacity, g->n_spots + 1, sizeof *g->spots);
    g->spots[g->n_spots++] = (struct sm_spot){.location = l, .code = code, .pseudo = pseudo};
    place_spot(g, number);
    return number;
}

static void make_spots(struct sm_grouping *g) {
    struct sm_trace *t = g->profile->trace;
    g->n_locations = sm_trace_n_locations(t);
    g->first = sm_alloc_zero((size_t)g->n_locations + N_PSEUDO + 1, sizeof *g->first);
    size_t n = 0, capacity = 0;
    for (uint32_t id = 0; id < g->n_locations; id++) {
        const struct sm_location *list;
        uint32_t n_list = sm_trace_location(t, id, &list);
        g->first[id] = (uint32_t)n;
        g->spot_list = sm_grow(g->spot_list, &capacity, n + n_list + 1, sizeof *g->spot_list);
        for (uint32_t i = 0; i < n_list; i++)
            g->spot_list[n++] = spot_number(g, &list[i], 0, 0);
        if (n_list == 0)
            g->spot_list[n++] = spot_number(g, NULL, sm_trace_location_code(t, id), 0);
    }
    for (uint32_t i = 0; i < N_PSEUDO; i++) {
        g->first[g->n_locations + i] = (uint32_t)n;
        g->spot_list = sm_grow(g->spot_list, &capacity, n + 1, sizeof *g->spot_list);
        g->spot_list[n++] = spot_number(g, NULL, 0, SM_PSEUDO_FIRST + i);
    }
    g->first[g->n_locations + N_PSEUDO] = (uint32_t)n;
}

uint32_t sm_grouping_spots(const struct sm_grouping *g, uint32_t node, const uint32_t **spots) {
    uint32_t location = g->profile->nodes[node].location;
    if (location >= SM_PSEUDO_FIRST)
        location = g->n_locations + (location - SM_PSEUDO_FIRST);
    *spots = g->spot_list + g->first[location];
    return g->first[location + 1] - g->first[location];
}

static void see(struct sm_seen *to, const struct sm_seen *x) {
    to->blocks += x->blocks;
    to->variance += x->variance;
}

static void add(struct sm_weights *to, const struct sm_weights *w) {
    see(&to->seen_allocated, &w->seen_allocated);
    see(&to->seen_live, &w->seen_live);
    see(&to->seen_peak, &w->seen_peak);
    to->allocated += w->allocated;
    to->live += w->live;
    to->peak += w->peak;
    to->promoted += w->promoted;
    to->collected += w->collected;
    to->blocks += w->blocks;
}

/* ---- totals ----

   A group's total is the sum over the subtrees whose root belongs to the group while no node above
   does. A walk in depth-first order keeps how often each group is on the way down. The subtree sums
   come from one sweep from the last node to the first, since children follow their parents. */

struct walk {
    struct sm_grouping *g;
    uint32_t *first_child, *sibling; /* by node; 0 = none */
    uint32_t *open;                  /* by group: how often on the path */
    uint64_t *sums;                  /* by node */
};

static void enter(struct walk *w, uint32_t node) {
    const uint32_t *spots;
    uint32_t n = sm_grouping_spots(w->g, node, &spots);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t group = w->g->spots[spots[i]].group;
        if (w->open[group]++ == 0)
            w->g->groups[group].total += w->sums[node];
    }
}

static void leave(struct walk *w, uint32_t node) {
    const uint32_t *spots;
    uint32_t n = sm_grouping_spots(w->g, node, &spots);
    for (uint32_t i = 0; i < n; i++)
        w->open[w->g->spots[spots[i]].group]--;
}

static void make_totals(struct sm_grouping *g, enum sm_metric metric) {
    const struct sm_profile *p = g->profile;
    struct walk w = {.g = g,
                     .first_child = sm_alloc_zero(p->n_nodes, sizeof(uint32_t)),
                     .sibling = sm_alloc_zero(p->n_nodes, sizeof(uint32_t)),
                     .open = sm_alloc_zero(g->n_groups, sizeof(uint32_t)),
                     .sums = sm_alloc_zero(p->n_nodes, sizeof(uint64_t))};
    for (size_t i = p->n_nodes; i-- > 1;) {
        const struct sm_node *n = &p->nodes[i];
        if (n->leaf != 0)
            w.sums[i] += sm_weight(&p->leaves[n->leaf - 1].weights, metric);
        w.sums[n->parent] += w.sums[i];
        w.sibling[i] = w.first_child[n->parent];
        w.first_child[n->parent] = (uint32_t)i;
    }
    uint32_t node = w.first_child[SM_NODE_ROOT];
    while (node != SM_NODE_ROOT) {
        enter(&w, node);
        if (w.first_child[node] != 0) {
            node = w.first_child[node];
            continue;
        }
        leave(&w, node);
        while (node != SM_NODE_ROOT && w.sibling[node] == 0) {
            node = p->nodes[node].parent;
            if (node != SM_NODE_ROOT)
                leave(&w, node);
        }
        if (node != SM_NODE_ROOT)
            node = w.sibling[node];
    }
    free(w.first_child);
    free(w.sibling);
    free(w.open);
    free(w.sums);
}

void sm_grouping_make(struct sm_grouping *g, const struct sm_profile *profile, enum sm_group_by by,
                      bool with_totals, enum sm_metric metric) {
    *g = (struct sm_grouping){.profile = profile, .by = by};
    if (by >= SM_BY_DOMAIN) {
        for (size_t i = 0; i < profile->n_leaves; i++) {
            uint32_t group = new_group(g, profile->leaves[i].key);
            g->groups[group].own = profile->leaves[i].weights;
        }
        return;
    }
    make_spots(g);
    for (size_t i = 0; i < profile->n_leaves; i++) {
        const uint32_t *spots;
        uint32_t n = sm_grouping_spots(g, profile->leaves[i].key, &spots);
        add(&g->groups[g->spots[spots[n - 1]].group].own, &profile->leaves[i].weights);
    }
    if (with_totals)
        make_totals(g, metric);
}

void sm_grouping_release(struct sm_grouping *g) {
    free(g->groups);
    free(g->spots);
    free(g->first);
    free(g->spot_list);
    sm_names_release(&g->spot_names);
    sm_names_release(&g->group_names);
    sm_names_release(&g->function_names);
    *g = (struct sm_grouping){0};
}
