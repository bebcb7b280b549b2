/* Batches: packets, decoders, memory, and the decoding of one packet.

   Whatever a trace claims, the batches of a pass together take no more than SM_NATIVE_BUDGET_BYTES. An array
   begins with the size that the header tells, if the payload can hold as much, and doubles otherwise. */
#include "decode/batch.h"

#include <stdlib.h>
#include <string.h>

#include "decode/batch_internal.h"

/* ---- memory ---- */

static bool charge(struct sm_batch_pass *pass, struct sm_batch *b, uint64_t bytes) {
    /* Relaxed: see struct sm_batch_pass. */
    uint64_t used = __atomic_add_fetch(&pass->used_bytes, bytes, __ATOMIC_RELAXED);
    if (used > SM_NATIVE_BUDGET_BYTES) {
        __atomic_sub_fetch(&pass->used_bytes, bytes, __ATOMIC_RELAXED);
        return false;
    }
    b->charged_bytes += bytes;
    return true;
}

static void give_back(struct sm_batch *b, uint64_t bytes) {
    __atomic_sub_fetch(&b->charged_to->used_bytes, bytes, __ATOMIC_RELAXED);
    b->charged_bytes -= bytes;
}

bool sm_batch_room(struct sm_batch *b, void **list, uint32_t *capacity, size_t bytes_each,
                   uint64_t need) {
    uint64_t more = *capacity < 64 ? 64 : (uint64_t)*capacity * 2;
    if (more < need)
        more = need;
    if (more > UINT32_MAX / 2 || !charge(b->charged_to, b, (more - *capacity) * bytes_each)) {
        b->why = "needs more memory than a reader takes";
        return false;
    }
    void *larger = realloc(*list, (size_t)(more * bytes_each));
    if (larger == NULL) {
        give_back(b, (more - *capacity) * bytes_each);
        b->why = "needs more memory than there is";
        return false;
    }
    *list = larger;
    *capacity = (uint32_t)more;
    return true;
}

static uint8_t *into_batch(void *ctx, size_t bytes) {
    struct sm_batch *b = ctx;
    bytes += SM_NATIVE_PADDING;
    if (b->unpacked_capacity >= bytes)
        return b->unpacked;
    give_back(b, b->unpacked_capacity);
    free(b->unpacked);
    b->unpacked_capacity = 0;
    b->unpacked = NULL;
    if (!charge(b->charged_to, b, bytes))
        return NULL;
    b->unpacked = malloc(bytes);
    if (b->unpacked != NULL)
        b->unpacked_capacity = bytes;
    else
        give_back(b, bytes);
    return b->unpacked;
}

void sm_batch_release(struct sm_batch *b) {
    if (b->charged_to != NULL)
        give_back(b, b->charged_bytes);
    free(b->allocs);
    free(b->refs);
    free(b->extensions);
    free(b->owners);
    free(b->frames);
    free(b->new_codes);
    free(b->unpacked);
    memset(b, 0, sizeof *b);
}

/* ---- the pass ---- */

enum sm_status sm_batch_pass_new(struct sm_batch_pass **out, struct sm_trace *t, unsigned flags,
                                 struct sm_error *err) {
    if (t->backend != &sm_backend_native) {
        sm_error_set(err, "only native traces can be read packet by packet");
        return SM_FAILED;
    }
    const struct sm_native *n = t->backend_data;
    const struct sm_locations *l = &t->locations;
    struct sm_batch_pass *pass = calloc(1, sizeof *pass);
    if (pass == NULL)
        goto no_memory;
    pass->t = t;
    pass->n = n;
    pass->flags = flags;
    pass->stream = UINT32_MAX;
    pass->slots_capacity = l->slots_capacity;
    pass->slots = malloc(((size_t)l->slots_capacity + 1) * sizeof *pass->slots);
    pass->stream_of_packet = malloc(((size_t)n->n_packets + 1) * sizeof *pass->stream_of_packet);
    if (pass->slots == NULL || pass->stream_of_packet == NULL)
        goto no_memory;
    if (l->slots_capacity > 0)
        memcpy(pass->slots, l->slots, l->slots_capacity * sizeof *pass->slots);
    for (uint32_t s = 0; s < t->n_streams; s++)
        for (uint32_t i = 0; i < n->streams[s].n_packets; i++)
            pass->stream_of_packet[n->streams[s].first_packet + i] = s;
    t->done_bytes = t->progress_bytes = 0;
    *out = pass;
    return SM_OK;
no_memory:
    sm_batch_pass_free(pass);
    sm_error_set(err, "out of memory for the list of %u packets", n->n_packets);
    return SM_FAILED;
}

void sm_batch_pass_free(struct sm_batch_pass *pass) {
    if (pass == NULL)
        return;
    if (pass->stream_of_packet != NULL && pass->next_packet == pass->n->n_packets)
        sm_trace_report_orphans(pass->t, pass->orphans, pass->t->n_streams == 1);
    free(pass->slots);
    free(pass->stream_of_packet);
    free(pass);
}

uint32_t sm_batch_n_packets(const struct sm_batch_pass *pass) {
    return pass->n->n_packets;
}

void sm_batch_packet_at(const struct sm_batch_pass *pass, uint32_t index,
                        struct sm_batch_packet *out) {
    const struct sm_native_packet *p = &pass->n->packets[index];
    *out = (struct sm_batch_packet){
        .stream = p->stream,
        .stream_index = pass->stream_of_packet[index],
        .packet_seq = p->packet_seq,
        .n_events = p->n_events,
        .n_alloc = p->n_alloc,
        .first_seq = p->first_seq,
        .first_ticks = p->ts_begin_ticks,
        .last_ticks = p->ts_begin_ticks + p->ts_span_ticks,
        .stored_bytes = p->stored_bytes,
        .raw_bytes = p->raw_bytes,
    };
}

