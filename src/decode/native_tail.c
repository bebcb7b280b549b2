/* The side file (docs/format.md, section 8), possibly of a program that is running.

   It is read with pread, not mapped: the file may be removed or cut at any time, and a copy of a few
   committed bytes costs nothing. A slot is copied in three steps that the kernel cannot merge or reorder,
   being system calls: its header and `committed`; the payload; the header again. `committed` is stored with
   release order after the events before it (record/), so the payload bytes below it are complete once it
   has been seen; and as long as the second header names the same packet, the slot was not handed to the next
   packet in between. Otherwise the copy is repeated, and the packet has then gone to the trace. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/native_internal.h"

#define TRIES 16
#define MAX_COPY_BYTES ((uint64_t)1 << 30)
#define SLOT_HEAD_BYTES 232

static bool read_at(int fd, uint64_t offset, uint8_t *to, size_t n) {
    while (n > 0) {
        ssize_t done = pread(fd, to, n, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        to += done;
        offset += (uint64_t)done;
        n -= (size_t)done;
    }
    return true;
}

static bool room(struct sm_native_tail *tail, uint64_t bytes) {
    if (tail->bytes + bytes <= tail->capacity)
        return true;
    uint64_t capacity =
        tail->capacity * 2 < tail->bytes + bytes ? tail->bytes + bytes : tail->capacity * 2;
    if (tail->bytes + bytes > MAX_COPY_BYTES) {
        tail->too_large = true;
        return false;
    }
    uint8_t *data = realloc(tail->data, (size_t)capacity);
    if (data == NULL)
        return false;
    tail->data = data;
    tail->capacity = capacity;
    return true;
}

static bool add_packet(struct sm_native_tail *tail, const struct sm_packet_header *h, uint8_t kind,
                       uint64_t bytes, uint64_t discarded) {
    if (tail->n_packets == tail->packets_capacity) {
        uint32_t capacity = tail->packets_capacity == 0 ? 64 : tail->packets_capacity * 2;
        struct sm_native_packet *packets = realloc(tail->packets, capacity * sizeof *tail->packets);
        if (packets != NULL)
            tail->packets = packets;
        uint8_t *kinds = realloc(tail->kinds, capacity);
        if (kinds != NULL)
            tail->kinds = kinds;
        uint64_t *counts = realloc(tail->slot_discarded, capacity * sizeof *counts);
        if (counts != NULL)
            tail->slot_discarded = counts;
        if (packets == NULL || kinds == NULL || counts == NULL)
            return false;
        tail->packets_capacity = capacity;
    }
    tail->packets[tail->n_packets] = (struct sm_native_packet){
        .offset = tail->bytes,
        .first_seq = h->first_seq,
        .ts_begin_ticks = h->ts_begin_ticks,
        .stored_bytes = (uint32_t)bytes,
        .raw_bytes = (uint32_t)bytes,
        .packet_seq = h->packet_seq,
        .stream = h->stream,
        .codec = SM_CODEC_NONE,
        .flags = SM_NATIVE_TAIL | SM_NATIVE_CUTS,
    };
    tail->kinds[tail->n_packets] = kind;
    tail->slot_discarded[tail->n_packets] = discarded;
    tail->n_packets++;
    memset(tail->data + tail->bytes + bytes, 0, SM_NATIVE_PADDING);
    tail->bytes += bytes + SM_NATIVE_PADDING;
    return true;
}

/* Copies the packet of one kind out of the slot at `slot`. */
static bool copy_packet(struct sm_native_tail *tail, int fd, uint64_t slot, uint8_t kind,
                        uint32_t payload_offset, uint32_t payload_room) {
    unsigned header_at =
        kind == SM_PACKET_EVENTS ? SM_TAIL_SLOT_EVENTS_HEADER : SM_TAIL_SLOT_SYMS_HEADER;
    unsigned committed_at =
        kind == SM_PACKET_EVENTS ? SM_TAIL_SLOT_EVENTS_COMMITTED : SM_TAIL_SLOT_SYMS_COMMITTED;
    uint8_t before[SLOT_HEAD_BYTES], after[SLOT_HEAD_BYTES];
    struct sm_packet_header h;
    for (unsigned attempt = 0; attempt < TRIES; attempt++) {
        if (!read_at(fd, slot, before, sizeof before))
            return true; /* the slot does not exist yet */
        uint64_t committed = sm_get_u64le(before + committed_at);
        if (committed == 0 || !sm_packet_header_get_unsealed(before + header_at, &h))
            return true;
        if (h.session != tail->session || h.stream >= SM_MAX_STREAMS || h.first_seq >= SM_MAX_SEQ ||
            committed > payload_room)
            return false;
        if (!room(tail, committed + SM_NATIVE_PADDING) ||
            !read_at(fd, slot + payload_offset, tail->data + tail->bytes, (size_t)committed) ||
            !read_at(fd, slot, after, sizeof after))
            return false;
        if (memcmp(before + header_at, after + header_at, SM_PACKET_HEADER_BYTES) == 0 &&
            sm_get_u64le(after + committed_at) >= committed)
            return add_packet(tail, &h, kind, committed,
                              sm_get_u64le(after + SM_TAIL_SLOT_DISCARDED));
    }
    return false;
}

