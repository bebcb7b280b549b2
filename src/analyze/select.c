/* Which rows pass a filter. See select.h.

   A plan (select_plan.c) is evaluated in pieces of 4096 rows, 64 words of bits, which stay in the first cache
   while the tree is walked over them; each leaf reads the columns it needs and no other. The loops over the 64 rows
   of a word have fixed bounds and no branches, so that compilers make vector code of them; rows whose
   values are in the wide tables are put right afterwards. Pieces are taken by threads. */
#include "analyze/select.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/select_plan.h"
#include "util/memory.h"
#include "util/parallel.h"

#define PIECE_WORDS 64u
#define PIECE_ROWS (PIECE_WORDS * 64u)
#define TASK_PIECES 16u
#define INLINE static inline __attribute__((always_inline))

struct piece {
    const struct sm_analysis *a;
    uint32_t first_row, n_rows;
};

static void evaluate(const struct sm_plan *p, const struct piece *piece, uint64_t *out);

/* ---- one row ---- */

static bool in_range(uint64_t x, uint64_t least, uint64_t most) {
    return x >= least && x <= most;
}

/* A leaf that reads columns, for one row, by the accessors of analysis.h. */
static bool row_passes(const struct sm_plan *p, const struct sm_analysis *a, uint32_t row) {
    uint32_t age;
    int64_t ns;
    const struct sm_size_range *r;
    uint64_t size;
    switch (p->kind) {
    case SM_PLAN_SAMPLES:
        return in_range(sm_row_samples(a, row), p->least, p->most);
    case SM_PLAN_SIZE:
        r = &p->sizes[a->rows.class_id[row]];
        size = a->rows.size[row];
        if (size == SM_ROW_ESCAPE)
            size = sm_wide_find(a->rows.wide_sizes, a->rows.n_wide_sizes, row);
        return in_range(size, r->least, r->most);
    case SM_PLAN_AGE:
        age = p->ages[row];
        return age == SM_ROW_NEVER ? p->never
                                   : in_range((uint64_t)sm_row_age(a, age), p->least, p->most);
    case SM_PLAN_EVENT:
        age = p->ages[row];
        ns = sm_row_alloc_ns(a, row) + (age == SM_ROW_NEVER ? 0 : sm_row_age(a, age));
        return age != SM_ROW_NEVER && ns >= p->from_ns && ns <= p->to_ns;
    case SM_PLAN_OUTLIVES:
        age = p->ages[row];
        ns = sm_row_alloc_ns(a, row) + (age == SM_ROW_NEVER ? 0 : sm_row_age(a, age));
        return age == SM_ROW_NEVER || (age != 0 && ns > p->from_ns);
    default:
        return false;
    }
}

/* ---- words ---- */

/* 64 flags, each 0 or 1, as bits. */
INLINE uint64_t pack(const uint8_t flags[64]) {
    uint64_t bits = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (unsigned i = 0; i < 8; i++) {
        uint64_t eight;
        memcpy(&eight, flags + 8 * i, 8);
        bits |= (eight * 0x0102040810204080u >> 56) << (8 * i);
    }
#else
    for (unsigned i = 0; i < 64; i++)
        bits |= (uint64_t)flags[i] << i;
#endif
    return bits;
}

/* Sets out to the words of flag(i), i from the piece's first row. Macro, as the loop must be compiled for each. */
#define EACH_ROW(piece, out, flag)                                                                 \
    do {                                                                                           \
        uint8_t flags_[64];                                                                        \
        uint32_t n_ = (piece)->n_rows, i_ = 0;                                                     \
        for (; i_ + 64 <= n_; i_ += 64) {                                                          \
            for (uint32_t k_ = 0; k_ < 64; k_++)                                                   \
                flags_[k_] = (uint8_t)(flag(i_ + k_));                                             \
            (out)[i_ / 64] = pack(flags_);                                                         \
        }                                                                                          \
        if (i_ < n_) {                                                                             \
            memset(flags_, 0, sizeof flags_);                                                      \
            for (uint32_t k_ = 0; i_ + k_ < n_; k_++)                                              \
                flags_[k_] = (uint8_t)(flag(i_ + k_));                                             \
            (out)[i_ / 64] = pack(flags_);                                                         \
        }                                                                                          \
    } while (0)

static void set_bit(uint64_t *out, uint32_t i, bool on) {
    uint64_t bit = 1ull << (i & 63);
    out[i >> 6] = on ? out[i >> 6] | bit : out[i >> 6] & ~bit;
}

/* Puts rows right whose column holds an escape. */
static void mend(const struct sm_plan *p, const struct piece *piece, uint64_t *out,
                 const struct sm_wide *wide, uint32_t n) {
    uint32_t low = 0, high = n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (wide[middle].row < piece->first_row)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < n && wide[low].row - piece->first_row < piece->n_rows; low++)
        set_bit(out, wide[low].row - piece->first_row, row_passes(p, piece->a, wide[low].row));
}

