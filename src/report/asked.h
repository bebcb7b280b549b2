/* What every report over an analysis is asked: of which rows, how stacks are seen, how to write. And the pieces
   all of them show alike. Hosted. */
#ifndef SM_REPORT_ASKED_H
#define SM_REPORT_ASKED_H

#include "analyze/filter.h"
#include "analyze/merged.h"
#include "analyze/select.h"
#include "util/json.h"
#include "util/table.h"

struct sm_asked {
    const struct sm_analysis *a;
    const struct sm_filter *filter; /* NULL = none */
    const char *filter_text;        /* canonical; "" = none */
    struct sm_selection selection;
    uint64_t *hidden; /* by frame, of the filter; NULL = none */
    sm_text_id *collapsed;
    bool fold_recursion;
    uint64_t top; /* rows at most; 0 = all */
    bool bytes;   /* exact sizes */
    bool colours, utf8;
    unsigned width;
    unsigned threads; /* 0 = all */
};

void sm_asked_view(const struct sm_asked *q, struct sm_view *v, enum sm_key_kind kind);
void sm_asked_weigher(const struct sm_asked *q, struct sm_weigher *w,
                      const struct sm_weight *weight);

/* ---- text ---- */

/* "prog, 12.3 s, 1 sample per 80 kB", what was allocated and the peak, and the filter with what it left. */
void sm_show_heading(struct sm_buffer *out, const struct sm_asked *q);

/* "1.23 MB", "12.3 MB s", "1,234" by measure; "?" without a rate. to: SM_NUMBER_BYTES */
char *sm_show_value(char *to, const struct sm_asked *q, enum sm_measure measure, double value);
/* Cells "1.23 MB", "2.1%" (half interval; "exact"), "38.1%" of whole (units; 0 = no cell), "1,234" samples. */
void sm_show_estimate_cells(struct sm_table *t, enum sm_style style, const struct sm_asked *q,
                            const struct sm_weigher *w, const struct sm_sum *sum, uint64_t whole);
/* "1.23 MB ±2%" */
void sm_show_estimate(struct sm_buffer *out, const struct sm_asked *q, const struct sm_weigher *w,
                      const struct sm_sum *sum);
/* The interval's larger half: "2.1%", "exact" or "". to: SM_NUMBER_BYTES */
char *sm_show_error(char *to, const struct sm_estimate *e);
/* A key's name, made safe, with its place when the kind shows none: "Lib.f  lib.ml". */
void sm_show_key(struct sm_buffer *out, const struct sm_view *v, uint32_t key, bool place);
/* The same as a cell that gives way in narrow columns (sm_table_named); drawing may be NULL. */
void sm_show_key_cell(struct sm_table *t, enum sm_style style, const char *drawing,
                      const struct sm_view *v, uint32_t key);
/* A bar of at most `columns` for part / whole. */
void sm_show_bar(struct sm_buffer *out, double part, double whole, unsigned columns, bool utf8);
/* "and 12 more" when rows were left out. */
void sm_show_more(struct sm_buffer *out, uint64_t left_out);

/* ---- JSON ---- */

/* The members all reports begin with: "trace", "filter", "losses", "warnings". */
void sm_json_asked(struct sm_json *j, const struct sm_asked *q);
/* The member "losses". */
void sm_json_losses(struct sm_json *j, const struct sm_asked *q);
void sm_json_estimate(struct sm_json *j, const char *key, const struct sm_estimate *e,
                      uint64_t rows);
void sm_json_sum(struct sm_json *j, const char *key, const struct sm_weigher *w,
                 const struct sm_sum *sum);
/* {"id", "name", "file", "line", "module"} */
void sm_json_place(struct sm_json *j, const char *key_name, const struct sm_view *v, uint32_t key);
/* The id alone: what selects the key again in another run. */
void sm_place_id(struct sm_buffer *out, const struct sm_view *v, uint32_t key);

/* The key whose id, or whose name alone, is `text`: n of them. near: the id of one, or of one whose name contains it. */
struct sm_place_match {
    uint32_t key, n;
    char near[256];
};
void sm_place_find(const struct sm_view *v, const char *text, struct sm_place_match *m);

/* ---- CSV ---- */

/* A field: made safe, and quoted where needed. */
void sm_csv_text(struct sm_buffer *out, const char *text, size_t bytes);
void sm_csv_estimate(struct sm_buffer *out, const struct sm_weigher *w, const struct sm_sum *sum);
#define SM_CSV_ESTIMATE_HEAD(name) name "," name "_low," name "_high," name "_samples," name "_rows"

#endif
