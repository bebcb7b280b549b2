/* Wire constants of the trace format, version 1. The text that counts is docs/format.md;
   every name here stands there in a table. Hook-safe: constants and layouts only. */
#ifndef SM_FORMAT_WIRE_H
#define SM_FORMAT_WIRE_H

#include <stdint.h>

#define SM_FORMAT_VERSION 1

/* ---- packets (docs/format.md, section 3) ---- */

#define SM_PACKET_MAGIC "\x8bSTM1\r\x1a\n"
#define SM_PACKET_MAGIC_BYTES 8
#define SM_PACKET_HEADER_BYTES 96

enum sm_packet_kind {
    SM_PACKET_META = 0,
    SM_PACKET_EVENTS = 1,
    SM_PACKET_SYMS = 2,
    SM_PACKET_INDEX = 3,
    SM_PACKET_END = 4,
    SM_PACKET_HEARTBEAT = 5,
};

enum sm_packet_codec {
    SM_CODEC_NONE = 0,
    SM_CODEC_ZSTD = 1,
};

#define SM_PACKET_FLAG_RESET 1u

/* The header in host form; sm_packet_header_get/put (format/packet.h) convert. */
struct sm_packet_header {
    uint32_t payload_crc;
    uint32_t stored_bytes;
    uint32_t raw_bytes;
    uint8_t codec; /* enum sm_packet_codec */
    uint8_t kind;  /* enum sm_packet_kind; may be unknown */
    uint16_t flags;
    uint32_t stream;
    uint32_t packet_seq;
    uint32_t pid;
    uint64_t first_seq;
    uint64_t ts_begin_ticks;
    uint64_t ts_span_ticks;
    uint32_t n_events;
    uint32_t n_alloc;
    uint64_t discarded;
    uint32_t max_depth;
    uint32_t n_cut;
    uint64_t session;
};

/* Byte offsets of the header's fields. */
enum sm_packet_offset {
    SM_PACKET_AT_HEADER_CRC = 8,
    SM_PACKET_AT_PAYLOAD_CRC = 12,
    SM_PACKET_AT_STORED = 16,
    SM_PACKET_AT_RAW = 20,
    SM_PACKET_AT_CODEC = 24,
    SM_PACKET_AT_KIND = 25,
    SM_PACKET_AT_FLAGS = 26,
    SM_PACKET_AT_STREAM = 28,
    SM_PACKET_AT_SEQ = 32,
    SM_PACKET_AT_PID = 36,
    SM_PACKET_AT_FIRST_SEQ = 40,
    SM_PACKET_AT_TS_BEGIN = 48,
    SM_PACKET_AT_TS_SPAN = 56,
    SM_PACKET_AT_N_EVENTS = 64,
    SM_PACKET_AT_N_ALLOC = 68,
    SM_PACKET_AT_DISCARDED = 72,
    SM_PACKET_AT_MAX_DEPTH = 80,
    SM_PACKET_AT_N_CUT = 84,
    SM_PACKET_AT_SESSION = 88,
};

/* ---- META tags (section 4) ---- */

enum sm_meta_tag {
    SM_META_FORMAT_VERSION = 1,
    SM_META_TICK_NS = 2,
    SM_META_CLOCK = 3,
    SM_META_ANCHOR = 4,
    SM_META_SAMPLE_RATE = 5,
    SM_META_WORD_SIZE = 6,
    SM_META_EXECUTABLE = 7,
    SM_META_HOST = 8,
    SM_META_RUNTIME_PARAMS = 9,
    SM_META_PID = 10,
    SM_META_CONTEXT = 11,
    SM_META_ARGS = 12,
    SM_META_OCAML_VERSION = 13,
    SM_META_BUILD_ID = 14,
    SM_META_WRITER = 15,
    SM_META_ARCH = 16,
    SM_META_DEPTH_LIMIT = 17,
    SM_META_RATE_ORIGIN = 18,
    SM_META_INITIAL_DOMAIN = 19,
    SM_META_SEED = 20,
    SM_META_IMPORTED_FROM = 21,
    SM_META_MODULE = 22,
    SM_META_BOOT_ID = 23,
    SM_META_MODE = 24,
    SM_META_OCAML_KIND = 25,
    SM_META_PARENT_PID = 26,
    SM_META_NATIVE_INTERVAL = 27,
};

enum sm_clock { SM_CLOCK_REALTIME = 0, SM_CLOCK_MONOTONIC = 1 };
enum sm_rate_origin {
    SM_RATE_UNKNOWN = 0,
    SM_RATE_DEFAULT = 1,
    SM_RATE_ARGUMENT = 2,
    SM_RATE_ENVIRONMENT = 3,
    SM_RATE_COMMAND_LINE = 4,
};
enum sm_mode {
    SM_MODE_UNKNOWN = 0,
    SM_MODE_LINKED = 1,
    SM_MODE_INJECTED = 2,
    SM_MODE_ATTACHED = 3,
    SM_MODE_CONVERTED = 4,
};
enum sm_ocaml_kind { SM_OCAML_UNKNOWN = 0, SM_OCAML_NATIVE = 1, SM_OCAML_BYTECODE = 2 };

