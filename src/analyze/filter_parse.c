/* Filter texts into trees, by recursive descent (docs/filters.md has the grammar).

   Depth, number of conditions and length are capped, so that a text from a URL costs little whatever
   it holds: parsing is linear in its length. Sugar (!=, `never`, `freed`, open ranges) is resolved here, and
   trees are normalised as they are built (AND in AND, OR in OR, NOT of NOT), so that printing and parsing again
   gives the same tree. The first error ends the parse. */
#include <stdio.h>
#include <string.h>

#include "analyze/filter_internal.h"
#include "analyze/match.h"
#include "util/memory.h"
#include "util/text.h"

struct parser {
    struct sm_filter_lexer lexer;
    struct sm_filter_token token;
    struct sm_filter *filter;
    struct sm_filter_view **last_view;
    unsigned depth, n_clauses;
    bool failed;
    struct sm_filter_error *error;
};

static const char *const condition_words[] = {
    "allocated", "live",   "promoted", "collected", "freed", "size", "lifetime",
    "samples",   "source", "domain",   "thread",    "inside", "site", "not"};
static const char *const other_words[] = {"and", "or",     "in",   "at",   "never", "hide", "collapse",
                                          "glob", "function", "file", "module", "line"};
#define N_WORDS(list) (sizeof(list) / sizeof *(list))

/* ---- errors ---- */

static bool token_is(const struct sm_filter_token *t, const char *word) {
    return t->kind == SM_TOKEN_WORD && t->bytes == strlen(word) &&
           memcmp(t->text, word, t->bytes) == 0;
}

static bool token_in(const struct sm_filter_token *t, const char *const *words, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (token_is(t, words[i]))
            return true;
    }
    return false;
}

/* Edits between a short word and `word`, of which there are at most `most`; more count as most + 1. */
static unsigned distance(const char *text, size_t bytes, const char *word, unsigned most) {
    unsigned row[16];
    size_t n = strlen(word);
    if (bytes > n + most || n > bytes + most || n >= N_WORDS(row))
        return most + 1;
    for (size_t k = 0; k <= n; k++)
        row[k] = (unsigned)k;
    for (size_t i = 0; i < bytes; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i + 1;
        for (size_t k = 1; k <= n; k++) {
            unsigned best = diagonal + (text[i] != word[k - 1]);
            diagonal = row[k];
            if (row[k] + 1 < best)
                best = row[k] + 1;
            if (row[k - 1] + 1 < best)
                best = row[k - 1] + 1;
            row[k] = best;
        }
    }
    return row[n];
}

static const char *similar_word(const struct sm_filter_token *t) {
    const char *found = NULL;
    unsigned best = t->bytes > 4 ? 3 : 2; /* fewer than these */
    for (size_t i = 0; t->kind == SM_TOKEN_WORD && i < N_WORDS(condition_words); i++) {
        unsigned d = distance(t->text, t->bytes, condition_words[i], 2);
        if (d < best) {
            best = d;
            found = condition_words[i];
        }
    }
    return found;
}

static void set_error(struct parser *p, size_t at, const char *expected,
                      const struct sm_filter_token *found) {
    struct sm_filter_error *e = p->error;
    p->failed = true;
    if (e == NULL)
        return;
    e->column = 1;
    for (size_t i = 0; i < at && i < p->lexer.bytes; i++)
        e->column += ((unsigned char)p->lexer.source[i] & 0xC0) != 0x80;
    e->expected = expected;
    struct sm_buffer text;
    sm_buffer_init(&text, -1);
    sm_buffer_printf(&text, "column %u: expected %s", e->column, expected);
    if (found != NULL && found->kind == SM_TOKEN_END) {
        sm_buffer_text(&text, ", not the end");
    } else if (found != NULL) {
        size_t bytes = found->end - found->at;
        sm_buffer_text(&text, ", not ");
        sm_text_safe(&text, p->lexer.source + found->at, bytes > 40 ? 40 : bytes);
        if (bytes > 40)
            sm_buffer_text(&text, "...");
        const char *similar = similar_word(found);
        if (similar != NULL && !token_in(found, condition_words, N_WORDS(condition_words)))
            sm_buffer_printf(&text, "; did you mean %s?", similar);
    }
    snprintf(e->text, sizeof e->text, "%s", sm_buffer_string(&text));
    sm_buffer_release(&text);
}

