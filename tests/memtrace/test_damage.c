/* A small memtrace file, cut at every byte, with every bit flipped, with parts zeroed, removed, doubled
   and filled with noise. Reading ends without a crash, gives everything that stands before the damage
   or in packets it did not touch, and says where something is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "convert/memtrace_writer.h"
#include "decode/backend.h"
#include "decode/memtrace_internal.h"

#define START 1700000000000000
#define MAX_EVENTS 4096

/* Sanitizers make opening a file slow; then fewer places are tried. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STRIDE 16
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STRIDE 16
#endif
#endif
#ifndef STRIDE
#define STRIDE 1
#endif

struct file {
    char *bytes;
    size_t n;
    uint32_t n_events; /* of a good reading */
    uint64_t events[MAX_EVENTS];
    struct {
        size_t offset, bytes;
        uint32_t n_events; /* promotions, collections and allocations in it */
    } packets[64];
    uint32_t n_packets;
};
static struct file file;

static uint32_t locate(void *ctx, uint64_t code, const struct sm_location **list) {
    static struct sm_location l[2];
    static char name[2][32];
    snprintf(name[0], sizeof name[0], "file%d.ml", (int)(code % 5));
    snprintf(name[1], sizeof name[1], "fun%d", (int)(code % 7));
    l[0] = (struct sm_location){.file = name[0], .function = name[1], .line = (uint32_t)code};
    l[1] = l[0];
    *list = l;
    return code % 3;
}

static void make_file(unsigned version) {
    struct sm_memtrace_header header = {.version = version,
                                        .sample_rate = 0.01,
                                        .word_bits = 64,
                                        .executable = "prog",
                                        .host = "host",
                                        .runtime_params = "p",
                                        .context = "c",
                                        .pid = 99,
                                        .start_us = START};
    struct sm_memtrace_writer *w;
    struct sm_error err;
    free(file.bytes);
    FILE *f = open_memstream(&file.bytes, &file.n);
    assert_int_equal(
        sm_memtrace_writer_new(&w, f, &header, SM_MEMTRACE_RELAXED, locate, NULL, &err), SM_OK);
    uint64_t stack[40], id;
    for (uint32_t i = 0; i < 90; i++) {
        uint32_t n = i % 13;
        for (uint32_t k = 0; k < n; k++)
            stack[k] = 1000 + (k < 6 ? k : i % 9 * 17 + k);
        assert_int_equal(sm_memtrace_put_alloc(w, i / 20 % 2, START + i * 10, i % 9 == 0 ? 500 : 2,
                                               1 + i % 2, i % 9 == 0, stack, n, &id, &err),
                         SM_OK);
        if (i % 3 == 0)
            sm_memtrace_put_promote(w, i / 20 % 2, i / 20 % 2, START + i * 10 + 1, id, &err);
        if (i % 4 == 0)
            sm_memtrace_put_collect(w, 0, i / 20 % 2, START + i * 10 + 2, id, &err);
        if (i % 18 == 17)
            sm_memtrace_writer_flush(w, &err);
    }
    assert_int_equal(sm_memtrace_writer_close(w, &err), SM_OK);
    sm_memtrace_writer_free(w);
    fclose(f);
}

/* What identifies an event whatever is lost before it: all but its stack. */
static uint64_t key(const struct sm_event *e) {
    return ((uint64_t)(e->ticks - START) << 40) ^ (uint64_t)e->kind << 36 ^
           (uint64_t)e->stream << 32 ^ e->size << 8 ^ e->n_samples;
}

