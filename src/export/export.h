/* An analysis in the formats of other tools. Hosted; reads the analysis only, any number of threads at once.

   Values are whole numbers in most formats, estimates are not: the running sum is rounded, not each value, so
   that a file's total is exactly the rounded estimate of all (export/model.h). */
#ifndef SM_EXPORT_EXPORT_H
#define SM_EXPORT_EXPORT_H

#include "analyze/merged.h"
#include "util/buffer.h"

enum sm_export_format {
    SM_EXPORT_PPROF = 0,
    SM_EXPORT_COLLAPSED,
    SM_EXPORT_SPEEDSCOPE,
    SM_EXPORT_DHAT,
    SM_EXPORT_MASSIF,
    SM_EXPORT_CALLGRIND,
    SM_EXPORT_CSV,
    SM_EXPORT_JSONL,
    SM_EXPORT_OTLP,
};
#define SM_EXPORT_FORMATS "pprof|collapsed|speedscope|dhat|massif|callgrind|csv|jsonl|otlp"

/* False when there is no such format. */
bool sm_export_format_parse(enum sm_export_format *f, const char *name);
/* A binary format has no place on a terminal. */
bool sm_export_binary(enum sm_export_format f);
/* A format that holds one weight, and so obeys --weight; the others have fixed kinds of values. */
bool sm_export_weighs(enum sm_export_format f);

struct sm_export {
    const struct sm_analysis *a;
    const struct sm_selection *selection; /* NULL = all rows */
    const char *filter_text;              /* canonical; "" = none */
    const uint64_t *hidden;               /* by frame, of the filter; NULL = none */
    const sm_text_id *collapsed;
    bool fold_recursion;
    enum sm_key_kind key;    /* formats of bare names: what a frame is called by */
    struct sm_weight weight; /* what counts, where the format has one; pprof and OTLP: see below */
    unsigned threads;        /* 0 = all */
};

/* Appends the whole file to `out`. Fails when the trace cannot be told in the format; write errors stay in `out`. */
enum sm_status sm_export_write(const struct sm_export *x, enum sm_export_format f,
                               struct sm_buffer *out, struct sm_error *err);

#endif