/* The current token is wrong. */
static bool wrong(struct parser *p, const char *expected) {
    if (!p->failed)
        set_error(p, p->token.at, expected, &p->token);
    return false;
}

static bool too_much(struct parser *p, const struct sm_filter_token *t, const char *expected) {
    if (!p->failed)
        set_error(p, t->at, expected, NULL);
    return false;
}

static bool advance(struct parser *p) {
    if (!sm_filter_lex(&p->lexer, &p->token) && !p->failed)
        set_error(p, p->lexer.error_at, p->lexer.expected, NULL);
    return !p->failed;
}

/* ---- nodes ---- */

static void *new_in_arena(struct parser *p, size_t bytes) {
    void *node = sm_arena_alloc(&p->filter->arena, bytes);
    if (node == NULL) {
        too_much(p, &p->token, SM_EXPECT_LENGTH);
        return NULL;
    }
    return memset(node, 0, bytes);
}

static struct sm_filter_node *new_node(struct parser *p, enum sm_filter_kind kind) {
    struct sm_filter_node *node = new_in_arena(p, sizeof *node);
    if (node != NULL)
        node->kind = kind;
    return node;
}

static struct sm_filter_node *negate(struct parser *p, struct sm_filter_node *node) {
    if (node == NULL || node->kind == SM_FILTER_NOT)
        return node == NULL ? NULL : node->first;
    struct sm_filter_node *not = new_node(p, SM_FILTER_NOT);
    if (not != NULL)
        not->first = node;
    return not;
}

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

static struct sm_filter_node *join(struct parser *p, const struct children *c,
                                   enum sm_filter_kind kind) {
    if (c->n < 2)
        return c->first;
    struct sm_filter_node *node = new_node(p, kind);
    if (node != NULL)
        node->first = c->first;
    return node;
}

/* ---- values ---- */

enum value_kind { VALUE_TIME, VALUE_SIZE, VALUE_DURATION, VALUE_COUNT, VALUE_DOMAIN };

static const struct {
    const char *value, *test; /* what was expected */
} value_phrases[] = {
    [VALUE_TIME] = {SM_EXPECT_TIME, SM_EXPECT_TIME_TEST},
    [VALUE_SIZE] = {SM_EXPECT_SIZE, SM_EXPECT_SIZE_TEST},
    [VALUE_DURATION] = {SM_EXPECT_DURATION, SM_EXPECT_DURATION_TEST},
    [VALUE_COUNT] = {SM_EXPECT_COUNT, SM_EXPECT_COUNT_TEST},
    [VALUE_DOMAIN] = {SM_EXPECT_COUNT, SM_EXPECT_DOMAIN_TEST},
};

static bool looks_like_value(const struct parser *p, enum value_kind kind) {
    const struct sm_filter_token *t = &p->token;
    if (t->kind != SM_TOKEN_WORD)
        return false;
    if (kind == VALUE_TIME)
        return sm_filter_looks_like_time(t->text, t->bytes);
    return t->text[0] >= '0' && t->text[0] <= '9';
}

/* The current token as value i of the node. */
static bool get_value(struct parser *p, enum value_kind kind, struct sm_filter_node *node, int i) {
    const struct sm_filter_token *t = &p->token;
    struct sm_filter_number *number = &node->number[i];
    bool ok = t->kind == SM_TOKEN_WORD;
    if (ok) {
        switch (kind) {
        case VALUE_TIME:
            ok = sm_filter_time_get(t->text, t->bytes, &node->time[i]);
            break;
        case VALUE_SIZE:
            ok = sm_filter_size_get(t->text, t->bytes, number);
            break;
        case VALUE_DURATION:
            ok = sm_filter_duration_get(t->text, t->bytes, &number->n);
            break;
        case VALUE_COUNT:
        case VALUE_DOMAIN:
            ok = sm_filter_count_get(t->text, t->bytes, &number->n);
            break;
        }
    }
    return ok ? advance(p) : wrong(p, value_phrases[kind].value);
}

/* < 0, 0, > 0 as the node's values compare; 1 < 2 when only a trace can tell. */
static int compare_ends(const struct sm_filter_node *node, enum value_kind kind) {
    if (kind == VALUE_TIME) {
        if (node->time[0].anchor != node->time[1].anchor)
            return -1;
        return node->time[0].offset < node->time[1].offset ? -1
                                                           : node->time[0].offset > node->time[1].offset;
    }
    if (node->number[0].words != node->number[1].words)
        return -1;
    return node->number[0].n < node->number[1].n ? -1 : node->number[0].n > node->number[1].n;
}

