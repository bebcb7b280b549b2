/* What an OTLP server answers: ExportProfilesServiceResponse, whose field 1 is partial_success, whose fields are
   1 rejected_profiles (int64) and 2 error_message (string); opentelemetry/proto/collector/profiles. */
#include "export/http.h"
#include "util/text.h"

struct message {
    const uint8_t *p, *end;
};

static bool varint(struct message *m, uint64_t *x) {
    *x = 0;
    for (unsigned shift = 0; shift < 64 && m->p < m->end; shift += 7) {
        uint8_t byte = *m->p++;
        *x |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

/* The next field: a number in *x, or bytes in *part. False: the end, or no protocol buffer. */
static bool field(struct message *m, uint64_t *tag, uint64_t *x, struct message *part) {
    uint64_t bytes = 0;
    *part = (struct message){0};
    if (!varint(m, tag))
        return false;
    switch (*tag & 7) {
    case 0:
        return varint(m, x);
    case 1:
        bytes = 8;
        break;
    case 2:
        if (!varint(m, &bytes))
            return false;
        break;
    case 5:
        bytes = 4;
        break;
    default:
        return false;
    }
    if (bytes > (uint64_t)(m->end - m->p))
        return false;
    *part = (struct message){m->p, m->p + bytes};
    m->p += bytes;
    return true;
}

enum { REJECTED = 1 << 3, ERROR_MESSAGE = 2 << 3 | 2, PARTIAL_SUCCESS = 1 << 3 | 2 };

uint64_t sm_otlp_rejected(const void *answer, size_t bytes, struct sm_buffer *why) {
    if (bytes == 0)
        return 0;
    struct message m = {answer, (const uint8_t *)answer + bytes}, partial, part;
    uint64_t tag, inner, x, rejected = 0;
    while (m.p < m.end && field(&m, &tag, &x, &partial)) {
        while (tag == PARTIAL_SUCCESS && partial.p < partial.end &&
               field(&partial, &inner, &x, &part)) {
            if (inner == REJECTED)
                rejected = x;
            else if (inner == ERROR_MESSAGE)
                sm_text_safe(why, (const char *)part.p,
                             part.end - part.p < 300 ? (size_t)(part.end - part.p) : 300);
        }
    }
    return m.p == m.end ? rejected : 0;
}
