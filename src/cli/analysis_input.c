/* See analysis_input.h. */
#include "cli/analysis_input.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/output.h"
#include "util/memory.h"
#include "util/number.h"
#include "util/terminal.h"

#define LOSSES_TOLD 8

static bool has_option(const struct sm_invocation *in, const char *name) {
    const struct sm_option *o = in->command->options;
    for (; o->long_name != NULL; o++) {
        if (strcmp(o->long_name, name) == 0)
            return true;
    }
    return false;
}

/* The value of an option that stands for a condition: one whose argument is free text. */
static const char *filter_option(const struct sm_invocation *in, const char *name) {
    const struct sm_option *o = in->command->options;
    for (; o->long_name != NULL; o++) {
        if (strcmp(o->long_name, name) == 0 && o->kind == SM_ARG_TEXT)
            return sm_option_value(in, name);
    }
    return NULL;
}

/* Conditions of the options, joined; what is not well formed is told by the filter's parser. */
static char *filter_text(const struct sm_invocation *in) {
    static const struct {
        const char *option, *before, *after;
    } sugar[] = {
        {"domain", "domain in ", ""},   {"source", "source in ", ""},
        {"first", "allocated <= ", ""}, {"last", "allocated >= end-", ""},
        {"from", "allocated >= ", ""},  {"to", "allocated <= ", ""},
    };
    struct sm_buffer b;
    sm_buffer_init(&b, -1);
    const char *text;
    for (size_t i = 0; has_option(in, "filter") && (text = sm_option_nth(in, "filter", i)) != NULL;
         i++)
        sm_buffer_printf(&b, "%s%s", b.used > 0 ? "; " : "", text);
    for (size_t i = 0; i < sizeof sugar / sizeof *sugar; i++) {
        text = filter_option(in, sugar[i].option);
        if (text != NULL)
            sm_buffer_printf(&b, "%s%s%s", b.used > 0 ? "; " : "", sugar[i].before, text);
    }
    char *to = sm_strdup(sm_buffer_string(&b));
    sm_buffer_release(&b);
    return to;
}

/* The text with a mark below the column. */
static int filter_trouble(const struct sm_invocation *in, const char *text,
                          const struct sm_filter_error *err) {
    sm_usage_error(in, "the filter is not understood: %s", err->text);
    if (strlen(text) < 200 && err->column > 0 && err->column < 200) {
        sm_complain("  %s", text);
        sm_complain("  %*s^", (int)err->column - 1, "");
    }
    return SM_EXIT_USAGE;
}

static int apply_filter(const struct sm_invocation *in, struct sm_analysis_input *to) {
    int64_t ns;
    bool given;
    if (has_option(in, "filter") && (!sm_option_duration(in, "first", &ns, &given) ||
                                     !sm_option_duration(in, "last", &ns, &given)))
        return SM_EXIT_USAGE;
    char *text = filter_text(in);
    struct sm_filter_error err;
    to->filter = sm_filter_parse(text, strlen(text), &err);
    if (to->filter == NULL) {
        int code = filter_trouble(in, text, &err);
        free(text);
        return code;
    }
    free(text);
    struct sm_buffer b;
    sm_buffer_init(&b, -1);
    sm_filter_print(&b, to->filter);
    to->filter_text = sm_strdup(sm_buffer_string(&b));
    sm_buffer_release(&b);
    return SM_EXIT_OK;
}

static int open_analysis(const struct sm_invocation *in, const char *path,
                         struct sm_analysis_input *to) {
    uint64_t part = 1;
    if (!sm_option_u64(in, "part", &part))
        return SM_EXIT_USAGE;
    if (part == 0 || part > UINT32_MAX)
        return sm_usage_error(in, "--part counts from 1");
    static char reading[] = "reading";
    struct sm_analysis_options options = {.no_cache = sm_option_given(in, "no-cache"),
                                          .trace = {.ignore_tail = sm_option_given(in, "no-tail"),
                                                    .part = (uint32_t)(part - 1),
                                                    .progress = sm_progress,
                                                    .progress_ctx = reading}};
    struct sm_error err;
    enum sm_status status = sm_analysis_open(&to->a, path, &options, &err);
    sm_progress_end();
    return status == SM_OK ? SM_EXIT_OK : sm_trouble("%s", err.text);
}

static bool fill_asked(const struct sm_invocation *in, struct sm_analysis_input *to) {
    struct sm_asked *q = &to->asked;
    *q = (struct sm_asked){.a = to->a,
                           .filter = to->filter,
                           .filter_text = to->filter_text,
                           .top = 20,
                           .bytes = sm_option_given(in, "bytes"),
                           .colours = sm_want_colours(in),
                           .utf8 = sm_terminal_utf8(),
                           .width = sm_terminal_width(STDOUT_FILENO, 120)};
    if (has_option(in, "top") && !sm_option_u64(in, "top", &q->top))
        return false;
    q->fold_recursion = has_option(in, "fold-recursion") && sm_option_given(in, "fold-recursion");
    sm_select(&q->selection, to->a, to->filter, 0);
    sm_filter_views(to->a, to->filter, &q->hidden, &q->collapsed);
    return true;
}

