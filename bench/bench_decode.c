/* How fast traces are read: bench_decode [TRACE...]
   For each trace: M events/s and MB/s (of raw payload bytes) with stacks, without stacks, and merged where there
   are several streams, beside memcpy of the same bytes. memtrace traces are read as they are and
   again after re-encoding in memory. Without an argument a synthetic trace is measured. Best of
   several rounds, one thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decode/batch.h"
#include "decode/native_internal.h"
#include "format/packet.h"
#include "merge/cursor.h"
#include "trace_builder.h"

#define ROUNDS 15

static double now_s(void) {
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts); /* other processes do not count */
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static uint64_t sink;

/* One pass; seconds, and the number of events in *n. */
static double pass(struct sm_trace *t, unsigned flags, uint64_t *n) {
    struct sm_cursor *c;
    struct sm_error err;
    struct sm_event e;
    uint64_t count = 0, sum = 0;
    double begin = now_s();
    if (sm_cursor_new(&c, t, flags, &err) != SM_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    while (sm_cursor_next(c, &e) == SM_OK) {
        count++;
        sum += e.size + e.n_frames + (e.n_frames > 0 ? e.frames[e.n_frames - 1] : 0);
    }
    sm_cursor_free(c);
    sink += sum;
    *n = count;
    return now_s() - begin;
}

static double best(struct sm_trace *t, unsigned flags, uint64_t *n) {
    double least = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        double s = pass(t, flags, n);
        least = s < least ? s : least;
    }
    return least;
}

/* The same by batches, in order, on `threads` threads: processor time of this thread, or, where several share the work,
   time on the clock. */
struct sums {
    uint64_t count, sum;
};

static bool take(void *ctx, const struct sm_batch *b) {
    struct sums *s = ctx;
    uint64_t sum = 0;
    s->count += b->n_allocs + b->n_refs;
    for (uint32_t i = 0; i < b->n_allocs; i++) {
        const struct sm_batch_alloc *a = &b->allocs[i];
        uint32_t fresh = a->n_frames - a->common_prefix;
        sum += a->size + a->n_frames + (fresh > 0 ? b->frames[a->first_frame + fresh - 1] : 0);
    }
    for (uint32_t i = 0; i < b->n_refs; i++)
        sum += b->refs[i].obj_seq;
    s->sum += sum;
    return true;
}

static double best_batches(struct sm_trace *t, unsigned flags, unsigned threads, clockid_t clock,
                           uint64_t *n) {
    double least = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        struct sm_batch_pass *pass;
        struct sm_error err;
        struct sums s = {0};
        struct timespec from, to;
        clock_gettime(clock, &from);
        if (sm_batch_pass_new(&pass, t, flags, &err) != SM_OK ||
            sm_batch_each(pass, threads, take, &s, &err) != SM_OK) {
            fprintf(stderr, "%s\n", err.text);
            exit(1);
        }
        sm_batch_pass_free(pass);
        clock_gettime(clock, &to);
        double seconds =
            (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
        least = seconds < least ? seconds : least;
        sink += s.sum;
        *n = s.count;
    }
    return least;
}

static double copy_seconds(size_t bytes) {
    uint8_t *from = malloc(bytes + 1), *to = malloc(bytes + 1);
    double least = 1e9;
    if (from == NULL || to == NULL)
        exit(1);
    memset(from, 1, bytes);
    memset(to, 1, bytes);
    for (int i = 0; i < ROUNDS; i++) {
        double begin = now_s();
        memcpy(to, from, bytes);
        __asm__ volatile("" ::"r"(to) : "memory");
        double s = now_s() - begin;
        least = s < least ? s : least;
    }
    free(from);
    free(to);
    return least;
}

