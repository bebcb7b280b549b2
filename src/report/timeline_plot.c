/* See timeline.h: plots for terminals, and SVG. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/timeline.h"
#include "util/number.h"
#include "util/text.h"

#define LABEL_COLUMNS 10
#define TALL 12
#define LOW_ROWS 4
#define MARKS 8

/* Largest of the points that fall to a column. */
static double column_value(const struct sm_timeline *t, const struct sm_series *s, unsigned column,
                           unsigned n_columns) {
    uint32_t from = (uint32_t)((uint64_t)column * t->n_points / n_columns);
    uint32_t to = (uint32_t)((uint64_t)(column + 1) * t->n_points / n_columns);
    double most = 0;
    for (uint32_t i = from; i < (to > from ? to : from + 1) && i < t->n_points; i++)
        most = fmax(most, (double)s->points[i].high * t->unit);
    return most;
}

static double largest(const struct sm_timeline *t, const struct sm_series *s) {
    double most = 0;
    for (uint32_t i = 0; i < t->n_points; i++)
        most = fmax(most, (double)s->points[i].high * t->unit);
    return most;
}

static const enum sm_style styles[] = {SM_CYAN, SM_GREEN, SM_YELLOW, SM_RED, SM_PLAIN};

static void plot(struct sm_buffer *out, const struct sm_timeline *t, const struct sm_series *s,
                 unsigned n_columns, unsigned n_rows, double most, enum sm_style style) {
    static const char *const eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const struct sm_asked *q = t->asked;
    char number[SM_NUMBER_BYTES];
    struct sm_buffer line;
    sm_buffer_init(&line, -1);
    for (unsigned row = n_rows; row-- > 0;) {
        bool label = row == n_rows - 1 || row == 0 || (n_rows > 8 && row == n_rows / 2);
        double level = row == 0 ? 0 : most * (row + 1) / n_rows;
        sm_buffer_printf(out, "%*s ", LABEL_COLUMNS - 1,
                         label ? sm_number_bytes(number, level, false) : "");
        sm_buffer_text(out, q->utf8 ? (label ? "┤" : "│") : "|");
        line.used = 0;
        for (unsigned c = 0; c < n_columns; c++) {
            double value = most > 0 ? column_value(t, s, c, n_columns) / most * n_rows - row : 0;
            int part = value <= 0 ? 0 : value >= 1 ? 8 : (int)ceil(value * 8);
            sm_buffer_text(&line, q->utf8 ? eighths[part] : part > 4 ? "#" : part > 0 ? "." : " ");
        }
        /* Blanks at the end of a line are nothing to look at, and get in the way when it is copied. */
        while (line.used > 0 && line.data[line.used - 1] == ' ')
            line.used--;
        sm_styled(out, q->colours, style, sm_buffer_string(&line));
        sm_buffer_char(out, '\n');
    }
    sm_buffer_release(&line);
}

/* Column of a moment; n_columns when it is not shown. */
static unsigned column_of(const struct sm_timeline *t, int64_t ns, unsigned n_columns) {
    if (ns < t->from_ns || ns >= t->to_ns)
        return n_columns;
    return (unsigned)((__int128)(ns - t->from_ns) * n_columns / (t->to_ns - t->from_ns));
}

/* A line of arrows below the plot, numbered, and what they stand for. */
static void marks(struct sm_buffer *out, const struct sm_timeline *t, unsigned n_columns) {
    const struct sm_analysis *a = t->asked->a;
    char number[SM_NUMBER_BYTES];
    uint32_t shown[MARKS], n = 0, more = 0;
    unsigned at = 0;
    for (uint32_t i = 0; i < a->n_marks; i++) {
        if (column_of(t, a->marks[i].ns, n_columns) == n_columns)
            continue;
        if (n < MARKS)
            shown[n++] = i;
        else
            more++;
    }
    if (n == 0)
        return;
    sm_buffer_fill(out, ' ', LABEL_COLUMNS + 1);
    for (uint32_t i = 0; i < n; i++) {
        unsigned column = column_of(t, a->marks[shown[i]].ns, n_columns);
        if (column < at)
            continue;
        sm_buffer_fill(out, ' ', column - at);
        sm_buffer_text(out, t->asked->utf8 ? "▲" : "^");
        at = column + 1;
    }
    sm_buffer_char(out, '\n');
    for (uint32_t i = 0; i < n; i++) {
        const struct sm_trace_mark *m = &a->marks[shown[i]];
        const char *text = sm_text(a, m->text);
        struct sm_buffer safe;
        sm_buffer_init(&safe, -1);
        sm_text_safe(&safe, text, strlen(text));
        sm_buffer_printf(out, "%s at %s: ", t->asked->utf8 ? "▲" : "^",
                         sm_number_duration(number, m->ns));
        sm_text_shortened(out, sm_buffer_string(&safe), safe.used,
                          t->asked->width > 40 ? t->asked->width - 22 : 20, t->asked->utf8);
        sm_buffer_char(out, '\n');
        sm_buffer_release(&safe);
    }
    if (more > 0)
        sm_buffer_printf(out, "and %s more marks; statmem dump shows all\n",
                         sm_number_count(number, more));
}

