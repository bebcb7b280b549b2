/* Packets into the trace file, and the file's end.

   A regular file that we opened ourselves is written with O_APPEND: the kernel puts each write behind the others, from
   any number of threads, in one piece. Everything else (pipes, sockets, devices, foreign descriptors) is
   *serial*: a lock around each write, since a large write to a pipe is not in one piece, and an index kept while
   recording, since it cannot be read back. */
#include "record/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/text.h"
#include "encode/tlv.h"
#include "format/packet.h"

#define OUTPUT_LIMIT_MS 60000
#define INDEX_ENTRY_MAX_BYTES (1 + 8 * SM_LEB_MAX_BYTES)

void sm_recorder_error(char *err, size_t err_bytes, const char *what, const char *why) {
    if (err == NULL || err_bytes == 0)
        return;
    struct sm_text t = sm_text_in(err, err_bytes);
    sm_text_add(&t, what);
    if (what[0] != 0 && why[0] != 0)
        sm_text_add(&t, ": ");
    sm_text_add(&t, why);
}

/* ---- opening ---- */

static int open_path(struct sm_session *session, const char *path, char *err, size_t err_bytes) {
    struct stat st;
    bool special = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
    if (special && S_ISDIR(st.st_mode)) {
        sm_recorder_error(err, err_bytes, path, "is a directory; give the name of a file");
        return -1;
    }
    int fd =
        open(path, special ? O_WRONLY | O_CLOEXEC : O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) {
        sm_recorder_error(err, err_bytes, path, sm_os_error_text(errno));
        return -1;
    }
    fd = sm_descriptor_high(fd); /* before the lock, which any close of the file would end */
    session->serial = special;
    if (!special) {
        if (sm_os_lock_file(fd) == -EAGAIN) {
            sm_recorder_error(err, err_bytes, path, "another process is recording into this file");
            close(fd);
            return -1;
        }
        if (ftruncate(fd, 0) != 0) {
            sm_recorder_error(err, err_bytes, path, sm_os_error_text(errno));
            close(fd);
            return -1;
        }
    }
    session->fd = fd;
    sm_descriptor_identify(session->fd, &session->file_id);
    return 0;
}

/* The descriptor, made sure of; -1 = the file is out of reach. One that the program gave us is taken as it is. */
static int sure(struct sm_session *session) {
    if (session->config.fd >= 0)
        return session->fd;
    return sm_descriptor_sure(&session->fd, &session->file_id, session->serial ? "" : session->path,
                              O_RDWR | O_APPEND);
}

int sm_output_open(struct sm_session *session, const char *path, int fd, char *err,
                   size_t err_bytes) {
    memset(&session->index, 0, sizeof session->index);
    session->offset = 0;
    atomic_store_explicit(&session->failed, 0, memory_order_relaxed);
    atomic_store_explicit(&session->told, false, memory_order_relaxed);
    if (fd >= 0) {
        off_t at = lseek(fd, 0, SEEK_CUR);
        session->fd = fd;
        session->serial = true;
        session->offset = at > 0 ? (uint64_t)at : 0;
    } else if (open_path(session, path, err, err_bytes) != 0) {
        return -1;
    }
    session->guard = session->serial || sm_os_file_size_limited();
    return 0;
}

/* ---- index ---- */

static bool index_room(struct sm_index *index) {
    if (index->lost || index->capacity - index->used >= INDEX_ENTRY_MAX_BYTES)
        return !index->lost;
    size_t larger = index->capacity == 0 ? 1u << 16 : 2 * index->capacity;
    uint8_t *buf = larger <= SM_MAX_RAW_BYTES ? sm_os_map(larger) : NULL;
    if (buf == NULL) {
        index->lost = true;
        return false;
    }
    if (index->used > 0)
        memcpy(buf, index->buf, index->used);
    sm_os_unmap(index->buf, index->capacity);
    index->buf = buf;
    index->capacity = larger;
    return true;
}

