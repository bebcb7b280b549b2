/* Opening a trace of whatever format, and what can be asked of it. The work is the backends'. */
#include "decode/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "decode/memtrace_wire.h"
#include "decode/trace_internal.h"
#include "format/packet.h"

#define MEMTRACE_MAGIC "\xC1\x1F\xFC\xC1"
#define MEMTRACE_MAGIC_BIG "\xC1\xFC\x1F\xC1"

/* Pages are given back in steps of this size, and this far behind the reader. */
#define PASSED_STEP_BYTES (64u << 20)
#define PROGRESS_STEP_BYTES (64u << 20)

static bool native_at(const uint8_t *p, uint64_t bytes) {
    struct sm_packet_header h;
    return bytes >= SM_PACKET_HEADER_BYTES && sm_packet_header_get(p, &h);
}

/* A header of the memtrace format, in whatever byte order. */
static bool memtrace_at(const uint8_t *p, uint64_t bytes) {
    enum sm_mt_order order;
    struct sm_mt_header h;
    return sm_mt_detect(p, (size_t)bytes, &order, &h);
}

/* Does the file begin with a memtrace header that its end cuts? */
static bool memtrace_cut_at(const uint8_t *p, uint64_t bytes) {
    return bytes >= 4 && bytes < SM_MT_MAX_HEADER_BYTES &&
           (memcmp(p, MEMTRACE_MAGIC, 4) == 0 || memcmp(p, MEMTRACE_MAGIC_BIG, 4) == 0);
}

/* Offset of the first header for which `at` holds, UINT64_MAX when there is none before `bytes`. */
static uint64_t find_header(const uint8_t *data, uint64_t bytes, const char *magic,
                            size_t magic_bytes, bool (*at)(const uint8_t *, uint64_t)) {
    for (uint64_t from = 0; from + magic_bytes <= bytes;) {
        const uint8_t *hit = memmem(data + from, (size_t)(bytes - from), magic, magic_bytes);
        if (hit == NULL)
            break;
        uint64_t offset = (uint64_t)(hit - data);
        if (at(hit, bytes - offset))
            return offset;
        from = offset + 1;
    }
    return UINT64_MAX;
}

/* Says what a file without any packet seems to be. */
static void explain_not_a_trace(const struct sm_trace *t, const char *path, struct sm_error *err) {
    const uint8_t *p = t->input.data;
    uint64_t n = t->input.bytes;
    if (n == 0) {
        sm_error_set(err,
                     "%s: empty file, not a trace (was the program stopped before it began "
                     "to record?)",
                     path);
        return;
    }
    if (n >= 4 && memcmp(p, "\x28\xB5\x2F\xFD", 4) == 0) {
        sm_error_set(err, "%s: compressed by zstd; unpack it first: zstd -dc FILE | statmem ... -",
                     path);
        return;
    }
    if (n >= 2 && p[0] == 0x1F && p[1] == 0x8B) {
        sm_error_set(err, "%s: compressed by gzip; unpack it first: gzip -dc FILE | statmem ... -",
                     path);
        return;
    }
    if (n >= 8 && memcmp(p, SM_TAIL_MAGIC, 8) == 0) {
        sm_error_set(err,
                     "%s: the side file of a trace; open the trace itself (the name without "
                     "\"%s\"), its side file is found by itself",
                     path, SM_TAIL_SUFFIX);
        return;
    }
    if (n >= 8 && memcmp(p, SM_PACKET_MAGIC, n < 8 ? n : 8) == 0) {
        sm_error_set(err,
                     "%s: begins like a trace, but no packet header in its %llu bytes is whole",
                     path, (unsigned long long)n);
        return;
    }
    if (n >= 4 && memcmp(p, MEMTRACE_MAGIC, 4) == 0) {
        sm_error_set(err,
                     "%s: begins like a memtrace trace, but is cut or damaged within its first "
                     "header, or of an unknown version (%llu bytes)",
                     path, (unsigned long long)n);
        return;
    }
    bool text = true;
    for (uint64_t i = 0; i < n && i < 512 && text; i++)
        text = (p[i] >= 0x20 && p[i] != 0x7F) || (p[i] >= 8 && p[i] <= 13) || p[i] == 0x1B;
    sm_error_set(err,
                 "%s: not a trace: %s, and no packet of the statmem or memtrace format in "
                 "%llu bytes",
                 path, text ? "looks like text" : "unknown contents", (unsigned long long)n);
}

