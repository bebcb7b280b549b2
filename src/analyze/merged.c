/* See merged.h: trees merged by key.

   A merged node is a group of entries: tree nodes that look the same from the focus on. A group is taken from a stack,
   its entries' neighbours (visible children, or the visible caller) are grouped by key, light groups are
   dropped, the rest goes onto the stack, heaviest last. So light subtrees are never entered, children come out
   by falling weight, and the depth of recursion in the program under study does not matter. Entries of
   pending groups lie in one array, the top group's last: what is taken makes room for what it grows. */
#include <stdlib.h>
#include <string.h>

#include "analyze/merged.h"
#include "util/buffer.h"
#include "util/memory.h"
#include "util/vec.h"

struct entry {
    uint32_t node;   /* callees: the visible node; callers: the one whose callers are next */
    uint32_t origin; /* callers: whose weight it carries */
};

struct group {
    uint32_t key, parent, depth;
    size_t from; /* entries: to the next group's, or the end */
    struct sm_sum total;
};

struct growing {
    const struct sm_view *v;
    const struct sm_calltree *t;
    const struct sm_merge_options *o;
    const struct sm_sum *nodes;  /* own */
    struct sm_sum *total;        /* subtrees */
    const struct sm_sum *weight; /* callers: by origin */
    struct sm_vec entries;       /* struct entry */
    struct sm_vec groups;        /* struct group, a stack */
    struct entry *taken;         /* of the group at hand */
    size_t n_taken, taken_capacity;
    struct entry *found; /* neighbours */
    uint32_t *found_group;
    size_t n_found, found_capacity, found_group_capacity;
    struct group *fresh;
    size_t *fresh_count;
    size_t n_fresh, fresh_capacity, fresh_count_capacity;
    uint32_t *group_of_key, *epoch_of_key;
    uint32_t epoch;
    struct sm_merged *m;
    size_t nodes_capacity;
};

static bool hidden(const struct growing *g, uint32_t node) {
    return g->v->key[node] == SM_KEY_HIDDEN;
}

static void found(struct growing *g, uint32_t node, uint32_t origin) {
    g->found = sm_grow(g->found, &g->found_capacity, g->n_found + 1, sizeof *g->found);
    g->found[g->n_found++] = (struct entry){.node = node, .origin = origin};
}

/* Visible children; what hidden ones allocated themselves goes to *own. */
static void find_callees(struct growing *g, uint32_t node, struct sm_sum *own) {
    sm_sum_add(own, &g->nodes[node]);
    for (uint32_t c = node + 1; c < g->t->end[node];) {
        if (g->total[c].rows == 0) {
            c = g->t->end[c];
        } else if (hidden(g, c)) {
            sm_sum_add(own, &g->nodes[c]);
            c++;
        } else {
            found(g, c, c);
            c = g->t->end[c];
        }
    }
}

static uint32_t visible_caller(const struct growing *g, uint32_t node) {
    do
        node = g->t->parent[node];
    while (node != 0 && hidden(g, node));
    return node;
}

static void find_callers(struct growing *g, const struct entry *e, struct sm_sum *own) {
    uint32_t caller = visible_caller(g, e->node);
    if (caller == 0)
        sm_sum_add(own, &g->weight[e->origin]);
    else
        found(g, caller, e->origin);
}

static int by_weight(const void *left, const void *right) {
    const struct group *x = *(struct group *const *)left, *y = *(struct group *const *)right;
    if (x->total.units != y->total.units)
        return x->total.units < y->total.units ? -1 : 1;
    return x->key < y->key ? 1 : -1; /* the first seen last: it comes out first */
}

struct named {
    struct group *group;
    char *name;
};

static int by_name(const void *left, const void *right) {
    const struct named *x = left, *y = right;
    int c = strcmp(y->name, x->name);
    return c != 0 ? c : x->group->key < y->group->key ? 1 : -1;
}

static void sort_by_name(struct growing *g, struct group **order, size_t n) {
    struct named *list = sm_alloc(n * sizeof *list);
    for (size_t i = 0; i < n; i++) {
        struct sm_buffer b;
        sm_buffer_init(&b, -1);
        sm_view_name(g->v, order[i]->key, &b);
        list[i] = (struct named){order[i], sm_strdup(sm_buffer_string(&b))};
        sm_buffer_release(&b);
    }
    qsort(list, n, sizeof *list, by_name);
    for (size_t i = 0; i < n; i++) {
        order[i] = list[i].group;
        free(list[i].name);
    }
    free(list);
}

