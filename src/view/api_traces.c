/* The API's `traces`, `filter`, `search` and `source`. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/memory.h"
#include "report/naming.h"
#include "report/query.h"
#include "util/memory.h"
#include "view/api_internal.h"

/* Points of a counter, or moments of memory, that are sent at most. */
enum { COUNTER_POINTS = 2000 };

static void put_lanes(struct sm_json *j, const struct sm_analysis *a) {
    sm_json_open(j, "lanes", '[');
    for (uint32_t i = 0; i < a->n_lanes; i++) {
        const struct sm_lane *l = &a->lanes[i];
        sm_json_open(j, NULL, '{');
        sm_json_u64(j, "id", i);
        sm_json_u64(j, "domain", l->domain);
        sm_json_u64(j, "thread", l->tid);
        sm_json_text(j, "name", sm_text(a, l->name));
        sm_json_bool(j, "native", l->kind == SM_OWNER_NATIVE);
        sm_json_close(j, '}');
    }
    sm_json_close(j, ']');
    sm_json_open(j, "domains", '[');
    for (uint32_t i = 0; i < a->n_lanes; i++) {
        bool seen = a->lanes[i].kind == SM_OWNER_NATIVE;
        for (uint32_t k = 0; k < i && !seen; k++)
            seen = a->lanes[k].kind != SM_OWNER_NATIVE && a->lanes[k].domain == a->lanes[i].domain;
        if (!seen)
            sm_json_u64(j, NULL, a->lanes[i].domain);
    }
    sm_json_close(j, ']');
}

/* The samples of one counter, thinned evenly to COUNTER_POINTS, the last one kept. */
static void put_samples(struct sm_json *j, const struct sm_analysis *a, uint32_t counter,
                        uint32_t n, bool times) {
    uint32_t step = (n + COUNTER_POINTS - 1) / COUNTER_POINTS, at = 0;
    sm_json_open(j, times ? "ns" : "values", '[');
    for (uint32_t i = 0; i < a->n_counters; i++) {
        if (a->counters[i].counter == counter && (at++ % step == 0 || at == n))
            sm_json_i64(j, NULL, times ? a->counters[i].ns : a->counters[i].value);
    }
    sm_json_close(j, ']');
}

static void put_counters(struct sm_json *j, const struct sm_analysis *a) {
    sm_json_open(j, "counters", '[');
    for (uint32_t counter = 0; counter < 64; counter++) {
        const char *name = sm_counter_name(counter);
        uint32_t n = 0;
        for (uint32_t i = 0; i < a->n_counters; i++)
            n += a->counters[i].counter == counter;
        if (name == NULL || n == 0)
            continue;
        sm_json_open(j, NULL, '{');
        sm_json_text(j, "name", name);
        sm_json_text(j, "unit",
                     strstr(name, "bytes") != NULL   ? "bytes"
                     : strstr(name, "words") != NULL ? "words"
                     : strstr(name, "_ns") != NULL   ? "ns"
                                                     : "count");
        put_samples(j, a, counter, n, true);
        put_samples(j, a, counter, n, false);
        sm_json_close(j, '}');
    }
    sm_json_close(j, ']');
    sm_json_open(j, "marks", '[');
    for (uint32_t i = 0; i < a->n_marks; i++) {
        sm_json_open(j, NULL, '{');
        sm_json_i64(j, "ns", a->marks[i].ns);
        sm_json_text(j, "text", sm_text(a, a->marks[i].text));
        sm_json_close(j, '}');
    }
    sm_json_close(j, ']');
}

static void put_memory(struct sm_json *j, const struct sm_asked *asked) {
    struct sm_memory m;
    if (sm_memory_make(&m, asked)) {
        sm_json_open(j, "memory", '{');
        sm_memory_members(j, &m);
        sm_memory_columns(j, &m, COUNTER_POINTS);
        sm_json_close(j, '}');
    } else {
        sm_json_null(j, "memory");
    }
    sm_memory_release(&m);
}

static void put_meta(struct sm_json *j, const struct sm_analysis *a) {
    const struct sm_meta *m = &a->meta;
    sm_json_text(j, "format", sm_format_name(m));
    sm_json_text(j, "executable", m->executable);
    sm_json_open(j, "args", '[');
    const char *arg = m->args;
    for (uint32_t i = 0; i < m->n_args; i++, arg += strlen(arg) + 1)
        sm_json_text(j, NULL, arg);
    sm_json_close(j, ']');
    sm_json_text(j, "host", m->host);
    sm_json_u64(j, "pid", m->pid);
    sm_json_text(j, "context", m->context);
    sm_json_text(j, "ocaml_version", m->ocaml_version);
    sm_json_u64(j, "word_bytes", a->word_bytes);
    sm_json_i64(j, "start_real_ns", m->start_real_ns);
    bool known = m->sample_rate > 0;
    sm_json_double(j, "sample_rate", known ? m->sample_rate : NAN);
    sm_json_double(j, "bytes_per_sample", known ? a->word_bytes / m->sample_rate : NAN);
    sm_json_bool(j, "mixed", a->mixed);
    sm_json_i64(j, "first_ns", a->first_ns);
    sm_json_i64(j, "last_ns", a->last_ns);
    sm_json_u64(j, "events", a->n_events);
    sm_json_u64(j, "rows", a->rows.n);
    sm_json_u64(j, "bytes", a->trace_bytes);
    sm_json_bool(j, "closed", a->end.present);
}