static bool read_header(struct sm_native_tail *tail, int fd, uint32_t *slot_bytes,
                        uint32_t *syms_offset, uint32_t *events_offset) {
    uint8_t h[64];
    if (!read_at(fd, 0, h, sizeof h) || memcmp(h, SM_TAIL_MAGIC, 8) != 0 ||
        sm_get_u32le(h + SM_TAIL_AT_VERSION) != SM_TAIL_VERSION)
        return false;
    tail->n_slots = sm_get_u32le(h + SM_TAIL_AT_N_SLOTS);
    tail->session = sm_get_u64le(h + SM_TAIL_AT_SESSION);
    tail->pid = sm_get_u32le(h + SM_TAIL_AT_PID);
    tail->discarded = sm_get_u64le(h + SM_TAIL_AT_DISCARDED);
    tail->forks = sm_get_u32le(h + SM_TAIL_AT_FORKS);
    tail->state = sm_get_u32le(h + SM_TAIL_AT_STATE);
    tail->end_ticks = sm_get_u64le(h + SM_TAIL_AT_END_TICKS);
    *slot_bytes = sm_get_u32le(h + SM_TAIL_AT_SLOT_BYTES);
    *syms_offset = sm_get_u32le(h + SM_TAIL_AT_SYMS_OFFSET);
    *events_offset = sm_get_u32le(h + SM_TAIL_AT_EVENTS_OFFSET);
    return *syms_offset >= SLOT_HEAD_BYTES && *events_offset >= *syms_offset &&
           *slot_bytes > *events_offset && tail->n_slots <= SM_MAX_STREAMS;
}

struct sm_native_tail *sm_native_tail_load(const char *path) {
    struct sm_native_tail *tail = calloc(1, sizeof *tail);
    if (tail == NULL)
        return NULL;
    size_t length = strlen(path);
    tail->path = malloc(length + sizeof SM_TAIL_SUFFIX);
    if (tail->path == NULL) {
        free(tail);
        return NULL;
    }
    memcpy(tail->path, path, length);
    memcpy(tail->path + length, SM_TAIL_SUFFIX, sizeof SM_TAIL_SUFFIX);
    int fd = open(tail->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    uint32_t slot_bytes, syms_offset, events_offset;
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
        !read_header(tail, fd, &slot_bytes, &syms_offset, &events_offset)) {
        if (fd >= 0)
            close(fd);
        sm_native_tail_free(tail);
        return NULL;
    }
    for (uint32_t i = 0; i < tail->n_slots; i++) {
        uint64_t slot = SM_TAIL_HEADER_BYTES + (uint64_t)i * slot_bytes;
        if (slot >= (uint64_t)st.st_size)
            break;
        /* SYMS last: the names of a location are written after it was met. */
        if (!copy_packet(tail, fd, slot, SM_PACKET_EVENTS, events_offset,
                         slot_bytes - events_offset))
            tail->n_torn++;
        if (!copy_packet(tail, fd, slot, SM_PACKET_SYMS, syms_offset, events_offset - syms_offset))
            tail->n_torn++;
    }
    close(fd);
    return tail;
}

void sm_native_tail_free(struct sm_native_tail *tail) {
    if (tail == NULL)
        return;
    free(tail->path);
    free(tail->data);
    free(tail->packets);
    free(tail->kinds);
    free(tail->slot_discarded);
    free(tail);
}
