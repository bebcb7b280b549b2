/* Each stream has an encoder and a buffer of its own, made when its first event comes. A packet is
   closed when it is full, when a gap in the object numbers begins (a packet's allocations are numbered
   without holes) and at the end. Names are collected in one SYMS packet at a time. */
#include "convert/native_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "convert/meta_encode.h"
#include "convert/packet_sink.h"
#include "encode/event_encoder.h"
#include "encode/syms_encoder.h"
#include "util/map.h"
#include "util/memory.h"

#define SYMS_CAPACITY (1u << 20)
#define SYMS_TARGET (128u << 10)

struct stream {
    uint32_t id;
    uint32_t packet_seq;
    struct sm_event_encoder *encoder; /* mapped */
    uint8_t *buf;
    size_t capacity;
    uint64_t next_seq; /* of the next allocation, while a packet is open */
    bool open;
    uint8_t owner[512]; /* the OWNER record in force */
    uint32_t owner_bytes;
};

struct sm_native_writer {
    struct sm_packet_sink sink;
    uint32_t target_bytes;
    struct stream **streams;
    size_t n_streams, streams_capacity;
    struct sm_map stream_index; /* id -> position in streams */
    struct sm_syms_encoder syms;
    uint8_t *syms_buf;
    uint32_t syms_seq;
    uint64_t n_owners;
};

/* ---- packets ---- */

static enum sm_status close_packet(struct sm_native_writer *w, struct stream *s,
                                   struct sm_error *err) {
    if (!s->open)
        return SM_OK;
    s->open = false;
    struct sm_packet_header h = {.kind = SM_PACKET_EVENTS, .stream = s->id};
    sm_event_encoder_fill_header(s->encoder, &h);
    if (h.n_events == 0)
        return SM_OK;
    h.packet_seq = s->packet_seq++;
    return sm_packet_sink_put(&w->sink, &h, s->buf, h.raw_bytes, err);
}

static void open_packet(struct stream *s, uint64_t first_seq, uint64_t ticks) {
    sm_event_encoder_begin(s->encoder, s->buf, s->capacity, first_seq, ticks, SM_MAX_DEPTH);
    s->open = true;
    s->next_seq = first_seq;
    if (s->owner_bytes > 0)
        sm_event_encode_extension(s->encoder, ticks, SM_OP_OWNER, s->owner, s->owner_bytes);
}

static enum sm_status flush_syms(struct sm_native_writer *w, struct sm_error *err) {
    if (w->syms.n_records == 0)
        return SM_OK;
    struct sm_packet_header h = {
        .kind = SM_PACKET_SYMS, .packet_seq = w->syms_seq++, .n_events = w->syms.n_records};
    enum sm_status status =
        sm_packet_sink_put(&w->sink, &h, w->syms_buf, (uint32_t)w->syms.used, err);
    sm_syms_encoder_begin(&w->syms, w->syms_buf, SYMS_CAPACITY);
    return status;
}

/* ---- streams ---- */

