/* The tokens of a filter as the parser sees them, and what it says when they are wrong. See
   filter_internal.h. */
#include <stdio.h>
#include <string.h>

#include "analyze/filter_internal.h"
#include "util/text.h"

#define N_WORDS(list) (sizeof(list) / sizeof *(list))

static const char *const condition_words[] = {
    "allocated", "live",   "promoted", "collected", "freed",  "size", "lifetime",
    "samples",   "source", "domain",   "thread",    "inside", "site", "not"};
static const char *const other_words[] = {"and",      "or",   "in",       "at",   "never",  "hide",
                                          "collapse", "glob", "function", "file", "module", "line"};

bool sm_filter_token_is(const struct sm_filter_token *t, const char *word) {
    return t->kind == SM_TOKEN_WORD && t->bytes == strlen(word) &&
           memcmp(t->text, word, t->bytes) == 0;
}

static bool token_in(const struct sm_filter_token *t, const char *const *words, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (sm_filter_token_is(t, words[i]))
            return true;
    }
    return false;
}

bool sm_filter_is_condition(const struct sm_filter_token *t) {
    return token_in(t, condition_words, N_WORDS(condition_words));
}

bool sm_filter_is_reserved(const struct sm_filter_token *t) {
    return sm_filter_is_condition(t) || token_in(t, other_words, N_WORDS(other_words));
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

void sm_filter_set_error(struct sm_filter_parser *p, size_t at, const char *expected,
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
        if (similar != NULL && !sm_filter_is_condition(found))
            sm_buffer_printf(&text, "; did you mean %s?", similar);
    }
    snprintf(e->text, sizeof e->text, "%s", sm_buffer_string(&text));
    sm_buffer_release(&text);
}

/* The current token is wrong. */
bool sm_filter_wrong(struct sm_filter_parser *p, const char *expected) {
    if (!p->failed)
        sm_filter_set_error(p, p->token.at, expected, &p->token);
    return false;
}

bool sm_filter_too_much(struct sm_filter_parser *p, const struct sm_filter_token *t,
                        const char *expected) {
    if (!p->failed)
        sm_filter_set_error(p, t->at, expected, NULL);
    return false;
}

bool sm_filter_advance(struct sm_filter_parser *p) {
    if (!sm_filter_lex(&p->lexer, &p->token) && !p->failed)
        sm_filter_set_error(p, p->lexer.error_at, p->lexer.expected, NULL);
    return !p->failed;
}
