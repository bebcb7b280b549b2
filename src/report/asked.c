/* See asked.h. */
#include "report/asked.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/naming.h"
#include "util/number.h"
#include "util/text.h"

void sm_asked_view(const struct sm_asked *q, struct sm_view *v, enum sm_key_kind kind) {
    sm_view_make(v, q->a, kind, q->hidden, q->collapsed);
    if (q->fold_recursion)
        sm_view_fold_recursion(v);
}

void sm_asked_weigher(const struct sm_asked *q, struct sm_weigher *w,
                      const struct sm_weight *weight) {
    sm_weigher_init(w, q->a, &q->selection, weight, q->threads);
}

/* ---- text ---- */

char *sm_show_value(char *to, const struct sm_asked *q, enum sm_measure measure, double value) {
    char number[SM_NUMBER_BYTES];
    if (isnan(value)) {
        snprintf(to, SM_NUMBER_BYTES, "?");
    } else if (measure == SM_MEASURE_BYTES) {
        sm_number_bytes(to, value, q->bytes);
    } else if (measure == SM_MEASURE_BYTE_SECONDS) {
        sm_number_bytes(number, value, q->bytes);
        snprintf(to, SM_NUMBER_BYTES, "%.36s s", number);
    } else {
        sm_number_count(to, (uint64_t)llround(value));
    }
    return to;
}

char *sm_show_error(char *to, const struct sm_estimate *e) {
    double error = sm_estimate_error(e);
    if (e->exact)
        snprintf(to, SM_NUMBER_BYTES, "exact");
    else if (isnan(error))
        to[0] = 0;
    else
        snprintf(to, SM_NUMBER_BYTES, "%.*f%%", error < 0.0995 ? 1 : 0, error * 100);
    return to;
}

void sm_show_estimate_cells(struct sm_table *t, enum sm_style style, const struct sm_asked *q,
                            const struct sm_weigher *w, const struct sm_sum *sum, uint64_t whole) {
    char a[SM_NUMBER_BYTES];
    struct sm_estimate e = sm_weight_estimate(w, sum);
    enum sm_measure measure = sm_weight_measure(&w->weight);
    /* Without a rate there is nothing but the samples to show. */
    if (isnan(e.value))
        measure = SM_MEASURE_SAMPLES;
    sm_table_cell(t, style,
                  sm_show_value(a, q, measure, isnan(e.value) ? (double)sum->units : e.value));
    sm_table_cell(t, SM_DIM, sm_show_error(a, &e));
    if (whole > 0)
        sm_table_cell(t, style, sm_number_percent(a, (double)sum->units, (double)whole));
    sm_table_cell(t, style, sm_number_count(a, sum->samples));
}

void sm_show_estimate(struct sm_buffer *out, const struct sm_asked *q, const struct sm_weigher *w,
                      const struct sm_sum *sum) {
    char a[SM_NUMBER_BYTES];
    struct sm_estimate e = sm_weight_estimate(w, sum);
    if (isnan(e.value)) {
        sm_buffer_printf(out, "%s samples", sm_number_count(a, sum->samples));
        return;
    }
    sm_buffer_text(out, sm_show_value(a, q, sm_weight_measure(&w->weight), e.value));
    if (!e.exact && !isnan(sm_estimate_error(&e)))
        sm_buffer_printf(out, q->utf8 ? " ±%s" : " +-%s", sm_show_error(a, &e));
}

static void sum_in_heading(struct sm_buffer *out, const struct sm_asked *q, const char *what,
                           const struct sm_selection *s, enum sm_weight_kind kind,
                           struct sm_peak *moment) {
    char n[SM_NUMBER_BYTES];
    struct sm_weight weight = {.kind = kind};
    struct sm_weigher w;
    sm_weigher_init(&w, q->a, s, &weight, q->threads);
    struct sm_sum sum = sm_weigh(&w, q->threads);
    sm_buffer_text(out, what);
    sm_show_estimate(out, q, &w, &sum);
    if (kind == SM_WEIGHT_ALLOCATED && q->a->bytes_per_unit > 0)
        sm_buffer_printf(out, " (%s sample%s)", sm_number_count(n, sum.samples),
                         sum.samples == 1 ? "" : "s");
    *moment = w.moment;
    sm_weigher_release(&w);
}

