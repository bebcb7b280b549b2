/* What packets share, put into batches in the order of the packets: see batch.h. Here a batch becomes what a cursor
   would have delivered. */
#include <string.h>

#include "decode/batch_internal.h"

/* Locations that were not known when the pass began, in the order of their first sight. */
static void name_new_codes(struct sm_trace *t, struct sm_batch *b) {
    if (b->n_new_codes == 0)
        return;
    for (uint32_t i = 0; i < b->n_new_codes; i++)
        b->new_codes[i] = sm_locations_intern(t, b->new_codes[i]);
    for (uint32_t i = 0; i < b->n_frames; i++)
        if (b->frames[i] >= SM_BATCH_NEW)
            b->frames[i] = (uint32_t)b->new_codes[b->frames[i] - SM_BATCH_NEW];
    b->n_new_codes = 0;
}

/* No event is given out at a time before the stream's last one. */
static void raise_times(struct sm_batch *b, uint64_t floor_ticks) {
    for (uint32_t i = 0; i < b->n_allocs && b->allocs[i].ticks < floor_ticks; i++)
        b->allocs[i].ticks = floor_ticks;
    for (uint32_t i = 0; i < b->n_refs && b->refs[i].ticks < floor_ticks; i++)
        b->refs[i].ticks = floor_ticks;
    for (uint32_t i = 0; i < b->n_extensions && b->extensions[i].ticks < floor_ticks; i++)
        b->extensions[i].ticks = floor_ticks;
}

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t last_ticks(const struct sm_batch *b, uint64_t ticks) {
    if (b->n_allocs > 0)
        ticks = later(ticks, b->allocs[b->n_allocs - 1].ticks);
    if (b->n_refs > 0)
        ticks = later(ticks, b->refs[b->n_refs - 1].ticks);
    if (b->n_extensions > 0)
        ticks = later(ticks, b->extensions[b->n_extensions - 1].ticks);
    return ticks;
}

static void mark_orphans(struct sm_batch_pass *pass, struct sm_batch *b) {
    const struct sm_trace *t = pass->t;
    if (!b->look_at_refs && pass->n->streams[b->packet.stream_index].contiguous)
        return;
    for (uint32_t i = 0; i < b->n_refs; i++) {
        struct sm_batch_ref *r = &b->refs[i];
        if (!sm_native_has_object(t, r->obj_stream, r->obj_seq))
            r->flags |= SM_EVENT_ORPHAN;
        pass->orphans += (r->flags & SM_EVENT_ORPHAN) != 0;
    }
}

void sm_batch_commit(struct sm_batch_pass *pass, struct sm_batch *b) {
    struct sm_trace *t = pass->t;
    struct sm_native_packet *p = &pass->n->packets[b->index];
    pass->next_packet = b->index + 1;
    if (b->packet.stream_index != pass->stream) {
        struct sm_owner nobody = {.stream = p->stream, .name = ""};
        pass->stream = b->packet.stream_index;
        pass->owner = sm_trace_add_owner(t, &nobody);
        pass->last_ticks = 0;
    }
    if ((p->flags & SM_NATIVE_TAIL) == 0)
        sm_trace_passed(t, p->offset);
    t->done_bytes += SM_PACKET_HEADER_BYTES + (uint64_t)p->stored_bytes;
    sm_trace_progress(t, t->done_bytes);
    if (!b->readable) {
        if (b->why != NULL)
            sm_native_unreadable(t, p, (enum sm_loss_kind)b->loss_kind, b->why);
        return;
    }
    for (uint32_t i = 0; i < b->n_owners; i++) {
        struct sm_batch_owner *o = &b->owners[i];
        if (o->payload != NULL)
            pass->owner = sm_native_owner(t, p->stream, o->payload, o->payload + o->payload_bytes);
        o->owner = pass->owner;
    }
    name_new_codes(t, b);
    uint64_t floor_ticks = pass->last_ticks;
    raise_times(b, floor_ticks);
    pass->last_ticks = last_ticks(b, floor_ticks);
    for (uint32_t i = 0; i < b->n_extensions; i++) {
        const struct sm_batch_extension *x = &b->extensions[i];
        if (x->op == SM_OP_MODULE)
            sm_trace_add_module(t, x->ticks, x->payload, x->payload + x->payload_bytes);
    }
    mark_orphans(pass, b);
    struct sm_native_outcome outcome = {.n_read = b->n_read,
                                        .n_alloc = b->n_allocs,
                                        .left_bytes = b->left_bytes,
                                        .floor_ticks = floor_ticks,
                                        .ticks = b->end_ticks,
                                        .why = b->why,
                                        .unsupported = b->unsupported};
    sm_native_close_packet(t, p, &outcome);
}
