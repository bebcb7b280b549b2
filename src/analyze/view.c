/* See merged.h: views, and sums by key.

   The tree stands in preorder, so that one pass with the path's nodes at hand tells for each node what is above
   it. */
#include <stdlib.h>
#include <string.h>

#include "analyze/merged.h"
#include "util/buffer.h"
#include "util/map.h"
#include "util/memory.h"

static bool has_bit(const uint64_t *words, uint32_t i) {
    return words != NULL && (words[i >> 6] >> (i & 63) & 1) != 0;
}

/* What makes two frames the same. */
static uint64_t identity(const struct sm_analysis *a, enum sm_key_kind kind, uint32_t frame) {
    const struct sm_frame *f = &a->frames[frame];
    switch (kind) {
    case SM_KEY_FRAME:
        return frame;
    case SM_KEY_LINE:
        return f->function | (uint64_t)f->line << 32;
    case SM_KEY_FILE:
        return a->functions[f->function].file;
    case SM_KEY_MODULE:
        return a->functions[f->function].module;
    default:
        return f->function;
    }
}

/* Files and modules that are not known: each function is a key of its own. */
static bool nameless(const struct sm_analysis *a, enum sm_key_kind kind, uint32_t frame) {
    const struct sm_function *f = &a->functions[a->frames[frame].function];
    return (kind == SM_KEY_FILE && f->file == 0) || (kind == SM_KEY_MODULE && f->module == 0);
}

#define COLLAPSED ((uint64_t)1 << 63)
#define NAMELESS ((uint64_t)1 << 62)

static uint32_t add_key(struct sm_view *v, size_t *capacity, size_t *names_capacity, uint32_t frame,
                        sm_text_id name) {
    v->spot = sm_grow(v->spot, capacity, v->n_keys + 1u, sizeof *v->spot);
    v->names = sm_grow(v->names, names_capacity, v->n_keys + 1u, sizeof *v->names);
    v->spot[v->n_keys] = frame;
    v->names[v->n_keys] = name;
    return v->n_keys++;
}

/* Key of each frame, but for hidden ones. */
static uint32_t *keys_of_frames(struct sm_view *v, const uint64_t *hidden,
                                const sm_text_id *collapsed) {
    const struct sm_analysis *a = v->analysis;
    uint32_t *of_frame = sm_alloc((size_t)a->n_frames * sizeof *of_frame);
    struct sm_map numbers = {0};
    size_t capacity = 0, names_capacity = 0;
    of_frame[0] = add_key(v, &capacity, &names_capacity, 0, 0);
    for (uint32_t i = 1; i < a->n_frames; i++) {
        sm_text_id name = collapsed != NULL ? collapsed[i] : 0;
        uint64_t id = name != 0                 ? COLLAPSED | name
                      : nameless(a, v->kind, i) ? NAMELESS | a->frames[i].function
                                                : identity(a, v->kind, i);
        bool found;
        if (has_bit(hidden, i)) {
            of_frame[i] = SM_KEY_HIDDEN;
            continue;
        }
        uint32_t *place = sm_map_place(&numbers, id, v->n_keys, &found);
        of_frame[i] = *place - 1;
        if (!found)
            add_key(v, &capacity, &names_capacity, i, name);
    }
    sm_map_release(&numbers);
    return of_frame;
}

void sm_view_make(struct sm_view *v, const struct sm_analysis *a, enum sm_key_kind kind,
                  const uint64_t *hidden, const sm_text_id *collapsed) {
    *v = (struct sm_view){.analysis = a, .kind = kind};
    const struct sm_calltree *t = &a->tree;
    uint32_t n = t->n_nodes, *of_frame = keys_of_frames(v, hidden, collapsed);
    v->key = sm_alloc((size_t)n * sizeof *v->key);
    v->top = sm_alloc_zero((size_t)n / 64 + 1, sizeof *v->top);
    uint32_t *on_path = sm_alloc_zero(v->n_keys, sizeof *on_path);
    /* The key a frame would continue: a collapsed frame below one of the same name is the same box. */
    uint32_t *visible = sm_alloc((size_t)n * sizeof *visible);
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        while (i > 0 && at != t->parent[i]) {
            if (v->key[at] != SM_KEY_HIDDEN)
                on_path[v->key[at]]--;
            at = t->parent[at];
        }
        uint32_t key = of_frame[t->frame[i]],
                 above = i == 0 ? SM_KEY_HIDDEN : visible[t->parent[i]];
        if (key != SM_KEY_HIDDEN && v->names[key] != 0 && key == above)
            key = SM_KEY_HIDDEN;
        v->key[i] = key;
        visible[i] = key == SM_KEY_HIDDEN ? above : key;
        if (key != SM_KEY_HIDDEN && on_path[key]++ == 0)
            v->top[i >> 6] |= (uint64_t)1 << (i & 63);
        at = i;
    }
    free(visible);
    free(on_path);
    free(of_frame);
}

