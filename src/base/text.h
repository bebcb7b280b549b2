/* Short texts (paths, messages) into a fixed buffer without stdio. Always terminated; what does
   not fit is dropped and remembered. Hook-safe, header only. */
#ifndef SM_BASE_TEXT_H
#define SM_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sm_text {
    char *buf;
    size_t capacity; /* > 0 */
    size_t used;
    bool overflowed;
};

static inline struct sm_text sm_text_in(char *buf, size_t capacity) {
    buf[0] = 0;
    return (struct sm_text){.buf = buf, .capacity = capacity};
}

static inline void sm_text_char(struct sm_text *t, char c) {
    if (t->used + 1 >= t->capacity) {
        t->overflowed = true;
        return;
    }
    t->buf[t->used++] = c;
    t->buf[t->used] = 0;
}

static inline void sm_text_add(struct sm_text *t, const char *s) {
    while (*s != 0)
        sm_text_char(t, *s++);
}

static inline void sm_text_number(struct sm_text *t, uint64_t x) {
    char digits[20];
    int n = 0;
    do
        digits[n++] = (char)('0' + x % 10);
    while ((x /= 10) != 0);
    while (n > 0)
        sm_text_char(t, digits[--n]);
}

#endif
