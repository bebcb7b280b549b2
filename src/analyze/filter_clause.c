/* Single conditions and view directives: a word, and what is said of it. Sugar (!=, `never`, `freed`,
   open ranges) is resolved here, so that the tree has one form for one meaning. */
#include <string.h>

#include "analyze/filter_internal.h"
#include "analyze/regex.h"

#define N_WORDS(list) (sizeof(list) / sizeof *(list))

/* ---- nodes ---- */

void *sm_filter_room(struct sm_filter_parser *p, size_t bytes) {
    void *node = sm_arena_alloc(&p->filter->arena, bytes);
    if (node == NULL) {
        sm_filter_too_much(p, &p->token, SM_EXPECT_LENGTH);
        return NULL;
    }
    return memset(node, 0, bytes);
}

struct sm_filter_node *sm_filter_node_new(struct sm_filter_parser *p, enum sm_filter_kind kind) {
    struct sm_filter_node *node = sm_filter_room(p, sizeof *node);
    if (node != NULL)
        node->kind = kind;
    return node;
}

struct sm_filter_node *sm_filter_negate(struct sm_filter_parser *p, struct sm_filter_node *node) {
    if (node == NULL || node->kind == SM_FILTER_NOT)
        return node == NULL ? NULL : node->first;
    struct sm_filter_node *not = sm_filter_node_new(p, SM_FILTER_NOT);
    if (not != NULL)
        not ->first = node;
    return not ;
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

static bool looks_like_value(const struct sm_filter_parser *p, enum value_kind kind) {
    const struct sm_filter_token *t = &p->token;
    if (t->kind != SM_TOKEN_WORD)
        return false;
    if (kind == VALUE_TIME)
        return sm_filter_looks_like_time(t->text, t->bytes);
    return t->text[0] >= '0' && t->text[0] <= '9';
}

/* The current token as value i of the node. */
static bool get_value(struct sm_filter_parser *p, enum value_kind kind, struct sm_filter_node *node,
                      int i) {
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
    return ok ? sm_filter_advance(p) : sm_filter_wrong(p, value_phrases[kind].value);
}

/* < 0, 0, > 0 as the node's values compare; 1 < 2 when only a trace can tell. */
static int compare_ends(const struct sm_filter_node *node, enum value_kind kind) {
    if (kind == VALUE_TIME) {
        if (node->time[0].anchor != node->time[1].anchor)
            return -1;
        return node->time[0].offset < node->time[1].offset
                   ? -1
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
static bool get_range_end(struct sm_filter_parser *p, enum value_kind kind,
                          struct sm_filter_node *node, bool open) {
    if (p->token.kind != SM_TOKEN_DOTS)
        return sm_filter_wrong(p, SM_EXPECT_DOTS);
    if (!sm_filter_advance(p))
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
            sm_filter_set_error(p, upper.at, SM_EXPECT_ORDER, &upper);
        return false;
    }
    node->op = order == 0 ? SM_OP_EQ : SM_OP_BETWEEN;
    if (order == 0)
        drop_value(node, 1);
    return true;
}

static bool get_range(struct sm_filter_parser *p, enum value_kind kind,
                      struct sm_filter_node *node) {
    bool open = p->token.kind == SM_TOKEN_DOTS;
    return (open || get_value(p, kind, node, 0)) && get_range_end(p, kind, node, open);
}

/* The list behind its first number, which is value 0. */
static bool get_list(struct sm_filter_parser *p, struct sm_filter_node *node) {
    static const size_t most = SM_FILTER_MAX_LIST;
    node->op = SM_OP_EQ;
    if (p->token.kind != SM_TOKEN_COMMA)
        return true;
    uint64_t *list = sm_filter_room(p, most * sizeof *list);
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
                return sm_filter_too_much(p, &p->token, SM_EXPECT_LIST);
            memmove(list + low + 1, list + low, (n - low) * sizeof *list);
            list[low] = x;
            n++;
        }
        if (p->token.kind != SM_TOKEN_COMMA)
            break;
        if (!sm_filter_advance(p) || !get_value(p, VALUE_DOMAIN, node, 0))
            return false;
    }
    if (n > 1) {
        node->list = list;
        node->n_list = (uint32_t)n;
        drop_value(node, 0);
    }
    return true;
}

