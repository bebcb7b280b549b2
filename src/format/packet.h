/* Packet headers to and from bytes (docs/format.md, section 3). Hook-safe. */
#ifndef SM_FORMAT_PACKET_H
#define SM_FORMAT_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#include "format/wire.h"

/* Writes the 96 bytes at `to`, magic and header_crc included. */
void sm_packet_header_put(uint8_t *to, const struct sm_packet_header *h);

/* Reads 96 bytes. Returns false, with *h untouched, unless magic and header_crc hold. Limits
   (raw_bytes, codec) are the caller's to check. */
bool sm_packet_header_get(const uint8_t *from, struct sm_packet_header *h);

/* The same without a look at header_crc: for the side file, whose headers are not sealed yet. */
bool sm_packet_header_get_unsealed(const uint8_t *from, struct sm_packet_header *h);

#endif
