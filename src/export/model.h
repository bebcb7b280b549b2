/* What all exporters start from: the tree as the filter shows it, and sums by (stack, class of rows) as whole
   numbers. Hosted, internal to src/export. */
#ifndef SM_EXPORT_MODEL_H
#define SM_EXPORT_MODEL_H

#include "export/export.h"

/* Nodes 0 (root) .. n_nodes; a parent's number is smaller than its children's. Hidden frames are gone, and nodes that
   became alike by that are one. */
struct sm_ex_tree {
    const struct sm_export *x;
    struct sm_view view;
    uint32_t n_nodes;
    uint32_t *parent, *key;
    bool *inlined;     /* shares its parent's location */
    uint32_t *of_node; /* node of the analysis -> node here */
    uint32_t *path;    /* room for one path; see sm_ex_path */
    uint32_t max_depth;
};
void sm_ex_tree_make(struct sm_ex_tree *t, const struct sm_export *x, enum sm_key_kind kind);
void sm_ex_tree_release(struct sm_ex_tree *t);
/* Nodes from the outermost (below the root) to `node`, in t->path; returns how many. */
uint32_t sm_ex_path(struct sm_ex_tree *t, uint32_t node);

/* Where a key is. Texts are as in the trace: any bytes. */
struct sm_ex_place {
    const char *name, *file, *module;
    uint32_t line, column; /* 0 = unknown; columns count from 1 */
    bool native;
};
struct sm_ex_place sm_ex_place(const struct sm_ex_tree *t, uint32_t key);
const char *sm_ex_heap(unsigned heap);
const char *sm_ex_origin(unsigned origin);
/* "minor", "external custom": the way rows of a class came to be. to: 48 bytes */
char *sm_ex_source(const struct sm_row_class *c, char to[48]);
/* "main", "thread 101", "domain 3", "" when nothing is known. to: 64 bytes */
char *sm_ex_thread(const struct sm_lane *lane, const char *texts, char to[64]);
/* Appended with what is no UTF-8 as U+FFFD. */
void sm_ex_utf8(struct sm_buffer *out, const char *text);

/* ---- values ---- */

/* A kind of value: rows that count, and what a unit of theirs is worth. */
struct sm_ex_measure {
    struct sm_weigher weigher;
    struct sm_selection rows; /* objects that live: the weigher's own selection */
    const char *type, *unit;  /* "alloc_space", "bytes" */
    double factor;            /* value = units x factor (samples: samples) */
    bool of_samples;
};
/* The weight's measure. live != NULL: of the rows that count for `live` only. */
void sm_ex_measure_make(struct sm_ex_measure *m, const struct sm_export *x,
                        const struct sm_weight *weight, const struct sm_weight *live,
                        const char *type);
void sm_ex_measure_release(struct sm_ex_measure *m);
/* The estimate of a sum before rounding. */
double sm_ex_value(const struct sm_ex_measure *m, const struct sm_sum *sum);
/* What all its rows add up to, rounded: the total of every export of this measure. */
uint64_t sm_ex_total(const struct sm_ex_measure *m);

/* Turns sums, one after another, into whole numbers whose total is the rounded total. */
struct sm_ex_rounder {
    const struct sm_ex_measure *m;
    struct sm_sum sum;
    uint64_t told;
};
uint64_t sm_ex_round(struct sm_ex_rounder *r, const struct sm_sum *sum);

#define SM_EX_MEASURES 5
struct sm_ex_sample {
    uint32_t node, class_id;
    uint64_t values[SM_EX_MEASURES];
};
/* By node, then class. by_class false: class_id is 0 in all. */
struct sm_ex_samples {
    struct sm_ex_sample *list;
    uint32_t n;
};
void sm_ex_samples_make(struct sm_ex_samples *s, const struct sm_ex_tree *t,
                        const struct sm_ex_measure *measures, uint32_t n_measures, bool by_class);
void sm_ex_samples_release(struct sm_ex_samples *s);

/* Go's four heap types; a weight of another kind becomes a fifth. Returns how many; *shown is the one to look at
   first. A weight of live memory says when the "inuse" ones are looked at. */
uint32_t sm_ex_heap_measures(struct sm_ex_measure list[SM_EX_MEASURES], const struct sm_export *x,
                             uint32_t *shown);

/* ---- the writers; each appends a whole file ---- */

void sm_export_pprof(const struct sm_export *x, struct sm_buffer *out, bool gzip);
void sm_export_collapsed(const struct sm_export *x, struct sm_buffer *out);
void sm_export_speedscope(const struct sm_export *x, struct sm_buffer *out);
void sm_export_dhat(const struct sm_export *x, struct sm_buffer *out);
void sm_export_massif(const struct sm_export *x, struct sm_buffer *out);
void sm_export_callgrind(const struct sm_export *x, struct sm_buffer *out);
void sm_export_rows(const struct sm_export *x, struct sm_buffer *out, bool json);
void sm_export_otlp(const struct sm_export *x, struct sm_buffer *out);

#endif
