/* See api.h: parameters and dispatch. */
#include "view/api.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "util/memory.h"
#include "view/api_internal.h"

bool sm_answer_fail(struct sm_answer *a, unsigned status, const char *format, ...) {
    if (a->status != 0)
        return false;
    va_list args;
    a->status = status;
    va_start(args, format);
    vsnprintf(a->error, sizeof a->error, format, args);
    va_end(args);
    return false;
}

/* ---- parameters ---- */

const char *sm_parameter_nth(const struct sm_request *r, const char *name, uint32_t n) {
    for (uint32_t i = 0; i < r->n_parameters; i++) {
        if (strcmp(r->parameters[i].name, name) == 0 && n-- == 0)
            return r->parameters[i].value;
    }
    return NULL;
}

const char *sm_parameter(const struct sm_request *r, const char *name) {
    return sm_parameter_nth(r, name, 0);
}

bool sm_parameter_u64(struct sm_answer *a, const char *name, uint64_t least, uint64_t most,
                      uint64_t *x) {
    const char *text = sm_parameter(a->r, name);
    char *end;
    if (text == NULL)
        return true;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != 0 || errno != 0 || value < least || value > most)
        return sm_answer_fail(a, 400, "%s: expected a whole number from %llu to %llu", name,
                              (unsigned long long)least, (unsigned long long)most);
    *x = value;
    return true;
}

bool sm_parameter_i64(struct sm_answer *a, const char *name, int64_t *x) {
    const char *text = sm_parameter(a->r, name);
    char *end;
    if (text == NULL)
        return true;
    errno = 0;
    int64_t value = strtoll(text, &end, 10);
    if (text[0] == 0 || *end != 0 || errno != 0)
        return sm_answer_fail(a, 400, "%s: expected nanoseconds", name);
    *x = value;
    return true;
}

bool sm_parameter_share(struct sm_answer *a, const char *name, double *x) {
    const char *text = sm_parameter(a->r, name);
    char *end;
    if (text == NULL)
        return true;
    double value = strtod(text, &end);
    if (end == text || *end != 0 || !(value >= 0 && value <= 1))
        return sm_answer_fail(a, 400, "%s: expected a number from 0 to 1", name);
    *x = value;
    return true;
}

bool sm_parameter_key(struct sm_answer *a, enum sm_key_kind *kind) {
    static const char *const names[] = {"function", "frame", "line", "file", "module"};
    const char *text = sm_parameter(a->r, "key");
    for (int i = 0; text != NULL && i < 5; i++) {
        if (strcmp(names[i], text) == 0) {
            *kind = (enum sm_key_kind)i;
            return true;
        }
    }
    return text == NULL ||
           sm_answer_fail(a, 400, "key: expected function, frame, line, file or module");
}

bool sm_parameter_weights(struct sm_answer *a, struct sm_weight *list, uint32_t max, uint32_t *n) {
    const char *text;
    struct sm_error err;
    for (*n = 0; (text = sm_parameter_nth(a->r, "weight", *n)) != NULL; (*n)++) {
        if (*n == max)
            return sm_answer_fail(a, 400, "weight: at most %u", max);
        if (sm_weight_parse(&list[*n], text, a->s->a, &err) != SM_OK)
            return sm_answer_fail(a, 400, "weight: %s", err.text);
    }
    if (*n == 0)
        list[(*n)++] = (struct sm_weight){.kind = SM_WEIGHT_ALLOCATED};
    return true;
}

bool sm_parameter_keys(struct sm_answer *a, const struct sm_view *v, const char *name,
                       uint32_t **keys, uint32_t *n) {
    const char *text;
    size_t capacity = 0;
    *keys = NULL;
    for (*n = 0; (text = sm_parameter_nth(a->r, name, *n)) != NULL; (*n)++) {
        struct sm_place_match m;
        sm_place_find(v, text, &m);
        if (m.n != 1) {
            free(*keys);
            *keys = NULL;
            return sm_answer_fail(a, 400, "%s: nothing is called \"%.200s\"", name, text);
        }
        *keys = sm_grow(*keys, &capacity, *n + 1u, sizeof **keys);
        (*keys)[*n] = m.key;
    }
    return true;
}

/* ---- traces and filters ---- */

bool sm_answer_hold(struct sm_answer *a, const char *trace_name, const char *filter_name,
                    struct sm_snapshot **s, const struct sm_applied **filter,
                    struct sm_asked *asked) {
    uint64_t number = 0;
    uint32_t n = sm_traces_count(a->api->traces);
    if (!sm_parameter_u64(a, trace_name, 0, UINT32_MAX, &number))
        return false;
    if (number >= n)
        return sm_answer_fail(a, 404, "there is no trace %llu", (unsigned long long)number);
    *s = sm_traces_hold(a->api->traces, (uint32_t)number);
    if (*s == NULL) {
        struct sm_viewed v;
        sm_traces_state(a->api->traces, (uint32_t)number, &v);
        return v.state == SM_TRACE_FAILED
                   ? sm_answer_fail(a, 404, "the trace cannot be read: %.400s", v.error)
                   : sm_answer_fail(a, 409, "the trace is still being loaded");
    }
    const char *text = sm_parameter(a->r, filter_name);
    *filter = sm_snapshot_apply(*s, text != NULL ? text : "", &a->filter_error);
    if (*filter == NULL)
        return sm_answer_fail(a, 400, "%s", a->filter_error.text);
    const char *fold = sm_parameter(a->r, "fold");
    *asked = (struct sm_asked){.a = (*s)->a,
                               .filter = (*filter)->filter,
                               .filter_text = (*filter)->text,
                               .selection = (*filter)->selection,
                               .hidden = (*filter)->hidden,
                               .collapsed = (*filter)->collapsed,
                               .fold_recursion = fold != NULL && strcmp(fold, "1") == 0,
                               .top = 100,
                               .utf8 = true,
                               .width = 120};
    return sm_parameter_u64(a, "top", 0, 1000000, &asked->top);
}

