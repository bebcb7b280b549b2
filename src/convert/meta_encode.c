#include "convert/meta_encode.h"

#include <string.h>

static size_t args_bytes(const struct sm_meta *m) {
    const char *p = m->args;
    for (uint32_t i = 0; i < m->n_args; i++)
        p += strlen(p) + 1;
    return (size_t)(p - m->args);
}

size_t sm_meta_bound(const struct sm_meta *m) {
    return 1024 + strlen(m->executable) + strlen(m->host) + strlen(m->runtime_params) +
           strlen(m->context) + args_bytes(m) + strlen(m->ocaml_version) + strlen(m->writer) +
           strlen(m->arch) + strlen(m->boot_id) + m->build_id_bytes;
}

static void optional_text(struct sm_tlv_writer *w, uint32_t tag, const char *text) {
    if (*text != 0)
        sm_tlv_text(w, tag, text);
}

static void optional_leb(struct sm_tlv_writer *w, uint32_t tag, uint64_t value) {
    if (value != 0)
        sm_tlv_leb(w, tag, value);
}

void sm_meta_encode(struct sm_tlv_writer *w, const struct sm_meta *m) {
    uint8_t anchor[16];
    sm_tlv_leb(w, SM_META_FORMAT_VERSION, SM_FORMAT_VERSION);
    sm_tlv_leb(w, SM_META_TICK_NS, m->tick_ns);
    sm_tlv_leb(w, SM_META_CLOCK, m->clock);
    sm_put_u64le(anchor, m->anchor_clock_ns);
    sm_put_u64le(anchor + 8, m->anchor_real_ns);
    sm_tlv_bytes(w, SM_META_ANCHOR, anchor, sizeof anchor);
    if (m->sample_rate > 0)
        sm_tlv_f64(w, SM_META_SAMPLE_RATE, m->sample_rate);
    if (m->native_interval_bytes != 0)
        sm_tlv_leb(w, SM_META_NATIVE_INTERVAL, m->native_interval_bytes);
    sm_tlv_leb(w, SM_META_WORD_SIZE, m->word_bits);
    sm_tlv_text(w, SM_META_EXECUTABLE, m->executable);
    sm_tlv_text(w, SM_META_HOST, m->host);
    sm_tlv_text(w, SM_META_RUNTIME_PARAMS, m->runtime_params);
    sm_tlv_leb(w, SM_META_PID, m->pid);
    if (m->has_context)
        sm_tlv_text(w, SM_META_CONTEXT, m->context);
    if (m->n_args > 0)
        sm_tlv_bytes(w, SM_META_ARGS, m->args, args_bytes(m));
    optional_text(w, SM_META_OCAML_VERSION, m->ocaml_version);
    if (m->build_id_bytes > 0)
        sm_tlv_bytes(w, SM_META_BUILD_ID, m->build_id, m->build_id_bytes);
    optional_text(w, SM_META_WRITER, m->writer);
    optional_text(w, SM_META_ARCH, m->arch);
    optional_leb(w, SM_META_DEPTH_LIMIT, m->depth_limit);
    optional_leb(w, SM_META_RATE_ORIGIN, m->rate_origin);
    sm_tlv_leb(w, SM_META_INITIAL_DOMAIN, m->initial_domain);
    if (m->has_seed) {
        uint8_t seed[8];
        sm_put_u64le(seed, m->seed);
        sm_tlv_bytes(w, SM_META_SEED, seed, sizeof seed);
    }
    optional_leb(w, SM_META_IMPORTED_FROM, m->imported_from);
    optional_text(w, SM_META_BOOT_ID, m->boot_id);
    optional_leb(w, SM_META_MODE, m->mode);
    optional_leb(w, SM_META_OCAML_KIND, m->ocaml_kind);
    optional_leb(w, SM_META_PARENT_PID, m->parent_pid);
}
