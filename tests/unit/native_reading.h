/* What the tests of the native reader share: reading a trace into records, and comparing these with
   what the builder made. */
#ifndef SM_TESTS_NATIVE_READING_H
#define SM_TESTS_NATIVE_READING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "format/packet.h"
#include "merge/cursor.h"
#include "trace_builder.h"

struct record {
    uint32_t stream, obj_stream;
    uint64_t ticks, obj_seq, size, n_samples, stack;
    uint8_t kind, heap, origin, flags;
};

struct reading {
    struct record *records;
    size_t n;
    struct sm_loss *losses; /* details point into `texts` */
    size_t n_losses;
    uint64_t lost_events; /* CUT, CORRUPT */
    uint64_t orphans;
};

static __attribute__((unused)) char directory[] = "/tmp/test_native.XXXXXX";
static __attribute__((unused)) char path[512], tail_path[520];

static __attribute__((unused)) uint64_t hash_stack(const struct sm_trace *t,
                                                   const struct sm_event *e) {
    uint64_t h = e->n_frames;
    for (uint32_t i = 0; i < e->n_frames; i++)
        h = (h ^ sm_trace_location_code(t, e->frames[i])) * 0x100000001B3ull;
    return h;
}

static __attribute__((unused)) void read_trace(struct sm_trace *t, unsigned flags,
                                               struct reading *r) {
    struct sm_cursor *c;
    struct sm_error err;
    struct sm_event e;
    size_t capacity = 0;
    memset(r, 0, sizeof *r);
    assert_int_equal(sm_cursor_new(&c, t, flags, &err), SM_OK);
    while (sm_cursor_next(c, &e) == SM_OK) {
        if (r->n == capacity) {
            capacity = capacity == 0 ? 256 : capacity * 2;
            r->records = realloc(r->records, capacity * sizeof *r->records);
            assert_non_null(r->records);
        }
        memset(&r->records[r->n], 0, sizeof *r->records);
        r->orphans += (e.flags & SM_EVENT_ORPHAN) != 0;
        r->records[r->n++] = (struct record){.stream = e.stream,
                                             .obj_stream = e.obj_stream,
                                             .ticks = e.ticks,
                                             .obj_seq = e.obj_seq,
                                             .size = e.size,
                                             .n_samples = e.n_samples,
                                             .stack = hash_stack(t, &e),
                                             .kind = e.kind,
                                             .heap = e.heap,
                                             .origin = e.origin,
                                             .flags = e.flags & (uint8_t)~SM_EVENT_ORPHAN};
    }
    assert_int_equal(sm_cursor_next(c, &e), SM_END); /* and again */
    sm_cursor_free(c);
    const struct sm_loss *list;
    r->n_losses = sm_trace_losses(t, &list);
    r->losses = malloc((r->n_losses + 1) * sizeof *r->losses);
    for (size_t i = 0; i < r->n_losses; i++) {
        r->losses[i] = list[i];
        assert_true(strlen(list[i].detail) > 10);
        if (list[i].kind == SM_LOSS_CUT || list[i].kind == SM_LOSS_CORRUPT)
            r->lost_events += list[i].events;
    }
}

static __attribute__((unused)) const unsigned all =
    SM_CURSOR_STACKS | SM_CURSOR_EXTENSIONS | SM_CURSOR_UNMERGED;

static __attribute__((unused)) bool read_memory(const uint8_t *data, size_t bytes,
                                                struct reading *r) {
    struct sm_trace *t;
    struct sm_error err = {""};
    memset(r, 0, sizeof *r);
    /* A copy of the exact size, so that a sanitizer sees every byte read beyond. */
    uint8_t *copy = malloc(bytes == 0 ? 1 : bytes);
    memcpy(copy, data, bytes);
    bool ok = sm_trace_open_memory(&t, copy, bytes, NULL, &err) == SM_OK;
    if (ok) {
        read_trace(t, all, r);
        sm_trace_free(t);
    } else {
        assert_true(strlen(err.text) > 10);
    }
    free(copy);
    return ok;
}

static __attribute__((unused)) void release(struct reading *r) {
    free(r->records);
    free(r->losses);
}

static __attribute__((unused)) bool has_loss(const struct reading *r, enum sm_loss_kind kind) {
    for (size_t i = 0; i < r->n_losses; i++)
        if (r->losses[i].kind == kind)
            return true;
    return false;
}

/* The events of the builder for which keep() holds, in the reader's order (by stream, then as made), must be
   exactly `got`; `full` is the reading of the sound trace. */
static __attribute__((unused)) void
check_events(const struct tb *b, const struct reading *full, const struct reading *got,
             bool (*keep)(const struct tb *, const struct tb_event *, const void *),
             const void *arg, const char *what, size_t at) {
    size_t in_full = 0, in_got = 0;
    for (uint32_t s = 0; s < b->n_streams; s++)
        for (size_t i = 0; i < b->events_made; i++) {
            if (b->events[i].stream != s)
                continue;
            if (keep(b, &b->events[i], arg)) {
                if (in_got >= got->n || memcmp(&got->records[in_got], &full->records[in_full],
                                               sizeof *got->records) != 0)
                    fail_msg("%s at %zu: event %zu of stream %u (packet %u)", what, at, i, s,
                             b->events[i].packet_seq);
                in_got++;
            }
            in_full++;
        }
    assert_int_equal(in_full, full->n);
    if (in_got != got->n)
        fail_msg("%s at %zu: %zu events read, %zu expected", what, at, got->n, in_got);
}

static __attribute__((unused)) void small_trace(struct tb *b, bool compress) {
    tb_init(b, 3);
    b->compress = compress;
    b->target_bytes = 300;
    tb_mixed(b, 3, 400, 11);
}

static __attribute__((unused)) bool keep_all(const struct tb *b, const struct tb_event *e,
                                             const void *arg) {
    return true;
}

static __attribute__((unused)) bool make_directory(void) {
    if (mkdtemp(directory) == NULL)
        return false;
    snprintf(path, sizeof path, "%s/trace.stm", directory);
    snprintf(tail_path, sizeof tail_path, "%s%s", path, SM_TAIL_SUFFIX);
    return true;
}

#endif
