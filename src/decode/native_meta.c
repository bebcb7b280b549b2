/* META and END packets: TLV lists into struct sm_meta and struct sm_end. A field that does not parse
   keeps its default. */
#include <string.h>

#include "decode/native_internal.h"

struct tlv {
    uint64_t tag;
    const uint8_t *data;
    size_t bytes;
};

static bool next_tlv(const uint8_t **p, const uint8_t *end, struct tlv *e) {
    uint64_t bytes;
    if (*p >= end || !sm_get_leb(p, end, &e->tag) || !sm_get_leb(p, end, &bytes) ||
        bytes > (size_t)(end - *p))
        return false;
    e->data = *p;
    e->bytes = (size_t)bytes;
    *p += bytes;
    return true;
}

static uint64_t leb(const struct tlv *e, uint64_t fallback) {
    const uint8_t *p = e->data;
    uint64_t x;
    return sm_get_leb(&p, e->data + e->bytes, &x) ? x : fallback;
}

static const char *text(struct sm_trace *t, const struct tlv *e) {
    return sm_trace_text(t, e->data, e->bytes);
}

void sm_native_read_meta(struct sm_trace *t, const uint8_t *payload, size_t bytes) {
    struct sm_meta *m = &t->meta;
    const uint8_t *p = payload, *end = payload + bytes;
    struct tlv e;
    uint64_t x;
    while (next_tlv(&p, end, &e)) {
        switch (e.tag) {
        case SM_META_FORMAT_VERSION:
            if ((x = leb(&e, 1)) != SM_FORMAT_VERSION)
                sm_trace_add_loss(t, SM_LOSS_UNSUPPORTED, UINT32_MAX, 0, 0, 0, false,
                                  "the trace is of format version %llu, this reader knows %d: some "
                                  "of it may be missing; a newer statmem reads it all",
                                  (unsigned long long)x, SM_FORMAT_VERSION);
            break;
        case SM_META_TICK_NS:
            x = leb(&e, 0);
            if (x > 0 && x <= UINT32_MAX)
                m->tick_ns = (uint32_t)x;
            break;
        case SM_META_CLOCK:
            m->clock = leb(&e, 1) == 0 ? SM_CLOCK_REALTIME : SM_CLOCK_MONOTONIC;
            break;
        case SM_META_ANCHOR:
            if (e.bytes >= 16) {
                m->anchor_clock_ns = sm_get_u64le(e.data);
                m->anchor_real_ns = sm_get_u64le(e.data + 8);
            }
            break;
        case SM_META_SAMPLE_RATE:
            if (e.bytes >= 8) {
                double rate = sm_get_f64le(e.data);
                m->sample_rate = rate > 0 && rate <= 1 ? rate : 0;
            }
            break;
        case SM_META_NATIVE_INTERVAL:
            m->native_interval_bytes = leb(&e, 0);
            break;
        case SM_META_WORD_SIZE:
            m->word_bits = leb(&e, 64) == 32 ? 32 : 64;
            break;
        case SM_META_EXECUTABLE:
            m->executable = text(t, &e);
            break;
        case SM_META_HOST:
            m->host = text(t, &e);
            break;
        case SM_META_RUNTIME_PARAMS:
            m->runtime_params = text(t, &e);
            break;
        case SM_META_PID:
            m->pid = leb(&e, m->pid);
            break;
        case SM_META_CONTEXT:
            m->has_context = true;
            m->context = text(t, &e);
            break;
        case SM_META_ARGS:
            m->args = text(t, &e);
            m->n_args = 0;
            for (size_t i = 0; i < e.bytes; i++)
                m->n_args += e.data[i] == 0;
            m->n_args += e.bytes > 0 && e.data[e.bytes - 1] != 0; /* the copy ends by NUL */
            break;
        case SM_META_OCAML_VERSION:
            m->ocaml_version = text(t, &e);
            break;
        case SM_META_BUILD_ID:
            m->build_id = (const uint8_t *)text(t, &e);
            m->build_id_bytes =
                m->build_id[0] == 0 && e.bytes > 0 && e.data[0] != 0 ? 0 : (uint32_t)e.bytes;
            break;
        case SM_META_WRITER:
            m->writer = text(t, &e);
            break;
        case SM_META_ARCH:
            m->arch = text(t, &e);
            break;
        case SM_META_DEPTH_LIMIT:
            m->depth_limit = (uint32_t)leb(&e, 0);
            break;
        case SM_META_RATE_ORIGIN:
            x = leb(&e, 0);
            m->rate_origin = x <= SM_RATE_COMMAND_LINE ? (enum sm_rate_origin)x : SM_RATE_UNKNOWN;
            break;
        case SM_META_INITIAL_DOMAIN:
            m->initial_domain = leb(&e, 0);
            break;
        case SM_META_SEED:
            if (e.bytes >= 8) {
                m->has_seed = true;
                m->seed = sm_get_u64le(e.data);
            }
            break;
        case SM_META_IMPORTED_FROM:
            m->imported_from = (uint32_t)leb(&e, 0);
            break;
        case SM_META_BOOT_ID:
            m->boot_id = text(t, &e);
            break;
        case SM_META_MODE:
            x = leb(&e, 0);
            m->mode = x <= SM_MODE_CONVERTED ? (enum sm_mode)x : SM_MODE_UNKNOWN;
            break;
        case SM_META_OCAML_KIND:
            x = leb(&e, 0);
            m->ocaml_kind = x <= SM_OCAML_BYTECODE ? (enum sm_ocaml_kind)x : SM_OCAML_UNKNOWN;
            break;
        case SM_META_PARENT_PID:
            m->parent_pid = leb(&e, 0);
            break;
        case SM_META_MODULE:
            sm_trace_add_module(t, m->start_ticks, e.data, e.data + e.bytes);
            break;
        default:
            break; /* what later versions add */
        }
    }
}