static void drop_value(struct sm_filter_node *node, int i) {
    node->time[i] = (struct sm_filter_time){0};
    node->number[i] = (struct sm_filter_number){0};
}

/* At the dots behind value 0, or (`open`) without one. */
static bool get_range_end(struct parser *p, enum value_kind kind, struct sm_filter_node *node,
                          bool open) {
    if (p->token.kind != SM_TOKEN_DOTS)
        return wrong(p, SM_EXPECT_DOTS);
    if (!advance(p))
        return false;
    struct sm_filter_token upper = p->token;
    if (!open && !looks_like_value(p, kind) && !(upper.kind == SM_TOKEN_WORD && upper.glued)) {
        node->op = SM_OP_GE;
        return true;
    }
    if (!get_value(p, kind, node, 1))
        return false;
    if (open) {
        node->op = SM_OP_LE;
        node->time[0] = node->time[1];
        node->number[0] = node->number[1];
        drop_value(node, 1);
        return true;
    }
    int order = compare_ends(node, kind);
    if (order > 0) {
        if (!p->failed)
            set_error(p, upper.at, SM_EXPECT_ORDER, &upper);
        return false;
    }
    node->op = order == 0 ? SM_OP_EQ : SM_OP_BETWEEN;
    if (order == 0)
        drop_value(node, 1);
    return true;
}

static bool get_range(struct parser *p, enum value_kind kind, struct sm_filter_node *node) {
    bool open = p->token.kind == SM_TOKEN_DOTS;
    return (open || get_value(p, kind, node, 0)) && get_range_end(p, kind, node, open);
}

/* The list behind its first number, which is value 0. */
static bool get_list(struct parser *p, struct sm_filter_node *node) {
    static const size_t most = SM_FILTER_MAX_LIST;
    uint64_t *list = new_in_arena(p, most * sizeof *list);
    if (list == NULL)
        return false;
    size_t n = 0;
    for (;;) {
        uint64_t x = node->number[0].n;
        size_t low = 0, high = n;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (list[middle] < x)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == n || list[low] != x) {
            if (n == most)
                return too_much(p, &p->token, SM_EXPECT_LIST);
            memmove(list + low + 1, list + low, (n - low) * sizeof *list);
            list[low] = x;
            n++;
        }
        if (p->token.kind != SM_TOKEN_COMMA)
            break;
        if (!advance(p) || !get_value(p, VALUE_DOMAIN, node, 0))
            return false;
    }
    node->op = SM_OP_EQ;
    if (n > 1) {
        node->list = list;
        node->n_list = (uint32_t)n;
        drop_value(node, 0);
    }
    return true;
}

/* A comparison or range; *negated for !=. */
static bool get_test(struct parser *p, enum value_kind kind, struct sm_filter_node *node,
                     bool *negated) {
    static const enum sm_filter_op ops[] = {
        [SM_TOKEN_LT] = SM_OP_LT, [SM_TOKEN_LE] = SM_OP_LE, [SM_TOKEN_GT] = SM_OP_GT,
        [SM_TOKEN_GE] = SM_OP_GE, [SM_TOKEN_EQ] = SM_OP_EQ, [SM_TOKEN_NE] = SM_OP_EQ};
    enum sm_filter_token_kind token = p->token.kind;
    if (token >= SM_TOKEN_LT && token <= SM_TOKEN_NE) {
        node->op = ops[token];
        *negated = token == SM_TOKEN_NE;
        return advance(p) && get_value(p, kind, node, 0);
    }
    bool in = token_is(&p->token, "in");
    if (in && !advance(p))
        return false;
    if (!in && token != SM_TOKEN_DOTS && !looks_like_value(p, kind))
        return wrong(p, value_phrases[kind].test);
    if (kind != VALUE_DOMAIN || p->token.kind == SM_TOKEN_DOTS)
        return get_range(p, kind, node);
    if (!get_value(p, kind, node, 0))
        return false;
    return p->token.kind == SM_TOKEN_DOTS ? get_range_end(p, kind, node, false) : get_list(p, node);
}

/* ---- patterns ---- */

static bool get_subject(struct parser *p, struct sm_filter_pattern *pattern) {
    static const char *const names[] = {"function", "file", "module", "line"};
    for (unsigned i = 0; i < N_WORDS(names); i++) {
        if (token_is(&p->token, names[i])) {
            pattern->subject = (enum sm_filter_subject)i;
            return advance(p);
        }
    }
    return true;
}