int sm_analysis_input_open_path(const struct sm_invocation *in, const char *path,
                                struct sm_analysis_input *to) {
    *to = (struct sm_analysis_input){0};
    if (has_option(in, "json") && has_option(in, "csv") && sm_option_given(in, "json") &&
        sm_option_given(in, "csv"))
        return sm_usage_error(in, "--json or --csv, not both");
    int code = apply_filter(in, to);
    if (code == SM_EXIT_OK)
        code = open_analysis(in, path, to);
    if (code == SM_EXIT_OK && !fill_asked(in, to))
        code = SM_EXIT_USAGE;
    if (code != SM_EXIT_OK)
        sm_analysis_input_close(in, to, true, code);
    return code;
}

int sm_analysis_input_open(const struct sm_invocation *in, struct sm_analysis_input *to) {
    *to = (struct sm_analysis_input){0};
    const char *path = sm_trace_input_path(in);
    if (path[0] == 0)
        return sm_usage_error(in, "name a trace file, or - for standard input (there is no *.stm "
                                  "in this directory)");
    if (in->n_arguments > 1)
        return sm_usage_error(in, "one trace at a time; '%.200s' is one too many",
                              in->arguments[1]);
    if (in->n_arguments == 0)
        sm_complain("statmem: the newest trace here is %s", path);
    return sm_analysis_input_open_path(in, path, to);
}

static bool is_loss(const struct sm_analysis *a, const struct sm_loss *l) {
    return l->kind != SM_LOSS_EXTENT || !a->used_tail;
}

int sm_analysis_input_close(const struct sm_invocation *in, struct sm_analysis_input *input,
                            bool quiet, int code) {
    const struct sm_analysis *a = input->a;
    bool lost = false;
    for (size_t i = 0; a != NULL && i < a->n_losses; i++) {
        lost |= is_loss(a, &a->losses[i]);
        if (!quiet && i < LOSSES_TOLD)
            sm_complain("statmem: %s%s: %s", is_loss(a, &a->losses[i]) ? "lost, " : "",
                        sm_loss_kind_name(a->losses[i].kind), a->losses[i].detail);
    }
    if (!quiet && a != NULL && a->n_losses > LOSSES_TOLD)
        sm_complain("statmem: and %zu more; 'statmem info' lists all", a->n_losses - LOSSES_TOLD);
    sm_selection_release(&input->asked.selection);
    free(input->asked.hidden);
    free(input->asked.collapsed);
    sm_filter_free(input->filter);
    free(input->filter_text);
    sm_analysis_free(input->a);
    *input = (struct sm_analysis_input){0};
    return lost && code == SM_EXIT_OK && sm_option_given(in, "strict") ? SM_EXIT_TROUBLE : code;
}

bool sm_analysis_weights(const struct sm_invocation *in, const struct sm_analysis_input *input,
                         const char *otherwise, struct sm_weight *list, uint32_t max, uint32_t *n) {
    const char *given = has_option(in, "weight") ? sm_option_value(in, "weight") : NULL;
    char *text = sm_strdup(given != NULL ? given : otherwise), *rest = text, *one;
    bool ok = true;
    *n = 0;
    while (ok && (one = strsep(&rest, ",")) != NULL) {
        struct sm_error err;
        if (*n == max) {
            sm_usage_error(in, "at most %u weights", max);
            ok = false;
        } else if (sm_weight_parse(&list[(*n)++], one, input->a, &err) != SM_OK) {
            sm_usage_error(in, "--weight: %s", err.text);
            ok = false;
        }
    }
    free(text);
    return ok;
}

enum sm_key_kind sm_analysis_key(const struct sm_invocation *in) {
    static const struct {
        const char *name;
        enum sm_key_kind kind;
    } kinds[] = {{"line", SM_KEY_LINE},
                 {"frame", SM_KEY_FRAME},
                 {"file", SM_KEY_FILE},
                 {"module", SM_KEY_MODULE}};
    const char *value = has_option(in, "key") ? sm_option_value(in, "key") : NULL;
    for (size_t i = 0; value != NULL && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, value) == 0)
            return kinds[i].kind;
    }
    return SM_KEY_FUNCTION;
}

static char *trimmed(char *text) {
    while (isspace((unsigned char)*text))
        text++;
    size_t n = strlen(text);
    while (n > 0 && isspace((unsigned char)text[n - 1]))
        text[--n] = 0;
    return text;
}

bool sm_analysis_focus(const struct sm_invocation *in, const struct sm_view *v, const char *text,
                       uint32_t **keys, uint32_t *n) {
    char *copy = sm_strdup(text), *rest = copy, *one;
    size_t capacity = 0;
    bool ok = true;
    *keys = NULL;
    *n = 0;
    while (ok && (one = strsep(&rest, ">")) != NULL) {
        one = trimmed(one);
        struct sm_place_match m;
        *keys = sm_grow(*keys, &capacity, *n + 1u, sizeof **keys);
        sm_place_find(v, one, &m);
        ok = m.n == 1;
        (*keys)[(*n)++] = m.key;
        if (m.n == 0)
            sm_usage_error(in, "nothing in the trace is called '%.100s'%s%.100s%s", one,
                           m.near[0] != 0 ? "; did you mean '" : "", m.near,
                           m.near[0] != 0 ? "'?" : "");
        else if (m.n > 1)
            sm_usage_error(in, "'%.100s' is the name of %u; say which, e.g. '%.200s'", one, m.n,
                           m.near);
    }
    free(copy);
    if (!ok) {
        free(*keys);
        *keys = NULL;
    }
    return ok;
}