static size_t group_number(struct growing *g, uint32_t key, uint32_t parent, uint32_t depth) {
    if (g->epoch_of_key[key] == g->epoch)
        return g->group_of_key[key];
    g->epoch_of_key[key] = g->epoch;
    g->group_of_key[key] = (uint32_t)g->n_fresh;
    g->fresh = sm_grow(g->fresh, &g->fresh_capacity, g->n_fresh + 1, sizeof *g->fresh);
    g->fresh_count =
        sm_grow(g->fresh_count, &g->fresh_count_capacity, g->n_fresh + 1, sizeof *g->fresh_count);
    g->fresh[g->n_fresh] = (struct group){.key = key, .parent = parent, .depth = depth};
    g->fresh_count[g->n_fresh] = 0;
    return g->n_fresh++;
}

/* Groups what was found, and puts the heavy groups onto the stack. */
static void push_groups(struct growing *g, uint32_t parent, uint32_t depth) {
    g->n_fresh = 0;
    g->epoch++;
    g->found_group =
        sm_grow(g->found_group, &g->found_group_capacity, g->n_found + 1, sizeof *g->found_group);
    for (size_t i = 0; i < g->n_found; i++) {
        const struct entry *e = &g->found[i];
        size_t k = group_number(g, g->v->key[e->node], parent, depth);
        g->found_group[i] = (uint32_t)k;
        g->fresh_count[k]++;
        sm_sum_add(&g->fresh[k].total,
                   g->weight != NULL ? &g->weight[e->origin] : &g->total[e->node]);
    }
    struct group **order = sm_alloc((g->n_fresh + 1) * sizeof *order);
    size_t n = 0;
    for (size_t k = 0; k < g->n_fresh; k++) {
        struct group *f = &g->fresh[k];
        bool deep = g->o->max_depth != 0 && depth > g->o->max_depth;
        if (f->total.units < g->o->min_units || deep) {
            g->m->folded += f->total.units;
            g->m->n_folded++;
            f->from = SIZE_MAX;
        } else {
            order[n++] = f;
        }
    }
    if (n > 1 && g->o->order == SM_ORDER_NAME)
        sort_by_name(g, order, n);
    else if (n > 1)
        qsort(order, n, sizeof *order, by_weight);
    size_t at = g->entries.used_bytes / sizeof(struct entry);
    for (size_t i = 0; i < n; i++) {
        order[i]->from = at;
        at += g->fresh_count[order[i] - g->fresh];
        *(struct group *)sm_vec_push(&g->groups, sizeof(struct group)) = *order[i];
    }
    size_t old = g->entries.used_bytes;
    sm_vec_push(&g->entries, at * sizeof(struct entry) - old);
    struct entry *entries = g->entries.data;
    for (size_t i = 0; i < g->n_found; i++) {
        struct group *f = &g->fresh[g->found_group[i]];
        if (f->from != SIZE_MAX)
            entries[f->from++] = g->found[i];
    }
    free(order);
}

static uint32_t emit(struct growing *g, const struct group *group) {
    struct sm_merged *m = g->m;
    m->nodes = sm_grow(m->nodes, &g->nodes_capacity, m->n_nodes + 1u, sizeof *m->nodes);
    m->nodes[m->n_nodes] = (struct sm_merged_node){.key = group->key,
                                                   .parent = group->parent,
                                                   .end = m->n_nodes + 1,
                                                   .depth = group->depth,
                                                   .total = group->total};
    return m->n_nodes++;
}

/* Takes the entries of the group on top: they are the array's tail. */
static void take_entries(struct growing *g, size_t from) {
    const struct entry *entries = g->entries.data;
    g->n_taken = g->entries.used_bytes / sizeof *entries - from;
    g->taken = sm_grow(g->taken, &g->taken_capacity, g->n_taken + 1, sizeof *g->taken);
    if (g->n_taken > 0)
        memcpy(g->taken, entries + from, g->n_taken * sizeof *entries);
    g->entries.used_bytes = from * sizeof *entries;
}

