/* Names of locations into the payload of one SYMS packet.

   A record is measured before it is written, so that a failure changes nothing. Strings already
   written in the packet are found through a small hash table that refers to the bytes in the buffer itself.
   Measuring takes a string that occurs twice as new twice: an overestimate, which only closes a
   packet a little early. */
#include "encode/syms_encoder.h"

#include "base/bytes.h"

#define N_STRINGS (sizeof((struct sm_syms_encoder *)0)->strings / sizeof(struct sm_syms_string))
#define PROBES 8

/* A location without its strings: line, end_line, start_char, end_char, flags, two string numbers. */
#define LOCATION_MAX_BYTES (6 * 5 + 5 + 1)
#define RECORD_MAX_BYTES (2 * SM_LEB_MAX_BYTES)

void sm_syms_encoder_begin(struct sm_syms_encoder *e, uint8_t *buf, size_t capacity) {
    e->buf = buf;
    e->capacity = capacity;
    e->used = 0;
    e->previous_code = 0;
    e->n_records = 0;
    e->n_strings = 0;
    memset(e->strings, 0, sizeof e->strings);
}

static uint32_t string_hash(const char *s, size_t bytes) {
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ (uint8_t)s[i]) * 16777619u;
    return h;
}

/* The place of a string: the one that holds it, else a free one, else NULL. */
static struct sm_syms_string *string_place(struct sm_syms_encoder *e, const char *s, size_t bytes,
                                           uint32_t hash) {
    for (uint32_t i = 0; i < PROBES; i++) {
        struct sm_syms_string *place = &e->strings[(hash + i) % N_STRINGS];
        if (place->number == 0)
            return place;
        if (place->hash == hash && place->bytes == bytes &&
            memcmp(e->buf + place->offset, s, bytes) == 0)
            return place;
    }
    return NULL;
}

static size_t string_cost(struct sm_syms_encoder *e, const char *s, size_t bytes) {
    struct sm_syms_string *place = string_place(e, s, bytes, string_hash(s, bytes));
    return place != NULL && place->number != 0 ? 0 : bytes + 3;
}

static uint8_t *put_string(struct sm_syms_encoder *e, uint8_t *p, const char *s, size_t bytes) {
    uint32_t hash = string_hash(s, bytes);
    struct sm_syms_string *place = string_place(e, s, bytes, hash);
    if (place != NULL && place->number != 0)
        return sm_put_leb(p, place->number);
    *p++ = 0;
    p = sm_put_leb(p, bytes);
    if (bytes > 0)
        memcpy(p, s, bytes);
    e->n_strings++;
    if (place != NULL) {
        place->offset = (uint32_t)(p - e->buf);
        place->bytes = (uint32_t)bytes;
        place->hash = hash;
        place->number = e->n_strings;
    }
    return p + bytes;
}

static inline size_t clip(size_t bytes, size_t limit) {
    return bytes < limit ? bytes : limit;
}

static size_t record_cost(struct sm_syms_encoder *e, const struct sm_source_location *locations,
                          uint32_t n, size_t name_limit) {
    size_t cost = RECORD_MAX_BYTES + (size_t)n * LOCATION_MAX_BYTES;
    for (uint32_t i = 0; i < n; i++) {
        cost += string_cost(e, locations[i].file, clip(locations[i].file_bytes, name_limit));
        cost +=
            string_cost(e, locations[i].function, clip(locations[i].function_bytes, name_limit));
    }
    return cost;
}

bool sm_syms_encode(struct sm_syms_encoder *e, uint64_t code,
                    const struct sm_source_location *locations, uint32_t n_locations) {
    size_t room = e->capacity - e->used;
    size_t name_limit = SM_MAX_NAME_BYTES;
    while (record_cost(e, locations, n_locations, name_limit) > room) {
        if (e->used > 0)
            return false;
        /* Alone in the buffer and still too large: shorter names, then fewer outer locations. */
        if (name_limit > 16) {
            name_limit /= 2;
        } else {
            if (n_locations == 0)
                return false;
            locations += n_locations - n_locations / 2;
            n_locations /= 2;
        }
    }

    uint8_t *p = e->buf + e->used;
    p = sm_put_zz(p, (int64_t)(code - e->previous_code));
    p = sm_put_leb(p, n_locations);
    for (uint32_t i = 0; i < n_locations; i++) {
        const struct sm_source_location *l = &locations[i];
        bool cut = l->file_bytes > name_limit || l->function_bytes > name_limit;
        p = put_string(e, p, l->file, clip(l->file_bytes, name_limit));
        p = put_string(e, p, l->function, clip(l->function_bytes, name_limit));
        p = sm_put_leb(p, l->line);
        p = sm_put_zz(p, (int64_t)l->end_line - (int64_t)l->line);
        p = sm_put_leb(p, l->start_char);
        p = sm_put_leb(p, l->end_char);
        *p++ = (uint8_t)(l->flags | (cut ? SM_SYMS_CLAMPED : 0));
    }
    e->previous_code = code;
    e->n_records++;
    e->used = (size_t)(p - e->buf);
    return true;
}
