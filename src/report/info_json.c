/* `info --json`, and what is worth a warning. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analyze/estimate.h"
#include "report/info.h"
#include "report/naming.h"
#include "util/json.h"
#include "util/number.h"

static void warn(struct sm_warnings *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void warn(struct sm_warnings *w, const char *format, ...) {
    if (w->n == SM_WARNINGS)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(w->texts[w->n++], sizeof w->texts[0], format, args);
    va_end(args);
}

void sm_info_warnings(struct sm_warnings *w, struct sm_trace *t, const struct sm_info *info) {
    const struct sm_meta *m = sm_trace_meta(t);
    const struct sm_end *end = sm_trace_end(t);
    const char *tail;
    w->n = 0;
    if (m->missing)
        warn(w, "The header is missing: word size, start and sampling rate are guesses.");
    if (m->format == SM_TRACE_NATIVE && !end->present)
        warn(w, "The trace was not closed: the program was killed, or it still runs.");
    if (sm_trace_used_tail(t, &tail))
        warn(w, "Its last events come from the side file %.200s.", tail);
    if (end->present && end->forks > 0)
        warn(w,
             "%" PRIu64 " forked children are not in this trace; 'statmem record "
             "--follow-children' records each.",
             end->forks);
    if (info == NULL)
        return;
    const struct sm_loss *lost;
    if (info->all.blocks == 0 && info->native.all.allocated.blocks == 0 &&
        sm_trace_losses(t, &lost) == 0)
        warn(w, "There is no sample: the program allocated little for this sampling rate, or "
                "nothing that is recorded.");
    /* The runtime seeds its sampler by the domain's slot. */
    if (m->ocaml_version[0] == '5' && info->n_domains > 1 && info->n_domains > info->n_streams)
        warn(w,
             "%" PRIu32 " domains ran in %" PRIu32
             " slot%s, one after the other. OCaml 5 gives each "
             "domain of a slot the same random numbers, so that samples of many short, equal "
             "domains "
             "are not independent: the intervals are too narrow.",
             info->n_domains, info->n_streams, info->n_streams == 1 ? "" : "s");
    if (info->lost_stacks > 0)
        warn(w,
             "%" PRIu64
             " stacks were cut by memtrace at the allocation's end; their samples cannot be "
             "told where they belong.",
             info->lost_stacks);
}

static void estimate(struct sm_json *j, const char *key, uint64_t samples,
                     const struct sm_meta *m) {
    double word = m->word_bits / 8 != 0 ? m->word_bits / 8 : 8;
    struct sm_estimate e = sm_estimate(samples, m->sample_rate, word);
    sm_json_open(j, key, '{');
    sm_json_u64(j, "samples", samples);
    sm_json_double(j, "bytes", e.value);
    sm_json_double(j, "bytes_low", e.low);
    sm_json_double(j, "bytes_high", e.high);
    sm_json_close(j, '}');
}

static void tally(struct sm_json *j, const struct sm_tally *t, const struct sm_meta *m) {
    sm_json_u64(j, "allocations", t->blocks);
    sm_json_u64(j, "samples", t->samples);
    estimate(j, "allocated", t->samples, m);
    estimate(j, "promoted", t->promoted_samples, m);
    estimate(j, "live", t->live_samples, m);
}

static void native_estimate(struct sm_json *j, const char *key, const struct sm_byte_sum *sum,
                            const struct sm_meta *m) {
    struct sm_estimate e = sm_byte_estimate(sum, (double)m->native_interval_bytes);
    sm_json_open(j, key, '{');
    sm_json_u64(j, "samples", e.samples);
    sm_json_double(j, "bytes", e.value);
    sm_json_double(j, "bytes_low", e.low);
    sm_json_double(j, "bytes_high", e.high);
    sm_json_close(j, '}');
}

