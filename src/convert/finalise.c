/* Two sources of packets: the trace, walked by headers here (damaged stretches are skipped to the next
   header), and the side file, which the reader hands over (decode/tail_packets.h) without what the
   trace has already. */
#include "convert/finalise.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "convert/packet_sink.h"
#include "convert/temporary.h"
#include "decode/input.h"
#include "decode/tail_packets.h"
#include "format/packet.h"

struct closing {
    struct sm_trace *trace;
    struct sm_input input;
    struct sm_packet_sink sink;
    struct sm_finalise_result *result;
    const struct sm_finalise_options *options;
    const char *left_alone;
    uint64_t lost_events, lost_names;
    uint32_t next_names; /* packet_seq of the next SYMS packet of stream 0 */
};

/* A whole packet whose checksums hold at `offset`? */
static bool sound_packet(const struct sm_input *in, uint64_t offset, struct sm_packet_header *h) {
    return in->bytes - offset >= SM_PACKET_HEADER_BYTES &&
           sm_packet_header_get(in->data + offset, h) &&
           h->stored_bytes <= in->bytes - offset - SM_PACKET_HEADER_BYTES &&
           sm_crc32c(0, in->data + offset + SM_PACKET_HEADER_BYTES, h->stored_bytes) ==
               h->payload_crc;
}

/* Offset of the next magic after `offset`, or the end. */
static uint64_t next_magic(const struct sm_input *in, uint64_t offset) {
    const uint8_t *hit = memmem(in->data + offset + 1, (size_t)(in->bytes - offset - 1),
                                SM_PACKET_MAGIC, SM_PACKET_MAGIC_BYTES);
    return hit != NULL ? (uint64_t)(hit - in->data) : in->bytes;
}

static void note_packet(struct closing *c, const struct sm_packet_header *h) {
    if (h->kind == SM_PACKET_SYMS && h->stream == 0 && h->packet_seq >= c->next_names)
        c->next_names = h->packet_seq + 1;
}

static bool in_tail(struct closing *c, const struct sm_packet_header *h) {
    struct sm_packet_header other;
    const uint8_t *payload;
    struct sm_tail_state tail;
    sm_trace_tail_state(c->trace, &tail);
    for (uint32_t i = 0; i < tail.n_packets; i++)
        if (sm_trace_tail_packet(c->trace, i, &other, &payload) && other.kind == h->kind &&
            other.stream == h->stream && other.packet_seq == h->packet_seq)
            return true;
    return false;
}

/* A packet that is not sound, unless the side file has it whole. A reader can decode the beginning of one that the
   end of the file cuts; dropping it would lose that: true. Others are lost, which END will say. */
static bool cut_but_readable(struct closing *c, uint64_t offset) {
    struct sm_packet_header h;
    if (c->input.bytes - offset < SM_PACKET_HEADER_BYTES ||
        !sm_packet_header_get(c->input.data + offset, &h) || in_tail(c, &h))
        return false;
    bool cut = h.stored_bytes > c->input.bytes - offset - SM_PACKET_HEADER_BYTES;
    if (cut && h.kind == SM_PACKET_EVENTS && h.codec == SM_CODEC_NONE)
        return true;
    if (h.kind == SM_PACKET_EVENTS)
        c->lost_events += h.n_events;
    if (h.kind == SM_PACKET_SYMS)
        c->lost_names += h.n_events;
    return false;
}

static enum sm_status copy_trace(struct closing *c, struct sm_error *err) {
    const struct sm_input *in = &c->input;
    struct sm_packet_header h;
    uint64_t offset = 0;
    while (offset < in->bytes) {
        if (!sound_packet(in, offset, &h)) {
            if (cut_but_readable(c, offset)) {
                c->left_alone = "its last packet is cut, and only readers can save what is in it";
                return SM_OK;
            }
            uint64_t next = next_magic(in, offset);
            c->result->torn_bytes += next - offset;
            offset = next;
            continue;
        }
        if (h.session != c->sink.session) {
            c->left_alone = "it holds packets of several recordings";
            return SM_OK;
        }
        uint64_t payload = offset + SM_PACKET_HEADER_BYTES;
        uint64_t next = payload + h.stored_bytes; /* the sink changes h */
        /* Not a heartbeat either: it speaks of the order in the file. */
        bool copied =
            h.kind != SM_PACKET_INDEX && h.kind != SM_PACKET_END && h.kind != SM_PACKET_HEARTBEAT;
        if (copied)
            note_packet(c, &h);
        if (copied && sm_packet_sink_copy(&c->sink, &h, in->data + payload, err) != SM_OK)
            return SM_FAILED;
        sm_input_done(in, offset, next);
        offset = next;
    }
    return SM_OK;
}

static enum sm_status copy_tail(struct closing *c, uint8_t kind, struct sm_error *err) {
    struct sm_tail_state tail;
    sm_trace_tail_state(c->trace, &tail);
    for (uint32_t i = 0; i < tail.n_packets; i++) {
        struct sm_packet_header h;
        const uint8_t *payload;
        if (!sm_trace_tail_packet(c->trace, i, &h, &payload) || h.kind != kind)
            continue;
        c->result->bytes_before += h.raw_bytes;
        if (kind == SM_PACKET_EVENTS)
            c->result->events_recovered += h.n_events;
        note_packet(c, &h);
        if (sm_packet_sink_put(&c->sink, &h, payload, h.raw_bytes, err) != SM_OK)
            return SM_FAILED;
    }
    return SM_OK;
}