/* Raw bytes of all EVENTS packets, or the whole of a memtrace file. */
static uint64_t raw_bytes(const struct sm_trace *t) {
    uint64_t sum = 0;
    if (t->meta.format != SM_TRACE_NATIVE)
        return t->input.bytes;
    for (uint64_t at = 0; at + SM_PACKET_HEADER_BYTES <= t->input.bytes;) {
        struct sm_packet_header h;
        if (!sm_packet_header_get(t->input.data + at, &h))
            break;
        if (h.kind == SM_PACKET_EVENTS)
            sum += h.raw_bytes;
        at += SM_PACKET_HEADER_BYTES + (uint64_t)h.stored_bytes;
    }
    return sum;
}

static void measure(struct sm_trace *t, const char *name) {
    uint64_t n = 0, raw = raw_bytes(t);
    double copy = copy_seconds(raw);
    unsigned flags = SM_CURSOR_UNMERGED;
    double stacks = best(t, flags | SM_CURSOR_STACKS, &n);
    double plain = best(t, flags, &n);
    printf("%-34s %9llu events %5.2f raw B/event, %u streams\n", name, (unsigned long long)n,
           n == 0 ? 0.0 : (double)raw / (double)n, sm_trace_n_streams(t));
    double mb = (double)raw * 1e-6, m = (double)n * 1e-6;
    printf("  full stacks %7.1f M events/s %7.0f MB/s\n", m / stacks, mb / stacks);
    printf("  no stacks   %7.1f M events/s %7.0f MB/s\n", m / plain, mb / plain);
    if (t->meta.format == SM_TRACE_NATIVE) {
        double one = best_batches(t, SM_CURSOR_STACKS, 1, CLOCK_THREAD_CPUTIME_ID, &n);
        double two = best_batches(t, SM_CURSOR_STACKS, 2, CLOCK_MONOTONIC, &n);
        double alone = best_batches(t, SM_CURSOR_STACKS, 1, CLOCK_MONOTONIC, &n);
        double none = best_batches(t, 0, 1, CLOCK_THREAD_CPUTIME_ID, &n);
        printf("  by packets  %7.1f M events/s %7.0f MB/s  x %.2f of the cursor\n", m / one,
               mb / one, stacks / one);
        printf("   no stacks  %7.1f M events/s %7.0f MB/s  x %.2f\n", m / none, mb / none,
               plain / none);
        printf("   2 threads  %7.1f M events/s %7.0f MB/s  x %.2f of one thread, on the clock\n",
               m / two, mb / two, alone / two);
    }
    if (sm_trace_n_streams(t) > 1) {
        double merged = best(t, SM_CURSOR_STACKS, &n);
        double merged_plain = best(t, 0, &n);
        printf("  merged      %7.1f M events/s, %.1f without stacks\n", m / merged,
               m / merged_plain);
    }
    printf(
        "  memcpy                       %7.0f MB/s (full stacks 1/%.1f, no stacks 1/%.1f of it)\n",
        mb / copy, stacks / copy, plain / copy);
}

static void measure_memory(const struct tb *b, const char *name) {
    struct sm_trace *t;
    struct sm_error err;
    if (sm_trace_open_memory(&t, b->data, b->bytes, NULL, &err) != SM_OK) {
        fprintf(stderr, "%s: %s\n", name, err.text);
        exit(1);
    }
    measure(t, name);
    sm_trace_free(t);
}

/* The trace with its packets unpacked, for what decoding costs without decompression. */
static bool unpacked(struct sm_trace *t, struct tb *b) {
    bool any = false;
    struct sm_native_buffer buffer = {0};
    b->session = t->meta.session;
    b->pid = (uint32_t)t->meta.pid;
    for (uint64_t at = 0; at + SM_PACKET_HEADER_BYTES <= t->input.bytes;) {
        struct sm_packet_header h;
        const uint8_t *data;
        size_t bytes;
        if (!sm_packet_header_get(t->input.data + at, &h))
            return false;
        struct sm_native_packet p = {.offset = at + SM_PACKET_HEADER_BYTES,
                                     .stored_bytes = h.stored_bytes,
                                     .raw_bytes = h.raw_bytes,
                                     .payload_crc = h.payload_crc,
                                     .codec = h.codec};
        any |= h.codec != SM_CODEC_NONE;
        at += SM_PACKET_HEADER_BYTES + (uint64_t)h.stored_bytes;
        if (!sm_native_payload(t, &p, &buffer, SM_LOSS_CORRUPT, &data, &bytes))
            return false;
        tb_packet(b, &h, data, bytes);
    }
    sm_native_buffer_release(t->backend_data, &buffer);
    return any;
}