static void fill(const struct piece *piece, uint64_t *out, bool on) {
    memset(out, on ? 0xFF : 0, ((size_t)piece->n_rows + 63) / 64 * sizeof *out);
}

static void rows_leaf(const struct sm_plan *p, const struct piece *piece, uint64_t *out) {
    uint32_t first = piece->first_row;
    for (uint32_t i = 0; i < piece->n_rows; i += 64) {
        uint32_t from = p->first_row > first + i ? p->first_row - first - i : 0;
        uint32_t to = p->end_row > first + i ? p->end_row - first - i : 0;
        uint64_t below_from = from >= 64 ? UINT64_MAX : (1ull << from) - 1;
        uint64_t below_to = to >= 64 ? UINT64_MAX : (1ull << to) - 1;
        out[i / 64] = below_to & ~below_from;
    }
}

static void samples_leaf(const struct sm_plan *p, const struct piece *piece, uint64_t *out) {
    const uint8_t *samples = piece->a->rows.samples + piece->first_row;
    if (p->least > UINT8_MAX) {
        fill(piece, out, false);
    } else {
        uint8_t least = (uint8_t)p->least,
                most = p->most < UINT8_MAX ? (uint8_t)p->most : UINT8_MAX;
#define FLAG(i) ((samples[i] >= least) & (samples[i] <= most))
        EACH_ROW(piece, out, FLAG);
#undef FLAG
    }
    mend(p, piece, out, piece->a->rows.wide_samples, piece->a->rows.n_wide_samples);
}

static void class_leaf(const struct sm_plan *p, const struct piece *piece, uint64_t *out) {
    const uint32_t *class_id = piece->a->rows.class_id + piece->first_row;
    const uint8_t *flags = p->flags;
#define FLAG(i) flags[class_id[i]]
    EACH_ROW(piece, out, FLAG);
#undef FLAG
}

static void node_leaf(const struct sm_plan *p, const struct piece *piece, uint64_t *out) {
    const uint32_t *node = piece->a->rows.node + piece->first_row;
    const uint64_t *bits = p->bits;
#define FLAG(i) (bits[node[i] >> 6] >> (node[i] & 63) & 1)
    EACH_ROW(piece, out, FLAG);
#undef FLAG
}

static void size_leaf(const struct sm_plan *p, const struct piece *piece, uint64_t *out) {
    const uint32_t *size = piece->a->rows.size + piece->first_row;
    if (p->same_sizes) {
        const struct sm_size_range *r = &p->sizes[0];
        if (r->least > UINT32_MAX || r->least > r->most) {
            fill(piece, out, false);
        } else {
            uint32_t least = (uint32_t)r->least;
            uint32_t span = r->most < UINT32_MAX ? (uint32_t)r->most - least : UINT32_MAX - least;
#define FLAG(i) (size[i] - least <= span)
            EACH_ROW(piece, out, FLAG);
#undef FLAG
        }
    } else {
        const uint32_t *class_id = piece->a->rows.class_id + piece->first_row;
        const struct sm_size_range *sizes = p->sizes;
#define FLAG(i) ((size[i] >= sizes[class_id[i]].least) & (size[i] <= sizes[class_id[i]].most))
        EACH_ROW(piece, out, FLAG);
#undef FLAG
    }
    mend(p, piece, out, piece->a->rows.wide_sizes, piece->a->rows.n_wide_sizes);
}

/* ---- ages ---- */

/* Puts rows right whose age stands in the table of wide ages. */
static void mend_ages(const struct sm_plan *p, const struct piece *piece, uint64_t *out) {
    const uint32_t *ages = p->ages + piece->first_row;
    uint64_t wide[PIECE_WORDS];
#define FLAG(i) ((ages[i] >> 31) & (ages[i] != SM_ROW_NEVER))
    EACH_ROW(piece, wide, FLAG);
#undef FLAG
    for (uint32_t word = 0; word * 64 < piece->n_rows; word++) {
        for (uint64_t left = wide[word]; left != 0; left &= left - 1) {
            uint32_t i = word * 64 + (uint32_t)__builtin_ctzll(left);
            set_bit(out, i, row_passes(p, piece->a, piece->first_row + i));
        }
    }
}

