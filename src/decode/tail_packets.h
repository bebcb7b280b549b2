/* What a native trace's side file held when the trace was opened, as packets: for closing a trace after
   its program has ended. Hosted; valid until sm_trace_free. */
#ifndef SM_DECODE_TAIL_PACKETS_H
#define SM_DECODE_TAIL_PACKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/trace.h"

struct sm_tail_state {
    bool present; /* a side file that belongs to the trace */
    bool alive;   /* its writer still runs (a process of that pid exists and recording was on) */
    uint32_t pid;
    uint32_t state; /* as docs/format.md, section 8 */
    uint64_t discarded;
    uint32_t forks;
    uint64_t end_ticks;
    uint32_t n_packets;
};

void sm_trace_tail_state(const struct sm_trace *t, struct sm_tail_state *state);

/* Packet i of the side file that the trace itself does not hold. Its header is complete but for lengths'
   checksums; the payload, raw_bytes long, is not compressed. False when the trace has it already,
   or nothing of it can be decoded. */
bool sm_trace_tail_packet(struct sm_trace *t, uint32_t i, struct sm_packet_header *h,
                          const uint8_t **payload);

#endif
