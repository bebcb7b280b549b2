/* See group.h. What a row's group is depends on its node, its class, its size, its ages and its time. Dimensions that
   depend on the node or the class are numbered once for each node and class; a row's value is then a look-up. The
   values of all dimensions make one number in mixed radix: an index of a dense array while that is small, else
   the key of a hash table. */
#include "analyze/group.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/map.h"
#include "util/memory.h"
#include "util/number.h"
#include "util/parallel.h"

#define DEFAULT_SPANS 60
#define SIZE_STEPS 66     /* 0, then powers of two */
#define LIFETIME_STEPS 64 /* the last: never */
#define MAX_DENSE ((uint64_t)1 << 20)

/* A dimension ready for rows. */
struct ready {
    const struct sm_dimension *d;
    uint64_t n_values;
    uint32_t *of_node, *of_class; /* by node or class, or NULL: by the row */
    int64_t from_ns, span_ns;
};

struct grouping {
    const struct sm_analysis *a;
    const struct sm_weigher *weighers;
    uint32_t n_weighers;
    struct ready dims[SM_MAX_DIMENSIONS];
    uint32_t n_dims;
    uint64_t n_dense; /* 0: hashed */
    unsigned n_tasks;
    struct task {
        struct sm_sum *sums; /* dense: by combination; hashed: by number; x n_weighers */
        size_t n, capacity;
        struct sm_map numbers;
        uint64_t *keys;
        size_t keys_capacity;
    } * tasks;
};

/* 0 for no bytes, else 1 + floor (log2 bytes). */
static uint32_t size_step(uint64_t bytes) {
    return bytes == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(bytes);
}

/* Three steps a decade from 1 us: 0 below 1 us, 1: 1-2 us, 2: 2-5 us, 3: 5-10 us, ... */
static uint32_t lifetime_step(int64_t ns) {
    static const unsigned limits[] = {2, 5, 10};
    if (ns < 1000)
        return 0;
    uint64_t scale = 1000;
    for (uint32_t step = 1;; step += 3) {
        for (uint32_t i = 0; i < 3; i++) {
            if ((uint64_t)ns < limits[i] * scale || step + i == LIFETIME_STEPS - 2)
                return step + i;
        }
        scale *= 10;
    }
}

static uint64_t lifetime_from_ns(uint32_t step) {
    static const unsigned begins[] = {1, 2, 5};
    uint64_t scale = 1000;
    if (step == 0)
        return 0;
    for (uint32_t i = (step - 1) / 3; i > 0; i--)
        scale *= 10;
    return begins[(step - 1) % 3] * scale;
}

static uint32_t row_value(const struct sm_analysis *a, const struct ready *r, uint32_t row) {
    switch (r->d->kind) {
    case SM_BY_SIZE:
        return size_step(sm_row_bytes(a, row));
    case SM_BY_LIFETIME: {
        uint32_t age = a->rows.free_age[row];
        return age == SM_ROW_NEVER ? LIFETIME_STEPS - 1 : lifetime_step(sm_row_age(a, age));
    }
    case SM_BY_TIME: {
        int64_t at = (sm_row_alloc_ns(a, row) - r->from_ns) / r->span_ns;
        return at < 0 ? 0 : at >= (int64_t)r->n_values ? (uint32_t)r->n_values - 1 : (uint32_t)at;
    }
    default:
        return a->rows.promote_age[row] != SM_ROW_NEVER;
    }
}

static uint64_t combination(const struct grouping *g, uint32_t row) {
    uint64_t key = 0;
    for (uint32_t i = 0; i < g->n_dims; i++) {
        const struct ready *r = &g->dims[i];
        uint32_t value = r->of_node != NULL    ? r->of_node[g->a->rows.node[row]]
                         : r->of_class != NULL ? r->of_class[g->a->rows.class_id[row]]
                                               : row_value(g->a, r, row);
        key = key * r->n_values + value;
    }
    return key;
}

static size_t cell_of(const struct grouping *g, struct task *t, uint64_t key) {
    if (g->n_dense > 0)
        return key;
    bool found;
    uint32_t *place = sm_map_place(&t->numbers, key, (uint32_t)t->n, &found);
    if (found)
        return *place - 1;
    t->keys = sm_grow(t->keys, &t->keys_capacity, t->n + 1, sizeof *t->keys);
    t->keys[t->n] = key;
    size_t old = t->capacity * g->n_weighers;
    t->sums = sm_grow(t->sums, &t->capacity, t->n + 1, g->n_weighers * sizeof *t->sums);
    size_t now = t->capacity * g->n_weighers;
    if (now > old)
        memset(t->sums + old, 0, (now - old) * sizeof *t->sums);
    return t->n++;
}

