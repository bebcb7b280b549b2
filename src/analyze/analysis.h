/* A trace as columns: one row per allocation, one tree of all call stacks. Hosted.

   Everything here is built once by sm_analysis_open and never changes afterwards, so that any number of
   threads may read it. The arrays are exposed: what asks a question is a loop over them. They live in
   anonymous memory or in a mapped cache file (analyze/store.h); neither is the reader's business.

   Rows stand in the order of allocation: by time, then stream, then number in the stream. Times are nanoseconds
   since the trace's start. A row costs about 30 bytes.

   Estimates. What a row stands for is counted in *units*, whole numbers, so that sums are exact and do not
   depend on the order of adding:
   - all allocations sampled by Memprof's rule: a unit is one sample, worth word_bytes / rate bytes
     (analyze/estimate.h);
   - traces that hold byte-sampled (native) allocations as well: a unit is 1/256 byte, and a row has
     units[row] of them: samples x word_bytes / rate, or S / (1 - exp(-S / R)) for a block of S bytes
     sampled with mean interval R (Horvitz and Thompson, "A generalization of sampling without replacement",
     JASA 47, 1952, with the inclusion probability of exponential gaps). */
#ifndef SM_ANALYZE_ANALYSIS_H
#define SM_ANALYZE_ANALYSIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/estimate.h"
#include "decode/trace.h"
#include "util/error.h"

#define SM_NEVER_NS INT64_MAX

/* A text is an offset into the analysis' texts; 0 is "". */
typedef uint32_t sm_text_id;

/* Functions are keyed by (file, name): the same name in two files is two functions. Function 0 is the root,
   "(all)". */
struct sm_function {
    sm_text_id name; /* as in the trace, or "0x..." for a bare code, "(cut)", "(no stack)", ... */
    sm_text_id file; /* "" = unknown */
    sm_text_id
        module;     /* OCaml: "Stdlib.List"; native: the shared object's base name; "" = unknown */
    uint32_t flags; /* enum sm_syms_flag, SM_FUNCTION_PSEUDO */
};
#define SM_FUNCTION_PSEUDO 0x100u /* stands for no place in the program */

/* A place in a function. */
struct sm_frame {
    uint32_t function;
    uint32_t line, end_line, start_char, end_char; /* line 0 = unknown */
};

/* Node 0 is the root. Nodes stand in preorder: the subtree of node i is [i, node_end[i]), a parent's number is
   smaller than its children's. Inlined frames are nodes of their own. */
struct sm_calltree {
    uint32_t n_nodes;
    const uint32_t *parent;
    const uint32_t *end;      /* one past the last node of the subtree */
    const uint32_t *frame;    /* index of frames; function = frames[frame[i]].function */
    const uint32_t *function; /* the same by node, for loops */
    const uint16_t *depth;    /* root 0; saturates */
    const uint8_t *flags;     /* enum sm_node_flag */
};
enum sm_node_flag {
    SM_NODE_TOP_FUNCTION = 1, /* no ancestor is of the same function: recursion counts once */
    SM_NODE_TOP_FRAME = 2,    /* ... the same frame (line) */
    SM_NODE_TOP_FILE = 4,     /* ... the same file */
    SM_NODE_TOP_MODULE = 8,   /* ... the same module */
    SM_NODE_SITE = 16,        /* some row was allocated here: the innermost frame */
    SM_NODE_INLINED = 32, /* its code is part of its parent's: one location of the trace has both */
};

/* Who allocates: an OCaml domain's or a native thread. */
struct sm_lane {
    uint32_t stream;
    uint32_t kind; /* enum sm_owner_kind */
    uint64_t domain;
    uint64_t tid; /* 0 = unknown */
    uint32_t incarnation;
    sm_text_id name;
};

/* What rows have in common: they are predicates' and groups' cheapest subject. */
struct sm_row_class {
    uint32_t lane;
    uint8_t heap;   /* enum sm_heap */
    uint8_t origin; /* enum sm_origin */
    bool bytes;     /* sizes are bytes, else words without header */
    bool byte_sampled;
};

#define SM_ROW_BLOCK_SHIFT 8
#define SM_ROW_ESCAPE UINT32_MAX    /* alloc_delta, size: see the wide table */
#define SM_ROW_MANY UINT8_MAX       /* samples, frees_before: see the wide table */
#define SM_ROW_NEVER UINT32_MAX     /* ages */
#define SM_ROW_WIDE_AGE 0x80000000u /* ages: the rest is an index of wide_ages */

struct sm_wide {
    uint32_t row;
    uint64_t value;
};