/* A comparison or range; *negated for !=. */
static bool get_test(struct sm_filter_parser *p, enum value_kind kind, struct sm_filter_node *node,
                     bool *negated) {
    static const enum sm_filter_op ops[] = {
        [SM_TOKEN_LT] = SM_OP_LT, [SM_TOKEN_LE] = SM_OP_LE, [SM_TOKEN_GT] = SM_OP_GT,
        [SM_TOKEN_GE] = SM_OP_GE, [SM_TOKEN_EQ] = SM_OP_EQ, [SM_TOKEN_NE] = SM_OP_EQ};
    enum sm_filter_token_kind token = p->token.kind;
    if (token >= SM_TOKEN_LT && token <= SM_TOKEN_NE) {
        node->op = ops[token];
        *negated = token == SM_TOKEN_NE;
        return sm_filter_advance(p) && get_value(p, kind, node, 0);
    }
    bool in = sm_filter_token_is(&p->token, "in");
    if (in && !sm_filter_advance(p))
        return false;
    if (!in && token != SM_TOKEN_DOTS && !looks_like_value(p, kind))
        return sm_filter_wrong(p, value_phrases[kind].test);
    if (kind != VALUE_DOMAIN || p->token.kind == SM_TOKEN_DOTS)
        return get_range(p, kind, node);
    if (!get_value(p, kind, node, 0))
        return false;
    return p->token.kind == SM_TOKEN_DOTS ? get_range_end(p, kind, node, false) : get_list(p, node);
}

/* ---- patterns ---- */

static bool get_subject(struct sm_filter_parser *p, struct sm_filter_pattern *pattern) {
    static const char *const names[] = {"function", "file", "module", "line"};
    for (unsigned i = 0; i < N_WORDS(names); i++) {
        if (sm_filter_token_is(&p->token, names[i])) {
            pattern->subject = (enum sm_filter_subject)i;
            return sm_filter_advance(p);
        }
    }
    return true;
}

/* [operator] text; negated == NULL: != and !~ are not allowed. */
static bool get_pattern(struct sm_filter_parser *p, struct sm_filter_pattern *pattern,
                        bool *negated, const char *expected) {
    enum sm_filter_token_kind op = p->token.kind;
    bool glob = sm_filter_token_is(&p->token, "glob");
    bool no = op == SM_TOKEN_NE || op == SM_TOKEN_NOT_TILDE;
    bool tilde = op == SM_TOKEN_TILDE || op == SM_TOKEN_NOT_TILDE;
    if (no && negated == NULL)
        return sm_filter_wrong(p, expected);
    if (no)
        *negated = true;
    bool has_op = glob || no || tilde || op == SM_TOKEN_EQ;
    if (has_op && !sm_filter_advance(p))
        return false;
    const struct sm_filter_token *t = &p->token;
    if (t->kind == SM_TOKEN_REGEX && (tilde || !has_op)) {
        struct sm_regex *regex = sm_regex_new(t->text, t->bytes);
        if (regex == NULL)
            return sm_filter_wrong(p, SM_EXPECT_REGEX);
        sm_regex_free(regex);
        pattern->match = SM_MATCH_REGEX;
        pattern->text = t->text;
    } else if (t->kind == SM_TOKEN_STRING ||
               (t->kind == SM_TOKEN_WORD && !sm_filter_is_reserved(t))) {
        pattern->match = glob ? SM_MATCH_GLOB : tilde ? SM_MATCH_CONTAINS : SM_MATCH_EQUAL;
        pattern->text = sm_arena_text(&p->filter->arena, t->text, t->bytes);
        if (pattern->text == NULL)
            return sm_filter_too_much(p, t, SM_EXPECT_LENGTH);
    } else {
        return sm_filter_wrong(p, expected);
    }
    pattern->bytes = t->bytes;
    return sm_filter_advance(p);
}

/* ---- conditions ---- */

static bool get_sources(struct sm_filter_parser *p, struct sm_filter_node *node, bool *negated) {
    bool list = sm_filter_token_is(&p->token, "in");
    *negated = p->token.kind == SM_TOKEN_NE;
    if ((list || *negated || p->token.kind == SM_TOKEN_EQ) && !sm_filter_advance(p))
        return false;
    for (;;) {
        uint32_t bit;
        if (p->token.kind != SM_TOKEN_WORD ||
            !sm_filter_source_get(p->token.text, p->token.bytes, &bit))
            return sm_filter_wrong(p, SM_EXPECT_SOURCE);
        node->sources |= bit;
        if (!sm_filter_advance(p))
            return false;
        if (!list || p->token.kind != SM_TOKEN_COMMA)
            return true;
        if (!sm_filter_advance(p))
            return false;
    }
}

