/* An analysis in the making: what reading events leaves behind, before it is arranged. Hosted, internal to
   src/analyze. */
#ifndef SM_ANALYZE_BUILD_H
#define SM_ANALYZE_BUILD_H

#include "analyze/calltree.h"
#include "analyze/image.h"

/* An allocation as read. Ages as in struct sm_rows; ages index wide_ages of the build. */
struct sm_raw_row {
    uint64_t ticks;
    uint32_t size, code_node, class_id;
    uint32_t promote_age, free_age;
    uint8_t samples;
};

/* Allocations of a stream with consecutive numbers: seq - first_seq + first_row is the row in the stream. */
struct sm_raw_run {
    uint64_t first_seq;
    uint32_t first_row, n;
};

/* The end of an object, in the list of the stream that tells it, in its order. */
struct sm_raw_end {
    uint64_t ticks;
    uint32_t row;    /* in the object's stream; SM_RAW_NO_ROW: leave it out */
    uint32_t stream; /* index of the object's */
    uint32_t before; /* rows of the telling stream that come before it */
};
#define SM_RAW_NO_ROW UINT32_MAX

/* An event on another stream's object: resolved when all streams are read. */
struct sm_raw_foreign {
    uint64_t ticks, seq;
    uint32_t stream; /* index of the object's */
    uint32_t teller; /* index of the stream that tells it */
    uint32_t lane;   /* who tells it */
    uint32_t end;    /* in the teller's list; SM_RAW_NO_ROW: a promotion */
};

/* A row freed by another lane than its own. */
struct sm_raw_other_lane {
    uint32_t stream, row, lane;
};

struct sm_raw_stream {
    struct sm_vec rows;                     /* struct sm_raw_row */
    struct sm_vec runs;                     /* struct sm_raw_run */
    struct sm_vec ends;                     /* struct sm_raw_end */
    struct sm_vec wide_sizes, wide_samples; /* struct sm_wide, rows of the stream */
    uint32_t n_rows, n_runs, last_run;
    struct sm_map odd; /* seq -> row where numbers do not ascend (damage) */
    struct sm_code_path path;
    uint64_t last_ticks;
    uint32_t class_key, class_id; /* the last one's */
};

struct sm_build {
    struct sm_trace *trace;
    const char *directory; /* of temporary files, NULL = memory */
    struct sm_code_tree codes;
    uint32_t n_streams;
    struct sm_raw_stream *streams; /* by stream index */
    struct sm_vec foreign;         /* struct sm_raw_foreign */
    struct sm_vec other_lanes;     /* struct sm_raw_other_lane */
    struct sm_vec
        late; /* struct sm_raw_end: told before their allocations, by (ticks, stream, row) */
    struct sm_vec wide_ages; /* u64 */
    struct sm_map class_numbers;
    struct sm_vec classes;  /* struct sm_row_class */
    struct sm_vec counters; /* struct sm_counter_sample */
    struct sm_vec marks;    /* struct sm_trace_mark */
    struct sm_texts texts;
    struct sm_places places;
    uint64_t n_events, n_rows, n_frees, n_promoted;
    uint64_t first_ticks, last_ticks;
    bool any;
    uint32_t tick_ns;
};

void sm_build_init(struct sm_build *b, struct sm_trace *t, const char *directory);
void sm_build_release(struct sm_build *b);

/* Reads all events (load.c). */
enum sm_status sm_build_read(struct sm_build *b, unsigned threads, struct sm_error *err);

/* Puts rows, ends, tree, names and the rest into the image and the analysis (arrange.c). */
enum sm_status sm_build_arrange(struct sm_build *b, struct sm_image *im, struct sm_analysis *a,
                                unsigned threads, struct sm_error *err);

/* Sets a->base, by its rows and classes. */
void sm_analysis_find_base(struct sm_analysis *a);

/* The row of an object in its stream; UINT32_MAX when its allocation was not read. */
uint32_t sm_raw_find(struct sm_raw_stream *s, uint64_t seq);

#endif