static void grow(struct growing *g) {
    while (g->groups.used_bytes > 0) {
        g->groups.used_bytes -= sizeof(struct group);
        struct group top = *(struct group *)((char *)g->groups.data + g->groups.used_bytes);
        take_entries(g, top.from);
        uint32_t node = emit(g, &top);
        struct sm_sum own = {0};
        g->n_found = 0;
        for (size_t i = 0; i < g->n_taken; i++) {
            if (g->weight != NULL)
                find_callers(g, &g->taken[i], &own);
            else
                find_callees(g, g->taken[i].node, &own);
        }
        g->m->nodes[node].own = own;
        push_groups(g, node, top.depth + 1);
    }
    struct sm_merged_node *nodes = g->m->nodes;
    for (uint32_t i = g->m->n_nodes; i-- > 1;) {
        if (nodes[nodes[i].parent].end < nodes[i].end)
            nodes[nodes[i].parent].end = nodes[i].end;
    }
}

/* ---- where to begin ---- */

/* The stack down to `node` ends with the focus: the node of its first frame, or UINT32_MAX. */
static uint32_t focus_start(const struct growing *g, uint32_t node) {
    const struct sm_merge_options *o = g->o;
    uint32_t k = o->n_focus;
    if (hidden(g, node) || g->v->key[node] != o->focus[k - 1])
        return UINT32_MAX;
    for (k--; k > 0; k--) {
        node = visible_caller(g, node);
        if (node == 0 || g->v->key[node] != o->focus[k - 1])
            return UINT32_MAX;
    }
    return node;
}

static void begin_with_focus(struct growing *g, bool callers) {
    const struct sm_merge_options *o = g->o;
    struct group root = {.key = o->focus[callers ? 0 : o->n_focus - 1]};
    for (uint32_t i = 1; i < g->t->n_nodes;) {
        uint32_t start = g->total[i].rows == 0 ? UINT32_MAX : focus_start(g, i);
        if (start == UINT32_MAX) {
            i = g->total[i].rows == 0 ? g->t->end[i] : i + 1;
            continue;
        }
        struct entry e = {.node = callers ? start : i, .origin = i};
        *(struct entry *)sm_vec_push(&g->entries, sizeof e) = e;
        sm_sum_add(&root.total, &g->total[i]);
        i = g->t->end[i];
    }
    *(struct group *)sm_vec_push(&g->groups, sizeof root) = root;
}

static void begin_at_root(struct growing *g) {
    struct group root = {.key = 0, .total = g->total[0]};
    *(struct entry *)sm_vec_push(&g->entries, sizeof(struct entry)) = (struct entry){0};
    *(struct group *)sm_vec_push(&g->groups, sizeof root) = root;
}

/* Callers of all allocation sites: the root is emitted here, its children are the sites. */
static void begin_at_sites(struct growing *g) {
    struct group root = {.key = 0, .total = g->total[0]};
    emit(g, &root);
    for (uint32_t i = 0; i < g->t->n_nodes; i++) {
        if (g->nodes[i].rows == 0)
            continue;
        uint32_t site = i == 0 || !hidden(g, i) ? i : visible_caller(g, i);
        if (site == 0)
            sm_sum_add(&g->m->nodes[0].own, &g->nodes[i]);
        else
            found(g, site, i);
    }
    push_groups(g, 0, 1);
}

void sm_merged_make(struct sm_merged *m, const struct sm_view *v, const struct sm_sum *nodes,
                    const struct sm_merge_options *o) {
    *m = (struct sm_merged){0};
    struct growing g = {.v = v,
                        .t = &v->analysis->tree,
                        .o = o,
                        .nodes = nodes,
                        .total = sm_subtree_sums(v->analysis, nodes),
                        .m = m};
    g.group_of_key = sm_alloc_zero(v->n_keys, sizeof *g.group_of_key);
    g.epoch_of_key = sm_alloc_zero(v->n_keys, sizeof *g.epoch_of_key);
    bool callers = o->direction == SM_CALLERS;
    if (callers)
        g.weight = o->n_focus > 0 ? g.total : nodes;
    if (o->n_focus > 0)
        begin_with_focus(&g, callers);
    else if (callers)
        begin_at_sites(&g);
    else
        begin_at_root(&g);
    grow(&g);
    sm_vec_release(&g.entries);
    sm_vec_release(&g.groups);
    free(g.total);
    free(g.taken);
    free(g.found);
    free(g.found_group);
    free(g.fresh);
    free(g.fresh_count);
    free(g.group_of_key);
    free(g.epoch_of_key);
}

void sm_merged_release(struct sm_merged *m) {
    free(m->nodes);
    *m = (struct sm_merged){0};
}
