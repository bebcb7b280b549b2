/* The memtrace trace format, versions 1 to 3: constants, packet headers and primitives, shared by
   the reader (decode/memtrace_*.c) and the writer (convert/memtrace_*.c). Hosted.

   A file is a row of packets, each with a 66-byte header (68 in version 3, which adds the domain):

     0 magic u32 | 4 size u32, bits | 8 begin u64 | 16 end u64, us since the Unix epoch | 24 u32 0
     28 version u16 | 30 pid u64 | v3: 38 domain u16 | then, from `tail` = 38 or 40:
     tail+0 verify_ix u16 | +2 verify_pred u16 | +4 verify_val u64 | +12 alloc_begin u64 | +20
     alloc_end u64 (exclusive)

   and event records: u32 (low 25 bits time, high 7 bits event id), then the event's own fields.

   Byte order. The format is little-endian. Its original writer, run on a big-endian host, stores
   those fields which it fills in afterwards (size, times, allocation ids, the code count of a long
   allocation) in the host's order and all others little-endian: SM_MT_PATCHED_BIG. A file whose
   every field is big-endian, magic included, is SM_MT_BIG. All three are read. */
#ifndef SM_DECODE_MEMTRACE_WIRE_H
#define SM_DECODE_MEMTRACE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define SM_MT_MAGIC 0xC1FC1FC1u
#define SM_MT_MAX_HEADER_BYTES 68u
#define SM_MT_PACKET_BYTES 32768u /* the original's buffer, on both sides */
#define SM_MT_TIME_BITS 25
#define SM_MT_TIME_MASK 0x1FFFFFFu
#define SM_MT_CACHE_SLOTS 16384u
#define SM_MT_NO_VERIFY 0xFFFFu
#define SM_MT_VERIFY_FIRST 4242u
#define SM_MT_VERIFY_STEP 5413u
#define SM_MT_ID_CHUNK 10000u

enum sm_mt_event_id {
    SM_MT_INFO = 0,
    SM_MT_LOCATION = 1,
    SM_MT_ALLOC = 2,
    SM_MT_PROMOTE = 3,
    SM_MT_COLLECT = 4,
    SM_MT_SHORT_BASE = 100, /* + words, 1..16 */
    SM_MT_SHORT_MAX_WORDS = 16,
};

/* Location word: limits of its bit fields, and of the lists that file and function codes index. */
#define SM_MT_MAX_LINE 0xFFFFFu
#define SM_MT_MAX_START_CHAR 0xFFu
#define SM_MT_MAX_END_CHAR 0x3FFu
#define SM_MT_MTF_NEW 31u /* "a string follows"; also the length of a list */

enum sm_mt_order { SM_MT_LITTLE = 0, SM_MT_PATCHED_BIG = 1, SM_MT_BIG = 2 };

struct sm_mt_header {
    uint32_t packet_bytes; /* header included */
    uint32_t header_bytes;
    uint32_t version;
    uint32_t domain; /* 0 before version 3 */
    uint64_t pid;
    int64_t ts_begin_us, ts_end_us;
    uint32_t verify_ix, verify_pred;
    uint64_t verify_val;
    uint64_t alloc_begin, alloc_end;
};

static inline uint16_t sm_mt_get_u16(const uint8_t *p, bool big) {
    return big ? (uint16_t)(p[0] << 8 | p[1]) : sm_get_u16le(p);
}
static inline uint32_t sm_mt_get_u32(const uint8_t *p, bool big) {
    uint32_t x = sm_get_u32le(p);
    return big ? __builtin_bswap32(x) : x;
}
static inline uint64_t sm_mt_get_u64(const uint8_t *p, bool big) {
    uint64_t x = sm_get_u64le(p);
    return big ? __builtin_bswap64(x) : x;
}

/* The original keeps codes and ids as 63-bit integers: bit 62 is the sign. */
static inline uint64_t sm_mt_extend63(uint64_t x) {
    return (uint64_t)((int64_t)(x << 1) >> 1);
}

/* Reads a variable-length integer; false when it does not end before `end`. */
static inline bool sm_mt_get_vint(const uint8_t **p, const uint8_t *end, bool big, int64_t *x) {
    const uint8_t *q = *p;
    if (q >= end)
        return false;
    uint8_t b = *q++;
    if (b <= 252) {
        *x = b;
        *p = q;
        return true;
    }
    size_t n = b == 253 ? 2 : b == 254 ? 4 : 8;
    if ((size_t)(end - q) < n)
        return false;
    if (b == 253)
        *x = sm_mt_get_u16(q, big);
    else if (b == 254)
        *x = (int32_t)sm_mt_get_u32(q, big);
    else
        *x = (int64_t)sm_mt_extend63(sm_mt_get_u64(q, big));
    *p = q + n;
    return true;
}

/* The time of an event record: the first time at or after the packet's begin with these low bits. */
static inline int64_t sm_mt_event_time(uint32_t word, int64_t ts_begin_us) {
    uint32_t low = word & SM_MT_TIME_MASK, begin_low = (uint32_t)ts_begin_us & SM_MT_TIME_MASK;
    return ts_begin_us + (int64_t)((low - begin_low) & SM_MT_TIME_MASK);
}

/* Reads the header at `p`, `bytes` bytes being there. False when it is short, or one of the things
   that cannot be otherwise does not hold: magic, version 1..3, a size of whole bytes that holds
   the header. Times and ids are not judged. */
bool sm_mt_header_get(const uint8_t *p, size_t bytes, enum sm_mt_order order,
                      struct sm_mt_header *h);

/* Byte order of the file that begins at `p`, from its first header; false when it is none. */
bool sm_mt_detect(const uint8_t *p, size_t bytes, enum sm_mt_order *order, struct sm_mt_header *h);

#endif
