/* CRC32C (Castagnoli). Hook-safe. Uses the processor's instruction where it has one. */
#ifndef SM_BASE_CRC32C_H
#define SM_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* CRC of `bytes` bytes at `data`, continued from `crc` (0 to begin). */
uint32_t sm_crc32c(uint32_t crc, const void *data, size_t bytes);

#endif
