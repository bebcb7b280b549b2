/* See proto.h. */
#include "export/proto.h"

#include <string.h>

#include "export/model.h"

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2 };

void sm_proto_varint(struct sm_buffer *b, uint64_t x) {
    for (; x >= 0x80; x >>= 7)
        sm_buffer_char(b, (char)(x | 0x80));
    sm_buffer_char(b, (char)x);
}

static void tag(struct sm_buffer *b, unsigned field, unsigned type) {
    sm_proto_varint(b, (uint64_t)field << 3 | type);
}

void sm_proto_u64(struct sm_buffer *b, unsigned field, uint64_t x) {
    if (x == 0)
        return;
    tag(b, field, VARINT);
    sm_proto_varint(b, x);
}

void sm_proto_fixed64(struct sm_buffer *b, unsigned field, uint64_t x) {
    tag(b, field, FIXED64);
    for (int i = 0; i < 8; i++)
        sm_buffer_char(b, (char)(x >> 8 * i));
}

void sm_proto_double(struct sm_buffer *b, unsigned field, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    sm_proto_fixed64(b, field, bits);
}

void sm_proto_bytes(struct sm_buffer *b, unsigned field, const void *data, size_t bytes) {
    tag(b, field, LENGTH);
    sm_proto_varint(b, bytes);
    sm_buffer_bytes(b, data, bytes);
}

void sm_proto_text(struct sm_buffer *b, unsigned field, const char *text) {
    struct sm_buffer clean;
    sm_buffer_init(&clean, -1);
    sm_ex_utf8(&clean, text);
    sm_proto_bytes(b, field, clean.data, clean.used);
    sm_buffer_release(&clean);
}

void sm_proto_message(struct sm_buffer *b, unsigned field, struct sm_buffer *inner) {
    sm_proto_bytes(b, field, inner->data, inner->used);
    inner->used = 0;
}

void sm_proto_strings_init(struct sm_proto_strings *s) {
    memset(s, 0, sizeof *s);
    sm_buffer_init(&s->room, -1);
    sm_names_number(&s->names, "", 0);
}

void sm_proto_strings_release(struct sm_proto_strings *s) {
    sm_names_release(&s->names);
    sm_buffer_release(&s->room);
}

uint32_t sm_proto_string(struct sm_proto_strings *s, const char *text) {
    s->room.used = 0;
    sm_ex_utf8(&s->room, text);
    return sm_names_number(&s->names, sm_buffer_string(&s->room), s->room.used);
}

void sm_proto_strings_write(const struct sm_proto_strings *s, struct sm_buffer *b, unsigned field) {
    for (size_t i = 0; i < s->names.n; i++)
        sm_proto_bytes(b, field, s->names.list[i].text, s->names.list[i].bytes);
}
