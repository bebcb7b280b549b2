/* See gzip.h. */
#include "export/gzip.h"

#ifdef SM_HAVE_ZLIB
#include <zlib.h>

#include "util/memory.h"

bool sm_gzip(struct sm_buffer *out, const void *data, size_t bytes) {
    z_stream z = {0};
    const size_t step = 1 << 20; /* zlib counts in 32 bits */
    if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        sm_memory_failed(256 << 10);
    const unsigned char *at = data;
    int status;
    do {
        size_t n = bytes < step ? bytes : step;
        z.next_in = (unsigned char *)(uintptr_t)at;
        z.avail_in = (unsigned)n;
        at += n;
        bytes -= n;
        do {
            z.avail_out = 1 << 16;
            z.next_out = (unsigned char *)sm_buffer_room(out, 1 << 16);
            status = deflate(&z, bytes == 0 ? Z_FINISH : Z_NO_FLUSH);
            out->used += (1 << 16) - z.avail_out;
        } while (z.avail_out == 0);
    } while (bytes > 0);
    deflateEnd(&z);
    return status == Z_STREAM_END;
}
#else
bool sm_gzip(struct sm_buffer *out, const void *data, size_t bytes) {
    (void)out, (void)data, (void)bytes;
    return false;
}
#endif