struct sm_rows {
    uint32_t n;
    /* allocation time = block_ns[i >> 8] + alloc_delta[i] */
    const int64_t *block_ns;
    const uint32_t *alloc_delta;
    const uint32_t *promote_age; /* ns after the allocation */
    const uint32_t *free_age;
    const uint32_t *size;   /* words without header, or bytes (class) */
    const uint8_t *samples; /* at least 1; SM_ROW_MANY: wide_samples */
    const uint32_t *node;   /* innermost node of the stack */
    const uint32_t *class_id;
    const uint64_t *units; /* NULL: samples are units */
    /* Rows that were freed, in the order of their end. Allocations and ends have one order, the merged one
       (merge/cursor.h): frees_before[i] ends lie between the allocations of rows i - 1 and i (SM_ROW_MANY:
       wide_frees), those left over after the last row. block_frees[i >> 8] ends lie before the first row of a
       block. */
    uint32_t n_freed;
    const uint32_t *free_order;
    const uint8_t *frees_before;
    const uint32_t *block_frees;
    /* Rows freed by another lane than allocated them, ascending. */
    uint32_t n_foreign;
    const struct sm_foreign_free { uint32_t row, lane; } * foreign;
    const uint64_t *wide_ages;
    uint32_t n_wide_ages;
    const struct sm_wide *wide_deltas, *wide_sizes, *wide_samples, *wide_frees; /* by row */
    uint32_t n_wide_deltas, n_wide_sizes, n_wide_samples, n_wide_frees;
};

struct sm_counter_sample {
    int64_t ns;
    int64_t value;
    uint32_t counter; /* enum sm_counter */
    uint32_t lane;    /* UINT32_MAX: of the process */
};
struct sm_trace_mark {
    int64_t ns;
    uint32_t lane;
    sm_text_id text;
};

/* A set of rows: one bit per row, 64 to a word; bits beyond the last row are 0. words == NULL: all rows. */
struct sm_selection {
    uint64_t *words;
    uint32_t n_rows; /* selected */
};

/* Live memory at its largest: after the allocation of `row`. */
struct sm_peak {
    uint64_t units, samples;
    double variance; /* units squared; of mixed traces only */
    int64_t ns;      /* when it was reached first */
    uint32_t row;    /* the allocation that reached it; UINT32_MAX when nothing was allocated */
    uint32_t freed;  /* how many of free_order had ended by then */
};

struct sm_analysis {
    struct sm_meta meta; /* as of the trace; strings live as long as the analysis */
    struct sm_end end;
    uint64_t trace_bytes;
    int64_t last_ns;       /* end of the trace: from its END packet, else the last event */
    int64_t first_ns;      /* first event */
    double bytes_per_unit; /* NAN when the rate is unknown: count samples then */
    bool mixed;            /* byte-sampled rows are among them */
    double byte_interval;  /* mean interval R of these, bytes; 0 = none */
    uint64_t sample_units; /* units of one Memprof sample; 1 unless mixed */
    uint32_t word_bytes;
    uint64_t n_promoted, n_events;

    struct sm_rows rows;
    struct sm_calltree tree;
    uint32_t n_frames, n_functions, n_lanes, n_classes;
    const struct sm_frame *frames;
    const struct sm_function *functions;
    const struct sm_lane *lanes;
    const struct sm_row_class *classes;
    const char *texts;
    size_t texts_bytes;
    uint32_t n_counters, n_marks;
    const struct sm_counter_sample *counters;
    const struct sm_trace_mark *marks;
    size_t n_losses;
    const struct sm_loss *losses;
    /* The rows that count unless a filter names sources. OCaml's heap is native memory itself: where the
       blocks in it are recorded, the memory that holds them would count the same bytes twice. */
    struct sm_selection base;
    struct sm_peak peak; /* of the base */

    bool used_tail; /* events were taken from the side file */
    bool from_cache;
    const char *path;
    struct sm_analysis_private *private_data;
};

struct sm_analysis_options {
    unsigned threads;         /* 0 = as many as processors */
    bool no_cache;            /* neither read nor write a cache file */
    uint64_t cache_min_bytes; /* traces below are not cached; 0 = the default, 32 MiB */
    struct sm_trace_options trace;
};

/* Reads the whole trace (or its cache). options may be NULL. Fails as sm_trace_open does, and when rows or
   nodes would exceed 2^32 - 2. */
enum sm_status sm_analysis_open(struct sm_analysis **out, const char *path,
                                const struct sm_analysis_options *options, struct sm_error *err);
/* The same of an open trace, which stays the caller's. Never cached. */
enum sm_status sm_analysis_of_trace(struct sm_analysis **out, struct sm_trace *t,
                                    const struct sm_analysis_options *options,
                                    struct sm_error *err);
void sm_analysis_free(struct sm_analysis *a);