static struct stream *stream_of(struct sm_native_writer *w, uint32_t id, struct sm_error *err) {
    bool found;
    uint32_t *place = sm_map_place(&w->stream_index, id, (uint32_t)w->n_streams, &found);
    if (found)
        return w->streams[*place - 1];
    struct stream *s = sm_alloc_zero(1, sizeof *s);
    s->id = id;
    s->capacity = w->target_bytes + sm_event_encoder_bound_alloc(1024);
    s->buf = sm_alloc(s->capacity);
    void *memory = mmap(NULL, sm_event_encoder_bytes(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (w->n_streams == w->streams_capacity)
        w->streams =
            sm_grow(w->streams, &w->streams_capacity, w->n_streams + 1, sizeof(*w->streams));
    w->streams[w->n_streams++] = s;
    if (memory == MAP_FAILED) {
        sm_error_set(err, "no memory for stream %u: %s", id, strerror(errno));
        return NULL;
    }
    s->encoder = memory;
    return s;
}

/* Makes a packet ready for an event at `ticks`; `seq` is what the next allocation must be numbered. */
static enum sm_status ready(struct sm_native_writer *w, struct stream *s, uint64_t seq,
                            bool seq_matters, uint64_t ticks, struct sm_error *err) {
    if (s->open &&
        ((seq_matters && seq != s->next_seq) ||
         sm_event_encoder_full(s->encoder, w->target_bytes)) &&
        close_packet(w, s, err) != SM_OK)
        return SM_FAILED;
    if (!s->open)
        open_packet(s, seq_matters ? seq : s->next_seq, ticks);
    return SM_OK;
}

static bool same_owner(struct stream *s, const struct sm_owner *owner) {
    uint8_t tlv[sizeof s->owner];
    struct sm_tlv_writer t = {tlv, sizeof tlv, 0, false};
    sm_tlv_leb(&t, SM_OWNER_DOMAIN, owner->domain);
    if (owner->tid != 0)
        sm_tlv_leb(&t, SM_OWNER_TID, owner->tid);
    if (owner->kind != SM_OWNER_UNKNOWN)
        sm_tlv_leb(&t, SM_OWNER_KIND, owner->kind);
    sm_tlv_leb(&t, SM_OWNER_INCARNATION, owner->incarnation);
    size_t name_bytes = strlen(owner->name);
    sm_tlv_bytes(&t, SM_OWNER_NAME, owner->name, name_bytes < 256 ? name_bytes : 256);
    bool same = t.used == s->owner_bytes && memcmp(tlv, s->owner, t.used) == 0;
    memcpy(s->owner, tlv, t.used);
    s->owner_bytes = (uint32_t)t.used;
    return same;
}

/* ---- events ---- */

static bool encode(struct stream *s, const struct sm_event *e, const uint64_t *codes) {
    uint64_t seq;
    switch ((enum sm_event_kind)e->kind) {
    case SM_EVENT_ALLOC:
        return sm_event_encode_alloc_codes(s->encoder, e->ticks, e->size,
                                           (e->flags & SM_EVENT_SIZE_IN_BYTES) != 0, e->n_samples,
                                           SM_SOURCE(e->heap, e->origin), codes, e->n_frames, &seq);
    case SM_EVENT_PROMOTE:
    case SM_EVENT_COLLECT:
        return sm_event_encode_ref(s->encoder, e->ticks,
                                   e->kind == SM_EVENT_PROMOTE ? SM_OP_PROMOTE : SM_OP_COLLECT,
                                   e->obj_stream == s->id, e->obj_stream, e->obj_seq);
    case SM_EVENT_EXTENSION:
        return sm_event_encode_extension(s->encoder, e->ticks, (enum sm_op)e->op, e->payload,
                                         e->payload_bytes);
    }
    return true;
}

enum sm_status sm_native_writer_event(struct sm_native_writer *w, const struct sm_event *e,
                                      const uint64_t *codes, const struct sm_owner *owner,
                                      struct sm_error *err) {
    if (e->kind == SM_EVENT_EXTENSION && e->op == SM_OP_OWNER)
        return SM_OK; /* written from `owner` */
    struct stream *s = stream_of(w, e->stream, err);
    if (s == NULL || s->encoder == NULL)
        return SM_FAILED;
    bool alloc = e->kind == SM_EVENT_ALLOC;
    bool same = owner == NULL || same_owner(s, owner);
    uint32_t packet_before = s->packet_seq;
    bool was_open = s->open;
    if (ready(w, s, e->obj_seq, alloc, e->ticks, err) != SM_OK)
        return SM_FAILED;
    if (!same) {
        w->n_owners++;
        /* A packet just opened has begun with it. */
        if (was_open && s->packet_seq == packet_before &&
            !sm_event_encode_extension(s->encoder, e->ticks, SM_OP_OWNER, s->owner,
                                       s->owner_bytes)) {
            if (close_packet(w, s, err) != SM_OK)
                return SM_FAILED;
            open_packet(s, alloc ? e->obj_seq : s->next_seq, e->ticks);
        }
    }
    if (!encode(s, e, codes)) {
        /* The buffer is full: a new packet, with room for whatever this event can take. */
        if (close_packet(w, s, err) != SM_OK)
            return SM_FAILED;
        size_t need = sm_event_encoder_bound_extension(s->owner_bytes) +
                      (alloc ? sm_event_encoder_bound_alloc(e->n_frames)
                             : sm_event_encoder_bound_extension(e->payload_bytes));
        if (need > s->capacity) {
            free(s->buf);
            s->buf = sm_alloc(need);
            s->capacity = need;
        }
        open_packet(s, alloc ? e->obj_seq : s->next_seq, e->ticks);
        if (!encode(s, e, codes)) {
            sm_error_set(err, "an event of stream %u with %u frames does not fit in a packet",
                         e->stream, e->n_frames);
            return SM_FAILED;
        }
    }
    if (alloc)
        s->next_seq = e->obj_seq + 1;
    return SM_OK;
}

enum sm_status sm_native_writer_location(struct sm_native_writer *w, uint64_t code,
                                         const struct sm_location *list, uint32_t n,
                                         struct sm_error *err) {
    struct sm_source_location few[16];
    struct sm_source_location *all =
        n <= 16 ? few : sm_alloc_zero(n, sizeof(struct sm_source_location));
    for (uint32_t i = 0; i < n; i++) {
        const struct sm_unnamed *u = list[i].unnamed;
        const char *file = u != NULL ? u->file : list[i].file;
        const char *function = u != NULL ? u->function : list[i].function;
        all[i] = (struct sm_source_location){.file = file,
                                             .file_bytes = strlen(file),
                                             .function = function,
                                             .function_bytes = strlen(function),
                                             .line = list[i].line,
                                             .end_line = list[i].end_line,
                                             .start_char = list[i].start_char,
                                             .end_char = list[i].end_char,
                                             .flags = list[i].flags};
    }
    enum sm_status status = SM_OK;
    if (w->syms.used >= SYMS_TARGET)
        status = flush_syms(w, err);
    if (status == SM_OK && !sm_syms_encode(&w->syms, code, all, n)) {
        status = flush_syms(w, err);
        if (status == SM_OK && !sm_syms_encode(&w->syms, code, all, n)) {
            sm_error_set(err, "the names of location %llx do not fit in a packet",
                         (unsigned long long)code);
            status = SM_FAILED;
        }
    }
    if (all != few)
        free(all);
    return status;
}

/* ---- life cycle ---- */

static uint64_t new_session(void) {
    uint64_t session = 0;
    if (getrandom(&session, sizeof session, 0) != sizeof session || session == 0)
        session = (uint64_t)(uintptr_t)&session ^ 0x9E3779B97F4A7C15u;
    return session;
}

enum sm_status sm_native_writer_new(struct sm_native_writer **out_w, FILE *out,
                                    const struct sm_meta *meta,
                                    const struct sm_native_writer_options *options,
                                    struct sm_error *err) {
    struct sm_native_writer *w = sm_alloc_zero(1, sizeof *w);
    sm_packet_sink_init(&w->sink, out);
    w->sink.session = meta->session != 0 ? meta->session : new_session();
    w->sink.pid = (uint32_t)meta->pid;
    w->target_bytes = SM_TARGET_RAW_BYTES;
    if (options != NULL) {
        w->sink.compress = options->compress;
        w->sink.level = options->zstd_level != 0 ? options->zstd_level : 1;
        if (options->target_bytes != 0)
            w->target_bytes = options->target_bytes;
    }
    w->syms_buf = sm_alloc(SYMS_CAPACITY);
    sm_syms_encoder_begin(&w->syms, w->syms_buf, SYMS_CAPACITY);

    size_t capacity = sm_meta_bound(meta);
    uint8_t *payload = sm_alloc(capacity);
    struct sm_tlv_writer t = {payload, capacity, 0, false};
    sm_meta_encode(&t, meta);
    struct sm_packet_header h = {.kind = SM_PACKET_META, .ts_begin_ticks = meta->start_ticks};
    enum sm_status status = sm_packet_sink_put(&w->sink, &h, payload, (uint32_t)t.used, err);
    free(payload);
    if (status != SM_OK) {
        sm_native_writer_free(w);
        return status;
    }
    *out_w = w;
    return SM_OK;
}

enum sm_status sm_native_writer_close(struct sm_native_writer *w, const struct sm_end *end,
                                      struct sm_error *err) {
    if (flush_syms(w, err) != SM_OK)
        return SM_FAILED;
    for (size_t i = 0; i < w->n_streams; i++)
        if (close_packet(w, w->streams[i], err) != SM_OK)
            return SM_FAILED;
    struct sm_end e = *end;
    if (e.peak_streams == 0)
        e.peak_streams = w->n_streams;
    if (e.owners == 0)
        e.owners = w->n_owners;
    return sm_packet_sink_end(&w->sink, &e, err);
}

void sm_native_writer_free(struct sm_native_writer *w) {
    if (w == NULL)
        return;
    for (size_t i = 0; i < w->n_streams; i++) {
        if (w->streams[i]->encoder != NULL)
            munmap(w->streams[i]->encoder, sm_event_encoder_bytes());
        free(w->streams[i]->buf);
        free(w->streams[i]);
    }
    free(w->streams);
    sm_map_release(&w->stream_index);
    free(w->syms_buf);
    sm_packet_sink_release(&w->sink);
    free(w);
}