/* Encodes what the trace holds anew, `times` over, one stream per stream. */
static void reencode(struct sm_trace *t, struct tb *b, unsigned times) {
    struct sm_cursor *c;
    struct sm_error err;
    struct sm_event e;
    uint32_t n = sm_trace_n_streams(t);
    uint64_t ticks = b->start_ticks, codes_capacity = 0;
    uint64_t *codes = NULL;
    tb_meta(b);
    for (unsigned round = 0; round < times; round++) {
        uint64_t base = ticks, first = 0;
        uint64_t *shift =
            calloc(n + 1, sizeof *shift); /* seqs of this round less those of the file */
        bool *known = calloc(n + 1, sizeof *known);
        if (sm_cursor_new(&c, t, SM_CURSOR_STACKS, &err) != SM_OK || shift == NULL || known == NULL)
            exit(1);
        bool any = false;
        while (sm_cursor_next(c, &e) == SM_OK) {
            uint32_t s = sm_trace_stream_index(t, e.stream);
            if (!any)
                first = e.ticks;
            any = true;
            ticks = base + (e.ticks > first ? e.ticks - first : 0);
            if (e.kind == SM_EVENT_ALLOC) {
                if (e.n_frames > codes_capacity) {
                    codes_capacity = e.n_frames * 2;
                    codes = realloc(codes, codes_capacity * sizeof *codes);
                    if (codes == NULL)
                        exit(1);
                }
                for (uint32_t i = 0; i < e.n_frames; i++)
                    codes[i] = sm_trace_location_code(t, e.frames[i]);
                uint64_t seq = tb_alloc_full(b, s, ticks, e.size, false, e.n_samples,
                                             SM_SOURCE(e.heap, e.origin), codes, e.n_frames);
                if (!known[s])
                    shift[s] = seq - e.obj_seq;
                known[s] = true;
            } else if (e.kind != SM_EVENT_EXTENSION) {
                uint32_t o = sm_trace_stream_index(t, e.obj_stream);
                if (o != UINT32_MAX)
                    tb_ref(b, s, ticks, e.kind == SM_EVENT_COLLECT, o, e.obj_seq + shift[o]);
            }
        }
        sm_cursor_free(c);
        free(shift);
        free(known);
    }
    tb_end(b, ticks);
    free(codes);
}

static void measure_file(const char *path) {
    struct sm_trace *t;
    struct sm_error err;
    const char *base = strrchr(path, '/');
    base = base == NULL ? path : base + 1;
    if (sm_trace_open(&t, path, NULL, &err) != SM_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    measure(t, base);
    if (sm_trace_meta(t)->format == SM_TRACE_NATIVE) {
        struct tb b;
        tb_init(&b, 0);
        if (unpacked(t, &b))
            measure_memory(&b, "  the same, not compressed");
        tb_release(&b);
    } else {
        struct tb b;
        tb_init(&b, sm_trace_n_streams(t));
        reencode(t, &b, 4);
        measure_memory(&b, "  the same, re-encoded, 4 times over");
        tb_release(&b);
    }
    sm_trace_free(t);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        measure_file(argv[i]);
    if (argc == 1) {
        for (uint32_t streams = 1; streams <= 16; streams *= 4) {
            struct tb b;
            char name[32];
            snprintf(name, sizeof name, "synthetic, %u streams", streams);
            tb_init(&b, streams);
            tb_mixed(&b, streams, 1000000, 7);
            measure_memory(&b, name);
            tb_release(&b);
        }
    }
    return sink == 42;
}
