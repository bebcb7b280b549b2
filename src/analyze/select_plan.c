/* Trees of filters into plans. Whatever is decided by a row's class or call stack becomes one table look-up, however
   many conditions it came from: parts of AND, OR and NOT that look at the same table are joined in it. Rows
   stand in the order of allocation, so that times of allocation are ranges of rows. */
#include "analyze/select_plan.h"

#include <stdlib.h>
#include <string.h>

#include "util/memory.h"
#include "util/parallel.h"

static struct sm_plan *new_plan(enum sm_plan_kind kind) {
    struct sm_plan *p = sm_alloc_zero(1, sizeof *p);
    p->kind = kind;
    return p;
}

void sm_plan_free(struct sm_plan *p) {
    while (p != NULL) {
        struct sm_plan *next = p->next;
        sm_plan_free(p->first);
        free(p->bits);
        free(p->flags);
        free(p->sizes);
        free(p);
        p = next;
    }
}

static size_t words_of(uint32_t n) {
    return (size_t)n / 64 + 1;
}

/* ---- single conditions ---- */

static struct sm_plan *class_plan(const struct sm_analysis *a, const struct sm_filter_node *node) {
    struct sm_plan *p = new_plan(SM_PLAN_CLASS);
    struct sm_matcher m;
    bool pattern = node->kind == SM_FILTER_THREAD;
    p->flags = sm_alloc_zero((size_t)a->n_classes + 1, 1);
    if (pattern && !sm_matcher_init(&m, &node->pattern))
        return p;
    for (uint32_t i = 0; i < a->n_classes; i++)
        p->flags[i] = sm_class_matches(a, node, &m, &a->classes[i]);
    if (pattern)
        sm_matcher_release(&m);
    return p;
}

/* Nodes are taken in pieces of whole words, so that no two tasks write one. */
#define TASK_NODES (1u << 18)

struct node_work {
    const struct sm_calltree *tree;
    const uint8_t *frames; /* that match */
    uint64_t *bits;
    bool inside; /* with callees */
};

static void set_bits(uint64_t *bits, uint32_t from, uint32_t to) {
    for (; from < to && (from & 63) != 0; from++)
        bits[from >> 6] |= 1ull << (from & 63);
    for (; from + 64 <= to; from += 64)
        bits[from >> 6] = UINT64_MAX;
    for (; from < to; from++)
        bits[from >> 6] |= 1ull << (from & 63);
}

static void match_nodes(void *ctx, unsigned task) {
    struct node_work *w = ctx;
    const struct sm_calltree *t = w->tree;
    uint32_t first = task * TASK_NODES, left = t->n_nodes - first;
    uint32_t end = first + (left < TASK_NODES ? left : TASK_NODES), i = first;
    if (!w->inside) {
        for (; i < end; i++)
            w->bits[i >> 6] |= (uint64_t)w->frames[t->frame[i]] << (i & 63);
        return;
    }
    /* What is below a match is a range of nodes; here one that began before the piece. */
    for (uint32_t up = first; up != 0;) {
        up = t->parent[up];
        if (w->frames[t->frame[up]] && t->end[up] > i)
            i = t->end[up];
    }
    set_bits(w->bits, first, i < end ? i : end);
    while (i < end) {
        uint32_t next = i + 1;
        if (w->frames[t->frame[i]]) {
            next = t->end[i];
            set_bits(w->bits, i, next < end ? next : end);
        }
        i = next;
    }
}

static struct sm_plan *node_plan(const struct sm_analysis *a, const struct sm_filter_node *node,
                                 unsigned threads) {
    struct sm_plan *p = new_plan(SM_PLAN_NODE);
    uint8_t *frames = sm_match_frames(a, &node->pattern);
    p->bits = sm_alloc_zero(words_of(a->tree.n_nodes), sizeof *p->bits);
    struct node_work w = {.tree = &a->tree,
                          .frames = frames,
                          .bits = p->bits,
                          .inside = node->kind == SM_FILTER_INSIDE};
    sm_parallel((a->tree.n_nodes + TASK_NODES - 1) / TASK_NODES, threads, match_nodes, &w);
    free(frames);
    return p;
}