static bool is_reserved(const struct sm_filter_token *t) {
    return token_in(t, condition_words, N_WORDS(condition_words)) ||
           token_in(t, other_words, N_WORDS(other_words));
}

/* [operator] text; negated == NULL: != and !~ are not allowed. */
static bool get_pattern(struct parser *p, struct sm_filter_pattern *pattern, bool *negated,
                        const char *expected) {
    enum sm_filter_token_kind op = p->token.kind;
    bool glob = token_is(&p->token, "glob");
    bool no = op == SM_TOKEN_NE || op == SM_TOKEN_NOT_TILDE;
    bool tilde = op == SM_TOKEN_TILDE || op == SM_TOKEN_NOT_TILDE;
    if (no && negated == NULL)
        return wrong(p, expected);
    if (no)
        *negated = true;
    bool has_op = glob || no || tilde || op == SM_TOKEN_EQ;
    if (has_op && !advance(p))
        return false;
    const struct sm_filter_token *t = &p->token;
    if (t->kind == SM_TOKEN_REGEX && (tilde || !has_op)) {
        if (!sm_regex_valid(t->text, t->bytes))
            return wrong(p, SM_EXPECT_REGEX);
        pattern->match = SM_MATCH_REGEX;
        pattern->text = t->text;
    } else if (t->kind == SM_TOKEN_STRING || (t->kind == SM_TOKEN_WORD && !is_reserved(t))) {
        pattern->match = glob ? SM_MATCH_GLOB : tilde ? SM_MATCH_CONTAINS : SM_MATCH_EQUAL;
        pattern->text = sm_arena_text(&p->filter->arena, t->text, t->bytes);
        if (pattern->text == NULL)
            return too_much(p, t, SM_EXPECT_LENGTH);
    } else {
        return wrong(p, expected);
    }
    pattern->bytes = t->bytes;
    return advance(p);
}

/* ---- conditions ---- */

static bool get_sources(struct parser *p, struct sm_filter_node *node, bool *negated) {
    bool list = token_is(&p->token, "in");
    *negated = p->token.kind == SM_TOKEN_NE;
    if ((list || *negated || p->token.kind == SM_TOKEN_EQ) && !advance(p))
        return false;
    for (;;) {
        uint32_t bit;
        if (p->token.kind != SM_TOKEN_WORD ||
            !sm_filter_source_get(p->token.text, p->token.bytes, &bit))
            return wrong(p, SM_EXPECT_SOURCE);
        node->sources |= bit;
        if (!advance(p))
            return false;
        if (!list || p->token.kind != SM_TOKEN_COMMA)
            return true;
        if (!advance(p))
            return false;
    }
}

static bool get_live(struct parser *p, struct sm_filter_node *node) {
    if (token_is(&p->token, "at")) {
        node->op = SM_OP_EQ;
        return advance(p) && get_value(p, VALUE_TIME, node, 0);
    }
    if (!token_is(&p->token, "in"))
        return wrong(p, SM_EXPECT_LIVE_TEST);
    return advance(p) && get_range(p, VALUE_TIME, node);
}

/* Promoted and collected may stand alone. */
static bool get_event(struct parser *p, struct sm_filter_node *node, bool *negated) {
    if (token_is(&p->token, "never")) {
        node->any = *negated = true;
        return advance(p);
    }
    if ((p->token.kind < SM_TOKEN_DOTS || p->token.kind > SM_TOKEN_NE) &&
        !token_is(&p->token, "in") && !looks_like_value(p, VALUE_TIME)) {
        node->any = true;
        return true;
    }
    return get_test(p, VALUE_TIME, node, negated);
}

static bool get_thread(struct parser *p, struct sm_filter_node *node, bool *negated) {
    bool equal = p->token.kind == SM_TOKEN_EQ || p->token.kind == SM_TOKEN_NE;
    struct sm_filter_lexer before = p->lexer;
    struct sm_filter_token op = p->token;
    if (equal && !advance(p))
        return false;
    uint64_t id;
    if (p->token.kind == SM_TOKEN_WORD &&
        sm_filter_count_get(p->token.text, p->token.bytes, &id)) {
        node->kind = SM_FILTER_THREAD_ID;
        node->number[0].n = id;
        *negated = op.kind == SM_TOKEN_NE;
        return advance(p);
    }
    p->lexer = before;
    p->token = op;
    return get_pattern(p, &node->pattern, negated, SM_EXPECT_THREAD);
}