static inline const char *sm_text(const struct sm_analysis *a, sm_text_id id) {
    return a->texts + id;
}

/* ---- rows ---- */

uint64_t sm_wide_find(const struct sm_wide *list, uint32_t n, uint32_t row);

static inline int64_t sm_row_alloc_ns(const struct sm_analysis *a, uint32_t row) {
    uint32_t delta = a->rows.alloc_delta[row];
    int64_t base = a->rows.block_ns[row >> SM_ROW_BLOCK_SHIFT];
    if (__builtin_expect(delta == SM_ROW_ESCAPE, 0))
        return base + (int64_t)sm_wide_find(a->rows.wide_deltas, a->rows.n_wide_deltas, row);
    return base + delta;
}

/* Age in ns of an entry of promote_age or free_age other than SM_ROW_NEVER. */
static inline int64_t sm_row_age(const struct sm_analysis *a, uint32_t age) {
    if (__builtin_expect((age & SM_ROW_WIDE_AGE) != 0, 0))
        return (int64_t)a->rows.wide_ages[age & ~SM_ROW_WIDE_AGE];
    return age;
}

/* SM_NEVER_NS when it did not happen. */
static inline int64_t sm_row_free_ns(const struct sm_analysis *a, uint32_t row) {
    uint32_t age = a->rows.free_age[row];
    return age == SM_ROW_NEVER ? SM_NEVER_NS : sm_row_alloc_ns(a, row) + sm_row_age(a, age);
}
static inline int64_t sm_row_promote_ns(const struct sm_analysis *a, uint32_t row) {
    uint32_t age = a->rows.promote_age[row];
    return age == SM_ROW_NEVER ? SM_NEVER_NS : sm_row_alloc_ns(a, row) + sm_row_age(a, age);
}

/* Size of the block without header, in bytes. */
static inline uint64_t sm_row_bytes(const struct sm_analysis *a, uint32_t row) {
    uint64_t size = a->rows.size[row];
    if (__builtin_expect(size == SM_ROW_ESCAPE, 0))
        size = sm_wide_find(a->rows.wide_sizes, a->rows.n_wide_sizes, row);
    return a->classes[a->rows.class_id[row]].bytes ? size : size * a->word_bytes;
}

static inline uint64_t sm_row_samples(const struct sm_analysis *a, uint32_t row) {
    uint8_t samples = a->rows.samples[row];
    if (__builtin_expect(samples == SM_ROW_MANY, 0))
        return sm_wide_find(a->rows.wide_samples, a->rows.n_wide_samples, row);
    return samples;
}

static inline uint64_t sm_row_units(const struct sm_analysis *a, uint32_t row) {
    return a->rows.units != NULL ? a->rows.units[row] : sm_row_samples(a, row);
}

/* The variance a row adds to a sum of units, units squared: samples x (1 - rate) x unit^2 of Memprof's, and
   w^2 (1 - p) of byte-sampled ones, w = S / p, p = 1 - exp(-S / R). 0 unless the trace is mixed. */
double sm_row_variance(const struct sm_analysis *a, uint32_t row);

/* ---- selections ---- */

void sm_selection_release(struct sm_selection *s);

/* The memory as such that OCaml's blocks lie in, major heap or minor heaps. */
static inline bool sm_class_holds_blocks(const struct sm_row_class *c) {
    return c->heap == SM_HEAP_NATIVE &&
           (c->origin == SM_ORIGIN_OCAML_HEAP || c->origin == SM_ORIGIN_MINOR_HEAP);
}

/* What NULL stands for wherever a selection is asked for. */
static inline const struct sm_selection *sm_selection_or_base(const struct sm_selection *s,
                                                              const struct sm_analysis *a) {
    return s != NULL ? s : &a->base;
}

static inline bool sm_selected(const struct sm_selection *s, uint32_t row) {
    return s == NULL || s->words == NULL || (s->words[row >> 6] >> (row & 63) & 1) != 0;
}

/* ---- sums ---- */

struct sm_sum {
    uint64_t units, samples, rows;
    double variance; /* units squared; kept in mixed traces only */
};
static inline void sm_sum_add(struct sm_sum *to, const struct sm_sum *x) {
    to->units += x->units;
    to->samples += x->samples;
    to->rows += x->rows;
    to->variance += x->variance;
}

/* The estimate in bytes of a sum, with its interval. For a sum of Memprof samples it is
   analyze/estimate.h's, in mixed traces too; where byte-sampled rows take part, value +- 1.96 standard
   deviations. `value` is NAN when the trace tells no rate. */
struct sm_estimate sm_sum_estimate(const struct sm_analysis *a, const struct sm_sum *sum);

#endif
