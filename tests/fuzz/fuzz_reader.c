/* Any bytes as a trace: opened, read by every kind of cursor, twice, with names asked for. Nothing may
   crash, hang or contradict itself. LLVMFuzzerTestOneInput is all there is; replay.c gives it a main
   for the tests, clang's -fsanitize=fuzzer one for searching (tests/fuzz/run). Checksums are mended
   first when the input's first byte is odd, so that the search gets behind them. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "decode/batch.h"
#include "format/packet.h"
#include "merge/cursor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void mend(uint8_t *data, size_t bytes) {
    for (size_t at = 0; at + SM_PACKET_HEADER_BYTES <= bytes;) {
        struct sm_packet_header h;
        if (!sm_packet_header_get_unsealed(data + at, &h)) {
            at++;
            continue;
        }
        size_t room = bytes - at - SM_PACKET_HEADER_BYTES;
        if (h.stored_bytes > room)
            h.stored_bytes = (uint32_t)room;
        if (h.codec == SM_CODEC_NONE)
            h.raw_bytes = h.stored_bytes;
        h.payload_crc = sm_crc32c(0, data + at + SM_PACKET_HEADER_BYTES, h.stored_bytes);
        sm_packet_header_put(data + at, &h);
        at += SM_PACKET_HEADER_BYTES + h.stored_bytes;
    }
}

/* Reads all; the number of events. */
static uint64_t read_all(struct sm_trace *t, unsigned flags) {
    struct sm_cursor *c;
    struct sm_event e;
    uint64_t n = 0, sum = 0;
    if (sm_cursor_new(&c, t, flags, NULL) != SM_OK)
        return 0;
    while (sm_cursor_next(c, &e) == SM_OK) {
        n += e.kind != SM_EVENT_EXTENSION;
        for (uint32_t i = 0; e.frames != NULL && i < e.n_frames; i++)
            sum += e.frames[i];
        for (uint32_t i = 0; i < e.payload_bytes; i++)
            sum += e.payload[i];
        if (e.n_frames > 0 && e.frames != NULL &&
            e.frames[e.n_frames - 1] >= sm_trace_n_locations(t))
            abort();
        sum += sm_trace_owner(t, e.owner)->domain + (uint64_t)sm_trace_time_ns(t, e.ticks);
    }
    sm_cursor_free(c);
    return n + (sum == 0xFEEDFACECAFEBEEF);
}

struct batches {
    const struct sm_trace *t;
    uint64_t n, sum;
};

/* Everything that a batch names is there. */
static bool take_batch(void *ctx, const struct sm_batch *b) {
    struct batches *s = ctx;
    uint32_t depth = 0;
    for (uint32_t i = 0; i < b->n_allocs; i++) {
        const struct sm_batch_alloc *a = &b->allocs[i];
        if (a->common_prefix > depth || a->common_prefix > a->n_frames ||
            (uint64_t)a->first_frame + a->n_frames - a->common_prefix > b->n_frames)
            abort();
        depth = a->n_frames;
    }
    for (uint32_t i = 0; i < b->n_frames; i++)
        if (b->frames[i] >= sm_trace_n_locations(s->t))
            abort();
    for (uint32_t i = 0; i < b->n_refs; i++)
        if (b->refs[i].allocs_before > b->n_allocs ||
            (i > 0 && b->refs[i].ticks < b->refs[i - 1].ticks))
            abort();
    for (uint32_t i = 0; i < b->n_extensions; i++)
        for (uint32_t k = 0; k < b->extensions[i].payload_bytes; k++)
            s->sum += b->extensions[i].payload[k];
    for (uint32_t i = 0; i < b->n_owners; i++)
        s->sum += sm_trace_owner(s->t, b->owners[i].owner)->domain;
    s->n += b->n_allocs + b->n_refs;
    return true;
}

static uint64_t read_batches(struct sm_trace *t, unsigned flags, unsigned threads) {
    struct sm_batch_pass *pass;
    struct batches s = {.t = t};
    if (sm_batch_pass_new(&pass, t, flags, NULL) != SM_OK ||
        sm_batch_each(pass, threads, take_batch, &s, NULL) != SM_OK)
        abort();
    sm_batch_pass_free(pass);
    return s.n + (s.sum == 0xFEEDFACECAFEBEEF);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct sm_trace *t;
    struct sm_error err = {""};
    if (bytes < 1)
        return 0;
    uint8_t *copy = malloc(bytes);
    memcpy(copy, data + 1, bytes - 1);
    if ((data[0] & 1) != 0)
        mend(copy, bytes - 1);
    struct sm_trace_options options = {.part = data[0] >> 6};
    if (sm_trace_open_memory(&t, copy, bytes - 1, &options, &err) != SM_OK) {
        if (err.text[0] == 0)
            abort();
        free(copy);
        return 0;
    }
    const unsigned stacks = SM_CURSOR_STACKS, extensions = SM_CURSOR_EXTENSIONS;
    const bool batches_first =
        (data[0] & 2) != 0; /* either way may be the one that finds the damage */
    if (batches_first && sm_trace_meta(t)->format == SM_TRACE_NATIVE)
        read_batches(t, stacks, 1);
    read_all(t, stacks | SM_CURSOR_UNMERGED); /* finds the damage */
    uint64_t n = read_all(t, stacks | SM_CURSOR_UNMERGED);
    bool native = sm_trace_meta(t)->format == SM_TRACE_NATIVE;
    if (native && (read_all(t, stacks | extensions) != n || read_all(t, stacks) != n))
        abort(); /* the order must not change what is read */
    if (native && (read_batches(t, stacks | extensions, 1) != n ||
                   read_batches(t, stacks, (data[0] & 4) != 0 ? 2 : 1) != n ||
                   read_batches(t, extensions, 1) < n))
        abort(); /* nor whether it is read by packets */
    if (read_all(t, 0) < n)
        abort(); /* without stacks no less is readable */
    if (read_all(t, SM_CURSOR_DEPTHS) < n)
        abort(); /* nor with their depths alone */
    const struct sm_location *list;
    for (uint32_t i = 0; i < sm_trace_n_locations(t); i++)
        for (uint32_t k = sm_trace_location(t, i, &list); k-- > 0;)
            if (list[k].file == NULL || strlen(list[k].function) > SM_MAX_NAME_BYTES)
                abort();
    const struct sm_loss *losses;
    for (size_t i = sm_trace_losses(t, &losses); i-- > 0;)
        if (losses[i].count == 0 || losses[i].detail == NULL || losses[i].kind >= SM_LOSS_KINDS)
            abort();
    sm_trace_free(t);
    free(copy);
    return 0;
}