static struct sm_plan *size_plan(const struct sm_analysis *a, const struct sm_filter_node *node) {
    struct sm_plan *p = new_plan(SM_PLAN_SIZE);
    p->sizes = sm_alloc_zero((size_t)a->n_classes + 1, sizeof *p->sizes);
    p->same_sizes = true;
    for (uint32_t i = 0; i < a->n_classes; i++) {
        p->sizes[i] = sm_size_range(a, node, &a->classes[i]);
        p->same_sizes = p->same_sizes && p->sizes[i].least == p->sizes[0].least &&
                        p->sizes[i].most == p->sizes[0].most;
    }
    return p;
}

/* The first row allocated at or after ns. */
static uint32_t row_at(const struct sm_analysis *a, int64_t ns) {
    uint32_t low = 0, high = a->rows.n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (sm_row_alloc_ns(a, middle) < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct sm_plan *rows_plan(const struct sm_analysis *a, int64_t from, int64_t to) {
    struct sm_plan *p = new_plan(SM_PLAN_ROWS);
    p->first_row = row_at(a, from);
    p->end_row = row_at(a, to + 1);
    return p;
}

static struct sm_plan *joined(enum sm_plan_kind kind, struct sm_plan *x, struct sm_plan *y) {
    struct sm_plan *p = new_plan(kind);
    p->first = x;
    x->next = y;
    return p;
}

static struct sm_plan *live_plan(const struct sm_analysis *a, const struct sm_filter_node *node,
                                 unsigned threads) {
    const struct sm_filter_time *t = &node->time[0];
    struct sm_plan *p;
    if (node->op == SM_OP_EQ && t->anchor == SM_FROM_PEAK && t->offset == 0) {
        p = new_plan(SM_PLAN_BITS);
        p->bits = sm_plan_live_at_peak(a, threads);
        return p;
    }
    if (node->op == SM_OP_EQ && t->anchor == SM_FROM_END && t->offset == 0) {
        p = new_plan(SM_PLAN_AGE);
        p->ages = a->rows.free_age;
        p->least = 1; /* no age */
        p->never = true;
        return p;
    }
    int64_t from, to;
    if (!sm_time_interval(node->op, sm_filter_time_ns(a, t), sm_filter_time_ns(a, &node->time[1]),
                          &from, &to))
        return new_plan(SM_PLAN_NONE);
    /* Alive at a moment of [from, to]: at the later one of `from` and its allocation. */
    p = new_plan(SM_PLAN_OUTLIVES);
    p->ages = a->rows.free_age;
    p->from_ns = from;
    return joined(SM_PLAN_AND, rows_plan(a, INT64_MIN, to), p);
}

static struct sm_plan *event_plan(const struct sm_analysis *a, const struct sm_filter_node *node) {
    int64_t from, to;
    const uint32_t *ages =
        node->kind == SM_FILTER_PROMOTED ? a->rows.promote_age : a->rows.free_age;
    if (node->any) {
        struct sm_plan *p = new_plan(SM_PLAN_AGE);
        p->ages = ages;
        p->most = UINT64_MAX;
        return p;
    }
    if (!sm_time_interval(node->op, sm_filter_time_ns(a, &node->time[0]),
                          sm_filter_time_ns(a, &node->time[1]), &from, &to))
        return new_plan(SM_PLAN_NONE);
    if (node->kind == SM_FILTER_ALLOCATED)
        return rows_plan(a, from, to);
    struct sm_plan *p = new_plan(SM_PLAN_EVENT);
    p->ages = ages;
    p->from_ns = from;
    p->to_ns = to;
    return p;
}

static struct sm_plan *number_plan(const struct sm_analysis *a, const struct sm_filter_node *node) {
    bool age = node->kind == SM_FILTER_LIFETIME;
    struct sm_plan *p = new_plan(age ? SM_PLAN_AGE : SM_PLAN_SAMPLES);
    p->ages = a->rows.free_age;
    /* What never ended is older than anything. */
    p->never = age && (node->op == SM_OP_GT || node->op == SM_OP_GE);
    if (sm_number_interval(node->op, node->number[0].n, node->number[1].n, &p->least, &p->most))
        return p;
    sm_plan_free(p);
    return new_plan(SM_PLAN_NONE);
}

/* ---- joining ---- */

static uint32_t earlier(uint32_t x, uint32_t y) {
    return x < y ? x : y;
}

/* Puts y into x, which is of the same kind; false when that cannot be. */
static bool absorb(const struct sm_analysis *a, struct sm_plan *x, const struct sm_plan *y,
                   bool and) {
    switch (x->kind) {
    case SM_PLAN_CLASS:
        for (uint32_t i = 0; i < a->n_classes; i++)
            x->flags[i] = and? x->flags[i] && y->flags[i] : x->flags[i] || y->flags[i];
        return true;
    case SM_PLAN_NODE:
    case SM_PLAN_BITS:
        for (size_t n = words_of(x->kind == SM_PLAN_NODE ? a->tree.n_nodes : a->rows.n), i = 0;
             i < n; i++)
            x->bits[i] = and? x->bits[i] & y->bits[i] : x->bits[i] | y->bits[i];
        return true;
    case SM_PLAN_ROWS:
        if (!and)
            return false;
        x->first_row = x->first_row > y->first_row ? x->first_row : y->first_row;
        x->end_row = earlier(x->end_row, y->end_row);
        return true;
    default:
        return false;
    }
}

/* ALL and NONE, where a table says so. */
static void simplify(const struct sm_analysis *a, struct sm_plan *p) {
    if (p->kind == SM_PLAN_CLASS) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < a->n_classes; i++)
            n += p->flags[i];
        if (n == 0 || n == a->n_classes)
            p->kind = n == 0 ? SM_PLAN_NONE : SM_PLAN_ALL;
    } else if (p->kind == SM_PLAN_ROWS) {
        if (p->first_row >= p->end_row)
            p->kind = SM_PLAN_NONE;
        else if (p->first_row == 0 && p->end_row == a->rows.n)
            p->kind = SM_PLAN_ALL;
    }
}

