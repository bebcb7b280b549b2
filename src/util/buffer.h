/* Text and bytes on their way out: a buffer that either grows in memory (fd < 0) or is written to a
   file descriptor whenever it is full. Hosted, one thread at a time.

   Write errors are remembered (`error`, an errno value), after which everything is thrown away: callers write on
   and ask once at the end. */
#ifndef SM_UTIL_BUFFER_H
#define SM_UTIL_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct sm_buffer {
    char *data;
    size_t used;
    size_t capacity;
    int fd;
    int error; /* errno of the first failed write, 0 = none */
};

void sm_buffer_init(struct sm_buffer *b, int fd); /* fd < 0: memory only */
void sm_buffer_release(struct sm_buffer *b);      /* without flushing */
bool sm_buffer_flush(struct sm_buffer *b);        /* false after any write error */

/* Makes room for `bytes` (below 1 MiB when there is a descriptor) and returns where to write them;
   add what was used to b->used. */
char *sm_buffer_room(struct sm_buffer *b, size_t bytes);

void sm_buffer_bytes(struct sm_buffer *b, const void *data, size_t bytes);
void sm_buffer_printf(struct sm_buffer *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sm_buffer_u64(struct sm_buffer *b, uint64_t x);
void sm_buffer_fill(struct sm_buffer *b, char c, size_t n);

static inline void sm_buffer_char(struct sm_buffer *b, char c) {
    if (b->used == b->capacity)
        sm_buffer_room(b, 1);
    b->data[b->used++] = c;
}
static inline void sm_buffer_text(struct sm_buffer *b, const char *text) {
    sm_buffer_bytes(b, text, strlen(text));
}

/* Memory only: the text so far, ended by NUL (not counted in `used`). */
const char *sm_buffer_string(struct sm_buffer *b);

#endif