static struct sm_filter_node *get_condition(struct parser *p) {
    static const struct {
        const char *word;
        enum sm_filter_kind kind;
    } kinds[] = {{"allocated", SM_FILTER_ALLOCATED}, {"promoted", SM_FILTER_PROMOTED},
                 {"collected", SM_FILTER_COLLECTED}, {"freed", SM_FILTER_COLLECTED},
                 {"live", SM_FILTER_LIVE},           {"size", SM_FILTER_SIZE},
                 {"lifetime", SM_FILTER_LIFETIME},   {"samples", SM_FILTER_SAMPLES},
                 {"domain", SM_FILTER_DOMAIN},       {"source", SM_FILTER_SOURCE},
                 {"thread", SM_FILTER_THREAD},       {"inside", SM_FILTER_INSIDE},
                 {"site", SM_FILTER_SITE}};
    struct sm_filter_token word = p->token;
    struct sm_filter_node *node = NULL;
    for (size_t i = 0; i < N_WORDS(kinds) && node == NULL; i++) {
        if (token_is(&word, kinds[i].word)) {
            node = new_node(p, kinds[i].kind);
            if (node == NULL)
                return NULL;
        }
    }
    if (node == NULL) {
        wrong(p, SM_EXPECT_CONDITION);
        return NULL;
    }
    if (++p->n_clauses > SM_FILTER_MAX_CLAUSES) {
        too_much(p, &word, SM_EXPECT_CLAUSES);
        return NULL;
    }
    bool negated = false, ok = advance(p);
    if (!ok)
        return NULL;
    switch (node->kind) {
    case SM_FILTER_ALLOCATED:
        ok = get_test(p, VALUE_TIME, node, &negated);
        break;
    case SM_FILTER_PROMOTED:
    case SM_FILTER_COLLECTED:
        ok = get_event(p, node, &negated);
        break;
    case SM_FILTER_LIVE:
        ok = get_live(p, node);
        break;
    case SM_FILTER_SIZE:
        ok = get_test(p, VALUE_SIZE, node, &negated);
        break;
    case SM_FILTER_LIFETIME:
        ok = get_test(p, VALUE_DURATION, node, &negated);
        break;
    case SM_FILTER_SAMPLES:
        ok = get_test(p, VALUE_COUNT, node, &negated);
        break;
    case SM_FILTER_DOMAIN:
        ok = get_test(p, VALUE_DOMAIN, node, &negated);
        break;
    case SM_FILTER_SOURCE:
        ok = get_sources(p, node, &negated);
        break;
    case SM_FILTER_THREAD:
        ok = get_thread(p, node, &negated);
        break;
    default:
        ok = get_subject(p, &node->pattern) &&
             get_pattern(p, &node->pattern, &negated, SM_EXPECT_NAME);
        break;
    }
    /* The canonical text writes `not`, which is one level more. */
    if (ok && negated && p->depth >= SM_FILTER_MAX_DEPTH)
        ok = too_much(p, &word, SM_EXPECT_DEPTH);
    if (!ok)
        return NULL;
    return negated ? negate(p, node) : node;
}

static bool is_view(const struct sm_filter_token *t) {
    return token_is(t, "hide") || token_is(t, "collapse");
}

static bool get_view(struct parser *p) {
    struct sm_filter_token word = p->token;
    if (++p->n_clauses > SM_FILTER_MAX_CLAUSES)
        return too_much(p, &word, SM_EXPECT_CLAUSES);
    struct sm_filter_view *view = new_in_arena(p, sizeof *view);
    if (view == NULL || !advance(p))
        return false;
    view->kind = token_is(&word, "hide") ? SM_VIEW_HIDE : SM_VIEW_COLLAPSE;
    if (!get_subject(p, &view->pattern) || !get_pattern(p, &view->pattern, NULL, SM_EXPECT_NAME))
        return false;
    *p->last_view = view;
    p->last_view = &view->next;
    p->filter->n_views++;
    return true;
}

/* ---- and, or, not ---- */

static bool get_or(struct parser *p, bool top, struct sm_filter_node **node);