static bool get_live(struct sm_filter_parser *p, struct sm_filter_node *node) {
    if (sm_filter_token_is(&p->token, "at")) {
        node->op = SM_OP_EQ;
        return sm_filter_advance(p) && get_value(p, VALUE_TIME, node, 0);
    }
    if (!sm_filter_token_is(&p->token, "in"))
        return sm_filter_wrong(p, SM_EXPECT_LIVE_TEST);
    return sm_filter_advance(p) && get_range(p, VALUE_TIME, node);
}

/* Promoted and collected may stand alone. */
static bool get_event(struct sm_filter_parser *p, struct sm_filter_node *node, bool *negated) {
    if (sm_filter_token_is(&p->token, "never")) {
        node->any = *negated = true;
        return sm_filter_advance(p);
    }
    if ((p->token.kind < SM_TOKEN_DOTS || p->token.kind > SM_TOKEN_NE) &&
        !sm_filter_token_is(&p->token, "in") && !looks_like_value(p, VALUE_TIME)) {
        node->any = true;
        return true;
    }
    return get_test(p, VALUE_TIME, node, negated);
}

static bool get_thread(struct sm_filter_parser *p, struct sm_filter_node *node, bool *negated) {
    bool equal = p->token.kind == SM_TOKEN_EQ || p->token.kind == SM_TOKEN_NE;
    struct sm_filter_lexer before = p->lexer;
    struct sm_filter_token op = p->token;
    if (equal && !sm_filter_advance(p))
        return false;
    uint64_t id;
    if (p->token.kind == SM_TOKEN_WORD && sm_filter_count_get(p->token.text, p->token.bytes, &id)) {
        node->kind = SM_FILTER_THREAD_ID;
        node->number[0].n = id;
        *negated = op.kind == SM_TOKEN_NE;
        return sm_filter_advance(p);
    }
    p->lexer = before;
    p->token = op;
    return get_pattern(p, &node->pattern, negated, SM_EXPECT_THREAD);
}

struct sm_filter_node *sm_filter_get_condition(struct sm_filter_parser *p) {
    static const struct {
        const char *word;
        enum sm_filter_kind kind;
    } kinds[] = {{"allocated", SM_FILTER_ALLOCATED},
                 {"promoted", SM_FILTER_PROMOTED},
                 {"collected", SM_FILTER_COLLECTED},
                 {"freed", SM_FILTER_COLLECTED},
                 {"live", SM_FILTER_LIVE},
                 {"size", SM_FILTER_SIZE},
                 {"lifetime", SM_FILTER_LIFETIME},
                 {"samples", SM_FILTER_SAMPLES},
                 {"domain", SM_FILTER_DOMAIN},
                 {"source", SM_FILTER_SOURCE},
                 {"thread", SM_FILTER_THREAD},
                 {"inside", SM_FILTER_INSIDE},
                 {"site", SM_FILTER_SITE}};
    struct sm_filter_token word = p->token;
    struct sm_filter_node *node = NULL;
    for (size_t i = 0; i < N_WORDS(kinds) && node == NULL; i++) {
        if (sm_filter_token_is(&word, kinds[i].word)) {
            node = sm_filter_node_new(p, kinds[i].kind);
            if (node == NULL)
                return NULL;
        }
    }
    if (node == NULL) {
        sm_filter_wrong(p, SM_EXPECT_CONDITION);
        return NULL;
    }
    if (++p->n_clauses > SM_FILTER_MAX_CLAUSES) {
        sm_filter_too_much(p, &word, SM_EXPECT_CLAUSES);
        return NULL;
    }
    bool negated = false, ok = sm_filter_advance(p);
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
    if (!ok)
        return NULL;
    return negated ? sm_filter_negate(p, node) : node;
}

bool sm_filter_is_view(const struct sm_filter_token *t) {
    return sm_filter_token_is(t, "hide") || sm_filter_token_is(t, "collapse");
}

bool sm_filter_get_view(struct sm_filter_parser *p) {
    struct sm_filter_token word = p->token;
    if (++p->n_clauses > SM_FILTER_MAX_CLAUSES)
        return sm_filter_too_much(p, &word, SM_EXPECT_CLAUSES);
    struct sm_filter_view *view = sm_filter_room(p, sizeof *view);
    if (view == NULL || !sm_filter_advance(p))
        return false;
    view->kind = sm_filter_token_is(&word, "hide") ? SM_VIEW_HIDE : SM_VIEW_COLLAPSE;
    if (!get_subject(p, &view->pattern) || !get_pattern(p, &view->pattern, NULL, SM_EXPECT_NAME))
        return false;
    *p->last_view = view;
    p->last_view = &view->next;
    p->filter->n_views++;
    return true;
}
