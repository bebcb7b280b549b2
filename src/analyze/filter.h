/* The filter language: which allocations a report is about, and how their stacks are shown. One
   grammar for the command line, URLs and the API (docs/filters.md is its law). Hosted.

   A text is parsed into a small tree that lives in one arena with the filter. Printing a tree gives its
   canonical text: parsing that gives an equal tree, so print(parse(text)) is a fixed point and serves as
   the key under which results are kept. The tree knows nothing of a trace: times stay relative to
   what they were written against (end, peak, wall clock), sizes in the unit they were written in.

   A filter is not changed after parsing and may be read by any number of threads. */
#ifndef SM_ANALYZE_FILTER_H
#define SM_ANALYZE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/arena.h"
#include "util/buffer.h"

#define SM_FILTER_MAX_BYTES 65536u  /* of the text */
#define SM_FILTER_MAX_DEPTH 64u     /* parentheses and nots inside each other */
#define SM_FILTER_MAX_CLAUSES 1000u /* conditions and view directives */
#define SM_FILTER_MAX_LIST 1000u    /* numbers behind one `in` */

/* What is wrong with a text. `column` counts characters from 1 (bytes that do not continue a character of UTF-8). */
struct sm_filter_error {
    uint32_t column;
    const char *expected; /* one of the fixed phrases of docs/filters.md; static */
    char text[256];       /* "column 14: expected a size such as 4kB, 100B or 12w, not foo" */
};

/* ---- values ---- */

/* What a time is counted from. */
enum sm_filter_anchor {
    SM_FROM_START = 0,   /* ns after the trace's start */
    SM_FROM_END = 1,     /* ns after the last event (negative: before) */
    SM_FROM_PEAK = 2,    /* ns after the peak of the whole trace */
    SM_FROM_PERCENT = 3, /* millionths of a percent of the run, 0 to 100000000 */
    SM_FROM_EPOCH = 4,   /* ns since 1970, UTC */
    SM_FROM_MIDNIGHT = 5 /* ns since midnight, UTC, of the day on which the trace starts */
};

struct sm_filter_time {
    enum sm_filter_anchor anchor;
    int64_t offset;
};

/* A test against one or two values. Both ends of BETWEEN are included. */
enum sm_filter_op {
    SM_OP_LT = 0,
    SM_OP_LE = 1,
    SM_OP_GT = 2,
    SM_OP_GE = 3,
    SM_OP_EQ = 4,
    SM_OP_BETWEEN = 5
};

/* Sizes: bytes, or words of the traced program. Lifetimes: ns. Else plain numbers. */
struct sm_filter_number {
    uint64_t n;
    bool words;
};

enum sm_filter_match {
    SM_MATCH_EQUAL = 0,
    SM_MATCH_CONTAINS = 1,
    SM_MATCH_GLOB = 2,
    SM_MATCH_REGEX = 3
};

/* What of a frame a pattern is held against. */
enum sm_filter_subject {
    SM_SUBJECT_FUNCTION = 0,
    SM_SUBJECT_FILE = 1,
    SM_SUBJECT_MODULE = 2,
    SM_SUBJECT_LINE = 3 /* FILE:LINE */
};

struct sm_filter_pattern {
    enum sm_filter_match match;
    enum sm_filter_subject subject; /* threads: FUNCTION, without meaning */
    const char *text;               /* any bytes but NUL; ended by NUL */
    size_t bytes;
};

/* ---- the tree ---- */

enum sm_filter_kind {
    SM_FILTER_AND = 0,        /* two or more children, none of them AND */
    SM_FILTER_OR = 1,         /* two or more children, none of them OR */
    SM_FILTER_NOT = 2,        /* one child, not NOT */
    SM_FILTER_ALLOCATED = 3,  /* op, time */
    SM_FILTER_PROMOTED = 4,   /* the same, or any: promoted at all */
    SM_FILTER_COLLECTED = 5,  /* the same, or any: collected at all */
    SM_FILTER_LIVE = 6,       /* op EQ: alive at time[0]; GE: later; LE: before; BETWEEN */
    SM_FILTER_SIZE = 7,       /* op, number */
    SM_FILTER_LIFETIME = 8,   /* op, number (ns) */
    SM_FILTER_SAMPLES = 9,    /* op, number */
    SM_FILTER_DOMAIN = 10,    /* op, number; or list when n_list > 0 */
    SM_FILTER_SOURCE = 11,    /* sources */
    SM_FILTER_THREAD_ID = 12, /* number[0] */
    SM_FILTER_THREAD = 13,    /* pattern, of its name */
    SM_FILTER_INSIDE = 14,    /* pattern, of any frame */
    SM_FILTER_SITE = 15,      /* pattern, of the innermost frame */
};

/* Bits of `sources`: heaps (enum sm_heap), and above them origins (enum sm_origin). */
#define SM_FILTER_HEAP(heap) (1u << (heap))
#define SM_FILTER_ORIGIN(origin) (1u << (8 + (origin)))

struct sm_filter_node {
    enum sm_filter_kind kind;
    enum sm_filter_op op;
    bool any;
    struct sm_filter_node *first; /* child of AND, OR, NOT */
    struct sm_filter_node *next;  /* sibling */
    struct sm_filter_time time[2];
    struct sm_filter_number number[2];
    uint32_t sources;
    uint32_t n_list; /* 2 or more, ascending, none twice */
    const uint64_t *list;
    struct sm_filter_pattern pattern;
};

enum sm_filter_view_kind { SM_VIEW_HIDE = 0, SM_VIEW_COLLAPSE = 1 };

/* How stacks are shown; not a condition on allocations. */
struct sm_filter_view {
    enum sm_filter_view_kind kind;
    struct sm_filter_pattern pattern;
    struct sm_filter_view *next;
};

struct sm_filter {
    struct sm_filter_node *root;  /* NULL: every allocation */
    struct sm_filter_view *views; /* in the order of the text, which is that of their use */
    uint32_t n_views;
    struct sm_arena arena; /* owns all of it */
};

/* Parses text[0..bytes). NULL when it is wrong, with *err set; err may be NULL. An empty or blank
   text is a filter that lets all through. */
struct sm_filter *sm_filter_parse(const char *text, size_t bytes, struct sm_filter_error *err);
void sm_filter_free(struct sm_filter *f); /* NULL allowed */

/* Appends the canonical text: valid UTF-8 without control characters, in one line. */
void sm_filter_print(struct sm_buffer *out, const struct sm_filter *f);
/* One condition, or one view directive, of it. */
void sm_filter_print_node(struct sm_buffer *out, const struct sm_filter_node *node);
void sm_filter_print_view(struct sm_buffer *out, const struct sm_filter_view *view);

bool sm_filter_equal(const struct sm_filter *a, const struct sm_filter *b);

#endif