/* "0 s        334 ms        669 ms" below the axis. */
static void time_axis(struct sm_buffer *out, const struct sm_timeline *t, unsigned n_columns) {
    char number[SM_NUMBER_BYTES];
    sm_buffer_fill(out, ' ', LABEL_COLUMNS);
    sm_buffer_text(out, t->asked->utf8 ? "└" : "+");
    for (unsigned c = 0; c < n_columns; c++)
        sm_buffer_text(out, t->asked->utf8 ? "─" : "-");
    sm_buffer_char(out, '\n');
    unsigned labels = n_columns >= 60 ? 5 : 3, at = 0;
    sm_buffer_fill(out, ' ', LABEL_COLUMNS + 1);
    for (unsigned i = 0; i < labels; i++) {
        int64_t ns = t->from_ns + (int64_t)((__int128)(t->to_ns - t->from_ns) * i / (labels - 1));
        unsigned length = (unsigned)strlen(sm_number_duration(number, ns));
        unsigned wanted = (n_columns - 1) * i / (labels - 1);
        wanted = wanted + length / 2 > n_columns ? n_columns - length
                 : wanted > length / 2           ? wanted - length / 2
                                                 : 0;
        if (i == labels - 1)
            wanted = n_columns > length ? n_columns - length : 0;
        if (wanted < at)
            continue;
        sm_buffer_fill(out, ' ', wanted - at);
        sm_buffer_text(out, number);
        at = wanted + length;
    }
    sm_buffer_char(out, '\n');
}

static void series_head(struct sm_buffer *out, const struct sm_timeline *t,
                        const struct sm_series *s) {
    char a[SM_NUMBER_BYTES], b[SM_NUMBER_BYTES];
    struct sm_estimate e = sm_timeline_peak(t, s);
    sm_text_safe(out, s->name, strlen(s->name));
    if (isnan(e.value))
        sm_buffer_printf(out, ": peak %s samples", sm_number_count(a, s->peak.units));
    else
        sm_buffer_printf(out, ": peak %s", sm_number_bytes(a, e.value, t->asked->bytes));
    if (!isnan(e.value) && !e.exact && e.samples > 0)
        sm_buffer_printf(out, t->asked->utf8 ? " ±%s" : " +-%s", sm_show_error(a, &e));
    sm_buffer_printf(
        out, " at %s, at the end %s\n", sm_number_duration(a, s->peak.ns),
        sm_number_bytes(b, (double)s->points[t->n_points - 1].live * t->unit, t->asked->bytes));
}

void sm_timeline_print(struct sm_buffer *out, const struct sm_timeline *t) {
    const struct sm_asked *q = t->asked;
    unsigned n_columns = q->width > LABEL_COLUMNS + 22 ? q->width - LABEL_COLUMNS - 2 : 20;
    double most = 0;
    sm_show_heading(out, q);
    /* One scale for all series: their sizes can be compared. */
    for (uint32_t i = 0; i < t->n_series; i++)
        most = fmax(most, largest(t, &t->series[i]));
    for (uint32_t i = 0; i < t->n_series; i++) {
        series_head(out, t, &t->series[i]);
        plot(out, t, &t->series[i], n_columns, t->n_series == 1 ? TALL : LOW_ROWS, most,
             styles[i % (sizeof styles / sizeof *styles)]);
    }
    time_axis(out, t, n_columns);
    marks(out, t, n_columns);
}

/* ---- SVG ---- */

#define SVG_WIDTH 960
#define SVG_HEIGHT 360
#define LEFT 80
#define RIGHT 20
#define TOP 30
#define BOTTOM 40

static const char *const colours[] = {"#1f77b4", "#d95f02", "#2a9d4a", "#7b4fb5",
                                      "#c2185b", "#8d6e00", "#00838f", "#5d4037",
                                      "#455a64", "#9e9d24", "#ad1457", "#283593"};

static void svg_text(struct sm_buffer *out, const char *text) {
    struct sm_buffer safe;
    sm_buffer_init(&safe, -1);
    sm_text_safe(&safe, text, strlen(text));
    for (size_t i = 0; i < safe.used; i++) {
        char c = safe.data[i];
        if (c == '<' || c == '>' || c == '&' || c == '"')
            sm_buffer_printf(out, "&#%d;", c);
        else
            sm_buffer_char(out, c);
    }
    sm_buffer_release(&safe);
}

/* A round step of which at most five make `most`: 1, 2 or 5 times a power of ten. */
static double step_of(double most) {
    double power = pow(10, floor(log10(most / 5)));
    for (int i = 0; i < 4; i++) {
        double step = power * (double[]){1, 2, 5, 10}[i];
        if (most / step <= 5)
            return step;
    }
    return power * 10;
}

static double x_of(double share) {
    return LEFT + share * (SVG_WIDTH - LEFT - RIGHT);
}