/* Reads a damaged copy; returns the number of events, their keys in `events`. */
static uint32_t read_bytes(const uint8_t *bytes, size_t n, uint64_t *events, uint32_t *n_losses,
                           uint64_t *first_offset) {
    struct sm_trace *t;
    struct sm_error err;
    uint32_t n_events = 0;
    *n_losses = 0;
    *first_offset = UINT64_MAX;
    if (sm_trace_open_memory(&t, bytes, n, NULL, &err) != SM_OK) {
        assert_true(strlen(err.text) > 0);
        *n_losses = 1;
        return 0;
    }
    for (uint32_t i = 0; i < sm_trace_n_streams(t); i++) {
        uint64_t last = 0, skipped = 0, read = 0;
        struct sm_event e;
        struct sm_stream_cursor *c = t->backend->stream_new(t, i, SM_CURSOR_STACKS);
        while (t->backend->stream_next(c, &e) == SM_OK) {
            assert_true(e.ticks >= last || (int64_t)last < 0);
            last = e.ticks;
            read++;
            for (uint32_t k = 0; k < e.n_frames; k++)
                assert_true(e.frames[k] < sm_trace_n_locations(t));
            if (n_events < MAX_EVENTS)
                events[n_events++] = key(&e);
        }
        t->backend->stream_free(c);
        c = t->backend->stream_new(t, i, 0);
        while (t->backend->stream_next(c, &e) == SM_OK)
            skipped++;
        t->backend->stream_free(c);
        assert_int_equal(read, skipped);
    }
    const struct sm_loss *list;
    *n_losses = (uint32_t)sm_trace_losses(t, &list);
    for (uint32_t i = 0; i < *n_losses; i++) {
        assert_true(list[i].offset <= n);
        assert_true(strlen(list[i].detail) > 0);
        if (list[i].offset < *first_offset)
            *first_offset = list[i].offset;
    }
    sm_trace_free(t);
    return n_events;
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void read_good_file(void) {
    uint32_t n_losses;
    uint64_t offset;
    file.n_events = read_bytes((uint8_t *)file.bytes, file.n, file.events, &n_losses, &offset);
    assert_int_equal(n_losses, 0);
    assert_int_equal(file.n_events, 90 + 30 + 23);
    qsort(file.events, file.n_events, sizeof *file.events, by_value);
    file.n_packets = 0;
    for (size_t at = 0; at < file.n;) {
        struct sm_mt_header h;
        struct sm_mt_walk w;
        const uint8_t *p = (uint8_t *)file.bytes + at;
        assert_true(sm_mt_header_get(p, file.n - at, SM_MT_LITTLE, &h));
        sm_mt_walk(p + h.header_bytes, p + h.packet_bytes, SM_MT_LITTLE, &w);
        assert_true(file.n_packets < 64);
        file.packets[file.n_packets].offset = at;
        file.packets[file.n_packets].bytes = h.packet_bytes;
        file.packets[file.n_packets++].n_events =
            at == 0 || w.has_locations ? 0 : (uint32_t)w.n_events;
        at += h.packet_bytes;
    }
    assert_true(file.n_packets > 10);
}

/* How many of the good file's events are among `events`. */
static uint32_t known_events(uint64_t *events, uint32_t n) {
    uint32_t found = 0, at = 0;
    qsort(events, n, sizeof *events, by_value);
    for (uint32_t i = 0; i < n; i++) {
        while (at < file.n_events && file.events[at] < events[i])
            at++;
        if (at < file.n_events && file.events[at] == events[i]) {
            found++;
            at++;
        }
    }
    return found;
}

/* Events of packets that [from, to) does not touch. */
static uint32_t untouched(size_t from, size_t to) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < file.n_packets; i++)
        if (file.packets[i].offset + file.packets[i].bytes <= from || file.packets[i].offset >= to)
            n += file.packets[i].n_events;
    return n;
}

/* An exact copy, so that a sanitizer sees reads past its end. */
static uint8_t *copy(size_t n) {
    uint8_t *p = malloc(n + 1);
    memcpy(p, file.bytes, n);
    return p;
}

static void every_cut(void **state) {
    static uint64_t events[MAX_EVENTS];
    for (unsigned version = 2; version <= 3; version++) {
        make_file(version);
        read_good_file();
        for (size_t n = 0; n <= file.n; n += 1 + (STRIDE > 1) * 4) {
            uint32_t n_losses;
            uint64_t offset;
            uint8_t *p = malloc(n == 0 ? 1 : n);
            memcpy(p, file.bytes, n);
            uint32_t got = read_bytes(p, n, events, &n_losses, &offset);
            bool boundary = false;
            size_t last = 0;
            for (uint32_t i = 0; i < file.n_packets; i++) {
                boundary |= file.packets[i].offset == n || n == file.n;
                if (file.packets[i].offset <= n)
                    last = file.packets[i].offset;
            }
            assert_int_equal(got, untouched(n, file.n + 1));
            assert_int_equal(known_events(events, got), got);
            if (n > 3 && !boundary) {
                assert_true(n_losses > 0);
                assert_true(offset == last || last == 0);
            }
            if (boundary && n > 0)
                assert_int_equal(n_losses, 0);
            free(p);
        }
    }
}

