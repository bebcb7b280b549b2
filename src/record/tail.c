/* The side file (docs/format.md, section 8), or anonymous memory of the same layout for outputs that have no
   place beside them.

   A full disk must not become a SIGBUS in the program: the blocks of a slot are allocated before they
   are touched. A slot's address range is mapped whole, its first OPEN_BYTES are allocated when a stream opens;
   the rest only when an event comes that could need it. */
#include "record/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "format/packet.h"

/* The target of a packet, and one event of more than ordinary depth beyond it. */
#define OPEN_EVENTS_BYTES (SM_TARGET_RAW_BYTES + (64u << 10))
#define OPEN_BYTES (SM_TAIL_EVENTS_OFFSET + OPEN_EVENTS_BYTES)

static uint64_t slot_offset(const struct sm_stream *s) {
    return SM_TAIL_HEADER_BYTES + (uint64_t)s->id * SM_TAIL_SLOT_BYTES;
}

/* Stacks up to this depth fit into an empty packet beside its OWNER and DISCARD records. */
static uint32_t frames_for(size_t events_bytes) {
    return (uint32_t)((events_bytes - 1024) / 12);
}

/* ---- header ---- */

int sm_tail_begin(struct sm_session *session) {
    session->tail_fd = -1;
    session->tail = NULL;
    if (session->serial || session->path[0] == 0) {
        session->tail = sm_os_map(SM_TAIL_HEADER_BYTES);
        if (session->tail == NULL)
            return -ENOMEM;
    } else {
        int fd = open(session->tail_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0)
            return -errno;
        int error = sm_os_allocate(fd, 0, SM_TAIL_HEADER_BYTES);
        if (error == 0) {
            session->tail = sm_os_map_file(fd, 0, SM_TAIL_HEADER_BYTES);
            if (session->tail == NULL)
                error = -ENOMEM;
        }
        if (error != 0) {
            close(fd);
            unlink(session->tail_path);
            return error;
        }
        session->tail_fd = sm_descriptor_high(fd);
        sm_descriptor_identify(session->tail_fd, &session->tail_id);
    }
    uint8_t *t = session->tail;
    sm_put_u32le(t + SM_TAIL_AT_VERSION, SM_TAIL_VERSION);
    sm_put_u64le(t + SM_TAIL_AT_SESSION, session->id);
    sm_put_u32le(t + SM_TAIL_AT_PID, session->pid);
    sm_put_u32le(t + SM_TAIL_AT_SLOT_BYTES, SM_TAIL_SLOT_BYTES);
    sm_put_u32le(t + SM_TAIL_AT_SYMS_OFFSET, SM_TAIL_SYMS_OFFSET);
    sm_put_u32le(t + SM_TAIL_AT_EVENTS_OFFSET, SM_TAIL_EVENTS_OFFSET);
    sm_put_u32le(t + SM_TAIL_AT_STATE, 1);
    atomic_signal_fence(memory_order_release);
    memcpy(t, SM_TAIL_MAGIC, 8);
    return 0;
}

void sm_tail_state(struct sm_session *session, uint32_t state, uint64_t end_ticks) {
    sm_put_u64le(session->tail + SM_TAIL_AT_END_TICKS, end_ticks);
    /* relaxed: a lone field, read by other processes */
    __atomic_store_n((uint32_t *)(void *)(session->tail + SM_TAIL_AT_STATE), state,
                     __ATOMIC_RELAXED);
}

void sm_tail_counts(struct sm_session *session) {
    if (session->tail == NULL)
        return;
    struct sm_control *c = atomic_load_explicit(&sm_control, memory_order_acquire);
    sm_put_u64le(session->tail + SM_TAIL_AT_DISCARDED,
                 atomic_load_explicit(&c->discarded, memory_order_relaxed));
    sm_put_u32le(session->tail + SM_TAIL_AT_FORKS,
                 atomic_load_explicit(&session->forks, memory_order_relaxed));
}

void sm_tail_end(struct sm_session *session, bool keep) {
    sm_os_unmap(session->tail, SM_TAIL_HEADER_BYTES);
    session->tail = NULL;
    if (session->tail_fd >= 0) {
        if (sm_descriptor_is(session->tail_fd, &session->tail_id))
            close(session->tail_fd);
        session->tail_fd = -1;
        if (!keep)
            unlink(session->tail_path);
    }
}

