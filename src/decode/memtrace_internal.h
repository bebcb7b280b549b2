/* The memtrace backend's inside. A stream is a domain; versions 1 and 2 have one, domain 0.

     memtrace_wire.c    headers and primitives
     memtrace_scan.c    one pass over the packet headers: packet lists, names, damage between packets
     memtrace_info.c    the trace-info packet
     memtrace_names.c   location events: move-to-front lists of names
     memtrace_cursor.c  events of one stream: stacks, ids, times, damage within packets
     memtrace_objects.c object ids: which domain allocated them

   Objects. The file's ids are one number space for all domains. A trace with one stream keeps them as
   seq; with several, a domain's allocations are numbered from 0 in the order of their ids.

   Trust. All coding state (stack cache, previous stack, name lists) runs through a domain's
   packets, without checksums. What a lost or damaged packet may have changed is not used as if
   nothing had happened: cache slots and list entries become untrusted until they are written anew,
   and what rests on untrusted ones is flagged (SM_EVENT_STACK_LOST) or left without a name. Events,
   sizes, samples and ids do not depend on that state and are delivered all the same.

   A last packet that the file's end cuts is not read (its allocations are counted as lost): the
   original reader does the same, and both shall agree on every file that both can read. */
#ifndef SM_DECODE_MEMTRACE_INTERNAL_H
#define SM_DECODE_MEMTRACE_INTERNAL_H

#include "decode/memtrace_wire.h"
#include "decode/trace_internal.h"

enum sm_mt_packet_flag {
    SM_MT_AFTER_DAMAGE = 1,     /* unreadable bytes stand before it */
    SM_MT_BAD_TIME = 2,         /* begins after packets that follow: its times are not used */
    SM_MT_REPORTED = 4,         /* its contents' damage is in the losses */
    SM_MT_REPORTED_STATE = 8,   /* ... what its header tells of the state before */
    SM_MT_REPORTED_TIMES = 16,  /* ... its times */
    SM_MT_REPORTED_STACKS = 32, /* ... its untrusted stacks */
};

/* An event packet. */
struct sm_mt_packet {
    uint64_t offset;
    uint32_t bytes; /* header included; may differ from the header's, when that was damaged */
    uint32_t flags;
    uint64_t alloc_begin; /* likewise */
};

struct sm_mt_stream {
    uint32_t domain;
    uint32_t owner;
    struct sm_mt_packet *packets;
    uint32_t n_packets, capacity;
    uint32_t n_damaged_before; /* scan: unreadable places before the last packet */
    uint64_t n_objects;        /* with several streams: seqs are below; scan: next id */
    int64_t floor_us;          /* no event is earlier */
};

/* Ids begin..end-1 belong to a stream, where they are seq_begin and following. */
struct sm_mt_range {
    uint64_t begin, end;
    uint64_t seq_begin;
    uint32_t stream_index;
};

struct sm_memtrace {
    enum sm_mt_order order;
    uint32_t version;
    uint64_t pid;
    bool pid_known;
    int64_t start_us;
    struct sm_mt_stream *streams; /* ascending domains */
    uint32_t n_streams;
    struct sm_mt_range *ranges; /* ascending, sm_mt_objects_finish */
    uint32_t n_ranges, ranges_capacity;
    struct sm_mt_names **names; /* by domain, 65536; until the scan's end */
    bool names_again;
    uint64_t names_lost;        /* locations that did not get all their names */
    uint64_t names_lost_offset; /* of the first */
    uint64_t contradictions;    /* codes announced again with other contents */
};

/* ---- memtrace_info.c ---- */

/* Is the packet at `p` a trace-info packet, to its last byte? Fills meta when t != NULL. */
bool sm_mt_info_read(struct sm_trace *t, const uint8_t *p, const struct sm_mt_header *h,
                     enum sm_mt_order order);

/* ---- memtrace_names.c ---- */

/* Reads location events from `p` up to `end` or to the first event of another kind; returns where it
   stopped. Lost names are counted in m. */
const uint8_t *sm_mt_names_read(struct sm_trace *t, struct sm_memtrace *m, uint32_t domain,
                                int64_t ts_begin_us, const uint8_t *p, const uint8_t *end);

/* Bytes were lost in the file: no list is known any more. */
void sm_mt_names_distrust(struct sm_memtrace *m);
void sm_mt_names_free(struct sm_memtrace *m);

/* Reads the names of the whole file event by event, once: for files that mix locations with other
   events in a packet. Damaged files are read up to the damage. */
void sm_mt_names_again(struct sm_trace *t);

/* ---- memtrace_walk.c ---- */

/* What a packet holds, found by stepping over its events. */
struct sm_mt_walk {
    bool complete; /* the last event ends with the packet, and every event is possible */
    bool has_locations;
    uint64_t n_events, n_allocs;
};
void sm_mt_walk(const uint8_t *p, const uint8_t *end, enum sm_mt_order order, struct sm_mt_walk *w);

/* Steps over `n` codewords, whose length (2, 2, 3 or 10 bytes) is in their low two bits; NULL when they
   are cut. */
static inline const uint8_t *sm_mt_step_codewords(const uint8_t *p, const uint8_t *end, bool big,
                                                  uint32_t n) {
    for (; n > 0; n--) {
        if (end - p < 2)
            return NULL;
        uint32_t tag = p[big ? 1 : 0] & 3u, bytes = 0xA322u >> tag * 4 & 15u;
        if ((uint32_t)(end - p) < bytes)
            return NULL;
        p += bytes;
    }
    return p;
}

/* Steps over one event; returns its end, NULL when it is damaged or cut. *id is its number. */
const uint8_t *sm_mt_step(const uint8_t *p, const uint8_t *end, enum sm_mt_order order,
                          uint32_t *id);

/* ---- memtrace_objects.c ---- */

bool sm_mt_objects_add(struct sm_memtrace *m, uint64_t begin, uint64_t end, uint32_t stream_index);
void sm_mt_objects_finish(struct sm_memtrace *m);
/* NULL: no such object. */
const struct sm_mt_range *sm_mt_objects_find(const struct sm_memtrace *m, uint64_t id);
bool sm_mt_has_object(const struct sm_trace *t, uint32_t stream, uint64_t seq);

/* ---- memtrace_scan.c, memtrace_cursor.c ---- */

enum sm_status sm_mt_scan(struct sm_trace *t, struct sm_error *err);
void sm_mt_release(struct sm_trace *t);
struct sm_stream_cursor *sm_mt_cursor_new(struct sm_trace *t, uint32_t stream_index,
                                          unsigned flags);
enum sm_status sm_mt_cursor_next(struct sm_stream_cursor *c, struct sm_event *event);
void sm_mt_cursor_free(struct sm_stream_cursor *c);

#endif
