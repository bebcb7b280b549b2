/* See buffer.h. */
#include "util/buffer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/memory.h"

#define FLUSH_BYTES (256u << 10)

void sm_buffer_init(struct sm_buffer *b, int fd) {
    *b = (struct sm_buffer){.fd = fd};
}

void sm_buffer_release(struct sm_buffer *b) {
    free(b->data);
    *b = (struct sm_buffer){.fd = -1};
}

bool sm_buffer_flush(struct sm_buffer *b) {
    if (b->fd < 0)
        return true;
    size_t done = 0;
    while (done < b->used && b->error == 0) {
        ssize_t n = write(b->fd, b->data + done, b->used - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno != EINTR)
            b->error = errno;
    }
    b->used = 0;
    return b->error == 0;
}

char *sm_buffer_room(struct sm_buffer *b, size_t bytes) {
    if (b->capacity - b->used >= bytes)
        return b->data + b->used;
    if (b->fd >= 0 && b->used > 0)
        sm_buffer_flush(b);
    size_t wanted = b->used + bytes;
    if (b->fd >= 0 && wanted < FLUSH_BYTES)
        wanted = FLUSH_BYTES;
    b->data = sm_grow(b->data, &b->capacity, wanted, 1);
    return b->data + b->used;
}

void sm_buffer_bytes(struct sm_buffer *b, const void *data, size_t bytes) {
    if (bytes == 0)
        return;
    memcpy(sm_buffer_room(b, bytes), data, bytes);
    b->used += bytes;
}

void sm_buffer_printf(struct sm_buffer *b, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    char *to = sm_buffer_room(b, 128);
    int n = vsnprintf(to, b->capacity - b->used, format, args);
    if (n > 0 && (size_t)n >= b->capacity - b->used) {
        to = sm_buffer_room(b, (size_t)n + 1);
        vsnprintf(to, (size_t)n + 1, format, again);
    }
    if (n > 0)
        b->used += (size_t)n;
    va_end(again);
    va_end(args);
}

void sm_buffer_u64(struct sm_buffer *b, uint64_t x) {
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + x % 10);
        x /= 10;
    } while (x > 0);
    sm_buffer_bytes(b, digits + at, sizeof digits - at);
}

void sm_buffer_fill(struct sm_buffer *b, char c, size_t n) {
    if (n == 0)
        return;
    memset(sm_buffer_room(b, n), c, n);
    b->used += n;
}

const char *sm_buffer_string(struct sm_buffer *b) {
    *sm_buffer_room(b, 1) = 0;
    return b->data;
}
