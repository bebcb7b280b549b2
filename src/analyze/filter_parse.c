/* Filter texts into trees, by recursive descent (docs/filters.md has the grammar).

   Depth, number of conditions and length are capped, so that a text from a URL costs little whatever
   it holds: parsing is linear in its length. Trees are normalised as they are built (AND in AND, OR in OR, NOT
   of NOT), so that printing and parsing again gives the same tree. The first error ends the parse. */
#include <stdlib.h>

#include "analyze/filter_internal.h"
#include "util/memory.h"

/* Children of an AND or OR while they are collected. */
struct children {
    struct sm_filter_node *first, *last;
    unsigned n;
};

static void add_child(struct children *c, enum sm_filter_kind kind, struct sm_filter_node *node) {
    struct sm_filter_node *first = node->kind == kind ? node->first : node;
    if (c->last == NULL)
        c->first = first;
    else
        c->last->next = first;
    for (c->last = first, c->n++; c->last->next != NULL; c->last = c->last->next)
        c->n++;
}

static struct sm_filter_node *join(struct sm_filter_parser *p, const struct children *c,
                                   enum sm_filter_kind kind) {
    if (c->n < 2)
        return c->first;
    struct sm_filter_node *node = sm_filter_node_new(p, kind);
    if (node != NULL)
        node->first = c->first;
    return node;
}

/* ---- and, or, not ---- */

static bool get_or(struct sm_filter_parser *p, bool top, struct sm_filter_node **node);

/* Condition, (...), or not before one of them. */
static struct sm_filter_node *get_factor(struct sm_filter_parser *p) {
    unsigned outside = p->depth;
    bool negated = false;
    struct sm_filter_node *node;
    for (; sm_filter_token_is(&p->token, "not"); negated = !negated) {
        if (++p->depth > SM_FILTER_MAX_DEPTH) {
            sm_filter_too_much(p, &p->token, SM_EXPECT_DEPTH);
            return NULL;
        }
        if (!sm_filter_advance(p))
            return NULL;
    }
    if (p->token.kind == SM_TOKEN_OPEN) {
        if (++p->depth > SM_FILTER_MAX_DEPTH) {
            sm_filter_too_much(p, &p->token, SM_EXPECT_DEPTH);
            return NULL;
        }
        if (!sm_filter_advance(p) || !get_or(p, false, &node))
            return NULL;
        if (p->token.kind != SM_TOKEN_CLOSE) {
            sm_filter_wrong(p, SM_EXPECT_CLOSE);
            return NULL;
        }
        if (!sm_filter_advance(p))
            return NULL;
    } else if (sm_filter_is_view(&p->token)) {
        sm_filter_wrong(p, SM_EXPECT_NO_VIEW);
        return NULL;
    } else {
        node = sm_filter_get_condition(p);
    }
    p->depth = outside;
    return node != NULL && negated ? sm_filter_negate(p, node) : node;
}

static bool begins_factor(const struct sm_filter_token *t) {
    return t->kind == SM_TOKEN_OPEN || sm_filter_is_view(t) || sm_filter_is_condition(t);
}

/* Factors, one after another or joined by `and`. *node NULL when there are but views. */
static bool get_and(struct sm_filter_parser *p, bool top, struct sm_filter_node **node,
                    bool *views) {
    struct children c = {0};
    for (;;) {
        if (top && sm_filter_is_view(&p->token)) {
            *views = true;
            if (!sm_filter_get_view(p))
                return false;
        } else {
            struct sm_filter_node *factor = get_factor(p);
            if (factor == NULL)
                return false;
            add_child(&c, SM_FILTER_AND, factor);
        }
        if (sm_filter_token_is(&p->token, "and")) {
            if (!sm_filter_advance(p))
                return false;
        } else if (!begins_factor(&p->token)) {
            *node = join(p, &c, SM_FILTER_AND);
            return !p->failed;
        }
    }
}