static void put_ready(struct sm_json *j, const struct sm_analysis *a) {
    struct sm_weight allocated = {.kind = SM_WEIGHT_ALLOCATED},
                     peak = {.kind = SM_WEIGHT_LIVE_PEAK};
    struct sm_weigher w;
    put_meta(j, a);
    sm_weigher_init(&w, a, NULL, &allocated, 0);
    sm_json_u64(j, "samples", sm_weigh(&w, 0).samples);
    sm_weigher_release(&w);
    sm_weigher_init(&w, a, NULL, &peak, 0);
    struct sm_sum sum = sm_weigh(&w, 0);
    sm_json_i64(j, "peak_ns", a->peak.ns);
    sm_json_sum(j, "peak", &w, &sum);
    sm_weigher_release(&w);
    put_lanes(j, a);
    put_counters(j, a);
    struct sm_asked asked = {.a = a, .filter_text = ""};
    put_memory(j, &asked);
    sm_json_losses(j, &asked);
}

void sm_api_traces(struct sm_answer *a) {
    static const char *const states[] = {"loading", "ready", "failed"};
    struct sm_json *j = &a->j;
    sm_json_u64(j, "version", 1);
    sm_json_text(j, "statmem", SM_VERSION);
    sm_json_open(j, "traces", '[');
    for (uint32_t i = 0; i < sm_traces_count(a->api->traces); i++) {
        struct sm_viewed v;
        struct sm_snapshot *s = sm_traces_hold(a->api->traces, i);
        sm_traces_state(a->api->traces, i, &v);
        const char *slash = strrchr(v.path, '/');
        sm_json_open(j, NULL, '{');
        sm_json_u64(j, "id", i);
        sm_json_text(j, "path", v.path);
        sm_json_text(j, "name", slash != NULL ? slash + 1 : v.path);
        sm_json_text(j, "state",
                     states[s == NULL && v.state == SM_TRACE_READY ? SM_TRACE_LOADING : v.state]);
        sm_json_double(j, "progress", v.progress);
        sm_json_text(j, "error", v.error);
        sm_json_u64(j, "revision", s != NULL ? s->revision : v.revision);
        sm_json_bool(j, "following", v.following);
        sm_json_bool(j, "changed_on_disk", v.changed_on_disk);
        sm_json_bool(j, "from_cache", s != NULL && s->a->from_cache);
        sm_json_double(j, "load_seconds", v.load_seconds);
        if (s != NULL) {
            put_ready(j, s->a);
            sm_traces_drop(a->api->traces, s);
        }
        sm_json_close(j, '}');
    }
    sm_json_close(j, ']');
}

void sm_api_filter(struct sm_answer *a) {
    const char *text = sm_parameter(a->r, "text");
    struct sm_filter_error err;
    if (text == NULL)
        text = "";
    struct sm_filter *f = sm_filter_parse(text, strlen(text), &err);
    if (f == NULL) {
        /* Asking is no mistake: the answer tells what is. */
        sm_json_text(&a->j, "error", err.text);
        sm_json_u64(&a->j, "column", err.column);
        sm_json_text(&a->j, "expected", err.expected);
        return;
    }
    struct sm_buffer b;
    sm_buffer_init(&b, -1);
    sm_filter_print(&b, f);
    sm_json_bytes(&a->j, "canonical", b.data, b.used);
    sm_json_open(&a->j, "clauses", '[');
    const struct sm_filter_node *n = f->root;
    if (n != NULL && n->kind == SM_FILTER_AND)
        n = n->first;
    for (; n != NULL; n = n == f->root ? NULL : n->next) {
        b.used = 0;
        sm_filter_print_node(&b, n);
        sm_json_bytes(&a->j, NULL, b.data, b.used);
    }
    sm_json_close(&a->j, ']');
    sm_buffer_release(&b);
    sm_filter_free(f);
}

