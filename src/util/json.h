/* JSON as a stream. Whatever bytes a string holds, the result is valid: invalid UTF-8 becomes U+FFFD,
   and what must not reach a terminal is written as \uXXXX. Hosted, one thread at a time.

   Inside an object every value has a key; inside an array, and at the top, key is NULL. */
#ifndef SM_UTIL_JSON_H
#define SM_UTIL_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buffer.h"

struct sm_json {
    struct sm_buffer *out;
    bool compact;   /* one line, without blanks */
    bool first;     /* nothing stands before in the innermost object or array */
    unsigned depth; /* open objects and arrays */
};

void sm_json_init(struct sm_json *j, struct sm_buffer *out, bool compact);
void sm_json_open(struct sm_json *j, const char *key, char bracket); /* '{' or '[' */
void sm_json_close(struct sm_json *j, char bracket);                 /* '}' or ']' */
void sm_json_text(struct sm_json *j, const char *key, const char *text);
void sm_json_bytes(struct sm_json *j, const char *key, const char *text, size_t bytes);
void sm_json_u64(struct sm_json *j, const char *key, uint64_t x);
void sm_json_i64(struct sm_json *j, const char *key, int64_t x);
void sm_json_double(struct sm_json *j, const char *key, double x); /* null unless finite */
void sm_json_bool(struct sm_json *j, const char *key, bool x);
void sm_json_null(struct sm_json *j, const char *key);
void sm_json_end(struct sm_json *j); /* the line end after the top-level value */

/* The quoted form alone. */
void sm_json_quote(struct sm_buffer *out, const char *text, size_t bytes);

#endif