static struct sm_plan *negated(const struct sm_analysis *a, struct sm_plan *p) {
    switch (p->kind) {
    case SM_PLAN_NONE:
    case SM_PLAN_ALL:
        p->kind = p->kind == SM_PLAN_NONE ? SM_PLAN_ALL : SM_PLAN_NONE;
        return p;
    case SM_PLAN_CLASS:
        for (uint32_t i = 0; i < a->n_classes; i++)
            p->flags[i] = !p->flags[i];
        return p;
    case SM_PLAN_NODE:
    case SM_PLAN_BITS: /* bits beyond the last row are cut off at the end */
        for (size_t n = words_of(p->kind == SM_PLAN_NODE ? a->tree.n_nodes : a->rows.n), i = 0;
             i < n; i++)
            p->bits[i] = ~p->bits[i];
        return p;
    default: {
        struct sm_plan *not = new_plan(SM_PLAN_NOT);
        not ->first = p;
        return not ;
    }
    }
}

/* Adds a child to an AND or OR: into one of the same kind, or at its place by cost. */
static void add_child(const struct sm_analysis *a, struct sm_plan *p, struct sm_plan *child) {
    bool and = p->kind == SM_PLAN_AND;
    struct sm_plan **at = &p->first;
    for (; *at != NULL && (*at)->kind <= child->kind; at = &(*at)->next) {
        if ((*at)->kind == child->kind && absorb(a, *at, child, and)) {
            sm_plan_free(child);
            return;
        }
    }
    child->next = *at;
    *at = child;
}

static struct sm_plan *plan(const struct sm_analysis *a, const struct sm_filter_node *node,
                            unsigned threads);

