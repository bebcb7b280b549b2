#include "decode/memtrace_internal.h"

#include <string.h>

/* A NUL-terminated string; NULL when it does not end before `end`. */
static const uint8_t *take_text(const uint8_t *p, const uint8_t *end, const uint8_t **text,
                                size_t *bytes) {
    const uint8_t *nul = p < end ? memchr(p, 0, (size_t)(end - p)) : NULL;
    if (nul == NULL)
        return NULL;
    *text = p;
    *bytes = (size_t)(nul - p);
    return nul + 1;
}

bool sm_mt_info_read(struct sm_trace *t, const uint8_t *p, const struct sm_mt_header *h,
                     enum sm_mt_order order) {
    bool big = order == SM_MT_BIG;
    const uint8_t *end = p + h->packet_bytes, *text[4] = {NULL, NULL, NULL, (const uint8_t *)""};
    size_t bytes[4] = {0, 0, 0, 0};
    p += h->header_bytes;
    if (end - p < 4 + 8 + 1 || sm_mt_get_u32(p, big) >> SM_MT_TIME_BITS != SM_MT_INFO ||
        h->alloc_begin != h->alloc_end)
        return false;
    uint64_t rate_bits = sm_mt_get_u64(p + 4, big);
    uint8_t word_bits = p[12];
    p += 13;
    for (int i = 0; i < 3; i++)
        if ((p = take_text(p, end, &text[i], &bytes[i])) == NULL)
            return false;
    if (end - p < 8)
        return false;
    uint64_t pid = sm_mt_get_u64(p, big);
    p += 8;
    if (h->version >= 2 && (p = take_text(p, end, &text[3], &bytes[3])) == NULL)
        return false;
    if (p != end)
        return false;
    if (t == NULL)
        return true;

    struct sm_meta *meta = &t->meta;
    double rate;
    memcpy(&rate, &rate_bits, sizeof rate);
    meta->missing = false;
    meta->sample_rate = rate > 0 && rate <= 1 ? rate : 0; /* else: damage, or not a number */
    if (word_bits == 32 || word_bits == 64)
        meta->word_bits = word_bits;
    meta->executable = sm_trace_text(t, text[0], bytes[0]);
    meta->host = sm_trace_text(t, text[1], bytes[1]);
    meta->runtime_params = sm_trace_text(t, text[2], bytes[2]);
    meta->context = sm_trace_text(t, text[3], bytes[3]);
    meta->has_context = bytes[3] > 0;
    meta->pid = pid;
    meta->initial_domain = h->domain;
    return true;
}