/* ---- slots ---- */

static void usable(struct sm_stream *s, size_t events_bytes) {
    s->events_capacity = events_bytes;
    s->safe_frames = frames_for(events_bytes);
}

bool sm_tail_slot_open(struct sm_session *session, struct sm_stream *s) {
    if (session->tail_fd < 0) {
        s->slot = sm_os_map(SM_TAIL_SLOT_BYTES);
        usable(s, SM_TAIL_EVENTS_BYTES);
        if (s->slot == NULL)
            return false;
    } else {
        s->slot = NULL;
        int fd =
            sm_descriptor_sure(&session->tail_fd, &session->tail_id, session->tail_path, O_RDWR);
        if (fd < 0 || sm_os_allocate(fd, slot_offset(s), OPEN_BYTES) != 0)
            return false;
        s->slot = sm_os_map_file(fd, slot_offset(s), SM_TAIL_SLOT_BYTES);
        if (s->slot == NULL)
            return false;
        usable(s, OPEN_EVENTS_BYTES);
    }
    struct sm_control *c = atomic_load_explicit(&sm_control, memory_order_acquire);
    uint32_t *n_slots = (uint32_t *)(void *)(session->tail + SM_TAIL_AT_N_SLOTS);
    if (sm_os_lock_acquire(&c->slots_lock, 5000)) {
        if (*n_slots < s->id + 1)
            __atomic_store_n(n_slots, s->id + 1, __ATOMIC_RELEASE);
        sm_os_lock_release(&c->slots_lock);
    }
    return true;
}

bool sm_tail_slot_extend(struct sm_session *session, struct sm_stream *s) {
    if (s->events_capacity == SM_TAIL_EVENTS_BYTES) {
        s->safe_frames = UINT32_MAX; /* the encoder has the last word */
        return true;
    }
    int fd = sm_descriptor_sure(&session->tail_fd, &session->tail_id, session->tail_path, O_RDWR);
    if (fd < 0 ||
        sm_os_allocate(fd, slot_offset(s) + OPEN_BYTES, SM_TAIL_SLOT_BYTES - OPEN_BYTES) != 0)
        return false;
    s->events_capacity = SM_TAIL_EVENTS_BYTES;
    s->safe_frames = UINT32_MAX;
    return true;
}

void sm_tail_slot_close(struct sm_stream *s) {
    sm_os_unmap(s->slot, SM_TAIL_SLOT_BYTES);
    s->slot = NULL;
}

/* Sets up the slot's header of the next packet. `committed` is 0 at this time, so nobody looks; the magic
   still comes last. */
void sm_tail_slot_header(struct sm_stream *s, enum sm_packet_kind kind, uint64_t ts_begin_ticks) {
    struct sm_packet_header h = {
        .kind = (uint8_t)kind,
        .flags = SM_PACKET_FLAG_RESET,
        .stream = s->id,
        .packet_seq = kind == SM_PACKET_SYMS ? s->syms_seq : s->packet_seq,
        .pid = sm_session.pid,
        .first_seq = kind == SM_PACKET_EVENTS ? s->next_seq : 0,
        .ts_begin_ticks = ts_begin_ticks,
        .session = sm_session.id,
    };
    uint8_t bytes[SM_PACKET_HEADER_BYTES];
    uint8_t *to =
        s->slot + (kind == SM_PACKET_SYMS ? SM_TAIL_SLOT_SYMS_HEADER : SM_TAIL_SLOT_EVENTS_HEADER);
    sm_packet_header_put(bytes, &h);
    memset(to, 0, SM_PACKET_MAGIC_BYTES);
    atomic_signal_fence(memory_order_seq_cst);
    memcpy(to + SM_PACKET_MAGIC_BYTES, bytes + SM_PACKET_MAGIC_BYTES,
           SM_PACKET_HEADER_BYTES - SM_PACKET_MAGIC_BYTES);
    atomic_signal_fence(memory_order_seq_cst);
    memcpy(to, bytes, SM_PACKET_MAGIC_BYTES);
}
