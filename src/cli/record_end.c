/* The program's own stdout and stderr may be anything; our summary goes to stderr, after it has ended. */
#include "cli/record_end.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyze/estimate.h"
#include "cli/output.h"
#include "cli/path_search.h"
#include "convert/convert.h"
#include "convert/finalise.h"
#include "report/info.h"
#include "symbols/name_trace.h"
#include "util/json.h"
#include "util/number.h"
#include "util/text.h"

/* One trace, closed and read. */
struct summary {
    const char *path;
    char *memtrace; /* path of the converted file; NULL = none */
    uint64_t bytes;
    uint64_t samples;
    struct sm_estimate allocated; /* bytes */
    uint32_t n_domains;
    uint64_t discarded;
    uint64_t recovered;
    uint64_t forks;
    bool has_ocaml;
    uint64_t native_interval_bytes; /* 0 = native memory was not recorded */
    struct sm_estimate native_allocated, native_live;
    uint64_t codes, codes_named; /* places in machine code */
    bool readable;
};

static void close_trace(const struct sm_record_end *e, struct summary *s) {
    struct sm_finalise_options options = {.compress = e->compress,
                                          .has_exit_status = true,
                                          .exit_status = (uint32_t)e->launch->wait_status};
    struct sm_finalise_result result = {0};
    struct sm_naming naming = {.options = {.debuginfod = e->debuginfod}};
    struct sm_error err;
    struct stat st;
    if (e->symbolize) {
        options.add_names = sm_naming_add;
        options.add_names_ctx = &naming;
    }
    /* On a full disk the program has told it already, and nothing more is lost: the trace is read as it is. */
    if (sm_finalise_trace(s->path, &options, &result, &err) != SM_OK && !result.writing_failed)
        sm_complain("statmem record: %s", err.text);
    s->recovered = result.events_recovered;
    s->codes = naming.n_codes;
    s->codes_named = naming.n_named;
    sm_naming_release(&naming);
    if (stat(s->path, &st) == 0)
        s->bytes = (uint64_t)st.st_size;
}

static void read_trace(struct summary *s) {
    struct sm_trace *trace;
    struct sm_info info;
    struct sm_error err;
    if (sm_trace_open(&trace, s->path, NULL, &err) != SM_OK) {
        sm_complain("statmem record: %s", err.text);
        return;
    }
    if (sm_info_collect(&info, trace, &err) == SM_OK) {
        const struct sm_meta *meta = sm_trace_meta(trace);
        const struct sm_end *end = sm_trace_end(trace);
        s->readable = true;
        s->samples = info.all.samples;
        s->allocated = sm_estimate(s->samples, meta->sample_rate, meta->word_bits / 8.0);
        s->n_domains = info.n_domains;
        s->has_ocaml = meta->sample_rate > 0;
        s->native_interval_bytes = meta->native_interval_bytes;
        s->native_allocated =
            sm_byte_estimate(&info.native.all.allocated, (double)meta->native_interval_bytes);
        s->native_live =
            sm_byte_estimate(&info.native.all.live, (double)meta->native_interval_bytes);
        s->discarded = end->present ? end->discarded : 0;
        s->forks = end->present ? end->forks : 0;
        sm_info_release(&info);
    } else {
        sm_complain("statmem record: %s", err.text);
    }
    sm_trace_free(trace);
}

static void convert_trace(struct summary *s) {
    struct sm_error err;
    size_t n = strlen(s->path);
    bool stm = n > 4 && strcmp(s->path + n - 4, ".stm") == 0;
    char *stem = sm_concat(s->path, "", "");
    if (stm)
        stem[n - 4] = 0;
    s->memtrace = sm_concat(stem, ".ctf", "");
    free(stem);
    if (sm_convert_memtrace_file(s->path, s->memtrace, &err) != SM_OK) {
        sm_complain("statmem record: %s", err.text);
        free(s->memtrace);
        s->memtrace = NULL;
    }
}

static void print_allocated(struct sm_buffer *out, const char *what, const struct sm_estimate *e) {
    char a[SM_NUMBER_BYTES], b[SM_NUMBER_BYTES], c[SM_NUMBER_BYTES], d[SM_NUMBER_BYTES];
    sm_buffer_printf(out, "statmem: %s%s sample%s, %s allocated", what,
                     sm_number_count(a, e->samples), e->samples == 1 ? "" : "s",
                     sm_number_bytes(b, e->value, false));
    if (!e->exact)
        sm_buffer_printf(out, " (95%%: %s to %s)", sm_number_bytes(c, e->low, false),
                         sm_number_bytes(d, e->high, false));
}