/* ---- EVENTS (section 5) ---- */

enum sm_op {
    SM_OP_SHORT_MIN = 1,
    SM_OP_SHORT_MAX = 16,
    SM_OP_ALLOC = 64,
    SM_OP_ALLOC_BYTES = 65,
    SM_OP_PROMOTE = 200,
    SM_OP_COLLECT = 201,
    SM_OP_PROMOTE_FOREIGN = 202,
    SM_OP_COLLECT_FOREIGN = 203,
    SM_OP_RESIZE_RESERVED = 204,
    SM_OP_EXTENSION_MIN = 224,
    SM_OP_OWNER = 224,
    SM_OP_MARK = 225,
    SM_OP_COUNTERS = 226,
    SM_OP_GC_PHASE = 227,
    SM_OP_CLOCK_SYNC = 228,
    SM_OP_MODULE = 229,
    SM_OP_DISCARD = 230,
};

/* `source` byte of ops 64 and 65: heap | origin << 3 */
enum sm_heap { SM_HEAP_MINOR = 0, SM_HEAP_MAJOR = 1, SM_HEAP_EXTERNAL = 2, SM_HEAP_NATIVE = 3 };
enum sm_origin {
    SM_ORIGIN_NORMAL = 0,
    SM_ORIGIN_MARSHAL = 1,
    SM_ORIGIN_CUSTOM = 2,
    SM_ORIGIN_MAPPED = 3,
    SM_ORIGIN_REPORTED = 4,
    SM_ORIGIN_OCAML_HEAP = 5,
    SM_ORIGIN_MINOR_HEAP = 6,
    SM_ORIGIN_OCAML_STACK = 7,
    SM_ORIGIN_RUNTIME = 8,
};
#define SM_SOURCE(heap, origin) ((uint8_t)((heap) | ((origin) << 3)))
#define SM_SOURCE_HEAP(source) ((source)&7u)
#define SM_SOURCE_ORIGIN(source) (((source) >> 3) & 15u)

/* Codes (section 5.3). */
#define SM_CODE_SHORT_LIMIT 0xE0u /* first bytes below: two-byte index */
#define SM_CODE_INDEX_LIMIT 14336u
#define SM_CODE_RANK 0xE0u
#define SM_CODE_LONG 0xF0u
#define SM_CODE_NEW 0xF4u
#define SM_CODE_SUCCESSORS 4
#define SM_LOCATION_CUT 0u /* location code of a cut */

enum sm_owner_tag {
    SM_OWNER_DOMAIN = 1,
    SM_OWNER_TID = 2,
    SM_OWNER_NAME = 3,
    SM_OWNER_KIND = 4,
    SM_OWNER_INCARNATION = 5,
};
enum sm_owner_kind { SM_OWNER_UNKNOWN = 0, SM_OWNER_OCAML = 1, SM_OWNER_NATIVE = 2 };

/* The third form of a GC_PHASE record: a pause that is over, with its length. */
#define SM_GC_PHASE_PAUSE 2
enum sm_gc_pause { SM_GC_PAUSE_MINOR = 1, SM_GC_PAUSE_MAJOR_SLICE = 2 };

enum sm_counter {
    SM_COUNTER_RSS = 1,
    SM_COUNTER_HEAP_WORDS = 2,
    SM_COUNTER_MINOR_COLLECTIONS = 3,
    SM_COUNTER_MAJOR_COLLECTIONS = 4,
    SM_COUNTER_COMPACTIONS = 5,
    SM_COUNTER_MINOR_WORDS = 6,
    SM_COUNTER_PROMOTED_WORDS = 7,
    SM_COUNTER_MAJOR_WORDS = 8,
    SM_COUNTER_MALLOC_USED = 9,
    SM_COUNTER_MALLOC_TOTAL = 10,
    SM_COUNTER_MALLOC_MAPPED = 11,
    SM_COUNTER_PAGE_FAULTS = 12,
    SM_COUNTER_THREADS = 13,
    SM_COUNTER_RSS_ANON = 14,
    SM_COUNTER_RSS_FILE = 15,
    SM_COUNTER_RSS_SHMEM = 16,
    SM_COUNTER_SWAP = 17,
    SM_COUNTER_PSS = 18,
    SM_COUNTER_MAJOR_FAULTS = 19,
    SM_COUNTER_HEAP_IN_MALLOC = 20,
    SM_COUNTER_GC_PAUSES = 21,
    SM_COUNTER_GC_PAUSE_NS = 22,
    SM_COUNTER_GC_LONGEST_PAUSE_NS = 23,
    SM_COUNTER_RECORDER = 24,
    SM_COUNTER_INTERVAL_NS = 25,
};