static bool detect(struct sm_trace *t, const char *path, struct sm_error *err) {
    const uint8_t *data = t->input.data;
    uint64_t bytes = t->input.bytes;
    uint64_t native, memtrace;
    if (bytes > 0 && native_at(data, bytes)) {
        native = 0;
        memtrace = UINT64_MAX;
    } else if (bytes > 0 && (memtrace_at(data, bytes) || memtrace_cut_at(data, bytes))) {
        native = UINT64_MAX;
        memtrace = 0;
    } else if (bytes == 0) {
        native = memtrace = UINT64_MAX;
    } else {
        native = find_header(data, bytes, SM_PACKET_MAGIC, SM_PACKET_MAGIC_BYTES, native_at);
        memtrace =
            find_header(data, native < bytes ? native : bytes, MEMTRACE_MAGIC, 4, memtrace_at);
        if (memtrace > bytes)
            memtrace = find_header(data, native < bytes ? native : bytes, MEMTRACE_MAGIC_BIG, 4,
                                   memtrace_at);
    }
    if (native == UINT64_MAX && memtrace == UINT64_MAX) {
        explain_not_a_trace(t, path, err);
        return false;
    }
    t->backend = memtrace < native ? &sm_backend_memtrace : &sm_backend_native;
    t->first_offset = memtrace < native ? memtrace : native;
    if (t->first_offset > 0)
        sm_trace_add_loss(t, SM_LOSS_GARBAGE, UINT32_MAX, 0, t->first_offset, 0, false,
                          "the file begins with %llu bytes that belong to no readable packet",
                          (unsigned long long)t->first_offset);
    return true;
}

static void set_defaults(struct sm_trace *t) {
    struct sm_meta *m = &t->meta;
    m->word_bits = 64;
    m->tick_ns = 1000;
    m->clock = SM_CLOCK_MONOTONIC;
    m->executable = m->host = m->runtime_params = m->context = m->args = "";
    m->ocaml_version = m->writer = m->arch = m->boot_id = "";
}

static enum sm_status open_input(struct sm_trace **out, struct sm_trace *t, const char *path,
                                 const struct sm_trace_options *options, struct sm_error *err) {
    if (options != NULL)
        t->options = *options;
    t->arena.limit_bytes = SM_MAX_TRACE_ARENA_BYTES;
    set_defaults(t);
    if (!detect(t, path, err)) {
        sm_trace_free(t);
        return SM_FAILED;
    }
    if (t->backend == NULL) {
        sm_error_set(err, "%s: no reader for this format in this build", path);
        sm_trace_free(t);
        return SM_FAILED;
    }
    if (t->backend->scan(t, err) != SM_OK) {
        sm_trace_free(t);
        return SM_FAILED;
    }
    *out = t;
    return SM_OK;
}

enum sm_status sm_trace_open(struct sm_trace **out, const char *path,
                             const struct sm_trace_options *options, struct sm_error *err) {
    struct sm_trace *t = calloc(1, sizeof *t);
    if (t == NULL) {
        sm_error_set(err, "%s: out of memory", path);
        return SM_FAILED;
    }
    if (strcmp(path, "-") != 0 && (options == NULL || !options->ignore_tail))
        t->tail = sm_native_tail_load(path);
    if (!sm_input_open(&t->input, path, err)) {
        sm_trace_free(t);
        return SM_FAILED;
    }
    return open_input(out, t, strcmp(path, "-") == 0 ? "standard input" : path, options, err);
}