static void print_text(struct sm_buffer *out, const struct summary *s) {
    char a[SM_NUMBER_BYTES], b[SM_NUMBER_BYTES];
    if (s->has_ocaml || s->samples > 0) {
        print_allocated(out, "", &s->allocated);
        sm_buffer_printf(out, ", %u domain%s\n", s->n_domains, s->n_domains == 1 ? "" : "s");
    }
    if (s->native_interval_bytes != 0) {
        print_allocated(out, "native memory: ", &s->native_allocated);
        sm_buffer_printf(out, ", %s live at the end\n",
                         sm_number_bytes(a, s->native_live.value, false));
    }
    if (s->discarded > 0)
        sm_buffer_printf(out, "statmem: %s events could not be kept; statmem info tells why\n",
                         sm_number_count(a, s->discarded));
    if (s->recovered > 0)
        sm_buffer_printf(
            out,
            "statmem: the program did not end by exit; %s events were taken over from the side "
            "file\n",
            sm_number_count(a, s->recovered));
    if (s->codes_named < s->codes)
        sm_buffer_printf(out,
                         "statmem: %s of %s places in C code have no name; statmem symbolize tells "
                         "why\n",
                         sm_number_count(a, s->codes - s->codes_named),
                         sm_number_count(b, s->codes));
    sm_buffer_text(out, "statmem: wrote ");
    sm_text_safe(out, s->path, strlen(s->path));
    sm_buffer_printf(out, " (%s)", sm_number_bytes(a, (double)s->bytes, false));
    if (s->memtrace != NULL) {
        sm_buffer_text(out, " and ");
        sm_text_safe(out, s->memtrace, strlen(s->memtrace));
    }
    sm_buffer_char(out, '\n');
}

static void print_next(struct sm_buffer *out, const char *path) {
    sm_buffer_text(out, "statmem: next: statmem top ");
    sm_text_safe(out, path, strlen(path));
    sm_buffer_char(out, '\n');
}

static void print_json_estimate(struct sm_json *j, const char *key, const struct sm_estimate *e) {
    sm_json_open(j, key, '{');
    sm_json_u64(j, "samples", e->samples);
    sm_json_double(j, "estimate", e->value);
    sm_json_double(j, "low", e->low);
    sm_json_double(j, "high", e->high);
    sm_json_close(j, '}');
}

static void print_json(struct sm_json *j, const struct summary *s) {
    sm_json_open(j, NULL, '{');
    sm_json_text(j, "path", s->path);
    sm_json_u64(j, "bytes", s->bytes);
    sm_json_u64(j, "samples", s->samples);
    print_json_estimate(j, "allocated_bytes", &s->allocated);
    if (s->native_interval_bytes != 0) {
        sm_json_open(j, "native", '{');
        sm_json_u64(j, "interval_bytes", s->native_interval_bytes);
        print_json_estimate(j, "allocated_bytes", &s->native_allocated);
        print_json_estimate(j, "live_bytes", &s->native_live);
        sm_json_close(j, '}');
    }
    sm_json_u64(j, "domains", s->n_domains);
    sm_json_u64(j, "discarded", s->discarded);
    sm_json_u64(j, "recovered", s->recovered);
    sm_json_u64(j, "forks", s->forks);
    sm_json_u64(j, "codes", s->codes);
    sm_json_u64(j, "codes_named", s->codes_named);
    if (s->memtrace != NULL)
        sm_json_text(j, "memtrace", s->memtrace);
    sm_json_close(j, '}');
}

