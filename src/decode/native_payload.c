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
#ifdef SM_HAVE_ZSTD
    ZSTD_freeDCtx(n->zstd);
#endif
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
static const char *unpack(struct sm_native *n, const uint8_t *from,
                          const struct sm_native_packet *p, struct sm_native_buffer *b) {
    if (n->zstd == NULL)
        n->zstd = ZSTD_createDCtx();
    if (n->zstd == NULL || !buffer_room(n, b, p->raw_bytes))
        return "needs more memory than a reader takes";
    size_t size = ZSTD_decompressDCtx(n->zstd, b->data, p->raw_bytes, from, p->stored_bytes);
    if (ZSTD_isError(size))
        return "does not decompress";
    if (size != p->raw_bytes)
        return "decompresses to another size than announced";
    return NULL;
}
#endif

void sm_native_damaged(struct sm_trace *t, uint32_t stream) {
    struct sm_native *n = t->backend_data;
    uint32_t index = n->streams == NULL ? UINT32_MAX : sm_trace_stream_index(t, stream);
    if (index != UINT32_MAX)
        n->streams[index].contiguous = false;
}

static bool give_up(struct sm_trace *t, struct sm_native_packet *p, enum sm_loss_kind kind,
                    const char *why) {
    if ((p->flags & SM_NATIVE_REPORTED) == 0)
        sm_trace_add_loss(t, kind, p->stream, sm_native_header_offset(p),
                          SM_PACKET_HEADER_BYTES + (uint64_t)p->stored_bytes, p->n_events, true,
                          "packet %u of stream %u %s: its events or names are lost", p->packet_seq,
                          p->stream, why);
    p->flags |= SM_NATIVE_REPORTED | SM_NATIVE_BAD;
    p->n_alloc_readable = 0;
    sm_native_damaged(t, p->stream);
    return false;
}

bool sm_native_payload(struct sm_trace *t, struct sm_native_packet *p,
                       struct sm_native_buffer *buffer, enum sm_loss_kind kind,
                       const uint8_t **data, size_t *bytes) {
    struct sm_native *n = t->backend_data;
    if ((p->flags & SM_NATIVE_BAD) != 0)
        return false;
    const uint8_t *from = stored(t, p);
    if ((p->flags & (SM_NATIVE_CUT | SM_NATIVE_CHECKED)) == 0 && !sm_native_payload_holds(t, p))
        return give_up(t, p, kind, "is damaged (its checksum does not hold)");
    if (p->codec == SM_CODEC_NONE) {
        uint64_t limit = (p->flags & SM_NATIVE_TAIL) != 0 ? n->tail->bytes : t->input.bytes;
        if (limit - p->offset - p->stored_bytes < SM_NATIVE_PADDING) {
            if (!buffer_room(n, buffer, p->stored_bytes))
                return give_up(t, p, kind, "needs more memory than a reader takes");
            memcpy(buffer->data, from, p->stored_bytes);
            memset(buffer->data + p->stored_bytes, 0, SM_NATIVE_PADDING);
            from = buffer->data;
        }
        *data = from;
        *bytes = p->stored_bytes;
        return true;
    }
    if ((p->flags & SM_NATIVE_CUT) != 0)
        return give_up(t, p, SM_LOSS_CUT, "is cut and compressed");
#ifdef SM_HAVE_ZSTD
    const char *why = unpack(n, from, p, buffer);
    if (why != NULL)
        return give_up(t, p, kind, why);
    memset(buffer->data + p->raw_bytes, 0, SM_NATIVE_PADDING);
    *data = buffer->data;
    *bytes = p->raw_bytes;
    return true;
#else
    return give_up(t, p, SM_LOSS_UNSUPPORTED,
                   "is compressed by zstd, which this build cannot read");
#endif
}