static bool get_or(struct sm_filter_parser *p, bool top, struct sm_filter_node **node) {
    struct children c = {0};
    bool views = false;
    *node = NULL;
    for (;;) {
        struct sm_filter_node *part;
        if (!get_and(p, top, &part, &views))
            return false;
        if (part != NULL)
            add_child(&c, SM_FILTER_OR, part);
        bool more = sm_filter_token_is(&p->token, "or");
        if (views &&
            (more || (p->token.kind != SM_TOKEN_END && p->token.kind != SM_TOKEN_SEMICOLON)))
            return sm_filter_wrong(p, SM_EXPECT_AFTER_VIEW);
        if (!more)
            break;
        if (!sm_filter_advance(p))
            return false;
        top = false;
    }
    *node = join(p, &c, SM_FILTER_OR);
    return !p->failed;
}

static bool get_filter(struct sm_filter_parser *p) {
    struct children c = {0};
    if (!sm_filter_advance(p))
        return false;
    for (;;) {
        struct sm_filter_node *part;
        while (p->token.kind == SM_TOKEN_SEMICOLON) {
            if (!sm_filter_advance(p))
                return false;
        }
        if (p->token.kind == SM_TOKEN_END)
            break;
        if (!get_or(p, true, &part))
            return false;
        if (part != NULL)
            add_child(&c, SM_FILTER_AND, part);
        if (p->token.kind != SM_TOKEN_SEMICOLON && p->token.kind != SM_TOKEN_END)
            return sm_filter_wrong(p, SM_EXPECT_MORE);
    }
    p->filter->root = join(p, &c, SM_FILTER_AND);
    return !p->failed;
}

/* Levels of parentheses and `not` in the canonical text of a node inside `around`. */
static unsigned canonical_depth(const struct sm_filter_node *node, enum sm_filter_kind around) {
    unsigned deepest = 0;
    for (const struct sm_filter_node *child = node->first; child != NULL; child = child->next) {
        unsigned depth = canonical_depth(child, node->kind);
        if (depth > deepest)
            deepest = depth;
    }
    bool written = node->kind == SM_FILTER_NOT ||
                   (node->kind == SM_FILTER_OR && around == SM_FILTER_AND) ||
                   (node->first != NULL && around == SM_FILTER_NOT);
    return deepest + written;
}

struct sm_filter *sm_filter_parse(const char *text, size_t bytes, struct sm_filter_error *err) {
    struct sm_filter *f = sm_alloc_zero(1, sizeof *f);
    struct sm_filter_parser p = {
        .lexer = {.source = bytes > 0 ? text : "", .bytes = bytes, .arena = &f->arena},
        .filter = f,
        .last_view = &f->views,
        .error = err};
    struct sm_buffer canonical;
    sm_buffer_init(&canonical, -1);
    bool ok = bytes <= SM_FILTER_MAX_BYTES && get_filter(&p);
    /* What is printed must be readable again. It can be longer than the text, and deeper: != becomes
       `not`, the `or` in "a or b; c" gets parentheses. */
    if (ok && f->root != NULL && canonical_depth(f->root, SM_FILTER_OR) > SM_FILTER_MAX_DEPTH) {
        sm_filter_set_error(&p, 0, SM_EXPECT_DEPTH, NULL);
        ok = false;
    }
    if (ok)
        sm_filter_print(&canonical, f);
    if (bytes > SM_FILTER_MAX_BYTES || canonical.used > SM_FILTER_MAX_BYTES) {
        sm_filter_set_error(&p, 0, SM_EXPECT_LENGTH, NULL);
        ok = false;
    }
    sm_buffer_release(&canonical);
    if (ok)
        return f;
    sm_filter_free(f);
    return NULL;
}

void sm_filter_free(struct sm_filter *f) {
    if (f == NULL)
        return;
    sm_arena_release(&f->arena);
    free(f);
}