/* What happened in the run that the figures do not tell: one line each. */
static void print_remarks(struct sm_buffer *out, const struct sm_record_end *e, uint64_t forks) {
    const struct sm_answer_line *line;
    size_t n = sm_answers_count(e->answers, "child");
    if (sm_answers_find(e->answers, "yielded", 0) != NULL)
        sm_buffer_text(
            out, "statmem: the program started Gc.Memprof itself; only one profile can run, so the "
                 "recording of OCaml's memory ended there\n");
    if (!e->follow && (line = sm_answers_find(e->answers, "refused", 0)) != NULL) {
        sm_buffer_text(out, "statmem: OCaml's memory was not recorded: ");
        sm_text_safe(out, line->text, strlen(line->text));
        sm_buffer_char(out, '\n');
    }
    if (sm_answers_find(e->answers, "ownmalloc", 0) != NULL)
        sm_buffer_text(out,
                       "statmem: the executable has a malloc of its own, which libraries use as "
                       "well: its native memory cannot be seen\n");
    if (n > 0 && !e->follow)
        sm_buffer_printf(
            out,
            "statmem: %zu OCaml child process%s not recorded; --follow-children records "
            "them too\n",
            n, n == 1 ? " was" : "es were");
    n = sm_answers_count(e->answers, "other");
    if (n > 0 && !e->follow)
        sm_buffer_printf(out,
                         "statmem: %zu other child process%s not recorded; --follow-children "
                         "records them too\n",
                         n, n == 1 ? " was" : "es were");
    if (forks > 0 && !e->follow)
        sm_buffer_printf(
            out,
            "statmem: the program forked %llu time%s, and the copies went on unrecorded; "
            "--follow-children records them too\n",
            (unsigned long long)forks, forks == 1 ? "" : "s");
    if (e->follow && (line = sm_answers_find(e->answers, "refused", 0)) != NULL) {
        sm_buffer_printf(out,
                         "statmem: process %llu was not recorded: ", (unsigned long long)line->pid);
        sm_text_safe(out, line->text, strlen(line->text));
        sm_buffer_char(out, '\n');
    }
}

/* A program that took another's place by exec has begun the trace of that name anew. */
static bool replaced(const struct sm_answers *a, size_t line) {
    for (size_t i = line + 1; i < a->n; i++) {
        if (strcmp(a->lines[i].kind, "started") == 0 &&
            strcmp(a->lines[i].text, a->lines[line].text) == 0)
            return true;
    }
    return false;
}

void sm_record_end(const struct sm_record_end *e) {
    struct sm_buffer out;
    struct sm_json j;
    size_t n_traces = 0;
    uint64_t forks = 0, most = 0;
    const char *largest = NULL; /* the trace with most samples */
    sm_buffer_init(&out, STDERR_FILENO);
    sm_json_init(&j, &out, true);
    if (e->json) {
        sm_json_open(&j, NULL, '{');
        sm_json_i64(&j, "exit_code", sm_launch_exit_code(e->launch->wait_status));
        sm_json_double(&j, "seconds", (double)e->launch->elapsed_ns * 1e-9);
        sm_json_u64(&j, "peak_rss_bytes", e->launch->peak_rss_bytes);
        sm_json_open(&j, "traces", '[');
    }
    for (size_t i = 0; i < e->answers->n; i++) {
        if (strcmp(e->answers->lines[i].kind, "started") != 0 || replaced(e->answers, i))
            continue;
        struct summary s = {.path = e->answers->lines[i].text};
        n_traces++;
        struct stat st;
        if (stat(s.path, &st) == 0 && !S_ISREG(st.st_mode)) {
            /* A FIFO or device: the trace has gone through it, and opening it could wait for ever. */
            if (e->json) {
                print_json(&j, &s);
            } else if (!e->quiet) {
                sm_buffer_text(&out, "statmem: the trace went to ");
                sm_text_safe(&out, s.path, strlen(s.path));
                sm_buffer_text(&out, ", which is no file: no summary\n");
            }
            continue;
        }
        close_trace(e, &s);
        read_trace(&s);
        forks += s.forks;
        if (e->memtrace)
            convert_trace(&s);
        if (e->json)
            print_json(&j, &s);
        else if (!e->quiet && s.readable)
            print_text(&out, &s);
        if (s.readable && (largest == NULL || s.samples > most)) {
            largest = s.path;
            most = s.samples;
        }
        free(s.memtrace);
    }
    struct sm_error why = {""};
    if (n_traces == 0)
        sm_explain_nothing(e->answers, (uint64_t)e->launch->pid, e->program, e->follow, &why);
    if (e->json) {
        sm_json_close(&j, ']');
        if (n_traces == 0)
            sm_json_text(&j, "nothing_recorded", why.text);
        sm_json_close(&j, '}');
        sm_json_end(&j);
    } else if (n_traces == 0) {
        sm_buffer_text(&out, "statmem: ");
        sm_text_safe(&out, why.text, strlen(why.text));
        sm_buffer_char(&out, '\n');
    } else {
        print_remarks(&out, e, forks);
        if (!e->quiet && largest != NULL)
            print_next(&out, largest);
    }
    sm_buffer_flush(&out);
    sm_buffer_release(&out);
}