static struct sm_plan *children_plan(const struct sm_analysis *a, const struct sm_filter_node *node,
                                     unsigned threads) {
    bool and = node->kind == SM_FILTER_AND;
    enum sm_plan_kind neutral = and? SM_PLAN_ALL : SM_PLAN_NONE;
    enum sm_plan_kind deciding = and? SM_PLAN_NONE : SM_PLAN_ALL;
    struct sm_plan *p = new_plan(and? SM_PLAN_AND : SM_PLAN_OR);
    for (const struct sm_filter_node *child = node->first; child != NULL; child = child->next) {
        struct sm_plan *part = plan(a, child, threads);
        struct sm_plan *parts = part;
        if (part->kind == p->kind) { /* `live` is an AND of its own */
            parts = part->first;
            part->first = NULL;
            sm_plan_free(part);
        }
        while (parts != NULL) {
            part = parts;
            parts = part->next;
            part->next = NULL;
            add_child(a, p, part);
        }
    }
    /* Joined tables may now say all or nothing. */
    for (struct sm_plan **at = &p->first; *at != NULL;) {
        struct sm_plan *part = *at;
        simplify(a, part);
        if (part->kind == deciding) {
            sm_plan_free(p);
            return new_plan(deciding);
        }
        if (part->kind == neutral) {
            *at = part->next;
            part->next = NULL;
            sm_plan_free(part);
        } else {
            at = &part->next;
        }
    }
    if (p->first == NULL) {
        p->kind = neutral;
    } else if (p->first->next == NULL) {
        struct sm_plan *only = p->first;
        p->first = NULL;
        sm_plan_free(p);
        return only;
    }
    return p;
}

/* Depth is the tree's, which the parser has capped. */
static struct sm_plan *plan(const struct sm_analysis *a, const struct sm_filter_node *node,
                            unsigned threads) {
    struct sm_plan *p;
    switch (node->kind) {
    case SM_FILTER_AND:
    case SM_FILTER_OR:
        return children_plan(a, node, threads);
    case SM_FILTER_NOT:
        return negated(a, plan(a, node->first, threads));
    case SM_FILTER_ALLOCATED:
    case SM_FILTER_PROMOTED:
    case SM_FILTER_COLLECTED:
        p = event_plan(a, node);
        break;
    case SM_FILTER_LIVE:
        p = live_plan(a, node, threads);
        break;
    case SM_FILTER_SIZE:
        p = size_plan(a, node);
        break;
    case SM_FILTER_LIFETIME:
    case SM_FILTER_SAMPLES:
        p = number_plan(a, node);
        break;
    case SM_FILTER_INSIDE:
    case SM_FILTER_SITE:
        p = node_plan(a, node, threads);
        break;
    default:
        p = class_plan(a, node);
        break;
    }
    simplify(a, p);
    return p;
}

struct sm_plan *sm_plan_new(const struct sm_analysis *a, const struct sm_filter_node *node,
                            unsigned threads) {
    return plan(a, node, threads);
}

/* ---- the peak ---- */

struct peak_work {
    const struct sm_analysis *a;
    uint64_t **bits; /* by task: rows that had ended */
    uint32_t n_tasks;
};

static void mark_ended(void *ctx, unsigned task) {
    struct peak_work *w = ctx;
    uint64_t freed = w->a->peak.freed;
    uint64_t *bits = w->bits[task] = sm_alloc_zero(words_of(w->a->rows.n), sizeof *bits);
    uint32_t end = (uint32_t)(freed * (task + 1) / w->n_tasks);
    for (uint32_t k = (uint32_t)(freed * task / w->n_tasks); k < end; k++) {
        uint32_t row = w->a->rows.free_order[k];
        bits[row >> 6] |= 1ull << (row & 63);
    }
}

uint64_t *sm_plan_live_at_peak(const struct sm_analysis *a, unsigned threads) {
    struct peak_work w = {.a = a, .n_tasks = threads == 0 ? sm_processors() : threads};
    if (a->peak.freed < 1u << 16)
        w.n_tasks = 1;
    size_t n = words_of(a->rows.n);
    w.bits = sm_alloc_zero(w.n_tasks, sizeof *w.bits);
    sm_parallel(w.n_tasks, threads, mark_ended, &w);
    uint64_t *bits = w.bits[0];
    uint32_t born = a->peak.row == UINT32_MAX ? 0 : a->peak.row + 1;
    for (unsigned task = 1; task < w.n_tasks; task++) {
        for (size_t i = 0; i < n; i++)
            bits[i] |= w.bits[task][i];
        free(w.bits[task]);
    }
    free(w.bits);
    for (size_t i = 0; i < n; i++) {
        uint64_t mask = i < born >> 6 ? UINT64_MAX : i > born >> 6 ? 0 : (1ull << (born & 63)) - 1;
        bits[i] = ~bits[i] & mask;
    }
    return bits;
}
