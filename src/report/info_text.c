/* `info` for people: the header as lines, the figures as tables, then losses and warnings. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "analyze/estimate.h"
#include "report/info.h"
#include "report/naming.h"
#include "util/number.h"
#include "util/table.h"
#include "util/text.h"

#define ROWS_SHOWN 20

struct view {
    struct sm_buffer *out;
    struct sm_trace *t;
    const struct sm_meta *meta;
    const struct sm_end *end;
    const struct sm_info *info;
    const struct sm_info_options *options;
    double word_bytes;
};

/* ---- header lines ---- */

static void label(struct view *v, const char *name) {
    char padded[16];
    snprintf(padded, sizeof padded, "%-11s", name);
    sm_styled(v->out, v->options->colours, SM_DIM, padded);
}

static void safe(struct view *v, const char *text) {
    sm_text_safe(v->out, text, strlen(text));
}

static void put_clock(struct view *v, int64_t real_ns) {
    time_t seconds = (time_t)(real_ns / 1000000000);
    struct tm tm;
    char text[64];
    if (gmtime_r(&seconds, &tm) == NULL ||
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        snprintf(text, sizeof text, "?");
    sm_buffer_printf(v->out, "%s UTC", text);
}

static void program_lines(struct view *v) {
    const struct sm_meta *m = v->meta;
    char number[SM_NUMBER_BYTES];
    label(v, "program");
    safe(v, m->executable[0] != 0 ? m->executable : "(unknown)");
    sm_buffer_printf(v->out, ", pid %" PRIu64, m->pid);
    if (m->parent_pid != 0)
        sm_buffer_printf(v->out, " (forked from %" PRIu64 ")", m->parent_pid);
    if (m->host[0] != 0) {
        sm_buffer_text(v->out, ", host ");
        safe(v, m->host);
    }
    sm_buffer_char(v->out, '\n');
    if (m->n_args > 0) {
        label(v, "command");
        const char *arg = m->args;
        for (uint32_t i = 0; i < m->n_args; i++, arg += strlen(arg) + 1) {
            if (i > 0)
                sm_buffer_char(v->out, ' ');
            safe(v, arg);
        }
        sm_buffer_char(v->out, '\n');
    }
    if (m->has_context) {
        label(v, "context");
        safe(v, m->context);
        sm_buffer_char(v->out, '\n');
    }
    label(v, "started");
    if (m->missing)
        sm_buffer_text(v->out, "(unknown)");
    else
        put_clock(v, m->start_real_ns);
    if (v->info != NULL)
        sm_buffer_printf(v->out, ", %s long", sm_number_duration(number, v->info->duration_ns));
    sm_buffer_char(v->out, '\n');
    if (m->ocaml_version[0] != 0 || m->ocaml_kind != SM_OCAML_UNKNOWN) {
        label(v, "OCaml");
        safe(v, m->ocaml_version);
        static const char *const kinds[] = {"", " native code", " bytecode"};
        static const char *const modes[] = {"", ", linked with statmem", ", injected", ", attached",
                                            ""};
        sm_buffer_text(v->out, m->ocaml_kind <= SM_OCAML_BYTECODE ? kinds[m->ocaml_kind] : "");
        sm_buffer_text(v->out, m->mode <= SM_MODE_CONVERTED ? modes[m->mode] : "");
        sm_buffer_char(v->out, '\n');
    }
    if (m->runtime_params[0] != 0) {
        label(v, "parameters");
        safe(v, m->runtime_params);
        sm_buffer_char(v->out, '\n');
    }
}

static void trace_lines(struct view *v) {
    const struct sm_meta *m = v->meta;
    char number[SM_NUMBER_BYTES], other[SM_NUMBER_BYTES];
    label(v, "trace");
    safe(v, v->options->path);
    sm_buffer_printf(v->out, ", format %s, %s", sm_format_name(m),
                     sm_number_bytes(number, (double)sm_trace_bytes(v->t), v->options->bytes));
    if (m->imported_from != 0)
        sm_buffer_printf(v->out, ", converted from memtrace %" PRIu32, m->imported_from);
    if (m->writer[0] != 0) {
        sm_buffer_text(v->out, ", written by ");
        safe(v, m->writer);
    }
    sm_buffer_char(v->out, '\n');
    label(v, "sampling");
    if (m->sample_rate == 0 && m->native_interval_bytes != 0) {
        sm_buffer_text(v->out, "OCaml's memory was not recorded");
    } else if (m->sample_rate > 0) {
        sm_buffer_printf(v->out, "1 sample per %s (rate %g%s%s)",
                         sm_number_bytes(number, v->word_bytes / m->sample_rate, false),
                         m->sample_rate, m->rate_origin != SM_RATE_UNKNOWN ? ", " : "",
                         sm_rate_origin_name(m->rate_origin));
        sm_buffer_printf(v->out, ", %" PRIu32 "-bit words", m->word_bits);
    } else {
        sm_buffer_text(v->out, "rate unknown: sizes cannot be estimated");
    }
    if (m->native_interval_bytes == 1)
        sm_buffer_text(v->out, ", all native allocations");
    else if (m->native_interval_bytes != 0)
        sm_buffer_printf(v->out, ", native memory: 1 sample per %s",
                         sm_number_bytes(number, (double)m->native_interval_bytes, false));
    if (m->depth_limit != 0)
        sm_buffer_printf(v->out, ", stacks up to %s frames",
                         sm_number_count(other, m->depth_limit));
    sm_buffer_char(v->out, '\n');
}

static void end_line(struct view *v) {
    static const char *const reasons[] = {
        "for an unknown reason",   "by the end of the program", "by a call",
        "since the output failed", "after the program's death", "by conversion"};
    if (!v->end->present)
        return;
    label(v, "closed");
    sm_buffer_text(v->out, v->end->reason <= SM_REASON_CONVERTED ? reasons[v->end->reason] : "?");
    if (v->end->has_exit_status) {
        int status = (int)v->end->exit_status;
        if (WIFSIGNALED(status))
            sm_buffer_printf(v->out, ", killed by signal %d", WTERMSIG(status));
        else
            sm_buffer_printf(v->out, ", exit status %d", WEXITSTATUS(status));
    }
    sm_buffer_char(v->out, '\n');
}

/* ---- figures ---- */

/* Narrow terminals get no column for the relative error: the interval says the same. */
static bool narrow(const struct view *v) {
    return v->options->width < 90;
}

static void table_begin(struct view *v, struct sm_table *table, const char *title) {
    static const char *const heads[] = {"estimate", "±",       "95% interval",
                                        "share",    "samples", "blocks"};
    sm_table_init(table, narrow(v) ? 6 : 7, v->options->width, v->options->colours,
                  v->options->utf8);
    table->flexible = 0;
    table->least = 24; /* so that all tables are alike */
    sm_table_cell(table, SM_BOLD, title);
    for (unsigned i = 1; i < table->n_columns; i++)
        table->align[i] = SM_RIGHT;
    for (unsigned i = 0; i < 6; i++) {
        if (i != 1 || !narrow(v))
            sm_table_cell(table, SM_DIM, i == 1 && !v->options->utf8 ? "+-" : heads[i]);
    }
}

static void table_end(struct view *v, struct sm_table *table) {
    sm_buffer_char(v->out, '\n');
    sm_table_print(table, v->out);
    sm_table_release(table);
}

/* One row; blocks UINT64_MAX = not known. */
static void estimate_row(struct view *v, struct sm_table *table, const char *name,
                         struct sm_estimate e, double share, double whole, uint64_t blocks) {
    char a[SM_NUMBER_BYTES], b[SM_NUMBER_BYTES];
    double error = sm_estimate_error(&e);
    sm_table_cellf(table, SM_PLAIN, "  %s", name);
    sm_table_cell(table, SM_BOLD, sm_number_bytes(a, e.value, v->options->bytes));
    if (!narrow(v))
        sm_table_cell(table, SM_PLAIN,
                      e.exact || isnan(error) ? NULL : sm_number_percent(a, error, 1));
    if (e.exact || isnan(e.low))
        sm_table_cell(table, SM_PLAIN, e.exact ? "exact" : NULL);
    else
        sm_table_cellf(table, SM_PLAIN, v->options->utf8 ? "%s – %s" : "%s - %s",
                       sm_number_bytes(a, e.low, v->options->bytes),
                       sm_number_bytes(b, e.high, v->options->bytes));
    sm_table_cell(table, SM_PLAIN, sm_number_percent(a, share, whole));
    sm_table_cell(table, SM_PLAIN, sm_number_count(a, e.samples));
    sm_table_cell(table, SM_PLAIN, blocks != UINT64_MAX ? sm_number_count(a, blocks) : NULL);
    sm_table_row_end(table);
}

static void figures(struct view *v, struct sm_table *table, const char *name, uint64_t samples,
                    uint64_t blocks) {
    estimate_row(v, table, name, sm_estimate(samples, v->meta->sample_rate, v->word_bytes),
                 (double)samples, (double)v->info->all.samples, blocks);
}

static void native_row(struct view *v, struct sm_table *table, const char *name,
                       const struct sm_byte_sum *sum) {
    estimate_row(v, table, name, sm_byte_estimate(sum, (double)v->meta->native_interval_bytes),
                 sum->bytes, v->info->native.all.allocated.bytes, sum->blocks);
}

static void native_table(struct view *v) {
    static const char *const names[SM_ORIGINS] = {
        [SM_ORIGIN_NORMAL] = "by the program",
        [SM_ORIGIN_CUSTOM] = "bigarrays and the like",
        [SM_ORIGIN_OCAML_HEAP] = "OCaml's heap",
        [SM_ORIGIN_MINOR_HEAP] = "OCaml's minor heaps",
        [SM_ORIGIN_OCAML_STACK] = "stacks of OCaml code",
        [SM_ORIGIN_RUNTIME] = "other of OCaml's runtime",
    };
    const struct sm_info *info = v->info;
    struct sm_table table;
    char name[64], number[SM_NUMBER_BYTES];
    table_begin(v, &table, "Native memory");
    native_row(v, &table, "allocated", &info->native.all.allocated);
    unsigned parts = 0;
    for (unsigned i = 0; i < SM_ORIGINS; i++)
        parts += info->native.origins[i].allocated.blocks > 0;
    for (unsigned i = 0; i < SM_ORIGINS && parts > 1; i++) {
        if (info->native.origins[i].allocated.blocks == 0)
            continue;
        snprintf(name, sizeof name, "  %s", names[i] != NULL ? names[i] : sm_origin_name(i));
        native_row(v, &table, name, &info->native.origins[i].allocated);
    }
    snprintf(name, sizeof name, "peak live, at %s",
             sm_number_duration(number, info->native.peak_ns));
    native_row(v, &table, info->native.peak.blocks > 0 ? name : "peak live", &info->native.peak);
    native_row(v, &table, "live at the end", &info->native.all.live);
    for (unsigned i = 0; i < SM_ORIGINS && parts > 1; i++) {
        if (info->native.origins[i].live.blocks == 0)
            continue;
        snprintf(name, sizeof name, "  %s", names[i] != NULL ? names[i] : sm_origin_name(i));
        native_row(v, &table, name, &info->native.origins[i].live);
    }
    table_end(v, &table);
}

static void summary_table(struct view *v) {
    const struct sm_info *info = v->info;
    struct sm_table table;
    char name[64], number[SM_NUMBER_BYTES];
    table_begin(v, &table, "Memory");
    figures(v, &table, "allocated", info->all.samples, info->all.blocks);
    for (unsigned i = 0; i < SM_HEAPS; i++) {
        if (info->heaps[i].blocks == 0)
            continue;
        snprintf(name, sizeof name, "  %s%s", sm_heap_name(i), i < SM_HEAP_EXTERNAL ? " heap" : "");
        figures(v, &table, name, info->heaps[i].samples, info->heaps[i].blocks);
    }
    for (unsigned i = 1; i < SM_ORIGINS; i++) {
        if (info->origins[i].blocks == 0)
            continue;
        snprintf(name, sizeof name, "  by %s", sm_origin_name(i));
        figures(v, &table, name, info->origins[i].samples, info->origins[i].blocks);
    }
    figures(v, &table, "promoted", info->all.promoted_samples, UINT64_MAX);
    snprintf(name, sizeof name, "peak live, at %s", sm_number_duration(number, info->peak_ns));
    figures(v, &table, info->peak_samples > 0 ? name : "peak live", info->peak_samples, UINT64_MAX);
    figures(v, &table, "live at the end", info->live_samples, UINT64_MAX);
    table_end(v, &table);
}

static void size_table(struct view *v) {
    struct sm_table table;
    table_begin(v, &table, "Block size, words");
    for (unsigned i = 0; i < SM_SIZE_CLASSES; i++) {
        if (v->info->sizes[i].blocks > 0)
            figures(v, &table, sm_size_class_names[i], v->info->sizes[i].samples,
                    v->info->sizes[i].blocks);
    }
    table_end(v, &table);
}

static void domain_table(struct view *v) {
    struct sm_table table;
    char name[64];
    table_begin(v, &table, "Domain");
    for (uint32_t i = 0; i < v->info->n_domains && i < ROWS_SHOWN; i++) {
        const struct sm_info_domain *d = &v->info->domains[i];
        snprintf(name, sizeof name, "%" PRIu64, d->id);
        figures(v, &table, name, d->tally.samples, d->tally.blocks);
    }
    table_end(v, &table);
    if (v->info->n_domains > ROWS_SHOWN)
        sm_buffer_printf(v->out, "  ... %" PRIu32 " more; 'top --by domain' sorts them\n",
                         v->info->n_domains - ROWS_SHOWN);
}

static void thread_table(struct view *v) {
    struct sm_table table;
    char name[256];
    table_begin(v, &table, "Thread");
    for (uint32_t i = 0; i < v->info->n_owners && i < ROWS_SHOWN; i++) {
        const struct sm_info_owner *o = &v->info->owners[i];
        snprintf(name, sizeof name, "%" PRIu64 "%s%.100s%s, domain %" PRIu64, o->owner.tid,
                 o->owner.name[0] != 0 ? " '" : "", o->owner.name, o->owner.name[0] != 0 ? "'" : "",
                 o->owner.domain);
        figures(v, &table, name, o->tally.samples, o->tally.blocks);
    }
    table_end(v, &table);
    if (v->info->n_owners > ROWS_SHOWN)
        sm_buffer_printf(v->out, "  ... %" PRIu32 " more; 'top --by thread' sorts them\n",
                         v->info->n_owners - ROWS_SHOWN);
}

static void count_line(struct view *v, const char *name, uint64_t n, bool always) {
    char number[SM_NUMBER_BYTES];
    if (n == 0 && !always)
        return;
    sm_buffer_printf(v->out, "  %-22s %s\n", name, sm_number_count(number, n));
}

static void event_lines(struct view *v) {
    const struct sm_info *info = v->info;
    uint64_t allocations = info->all.blocks;
    char number[SM_NUMBER_BYTES];
    sm_buffer_char(v->out, '\n');
    sm_styled(v->out, v->options->colours, SM_BOLD, "Events");
    sm_buffer_char(v->out, '\n');
    count_line(v, "allocations sampled", allocations, true);
    if (v->meta->sample_rate > 0 || allocations > 0 || v->meta->native_interval_bytes == 0) {
        count_line(v, "promotions", info->n_promote, true);
        count_line(v, "collections", info->n_collect, true);
    }
    count_line(v, "native allocations", info->native.all.allocated.blocks, false);
    count_line(v, "freed", info->native.n_free, false);
    count_line(v, "other", info->n_other, false);
    count_line(v, "streams", sm_trace_n_streams(v->t), false);
    count_line(v, "deepest stack, frames", info->max_depth, false);
    if (allocations > 0)
        sm_buffer_printf(
            v->out, "  %-22s %s\n", "mean stack, frames",
            sm_number_significant(number, (double)info->sum_depth / (double)allocations, 3));
    count_line(v, "stacks cut", info->cut_stacks, false);
    count_line(v, "stacks empty", info->empty_stacks, false);
    count_line(v, "stacks lost", info->lost_stacks, false);
    count_line(v, "longest block, words", info->max_words, false);
    count_line(v, "longest native block", info->native.max_bytes, false);
    if (info->max_rss_bytes > 0)
        sm_buffer_printf(v->out, "  %-22s %s\n", "largest resident size",
                         sm_number_bytes(number, (double)info->max_rss_bytes, v->options->bytes));
    if (info->duration_ns > 0 && v->meta->sample_rate > 0)
        sm_buffer_printf(v->out, "  %-22s %s/s\n", "allocation rate",
                         sm_number_bytes(number,
                                         (double)info->all.samples / v->meta->sample_rate *
                                             v->word_bytes / ((double)info->duration_ns / 1e9),
                                         v->options->bytes));
    for (uint64_t i = 0; i < info->n_marks && i < SM_INFO_MARKS; i++) {
        sm_buffer_printf(v->out, "  mark at %-14s ", sm_number_duration(number, info->mark_ns[i]));
        safe(v, info->marks[i]);
        sm_buffer_char(v->out, '\n');
    }
    if (info->n_marks > SM_INFO_MARKS)
        sm_buffer_printf(v->out, "  ... %" PRIu64 " more marks\n", info->n_marks - SM_INFO_MARKS);
}

static void gc_lines(struct view *v) {
    char number[SM_NUMBER_BYTES];
    if (v->end->n_gc == 0)
        return;
    sm_buffer_char(v->out, '\n');
    sm_styled(v->out, v->options->colours, SM_BOLD, "The runtime's own counters at the end");
    sm_buffer_char(v->out, '\n');
    for (uint32_t i = 0; i < v->end->n_gc; i++) {
        const char *name = sm_counter_name(v->end->gc[i].counter);
        int64_t value = v->end->gc[i].value;
        uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
        sm_buffer_printf(v->out, "  %-22s %s%s", name != NULL ? name : "?", value < 0 ? "-" : "",
                         sm_number_count(number, size));
        if (name != NULL && strstr(name, "_words") != NULL)
            sm_buffer_printf(v->out, " (%s)",
                             sm_number_bytes(number, (double)size * v->word_bytes, false));
        sm_buffer_char(v->out, '\n');
    }
}

/* ---- losses and warnings ---- */

static void loss_lines(struct view *v) {
    const struct sm_loss *losses;
    size_t n = sm_trace_losses(v->t, &losses);
    char number[SM_NUMBER_BYTES];
    sm_buffer_char(v->out, '\n');
    if (n == 0) {
        if (!v->options->quick) {
            sm_styled(v->out, v->options->colours, SM_GREEN, "Nothing was lost.");
            sm_buffer_char(v->out, '\n');
        }
        return;
    }
    sm_styled(v->out, v->options->colours, SM_YELLOW, "Lost");
    sm_buffer_char(v->out, '\n');
    for (size_t i = 0; i < n; i++) {
        const struct sm_loss *l = &losses[i];
        sm_buffer_printf(v->out, "  %s: ", sm_loss_kind_name(l->kind));
        safe(v, l->detail);
        if (l->events > 0)
            sm_buffer_printf(v->out, " [%s%s %s]", l->events_known ? "" : "at least ",
                             sm_number_count(number, l->events),
                             l->kind == SM_LOSS_NAMES ? "places" : "events");
        if (l->bytes > 0)
            sm_buffer_printf(v->out, " [%s bytes at %" PRIu64 "]",
                             sm_number_count(number, l->bytes), l->offset);
        if (l->count > 1)
            sm_buffer_printf(v->out, " [%s times]", sm_number_count(number, l->count));
        sm_buffer_char(v->out, '\n');
    }
}

static void warning_lines(struct view *v) {
    struct sm_warnings w;
    sm_info_warnings(&w, v->t, v->info);
    if (w.n > 0) {
        sm_buffer_char(v->out, '\n');
        sm_styled(v->out, v->options->colours, SM_YELLOW, "Note");
        sm_buffer_char(v->out, '\n');
    }
    for (unsigned i = 0; i < w.n; i++) {
        sm_buffer_text(v->out, "  ");
        safe(v, w.texts[i]);
        sm_buffer_char(v->out, '\n');
    }
}

void sm_info_print(struct sm_buffer *out, struct sm_trace *t, const struct sm_info *info,
                   const struct sm_info_options *options) {
    struct view v = {.out = out,
                     .t = t,
                     .meta = sm_trace_meta(t),
                     .end = sm_trace_end(t),
                     .info = info,
                     .options = options};
    v.word_bytes = v.meta->word_bits / 8 != 0 ? v.meta->word_bits / 8 : 8;
    trace_lines(&v);
    program_lines(&v);
    end_line(&v);
    bool ocaml = v.meta->sample_rate > 0 || v.meta->native_interval_bytes == 0;
    if (info != NULL) {
        if (ocaml || info->all.blocks > 0)
            summary_table(&v);
        if (v.meta->native_interval_bytes != 0)
            native_table(&v);
        if (info->all.blocks > 0)
            size_table(&v);
        if (info->n_domains > 1)
            domain_table(&v);
        if (info->n_owners > 1)
            thread_table(&v);
        event_lines(&v);
    }
    gc_lines(&v);
    loss_lines(&v);
    warning_lines(&v);
}
