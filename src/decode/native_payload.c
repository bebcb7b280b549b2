/* One packet's payload: checked, unpacked, padded. The only file that knows zstd. */
#include <stdlib.h>
#include <string.h>
#ifdef SM_HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/crc32c.h"
#include "decode/native_internal.h"

bool sm_native_charge(struct sm_native *n, uint64_t bytes) {
    if (bytes > SM_NATIVE_BUDGET_BYTES - n->budget_used_bytes)
        return false;
    n->budget_used_bytes += bytes;
    return true;
}

static bool buffer_room(struct sm_native *n, struct sm_native_buffer *b, size_t bytes) {
    bytes += SM_NATIVE_PADDING;
    if (b->capacity >= bytes)
        return true;
    if (bytes < 8192)
        bytes = 8192;
    else
        bytes = (bytes + 65535) & ~(size_t)65535;
    n->budget_used_bytes -= b->capacity;
    free(b->data);
    b->capacity = 0;
    b->data = sm_native_charge(n, bytes) ? malloc(bytes) : NULL;
    if (b->data == NULL)
        return false;
    b->capacity = bytes;
    return true;
}

void sm_native_buffer_release(struct sm_native *n, struct sm_native_buffer *b) {
    n->budget_used_bytes -= b->capacity;
    free(b->data);
    memset(b, 0, sizeof *b);
}

void sm_native_payload_release(struct sm_native *n) {
    sm_native_zstd_free(n->zstd);
    n->zstd = NULL;
}

static const uint8_t *stored(const struct sm_trace *t, const struct sm_native_packet *p) {
    const struct sm_native *n = t->backend_data;
    return ((p->flags & SM_NATIVE_TAIL) != 0 ? n->tail->data : t->input.data) + p->offset;
}

bool sm_native_payload_holds(const struct sm_trace *t, const struct sm_native_packet *p) {
    return (p->flags & SM_NATIVE_TAIL) != 0 ||
           sm_crc32c(0, stored(t, p), p->stored_bytes) == p->payload_crc;
}

#ifdef SM_HAVE_ZSTD
/* NULL, or why not. */
static const char *unpack(void **zstd, const uint8_t *from, const struct sm_native_packet *p,
                          uint8_t *to) {
    if (*zstd == NULL)
        *zstd = ZSTD_createDCtx();
    if (*zstd == NULL)
        return "needs more memory than a reader takes";
    size_t size = ZSTD_decompressDCtx(*zstd, to, p->raw_bytes, from, p->stored_bytes);
    if (ZSTD_isError(size))
        return "does not decompress";
    if (size != p->raw_bytes)
        return "decompresses to another size than announced";
    return NULL;
}
#endif

const char *sm_native_unpack(const struct sm_trace *t, const struct sm_native_packet *p,
                             void **zstd, uint8_t *(*room)(void *ctx, size_t bytes_without_padding),
                             void *ctx, enum sm_loss_kind *kind, const uint8_t **data,
                             size_t *bytes) {
    const struct sm_native *n = t->backend_data;
    const uint8_t *from = stored(t, p);
    if ((p->flags & (SM_NATIVE_CUT | SM_NATIVE_CHECKED)) == 0 && !sm_native_payload_holds(t, p))
        return "is damaged (its checksum does not hold)";
    *bytes = p->codec == SM_CODEC_NONE ? p->stored_bytes : p->raw_bytes;
    if (p->codec == SM_CODEC_NONE) {
        uint64_t limit = (p->flags & SM_NATIVE_TAIL) != 0 ? n->tail->bytes : t->input.bytes;
        *data = from;
        if (limit - p->offset - p->stored_bytes >= SM_NATIVE_PADDING)
            return NULL;
    } else if ((p->flags & SM_NATIVE_CUT) != 0) {
        *kind = SM_LOSS_CUT;
        return "is cut and compressed";
    }
#ifndef SM_HAVE_ZSTD
    (void)zstd;
    if (p->codec != SM_CODEC_NONE) {
        *kind = SM_LOSS_UNSUPPORTED;
        return "is compressed by zstd, which this build cannot read";
    }
#endif
    uint8_t *to = room(ctx, *bytes);
    if (to == NULL)
        return "needs more memory than a reader takes";
    *data = to;
    memset(to + *bytes, 0, SM_NATIVE_PADDING);
#ifdef SM_HAVE_ZSTD
    if (p->codec != SM_CODEC_NONE)
        return unpack(zstd, from, p, to);
#endif
    memcpy(to, from, *bytes);
    return NULL;
}

void sm_native_zstd_free(void *zstd) {
#ifdef SM_HAVE_ZSTD
    ZSTD_freeDCtx(zstd);
#else
    (void)zstd;
#endif
}

void sm_native_damaged(struct sm_trace *t, uint32_t stream) {
    struct sm_native *n = t->backend_data;
    uint32_t index = n->streams == NULL ? UINT32_MAX : sm_trace_stream_index(t, stream);
    if (index != UINT32_MAX)
        n->streams[index].contiguous = false;
}

void sm_native_unreadable(struct sm_trace *t, struct sm_native_packet *p, enum sm_loss_kind kind,
                          const char *why) {
    if ((p->flags & SM_NATIVE_REPORTED) == 0)
        sm_trace_add_loss(t, kind, p->stream, sm_native_header_offset(p),
                          SM_PACKET_HEADER_BYTES + (uint64_t)p->stored_bytes, p->n_events, true,
                          "packet %u of stream %u %s: its events or names are lost", p->packet_seq,
                          p->stream, why);
    p->flags |= SM_NATIVE_REPORTED | SM_NATIVE_BAD;
    p->n_alloc_readable = 0;
    sm_native_damaged(t, p->stream);
}

struct buffer_of {
    struct sm_native *n;
    struct sm_native_buffer *buffer;
};

static uint8_t *into_buffer(void *ctx, size_t bytes) {
    const struct buffer_of *b = ctx;
    return buffer_room(b->n, b->buffer, bytes) ? b->buffer->data : NULL;
}

bool sm_native_payload(struct sm_trace *t, struct sm_native_packet *p,
                       struct sm_native_buffer *buffer, enum sm_loss_kind kind,
                       const uint8_t **data, size_t *bytes) {
    struct sm_native *n = t->backend_data;
    if ((p->flags & SM_NATIVE_BAD) != 0)
        return false;
    struct buffer_of room = {n, buffer};
    const char *why = sm_native_unpack(t, p, &n->zstd, into_buffer, &room, &kind, data, bytes);
    if (why != NULL)
        sm_native_unreadable(t, p, kind, why);
    return why == NULL;
}