static void age_leaf(const struct sm_plan *p, const struct piece *piece, uint64_t *out) {
    const uint32_t *ages = p->ages + piece->first_row;
    const uint64_t limit = SM_ROW_WIDE_AGE; /* wide ages are this and more */
    bool never = p->never;
    bool wide_pass = p->least <= limit && p->most == UINT64_MAX; /* all of them */
    bool wide_fail = p->most < limit || p->least > p->most;      /* none of them */
    if (p->least > p->most || p->least >= limit) {
#define FLAG(i) ((ages[i] == SM_ROW_NEVER) & never)
        EACH_ROW(piece, out, FLAG);
#undef FLAG
    } else if (wide_pass) {
        uint32_t least = (uint32_t)p->least;
#define FLAG(i)                                                                                    \
    (((ages[i] >= least) & (ages[i] != SM_ROW_NEVER)) | ((ages[i] == SM_ROW_NEVER) & never))
        EACH_ROW(piece, out, FLAG);
#undef FLAG
        return;
    } else {
        uint32_t least = (uint32_t)p->least;
        uint32_t span = (uint32_t)(p->most < limit ? p->most : limit - 1) - least;
#define FLAG(i) ((ages[i] - least <= span) | ((ages[i] == SM_ROW_NEVER) & never))
        EACH_ROW(piece, out, FLAG);
#undef FLAG
    }
    if (!wide_fail)
        mend_ages(p, piece, out);
}

/* Leaves on allocation time plus age, block of rows by block: within a block times are 64-bit sums of small
   numbers. */
static void time_leaf(const struct sm_plan *p, const struct piece *piece, uint64_t *out) {
    const struct sm_analysis *a = piece->a;
    bool event = p->kind == SM_PLAN_EVENT;
    for (uint32_t at = 0; at < piece->n_rows; at += 1u << SM_ROW_BLOCK_SHIFT) {
        struct piece block = {a, piece->first_row + at, piece->n_rows - at};
        if (block.n_rows > 1u << SM_ROW_BLOCK_SHIFT)
            block.n_rows = 1u << SM_ROW_BLOCK_SHIFT;
        const uint32_t *ages = p->ages + block.first_row;
        const uint32_t *deltas = a->rows.alloc_delta + block.first_row;
        int64_t base = a->rows.block_ns[block.first_row >> SM_ROW_BLOCK_SHIFT];
        uint64_t *to = out + at / 64;
        if (event && p->to_ns < base) { /* nothing of the block was even allocated */
            fill(&block, to, false);
            continue;
        }
        /* Relative to the base: at least 0, else any. */
        uint64_t least = p->from_ns > base ? (uint64_t)p->from_ns - (uint64_t)base : 0;
        if (event) {
            uint64_t span = (uint64_t)p->to_ns - (uint64_t)base - least;
            if (least > (uint64_t)p->to_ns - (uint64_t)base) {
                fill(&block, to, false);
                continue;
            }
#define FLAG(i) (((uint64_t)deltas[i] + ages[i] - least <= span) & (ages[i] != SM_ROW_NEVER))
            EACH_ROW(&block, to, FLAG);
#undef FLAG
        } else if (p->from_ns < base) {
#define FLAG(i) (ages[i] != 0)
            EACH_ROW(&block, to, FLAG);
#undef FLAG
            continue; /* right for wide ones, too */
        } else {
#define FLAG(i)                                                                                    \
    ((((uint64_t)deltas[i] + ages[i] > least) & (ages[i] != 0)) | (ages[i] == SM_ROW_NEVER))
            EACH_ROW(&block, to, FLAG);
#undef FLAG
        }
        mend_ages(p, &block, to);
    }
    mend(p, piece, out, a->rows.wide_deltas, a->rows.n_wide_deltas);
}

/* ---- trees ---- */

/* out op= each further child, until it cannot change any more. */
static void evaluate_children(const struct sm_plan *p, const struct piece *piece, uint64_t *out) {
    bool and = p->kind == SM_PLAN_AND;
    uint32_t n_words = (piece->n_rows + 63) / 64;
    uint64_t other[PIECE_WORDS];
    evaluate(p->first, piece, out);
    for (const struct sm_plan *child = p->first->next; child != NULL; child = child->next) {
        uint64_t open = 0;
        for (uint32_t i = 0; i < n_words; i++)
            open |= and? out[i] : ~out[i];
        if (open == 0)
            return;
        evaluate(child, piece, other);
        for (uint32_t i = 0; i < n_words; i++)
            out[i] = and? out[i] & other[i] : out[i] | other[i];
    }
}