static void index_add(struct sm_index *index, const struct sm_packet_header *h, uint64_t offset) {
    if (!index_room(index))
        return;
    uint8_t *p = index->buf + index->used;
    p = sm_put_leb(p, offset - index->end_of_last);
    *p++ = h->kind;
    p = sm_put_leb(p, h->stored_bytes);
    p = sm_put_leb(p, h->stream);
    p = sm_put_leb(p, h->packet_seq);
    p = sm_put_leb(p, h->n_events);
    p = sm_put_leb(p, h->n_alloc);
    p = sm_put_zz(p, (int64_t)(h->ts_begin_ticks - index->previous_ts));
    p = sm_put_leb(p, h->ts_span_ticks);
    index->used = (size_t)(p - index->buf);
    index->end_of_last = offset + SM_PACKET_HEADER_BYTES + h->stored_bytes;
    index->previous_ts = h->ts_begin_ticks;
}

/* Reads the file's own headers. Returns the offset where the last whole packet ends; *clean = the file ends there. */
static uint64_t walk(struct sm_session *session, struct sm_index *index, bool *clean) {
    struct stat st;
    uint64_t at = 0;
    *clean = false;
    int fd = sure(session);
    if (fd < 0 || fstat(fd, &st) != 0)
        return 0;
    uint64_t size = (uint64_t)st.st_size;
    while (at + SM_PACKET_HEADER_BYTES <= size) {
        uint8_t bytes[SM_PACKET_HEADER_BYTES];
        struct sm_packet_header h;
        if (pread(fd, bytes, sizeof bytes, (off_t)at) != (ssize_t)sizeof bytes ||
            !sm_packet_header_get(bytes, &h) || h.stored_bytes > size - at - SM_PACKET_HEADER_BYTES)
            return at;
        if (index != NULL)
            index_add(index, &h, at);
        at += SM_PACKET_HEADER_BYTES + h.stored_bytes;
    }
    *clean = at == size;
    return at;
}

/* ---- appending ---- */

static void complain(struct sm_session *session, int error) {
    char line[512];
    struct sm_text t = sm_text_in(line, sizeof line);
    sm_text_add(&t, "statmem: ");
    sm_text_add(&t, session->path[0] != 0 ? session->path : "output");
    sm_text_add(&t, ": ");
    sm_text_add(&t, sm_os_error_text(error));
    sm_text_add(&t, "; recording ends here, what was written before stays readable\n");
    sm_os_complain(line);
}

static bool append_parts(struct sm_session *session, const struct iovec *parts, int n) {
    uint64_t written;
    int fd = sure(session), error = -EBADF;
    if (fd >= 0)
        error = sm_os_write_all(fd, parts, n, session->guard, &written);
    if (error == 0)
        return true;
    uint32_t none = 0;
    /* relaxed: the number itself is the message */
    if (atomic_compare_exchange_strong_explicit(&session->failed, &none, (uint32_t)-error,
                                                memory_order_relaxed, memory_order_relaxed)) {
        if (session->started) { /* before, the caller of start gets the message */
            sm_tail_state(session, 3, 0);
            /* relaxed: the flag itself is the message; reset where `failed` is, by the start */
            if (!atomic_exchange_explicit(&session->told, true, memory_order_relaxed))
                complain(session, -error);
        }
    }
    return false;
}

/* parts: header, payload, header, payload... */
bool sm_output_append(struct sm_session *session, const struct iovec *parts, int n) {
    if (atomic_load_explicit(&session->failed, memory_order_relaxed) != 0)
        return false;
    if (!session->serial)
        return append_parts(session, parts, n);
    struct sm_control *c = atomic_load_explicit(&sm_control, memory_order_acquire);
    if (!sm_os_lock_acquire(&c->output_lock, OUTPUT_LIMIT_MS))
        return false;
    bool done = append_parts(session, parts, n);
    for (int i = 0; done && i + 1 < n; i += 2) {
        struct sm_packet_header h;
        sm_packet_header_get_unsealed(parts[i].iov_base, &h);
        index_add(&session->index, &h, session->offset);
        session->offset += SM_PACKET_HEADER_BYTES + h.stored_bytes;
    }
    sm_os_lock_release(&c->output_lock);
    return done;
}

bool sm_output_packet(struct sm_session *session, struct sm_packet_header *h, const void *payload,
                      size_t bytes) {
    uint8_t header[SM_PACKET_HEADER_BYTES];
    h->flags = SM_PACKET_FLAG_RESET;
    h->stored_bytes = h->raw_bytes = (uint32_t)bytes;
    h->payload_crc = sm_crc32c(0, payload, bytes);
    h->pid = session->pid;
    h->session = session->id;
    sm_packet_header_put(header, h);
    struct iovec parts[2] = {{header, sizeof header}, {(void *)(uintptr_t)payload, bytes}};
    return sm_output_append(session, parts, 2);
}

