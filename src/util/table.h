/* Text tables: aligned columns, one of which gives way when the terminal is narrow. Hosted. */
#ifndef SM_UTIL_TABLE_H
#define SM_UTIL_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "util/buffer.h"

#define SM_TABLE_MAX_COLUMNS 12

enum sm_align { SM_LEFT = 0, SM_RIGHT = 1 };
enum sm_style { SM_PLAIN = 0, SM_BOLD, SM_DIM, SM_RED, SM_GREEN, SM_YELLOW, SM_CYAN };

struct sm_table {
    unsigned n_columns;
    enum sm_align align[SM_TABLE_MAX_COLUMNS];
    unsigned flexible; /* column that is shortened in the middle to fit `width` */
    unsigned least;    /* columns the flexible column has at least, if there is room */
    unsigned width;    /* columns of the terminal */
    unsigned indent;   /* before each line */
    bool colours, utf8;
    /* cells, row by row */
    struct sm_table_cell {
        char *text;            /* safe text */
        char *drawing, *place; /* before and after it, or NULL */
        enum sm_style style;
    } * cells;
    size_t n_cells, capacity;
};

void sm_table_init(struct sm_table *t, unsigned n_columns, unsigned width, bool colours, bool utf8);
void sm_table_release(struct sm_table *t);

/* Appends the next cell of the row, made safe; a cell of NULL is empty. */
void sm_table_cell(struct sm_table *t, enum sm_style style, const char *text);
void sm_table_cellf(struct sm_table *t, enum sm_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The branches of a tree, a name, and where that is: "|- Lib.f  src/lib.ml". In a narrow flexible column the
   directories of the place go first, then the place, unless it has a line ("lib.ml:12"), then the left part of the
   drawing, then the middle of the name. drawing and place may be NULL. */
void sm_table_named(struct sm_table *t, enum sm_style style, const char *drawing, const char *name,
                    const char *place);
void sm_table_row_end(struct sm_table *t); /* fills the row with empty cells */

void sm_table_print(const struct sm_table *t, struct sm_buffer *out);

/* Text in a style, escapes only when `colours`. */
void sm_styled(struct sm_buffer *out, bool colours, enum sm_style style, const char *text);

#endif