static void group_task(void *ctx, unsigned task) {
    const struct grouping *g = ctx;
    struct task *t = &g->tasks[task];
    size_t words = ((size_t)g->a->rows.n + 63) / 64;
    size_t from = words * task / g->n_tasks, to = words * (task + 1) / g->n_tasks;
    uint64_t *bits = sm_alloc((g->n_weighers + 1) * sizeof *bits);
    for (size_t word = from; word < to; word++) {
        uint64_t any = 0;
        for (uint32_t k = 0; k < g->n_weighers; k++)
            any |= bits[k] = sm_weigher_word(&g->weighers[k], (uint32_t)word);
        for (; any != 0; any &= any - 1) {
            unsigned bit = (unsigned)__builtin_ctzll(any);
            uint32_t row = (uint32_t)(word * 64) + bit;
            size_t cell = cell_of(g, t, combination(g, row));
            for (uint32_t k = 0; k < g->n_weighers; k++) {
                if (bits[k] >> bit & 1)
                    sm_weigher_add_row(&g->weighers[k], row, &t->sums[cell * g->n_weighers + k]);
            }
        }
    }
    free(bits);
}

/* ---- dimensions ---- */

static uint32_t *by_node(const struct sm_dimension *d, const struct sm_analysis *a) {
    uint32_t n = a->tree.n_nodes, *of = sm_alloc((size_t)n * sizeof *of);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;
        if (d->kind == SM_BY_PLACE) {
            while (at != 0 && d->view->key[at] == SM_KEY_HIDDEN)
                at = a->tree.parent[at];
            at = d->view->key[at];
        }
        of[i] = at;
    }
    return of;
}

static int compare_u64(const void *left, const void *right) {
    uint64_t x = *(const uint64_t *)left, y = *(const uint64_t *)right;
    return x < y ? -1 : x > y;
}

uint32_t *sm_domains_of_lanes(const struct sm_analysis *a, uint64_t **domains, uint32_t *n) {
    uint32_t *of = sm_alloc_zero((size_t)a->n_lanes + 1, sizeof *of);
    uint64_t *list = sm_alloc_zero((size_t)a->n_lanes + 1, sizeof *list);
    struct sm_map numbers = {0};
    for (uint32_t i = 0; i < a->n_lanes; i++)
        list[i] = a->lanes[i].kind == SM_OWNER_NATIVE ? SM_NO_DOMAIN : a->lanes[i].domain;
    qsort(list, a->n_lanes, sizeof *list, compare_u64);
    *n = 0;
    for (uint32_t i = 0; i < a->n_lanes; i++) {
        if (*n == 0 || list[*n - 1] != list[i])
            list[(*n)++] = list[i];
    }
    if (*n == 0)
        *n = 1;
    for (uint32_t k = 0; k < *n; k++)
        sm_map_put(&numbers, list[k], k);
    for (uint32_t i = 0; i < a->n_lanes; i++)
        sm_map_get(&numbers,
                   a->lanes[i].kind == SM_OWNER_NATIVE ? SM_NO_DOMAIN : a->lanes[i].domain, &of[i]);
    sm_map_release(&numbers);
    *domains = list;
    return of;
}

static uint32_t *by_class(struct sm_groups *out, const struct sm_dimension *d,
                          const struct sm_analysis *a) {
    uint32_t *of = sm_alloc_zero((size_t)a->n_classes + 1, sizeof *of);
    uint32_t *domains = NULL;
    if (d->kind == SM_BY_DOMAIN) {
        free(out->domains);
        domains = sm_domains_of_lanes(a, &out->domains, &out->n_domains);
    }
    for (uint32_t i = 0; i < a->n_classes; i++) {
        const struct sm_row_class *c = &a->classes[i];
        of[i] = d->kind == SM_BY_DOMAIN ? domains[c->lane]
                : d->kind == SM_BY_LANE ? c->lane
                : d->kind == SM_BY_HEAP ? c->heap
                                        : SM_SOURCE(c->heap, c->origin);
    }
    free(domains);
    return of;
}

static void get_ready(struct ready *r, struct sm_groups *out, const struct sm_dimension *d,
                      const struct sm_analysis *a) {
    *r = (struct ready){.d = d};
    switch (d->kind) {
    case SM_BY_PLACE:
    case SM_BY_STACK:
        r->of_node = by_node(d, a);
        r->n_values = d->kind == SM_BY_PLACE ? d->view->n_keys : a->tree.n_nodes;
        break;
    case SM_BY_DOMAIN:
    case SM_BY_LANE:
    case SM_BY_HEAP:
    case SM_BY_SOURCE:
        r->of_class = by_class(out, d, a);
        r->n_values = d->kind == SM_BY_DOMAIN ? out->n_domains
                      : d->kind == SM_BY_LANE ? a->n_lanes + 1u
                      : d->kind == SM_BY_HEAP ? 8
                                              : 128;
        break;
    case SM_BY_SIZE:
        r->n_values = SIZE_STEPS;
        break;
    case SM_BY_LIFETIME:
        r->n_values = LIFETIME_STEPS;
        break;
    case SM_BY_TIME: {
        uint32_t n = d->n_spans > 0 ? d->n_spans : DEFAULT_SPANS;
        r->from_ns = a->first_ns < 0 ? a->first_ns : 0;
        int64_t length = a->last_ns - r->from_ns + 1;
        r->span_ns = (length + n - 1) / n;
        r->n_values = n;
        break;
    }
    default:
        r->n_values = 2;
    }
}