/* ---- decoders ---- */

struct sm_batch_decoder *sm_batch_decoder_new(struct sm_batch_pass *pass) {
    struct sm_batch_decoder *d = calloc(1, sizeof *d);
    if (d == NULL)
        return NULL;
    d->pass = pass;
    d->locals = malloc((SM_MAX_DEPTH + SM_BATCH_DEPTH_SLACK) * sizeof *d->locals);
    d->successors = malloc((SM_MAX_PACKET_LOCATIONS + 1) * sizeof *d->successors);
    d->ids = malloc((SM_MAX_PACKET_LOCATIONS + 1) * sizeof *d->ids);
    if (d->locals == NULL || d->successors == NULL || d->ids == NULL) {
        sm_batch_decoder_free(d);
        return NULL;
    }
    return d;
}

void sm_batch_decoder_free(struct sm_batch_decoder *d) {
    if (d == NULL)
        return;
    sm_native_zstd_free(d->zstd);
    free(d->locals);
    free(d->successors);
    free(d->ids);
    free(d->foreign);
    free(d);
}

static void forget_events(struct sm_batch *b) {
    b->n_allocs = b->n_refs = b->n_extensions = b->n_owners = 0;
    b->n_frames = b->n_new_codes = 0;
    b->n_read = 0;
    b->look_at_refs = false;
    b->owners[b->n_owners++] = (struct sm_batch_owner){.payload = NULL};
}

/* Room for what the header announces. A reference takes three bytes at least, an allocation four. */
static bool announced_room(struct sm_batch *b, uint32_t n_events, uint32_t n_alloc, size_t bytes) {
    uint64_t refs = n_events > n_alloc ? n_events - n_alloc : 0;
    uint64_t allocs = n_alloc < bytes / 4 ? n_alloc : bytes / 4;
    if (refs > bytes / 3)
        refs = bytes / 3;
    return (b->owners_capacity > 0 ||
            sm_batch_room(b, (void **)&b->owners, &b->owners_capacity, sizeof *b->owners, 1)) &&
           (allocs < b->allocs_capacity ||
            sm_batch_room(b, (void **)&b->allocs, &b->allocs_capacity, sizeof *b->allocs,
                          allocs + 1)) &&
           (refs < b->refs_capacity ||
            sm_batch_room(b, (void **)&b->refs, &b->refs_capacity, sizeof *b->refs, refs + 1));
}

/* Without stacks those of a packet whose header tells of cuts are expanded all the same, for the flag. */
static void drop_stacks(struct sm_batch *b) {
    for (uint32_t i = 0; i < b->n_allocs; i++)
        b->allocs[i].first_frame = b->allocs[i].common_prefix = b->allocs[i].n_frames = 0;
    b->n_frames = b->n_new_codes = 0;
}

/* The stacks of the records that were read. */
static void expand(struct sm_batch_decoder *d, struct sm_batch *b, const struct sm_native_packet *p,
                   const uint8_t *data, size_t bytes) {
    const char *ops_why = b->why;
    bool ops_unsupported = b->unsupported;
    b->why = NULL;
    b->unsupported = false;
    uint32_t whole = sm_batch_expand(d, b, data);
    if (whole == b->n_allocs) {
        b->why = ops_why;
        b->unsupported = ops_unsupported;
        return;
    }
    /* A stack cannot be read: the packet ends there, so everything is read anew up to it. */
    const char *why = b->why;
    bool unsupported = b->unsupported;
    forget_events(b);
    sm_batch_read_ops(d, b, p, data, bytes, whole);
    sm_batch_expand(d, b, data);
    b->why = why;
    b->unsupported = unsupported;
}

static void decode_payload(struct sm_batch_decoder *d, struct sm_batch *b,
                           const struct sm_native_packet *p, const uint8_t *data, size_t bytes) {
    forget_events(b);
    sm_batch_read_ops(d, b, p, data, bytes, UINT32_MAX);
    bool asked = (d->pass->flags & SM_CURSOR_STACKS) != 0;
    if (asked || (p->flags & SM_NATIVE_CUTS) != 0)
        expand(d, b, p, data, bytes);
    if (!asked)
        drop_stacks(b);
}

void sm_batch_decode(struct sm_batch_decoder *d, uint32_t index, struct sm_batch *b) {
    struct sm_batch_pass *pass = d->pass;
    const struct sm_native_packet *p = &pass->n->packets[index];
    const uint8_t *data;
    size_t bytes;
    if (b->charged_to != pass)
        sm_batch_release(b);
    b->charged_to = pass;
    b->index = index;
    sm_batch_packet_at(pass, index, &b->packet);
    b->n_allocs = b->n_refs = b->n_extensions = b->n_owners = 0;
    b->n_frames = b->n_new_codes = b->n_read = b->left_bytes = 0;
    b->readable = b->look_at_refs = b->unsupported = false;
    b->why = NULL;
    b->end_ticks = p->ts_begin_ticks;
    if ((p->flags & SM_NATIVE_BAD) != 0)
        return;
    enum sm_loss_kind kind = SM_LOSS_CORRUPT;
    b->why = sm_native_unpack(pass->t, p, &d->zstd, into_batch, b, &kind, &data, &bytes);
    b->loss_kind = (uint8_t)kind;
    if (b->why != NULL)
        return;
    b->readable = true;
    b->left_bytes = (uint32_t)bytes;
    if (announced_room(b, p->n_events, p->n_alloc, bytes))
        decode_payload(d, b, p, data, bytes);
}