static const struct route {
    const char *path;
    bool needs_trace;
    void (*answer)(struct sm_answer *a);
} routes[] = {
    {"traces", false, sm_api_traces},      {"summary", true, sm_api_summary},
    {"timeline", true, sm_api_timeline},   {"tree", true, sm_api_tree},
    {"places", true, sm_api_places},       {"groups", true, sm_api_groups},
    {"fragments", true, sm_api_fragments}, {"leaks", true, sm_api_leaks},
    {"source", true, sm_api_source},       {"compare", false, sm_api_compare},
    {"filter", false, sm_api_filter},      {"search", true, sm_api_search},
};

static const struct route *route_of(const char *path) {
    static const char prefix[] = "/api/v1/";
    if (strncmp(path, prefix, sizeof prefix - 1) != 0)
        return NULL;
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (strcmp(routes[i].path, path + sizeof prefix - 1) == 0)
            return &routes[i];
    }
    return NULL;
}

static void put_error(struct sm_answer *a, struct sm_buffer *out, size_t begin) {
    out->used = begin;
    sm_json_init(&a->j, out, true);
    sm_json_open(&a->j, NULL, '{');
    sm_json_text(&a->j, "error", a->error);
    if (a->filter_error.column > 0) {
        sm_json_u64(&a->j, "column", a->filter_error.column);
        sm_json_text(&a->j, "expected", a->filter_error.expected);
    }
}

/* The question in one text. Filters count as they are written: two spellings are two questions. */
static void put_question(struct sm_buffer *out, const struct sm_request *r) {
    sm_buffer_text(out, r->path);
    for (uint32_t i = 0; i < r->n_parameters; i++)
        sm_buffer_printf(out, "\n%s=%s", r->parameters[i].name, r->parameters[i].value);
}

/* The route's answer about a trace, kept or made. */
static void answer_of_trace(struct sm_answer *a, const struct route *route, struct sm_buffer *out,
                            size_t begin) {
    struct sm_buffer question;
    sm_buffer_init(&question, -1);
    put_question(&question, a->r);
    size_t before = out->used;
    out->used = begin;
    if (sm_snapshot_answer_get(a->s, sm_buffer_string(&question), out)) {
        a->kept = true;
    } else {
        out->used = before;
        route->answer(a);
        if (a->status == 0) {
            sm_json_close(&a->j, '}');
            sm_json_end(&a->j);
            sm_snapshot_answer_keep(a->s, sm_buffer_string(&question), out->data + begin,
                                    out->used - begin);
            a->kept = true;
        }
    }
    sm_buffer_release(&question);
}

unsigned sm_api_answer(const struct sm_api *api, const struct sm_request *r,
                       struct sm_buffer *out) {
    struct sm_answer a = {.api = api, .r = r};
    size_t begin = out->used;
    const struct route *route = route_of(r->path);
    sm_json_init(&a.j, out, true);
    sm_json_open(&a.j, NULL, '{');
    if (route == NULL)
        sm_answer_fail(&a, 404, "there is no such path; see docs/api.md");
    else if (!route->needs_trace)
        route->answer(&a);
    else if (sm_answer_hold(&a, "trace", "filter", &a.s, &a.filter, &a.asked))
        answer_of_trace(&a, route, out, begin);
    if (a.status != 0)
        put_error(&a, out, begin);
    if (!a.kept) {
        sm_json_close(&a.j, '}');
        sm_json_end(&a.j);
    }
    if (a.s != NULL) {
        sm_snapshot_done(a.s, a.filter);
        sm_traces_drop(api->traces, a.s);
    }
    return a.status != 0 ? a.status : 200;
}

bool sm_api_profile(const struct sm_api *api, const struct sm_request *r, struct sm_buffer *out,
                    unsigned *status) {
    bool heap = strcmp(r->path, "/debug/pprof/heap") == 0;
    if (!heap && strcmp(r->path, "/debug/pprof/allocs") != 0)
        return false;
    struct sm_answer a = {.api = api, .r = r};
    size_t begin = out->used;
    if (sm_answer_hold(&a, "trace", "filter", &a.s, &a.filter, &a.asked)) {
        struct sm_error err;
        struct sm_export x = {
            .a = a.s->a,
            .selection = &a.asked.selection,
            .filter_text = a.asked.filter_text,
            .hidden = a.asked.hidden,
            .collapsed = a.asked.collapsed,
            .weight = {.kind = heap ? SM_WEIGHT_LIVE_END : SM_WEIGHT_ALLOCATED},
        };
        if (sm_export_write(&x, SM_EXPORT_PPROF, out, &err) != SM_OK)
            sm_answer_fail(&a, 500, "%s", err.text);
    }
    if (a.status != 0) {
        put_error(&a, out, begin);
        sm_json_close(&a.j, '}');
        sm_json_end(&a.j);
    }
    if (a.s != NULL) {
        sm_snapshot_done(a.s, a.filter);
        sm_traces_drop(api->traces, a.s);
    }
    *status = a.status != 0 ? a.status : 200;
    return true;
}
