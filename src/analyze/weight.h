/* What counts: the weights by which rows are summed, and sums over rows. Hosted; reads the analysis only,
   any number of threads at once.

   A weight takes some of the selected rows and counts each row's units (or, for `samples`, `objects`
   and `lifetime`, something else of it). */
#ifndef SM_ANALYZE_WEIGHT_H
#define SM_ANALYZE_WEIGHT_H

#include "analyze/analysis.h"

enum sm_weight_kind {
    SM_WEIGHT_ALLOCATED = 0, /* every row */
    SM_WEIGHT_LIVE_AT,       /* allocated at or before T, not freed at or before T */
    SM_WEIGHT_LIVE_END,      /* never freed */
    SM_WEIGHT_LIVE_PEAK,     /* alive when the whole trace's live memory was at its largest */
    SM_WEIGHT_LIVE_OWN_PEAK, /* ... when the selection's was */
    SM_WEIGHT_FREED,
    SM_WEIGHT_PROMOTED,
    SM_WEIGHT_FREED_EARLY, /* freed without having been promoted */
    SM_WEIGHT_TEMPORARY,   /* freed within a limit: see struct sm_weight */
    SM_WEIGHT_LIFETIME,    /* units x seconds alive (to the end of the trace if never freed) */
    SM_WEIGHT_SAMPLES,     /* as allocated, but counts samples */
    SM_WEIGHT_OBJECTS,     /* estimated number of blocks: 1 / (1 - (1 - rate)^(words + 1)) each,
                              or 1 / (1 - exp(-S / R)) */
};

enum sm_temporary_by {
    SM_TEMPORARY_NS = 0, /* freed within `limit` ns */
    SM_TEMPORARY_BYTES,  /* before `limit` more bytes (estimated) were allocated in the program */
    SM_TEMPORARY_ALLOCATIONS, /* before `limit` more sampled allocations */
};

struct sm_weight {
    enum sm_weight_kind kind;
    int64_t at_ns; /* LIVE_AT */
    enum sm_temporary_by temporary_by;
    uint64_t limit;
};

/* "allocated", "live@end", "live@peak", "live@own-peak", "live@3.5s", "live@-5s" (before the end), "live@50%", "freed",
   "promoted", "early", "temporary" (= "temporary<1MB"), "temporary<10ms", "temporary<100allocs",
   "lifetime", "samples", "objects". The error names what was expected. */
enum sm_status sm_weight_parse(struct sm_weight *w, const char *text, const struct sm_analysis *a,
                               struct sm_error *err);
/* The canonical text of the above, and what it means in a few words ("live at the end"). */
const char *sm_weight_text(const struct sm_weight *w, char to[64]);
const char *sm_weight_title(const struct sm_weight *w, char to[96]);
/* Unit shown to people: bytes, byte-seconds, samples or objects. */
enum sm_measure {
    SM_MEASURE_BYTES = 0,
    SM_MEASURE_BYTE_SECONDS,
    SM_MEASURE_SAMPLES,
    SM_MEASURE_OBJECTS
};
enum sm_measure sm_weight_measure(const struct sm_weight *w);

/* A weight made ready for one analysis and selection: LIVE_* are bound to a moment. */
struct sm_weigher {
    const struct sm_analysis *analysis;
    const struct sm_selection *selection; /* NULL = all */
    struct sm_weight weight;
    bool plain;             /* a row adds its own units */
    double sample_variance; /* of one Memprof sample, in mixed traces */
    struct sm_peak moment;  /* LIVE_PEAK, LIVE_OWN_PEAK: when that was */
    uint64_t
        *members;  /* bitmap of the rows that count, selected or not; NULL = told by their ages */
    double *scale; /* OBJECTS: 1 / probability of being seen, by size in words */
};
void sm_weigher_init(struct sm_weigher *w, const struct sm_analysis *a,
                     const struct sm_selection *s, const struct sm_weight *weight,
                     unsigned threads);
void sm_weigher_release(struct sm_weigher *w);

/* The row is selected and counts. */
bool sm_weigher_takes(const struct sm_weigher *w, uint32_t row);
/* Bits of the 64 rows from `word` x 64 that are selected and count. */
uint64_t sm_weigher_word(const struct sm_weigher *w, uint32_t word);
/* What one row that counts adds. LIFETIME: `units` are units x microseconds; OBJECTS: 1/1024 objects. */
void sm_weigher_add(const struct sm_weigher *w, uint32_t row, struct sm_sum *to);

/* Sum over all; over each stack (array by node, innermost frames only, caller frees);
   over each class. threads 0 = all. */
struct sm_sum sm_weigh(const struct sm_weigher *w, unsigned threads);
struct sm_sum *sm_weigh_nodes(const struct sm_weigher *w, unsigned threads);
struct sm_sum *sm_weigh_classes(const struct sm_weigher *w, unsigned threads);

/* The estimate in the weight's own measure. */
struct sm_estimate sm_weight_estimate(const struct sm_weigher *w, const struct sm_sum *sum);

/* sm_weigher_add for loops over many rows. */
static inline void sm_weigher_add_row(const struct sm_weigher *w, uint32_t row, struct sm_sum *to) {
    const struct sm_analysis *a = w->analysis;
    uint64_t samples = a->rows.samples[row];
    if (__builtin_expect(!w->plain || samples == SM_ROW_MANY, 0)) {
        sm_weigher_add(w, row, to);
        return;
    }
    to->samples += samples;
    to->rows++;
    if (!a->mixed) {
        to->units += samples;
        return;
    }
    to->units += a->rows.units != NULL ? a->rows.units[row] : samples;
    to->variance += a->classes[a->rows.class_id[row]].byte_sampled
                        ? sm_row_variance(a, row)
                        : (double)samples * w->sample_variance;
}

#endif
