/* Builds the payload of SYMS packets (docs/format.md, section 6), and TLV lists. Hook-safe. */
#ifndef SM_ENCODE_SYMS_ENCODER_H
#define SM_ENCODE_SYMS_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/wire.h"

/* One source location. Strings are borrowed, not terminated; at most SM_MAX_NAME_BYTES are kept. */
struct sm_source_location {
    const char *file;
    size_t file_bytes;
    const char *function;
    size_t function_bytes;
    uint32_t line;
    uint32_t end_line;
    uint32_t start_char;
    uint32_t end_char;
    uint8_t flags; /* enum sm_syms_flag */
};

/* Remembers recent strings of the packet, so that most names are written once. */
struct sm_syms_encoder {
    uint8_t *buf;
    size_t capacity;
    size_t used;
    uint64_t previous_code;
    uint32_t n_records;
    uint32_t n_strings;
    /* Strings written in this packet: where (offset of the bytes), how long, which number. A
       fixed table without eviction; a string that finds no place is written again. */
    struct sm_syms_string {
        uint32_t offset;
        uint32_t bytes;
        uint32_t number; /* 0 = free */
        uint32_t hash;
    } strings[1024];
};

void sm_syms_encoder_begin(struct sm_syms_encoder *e, uint8_t *buf, size_t capacity);

/* Appends the record of `code` with its locations, outermost first. Returns false, with nothing
   changed, when the buffer cannot hold it: close the packet and call again. A record too large for an
   empty buffer has its names cut until it fits. */
bool sm_syms_encode(struct sm_syms_encoder *e, uint64_t code,
                    const struct sm_source_location *locations, uint32_t n_locations);

#endif
