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
    for (size_t i = 0; i < t->n_cells; i++) {
        free(t->cells[i].text);
        free(t->cells[i].drawing);
        free(t->cells[i].place);
    }
    free(t->cells);
    *t = (struct sm_table){0};
}

static char *safe_copy(const char *text) {
    if (text == NULL || *text == 0)
        return NULL;
    struct sm_buffer safe;
    sm_buffer_init(&safe, -1);
    sm_text_safe(&safe, text, strlen(text));
    sm_buffer_string(&safe);
    return safe.data;
}

void sm_table_cell(struct sm_table *t, enum sm_style style, const char *text) {
    sm_table_named(t, style, NULL, text, NULL);
}

void sm_table_named(struct sm_table *t, enum sm_style style, const char *drawing, const char *name,
                    const char *place) {
    t->cells = sm_grow(t->cells, &t->capacity, t->n_cells + 1, sizeof *t->cells);
    t->cells[t->n_cells++] = (struct sm_table_cell){.text = safe_copy(name),
                                                    .drawing = safe_copy(drawing),
                                                    .place = safe_copy(place),
                                                    .style = style};
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

static unsigned columns_of(const char *text) {
    return text != NULL ? sm_text_columns(text, strlen(text)) : 0;
}

static unsigned cell_columns(const struct sm_table_cell *cell) {
    return columns_of(cell->drawing) + columns_of(cell->text) +
           (cell->place != NULL ? GAP + columns_of(cell->place) : 0);
}

/* The right end of a drawing, which tells to what a name belongs. */
static unsigned put_drawing(struct sm_buffer *out, const char *drawing, unsigned room, bool utf8) {
    unsigned columns = columns_of(drawing), ellipsis = utf8 ? 1 : 2;
    if (columns > room) {
        sm_buffer_text(out, utf8 ? "…" : "..");
        size_t used;
        for (; columns + ellipsis > room && *drawing != 0; drawing += used)
            columns -= sm_char_columns(sm_utf8_get(drawing, strlen(drawing), &used));
        columns += ellipsis;
    }
    if (drawing != NULL)
        sm_buffer_text(out, drawing);
    return columns;
}

/* Returns the columns used, at most `width`. */
static unsigned put_cell(struct sm_buffer *out, const struct sm_table_cell *cell, unsigned width,
                         bool utf8) {
    if (cell->text == NULL)
        return 0;
    const char *place = cell->place;
    unsigned name = columns_of(cell->text), drawing = columns_of(cell->drawing);
    if (place != NULL && drawing + name + GAP + columns_of(place) > width) {
        const char *slash = strrchr(place, '/');
        place = slash != NULL ? slash + 1 : place;
        if (strchr(place, ':') == NULL && drawing + name + GAP + columns_of(place) > width)
            place = NULL;
    }
    unsigned after = place != NULL ? GAP + columns_of(place) : 0;
    if (place != NULL && drawing + name + after > width && after + 8 > width) {
        place = NULL;
        after = 0;
    }
    unsigned wanted = name + after > width / 2 ? width / 2 : name + after;
    unsigned used = put_drawing(out, cell->drawing, width - wanted, utf8);
    unsigned room = width - used > after + 1 ? width - used - after : 1;
    used += sm_text_shortened(out, cell->text, strlen(cell->text), room, utf8);
    if (place != NULL) {
        sm_buffer_fill(out, ' ', GAP);
        sm_buffer_text(out, place);
    }
    return used + after;
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
            unsigned used = put_cell(&text, cell, widths[i], t->utf8);
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