static enum sm_status put_names(void *to, const uint8_t *payload, uint32_t bytes, uint32_t n,
                                struct sm_error *err) {
    struct closing *c = to;
    struct sm_packet_header h = {
        .kind = SM_PACKET_SYMS, .packet_seq = c->next_names++, .n_events = n};
    return sm_packet_sink_put(&c->sink, &h, payload, bytes, err);
}

/* What END must say: what the recorder's own END said, if it came to that, else what is known now. */
static struct sm_end end_of(const struct closing *c) {
    struct sm_end end = *sm_trace_end(c->trace);
    struct sm_tail_state tail;
    sm_trace_tail_state(c->trace, &tail);
    if (!end.present) {
        const struct sm_loss *losses;
        size_t n = sm_trace_losses(c->trace, &losses);
        end.reason = tail.state == 3 ? SM_REASON_OUTPUT_FAILED : SM_REASON_CLOSED_AFTER_DEATH;
        end.end_ticks = tail.end_ticks;
        end.forks = tail.forks;
        end.peak_streams = sm_trace_n_streams(c->trace);
        for (size_t i = 0; i < n; i++)
            if (losses[i].kind == SM_LOSS_DISCARDED)
                end.discarded += losses[i].events;
    }
    end.recovered += c->result->events_recovered;
    end.lost_events += c->lost_events;
    end.lost_names += c->lost_names;
    end.lost_bytes += c->result->torn_bytes;
    if (c->options->has_exit_status) {
        end.has_exit_status = true;
        end.exit_status = c->options->exit_status;
    }
    return end;
}

static enum sm_status write_all(struct closing *c, struct sm_error *err) {
    if (copy_trace(c, err) != SM_OK)
        return SM_FAILED;
    if (c->left_alone != NULL)
        return SM_OK;
    if (copy_tail(c, SM_PACKET_SYMS, err) != SM_OK || copy_tail(c, SM_PACKET_EVENTS, err) != SM_OK)
        return SM_FAILED;
    const struct sm_finalise_options *o = c->options;
    if (o->add_names != NULL &&
        o->add_names(o->add_names_ctx, c->trace, put_names, c, err) != SM_OK)
        return SM_FAILED;
    struct sm_end end = end_of(c);
    return sm_packet_sink_end(&c->sink, &end, err);
}

static enum sm_status close_trace(struct closing *c, const char *path, struct sm_error *err) {
    struct sm_temporary file;
    struct stat st;
    if (stat(path, &st) != 0) {
        sm_error_set(err, "%s: %s", path, strerror(errno));
        return SM_FAILED;
    }
    if (sm_temporary_open(&file, path, st.st_mode & 0777, err) != SM_OK)
        return SM_FAILED;
    sm_packet_sink_init(&c->sink, file.out);
    c->sink.compress = c->options->compress;
    c->sink.level = c->options->zstd_level != 0 ? c->options->zstd_level : 1;
    c->sink.session = sm_trace_meta(c->trace)->session;
    c->sink.pid = (uint32_t)sm_trace_meta(c->trace)->pid;
    c->result->bytes_before = c->input.bytes;
    enum sm_status status = write_all(c, err);
    c->result->bytes_after = c->sink.offset;
    sm_packet_sink_release(&c->sink);
    if (status != SM_OK || c->left_alone != NULL) {
        sm_temporary_discard(&file);
        return status;
    }
    return sm_temporary_keep(&file, err);
}

static void remove_tail(const struct sm_trace *t, const char *path) {
    struct sm_tail_state tail;
    char name[4096 + sizeof SM_TAIL_SUFFIX];
    sm_trace_tail_state(t, &tail);
    size_t n = strlen(path);
    if (!tail.present || n >= 4096)
        return;
    memcpy(name, path, n);
    memcpy(name + n, SM_TAIL_SUFFIX, sizeof SM_TAIL_SUFFIX);
    unlink(name);
}

enum sm_status sm_finalise_trace(const char *path, const struct sm_finalise_options *options,
                                 struct sm_finalise_result *result, struct sm_error *err) {
    struct closing c = {.result = result, .options = options};
    struct sm_tail_state tail;
    struct stat st;
    *result = (struct sm_finalise_result){0};
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) { /* opening a FIFO would wait for a writer */
        result->left_alone = true;
        result->why = "it is not a regular file";
        return SM_OK;
    }
    if (sm_trace_open(&c.trace, path, NULL, err) != SM_OK)
        return SM_FAILED;
    enum sm_status status = SM_OK;
    sm_trace_tail_state(c.trace, &tail);
    result->writing_failed = tail.present && tail.state == 3;
    if (sm_trace_meta(c.trace)->format != SM_TRACE_NATIVE) {
        c.left_alone = "it is not a statmem trace";
    } else if (sm_trace_meta(c.trace)->missing) {
        c.left_alone = "its header is missing";
    } else if (tail.alive && !options->force) {
        sm_error_set(err, "%s: process %u still records into it; wait for its end", path, tail.pid);
        status = SM_FAILED;
    } else if (!sm_input_open(&c.input, path, err)) {
        status = SM_FAILED;
    } else {
        status = close_trace(&c, path, err);
        sm_input_release(&c.input);
        if (status == SM_OK && c.left_alone == NULL)
            remove_tail(c.trace, path);
    }
    result->left_alone = c.left_alone != NULL;
    result->why = c.left_alone;
    if (result->left_alone)
        result->bytes_after = result->bytes_before;
    sm_trace_free(c.trace);
    return status;
}
