/* Protocol Buffers' wire format, written by hand: fields of a message that grows in a buffer of memory. Zero values
   are left out, as proto3 does. Hosted, internal to src/export; the format:
   https://protobuf.dev/programming-guides/encoding */
#ifndef SM_EXPORT_PROTO_H
#define SM_EXPORT_PROTO_H

#include "util/buffer.h"
#include "util/map.h"

void sm_proto_varint(struct sm_buffer *b, uint64_t x);
void sm_proto_u64(struct sm_buffer *b, unsigned field, uint64_t x);
void sm_proto_fixed64(struct sm_buffer *b, unsigned field, uint64_t x);
void sm_proto_double(struct sm_buffer *b, unsigned field, double x);
/* Written even when empty: entries of repeated fields. */
void sm_proto_bytes(struct sm_buffer *b, unsigned field, const void *data, size_t bytes);
void sm_proto_text(struct sm_buffer *b, unsigned field, const char *text);
/* A message in a message; `inner` is emptied for the next one. */
void sm_proto_message(struct sm_buffer *b, unsigned field, struct sm_buffer *inner);

/* A table of strings, "" first; texts become valid UTF-8. */
struct sm_proto_strings {
    struct sm_names names;
    struct sm_buffer room;
};
void sm_proto_strings_init(struct sm_proto_strings *s);
void sm_proto_strings_release(struct sm_proto_strings *s);
uint32_t sm_proto_string(struct sm_proto_strings *s, const char *text);
/* All of them as a repeated field. */
void sm_proto_strings_write(const struct sm_proto_strings *s, struct sm_buffer *b, unsigned field);

#endif
