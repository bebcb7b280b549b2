/* The reader of native traces on sound and damaged input. What a damaged trace must still give is worked
   out from what the builder knows: where each packet stands and where each event ends. */
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

static char directory[] = "/tmp/test_native.XXXXXX";
static char path[512], tail_path[520];

static uint64_t hash_stack(const struct sm_trace *t, const struct sm_event *e) {
    uint64_t h = e->n_frames;
    for (uint32_t i = 0; i < e->n_frames; i++)
        h = (h ^ sm_trace_location_code(t, e->frames[i])) * 0x100000001B3ull;
    return h;
}

static void read_trace(struct sm_trace *t, unsigned flags, struct reading *r) {
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

static const unsigned all = SM_CURSOR_STACKS | SM_CURSOR_EXTENSIONS | SM_CURSOR_UNMERGED;

static bool read_memory(const uint8_t *data, size_t bytes, struct reading *r) {
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

static void release(struct reading *r) {
    free(r->records);
    free(r->losses);
}

static bool has_loss(const struct reading *r, enum sm_loss_kind kind) {
    for (size_t i = 0; i < r->n_losses; i++)
        if (r->losses[i].kind == kind)
            return true;
    return false;
}

/* The events of the builder for which keep() holds, in the reader's order (by stream, then as made), must be
   exactly `got`; `full` is the reading of the sound trace. */
static void check_events(const struct tb *b, const struct reading *full, const struct reading *got,
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

static void small_trace(struct tb *b, bool compress) {
    tb_init(b, 3);
    b->compress = compress;
    b->target_bytes = 300;
    tb_mixed(b, 3, 400, 11);
}

/* ---- sound ---- */

static bool keep_all(const struct tb *b, const struct tb_event *e, const void *arg) {
    return true;
}

static void sound(void **state) {
    for (int compress = 0; compress < 2; compress++) {
        struct tb b;
        tb_init(&b, 4);
        b.compress = compress != 0;
        tb_mixed(&b, 4, 20000, 5);
        struct reading r;
        assert_true(read_memory(b.data, b.bytes, &r));
        assert_int_equal(r.n, b.events_made);
        assert_int_equal(r.n_losses, 0);
        check_events(&b, &r, &r, keep_all, NULL, "sound", 0);
        struct sm_trace *t;
        assert_int_equal(sm_trace_open_memory(&t, b.data, b.bytes, NULL, NULL), SM_OK);
        const struct sm_meta *m = sm_trace_meta(t);
        assert_string_equal(m->executable, "/usr/bin/prog");
        assert_int_equal(m->n_args, 2);
        assert_string_equal(m->args + 5, "a b");
        assert_int_equal(m->build_id_bytes, 4);
        assert_memory_equal(m->build_id, "\x01\x00\x02\x03", 4);
        assert_true(m->sample_rate == 1e-3);
        assert_true(m->start_real_ns == 1700000000000000000 + 1000 * 1000 - 5000000);
        assert_true(sm_trace_end(t)->present);
        assert_int_equal(sm_trace_end(t)->n_events, b.events_made);
        assert_int_equal(sm_trace_end(t)->n_gc, 2);
        assert_int_equal(sm_trace_n_streams(t), 4);
        /* stack-less reading gives the same but for the stacks, two passes give the same */
        struct reading plain, again;
        read_trace(t, SM_CURSOR_EXTENSIONS | SM_CURSOR_UNMERGED, &plain);
        read_trace(t, all, &again);
        assert_int_equal(plain.n, r.n);
        assert_int_equal(again.n, r.n);
        assert_memory_equal(again.records, r.records, r.n * sizeof *r.records);
        for (size_t i = 0; i < r.n; i++) {
            assert_true(plain.records[i].ticks == r.records[i].ticks);
            assert_true(plain.records[i].size == r.records[i].size);
            assert_true(plain.records[i].obj_seq == r.records[i].obj_seq);
        }
        sm_trace_free(t);
        release(&plain);
        release(&again);
        release(&r);
        tb_release(&b);
    }
}

/* What the stacks are, not only that they stay the same. */
static void stacks(void **state) {
    struct tb b;
    tb_init(&b, 1);
    tb_meta(&b);
    uint64_t codes[3000];
    uint32_t random = 9;
    uint64_t sums[300];
    uint32_t depths[300];
    for (uint32_t i = 0; i < 300; i++) {
        uint32_t n = i % 10 == 0 ? 3000 : tb_random(&random) % 80;
        uint64_t h = n;
        for (uint32_t k = 0; k < n; k++) {
            if (k > 20 || tb_random(&random) % 40 == 0)
                codes[k] = tb_random(&random) % (i % 7 == 0 ? 20000 : 30) * 8 + 8;
            if (tb_random(&random) % 1000 == 0)
                codes[k] = UINT64_MAX - k; /* as converted traces may have */
            if (codes[k] == 0)
                codes[k] = 16;
            h = (h ^ codes[k]) * 0x100000001B3ull;
        }
        sums[i] = h;
        depths[i] = n;
        tb_alloc(&b, 0, 2000 + i, 3, codes, n);
    }
    tb_end(&b, 9999);
    struct sm_trace *t;
    struct sm_cursor *c;
    struct sm_event e;
    assert_int_equal(sm_trace_open_memory(&t, b.data, b.bytes, NULL, NULL), SM_OK);
    assert_int_equal(sm_cursor_new(&c, t, SM_CURSOR_STACKS, NULL), SM_OK);
    uint32_t *last = calloc(4000, sizeof *last);
    for (uint32_t i = 0; i < 300; i++) {
        assert_int_equal(sm_cursor_next(c, &e), SM_OK);
        assert_int_equal(e.n_frames, depths[i]);
        assert_true(hash_stack(t, &e) == sums[i]);
        assert_true(e.common_prefix <= e.n_frames);
        assert_memory_equal(last, e.frames, e.common_prefix * sizeof *last);
        memcpy(last, e.frames, e.n_frames * sizeof *last);
    }
    assert_int_equal(sm_cursor_next(c, &e), SM_END);
    free(last);
    sm_cursor_free(c);
    sm_trace_free(t);
    tb_release(&b);
}

/* ---- damage ---- */

static bool keep_before(const struct tb *b, const struct tb_event *e, const void *arg) {
    size_t cut = *(const size_t *)arg;
    const struct tb_packet *p = tb_find(b, SM_PACKET_EVENTS, e->stream, e->packet_seq);
    if (p->header.codec != SM_CODEC_NONE)
        return p->offset + p->bytes <= cut;
    return p->offset + SM_PACKET_HEADER_BYTES + e->raw_end <= cut;
}

/* A32: cut at every byte, everything before the cut is read. */
static void truncation(void **state) {
    for (int compress = 0; compress < 2; compress++) {
        struct tb b;
        struct reading full, r;
        small_trace(&b, compress != 0);
        assert_true(read_memory(b.data, b.bytes, &full));
        for (size_t cut = 0; cut < b.bytes; cut++) {
            bool ok = read_memory(b.data, cut, &r);
            assert_true(ok == (cut >= SM_PACKET_HEADER_BYTES));
            if (ok) {
                check_events(&b, &full, &r, keep_before, &cut, "cut", cut);
                assert_true(has_loss(&r, SM_LOSS_EXTENT));
                size_t packet = 0;
                while (packet < b.n_packets &&
                       b.packets[packet].offset + b.packets[packet].bytes <= cut)
                    packet++;
                const struct tb_packet *p = &b.packets[packet];
                if (p->offset != cut)
                    assert_true(has_loss(&r, SM_LOSS_CUT));
                if (p->header.kind == SM_PACKET_EVENTS &&
                    cut >= p->offset + SM_PACKET_HEADER_BYTES) {
                    size_t there = 0; /* of the cut packet's events */
                    for (size_t i = 0; i < b.events_made; i++)
                        there += b.events[i].stream == p->header.stream &&
                                 b.events[i].packet_seq == p->header.packet_seq &&
                                 keep_before(&b, &b.events[i], &cut);
                    assert_int_equal(r.lost_events, p->header.n_events - there);
                }
            }
            release(&r);
        }
        release(&full);
        tb_release(&b);
    }
}

struct hit {
    size_t from, to; /* bytes of the sound trace that are touched */
};

static bool keep_unhit(const struct tb *b, const struct tb_event *e, const void *arg) {
    const struct hit *h = arg;
    const struct tb_packet *p = tb_find(b, SM_PACKET_EVENTS, e->stream, e->packet_seq);
    return h->to <= p->offset || h->from >= p->offset + p->bytes;
}

static void bit_flips(void **state) {
    struct tb b;
    struct reading full, r;
    small_trace(&b, false);
    assert_true(read_memory(b.data, b.bytes, &full));
    for (size_t at = 0; at < b.bytes; at++) {
        struct hit h = {at, at + 1};
        uint8_t bit = (uint8_t)(1u << (at * 5 % 8));
        b.data[at] ^= bit;
        assert_true(read_memory(b.data, b.bytes, &r));
        check_events(&b, &full, &r, keep_unhit, &h, "bit flip", at);
        if (r.n_losses == 0)
            fail_msg("bit flip at %zu went unseen", at);
        b.data[at] ^= bit;
        release(&r);
    }
    release(&full);
    tb_release(&b);
}

static void regions(void **state) {
    struct tb b;
    struct reading full, r;
    uint32_t random = 77;
    tb_init(&b, 3);
    b.target_bytes = 500;
    tb_mixed(&b, 3, 2000, 3);
    assert_true(read_memory(b.data, b.bytes, &full));
    uint8_t *copy = malloc(b.bytes * 2);
    for (int round = 0; round < 600; round++) {
        size_t from = SM_PACKET_HEADER_BYTES + tb_random(&random) % (b.bytes - 200);
        size_t length = 1 + tb_random(&random) % (round % 3 == 0 ? 4000 : 300);
        if (from + length > b.bytes)
            length = b.bytes - from - 1; /* cuts at the end have their own test */
        struct hit h = {from, from + length};
        size_t bytes = b.bytes;
        memcpy(copy, b.data, b.bytes);
        const char *what = "zeroed";
        switch (round % 4) {
        case 0:
            memset(copy + from, 0, length);
            break;
        case 1:
            what = "removed";
            memmove(copy + from, copy + from + length, b.bytes - from - length);
            bytes -= length;
            break;
        case 2:
            what = "inserted";
            for (size_t i = 0; i < length; i++)
                copy[from + i] = (uint8_t)tb_random(&random);
            memcpy(copy + from + length, b.data + from, b.bytes - from);
            bytes += length;
            h.to = from; /* touches the packet around it only, and none at a boundary */
            for (size_t i = 0; i < b.n_packets; i++)
                if (b.packets[i].offset < from && from < b.packets[i].offset + b.packets[i].bytes)
                    h.to = from + 1;
            break;
        default:
            what = "overwritten";
            for (size_t i = 0; i < length; i++)
                copy[from + i] = (uint8_t)tb_random(&random);
            break;
        }
        assert_true(read_memory(copy, bytes, &r));
        if (h.to > h.from || round % 4 == 2)
            check_events(&b, &full, &r, keep_unhit, &h, what, from);
        if (memcmp(copy, b.data, b.bytes) != 0)
            assert_true(r.n_losses > 0);
        release(&r);
    }
    free(copy);
    release(&full);
    tb_release(&b);
}

static void garbage_in_front(void **state) {
    struct tb b;
    struct reading full, r;
    small_trace(&b, false);
    assert_true(read_memory(b.data, b.bytes, &full));
    uint8_t *copy = malloc(b.bytes + 1000);
    memset(copy, 'x', 1000);
    memcpy(copy + 1000, b.data, b.bytes);
    assert_true(read_memory(copy, b.bytes + 1000, &r));
    check_events(&b, &full, &r, keep_all, NULL, "garbage in front", 0);
    assert_int_equal(r.n_losses, 1);
    assert_int_equal(r.losses[0].kind, SM_LOSS_GARBAGE);
    assert_int_equal(r.losses[0].bytes, 1000);
    free(copy);
    release(&r);
    release(&full);
    tb_release(&b);
}

/* ---- packets of others, copies, several traces ---- */

static size_t copy_packet(uint8_t *to, const struct tb *b, const struct tb_packet *p,
                          uint64_t session, uint32_t pid) {
    struct sm_packet_header h = p->header;
    h.session = session;
    h.pid = pid;
    sm_packet_header_put(to, &h);
    memcpy(to + SM_PACKET_HEADER_BYTES, b->data + p->offset + SM_PACKET_HEADER_BYTES,
           p->bytes - SM_PACKET_HEADER_BYTES);
    return p->bytes;
}

static void foreign_and_copies(void **state) {
    struct tb b;
    struct reading full, r;
    small_trace(&b, false);
    assert_true(read_memory(b.data, b.bytes, &full));
    uint8_t *data = malloc(b.bytes * 3);
    for (int kind = 0; kind < 3; kind++) {
        size_t bytes = 0;
        uint64_t events = 0;
        for (size_t i = 0; i < b.n_packets; i++) {
            const struct tb_packet *p = &b.packets[i];
            bytes += copy_packet(data + bytes, &b, p, b.session, b.pid);
            if (p->header.kind != SM_PACKET_EVENTS || i % 2 == 0)
                continue;
            events += p->header.n_events;
            bytes += copy_packet(data + bytes, &b, p, b.session + (kind == 0), b.pid + (kind == 1));
        }
        assert_true(read_memory(data, bytes, &r));
        check_events(&b, &full, &r, keep_all, NULL, "packets of others", (size_t)kind);
        assert_true(has_loss(&r, kind == 2 ? SM_LOSS_GARBAGE : SM_LOSS_FOREIGN));
        if (kind < 2)
            assert_int_equal(r.losses[0].events, events);
        release(&r);
    }
    free(data);
    release(&full);
    tb_release(&b);
}

static void concatenated(void **state) {
    struct tb a, b;
    struct reading full_a, full_b, r;
    struct sm_error err;
    struct sm_trace *t;
    small_trace(&a, false);
    tb_init(&b, 2);
    b.session = 99;
    b.pid = 5;
    tb_mixed(&b, 2, 300, 4);
    assert_true(read_memory(a.data, a.bytes, &full_a));
    assert_true(read_memory(b.data, b.bytes, &full_b));
    uint8_t *data = malloc(a.bytes + b.bytes);
    memcpy(data, a.data, a.bytes);
    memcpy(data + a.bytes, b.data, b.bytes);
    for (uint32_t part = 0; part < 3; part++) {
        struct sm_trace_options options = {.part = part};
        enum sm_status status = sm_trace_open_memory(&t, data, a.bytes + b.bytes, &options, &err);
        assert_int_equal(status, part < 2 ? SM_OK : SM_FAILED);
        if (part == 2) {
            assert_non_null(strstr(err.text, "2 traces"));
            break;
        }
        read_trace(t, all, &r);
        check_events(part == 0 ? &a : &b, part == 0 ? &full_a : &full_b, &r, keep_all, NULL, "part",
                     part);
        assert_int_equal(r.n_losses, 1);
        assert_int_equal(r.losses[0].kind, SM_LOSS_CONCATENATED);
        assert_int_equal(r.losses[0].events, part == 0 ? b.events_made : a.events_made);
        release(&r);
        sm_trace_free(t);
    }
    free(data);
    release(&full_a);
    release(&full_b);
    tb_release(&a);
    tb_release(&b);
}

/* ---- what is not a trace, or hardly ---- */

static void save(const char *to, const void *data, size_t bytes) {
    FILE *f = fopen(to, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    fclose(f);
}

static void check_refused(const char *what, const char *word) {
    struct sm_trace *t;
    struct sm_error err = {""};
    assert_int_equal(sm_trace_open(&t, what, NULL, &err), SM_FAILED);
    if (strstr(err.text, word) == NULL || (what[0] == '/' && strstr(err.text, what) == NULL))
        fail_msg("%s: \"%s\" does not say \"%s\"", what, err.text, word);
}

static void not_traces(void **state) {
    uint8_t magic[200] = SM_PACKET_MAGIC;
    save(path, "", 0);
    check_refused(path, "empty");
    save(path, "let x = 1\nlet y = 2\n", 20);
    check_refused(path, "text");
    save(path, "\x1f\x8b\x08\x00\x00", 5);
    check_refused(path, "gzip");
    save(path, "\x28\xb5\x2f\xfd....", 8);
    check_refused(path, "zstd");
    save(path, SM_TAIL_MAGIC "....", 12);
    check_refused(path, "side file");
    save(path, magic, sizeof magic);
    check_refused(path, "begins like a trace");
    check_refused(directory, "directory");
    check_refused("/nonexistent/file", "No such file");
    check_refused("/dev/zero", "not a trace"); /* endless */
    unlink(path);
}

static void without_samples(void **state) {
    struct tb b;
    struct reading r;
    tb_init(&b, 1);
    tb_meta(&b);
    tb_end(&b, 2000);
    assert_true(read_memory(b.data, b.bytes, &r));
    assert_int_equal(r.n, 0);
    assert_int_equal(r.n_losses, 0);
    release(&r);
    assert_true(read_memory(b.data, b.packets[0].bytes, &r)); /* META alone */
    assert_int_equal(r.n, 0);
    assert_true(has_loss(&r, SM_LOSS_EXTENT));
    release(&r);
    tb_release(&b);
}

/* ---- ways in ---- */

static void check_open(struct tb *b, const struct reading *full, const char *what) {
    struct sm_trace *t;
    struct sm_error err = {""};
    struct reading r;
    if (sm_trace_open(&t, what, NULL, &err) != SM_OK)
        fail_msg("%s", err.text);
    read_trace(t, all, &r);
    check_events(b, full, &r, keep_all, NULL, what, 0);
    release(&r);
    sm_trace_free(t);
}

static void feed(int fd, const struct tb *b) {
    for (size_t at = 0; at < b->bytes;) {
        size_t n = b->bytes - at < 777 ? b->bytes - at : 777;
        ssize_t done = write(fd, b->data + at, n);
        if (done <= 0)
            _exit(1);
        at += (size_t)done;
    }
    _exit(0);
}

static void ways_in(void **state) {
    struct tb b;
    struct reading full;
    small_trace(&b, false);
    assert_true(read_memory(b.data, b.bytes, &full));
    tb_save(&b, path);
    check_open(&b, &full, path);
    int saved = dup(STDIN_FILENO);
    for (int kind = 0; kind < 3; kind++) {
        int ends[2] = {-1, -1};
        pid_t child = -1;
        if (kind == 0)
            assert_int_equal(pipe(ends), 0);
        else if (kind == 1)
            assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        if (kind < 2) {
            child = fork();
            if (child == 0)
                feed(ends[1], &b);
            close(ends[1]);
            dup2(ends[0], STDIN_FILENO);
            close(ends[0]);
        } else {
            assert_non_null(freopen(path, "rb", stdin));
        }
        check_open(&b, &full, "-");
        int status = 0;
        if (child > 0)
            waitpid(child, &status, 0);
        assert_int_equal(status, 0);
    }
    dup2(saved, STDIN_FILENO);
    close(saved);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    pid_t child = fork();
    if (child == 0) {
        FILE *f = fopen(path, "wb");
        feed(fileno(f), &b);
    }
    check_open(&b, &full, path);
    waitpid(child, NULL, 0);
    unlink(path);
    release(&full);
    tb_release(&b);
}

/* Cut by another process while it is mapped: no SIGBUS, what is gone is reported. */
static void cut_while_open(void **state) {
    struct tb b;
    struct reading full, r;
    struct sm_trace *t;
    tb_init(&b, 2);
    tb_mixed(&b, 2, 60000, 8);
    assert_true(b.bytes > 200000);
    assert_true(read_memory(b.data, b.bytes, &full));
    tb_save(&b, path);
    assert_int_equal(sm_trace_open(&t, path, NULL, NULL), SM_OK);
    assert_int_equal(truncate(path, 100000), 0);
    read_trace(t, all, &r);
    assert_true(r.n < full.n);
    assert_true(has_loss(&r, SM_LOSS_CORRUPT));
    assert_int_equal(r.n + r.lost_events, full.n);
    sm_trace_free(t);
    unlink(path);
    release(&r);
    release(&full);
    tb_release(&b);
}

/* ---- side file ---- */

static void side_file(void **state) {
    for (int variant = 0; variant < 4; variant++) {
        struct tb b;
        struct reading full, r;
        struct sm_trace *t;
        uint64_t stack[2] = {0x1000, 0x2000};
        tb_init(&b, 3);
        tb_meta(&b);
        for (uint32_t i = 0; i < 500; i++) {
            tb_alloc(&b, i % 3, 1100 + i, 1 + i % 30, stack, 1 + i % 2);
            if (i % 5 == 4)
                tb_ref(&b, i % 3, 1100 + i, true, (i + 1) % 3, i / 6);
            if (i % 100 == 99)
                tb_flush(&b, i % 3);
        }
        tb_name(&b, 0x1000, "a.ml", "f", 1);
        tb_save_tail(&b, tail_path);
        if (variant == 1) { /* two streams' packets reached the trace too */
            tb_flush(&b, 0);
            tb_flush(&b, 1);
        }
        size_t bytes = b.bytes;
        if (variant == 2) { /* the program died while it appended one of them */
            tb_flush(&b, 0);
            bytes = b.bytes - 40;
        }
        struct tb cut = b;
        cut.bytes = bytes;
        tb_save(&cut, path);
        if (variant == 3) { /* of another recording */
            FILE *f = fopen(tail_path, "r+b");
            assert_non_null(f);
            fseek(f, SM_TAIL_AT_SESSION, SEEK_SET);
            fputc(1, f);
            fclose(f);
        }
        assert_int_equal(sm_trace_open(&t, path, NULL, NULL), SM_OK);
        const char *used = NULL;
        assert_true(sm_trace_used_tail(t, &used) == (variant != 3));
        read_trace(t, all, &r);
        if (variant == 3) {
            assert_true(r.n < b.events_made);
        } else {
            assert_string_equal(used, tail_path);
            assert_int_equal(r.n, b.events_made);
            assert_false(has_loss(&r, SM_LOSS_CUT));
            assert_true(has_loss(&r, SM_LOSS_EXTENT));
            assert_true(has_loss(&r, SM_LOSS_DISCARDED));
            assert_int_equal(r.orphans, 0);
            const struct sm_location *list;
            bool named = false;
            for (uint32_t i = 0; i < sm_trace_n_locations(t); i++)
                named |= sm_trace_location_code(t, i) == 0x1000 &&
                         sm_trace_location(t, i, &list) == 1 && strcmp(list->function, "f") == 0;
            assert_true(named);
            /* against the trace as it would have been closed */
            tb_flush_all(&b);
            assert_true(read_memory(b.data, b.bytes, &full));
            check_events(&b, &full, &r, keep_all, NULL, "side file", (size_t)variant);
            release(&full);
        }
        sm_trace_free(t);
        release(&r);
        struct sm_trace_options options = {.ignore_tail = true};
        assert_int_equal(sm_trace_open(&t, path, &options, NULL), SM_OK);
        read_trace(t, all, &r);
        assert_true(r.n < b.events_made);
        sm_trace_free(t);
        release(&r);
        unlink(path);
        unlink(tail_path);
        tb_release(&b);
    }
}

/* Packets whose header is right and whose payload lies. */
static void lying_payloads(void **state) {
    static const struct {
        const char *bytes;
        size_t n;
        uint32_t readable;
        enum sm_loss_kind kind;
    } cases[] = {
        {"\x01\x00\x00\x00\x63\x00", 6, 1, SM_LOSS_UNSUPPORTED},     /* unknown op */
        {"\x01\x00\x00\x00\xcc\x00\x00", 7, 1, SM_LOSS_UNSUPPORTED}, /* resize: reserved */
        {"\x01\x00\x05\x00", 4, 0, SM_LOSS_CORRUPT},                 /* pops of an empty stack */
        {"\x01\x00\x00\x02\x00\x04", 6, 0, SM_LOSS_CORRUPT},         /* index 1, not numbered */
        {"\x01\x00\x00\x01\xe0", 5, 0, SM_LOSS_CORRUPT},             /* no successor */
        {"\x01\x00\x00\x02\xf3\x00", 6, 0, SM_LOSS_UNSUPPORTED},     /* tag 3 */
        {"\x01\x00\x00\x02\xf8\x00", 6, 0, SM_LOSS_UNSUPPORTED},     /* reserved code */
        {"\x01\x00\x00\x02\xf5\x10", 6, 0, SM_LOSS_CORRUPT},         /* predicts nothing */
        {"\x01\x00\x00\x7f\xf4\x10", 6, 0, SM_LOSS_CORRUPT},         /* codes beyond the end */
        {"\x01\x00\x00\x01\xf4\x10", 6, 0, SM_LOSS_CORRUPT},         /* codes cut short */
        {"\xe1\x00\x7fmark", 7, 0, SM_LOSS_CORRUPT},                 /* extension too long */
        {"\xc9\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00", 12, 0, SM_LOSS_CORRUPT}, /* dt */
        {"\x40\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01\x00\x00\x00", 16, 0,
         SM_LOSS_CORRUPT},
        {"\xca\x00\xff\xff\xff\x7f\x00", 7, 0, SM_LOSS_CORRUPT}, /* stream beyond the limit */
        {"\xfa\x00\x02zz\x01\x00\x00\x00", 9, 2, SM_LOSS_KINDS}, /* op 250 is skipped: sound */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tb b;
        struct reading r;
        uint64_t stack[1] = {0x77};
        tb_init(&b, 2);
        tb_meta(&b);
        struct sm_packet_header h = {.kind = SM_PACKET_EVENTS,
                                     .stream = 1,
                                     .ts_begin_ticks = 5000,
                                     .n_events = cases[i].kind == SM_LOSS_KINDS ? 2 : 9,
                                     .n_alloc = cases[i].kind == SM_LOSS_KINDS ? 1 : 2};
        tb_packet(&b, &h, cases[i].bytes, cases[i].n);
        tb_alloc(&b, 0, 6000, 3, stack, 1);
        tb_end(&b, 7000);
        assert_true(read_memory(b.data, b.bytes, &r));
        if (r.n != cases[i].readable + 1u)
            fail_msg("case %zu: %zu events", i, r.n);
        if (cases[i].kind == SM_LOSS_KINDS) {
            assert_int_equal(r.n_losses, 0);
        } else {
            assert_int_equal(r.n_losses, 1);
            if (r.losses[0].kind != cases[i].kind)
                fail_msg("case %zu: %s", i, sm_loss_kind_name(r.losses[0].kind));
            assert_int_equal(r.losses[0].events, 9 - cases[i].readable);
            assert_int_equal(r.losses[0].stream, 1);
        }
        release(&r);
        tb_release(&b);
    }
}

/* Three bytes expand to 256 frames: the cap stops it. */
static void expansion(void **state) {
    struct tb b;
    struct reading r;
    size_t room = 8u << 20, n = 0;
    uint8_t *payload = malloc(room);
    uint32_t n_events = 0;
    memcpy(payload, "\x01\x00\x00\x06\xf4\x10\xe0\xe0\xe0\xe0", 10);
    /* a location that follows itself: index 1 after index 1 */
    n = 0;
    payload[n++] = 1, payload[n++] = 0, payload[n++] = 0, payload[n++] = 4;
    payload[n++] = 0xF4, payload[n++] = 0x10, payload[n++] = 0x00, payload[n++] = 0x04;
    n_events++;
    while (n + 600 < room) { /* 128 codes of 256 frames each, then all but two frames popped */
        payload[n++] = 1, payload[n++] = 0;
        n = (size_t)(sm_put_leb(payload + n, n_events == 1 ? 0 : 127 * 256) - payload);
        n = (size_t)(sm_put_leb(payload + n, 127 * 2) - payload);
        for (int i = 0; i < 127; i++)
            payload[n++] = 0xE2, payload[n++] = 255;
        n_events++;
    }
    tb_init(&b, 1);
    tb_meta(&b);
    struct sm_packet_header h = {.kind = SM_PACKET_EVENTS,
                                 .ts_begin_ticks = 5000,
                                 .n_events = n_events,
                                 .n_alloc = n_events};
    tb_packet(&b, &h, payload, n);
    tb_end(&b, 7000);
    assert_true(read_memory(b.data, b.bytes, &r));
    assert_int_equal(r.n, 1 + SM_MAX_PACKET_FRAMES / (127 * 256));
    assert_true(has_loss(&r, SM_LOSS_CORRUPT));
    assert_int_equal(r.n + r.lost_events, n_events);
    free(payload);
    release(&r);
    tb_release(&b);
}

int main(void) {
    if (mkdtemp(directory) == NULL)
        return 99;
    snprintf(path, sizeof path, "%s/trace.stm", directory);
    snprintf(tail_path, sizeof tail_path, "%s%s", path, SM_TAIL_SUFFIX);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound),        cmocka_unit_test(stacks),
        cmocka_unit_test(truncation),   cmocka_unit_test(bit_flips),
        cmocka_unit_test(regions),      cmocka_unit_test(garbage_in_front),
        cmocka_unit_test(concatenated), cmocka_unit_test(foreign_and_copies),
        cmocka_unit_test(not_traces),   cmocka_unit_test(without_samples),
        cmocka_unit_test(ways_in),      cmocka_unit_test(cut_while_open),
        cmocka_unit_test(side_file),    cmocka_unit_test(lying_payloads),
        cmocka_unit_test(expansion),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(directory);
    return failed;
}