enum sm_module_tag {
    SM_MODULE_STATE = 1,
    SM_MODULE_START = 2,
    SM_MODULE_END = 3,
    SM_MODULE_FILE_OFFSET = 4,
    SM_MODULE_LOAD_GENERATION = 5,
    SM_MODULE_BUILD_ID = 6,
    SM_MODULE_PATH = 7,
};

enum sm_discard_reason {
    SM_DISCARD_DEVICE = 1,
    SM_DISCARD_MEMORY = 2,
    SM_DISCARD_REENTERED = 3,
    SM_DISCARD_STOPPING = 4,
    SM_DISCARD_STREAMS = 5,
    SM_DISCARD_REASONS = 6, /* one more than the largest */
};

/* ---- SYMS (section 6) ---- */

enum sm_syms_flag {
    SM_SYMS_NO_DEBUG = 1,
    SM_SYMS_CLAMPED = 2,
    SM_SYMS_NATIVE = 4,
    SM_SYMS_NO_COLUMNS = 8,
    SM_SYMS_OFFSET = 16,
};

/* ---- END (section 7) ---- */

enum sm_end_tag {
    SM_END_REASON = 1,
    SM_END_N_EVENTS = 2,
    SM_END_DISCARDED = 3,
    SM_END_FORKS = 4,
    SM_END_PEAK_STREAMS = 5,
    SM_END_OWNERS = 6,
    SM_END_RECOVERED = 7,
    SM_END_EXIT_STATUS = 8,
    SM_END_GC = 9,
    SM_END_LOST_EVENTS = 10,
    SM_END_LOST_BYTES = 11,
    SM_END_LOST_NAMES = 12,
};
enum sm_end_reason {
    SM_REASON_UNKNOWN = 0,
    SM_REASON_EXIT = 1,
    SM_REASON_STOPPED = 2,
    SM_REASON_OUTPUT_FAILED = 3,
    SM_REASON_CLOSED_AFTER_DEATH = 4,
    SM_REASON_CONVERTED = 5,
};
#define SM_END_TRAILER_BYTES 16
#define SM_END_TRAILER_MAGIC "STME"

/* ---- side file (section 8) ---- */

#define SM_TAIL_SUFFIX ".tail"
#define SM_TAIL_MAGIC "\x8bSTMTL1\n"
#define SM_TAIL_VERSION 1
#define SM_TAIL_HEADER_BYTES 4096
#define SM_TAIL_SLOT_BYTES (1u << 20)
#define SM_TAIL_SYMS_OFFSET 4096u
#define SM_TAIL_SYMS_BYTES (SM_TAIL_EVENTS_OFFSET - SM_TAIL_SYMS_OFFSET)
#define SM_TAIL_EVENTS_OFFSET 65536u
#define SM_TAIL_EVENTS_BYTES (SM_TAIL_SLOT_BYTES - SM_TAIL_EVENTS_OFFSET)
enum sm_tail_offset {
    SM_TAIL_AT_VERSION = 8,
    SM_TAIL_AT_N_SLOTS = 12,
    SM_TAIL_AT_SESSION = 16,
    SM_TAIL_AT_PID = 24,
    SM_TAIL_AT_SLOT_BYTES = 28,
    SM_TAIL_AT_SYMS_OFFSET = 32,
    SM_TAIL_AT_EVENTS_OFFSET = 36,
    SM_TAIL_AT_DISCARDED = 40,
    SM_TAIL_AT_FORKS = 48,
    SM_TAIL_AT_STATE = 52,
    SM_TAIL_AT_END_TICKS = 56,
};
enum sm_tail_slot_offset {
    SM_TAIL_SLOT_EVENTS_HEADER = 0,
    SM_TAIL_SLOT_EVENTS_COMMITTED = 96,
    SM_TAIL_SLOT_DISCARDED = 104,
    SM_TAIL_SLOT_SYMS_HEADER = 128,
    SM_TAIL_SLOT_SYMS_COMMITTED = 224,
};

/* ---- limits (section 10) ---- */

#define SM_MAX_RAW_BYTES (64u << 20)
#define SM_TARGET_RAW_BYTES (128u << 10)
#define SM_MAX_DEPTH 32768u
#define SM_MAX_PACKET_LOCATIONS 65535u
#define SM_MAX_PACKET_FRAMES (1u << 26)
#define SM_MAX_STREAMS (1u << 18)
#define SM_MAX_SEQ (1ull << 36)
#define SM_MAX_NAME_BYTES 65535u
#define SM_MAX_EXTENSION_BYTES 65536u

#endif