/* What is left out unless asked for: OCaml's heap as native memory, since the blocks in it are counted. */
static void left_out(struct sm_buffer *out, const struct sm_asked *q) {
    const struct sm_analysis *a = q->a;
    struct sm_weight weight = {.kind = SM_WEIGHT_LIVE_PEAK};
    struct sm_weigher w;
    if (a->base.words == NULL)
        return;
    struct sm_selection all = {.n_rows = a->rows.n};
    sm_weigher_init(&w, a, &all, &weight, q->threads);
    struct sm_sum *classes = sm_weigh_classes(&w, q->threads), sum = {0};
    for (uint32_t i = 0; i < a->n_classes; i++) {
        if (sm_class_holds_blocks(&a->classes[i]))
            sm_sum_add(&sum, &classes[i]);
    }
    if (sum.rows > 0) {
        sm_buffer_text(out, "\nOCaml's heap itself took ");
        sm_show_estimate(out, q, &w, &sum);
        sm_buffer_text(out, " then, not counted beside its blocks (-f 'source in "
                            "ocaml-heap,minor-heap')");
    }
    free(classes);
    sm_weigher_release(&w);
}

static void heading(struct sm_buffer *out, const struct sm_asked *q) {
    char n[SM_NUMBER_BYTES];
    const struct sm_analysis *a = q->a;
    const char *slash = strrchr(a->meta.executable, '/');
    const char *program = slash != NULL ? slash + 1 : a->meta.executable;
    struct sm_peak peak;
    sm_text_safe(out, program, strlen(program));
    sm_buffer_printf(out, "%s%s", program[0] != 0 ? ", " : "", sm_number_duration(n, a->last_ns));
    if (a->meta.sample_rate > 0)
        sm_buffer_printf(out, ", 1 sample per %s",
                         sm_number_bytes(n, a->word_bytes / a->meta.sample_rate, false));
    if (a->byte_interval > 0)
        sm_buffer_printf(out, ", 1 native sample per %s",
                         sm_number_bytes(n, a->byte_interval, false));
    if (!(a->meta.sample_rate > 0) && !(a->byte_interval > 0))
        sm_buffer_text(out, ", sampling rate unknown");
    sum_in_heading(out, q, "\nallocated ", NULL, SM_WEIGHT_ALLOCATED, &peak);
    sum_in_heading(out, q, ", peak live ", NULL, SM_WEIGHT_LIVE_PEAK, &peak);
    sm_buffer_printf(out, " at %s", sm_number_duration(n, peak.ns));
    sum_in_heading(out, q, ", live at the end ", NULL, SM_WEIGHT_LIVE_END, &peak);
    left_out(out, q);
    if (q->filter_text[0] != 0) {
        sm_buffer_text(out, "\nonly ");
        sm_text_safe(out, q->filter_text, strlen(q->filter_text));
        sum_in_heading(out, q, ": allocated ", &q->selection, SM_WEIGHT_ALLOCATED, &peak);
        sum_in_heading(out, q, ", peak ", &q->selection, SM_WEIGHT_LIVE_OWN_PEAK, &peak);
        sm_buffer_printf(out, " at %s", sm_number_duration(n, peak.ns));
    }
    sm_buffer_text(out, "\n\n");
}

/* Lines that are too long are broken behind a comma. */
static void put_wrapped(struct sm_buffer *out, const char *text, unsigned width) {
    while (*text != 0) {
        size_t line = strcspn(text, "\n"), n = line;
        while (sm_text_columns(text, n) > width) {
            size_t at = n > 1 ? n - 1 : 0;
            while (at > 0 && !(text[at - 1] == ',' && text[at] == ' '))
                at--;
            if (at == 0)
                break;
            n = at;
        }
        bool broken = n < line;
        sm_buffer_bytes(out, text, n);
        if (broken || text[n] == '\n')
            sm_buffer_char(out, '\n');
        text += n + (broken ? 1 : text[n] == '\n');
    }
}

void sm_show_heading(struct sm_buffer *out, const struct sm_asked *q) {
    struct sm_buffer text;
    sm_buffer_init(&text, -1);
    heading(&text, q);
    put_wrapped(out, sm_buffer_string(&text), q->width);
    sm_buffer_release(&text);
}

void sm_show_key(struct sm_buffer *out, const struct sm_view *v, uint32_t key, bool place) {
    struct sm_buffer raw;
    sm_buffer_init(&raw, -1);
    sm_view_name(v, key, &raw);
    const struct sm_analysis *a = v->analysis;
    const struct sm_function *f = &a->functions[a->frames[v->spot[key]].function];
    if (place && v->kind == SM_KEY_FUNCTION && v->names[key] == 0 && f->file != 0)
        sm_buffer_printf(&raw, "  %s", sm_text(a, f->file));
    sm_text_safe(out, raw.data, raw.used);
    sm_buffer_release(&raw);
}

