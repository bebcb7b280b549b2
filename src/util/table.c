/* See table.h. */
#include "util/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"
#include "util/text.h"

#define GAP 2

void sm_table_init(struct sm_table *t, unsigned n_columns, unsigned width, bool colours,
                   bool utf8) {
    *t = (struct sm_table){.n_columns = n_columns,
                           .flexible = n_columns - 1,
                           .width = width,
                           .colours = colours,
                           .utf8 = utf8};
}

void sm_table_release(struct sm_table *t) {
    for (size_t i = 0; i < t->n_cells; i++)
        free(t->cells[i].text);
    free(t->cells);
    *t = (struct sm_table){0};
}

void sm_table_cell(struct sm_table *t, enum sm_style style, const char *text) {
    t->cells = sm_grow(t->cells, &t->capacity, t->n_cells + 1, sizeof *t->cells);
    char *copy = NULL;
    if (text != NULL && *text != 0) {
        struct sm_buffer safe;
        sm_buffer_init(&safe, -1);
        sm_text_safe(&safe, text, strlen(text));
        sm_buffer_string(&safe);
        copy = safe.data;
    }
    t->cells[t->n_cells++] = (struct sm_table_cell){.text = copy, .style = style};
}

void sm_table_cellf(struct sm_table *t, enum sm_style style, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sm_table_cell(t, style, text);
}

void sm_table_row_end(struct sm_table *t) {
    while (t->n_cells % t->n_columns != 0)
        sm_table_cell(t, SM_PLAIN, NULL);
}

static const char *style_code(enum sm_style style) {
    static const char *const codes[] = {"", "1", "2", "31", "32", "33", "36"};
    return codes[style];
}

void sm_styled(struct sm_buffer *out, bool colours, enum sm_style style, const char *text) {
    if (colours && style != SM_PLAIN)
        sm_buffer_printf(out, "\033[%sm%s\033[0m", style_code(style), text);
    else
        sm_buffer_text(out, text);
}

static unsigned cell_columns(const struct sm_table_cell *cell) {
    return cell->text != NULL ? sm_text_columns(cell->text, strlen(cell->text)) : 0;
}

void sm_table_print(const struct sm_table *t, struct sm_buffer *out) {
    unsigned widths[SM_TABLE_MAX_COLUMNS] = {0};
    for (size_t i = 0; i < t->n_cells; i++) {
        unsigned c = cell_columns(&t->cells[i]);
        if (c > widths[i % t->n_columns])
            widths[i % t->n_columns] = c;
    }
    unsigned others = t->indent;
    for (unsigned i = 0; i < t->n_columns; i++)
        others += (i > 0 ? GAP : 0) + (i != t->flexible ? widths[i] : 0);
    unsigned room = t->width > others + 12 ? t->width - others : 12;
    if (widths[t->flexible] < t->least)
        widths[t->flexible] = t->least;
    if (widths[t->flexible] > room)
        widths[t->flexible] = room;
    for (size_t row = 0; row + t->n_columns <= t->n_cells; row += t->n_columns) {
        unsigned last = t->n_columns; /* nothing but blanks after it: no blanks at line ends */
        while (last > 0 && t->cells[row + last - 1].text == NULL)
            last--;
        if (last > 0)
            sm_buffer_fill(out, ' ', t->indent);
        for (unsigned i = 0; i < last; i++) {
            const struct sm_table_cell *cell = &t->cells[row + i];
            if (i > 0)
                sm_buffer_fill(out, ' ', GAP);
            struct sm_buffer text;
            sm_buffer_init(&text, -1);
            unsigned used = 0;
            if (cell->text != NULL)
                used = sm_text_shortened(&text, cell->text, strlen(cell->text), widths[i], t->utf8);
            unsigned blanks = widths[i] > used ? widths[i] - used : 0;
            if (t->align[i] == SM_RIGHT)
                sm_buffer_fill(out, ' ', blanks);
            if (text.used > 0)
                sm_styled(out, t->colours, cell->style, sm_buffer_string(&text));
            if (t->align[i] == SM_LEFT && i + 1 < last)
                sm_buffer_fill(out, ' ', blanks);
            sm_buffer_release(&text);
        }
        sm_buffer_char(out, '\n');
    }
}
