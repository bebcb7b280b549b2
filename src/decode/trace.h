/* Reading traces: native ones and memtrace v1, v2, v3, through one interface. Hosted.

   A trace is opened once, read-only, and can then be read by any number of cursors
   (merge/cursor.h), one after another (not concurrently: the location table grows while cursors run).

   Damage never ends a run. What cannot be read is skipped and remembered as losses
   (sm_trace_losses), which are complete when a cursor has reached the end. */
#ifndef SM_DECODE_TRACE_H
#define SM_DECODE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/wire.h"
#include "util/error.h"

struct sm_trace;

/* < 0 error, 0 ok, > 0 outcome */
enum sm_status { SM_OK = 0, SM_END = 1, SM_FAILED = -1 };

enum sm_trace_format {
    SM_TRACE_NATIVE = 0,
    SM_TRACE_MEMTRACE_1 = 1,
    SM_TRACE_MEMTRACE_2 = 2,
    SM_TRACE_MEMTRACE_3 = 3,
};

/* Header. Strings are owned by the trace, never NULL ("" when unknown), NUL-terminated, and may
   hold any bytes. */
struct sm_meta {
    enum sm_trace_format format;
    bool missing; /* no readable META: defaults stand here */
    double
        sample_rate; /* 0 = unknown, or, when native_interval is not 0, OCaml's memory was not recorded */
    uint64_t native_interval_bytes; /* 0 = native memory was not recorded */
    enum sm_rate_origin rate_origin;
    uint32_t word_bits;
    uint32_t tick_ns;
    int64_t start_real_ns; /* wall-clock time of the start, ns since the Unix epoch */
    uint64_t start_ticks;
    enum sm_clock clock;
    uint64_t anchor_clock_ns;
    uint64_t anchor_real_ns;
    uint64_t pid;
    uint64_t parent_pid; /* 0 = none */
    uint64_t session;
    uint64_t initial_domain;
    bool has_context;
    const char *executable;
    const char *host;
    const char *runtime_params;
    const char *context;
    const char *args; /* n_args strings, each ended by NUL */
    uint32_t n_args;
    const char *ocaml_version;
    const char *writer;
    const char *arch;
    const char *boot_id;
    const uint8_t *build_id;
    uint32_t build_id_bytes;
    uint32_t depth_limit;
    bool has_seed;
    uint64_t seed;
    uint32_t imported_from; /* 0 = recorded */
    enum sm_mode mode;
    enum sm_ocaml_kind ocaml_kind;
};

/* What the END packet tells; `present` false when the trace was not closed. */
struct sm_end {
    bool present;
    enum sm_end_reason reason;
    uint64_t end_ticks;
    uint64_t n_events, discarded, forks, peak_streams, owners, recovered;
    /* Lost to damage before the trace was closed or converted. */
    uint64_t lost_events, lost_bytes, lost_names;
    bool has_exit_status;
    uint32_t exit_status;
    uint32_t n_gc;
    struct {
        uint64_t counter;
        int64_t value;
    } gc[16];
};

/* Who wrote events: an OCaml domain's or native thread. */
struct sm_owner {
    uint32_t stream;
    enum sm_owner_kind kind;
    uint64_t domain;
    uint64_t tid; /* 0 = unknown */
    uint32_t incarnation;
    const char *name; /* "" = none */
};

struct sm_location {
    const char *file;
    const char *function;
    uint32_t line, end_line, start_char, end_char;
    uint8_t flags; /* enum sm_syms_flag */
    /* With the flag SM_SYMS_OFFSET: the place in machine code, not named yet; `file` is then the object's path, and
       `function` the name from the symbol tables, or "libm.so.6+0x1a2b0". NULL otherwise. */
    const struct sm_unnamed *unnamed;
};

struct sm_unnamed {
    const char *file, *function; /* as they stand in the trace */
    const char *build_id;        /* hexadecimal; "" = none */
    const char *path;            /* "" = the address lies in no object file */
    uint64_t offset;
};

enum sm_event_kind {
    SM_EVENT_ALLOC = 0,
    SM_EVENT_PROMOTE = 1,
    SM_EVENT_COLLECT = 2,
    SM_EVENT_EXTENSION = 3, /* `op`, `payload`: MARK, COUNTERS, GC_PHASE, ... */
};

enum sm_event_flag {
    SM_EVENT_SIZE_IN_BYTES = 1,
    SM_EVENT_STACK_CUT = 2,  /* the middle or the outer end is missing; marked in the stack */
    SM_EVENT_STACK_LOST = 4, /* memtrace cut the inner end: `frames` is not this event's stack
                                   but what the original reader returns (the previous one) */
    SM_EVENT_ORPHAN = 8,     /* refers to an allocation that is not in the trace */
};

/* Valid until the next call on the same cursor. */
struct sm_event {
    uint64_t ticks; /* absolute; see sm_event_time_ns */
    uint8_t kind;   /* enum sm_event_kind */
    uint8_t heap;   /* enum sm_heap; allocations */
    uint8_t origin; /* enum sm_origin; allocations */
    uint8_t flags;  /* enum sm_event_flag */
    uint32_t stream;
    uint32_t owner;      /* index for sm_trace_owner */
    uint32_t obj_stream; /* object: for an allocation the one made */
    uint64_t obj_seq;    /* memtrace with one domain: the object id of the file */
    uint64_t size;       /* words without header, or bytes (flag) */
    uint64_t n_samples;
    /* Stack of an allocation, outermost first: ids for sm_trace_location. The first
       `common_prefix` frames equal those of the stream's previous allocation (for memtrace the
       figure in the file, which may exceed n_frames when SM_EVENT_STACK_LOST). */
    const uint32_t *frames;
    uint32_t n_frames;
    uint32_t common_prefix;
    uint8_t op; /* extension: enum sm_op */
    const uint8_t *payload;
    uint32_t payload_bytes;
};