/* Condition, (...), or not before one of them. */
static struct sm_filter_node *get_factor(struct parser *p) {
    unsigned outside = p->depth;
    bool negated = false;
    struct sm_filter_node *node;
    for (; token_is(&p->token, "not"); negated = !negated) {
        if (++p->depth > SM_FILTER_MAX_DEPTH) {
            too_much(p, &p->token, SM_EXPECT_DEPTH);
            return NULL;
        }
        if (!advance(p))
            return NULL;
    }
    if (p->token.kind == SM_TOKEN_OPEN) {
        if (++p->depth > SM_FILTER_MAX_DEPTH) {
            too_much(p, &p->token, SM_EXPECT_DEPTH);
            return NULL;
        }
        if (!advance(p) || !get_or(p, false, &node))
            return NULL;
        if (p->token.kind != SM_TOKEN_CLOSE) {
            wrong(p, SM_EXPECT_CLOSE);
            return NULL;
        }
        if (!advance(p))
            return NULL;
    } else if (is_view(&p->token)) {
        wrong(p, SM_EXPECT_NO_VIEW);
        return NULL;
    } else {
        node = get_condition(p);
    }
    p->depth = outside;
    return node != NULL && negated ? negate(p, node) : node;
}

static bool begins_factor(const struct sm_filter_token *t) {
    return t->kind == SM_TOKEN_OPEN || is_view(t) ||
           token_in(t, condition_words, N_WORDS(condition_words));
}

/* Factors, one after another or joined by `and`. *node NULL when there are but views. */
static bool get_and(struct parser *p, bool top, struct sm_filter_node **node, bool *views) {
    struct children c = {0};
    for (;;) {
        if (top && is_view(&p->token)) {
            *views = true;
            if (!get_view(p))
                return false;
        } else {
            struct sm_filter_node *factor = get_factor(p);
            if (factor == NULL)
                return false;
            add_child(&c, SM_FILTER_AND, factor);
        }
        if (token_is(&p->token, "and")) {
            if (!advance(p))
                return false;
        } else if (!begins_factor(&p->token)) {
            *node = join(p, &c, SM_FILTER_AND);
            return !p->failed;
        }
    }
}

static bool get_or(struct parser *p, bool top, struct sm_filter_node **node) {
    struct children c = {0};
    bool views = false;
    *node = NULL;
    for (;;) {
        struct sm_filter_node *part;
        if (!get_and(p, top, &part, &views))
            return false;
        if (part != NULL)
            add_child(&c, SM_FILTER_OR, part);
        bool more = token_is(&p->token, "or");
        if (views && (more || (p->token.kind != SM_TOKEN_END && p->token.kind != SM_TOKEN_SEMICOLON)))
            return wrong(p, SM_EXPECT_AFTER_VIEW);
        if (!more)
            break;
        if (!advance(p))
            return false;
        top = false;
    }
    *node = join(p, &c, SM_FILTER_OR);
    return !p->failed;
}

static bool get_filter(struct parser *p) {
    struct children c = {0};
    if (!advance(p))
        return false;
    for (;;) {
        struct sm_filter_node *part;
        while (p->token.kind == SM_TOKEN_SEMICOLON) {
            if (!advance(p))
                return false;
        }
        if (p->token.kind == SM_TOKEN_END)
            break;
        if (!get_or(p, true, &part))
            return false;
        if (part != NULL)
            add_child(&c, SM_FILTER_AND, part);
        if (p->token.kind != SM_TOKEN_SEMICOLON && p->token.kind != SM_TOKEN_END)
            return wrong(p, SM_EXPECT_MORE);
    }
    p->filter->root = join(p, &c, SM_FILTER_AND);
    return !p->failed;
}

struct sm_filter *sm_filter_parse(const char *text, size_t bytes, struct sm_filter_error *err) {
    struct sm_filter *f = sm_alloc_zero(1, sizeof *f);
    struct parser p = {.lexer = {.source = text, .bytes = bytes, .arena = &f->arena},
                       .filter = f,
                       .last_view = &f->views,
                       .error = err};
    struct sm_buffer canonical;
    sm_buffer_init(&canonical, -1);
    bool ok = bytes <= SM_FILTER_MAX_BYTES && get_filter(&p);
    if (ok)
        sm_filter_print(&canonical, f);
    /* What is printed must be readable again. */
    if (bytes > SM_FILTER_MAX_BYTES || canonical.used > SM_FILTER_MAX_BYTES) {
        set_error(&p, 0, SM_EXPECT_LENGTH, NULL);
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