void sm_view_fold_recursion(struct sm_view *v) {
    const struct sm_calltree *t = &v->analysis->tree;
    uint32_t *visible = sm_alloc((size_t)t->n_nodes * sizeof *visible);
    visible[0] = 0;
    for (uint32_t i = 1; i < t->n_nodes; i++) {
        visible[i] = visible[t->parent[i]];
        if (v->key[i] == visible[i])
            v->key[i] = SM_KEY_HIDDEN; /* an ancestor has this key: `top` is not set here */
        else if (v->key[i] != SM_KEY_HIDDEN)
            visible[i] = v->key[i];
    }
    free(visible);
}

void sm_view_release(struct sm_view *v) {
    free(v->key);
    free(v->spot);
    free(v->names);
    free(v->top);
    *v = (struct sm_view){0};
}

void sm_view_name(const struct sm_view *v, uint32_t key, struct sm_buffer *out) {
    const struct sm_analysis *a = v->analysis;
    if (v->names[key] != 0) {
        sm_buffer_text(out, sm_text(a, v->names[key]));
        return;
    }
    const struct sm_frame *f = &a->frames[v->spot[key]];
    const struct sm_function *fn = &a->functions[f->function];
    const char *file = sm_text(a, fn->file), *module = sm_text(a, fn->module);
    if (v->kind == SM_KEY_FILE && file[0] != 0) {
        sm_buffer_text(out, file);
        return;
    }
    if (v->kind == SM_KEY_MODULE && module[0] != 0) {
        sm_buffer_text(out, module);
        return;
    }
    sm_buffer_text(out, sm_text(a, fn->name));
    if (v->kind != SM_KEY_LINE && v->kind != SM_KEY_FRAME)
        return;
    if (file[0] != 0)
        sm_buffer_printf(out, " %s", file);
    if (f->line != 0)
        sm_buffer_printf(out, ":%u", f->line);
    if (v->kind == SM_KEY_FRAME && f->line != 0 && f->end_char != 0)
        sm_buffer_printf(out, ":%u-%u", f->start_char, f->end_char);
}

/* A node whose subtree counts for its key, while the walk is in it. */
struct open_node {
    uint32_t end, key;
    struct sm_sum before; /* of all nodes before it */
};

/* A subtree is a range of nodes, its sum the difference of two running sums: one pass, without an array of
   totals. Whole numbers only; false, with nothing said, when a variance is met. */
static bool sums_in_one_pass(const struct sm_view *v, const struct sm_sum *nodes,
                             struct sm_key_sum *sums) {
    const struct sm_calltree *t = &v->analysis->tree;
    uint32_t *visible = sm_alloc((size_t)t->n_nodes * sizeof *visible), i;
    struct open_node *open = NULL;
    size_t n_open = 0, capacity = 0;
    struct sm_sum running = {0};
    for (i = 0;; i++) {
        while (n_open > 0 && open[n_open - 1].end == i) {
            const struct open_node *o = &open[--n_open];
            struct sm_sum *total = &sums[o->key].total;
            if (running.rows == o->before.rows)
                continue;
            total->units += running.units - o->before.units;
            total->samples += running.samples - o->before.samples;
            total->rows += running.rows - o->before.rows;
        }
        if (i == t->n_nodes || nodes[i].variance != 0)
            break;
        uint32_t key = v->key[i];
        visible[i] = key == SM_KEY_HIDDEN ? visible[t->parent[i]] : key;
        if (v->top[i >> 6] >> (i & 63) & 1) {
            if (n_open == capacity)
                open = sm_grow(open, &capacity, n_open + 1, sizeof *open);
            open[n_open++] = (struct open_node){t->end[i], key, running};
        }
        if (nodes[i].rows != 0) {
            sm_sum_add(&sums[visible[i]].own, &nodes[i]);
            sm_sum_add(&running, &nodes[i]);
        }
    }
    free(open);
    free(visible);
    return i == t->n_nodes;
}

struct sm_key_sum *sm_view_sums(const struct sm_view *v, const struct sm_sum *nodes) {
    const struct sm_calltree *t = &v->analysis->tree;
    struct sm_key_sum *sums = sm_alloc_zero(v->n_keys, sizeof *sums);
    if (sums_in_one_pass(v, nodes, sums))
        return sums;
    memset(sums, 0, v->n_keys * sizeof *sums);
    struct sm_sum *total = sm_subtree_sums(v->analysis, nodes);
    uint32_t *visible = sm_alloc((size_t)t->n_nodes * sizeof *visible);
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        uint32_t key = v->key[i];
        visible[i] = key == SM_KEY_HIDDEN ? visible[t->parent[i]] : key;
        sm_sum_add(&sums[visible[i]].own, &nodes[i]);
        if (v->top[i >> 6] >> (i & 63) & 1)
            sm_sum_add(&sums[key].total, &total[i]);
    }
    free(visible);
    free(total);
    return sums;
}

struct sm_sum *sm_subtree_sums(const struct sm_analysis *a, const struct sm_sum *nodes) {
    uint32_t n = a->tree.n_nodes;
    struct sm_sum *total = sm_alloc((size_t)n * sizeof *total);
    memcpy(total, nodes, (size_t)n * sizeof *total);
    for (uint32_t i = n - 1; i > 0; i--)
        sm_sum_add(&total[a->tree.parent[i]], &total[i]);
    return total;
}