static void native_figures(struct sm_json *j, const struct sm_info *info, const struct sm_meta *m) {
    if (m->native_interval_bytes == 0) {
        sm_json_null(j, "native");
        return;
    }
    sm_json_open(j, "native", '{');
    sm_json_u64(j, "interval_bytes", m->native_interval_bytes);
    native_estimate(j, "allocated", &info->native.all.allocated, m);
    native_estimate(j, "live", &info->native.all.live, m);
    native_estimate(j, "peak", &info->native.peak, m);
    sm_json_i64(j, "peak_ns", info->native.peak_ns);
    sm_json_u64(j, "max_bytes", info->native.max_bytes);
    sm_json_u64(j, "freed", info->native.n_free);
    sm_json_u64(j, "streams", info->native.n_streams);
    sm_json_open(j, "origins", '{');
    for (unsigned i = 0; i < SM_ORIGINS; i++) {
        if (info->native.origins[i].allocated.blocks == 0)
            continue;
        sm_json_open(j, sm_native_origin_name(i), '{');
        native_estimate(j, "allocated", &info->native.origins[i].allocated, m);
        native_estimate(j, "live", &info->native.origins[i].live, m);
        sm_json_close(j, '}');
    }
    sm_json_close(j, '}');
    sm_json_close(j, '}');
}

static void header(struct sm_json *j, struct sm_trace *t) {
    const struct sm_meta *m = sm_trace_meta(t);
    static const char *const modes[] = {"unknown", "linked", "injected", "attached", "converted"};
    static const char *const kinds[] = {"unknown", "native", "bytecode"};
    sm_json_open(j, "header", '{');
    sm_json_bool(j, "missing", m->missing);
    sm_json_double(j, "sample_rate", m->sample_rate > 0 ? m->sample_rate : 0.0 / 0.0);
    sm_json_text(j, "rate_origin", sm_rate_origin_name(m->rate_origin));
    sm_json_u64(j, "word_bits", m->word_bits);
    sm_json_u64(j, "tick_ns", m->tick_ns);
    sm_json_i64(j, "start_unix_ns", m->start_real_ns);
    sm_json_text(j, "clock", m->clock == SM_CLOCK_REALTIME ? "realtime" : "monotonic");
    sm_json_text(j, "executable", m->executable);
    sm_json_u64(j, "pid", m->pid);
    if (m->parent_pid != 0)
        sm_json_u64(j, "parent_pid", m->parent_pid);
    sm_json_text(j, "host", m->host);
    sm_json_open(j, "args", '[');
    const char *arg = m->args;
    for (uint32_t i = 0; i < m->n_args; i++, arg += strlen(arg) + 1)
        sm_json_text(j, NULL, arg);
    sm_json_close(j, ']');
    if (m->has_context)
        sm_json_text(j, "context", m->context);
    else
        sm_json_null(j, "context");
    sm_json_text(j, "ocaml_version", m->ocaml_version);
    sm_json_text(j, "ocaml_kind", m->ocaml_kind <= SM_OCAML_BYTECODE ? kinds[m->ocaml_kind] : "?");
    sm_json_text(j, "mode", m->mode <= SM_MODE_CONVERTED ? modes[m->mode] : "?");
    sm_json_text(j, "runtime_params", m->runtime_params);
    sm_json_u64(j, "initial_domain", m->initial_domain);
    sm_json_text(j, "writer", m->writer);
    sm_json_text(j, "arch", m->arch);
    char id[129];
    uint32_t bytes = m->build_id_bytes < 64 ? m->build_id_bytes : 64;
    for (uint32_t i = 0; i < bytes; i++)
        snprintf(id + 2 * i, 3, "%02x", m->build_id[i]);
    id[2 * bytes] = 0;
    sm_json_text(j, "build_id", id);
    sm_json_u64(j, "depth_limit", m->depth_limit);
    sm_json_u64(j, "imported_from_memtrace", m->imported_from);
    sm_json_close(j, '}');
}

