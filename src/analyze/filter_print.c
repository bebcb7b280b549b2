/* Filters as canonical texts, and their comparison. See filter.h. */
#include <string.h>

#include "analyze/filter_internal.h"
#include "util/text.h"

/* In double quotes; control characters and bytes that are no UTF-8 as escapes. */
static void put_string(struct sm_buffer *out, const char *text, size_t bytes) {
    sm_buffer_char(out, '"');
    for (size_t used; bytes > 0; text += used, bytes -= used) {
        uint32_t c = sm_utf8_get(text, bytes, &used);
        if (c == '"' || c == '\\') {
            sm_buffer_char(out, '\\');
            sm_buffer_char(out, (char)c);
        } else if (c == '\n' || c == '\t') {
            sm_buffer_text(out, c == '\n' ? "\\n" : "\\t");
        } else if (c < ' ' || (c >= 0x7F && c < 0xA0) || c == UINT32_MAX) {
            for (size_t i = 0; i < used; i++)
                sm_buffer_printf(out, "\\x%02x", (unsigned char)text[i]);
        } else {
            sm_buffer_bytes(out, text, used);
        }
    }
    sm_buffer_char(out, '"');
}

static void put_regex(struct sm_buffer *out, const char *text, size_t bytes) {
    sm_buffer_char(out, '/');
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '/')
            sm_buffer_char(out, '\\');
        sm_buffer_char(out, text[i]);
        if (text[i] == '\\' && i + 1 < bytes)
            sm_buffer_char(out, text[++i]);
    }
    sm_buffer_char(out, '/');
}

/* Behind the word it belongs to, with a blank before. */
static void put_pattern(struct sm_buffer *out, const struct sm_filter_pattern *p) {
    static const char *const subjects[] = {"", " file", " module", " line"};
    static const char *const matches[] = {" ", " ~ ", " glob ", " "};
    sm_buffer_text(out, subjects[p->subject]);
    sm_buffer_text(out, matches[p->match]);
    if (p->match == SM_MATCH_REGEX)
        put_regex(out, p->text, p->bytes);
    else
        put_string(out, p->text, p->bytes);
}

static void put_value(struct sm_buffer *out, const struct sm_filter_node *node, int i) {
    switch (node->kind) {
    case SM_FILTER_SIZE:
        sm_filter_size_put(out, &node->number[i]);
        break;
    case SM_FILTER_LIFETIME:
        sm_filter_duration_put(out, node->number[i].n);
        break;
    case SM_FILTER_SAMPLES:
    case SM_FILTER_DOMAIN:
        sm_buffer_u64(out, node->number[i].n);
        break;
    default:
        sm_filter_time_put(out, &node->time[i]);
        break;
    }
}

static void put_test(struct sm_buffer *out, const struct sm_filter_node *node) {
    static const char *const ops[] = {" < ", " <= ", " > ", " >= ", " = ", " in "};
    sm_buffer_text(out, ops[node->op]);
    put_value(out, node, 0);
    if (node->op == SM_OP_BETWEEN) {
        sm_buffer_text(out, "..");
        put_value(out, node, 1);
    }
}

static void put_live(struct sm_buffer *out, const struct sm_filter_node *node) {
    sm_buffer_text(out, node->op == SM_OP_EQ ? " at " : " in ");
    if (node->op == SM_OP_LE)
        sm_buffer_text(out, "..");
    put_value(out, node, 0);
    if (node->op == SM_OP_GE || node->op == SM_OP_BETWEEN)
        sm_buffer_text(out, "..");
    if (node->op == SM_OP_BETWEEN)
        put_value(out, node, 1);
}

static void put_sources(struct sm_buffer *out, uint32_t sources) {
    bool several = (sources & (sources - 1)) != 0;
    sm_buffer_text(out, several ? " in " : " = ");
    for (bool first = true; sources != 0; sources &= sources - 1, first = false) {
        if (!first)
            sm_buffer_char(out, ',');
        sm_buffer_text(out, sm_filter_source_name((unsigned)__builtin_ctz(sources)));
    }
}

static void put_node(struct sm_buffer *out, const struct sm_filter_node *node,
                     enum sm_filter_kind around);

static void put_children(struct sm_buffer *out, const struct sm_filter_node *node) {
    for (const struct sm_filter_node *child = node->first; child != NULL; child = child->next) {
        if (child != node->first)
            sm_buffer_text(out, node->kind == SM_FILTER_AND ? " and " : " or ");
        put_node(out, child, node->kind);
    }
}