void sm_show_key_cell(struct sm_table *t, enum sm_style style, const char *drawing,
                      const struct sm_view *v, uint32_t key) {
    const struct sm_analysis *a = v->analysis;
    const struct sm_frame *f = &a->frames[v->spot[key]];
    const struct sm_function *fn = &a->functions[f->function];
    bool lines = v->kind == SM_KEY_LINE || v->kind == SM_KEY_FRAME;
    struct sm_buffer name, place;
    sm_buffer_init(&name, -1);
    sm_buffer_init(&place, -1);
    if (v->names[key] != 0 || (!lines && v->kind != SM_KEY_FUNCTION)) {
        sm_view_name(v, key, &name);
    } else {
        sm_buffer_text(&name, sm_text(a, fn->name));
        sm_buffer_text(&place, sm_text(a, fn->file));
        if (lines && f->line != 0)
            sm_buffer_printf(&place, ":%u", f->line);
        if (v->kind == SM_KEY_FRAME && f->line != 0 && f->end_char != 0)
            sm_buffer_printf(&place, ":%u-%u", f->start_char, f->end_char);
    }
    sm_table_named(t, style, drawing, sm_buffer_string(&name), sm_buffer_string(&place));
    sm_buffer_release(&name);
    sm_buffer_release(&place);
}

void sm_show_bar(struct sm_buffer *out, double part, double whole, unsigned columns, bool utf8) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    double share = whole > 0 && part > 0 ? part / whole : 0;
    unsigned n = (unsigned)llround((share > 1 ? 1 : share) * columns * 8);
    for (unsigned i = 0; i < n / 8; i++)
        sm_buffer_text(out, utf8 ? "█" : "#");
    if (utf8)
        sm_buffer_text(out, eighths[n % 8]);
    else if (n % 8 >= 4)
        sm_buffer_char(out, '#');
}

void sm_show_more(struct sm_buffer *out, uint64_t left_out) {
    char n[SM_NUMBER_BYTES];
    if (left_out > 0)
        sm_buffer_printf(out, "and %s more; --top 0 shows all\n", sm_number_count(n, left_out));
}

/* ---- JSON ---- */

void sm_json_estimate(struct sm_json *j, const char *key, const struct sm_estimate *e,
                      uint64_t rows) {
    sm_json_open(j, key, '{');
    sm_json_double(j, "value", e->value);
    sm_json_double(j, "low", e->low);
    sm_json_double(j, "high", e->high);
    sm_json_u64(j, "samples", e->samples);
    sm_json_u64(j, "rows", rows);
    sm_json_bool(j, "exact", e->exact);
    sm_json_close(j, '}');
}

void sm_json_sum(struct sm_json *j, const char *key, const struct sm_weigher *w,
                 const struct sm_sum *sum) {
    struct sm_estimate e = sm_weight_estimate(w, sum);
    e.samples = sum->samples;
    sm_json_estimate(j, key, &e, sum->rows);
}

void sm_place_id(struct sm_buffer *out, const struct sm_view *v, uint32_t key) {
    const struct sm_analysis *a = v->analysis;
    const struct sm_frame *f = &a->frames[v->spot[key]];
    const struct sm_function *fn = &a->functions[f->function];
    if (v->names[key] != 0 || v->kind == SM_KEY_FILE || v->kind == SM_KEY_MODULE) {
        sm_view_name(v, key, out);
        return;
    }
    sm_buffer_text(out, sm_text(a, fn->name));
    if (fn->file != 0)
        sm_buffer_printf(out, "@%s", sm_text(a, fn->file));
    if ((v->kind == SM_KEY_LINE || v->kind == SM_KEY_FRAME) && f->line != 0)
        sm_buffer_printf(out, ":%u", f->line);
    if (v->kind == SM_KEY_FRAME && f->line != 0)
        sm_buffer_printf(out, ":%u-%u", f->start_char, f->end_char);
}

void sm_place_find(const struct sm_view *v, const char *text, struct sm_place_match *m) {
    *m = (struct sm_place_match){0};
    struct sm_buffer id, name;
    sm_buffer_init(&id, -1);
    sm_buffer_init(&name, -1);
    uint32_t named = 0, by_name = 0;
    for (uint32_t key = 1; key < v->n_keys && m->n == 0; key++) {
        id.used = name.used = 0;
        sm_place_id(&id, v, key);
        sm_view_name(v, key, &name);
        bool same = strcmp(sm_buffer_string(&name), text) == 0;
        if (strcmp(sm_buffer_string(&id), text) == 0) {
            m->n = 1;
            m->key = key;
        } else if (same && by_name++ == 0) {
            named = key;
        }
        if ((same && by_name == 1) || (m->near[0] == 0 && strstr(name.data, text) != NULL))
            snprintf(m->near, sizeof m->near, "%s", id.data);
    }
    if (m->n == 0 && by_name > 0) {
        m->n = by_name;
        m->key = named;
    }
    sm_buffer_release(&id);
    sm_buffer_release(&name);
}