static double y_of(double share) {
    return SVG_HEIGHT - BOTTOM - share * (SVG_HEIGHT - TOP - BOTTOM);
}

static void svg_axes(struct sm_buffer *out, const struct sm_timeline *t, double most) {
    char number[SM_NUMBER_BYTES];
    double step = most > 0 ? step_of(most) : 1;
    int lines = most > 0 ? (int)(most / step) : 0;
    for (int i = 0; i <= lines; i++) {
        double v = i * step;
        double y = y_of(most > 0 ? v / most : 0);
        sm_buffer_printf(out, "<line class=\"g\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>",
                         LEFT, SVG_WIDTH - RIGHT, y, y);
        sm_buffer_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", LEFT - 6,
                         y + 4, sm_number_bytes(number, v, false));
    }
    for (int i = 0; i <= 6; i++) {
        int64_t ns = t->from_ns + (int64_t)((double)(t->to_ns - t->from_ns) * i / 6);
        sm_buffer_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                         x_of(i / 6.0), SVG_HEIGHT - BOTTOM + 18, sm_number_duration(number, ns));
    }
}

/* A mark's text shows when the pointer rests on its line. */
static void svg_marks(struct sm_buffer *out, const struct sm_timeline *t) {
    const struct sm_analysis *a = t->asked->a;
    for (uint32_t i = 0, n = 0; i < a->n_marks && n < 200; i++) {
        int64_t ns = a->marks[i].ns;
        if (ns < t->from_ns || ns >= t->to_ns)
            continue;
        n++;
        double x = x_of((double)(ns - t->from_ns) / (double)(t->to_ns - t->from_ns));
        sm_buffer_printf(out,
                         "<line class=\"m\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\">"
                         "<title>",
                         x, x, TOP, SVG_HEIGHT - BOTTOM);
        svg_text(out, sm_text(a, a->marks[i].text));
        sm_buffer_text(out, "</title></line>\n");
    }
}

/* The 95 % interval around what is live, as a pale band. */
static void svg_band(struct sm_buffer *out, const struct sm_timeline *t, const struct sm_series *s,
                     const char *colour, double most) {
    if (s->measured || !(most > 0) || isnan(sm_timeline_estimate(t, s, 0).value))
        return;
    sm_buffer_printf(out, "<polygon fill=\"%s\" fill-opacity=\"0.15\" points=\"", colour);
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < t->n_points; i++) {
            uint32_t k = side == 0 ? i : t->n_points - 1 - i;
            struct sm_estimate e = sm_timeline_estimate(t, s, k);
            double value = side == 0 ? e.high : e.low;
            sm_buffer_printf(out, "%s%.1f,%.1f", i + side > 0 ? " " : "",
                             x_of((k + 0.5) / t->n_points), y_of(fmin(value / most, 1)));
        }
    }
    sm_buffer_text(out, "\"/>\n");
}

void sm_timeline_svg(struct sm_buffer *out, const struct sm_timeline *t) {
    double most = 0;
    for (uint32_t i = 0; i < t->n_series; i++)
        most = fmax(most, largest(t, &t->series[i]));
    unsigned legend = 18 * t->n_series;
    sm_buffer_printf(out,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %u\" "
                     "font-family=\"sans-serif\" font-size=\"12\">\n<style>text{fill:#333}"
                     ".g{stroke:#ddd}.m{stroke:#888;stroke-dasharray:3}.b{fill:#fff}@media(prefers-"
                     "color-scheme:dark){text{fill:#ccc}"
                     ".g{stroke:#444}.b{fill:#1c1c1c}}</style>\n"
                     "<rect class=\"b\" width=\"100%%\" height=\"100%%\"/>\n",
                     SVG_WIDTH, SVG_HEIGHT + legend);
    svg_axes(out, t, most);
    svg_marks(out, t);
    for (uint32_t i = 0; i < t->n_series; i++) {
        const struct sm_series *s = &t->series[i];
        const char *colour = colours[i % (sizeof colours / sizeof *colours)];
        svg_band(out, t, s, colour, most);
        sm_buffer_printf(
            out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"", colour);
        for (uint32_t k = 0; k < t->n_points; k++) {
            double value = (double)s->points[k].high * t->unit;
            sm_buffer_printf(out, "%s%.1f,%.1f", k > 0 ? " " : "", x_of((k + 0.5) / t->n_points),
                             y_of(most > 0 ? value / most : 0));
        }
        sm_buffer_text(out, "\"/>\n");
        unsigned y = SVG_HEIGHT + 18 * i;
        sm_buffer_printf(out,
                         "<rect x=\"%d\" y=\"%u\" width=\"10\" height=\"10\" fill=\"%s\"/><text "
                         "x=\"%d\" y=\"%u\">",
                         LEFT, y, colour, LEFT + 16, y + 10);
        struct sm_buffer head;
        sm_buffer_init(&head, -1);
        series_head(&head, t, s);
        svg_text(out, sm_buffer_string(&head));
        sm_buffer_release(&head);
        sm_buffer_text(out, "</text>\n");
    }
    sm_buffer_text(out, "</svg>\n");
}
