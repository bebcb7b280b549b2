/* Call stacks in memtrace's coding, writing side: a cache of location codes that writer and reader
   keep in step. Hosted; one encoder per domain.

   A stack is sent as the number of outermost frames it has in common with the stack before, and
   codewords for the rest. A codeword names a cache slot (or fills it, after a miss) and how many
   more frames follow by prediction: each slot remembers which slot came after it last time. */
#ifndef SM_CONVERT_MEMTRACE_STACKS_H
#define SM_CONVERT_MEMTRACE_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/memtrace_wire.h"

/* Room that the codewords of one stack may take: the coder stops when the 4086th byte is passed,
   and one codeword is at most 10 bytes. What did not fit, the innermost frames, is lost. */
#define SM_MT_STACK_LIMIT 4086u
#define SM_MT_STACK_ROOM 4096u

/* Codes whose locations are still to be announced. A packet is closed beyond SM_MT_MAX_PENDING; one
   stack can add SM_MT_STACK_ROOM / 10 more. */
#define SM_MT_MAX_PENDING 128u
#define SM_MT_PENDING_ROOM (SM_MT_MAX_PENDING + 1 + SM_MT_STACK_ROOM / 10 + 2)

struct sm_mt_stack_encoder {
    uint64_t val[SM_MT_CACHE_SLOTS];  /* code in the slot, 0 = empty */
    uint64_t date[SM_MT_CACHE_SLOTS]; /* id of the allocation that used it last */
    uint16_t pred[SM_MT_CACHE_SLOTS]; /* slot that followed it last */
    bool no_pred[SM_MT_CACHE_SLOTS];  /* reader's pred is unknown (sm_mt_stacks_resume) */
    uint64_t *last;                   /* the previous stack, whole; owned */
    uint32_t last_frames, last_capacity;
    uint32_t verify_ix; /* next slot to be shown in a header, SM_MT_NO_VERIFY = never again */
    uint64_t pending[SM_MT_PENDING_ROOM];
    uint32_t n_pending;
};

void sm_mt_stacks_init(struct sm_mt_stack_encoder *e);

/* As init, for a domain that has been written before by an encoder which is gone. The reader's cache
   is not empty then: nothing may rest on what it holds until it is written anew. */
void sm_mt_stacks_resume(struct sm_mt_stack_encoder *e);

void sm_mt_stacks_release(struct sm_mt_stack_encoder *e);

/* Number of outermost frames that `codes` shares with the stack before. */
uint32_t sm_mt_stacks_common(const struct sm_mt_stack_encoder *e, const uint64_t *codes,
                             uint32_t n_codes);

/* Codes the frames from `common` on to `to` (SM_MT_STACK_ROOM bytes) and makes the stack the
   previous one. Returns the end of the bytes written; *n_words is the number of codewords. NULL: no
   memory. */
uint8_t *sm_mt_stacks_encode(struct sm_mt_stack_encoder *e, uint8_t *to, const uint64_t *codes,
                             uint32_t n_codes, uint32_t common, uint64_t alloc_id,
                             uint32_t *n_words);

/* The three verifier fields of the header of an event packet being opened. */
void sm_mt_stacks_verifier(struct sm_mt_stack_encoder *e, bool first_packet, uint16_t *ix,
                           uint16_t *pred, uint64_t *val);

#endif
