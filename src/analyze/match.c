/* See match.h. */
#include "analyze/match.h"

#include <string.h>

bool sm_matcher_init(struct sm_matcher *m, const struct sm_filter_pattern *pattern) {
    memset(m, 0, sizeof *m);
    m->match = pattern->match;
    m->subject = pattern->subject;
    m->text = pattern->text;
    m->bytes = pattern->bytes;
    if (m->match == SM_MATCH_REGEX)
        m->regex = sm_regex_new(m->text, m->bytes);
    return m->match != SM_MATCH_REGEX || m->regex != NULL;
}

void sm_matcher_release(struct sm_matcher *m) {
    sm_regex_free(m->regex);
    memset(m, 0, sizeof *m);
}

/* One element of a glob at *p against a byte; moves *p behind the element. A set that is not closed
   is a plain [. */
static bool glob_element(const char **p, const char *end, unsigned char c) {
    const char *at = *p;
    if (*at == '?') {
        *p = at + 1;
        return true;
    }
    if (*at == '\\' && at + 1 < end)
        at++;
    if (*at != '[' || at != *p) {
        *p = at + 1;
        return (unsigned char)*at == c;
    }
    const char *set = at + 1;
    bool no = set < end && (*set == '!' || *set == '^');
    set += no;
    const char *close = set < end ? memchr(set + 1, ']', (size_t)(end - set - 1)) : NULL;
    if (close == NULL) {
        *p = at + 1;
        return c == '[';
    }
    bool found = false;
    for (const char *s = set; s < close; s++) {
        unsigned char low = (unsigned char)*s;
        unsigned char high = low;
        if (s + 2 < close && s[1] == '-') {
            high = (unsigned char)s[2];
            s += 2;
        }
        found = found || (c >= low && c <= high);
    }
    *p = close + 1;
    return found != no;
}

/* * any bytes, ? one byte, [a-z] [!a-z] sets, \ takes the next one as it is. Goes back to the last star
   only: a star further left can gain nothing that the last one cannot. */
static bool match_glob(const char *p, size_t p_bytes, const char *s, size_t s_bytes) {
    const char *p_end = p + p_bytes, *s_end = s + s_bytes, *star = NULL, *retry = NULL;
    while (s < s_end) {
        const char *next = p;
        if (p < p_end && *p == '*') {
            star = ++p;
            retry = s;
        } else if (p < p_end && glob_element(&next, p_end, (unsigned char)*s)) {
            p = next;
            s++;
        } else if (star != NULL) {
            p = star;
            s = ++retry;
        } else {
            return false;
        }
    }
    while (p < p_end && *p == '*')
        p++;
    return p == p_end;
}

bool sm_match(const struct sm_matcher *m, const char *name, size_t bytes) {
    switch (m->match) {
    case SM_MATCH_EQUAL:
        return bytes == m->bytes && memcmp(name, m->text, bytes) == 0;
    case SM_MATCH_CONTAINS:
        return m->bytes == 0 || memmem(name, bytes, m->text, m->bytes) != NULL;
    case SM_MATCH_GLOB:
        return match_glob(m->text, m->bytes, name, bytes);
    case SM_MATCH_REGEX:
        return sm_regex_match(m->regex, name, bytes);
    }
    return false;
}

bool sm_match_file(const struct sm_matcher *m, const char *name, size_t bytes) {
    if (m->match == SM_MATCH_EQUAL && m->bytes > 0 && bytes > m->bytes)
        return name[bytes - m->bytes - 1] == '/' &&
               memcmp(name + bytes - m->bytes, m->text, m->bytes) == 0;
    return sm_match(m, name, bytes);
}

bool sm_match_module(const struct sm_matcher *m, const char *name, size_t bytes) {
    if (m->match == SM_MATCH_EQUAL && m->bytes > 0 && bytes > m->bytes)
        return name[m->bytes] == '.' && memcmp(name, m->text, m->bytes) == 0;
    return sm_match(m, name, bytes);
}
