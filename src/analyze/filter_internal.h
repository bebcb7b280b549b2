/* Shared by the lexer, the parser and the printer of filters; not for others. */
#ifndef SM_ANALYZE_FILTER_INTERNAL_H
#define SM_ANALYZE_FILTER_INTERNAL_H

#include "analyze/filter.h"

/* Phrases of error messages. docs/filters.md lists them; other implementations use the same. */
#define SM_EXPECT_CONDITION "a condition such as size > 1kB"
#define SM_EXPECT_MORE "and, or, ; or another condition"
#define SM_EXPECT_CLOSE "and, or, another condition or )"
#define SM_EXPECT_AFTER_VIEW "and, ; or the end"
#define SM_EXPECT_NO_VIEW "a condition (hide and collapse stand alone, joined by and or ;)"
#define SM_EXPECT_TEST "<, <=, >, >=, =, != or a range such as"
#define SM_EXPECT_TIME_TEST SM_EXPECT_TEST " 1s..2s"
#define SM_EXPECT_SIZE_TEST SM_EXPECT_TEST " 1kB..2kB"
#define SM_EXPECT_DURATION_TEST SM_EXPECT_TEST " 1ms..1s"
#define SM_EXPECT_COUNT_TEST SM_EXPECT_TEST " 2..5"
#define SM_EXPECT_DOMAIN_TEST "=, !=, <, <=, >, >=, or a list such as 1,2,5"
#define SM_EXPECT_LIVE_TEST "at and a time, or in and a range such as 1s..2s"
#define SM_EXPECT_TIME "a time such as 1.5s, 50%, peak, end-5s or @10:00:00"
#define SM_EXPECT_SIZE "a size such as 4kB, 100B or 12w"
#define SM_EXPECT_DURATION "a duration such as 10ms or 1.5s"
#define SM_EXPECT_COUNT "a whole number"
#define SM_EXPECT_DOTS ".. between the ends of a range"
#define SM_EXPECT_ORDER "an upper end that is not below the lower one"
#define SM_EXPECT_SOURCE                                                                           \
    "a source: minor, major, external, native, normal, marshal, custom, mapped, reported, "        \
    "ocaml-heap, minor-heap, ocaml-stack or runtime"
#define SM_EXPECT_THREAD "the name or number of a thread"
#define SM_EXPECT_NAME "a name, in quotes if it is a word of this language"
#define SM_EXPECT_REGEX "a regular expression of the POSIX extended kind"
#define SM_EXPECT_QUOTE "a closing quote"
#define SM_EXPECT_SLASH "a closing /"
#define SM_EXPECT_ESCAPE "an escape: \\\" \\' \\\\ \\n \\t or \\xNN"
#define SM_EXPECT_DEPTH "at most 64 levels of () and not"
#define SM_EXPECT_CLAUSES "at most 1000 conditions"
#define SM_EXPECT_LIST "at most 1000 numbers"
#define SM_EXPECT_LENGTH "at most 65536 bytes"
#define SM_EXPECT_PRINTABLE "printable text; \\n, \\t and \\xNN stand for other bytes"

enum sm_filter_token_kind {
    SM_TOKEN_END = 0,
    SM_TOKEN_WORD,   /* text as it stands */
    SM_TOKEN_STRING, /* text without quotes and escapes */
    SM_TOKEN_REGEX,  /* text between the slashes, \/ replaced by / */
    SM_TOKEN_DOTS,
    SM_TOKEN_LT,
    SM_TOKEN_LE,
    SM_TOKEN_GT,
    SM_TOKEN_GE,
    SM_TOKEN_EQ,
    SM_TOKEN_NE,
    SM_TOKEN_TILDE,
    SM_TOKEN_NOT_TILDE,
    SM_TOKEN_OPEN,
    SM_TOKEN_CLOSE,
    SM_TOKEN_COMMA,
    SM_TOKEN_SEMICOLON,
    SM_TOKEN_OTHER, /* a character that begins nothing */
};

struct sm_filter_token {
    enum sm_filter_token_kind kind;
    size_t at, end; /* in the source */
    bool glued;     /* no blank between the token before and this one */
    const char *text;
    size_t bytes;
};

struct sm_filter_lexer {
    const char *source;
    size_t bytes, at;
    struct sm_arena *arena;
    /* Set when sm_filter_lex returned false. */
    size_t error_at;
    const char *expected;
};

/* The next token. False for a broken string or regular expression, or when the arena is full. */
bool sm_filter_lex(struct sm_filter_lexer *x, struct sm_filter_token *token);

/* ---- the parser ---- */

struct sm_filter_parser {
    struct sm_filter_lexer lexer;
    struct sm_filter_token token; /* the next one, not yet used */
    struct sm_filter *filter;
    struct sm_filter_view **last_view;
    unsigned depth, n_clauses;
    bool failed;
    struct sm_filter_error *error; /* may be NULL */
};

bool sm_filter_token_is(const struct sm_filter_token *t, const char *word);
bool sm_filter_is_condition(const struct sm_filter_token *t); /* begins a condition; or `not` */
bool sm_filter_is_view(const struct sm_filter_token *t);      /* begins a view directive */
bool sm_filter_is_reserved(const struct sm_filter_token *t);

/* Errors. The first one counts. All but advance return false. */
void sm_filter_set_error(struct sm_filter_parser *p, size_t at, const char *expected,
                         const struct sm_filter_token *found);
bool sm_filter_wrong(struct sm_filter_parser *p, const char *expected); /* the current token is */
bool sm_filter_too_much(struct sm_filter_parser *p, const struct sm_filter_token *t,
                        const char *expected);
bool sm_filter_advance(struct sm_filter_parser *p);

/* Cleared memory of the filter, NULL after an error was set. */
void *sm_filter_room(struct sm_filter_parser *p, size_t bytes);
struct sm_filter_node *sm_filter_node_new(struct sm_filter_parser *p, enum sm_filter_kind kind);
struct sm_filter_node *sm_filter_negate(struct sm_filter_parser *p, struct sm_filter_node *node);

/* At the first word of one. NULL or false after an error was set. */
struct sm_filter_node *sm_filter_get_condition(struct sm_filter_parser *p);
bool sm_filter_get_view(struct sm_filter_parser *p);

/* ---- values ---- */

/* Values out of words; false when the word is none. */
bool sm_filter_time_get(const char *text, size_t bytes, struct sm_filter_time *time);
bool sm_filter_size_get(const char *text, size_t bytes, struct sm_filter_number *size);
bool sm_filter_duration_get(const char *text, size_t bytes, uint64_t *ns);
bool sm_filter_count_get(const char *text, size_t bytes, uint64_t *n);

/* True when the word is meant as a time (or number), right or not: by its first character or word. */
bool sm_filter_looks_like_time(const char *text, size_t bytes);

/* Canonical texts. */
void sm_filter_time_put(struct sm_buffer *out, const struct sm_filter_time *time);
void sm_filter_size_put(struct sm_buffer *out, const struct sm_filter_number *size);
void sm_filter_duration_put(struct sm_buffer *out, uint64_t ns);

/* Index of a source's name in the bits of `sources`, and back. */
bool sm_filter_source_get(const char *text, size_t bytes, uint32_t *bit);
const char *sm_filter_source_name(unsigned index); /* NULL for bits without a name */

#endif