/* ---- the end ---- */

/* A failed write may have left part of a packet. Where it is the last thing in the file it is cut off, which may
   even make room for what is left to write. The failure is forgotten, so that the stopper tries again. */
void sm_output_repair(struct sm_session *session) {
    bool clean;
    int fd = session->serial ? -1 : sure(session);
    if (fd >= 0) {
        uint64_t end = walk(session, NULL, &clean);
        uint8_t magic[SM_PACKET_MAGIC_BYTES];
        /* Whole packets of other threads may stand behind a torn one: then it stays. */
        bool packets_behind = false;
        for (uint64_t at = end + 1; !clean && !packets_behind; at++) {
            if (pread(fd, magic, sizeof magic, (off_t)at) != (ssize_t)sizeof magic ||
                at > end + SM_MAX_RAW_BYTES)
                break;
            packets_behind = memcmp(magic, SM_PACKET_MAGIC, sizeof magic) == 0;
        }
        if (!clean && !packets_behind && ftruncate(fd, (off_t)end) != 0)
            return;
    } else {
        return;
    }
    atomic_store_explicit(&session->failed, 0, memory_order_relaxed);
}

static size_t end_payload(struct sm_session *session, uint8_t *buf, size_t capacity,
                          enum sm_end_reason reason, uint64_t index_offset) {
    struct sm_control *c = atomic_load_explicit(&sm_control, memory_order_acquire);
    uint64_t n_events = 0;
    for (uint32_t i = 0; i < sm_slots_count(); i++) {
        const struct sm_stream *s = sm_slots_get(i);
        if (s->generation == session->generation)
            n_events += s->n_events;
    }
    (void)c;
    struct sm_tlv_writer w = {.buf = buf, .capacity = capacity - SM_END_TRAILER_BYTES};
    sm_tlv_leb(&w, SM_END_REASON, reason);
    sm_tlv_leb(&w, SM_END_N_EVENTS, n_events);
    sm_tlv_leb(&w, SM_END_DISCARDED, sm_recorder_discarded());
    sm_tlv_leb(&w, SM_END_FORKS, atomic_load_explicit(&session->forks, memory_order_relaxed));
    sm_tlv_leb(&w, SM_END_PEAK_STREAMS, session->peak_streams);
    sm_tlv_leb(&w, SM_END_OWNERS, session->owners);
    if (session->n_final_counters > 0) {
        uint8_t pairs[16 * 2 * SM_LEB_MAX_BYTES];
        uint8_t *p = pairs;
        for (uint32_t i = 0; i < session->n_final_counters; i++) {
            p = sm_put_leb(p, session->final_counters[i].counter);
            p = sm_put_zz(p, session->final_counters[i].value);
        }
        sm_tlv_bytes(&w, SM_END_GC, pairs, (size_t)(p - pairs));
    }
    uint8_t *trailer = buf + w.used;
    sm_put_u64le(trailer, index_offset);
    sm_put_u32le(trailer + 8, (uint32_t)(SM_PACKET_HEADER_BYTES + w.used + SM_END_TRAILER_BYTES));
    memcpy(trailer + 12, SM_END_TRAILER_MAGIC, 4);
    return w.used + SM_END_TRAILER_BYTES;
}

void sm_output_end(struct sm_session *session, enum sm_end_reason reason, uint64_t end_ticks) {
    uint64_t index_offset = session->offset;
    bool clean = true;
    if (!session->serial)
        index_offset = walk(session, &session->index, &clean);
    struct sm_packet_header h = {.kind = SM_PACKET_INDEX};
    if (!clean || session->index.lost ||
        !sm_output_packet(session, &h, session->index.buf, session->index.used))
        index_offset = 0;
    uint8_t payload[1024];
    size_t bytes = end_payload(session, payload, sizeof payload, reason, index_offset);
    h = (struct sm_packet_header){.kind = SM_PACKET_END, .ts_begin_ticks = end_ticks};
    sm_output_packet(session, &h, payload, bytes);
}

void sm_output_close(struct sm_session *session) {
    sm_os_unmap(session->index.buf, session->index.capacity);
    session->index.buf = NULL;
    if (session->config.fd < 0 && sm_descriptor_is(session->fd, &session->file_id))
        close(session->fd);
    session->fd = -1;
}
