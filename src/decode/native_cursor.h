/* A cursor over one stream of a native trace: shared by native_events.c, the hot loop, and
   native_packets.c, everything that happens once per packet or location. */
#ifndef SM_DECODE_NATIVE_CURSOR_H
#define SM_DECODE_NATIVE_CURSOR_H

#include "decode/native_codes.h"
#include "decode/native_internal.h"

/* last_ref of one foreign stream in the packet at hand. */
struct foreign {
    uint32_t stream;
    uint32_t generation; /* of the packet that set it; another = free */
    uint64_t last_ref;
};

/* A location of the packet. */
struct local {
    uint64_t successors; /* four indices of 16 bits, the most recent lowest; 0 = none */
    uint32_t id;         /* of the trace */
    uint32_t unused;
};

struct sm_stream_cursor {
    const uint8_t *p, *end; /* in the packet's payload */
    uint64_t ticks;         /* of the last event, as the packet says */
    uint64_t floor_ticks;   /* no event of this packet is given out before it */
    uint64_t next_seq;
    uint64_t last_ref;
    const struct sm_native_stream *of_stream;
    uint32_t stream;
    uint32_t owner;
    unsigned flags;  /* enum sm_cursor_flag */
    bool expand;     /* the packet's stacks: asked for, or to see which are cut */
    bool measure;    /* else only count their frames */
    uint32_t n_read; /* events of the packet */

    uint32_t *frames; /* the stack, outermost first: ids of the trace */
    uint16_t *locals; /* the same as indices of the packet */
    uint32_t depth, frames_capacity;
    struct local *table;  /* by index of the packet */
    uint32_t n_locations; /* highest index */
    uint32_t locations_capacity;
    uint64_t previous_code;
    int64_t frames_left; /* cap on expansion */
    uint32_t cut_local;  /* index of the cut mark, 0 = none */
    uint32_t cut_at;     /* depth of the stack's outermost cut mark + 1, 0 = none */

    struct foreign *foreign; /* open addressing, at most half full */
    uint32_t foreign_capacity, n_foreign, generation;

    struct sm_trace *t;
    struct sm_native_packet *packet, *packets_end; /* packet: the one being read, NULL = none */
    struct sm_native_packet *next_packet;
    struct sm_native_buffer buffer;
    uint64_t last_ticks;    /* given out */
    uint64_t charged_bytes; /* of the budget, without buffer */
    const char *why;        /* of a decoding error */
    bool unsupported;
    bool measuring; /* no side effects on the trace */
};

/* Room for `need` frames; false (c->why) beyond the limits. */
bool sm_native_grow_frames(struct sm_stream_cursor *c, uint64_t need);

/* Numbers a new location, whose code is the previous new one plus delta; false (c->why) when the
   packet has too many. c->table may move. */
bool sm_native_new_location(struct sm_stream_cursor *c, uint64_t delta);

/* Where last_ref of the stream stands; NULL (c->why) when it cannot be. */
uint64_t *sm_native_last_ref(struct sm_stream_cursor *c, uint64_t stream);

/* Closes the packet at hand and goes to the next that can be read; false at the end. */
bool sm_native_open_packet(struct sm_stream_cursor *c);

/* Ends the packet at hand at the event that cannot be read; c->why, when set, counts. */
void sm_native_give_up(struct sm_stream_cursor *c, const char *why);

#endif