/* ---- results ---- */

static int compare_rows(const void *left, const void *right, void *ctx) {
    const struct sm_group_row *x = left, *y = right;
    const struct sm_groups *g = ctx;
    if (x->sums[0].units != y->sums[0].units)
        return x->sums[0].units > y->sums[0].units ? -1 : 1;
    for (uint32_t i = 0; i < g->n_dimensions; i++) {
        if (x->value[i] != y->value[i])
            return x->value[i] < y->value[i] ? -1 : 1;
    }
    return 0;
}

static bool any_rows(const struct sm_sum *sums, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        if (sums[k].rows > 0)
            return true;
    }
    return false;
}

static void add_row(struct sm_groups *out, const struct grouping *g, size_t *capacity, uint64_t key,
                    struct sm_sum *sums) {
    out->list = sm_grow(out->list, capacity, out->n_groups + 1u, sizeof *out->list);
    struct sm_group_row *row = &out->list[out->n_groups++];
    *row = (struct sm_group_row){.sums = sums};
    for (uint32_t i = g->n_dims; i-- > 0;) {
        row->value[i] = (uint32_t)(key % g->dims[i].n_values);
        key /= g->dims[i].n_values;
    }
}

/* All tasks' sums into the first one's. */
static void unite(struct grouping *g) {
    struct task *first = &g->tasks[0];
    for (unsigned k = 1; k < g->n_tasks; k++) {
        struct task *t = &g->tasks[k];
        size_t n = g->n_dense > 0 ? g->n_dense : t->n;
        for (size_t i = 0; i < n; i++) {
            size_t cell = g->n_dense > 0 ? i : cell_of(g, first, t->keys[i]);
            for (uint32_t w = 0; w < g->n_weighers; w++)
                sm_sum_add(&first->sums[cell * g->n_weighers + w], &t->sums[i * g->n_weighers + w]);
        }
    }
}

void sm_groups_make(struct sm_groups *out, const struct sm_dimension *dimensions,
                    uint32_t n_dimensions, const struct sm_weigher *weighers, uint32_t n_weighers,
                    unsigned threads) {
    const struct sm_analysis *a = weighers[0].analysis;
    *out =
        (struct sm_groups){.analysis = a, .n_dimensions = n_dimensions, .n_weighers = n_weighers};
    struct grouping g = {
        .a = a, .weighers = weighers, .n_weighers = n_weighers, .n_dims = n_dimensions};
    uint64_t combinations = 1;
    for (uint32_t i = 0; i < n_dimensions; i++) {
        out->dimensions[i] = dimensions[i];
        get_ready(&g.dims[i], out, &dimensions[i], a);
        if (__builtin_mul_overflow(combinations, g.dims[i].n_values, &combinations))
            combinations = UINT64_MAX;
    }
    g.n_dense = combinations <= MAX_DENSE || n_dimensions == 1 ? combinations : 0;
    if (threads == 0)
        threads = sm_processors();
    g.n_tasks = a->rows.n / 65536 + 1 < threads ? a->rows.n / 65536 + 1 : threads;
    g.tasks = sm_alloc_zero(g.n_tasks, sizeof *g.tasks);
    for (unsigned i = 0; i < g.n_tasks && g.n_dense > 0; i++)
        g.tasks[i].sums = sm_alloc_zero(g.n_dense * n_weighers, sizeof *g.tasks[i].sums);
    sm_parallel(g.n_tasks, threads, group_task, &g);
    unite(&g);
    struct task *all = &g.tasks[0];
    size_t n = g.n_dense > 0 ? g.n_dense : all->n, capacity = 0;
    for (size_t i = 0; i < n; i++) {
        struct sm_sum *sums = all->sums + i * n_weighers;
        if (any_rows(sums, n_weighers))
            add_row(out, &g, &capacity, g.n_dense > 0 ? i : all->keys[i], sums);
    }
    out->sums = all->sums;
    all->sums = NULL;
    if (out->n_groups > 1)
        qsort_r(out->list, out->n_groups, sizeof *out->list, compare_rows, out);
    for (unsigned i = 0; i < g.n_tasks; i++) {
        free(g.tasks[i].sums);
        free(g.tasks[i].keys);
        sm_map_release(&g.tasks[i].numbers);
    }
    free(g.tasks);
    for (uint32_t i = 0; i < n_dimensions; i++) {
        free(g.dims[i].of_node);
        free(g.dims[i].of_class);
    }
}