enum sm_loss_kind {
    SM_LOSS_CUT = 0,      /* the file ends inside a packet or header */
    SM_LOSS_GARBAGE,      /* bytes that belong to no packet */
    SM_LOSS_CORRUPT,      /* a packet whose checksum or contents do not hold */
    SM_LOSS_GAP,          /* packets of a stream are missing */
    SM_LOSS_FOREIGN,      /* packets of another process or session */
    SM_LOSS_DISCARDED,    /* the recorder could not keep events, and counted them */
    SM_LOSS_ORPHANS,      /* promotions or collections whose allocation is missing */
    SM_LOSS_NAMES,        /* locations without names, contradictory or damaged names */
    SM_LOSS_TIME,         /* times outside their packet's range or running backwards, clamped */
    SM_LOSS_CONCATENATED, /* a second trace follows in the same file */
    SM_LOSS_UNSUPPORTED,  /* unknown ops or packet kinds */
    SM_LOSS_EXTENT,       /* no clean end: the program died or still runs (not itself a loss of
                              events when the side file was read) */
    SM_LOSS_KINDS,
};
const char *sm_loss_kind_name(enum sm_loss_kind kind); /* "cut", "garbage", ... */

struct sm_loss {
    enum sm_loss_kind kind;
    bool events_known; /* `events` is exact; else a lower bound */
    uint32_t stream;   /* UINT32_MAX: none or several */
    uint64_t offset;   /* in the file */
    uint64_t bytes;
    uint64_t events;    /* lost events (names: codes) */
    uint64_t count;     /* occurrences merged into this entry */
    const char *detail; /* one sentence: what, why, what to do */
};

struct sm_trace_options {
    bool ignore_tail; /* do not look for the side file */
    uint32_t part;    /* concatenated traces: which one, from 0 */
    /* Progress, called at most every 64 MiB of input; NULL = none. */
    void (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
    void *progress_ctx;
};

/* What a cursor delivers (merge/cursor.h). */
enum sm_cursor_flag {
    SM_CURSOR_STACKS = 1,     /* decode stacks; else n_frames = 0, but SM_EVENT_STACK_CUT is told */
    SM_CURSOR_UNMERGED = 2,   /* stream after stream, by ascending id: fastest */
    SM_CURSOR_EXTENSIONS = 4, /* deliver SM_EVENT_EXTENSION events too */
    /* Without SM_CURSOR_STACKS: n_frames and common_prefix are told all the same; `frames` may be NULL. A native packet
       that holds impossible stacks is not noticed as such if their lengths add up. */
    SM_CURSOR_DEPTHS = 8,
};

/* Opens `path` ("-" = standard input; pipes and sockets are read to their end first).
   options may be NULL. Fails only when nothing can be read: missing file, directory, empty file, not a
   trace at all; err says what, where and what to do. */
enum sm_status sm_trace_open(struct sm_trace **out, const char *path,
                             const struct sm_trace_options *options, struct sm_error *err);

/* The same from memory, which must outlive the trace. */
enum sm_status sm_trace_open_memory(struct sm_trace **out, const uint8_t *data, size_t bytes,
                                    const struct sm_trace_options *options, struct sm_error *err);
void sm_trace_free(struct sm_trace *t); /* NULL allowed; cursors first */

const struct sm_meta *sm_trace_meta(const struct sm_trace *t);
const struct sm_end *sm_trace_end(const struct sm_trace *t);
uint64_t sm_trace_bytes(const struct sm_trace *t);

/* True when events were taken from the side file; *path is its name. */
bool sm_trace_used_tail(const struct sm_trace *t, const char **path);

/* Streams that occur, ascending. */
uint32_t sm_trace_n_streams(const struct sm_trace *t);
uint32_t sm_trace_stream_id(const struct sm_trace *t, uint32_t index);

uint32_t sm_trace_n_owners(const struct sm_trace *t); /* grows while reading */
const struct sm_owner *sm_trace_owner(const struct sm_trace *t, uint32_t index);

/* An object file that the program had mapped, or that was unmapped. */
struct sm_trace_module {
    bool mapped;              /* false: gone from now on */
    uint64_t ticks;           /* when; the trace's start for those of its header */
    uint64_t start, end;      /* addresses */
    uint64_t file_offset;     /* of `start` */
    uint64_t load_generation; /* tells apart what was loaded at one address after another */
    const uint8_t *build_id;  /* NULL = unknown */
    uint32_t build_id_bytes;
    const char *path; /* never NULL */
};
/* Those of the header are known from the open; others when a reader with SM_CURSOR_EXTENSIONS has passed them. The
   pointers stay valid until the number grows. */
uint32_t sm_trace_n_modules(const struct sm_trace *t);
const struct sm_trace_module *sm_trace_module(const struct sm_trace *t, uint32_t index);

/* Locations: ids are dense from 0 in order of first sight. */
uint32_t sm_trace_n_locations(const struct sm_trace *t);
uint64_t sm_trace_location_code(const struct sm_trace *t, uint32_t id);
/* Inlined list, outermost first, in *list; returns its length, 0 when nothing is known. Names may
   follow their use in the file, so ask after reading, or at any time after sm_trace_open for native
   traces (their SYMS are read at open). */
uint32_t sm_trace_location(const struct sm_trace *t, uint32_t id, const struct sm_location **list);

size_t sm_trace_losses(const struct sm_trace *t, const struct sm_loss **list);

/* Nanoseconds since the trace's start, of an event's ticks; may be negative in damaged traces. */
int64_t sm_trace_time_ns(const struct sm_trace *t, uint64_t ticks);

#endif
