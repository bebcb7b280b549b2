/* What the files of the batch decoder share. Internal to src/decode.

   batch_ops.c     a payload into records: one op after another, stacks stepped over
   batch_stacks.c  the stacks of these records
   batch.c         packets, decoders, budget, and the two of these over one packet
   batch_commit.c  what packets share, in their order
   batch_each.c    threads that decode ahead */
#ifndef SM_DECODE_BATCH_INTERNAL_H
#define SM_DECODE_BATCH_INTERNAL_H

#include "decode/batch.h"
#include "decode/native_cursor.h"

struct sm_batch_pass {
    struct sm_trace *t;
    const struct sm_native *n;
    unsigned flags;
    /* The locations known when the pass began: a copy, since committing adds to the trace's own while others
       decode. As in struct sm_locations. */
    struct sm_location_slot *slots;
    uint32_t slots_capacity;
    uint32_t *stream_of_packet; /* its index */
    /* Bytes of all batches. Relaxed: a counter beside which nothing is published. */
    uint64_t used_bytes;

    /* Committing only. */
    uint32_t next_packet;
    uint32_t stream;     /* index of the one being committed, UINT32_MAX = none yet */
    uint32_t owner;      /* who wrote last in it */
    uint64_t last_ticks; /* given out in it */
    uint64_t orphans;
};

/* A stack is found too deep before the next code, which stands for up to 256 frames, and one more is written. */
#define SM_BATCH_DEPTH_SLACK 260u

struct sm_batch_decoder {
    struct sm_batch_pass *pass;
    void *zstd;
    uint16_t *locals; /* the stack, as indices of the packet; room for the deepest */
    /* By index of the packet, with room for all there may be. Apart, since successors are what the next code waits
       for: so more of them stay in the nearest cache. */
    uint64_t *successors; /* four indices of 16 bits, the most recent lowest; 0 = none */
    uint32_t *ids;        /* of the trace */
    uint32_t n_locations;
    uint64_t previous_code;
    uint32_t cut_id;         /* trace id of frames that were cut, UINT32_MAX = none in the packet */
    struct foreign *foreign; /* open addressing, at most half full */
    uint32_t foreign_capacity, n_foreign, generation;
};

/* ---- batch.c ---- */

/* Makes room for `need` elements in one of the batch's arrays; false, and b->why, when there is none. */
bool sm_batch_room(struct sm_batch *b, void **list, uint32_t *capacity, size_t bytes_each,
                   uint64_t need);

/* ---- batch_ops.c ---- */

/* Reads the ops of data..data + bytes into b. Of an allocation first_frame, common_prefix and n_frames
   say where its codes begin, how many frames it pops, and how many bytes of codes it has. Ends at the
   allocation of number `stop_alloc`, or before what cannot be read (b->why). */
void sm_batch_read_ops(struct sm_batch_decoder *d, struct sm_batch *b,
                       const struct sm_native_packet *p, const uint8_t *data, size_t bytes,
                       uint32_t stop_alloc);

/* ---- batch_stacks.c ---- */

/* Expands the stacks. Returns how many allocations have one; fewer than there are: b->why. */
uint32_t sm_batch_expand(struct sm_batch_decoder *d, struct sm_batch *b, const uint8_t *data);

#endif