static void every_bit(void **state) {
    static uint64_t events[MAX_EVENTS];
    for (unsigned version = 2; version <= 3; version++) {
        make_file(version);
        read_good_file();
        for (size_t bit = 0; bit < file.n * 8;
             bit += (version == 2 ? 11 : 3) * STRIDE + (STRIDE > 1)) {
            size_t at = bit / 8;
            uint32_t n_losses, hit = 0;
            uint64_t offset;
            for (uint32_t i = 0; i < file.n_packets; i++)
                if (file.packets[i].offset <= at)
                    hit = i;
            uint8_t *p = copy(file.n);
            p[at] ^= (uint8_t)(1u << bit % 8);
            uint32_t got = read_bytes(p, file.n, events, &n_losses, &offset);
            size_t in_packet = at - file.packets[hit].offset;
            /* Fields of the trace info on which everything rests: version, process, start. A header's
               domain or times put its events elsewhere, which is why only their number is
               looked at. */
            bool basic = hit == 0 && in_packet < 68 + 4;
            uint32_t rest = untouched(at, at + 1);
            /* A size that leads to another packet's begin by chance cannot be told from a true one. */
            for (uint32_t i = 0; i < file.n_packets; i++)
                basic |=
                    in_packet >= 4 && in_packet < 8 &&
                    file.packets[hit].offset + sm_get_u32le(p + file.packets[hit].offset + 4) / 8 ==
                        file.packets[i].offset;
            if (!basic && hit > 0 && got < rest)
                fail_msg("version %u, bit %zu, byte %zu of packet %u: %u events of %u", version,
                         bit, in_packet, hit, got, rest);
            uint32_t known = known_events(events, got);
            if (!basic && hit > 0 && in_packet >= 68 && known < rest)
                fail_msg("version %u, bit %zu, byte %zu of packet %u: %u events of %u", version,
                         bit, in_packet, hit, known, rest);
            free(p);
        }
    }
}

static uint64_t random_state = 88172645463325252u;
static uint32_t below(size_t n) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 11) % n);
}

static void zeroed_removed_doubled_noise(void **state) {
    static uint64_t events[MAX_EVENTS];
    make_file(3);
    read_good_file();
    /* Half a header that is followed by another's middle may give a size which leads to a true header:
       with 32 packets in 6 KiB that happens, and what lies between is lost. */
    uint32_t n_short = 0;
    for (uint32_t round = 0; round < 2000 / STRIDE; round++) {
        size_t first = file.packets[1].offset, from = first + below(file.n - first);
        size_t n = 1 + below(round % 3 == 0 ? 2000 : 60), bytes = file.n;
        if (n > file.n - from)
            n = file.n - from;
        uint8_t *p = malloc(file.n + n);
        memcpy(p, file.bytes, file.n);
        switch (round % 4) {
        case 0:
            memset(p + from, 0, n);
            break;
        case 1:
            memmove(p + from, p + from + n, file.n - from - n);
            bytes -= n;
            break;
        case 2: /* twice */
            memmove(p + from + n, p + from, file.n - from);
            bytes += n;
            break;
        default:
            for (size_t i = 0; i < n; i++)
                p[from + i] = (uint8_t)below(256);
        }
        uint32_t n_losses;
        uint64_t offset;
        uint8_t *exact = realloc(p, bytes);
        uint32_t got = read_bytes(exact, bytes, events, &n_losses, &offset);
        uint32_t rest = untouched(from, round % 4 == 2 ? from + n + 1 : from + n);
        uint32_t known = known_events(events, got);
        n_short += known < rest;
        if (n_short > 2)
            fail_msg("round %u, %zu bytes at %zu: %u events of %u", round, n, from, known, rest);
        if (got < file.n_events)
            assert_true(n_losses > 0);
        free(exact);
    }
}

/* With an argument: writes the good files, as seeds for tests/fuzz (whose first byte holds the target's
   options), to PREFIX2 and PREFIX3. */
int main(int argc, char **argv) {
    if (argc == 2) {
        for (unsigned version = 2; version <= 3; version++) {
            char name[512];
            make_file(version);
            snprintf(name, sizeof name, "%s%u", argv[1], version);
            FILE *f = fopen(name, "wb");
            if (f == NULL || fputc(0, f) < 0 || fwrite(file.bytes, 1, file.n, f) != file.n ||
                fclose(f) != 0)
                return 1;
        }
        free(file.bytes);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut),
        cmocka_unit_test(every_bit),
        cmocka_unit_test(zeroed_removed_doubled_noise),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(file.bytes);
    return failed;
}