/* Bits beyond the piece's last row are anything. Depth is the tree's, which the parser has capped. */
static void evaluate(const struct sm_plan *p, const struct piece *piece, uint64_t *out) {
    uint32_t n_words = (piece->n_rows + 63) / 64;
    switch (p->kind) {
    case SM_PLAN_NONE:
    case SM_PLAN_ALL:
        fill(piece, out, p->kind == SM_PLAN_ALL);
        break;
    case SM_PLAN_ROWS:
        rows_leaf(p, piece, out);
        break;
    case SM_PLAN_BITS:
        memcpy(out, p->bits + piece->first_row / 64, n_words * sizeof *out);
        break;
    case SM_PLAN_SAMPLES:
        samples_leaf(p, piece, out);
        break;
    case SM_PLAN_CLASS:
        class_leaf(p, piece, out);
        break;
    case SM_PLAN_NODE:
        node_leaf(p, piece, out);
        break;
    case SM_PLAN_SIZE:
        size_leaf(p, piece, out);
        break;
    case SM_PLAN_AGE:
        age_leaf(p, piece, out);
        break;
    case SM_PLAN_EVENT:
    case SM_PLAN_OUTLIVES:
        time_leaf(p, piece, out);
        break;
    case SM_PLAN_AND:
    case SM_PLAN_OR:
        evaluate_children(p, piece, out);
        break;
    case SM_PLAN_NOT:
        evaluate(p->first, piece, out);
        for (uint32_t i = 0; i < n_words; i++)
            out[i] = ~out[i];
        break;
    }
}

struct work {
    const struct sm_analysis *a;
    const struct sm_plan *plan;
    uint64_t *words;
    uint32_t *selected; /* by task */
};

static void select_task(void *ctx, unsigned task) {
    struct work *w = ctx;
    uint32_t n = w->a->rows.n, selected = 0;
    for (uint32_t k = 0; k < TASK_PIECES; k++) {
        uint64_t first = ((uint64_t)task * TASK_PIECES + k) * PIECE_ROWS;
        if (first >= n)
            break;
        struct piece piece = {w->a, (uint32_t)first, n - (uint32_t)first};
        if (piece.n_rows > PIECE_ROWS)
            piece.n_rows = PIECE_ROWS;
        uint64_t *out = w->words + first / 64;
        evaluate(w->plan, &piece, out);
        if (piece.n_rows % 64 != 0)
            out[piece.n_rows / 64] &= (1ull << piece.n_rows % 64) - 1;
        for (uint32_t i = 0; i < (piece.n_rows + 63) / 64; i++)
            selected += (uint32_t)__builtin_popcountll(out[i]);
    }
    w->selected[task] = selected;
}

/* Those of all rows, the base or not. */
static void select_all(struct sm_selection *s, const struct sm_analysis *a,
                       const struct sm_filter_node *root, unsigned threads) {
    uint32_t n = a->rows.n;
    struct sm_plan *plan = sm_plan_new(a, root, threads);
    unsigned n_tasks = n / (PIECE_ROWS * TASK_PIECES) + 1;
    struct work w = {.a = a, .plan = plan};
    w.words = sm_alloc_zero((size_t)n / 64 + 1, sizeof *w.words);
    w.selected = sm_alloc_zero(n_tasks, sizeof *w.selected);
    sm_parallel(n_tasks, threads, select_task, &w);
    *s = (struct sm_selection){.words = w.words};
    for (unsigned i = 0; i < n_tasks; i++)
        s->n_rows += w.selected[i];
    free(w.selected);
    sm_plan_free(plan);
}

static bool names_source(const struct sm_filter_node *node) {
    bool names = false;
    for (; node != NULL && !names; node = node->next)
        names = node->kind == SM_FILTER_SOURCE || names_source(node->first);
    return names;
}

/* s becomes what is in both. */
static void narrow(struct sm_selection *s, const struct sm_analysis *a,
                   const struct sm_selection *by) {
    size_t n = (size_t)a->rows.n / 64 + 1;
    if (by->words == NULL)
        return;
    if (s->words == NULL) {
        *s = (struct sm_selection){.words = sm_alloc(n * sizeof *s->words), .n_rows = by->n_rows};
        memcpy(s->words, by->words, n * sizeof *s->words);
        return;
    }
    s->n_rows = 0;
    for (size_t i = 0; i < n; i++) {
        s->words[i] &= by->words[i];
        s->n_rows += (uint32_t)__builtin_popcountll(s->words[i]);
    }
}

void sm_select_both(struct sm_selection *s, const struct sm_analysis *a, const struct sm_filter *f,
                    const struct sm_filter *g, unsigned threads) {
    const struct sm_filter *filters[] = {f, g};
    bool named = false;
    *s = (struct sm_selection){.n_rows = a->rows.n};
    for (int i = 0; i < 2; i++) {
        if (filters[i] == NULL || filters[i]->root == NULL)
            continue;
        struct sm_selection one;
        named = named || names_source(filters[i]->root);
        select_all(&one, a, filters[i]->root, threads);
        narrow(s, a, &one);
        sm_selection_release(&one);
    }
    if (!named)
        narrow(s, a, &a->base);
}

void sm_select(struct sm_selection *s, const struct sm_analysis *a, const struct sm_filter *f,
               unsigned threads) {
    sm_select_both(s, a, f, NULL, threads);
}