static void end_figures(struct sm_json *j, const struct sm_end *end) {
    if (!end->present) {
        sm_json_null(j, "end");
        return;
    }
    static const char *const reasons[] = {"unknown",       "program exit",       "stopped",
                                          "output failed", "closed after death", "converted"};
    sm_json_open(j, "end", '{');
    sm_json_text(j, "reason", end->reason <= SM_REASON_CONVERTED ? reasons[end->reason] : "?");
    sm_json_u64(j, "events", end->n_events);
    sm_json_u64(j, "discarded", end->discarded);
    sm_json_u64(j, "forks", end->forks);
    sm_json_u64(j, "owners", end->owners);
    sm_json_u64(j, "peak_streams", end->peak_streams);
    sm_json_u64(j, "recovered", end->recovered);
    sm_json_u64(j, "lost_events", end->lost_events);
    sm_json_u64(j, "lost_bytes", end->lost_bytes);
    sm_json_u64(j, "lost_names", end->lost_names);
    if (end->has_exit_status)
        sm_json_u64(j, "exit_status", end->exit_status);
    sm_json_open(j, "gc", '{');
    for (uint32_t i = 0; i < end->n_gc; i++) {
        char number[32];
        const char *name = sm_counter_name(end->gc[i].counter);
        snprintf(number, sizeof number, "counter_%" PRIu64, end->gc[i].counter);
        sm_json_i64(j, name != NULL ? name : number, end->gc[i].value);
    }
    sm_json_close(j, '}');
    sm_json_close(j, '}');
}

static void losses(struct sm_json *j, struct sm_trace *t) {
    const struct sm_loss *list;
    size_t n = sm_trace_losses(t, &list);
    sm_json_open(j, "losses", '[');
    for (size_t i = 0; i < n; i++) {
        sm_json_open(j, NULL, '{');
        sm_json_text(j, "kind", sm_loss_kind_name(list[i].kind));
        sm_json_text(j, "detail", list[i].detail);
        sm_json_u64(j, "events", list[i].events);
        sm_json_bool(j, "events_known", list[i].events_known);
        sm_json_u64(j, "offset", list[i].offset);
        sm_json_u64(j, "bytes", list[i].bytes);
        sm_json_u64(j, "count", list[i].count);
        if (list[i].stream != UINT32_MAX)
            sm_json_u64(j, "stream", list[i].stream);
        sm_json_close(j, '}');
    }
    sm_json_close(j, ']');
}