void sm_api_search(struct sm_answer *a) {
    const char *text = sm_parameter(a->r, "text");
    enum sm_key_kind kind = SM_KEY_FUNCTION;
    if (!sm_parameter_key(a, &kind))
        return;
    struct sm_view v;
    struct sm_buffer id;
    uint64_t found = 0;
    sm_asked_view(&a->asked, &v, kind);
    sm_buffer_init(&id, -1);
    sm_json_open(&a->j, "places", '[');
    for (uint32_t key = 1; key < v.n_keys && text != NULL && text[0] != 0; key++) {
        id.used = 0;
        sm_place_id(&id, &v, key);
        if (strcasestr(sm_buffer_string(&id), text) == NULL)
            continue;
        if (a->asked.top == 0 || found < a->asked.top)
            sm_json_place(&a->j, NULL, &v, key);
        found++;
    }
    sm_json_close(&a->j, ']');
    sm_json_u64(&a->j, "more",
                a->asked.top != 0 && found > a->asked.top ? found - a->asked.top : 0);
    sm_buffer_release(&id);
    sm_view_release(&v);
}

/* ---- source ---- */

#define MAX_SOURCE_BYTES (4u << 20)

/* The file's text when it lies below the directory: no link and no ".." leads out of it. */
static char *read_below(const char *directory, const char *file, char **from) {
    char *path = NULL, *real = NULL, *root = realpath(directory, NULL), *text = NULL;
    if (root != NULL && asprintf(&path, "%s/%s", directory, file) >= 0)
        real = realpath(path, NULL);
    free(path);
    size_t n = root != NULL ? strlen(root) : 0;
    bool inside = real != NULL && strncmp(real, root, n) == 0 && (n == 1 || real[n] == '/');
    int fd = inside ? open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= MAX_SOURCE_BYTES) {
        text = sm_alloc_zero((size_t)st.st_size + 1, 1);
        ssize_t got = read(fd, text, (size_t)st.st_size);
        if (got < 0) {
            free(text);
            text = NULL;
        } else {
            text[got] = 0;
        }
    }
    if (fd >= 0)
        close(fd);
    free(root);
    if (text != NULL)
        *from = real;
    else
        free(real);
    return text;
}

/* Below each root: the path as it is, then without its leading directories one by one. */
static char *find_source(const struct sm_api *api, const char *file, char **from) {
    for (uint32_t i = 0; i < api->n_source_roots; i++) {
        for (const char *at = file; at != NULL && *at != 0; at = strchr(at, '/')) {
            at += strspn(at, "/");
            char *text = read_below(api->source_roots[i], at, from);
            if (text != NULL)
                return text;
        }
    }
    return NULL;
}

static void put_text(struct sm_json *j, const char *text) {
    sm_json_open(j, "text", '[');
    for (const char *at = text; at != NULL && *at != 0;) {
        size_t n = strcspn(at, "\n");
        sm_json_bytes(j, NULL, at, n > 0 && at[n - 1] == '\r' ? n - 1 : n);
        at += n + (at[n] == '\n');
    }
    sm_json_close(j, ']');
}

void sm_api_source(struct sm_answer *a) {
    const char *file = sm_parameter(a->r, "file");
    struct sm_weight weight;
    uint32_t n;
    if (file == NULL) {
        sm_answer_fail(a, 400, "file: expected the name of a file in the trace");
        return;
    }
    if (!sm_parameter_weights(a, &weight, 1, &n))
        return;
    const struct sm_analysis *an = a->s->a;
    struct sm_view v;
    struct sm_weigher w;
    sm_asked_view(&a->asked, &v, SM_KEY_LINE);
    sm_asked_weigher(&a->asked, &w, &weight);
    struct sm_sum *nodes = sm_weigh_nodes(&w, 0);
    struct sm_key_sum *sums = sm_view_sums(&v, nodes);
    bool known = false;
    char *from = NULL, *text = NULL;
    struct sm_json *j = &a->j;
    sm_json_text(j, "file", file);
    sm_json_open(j, "lines", '[');
    for (uint32_t key = 1; key < v.n_keys; key++) {
        const struct sm_frame *f = &an->frames[v.spot[key]];
        if (strcmp(sm_text(an, an->functions[f->function].file), file) != 0)
            continue;
        known = true;
        if (f->line == 0 || sums[key].total.rows == 0)
            continue;
        sm_json_open(j, NULL, '{');
        sm_json_u64(j, "line", f->line);
        sm_json_text(j, "function", sm_text(an, an->functions[f->function].name));
        sm_json_sum(j, "own", &w, &sums[key].own);
        sm_json_sum(j, "total", &w, &sums[key].total);
        sm_json_close(j, '}');
    }
    sm_json_close(j, ']');
    /* Only files that the trace names are looked for. */
    if (known)
        text = find_source(a->api, file, &from);
    sm_json_bool(j, "found", text != NULL);
    sm_json_text(j, "from", from != NULL ? from : "");
    put_text(j, text);
    free(text);
    free(from);
    free(sums);
    free(nodes);
    sm_weigher_release(&w);
    sm_view_release(&v);
}