void sm_json_place(struct sm_json *j, const char *key_name, const struct sm_view *v, uint32_t key) {
    const struct sm_analysis *a = v->analysis;
    const struct sm_frame *f = &a->frames[v->spot[key]];
    const struct sm_function *fn = &a->functions[f->function];
    struct sm_buffer text;
    sm_buffer_init(&text, -1);
    sm_json_open(j, key_name, '{');
    sm_place_id(&text, v, key);
    sm_json_bytes(j, "id", text.data, text.used);
    text.used = 0;
    bool place = v->names[key] == 0 && (v->kind == SM_KEY_LINE || v->kind == SM_KEY_FRAME);
    if (place)
        sm_buffer_text(&text, sm_text(a, fn->name));
    else
        sm_view_name(v, key, &text);
    sm_json_bytes(j, "name", text.data, text.used);
    bool many = v->names[key] != 0 || v->kind == SM_KEY_MODULE;
    sm_json_text(j, "file", many ? "" : sm_text(a, fn->file));
    sm_json_u64(j, "line", place || v->kind == SM_KEY_FUNCTION ? f->line : 0);
    sm_json_text(j, "module", v->kind == SM_KEY_FILE ? "" : sm_text(a, fn->module));
    sm_json_close(j, '}');
    sm_buffer_release(&text);
}

void sm_json_losses(struct sm_json *j, const struct sm_asked *q) {
    const struct sm_analysis *a = q->a;
    sm_json_open(j, "losses", '[');
    for (size_t i = 0; i < a->n_losses; i++) {
        const struct sm_loss *l = &a->losses[i];
        if (l->kind == SM_LOSS_EXTENT && a->used_tail)
            continue;
        sm_json_open(j, NULL, '{');
        sm_json_text(j, "kind", sm_loss_kind_name(l->kind));
        sm_json_text(j, "detail", l->detail);
        sm_json_u64(j, "offset", l->offset);
        sm_json_u64(j, "bytes", l->bytes);
        sm_json_u64(j, "events", l->events);
        sm_json_bool(j, "events_known", l->events_known);
        sm_json_u64(j, "count", l->count);
        sm_json_close(j, '}');
    }
    sm_json_close(j, ']');
}

void sm_json_asked(struct sm_json *j, const struct sm_asked *q) {
    const struct sm_analysis *a = q->a;
    sm_json_open(j, "trace", '{');
    sm_json_text(j, "path", a->path);
    sm_json_text(j, "executable", a->meta.executable);
    sm_json_text(j, "host", a->meta.host);
    sm_json_u64(j, "pid", a->meta.pid);
    sm_json_i64(j, "start_real_ns", a->meta.start_real_ns);
    sm_json_i64(j, "last_ns", a->last_ns);
    sm_json_double(j, "sample_rate", a->meta.sample_rate > 0 ? a->meta.sample_rate : NAN);
    sm_json_u64(j, "word_bytes", a->word_bytes);
    sm_json_u64(j, "rows", a->rows.n);
    sm_json_close(j, '}');
    sm_json_text(j, "filter", q->filter_text);
    sm_json_losses(j, q);
}

/* ---- CSV ---- */

void sm_csv_text(struct sm_buffer *out, const char *text, size_t bytes) {
    struct sm_buffer safe;
    sm_buffer_init(&safe, -1);
    sm_text_safe(&safe, text, bytes);
    bool quote = safe.used == 0;
    for (size_t i = 0; i < safe.used; i++)
        quote |= safe.data[i] == ',' || safe.data[i] == '"';
    /* What a spreadsheet would take for a formula is told to be text. */
    bool formula = safe.used > 0 && strchr("=+-@", safe.data[0]) != NULL;
    if (quote || formula)
        sm_buffer_char(out, '"');
    if (formula)
        sm_buffer_char(out, '\'');
    for (size_t i = 0; i < safe.used; i++) {
        if (safe.data[i] == '"')
            sm_buffer_char(out, '"');
        sm_buffer_char(out, safe.data[i]);
    }
    if (quote || formula)
        sm_buffer_char(out, '"');
    sm_buffer_release(&safe);
}

static void csv_double(struct sm_buffer *out, double x) {
    if (!isnan(x))
        sm_buffer_printf(out, "%.17g", x);
}

void sm_csv_estimate(struct sm_buffer *out, const struct sm_weigher *w, const struct sm_sum *sum) {
    struct sm_estimate e = sm_weight_estimate(w, sum);
    csv_double(out, e.value);
    sm_buffer_char(out, ',');
    csv_double(out, e.low);
    sm_buffer_char(out, ',');
    csv_double(out, e.high);
    sm_buffer_printf(out, ",%" PRIu64 ",%" PRIu64, sum->samples, sum->rows);
}