enum sm_status sm_trace_open_memory(struct sm_trace **out, const uint8_t *data, size_t bytes,
                                    const struct sm_trace_options *options, struct sm_error *err) {
    struct sm_trace *t = calloc(1, sizeof *t);
    if (t == NULL) {
        sm_error_set(err, "out of memory");
        return SM_FAILED;
    }
    sm_input_memory(&t->input, data, bytes);
    return open_input(out, t, "memory", options, err);
}

void sm_trace_free(struct sm_trace *t) {
    if (t == NULL)
        return;
    if (t->backend != NULL && t->backend_data != NULL)
        t->backend->release(t);
    sm_native_tail_free(t->tail);
    sm_input_release(&t->input);
    sm_locations_release(&t->locations);
    sm_owners_release(&t->owners);
    sm_modules_release(&t->modules);
    sm_arena_release(&t->arena);
    free(t->losses.list);
    free(t->stream_ids);
    free(t);
}

const struct sm_meta *sm_trace_meta(const struct sm_trace *t) {
    return &t->meta;
}

const struct sm_end *sm_trace_end(const struct sm_trace *t) {
    return &t->end;
}

uint64_t sm_trace_bytes(const struct sm_trace *t) {
    return t->input.bytes;
}

bool sm_trace_used_tail(const struct sm_trace *t, const char **path) {
    if (path != NULL)
        *path = t->tail_path;
    return t->tail_path != NULL;
}

uint32_t sm_trace_n_streams(const struct sm_trace *t) {
    return t->n_streams;
}

uint32_t sm_trace_stream_id(const struct sm_trace *t, uint32_t index) {
    return index < t->n_streams ? t->stream_ids[index] : UINT32_MAX;
}

bool sm_trace_add_stream(struct sm_trace *t, uint32_t id) {
    if (t->n_streams == t->streams_capacity) {
        uint32_t capacity = t->streams_capacity == 0 ? 64 : t->streams_capacity * 2;
        uint32_t *ids = realloc(t->stream_ids, capacity * sizeof *ids);
        if (ids == NULL)
            return false;
        t->stream_ids = ids;
        t->streams_capacity = capacity;
    }
    t->stream_ids[t->n_streams++] = id;
    return true;
}

uint32_t sm_trace_stream_index(const struct sm_trace *t, uint32_t id) {
    if (id < t->n_streams && t->stream_ids[id] == id)
        return id; /* the usual numbering */
    uint32_t low = 0, high = t->n_streams;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (t->stream_ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->n_streams && t->stream_ids[low] == id ? low : UINT32_MAX;
}

int64_t sm_trace_time_ns(const struct sm_trace *t, uint64_t ticks) {
    return (int64_t)((ticks - t->meta.start_ticks) * t->meta.tick_ns);
}

const char *sm_trace_text(struct sm_trace *t, const void *text, size_t bytes) {
    const char *copy = sm_arena_text(&t->arena, text, bytes);
    return copy == NULL ? "" : copy;
}

const char *sm_trace_intern(struct sm_trace *t, const void *text, size_t bytes) {
    const char *copy = sm_arena_intern(&t->arena, text, bytes);
    return copy == NULL ? "" : copy;
}

void sm_trace_progress(struct sm_trace *t, uint64_t done_bytes) {
    if (t->options.progress == NULL || done_bytes < t->progress_bytes + PROGRESS_STEP_BYTES)
        return;
    t->progress_bytes = done_bytes;
    t->options.progress(t->options.progress_ctx,
                        done_bytes < t->input.bytes ? done_bytes : t->input.bytes, t->input.bytes);
}

void sm_trace_passed(struct sm_trace *t, uint64_t offset) {
    if (offset < t->dropped_before)
        t->dropped_before = offset; /* another pass */
    if (offset < t->dropped_before + 2 * (uint64_t)PASSED_STEP_BYTES)
        return;
    sm_input_done(&t->input, t->dropped_before, offset - PASSED_STEP_BYTES);
    t->dropped_before = offset - PASSED_STEP_BYTES;
}
