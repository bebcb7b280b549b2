/* Filter texts into tokens.

   A word is any run of characters that are not blanks, quotes or operators; dots belong to words, two dots
   end one ("1s..2s"). So numbers with units, times, and most names of functions and files are
   single words, and the parser decides from the context what a word must be. A quote or a slash begins a
   string or a regular expression only where a token begins. */
#include <string.h>

#include "analyze/filter_internal.h"
#include "util/text.h"

static bool is_blank(unsigned char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Characters that words never hold: blanks, controls, operators, and what other languages
   (the shell, and people used to && and ||) give a meaning that this one does not. */
static bool ends_word(unsigned char c) {
    return c <= ' ' || c == 0x7F || strchr("()<>=!~\",;&|{}\\^`", c) != NULL;
}

static bool fail(struct sm_filter_lexer *x, size_t at, const char *expected) {
    x->error_at = at;
    x->expected = expected;
    return false;
}

static int hex_digit(unsigned char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Control characters cannot be seen, and the canonical text has none. */
static bool is_control(uint32_t c) {
    return c < ' ' || (c >= 0x7F && c < 0xA0);
}

/* Room for the text up to an unescaped `close`, or to the end. */
static char *room_until(struct sm_filter_lexer *x, char close) {
    size_t end = x->at;
    while (end < x->bytes && x->source[end] != close)
        end += x->source[end] == '\\' ? 2 : 1;
    return sm_arena_alloc(x->arena, end - x->at + 1);
}

/* Behind the opening quote at x->at - 1. */
static bool lex_string(struct sm_filter_lexer *x, struct sm_filter_token *token) {
    unsigned char quote = (unsigned char)x->source[x->at - 1];
    char *to = room_until(x, (char)quote);
    if (to == NULL)
        return fail(x, x->at, SM_EXPECT_LENGTH);
    token->kind = SM_TOKEN_STRING;
    token->text = to;
    for (; x->at < x->bytes; x->at++) {
        unsigned char c = (unsigned char)x->source[x->at];
        if (c == quote) {
            x->at++;
            *to = 0;
            token->bytes = (size_t)(to - token->text);
            return true;
        }
        if (c < ' ' || c == 0x7F)
            return fail(x, x->at, SM_EXPECT_PRINTABLE);
        if (c == '\\') {
            size_t left = x->bytes - x->at;
            c = left > 1 ? (unsigned char)x->source[x->at + 1] : 0;
            int high = left > 3 && c == 'x' ? hex_digit((unsigned char)x->source[x->at + 2]) : -1;
            int low = high >= 0 ? hex_digit((unsigned char)x->source[x->at + 3]) : -1;
            if (c == 'x' && high + low > 0 && low >= 0) {
                c = (unsigned char)(high << 4 | low);
                x->at += 2;
            } else if (c == 'n' || c == 't') {
                c = c == 'n' ? '\n' : '\t';
            } else if (c == 0 || strchr("\\\"'", c) == NULL) {
                return fail(x, x->at, SM_EXPECT_ESCAPE);
            }
            x->at++;
        }
        *to++ = (char)c;
    }
    return fail(x, x->bytes, SM_EXPECT_QUOTE);
}

/* Behind the opening slash. A backslash keeps its meaning for the expression, but for \/. */
static bool lex_regex(struct sm_filter_lexer *x, struct sm_filter_token *token) {
    char *to = room_until(x, '/');
    if (to == NULL)
        return fail(x, x->at, SM_EXPECT_LENGTH);
    token->kind = SM_TOKEN_REGEX;
    token->text = to;
    while (x->at < x->bytes) {
        size_t used;
        const char *p = x->source + x->at;
        uint32_t c = sm_utf8_get(p, x->bytes - x->at, &used);
        if (c == UINT32_MAX || is_control(c))
            return fail(x, x->at, SM_EXPECT_PRINTABLE);
        if (*p == '/') {
            x->at++;
            *to = 0;
            token->bytes = (size_t)(to - token->text);
            return true;
        }
        if (*p == '\\' && x->at + 1 < x->bytes) {
            if (p[1] != '/')
                *to++ = '\\';
            x->at++;
            if (p[1] == '/' || p[1] == '\\') {
                *to++ = p[1];
                x->at++;
            }
            continue;
        }
        memcpy(to, p, used);
        to += used;
        x->at += used;
    }
    return fail(x, x->bytes, SM_EXPECT_SLASH);
}

static enum sm_filter_token_kind lex_operator(struct sm_filter_lexer *x) {
    char c = x->source[x->at++];
    char next = x->at < x->bytes ? x->source[x->at] : 0;
    switch (c) {
    case '(':
        return SM_TOKEN_OPEN;
    case ')':
        return SM_TOKEN_CLOSE;
    case ',':
        return SM_TOKEN_COMMA;
    case ';':
        return SM_TOKEN_SEMICOLON;
    case '~':
        return SM_TOKEN_TILDE;
    case '=':
        x->at += next == '=';
        return SM_TOKEN_EQ;
    case '<':
        if (next != '=')
            return SM_TOKEN_LT;
        x->at++;
        return SM_TOKEN_LE;
    case '>':
        if (next != '=')
            return SM_TOKEN_GT;
        x->at++;
        return SM_TOKEN_GE;
    case '!':
        if (next != '=' && next != '~')
            return SM_TOKEN_OTHER;
        x->at++;
        return next == '=' ? SM_TOKEN_NE : SM_TOKEN_NOT_TILDE;
    default:
        return SM_TOKEN_OTHER;
    }
}

bool sm_filter_lex(struct sm_filter_lexer *x, struct sm_filter_token *token) {
    size_t before = x->at;
    while (x->at < x->bytes && is_blank((unsigned char)x->source[x->at]))
        x->at++;
    size_t at = x->at;
    *token = (struct sm_filter_token){.at = at, .glued = at == before, .text = x->source + at};
    bool ok = true;
    if (at == x->bytes) {
        token->kind = SM_TOKEN_END;
    } else if (x->source[at] == '"' || x->source[at] == '\'') {
        x->at++;
        ok = lex_string(x, token);
    } else if (x->source[at] == '/') {
        x->at++;
        ok = lex_regex(x, token);
    } else if (at + 1 < x->bytes && x->source[at] == '.' && x->source[at + 1] == '.') {
        x->at += 2;
        token->kind = SM_TOKEN_DOTS;
    } else if (ends_word((unsigned char)x->source[at])) {
        token->kind = lex_operator(x);
    } else {
        while (x->at < x->bytes && !ends_word((unsigned char)x->source[x->at]) &&
               !(x->source[x->at] == '.' && x->at + 1 < x->bytes && x->source[x->at + 1] == '.'))
            x->at++;
        token->kind = SM_TOKEN_WORD;
        token->bytes = x->at - at;
    }
    token->end = x->at;
    return ok;
}