static void figures(struct sm_json *j, struct sm_trace *t, const struct sm_info *info) {
    const struct sm_meta *m = sm_trace_meta(t);
    sm_json_i64(j, "duration_ns", info->duration_ns);
    sm_json_i64(j, "last_event_ns", info->last_ns);
    sm_json_open(j, "events", '{');
    sm_json_u64(j, "alloc_minor", info->n_alloc[SM_HEAP_MINOR]);
    sm_json_u64(j, "alloc_major", info->n_alloc[SM_HEAP_MAJOR]);
    sm_json_u64(j, "alloc_external", info->n_alloc[SM_HEAP_EXTERNAL]);
    sm_json_u64(j, "alloc_native", info->n_alloc[SM_HEAP_NATIVE]);
    sm_json_u64(j, "promote", info->n_promote);
    sm_json_u64(j, "collect", info->n_collect);
    sm_json_u64(j, "other", info->n_other);
    sm_json_close(j, '}');
    sm_json_u64(j, "samples", info->all.samples);
    sm_json_u64(j, "words", info->words);
    sm_json_u64(j, "max_words", info->max_words);
    sm_json_u64(j, "max_depth", info->max_depth);
    sm_json_u64(j, "sum_depth", info->sum_depth);
    sm_json_open(j, "stacks", '{');
    sm_json_u64(j, "empty", info->empty_stacks);
    sm_json_u64(j, "cut", info->cut_stacks);
    sm_json_u64(j, "lost", info->lost_stacks);
    sm_json_close(j, '}');
    sm_json_u64(j, "orphans", info->n_orphans);
    estimate(j, "allocated", info->all.samples, m);
    estimate(j, "promoted", info->all.promoted_samples, m);
    estimate(j, "live", info->live_samples, m);
    estimate(j, "peak", info->peak_samples, m);
    sm_json_i64(j, "peak_ns", info->peak_ns);
    if (info->max_rss_bytes > 0)
        sm_json_u64(j, "max_rss_bytes", info->max_rss_bytes);
    native_figures(j, info, m);
    sm_json_open(j, "heaps", '{');
    for (unsigned i = 0; i < SM_HEAPS; i++) {
        if (i == SM_HEAP_NATIVE && m->native_interval_bytes != 0)
            continue; /* above, by another estimate */
        sm_json_open(j, sm_heap_name(i), '{');
        tally(j, &info->heaps[i], m);
        sm_json_close(j, '}');
    }
    sm_json_close(j, '}');
    sm_json_open(j, "origins", '{');
    for (unsigned i = 0; i <= SM_ORIGIN_REPORTED; i++) {
        sm_json_open(j, sm_origin_name(i), '{');
        tally(j, &info->origins[i], m);
        sm_json_close(j, '}');
    }
    sm_json_close(j, '}');
    sm_json_open(j, "sizes", '[');
    for (unsigned i = 0; i < SM_SIZE_CLASSES; i++) {
        sm_json_open(j, NULL, '{');
        sm_json_text(j, "words", sm_size_class_names[i]);
        tally(j, &info->sizes[i], m);
        sm_json_close(j, '}');
    }
    sm_json_close(j, ']');
    sm_json_open(j, "domains", '[');
    for (uint32_t i = 0; i < info->n_domains; i++) {
        sm_json_open(j, NULL, '{');
        sm_json_u64(j, "id", info->domains[i].id);
        tally(j, &info->domains[i].tally, m);
        sm_json_u64(j, "owners", info->domains[i].n_owners);
        sm_json_close(j, '}');
    }
    sm_json_close(j, ']');
    sm_json_open(j, "threads", '[');
    for (uint32_t i = 0; i < info->n_owners; i++) {
        const struct sm_owner *o = &info->owners[i].owner;
        sm_json_open(j, NULL, '{');
        sm_json_u64(j, "stream", o->stream);
        sm_json_u64(j, "domain", o->domain);
        sm_json_u64(j, "tid", o->tid);
        sm_json_text(j, "name", o->name);
        tally(j, &info->owners[i].tally, m);
        sm_json_close(j, '}');
    }
    sm_json_close(j, ']');
    sm_json_open(j, "marks", '[');
    for (uint64_t i = 0; i < info->n_marks && i < SM_INFO_MARKS; i++) {
        sm_json_open(j, NULL, '{');
        sm_json_i64(j, "time_ns", info->mark_ns[i]);
        sm_json_text(j, "text", info->marks[i]);
        sm_json_close(j, '}');
    }
    sm_json_close(j, ']');
}

void sm_info_json(struct sm_buffer *out, struct sm_trace *t, const struct sm_info *info,
                  const struct sm_info_options *options) {
    struct sm_json j;
    const char *tail;
    sm_json_init(&j, out, false);
    sm_json_open(&j, NULL, '{');
    sm_json_text(&j, "file", options->path);
    sm_json_text(&j, "format", sm_format_name(sm_trace_meta(t)));
    sm_json_u64(&j, "file_bytes", sm_trace_bytes(t));
    header(&j, t);
    end_figures(&j, sm_trace_end(t));
    if (sm_trace_used_tail(t, &tail))
        sm_json_text(&j, "side_file", tail);
    sm_json_u64(&j, "streams", sm_trace_n_streams(t));
    if (info != NULL)
        figures(&j, t, info);
    losses(&j, t);
    struct sm_warnings w;
    sm_info_warnings(&w, t, info);
    sm_json_open(&j, "warnings", '[');
    for (unsigned i = 0; i < w.n; i++)
        sm_json_text(&j, NULL, w.texts[i]);
    sm_json_close(&j, ']');
    sm_json_close(&j, '}');
    sm_json_end(&j);
}