bool sm_native_read_end(struct sm_trace *t, const uint8_t *payload, size_t bytes) {
    struct sm_end *d = &t->end;
    if (bytes < SM_END_TRAILER_BYTES || memcmp(payload + bytes - 4, SM_END_TRAILER_MAGIC, 4) != 0)
        return false;
    const uint8_t *p = payload, *end = payload + bytes - SM_END_TRAILER_BYTES;
    struct tlv e;
    d->present = true;
    while (next_tlv(&p, end, &e)) {
        uint64_t x = leb(&e, 0);
        switch (e.tag) {
        case SM_END_REASON:
            d->reason = x <= SM_REASON_CONVERTED ? (enum sm_end_reason)x : SM_REASON_UNKNOWN;
            break;
        case SM_END_N_EVENTS:
            d->n_events = x;
            break;
        case SM_END_DISCARDED:
            d->discarded = x;
            break;
        case SM_END_FORKS:
            d->forks = x;
            break;
        case SM_END_PEAK_STREAMS:
            d->peak_streams = x;
            break;
        case SM_END_OWNERS:
            d->owners = x;
            break;
        case SM_END_RECOVERED:
            d->recovered = x;
            break;
        case SM_END_LOST_EVENTS:
            d->lost_events = x;
            break;
        case SM_END_LOST_BYTES:
            d->lost_bytes = x;
            break;
        case SM_END_LOST_NAMES:
            d->lost_names = x;
            break;
        case SM_END_EXIT_STATUS:
            d->has_exit_status = true;
            d->exit_status = (uint32_t)x;
            break;
        case SM_END_GC: {
            const uint8_t *q = e.data;
            d->n_gc = 0;
            while (d->n_gc < sizeof d->gc / sizeof d->gc[0] && q < e.data + e.bytes &&
                   sm_get_leb(&q, e.data + e.bytes, &d->gc[d->n_gc].counter) &&
                   sm_get_zz(&q, e.data + e.bytes, &d->gc[d->n_gc].value))
                d->n_gc++;
            break;
        }
        default:
            break;
        }
    }
    return true;
}
