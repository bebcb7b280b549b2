#include "decode/tail_packets.h"

#include <errno.h>
#include <signal.h>

#include "decode/native_internal.h"

void sm_trace_tail_state(const struct sm_trace *t, struct sm_tail_state *state) {
    *state = (struct sm_tail_state){0};
    if (t->backend != &sm_backend_native)
        return;
    const struct sm_native *n = t->backend_data;
    if (n->tail == NULL)
        return;
    *state = (struct sm_tail_state){
        .present = true,
        .alive = n->tail->state == 1 && n->tail->pid != 0 &&
                 (kill((pid_t)n->tail->pid, 0) == 0 || errno == EPERM),
        .pid = n->tail->pid,
        .state = n->tail->state,
        .discarded = n->tail->discarded,
        .forks = n->tail->forks,
        .end_ticks = n->tail->end_ticks,
        .n_packets = n->tail->n_packets,
    };
}

/* The reader's list holds the packets of the side file that it took. */
static const struct sm_native_packet *taken(const struct sm_native *n,
                                            const struct sm_native_packet *p) {
    for (uint32_t i = 0; i < n->n_packets; i++)
        if ((n->packets[i].flags & SM_NATIVE_TAIL) != 0 && n->packets[i].offset == p->offset)
            return &n->packets[i];
    return NULL;
}

bool sm_trace_tail_packet(struct sm_trace *t, uint32_t i, struct sm_packet_header *h,
                          const uint8_t **payload) {
    struct sm_native *n = t->backend_data;
    const struct sm_native_packet *p = &n->tail->packets[i];
    uint8_t kind = n->tail->kinds[i];
    *h = (struct sm_packet_header){
        .kind = kind,
        .raw_bytes = p->raw_bytes,
        .stored_bytes = p->raw_bytes,
        .stream = p->stream,
        .packet_seq = p->packet_seq,
        .first_seq = p->first_seq,
        .ts_begin_ticks = p->ts_begin_ticks,
        .discarded = n->tail->slot_discarded[i],
    };
    *payload = n->tail->data + p->offset;
    if (kind == SM_PACKET_SYMS)
        return true;
    if (taken(n, p) == NULL)
        return false;
    struct sm_native_packet measured = *p;
    measured.n_events = 0;
    sm_native_measure(t, &measured, h);
    h->n_events = measured.n_events;
    h->n_alloc = measured.n_alloc;
    h->ts_span_ticks = measured.ts_span_ticks;
    return h->n_events > 0;
}
