/* What the reader and its backends share: struct sm_trace and the helpers that fill it. Internal to
   src/decode and src/merge.

   A backend's `scan` gets a trace whose `input` is readable and whose `meta` holds defaults; it adds
   streams (ascending), fills meta and end, and may report losses. While cursors run, owners,
   locations and losses still grow. Everything lives in `arena` or is freed by the backend's
   `release`; the helpers below never fail for want of memory in a way that a backend must handle:
   they fall back to a catch-all and count. */
#ifndef SM_DECODE_TRACE_INTERNAL_H
#define SM_DECODE_TRACE_INTERNAL_H

#include "decode/backend.h"
#include "decode/input.h"
#include "decode/trace.h"
#include "util/arena.h"
#include "util/map.h"

/* Locations beyond this number are taken for damage: they share one id. */
#define SM_MAX_LOCATIONS (1u << 24)
#define SM_MAX_OWNERS (1u << 22)
#define SM_MAX_TRACE_MODULES (1u << 16)
/* Names, locations and texts that a reader keeps. */
#define SM_MAX_TRACE_ARENA_BYTES ((size_t)2 << 30)
/* Entries of one kind that are listed one by one; further ones are merged into the last. */
#define SM_LOSSES_PER_KIND 32

/* code -> dense id, and id -> source locations (decode/locations.c). */
struct sm_locations {
    struct sm_location_slot {
        uint64_t code;
        uint32_t id_plus_1;  /* 0 = free */
    } * slots;               /* open addressing, at most half full */
    uint32_t slots_capacity; /* a power of two, or 0 */
    uint32_t n;
    uint32_t capacity;
    uint64_t *codes; /* by id */
    struct sm_location_entry {
        const struct sm_location *list;
        uint32_t n;
        bool known;      /* announced, if only as "nothing is known" (n = 0) */
    } * entries;         /* by id */
    uint64_t overflowed; /* codes that found no place */
};

/* (stream, domain, tid, ...) -> index (decode/owners.c). */
struct sm_owners {
    struct sm_owner *list;
    uint32_t n, capacity;
    uint32_t *slots; /* index + 1; open addressing, at most half full */
    uint32_t slots_capacity;
};

/* decode/modules.c */
struct sm_modules {
    struct sm_trace_module *list;
    uint32_t n, capacity;
    struct sm_map known; /* hash of the record */
    uint64_t n_lost;
};

struct sm_losses {
    struct sm_loss *list;
    size_t n, capacity;
    uint32_t n_of_kind[SM_LOSS_KINDS];
};

struct sm_trace {
    struct sm_input input; /* the whole file: input.data, input.bytes */
    uint64_t first_offset; /* of the first packet; what stands before it is already reported */
    struct sm_trace_options options;
    const struct sm_backend *backend;
    void *backend_data; /* the backend's own */

    struct sm_meta meta; /* strings in `arena` */
    struct sm_end end;
    uint32_t *stream_ids; /* ascending */
    uint32_t n_streams, streams_capacity;
    const char *tail_path;       /* NULL = no side file was used */
    struct sm_native_tail *tail; /* read before the trace itself; the native backend takes it */

    struct sm_arena arena;
    struct sm_locations locations;
    struct sm_owners owners;
    struct sm_modules modules;
    struct sm_losses losses;
    bool orphans_reported;   /* by the first cursor that reached the end (merge/) */
    uint64_t done_bytes;     /* read by the cursors of this pass */
    uint64_t dropped_before; /* offset up to which pages of the file were given back */
    uint64_t progress_bytes; /* at the last call of options.progress */
};

/* ---- streams ---- */

/* Appends a stream; ids must come in ascending order. False when out of memory. */
bool sm_trace_add_stream(struct sm_trace *t, uint32_t id);

/* Index of a stream id, UINT32_MAX when there is none. Logarithmic. */
uint32_t sm_trace_stream_index(const struct sm_trace *t, uint32_t id);

/* ---- owners ---- */

/* Index of the owner, added when new; name is copied (NULL = ""). */
uint32_t sm_trace_add_owner(struct sm_trace *t, const struct sm_owner *owner);

/* ---- modules ---- */

/* Takes note of a MODULE record p..end, unless it is known. */
void sm_trace_add_module(struct sm_trace *t, uint64_t ticks, const uint8_t *p, const uint8_t *end);

/* ---- losses ---- */

/* Reports one loss. A backend sees to it that a place is reported once, though several cursors may pass
   it. stream: UINT32_MAX = none. The text is one sentence: what, why, what to do. */
void sm_trace_add_loss(struct sm_trace *t, enum sm_loss_kind kind, uint32_t stream, uint64_t offset,
                       uint64_t bytes, uint64_t events, bool events_known, const char *format, ...)
    __attribute__((format(printf, 8, 9)));

/* References without allocation, counted by the first pass that came to the end; later ones are ignored. */
void sm_trace_report_orphans(struct sm_trace *t, uint64_t n, bool exact);

/* ---- texts ---- */

/* Copies into the arena, NUL-terminated; "" when out of memory, never NULL. The second gives equal
   pointers for equal texts: names of locations must come from it. */
const char *sm_trace_text(struct sm_trace *t, const void *text, size_t bytes);
const char *sm_trace_intern(struct sm_trace *t, const void *text, size_t bytes);

/* ---- locations ---- */

/* The dense id of a code, new ones get the next. */
uint32_t sm_locations_intern(struct sm_trace *t, uint64_t code);

/* The id of a code in a table of slots, UINT32_MAX = none. Reads nothing else. */
uint32_t sm_locations_find(const struct sm_location_slot *slots, uint32_t capacity, uint64_t code);

/* Announces the locations of an id, outermost first; file and function must be interned
   (sm_trace_intern); the list is copied. The first announcement stays. */
enum sm_announced {
    SM_ANNOUNCED_NEW = 0,
    SM_ANNOUNCED_SAME = 1,      /* had these contents already */
    SM_ANNOUNCED_DIFFERENT = 2, /* had others, which stay: the caller reports SM_LOSS_NAMES */
    SM_ANNOUNCED_NO_ROOM = 3,   /* more names than a reader keeps: the caller reports */
};
enum sm_announced sm_locations_set(struct sm_trace *t, uint32_t id, const struct sm_location *list,
                                   uint32_t n);

/* ---- progress ---- */

/* A cursor has come to `offset`: pages well before it are given back, so that huge files do not fill the
   memory. Other cursors may still be there; they fault the pages in again. */
void sm_trace_passed(struct sm_trace *t, uint64_t offset);

/* Tells options.progress, at most every 64 MiB. */
void sm_trace_progress(struct sm_trace *t, uint64_t done_bytes);

/* The side file of the trace at `path` (native_tail.c); NULL = none. */
struct sm_native_tail *sm_native_tail_load(const char *path);
void sm_native_tail_free(struct sm_native_tail *tail);

/* For owners.c, locations.c, modules.c. */
void sm_locations_release(struct sm_locations *l);
void sm_owners_release(struct sm_owners *o);
void sm_modules_release(struct sm_modules *m);

#endif
