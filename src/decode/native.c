/* The native backend: what the merge asks of it. */
#include <stdlib.h>

#include "decode/native_internal.h"

bool sm_native_has_object(const struct sm_trace *t, uint32_t stream, uint64_t seq) {
    const struct sm_native *n = t->backend_data;
    uint32_t index = sm_trace_stream_index(t, stream);
    if (index == UINT32_MAX)
        return false;
    const struct sm_native_stream *s = &n->streams[index];
    if (seq < s->first_seq || seq >= s->end_seq)
        return false;
    if (s->contiguous)
        return true;
    /* The last packet that begins at or before seq: the scan sees to it that ranges ascend and do
       not overlap, and an empty packet begins where its predecessor ends. */
    const struct sm_native_packet *packets = n->packets + s->first_packet;
    uint32_t low = 0, high = s->n_packets;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (packets[middle].first_seq <= seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && seq - packets[low - 1].first_seq < packets[low - 1].n_alloc_readable;
}

static void release(struct sm_trace *t) {
    struct sm_native *n = t->backend_data;
    free(n->packets);
    free(n->syms);
    free(n->streams);
    sm_native_tail_free(n->tail);
    sm_native_payload_release(n);
    free(n);
    t->backend_data = NULL;
}

const struct sm_backend sm_backend_native = {
    .scan = sm_native_scan,
    .stream_new = sm_native_stream_new,
    .stream_next = sm_native_stream_next,
    .stream_free = sm_native_stream_free,
    .marks_own_orphans = true,
    .has_object = sm_native_has_object,
    .release = release,
};
