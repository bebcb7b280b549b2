/* See json.h. */
#include "util/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/text.h"

void sm_json_init(struct sm_json *j, struct sm_buffer *out, bool compact) {
    *j = (struct sm_json){.out = out, .compact = compact, .first = true};
}

void sm_json_quote(struct sm_buffer *out, const char *text, size_t bytes) {
    sm_buffer_char(out, '"');
    while (bytes > 0) {
        size_t plain = 0;
        while (plain < bytes && text[plain] >= 0x20 && text[plain] < 0x7F && text[plain] != '"' &&
               text[plain] != '\\')
            plain++;
        sm_buffer_bytes(out, text, plain);
        text += plain;
        bytes -= plain;
        if (bytes == 0)
            break;
        size_t used;
        uint32_t code = sm_utf8_get(text, bytes, &used);
        if (code == UINT32_MAX)
            sm_buffer_text(out, "\xEF\xBF\xBD");
        else if (code == '"' || code == '\\')
            sm_buffer_printf(out, "\\%c", (char)code);
        else if (code == '\n')
            sm_buffer_text(out, "\\n");
        else if (code == '\t')
            sm_buffer_text(out, "\\t");
        else if (sm_char_hostile(code) && code > 0xFFFF)
            sm_buffer_printf(out, "\\u%04x\\u%04x", (unsigned)(0xD7C0 + (code >> 10)),
                             (unsigned)(0xDC00 + (code & 0x3FF)));
        else if (sm_char_hostile(code))
            sm_buffer_printf(out, "\\u%04x", (unsigned)code);
        else
            sm_buffer_bytes(out, text, used);
        text += used;
        bytes -= used;
    }
    sm_buffer_char(out, '"');
}

/* Separator, line break and key before a value. */
static void before(struct sm_json *j, const char *key) {
    if (!j->first)
        sm_buffer_char(j->out, ',');
    if (!j->compact && j->depth > 0) {
        sm_buffer_char(j->out, '\n');
        sm_buffer_fill(j->out, ' ', 2 * j->depth);
    }
    j->first = false;
    if (key != NULL) {
        sm_json_quote(j->out, key, strlen(key));
        sm_buffer_text(j->out, j->compact ? ":" : ": ");
    }
}

void sm_json_open(struct sm_json *j, const char *key, char bracket) {
    before(j, key);
    sm_buffer_char(j->out, bracket);
    j->depth++;
    j->first = true;
}

void sm_json_close(struct sm_json *j, char bracket) {
    j->depth--;
    if (!j->compact && !j->first) {
        sm_buffer_char(j->out, '\n');
        sm_buffer_fill(j->out, ' ', 2 * j->depth);
    }
    sm_buffer_char(j->out, bracket);
    j->first = false;
}

void sm_json_bytes(struct sm_json *j, const char *key, const char *text, size_t bytes) {
    before(j, key);
    sm_json_quote(j->out, text, bytes);
}

void sm_json_text(struct sm_json *j, const char *key, const char *text) {
    sm_json_bytes(j, key, text, strlen(text));
}

void sm_json_u64(struct sm_json *j, const char *key, uint64_t x) {
    before(j, key);
    sm_buffer_u64(j->out, x);
}

void sm_json_i64(struct sm_json *j, const char *key, int64_t x) {
    before(j, key);
    if (x < 0)
        sm_buffer_char(j->out, '-');
    sm_buffer_u64(j->out, x < 0 ? 0 - (uint64_t)x : (uint64_t)x);
}

void sm_json_double(struct sm_json *j, const char *key, double x) {
    if (!isfinite(x)) {
        sm_json_null(j, key);
        return;
    }
    before(j, key);
    /* The shortest form that reads back the same. */
    char digits[40];
    for (int precision = 6; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, x);
        if (strtod(digits, NULL) == x)
            break;
    }
    sm_buffer_text(j->out, digits);
}

void sm_json_bool(struct sm_json *j, const char *key, bool x) {
    before(j, key);
    sm_buffer_text(j->out, x ? "true" : "false");
}

void sm_json_null(struct sm_json *j, const char *key) {
    before(j, key);
    sm_buffer_text(j->out, "null");
}

void sm_json_end(struct sm_json *j) {
    sm_buffer_char(j->out, '\n');
    j->first = true;
}