/* Depth is that of the tree, which the parser has capped. */
static void put_node(struct sm_buffer *out, const struct sm_filter_node *node,
                     enum sm_filter_kind around) {
    static const char *const words[] = {[SM_FILTER_ALLOCATED] = "allocated",
                                        [SM_FILTER_PROMOTED] = "promoted",
                                        [SM_FILTER_COLLECTED] = "collected",
                                        [SM_FILTER_LIVE] = "live",
                                        [SM_FILTER_SIZE] = "size",
                                        [SM_FILTER_LIFETIME] = "lifetime",
                                        [SM_FILTER_SAMPLES] = "samples",
                                        [SM_FILTER_DOMAIN] = "domain",
                                        [SM_FILTER_SOURCE] = "source",
                                        [SM_FILTER_THREAD_ID] = "thread",
                                        [SM_FILTER_THREAD] = "thread",
                                        [SM_FILTER_INSIDE] = "inside",
                                        [SM_FILTER_SITE] = "site"};
    switch (node->kind) {
    case SM_FILTER_AND:
    case SM_FILTER_OR: {
        bool parentheses =
            around == SM_FILTER_NOT || (node->kind == SM_FILTER_OR && around == SM_FILTER_AND);
        if (parentheses)
            sm_buffer_char(out, '(');
        put_children(out, node);
        if (parentheses)
            sm_buffer_char(out, ')');
        return;
    }
    case SM_FILTER_NOT:
        sm_buffer_text(out, "not ");
        put_node(out, node->first, SM_FILTER_NOT);
        return;
    default:
        break;
    }
    sm_buffer_text(out, words[node->kind]);
    switch (node->kind) {
    case SM_FILTER_LIVE:
        put_live(out, node);
        break;
    case SM_FILTER_SOURCE:
        put_sources(out, node->sources);
        break;
    case SM_FILTER_THREAD_ID:
        sm_buffer_char(out, ' ');
        sm_buffer_u64(out, node->number[0].n);
        break;
    case SM_FILTER_THREAD:
    case SM_FILTER_INSIDE:
    case SM_FILTER_SITE:
        put_pattern(out, &node->pattern);
        break;
    default:
        for (uint32_t i = 0; i < node->n_list; i++) {
            sm_buffer_text(out, i == 0 ? " in " : ",");
            sm_buffer_u64(out, node->list[i]);
        }
        if (node->n_list == 0 && !node->any)
            put_test(out, node);
        break;
    }
}

void sm_filter_print_node(struct sm_buffer *out, const struct sm_filter_node *node) {
    put_node(out, node, SM_FILTER_OR);
}

void sm_filter_print_view(struct sm_buffer *out, const struct sm_filter_view *view) {
    sm_buffer_text(out, view->kind == SM_VIEW_HIDE ? "hide" : "collapse");
    put_pattern(out, &view->pattern);
}

void sm_filter_print(struct sm_buffer *out, const struct sm_filter *f) {
    /* At the top nothing needs parentheses. */
    if (f->root != NULL)
        sm_filter_print_node(out, f->root);
    for (const struct sm_filter_view *view = f->views; view != NULL; view = view->next) {
        if (f->root != NULL || view != f->views)
            sm_buffer_text(out, "; ");
        sm_filter_print_view(out, view);
    }
}

static bool same_pattern(const struct sm_filter_pattern *a, const struct sm_filter_pattern *b) {
    return a->match == b->match && a->subject == b->subject && a->bytes == b->bytes &&
           (a->bytes == 0 || memcmp(a->text, b->text, a->bytes) == 0);
}

static bool same_node(const struct sm_filter_node *a, const struct sm_filter_node *b) {
    if (a->kind != b->kind || a->op != b->op || a->any != b->any || a->sources != b->sources ||
        a->n_list != b->n_list || !same_pattern(&a->pattern, &b->pattern))
        return false;
    for (int i = 0; i < 2; i++) {
        if (a->time[i].anchor != b->time[i].anchor || a->time[i].offset != b->time[i].offset ||
            a->number[i].n != b->number[i].n || a->number[i].words != b->number[i].words)
            return false;
    }
    for (uint32_t i = 0; i < a->n_list; i++) {
        if (a->list[i] != b->list[i])
            return false;
    }
    const struct sm_filter_node *x = a->first, *y = b->first;
    for (; x != NULL && y != NULL; x = x->next, y = y->next) {
        if (!same_node(x, y))
            return false;
    }
    return x == y;
}

bool sm_filter_equal(const struct sm_filter *a, const struct sm_filter *b) {
    if ((a->root == NULL) != (b->root == NULL) || a->n_views != b->n_views ||
        (a->root != NULL && !same_node(a->root, b->root)))
        return false;
    const struct sm_filter_view *x = a->views, *y = b->views;
    for (; x != NULL && y != NULL; x = x->next, y = y->next) {
        if (x->kind != y->kind || !same_pattern(&x->pattern, &y->pattern))
            return false;
    }
    return x == y;
}