void sm_groups_release(struct sm_groups *g) {
    free(g->list);
    free(g->sums);
    free(g->domains);
    *g = (struct sm_groups){0};
}

/* ---- names ---- */

static const char *const heap_names[] = {"minor", "major", "external", "native"};
static const char *const origin_names[] = {"normal",     "marshal",     "custom",
                                           "mapped",     "reported",    "ocaml-heap",
                                           "minor-heap", "ocaml-stack", "runtime"};

static void size_name(uint32_t step, struct sm_buffer *out) {
    if (step == 0) {
        sm_buffer_text(out, "0 B");
    } else if (step <= 10) {
        sm_buffer_printf(out, "%llu-%llu B", 1ull << (step - 1), (1ull << (step - 1)) * 2 - 1);
    } else {
        static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
        unsigned unit = (step - 11) / 10;
        sm_buffer_printf(out, "%u-%u %s", 1u << (step - 11) % 10, 2u << (step - 11) % 10,
                         units[unit]);
    }
}

static void lane_name(const struct sm_analysis *a, uint32_t lane, struct sm_buffer *out) {
    if (lane >= a->n_lanes) {
        sm_buffer_text(out, "?");
        return;
    }
    const struct sm_lane *l = &a->lanes[lane];
    const char *name = sm_text(a, l->name);
    if (l->kind != SM_OWNER_NATIVE)
        sm_buffer_printf(out, "domain %llu", (unsigned long long)l->domain);
    else
        sm_buffer_text(out, "native");
    if (name[0] != 0)
        sm_buffer_printf(out, " %s", name);
    if (l->tid != 0)
        sm_buffer_printf(out, " thread %llu", (unsigned long long)l->tid);
}

static void span_name(const struct sm_groups *g, uint32_t dimension, uint32_t value,
                      struct sm_buffer *out) {
    struct ready r;
    struct sm_groups none = {0};
    char from[SM_NUMBER_BYTES], to[SM_NUMBER_BYTES];
    get_ready(&r, &none, &g->dimensions[dimension], g->analysis);
    int64_t at = r.from_ns + value * r.span_ns;
    sm_buffer_printf(out, "%s .. %s", sm_number_duration(from, at),
                     sm_number_duration(to, at + r.span_ns));
}

void sm_groups_name(const struct sm_groups *g, uint32_t dimension, uint32_t value,
                    struct sm_buffer *out) {
    const struct sm_analysis *a = g->analysis;
    const struct sm_dimension *d = &g->dimensions[dimension];
    char from[SM_NUMBER_BYTES], to[SM_NUMBER_BYTES];
    switch (d->kind) {
    case SM_BY_PLACE:
        sm_view_name(d->view, value, out);
        break;
    case SM_BY_STACK:
        sm_buffer_text(out, sm_text(a, a->functions[a->tree.function[value]].name));
        break;
    case SM_BY_DOMAIN:
        if (g->domains[value] == SM_NO_DOMAIN)
            sm_buffer_text(out, "native threads");
        else
            sm_buffer_printf(out, "domain %llu", (unsigned long long)g->domains[value]);
        break;
    case SM_BY_LANE:
        lane_name(a, value, out);
        break;
    case SM_BY_HEAP:
        sm_buffer_text(out, value < 4 ? heap_names[value] : "unknown");
        break;
    case SM_BY_SOURCE: {
        unsigned heap = SM_SOURCE_HEAP(value), origin = SM_SOURCE_ORIGIN(value);
        sm_buffer_text(out, heap < 4 ? heap_names[heap] : "unknown");
        if (origin != SM_ORIGIN_NORMAL)
            sm_buffer_printf(out, " %s",
                             origin < sizeof origin_names / sizeof *origin_names
                                 ? origin_names[origin]
                                 : "unknown");
        break;
    }
    case SM_BY_SIZE:
        size_name(value, out);
        break;
    case SM_BY_LIFETIME:
        if (value == LIFETIME_STEPS - 1)
            sm_buffer_text(out, "never freed");
        else if (value == 0)
            sm_buffer_text(out, "below 1 us");
        else
            sm_buffer_printf(out, "%s .. %s",
                             sm_number_duration(from, (int64_t)lifetime_from_ns(value)),
                             sm_number_duration(to, (int64_t)lifetime_from_ns(value + 1)));
        break;
    case SM_BY_TIME:
        span_name(g, dimension, value, out);
        break;
    default:
        sm_buffer_text(out, value != 0 ? "promoted" : "not promoted");
    }
}
