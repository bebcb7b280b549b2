/* What the memtrace tests look at: a memtrace file as figures, as content, and written again. Uses the
   backend directly, stream after stream.

     memtrace_tool stat FILE               figures as JSON
     memtrace_tool content FILE            one line per event, stacks as codes, then the names used
     memtrace_tool digest FILE             a number that stands for all of that
     memtrace_tool rewrite VERSION exact|relaxed FILE OUT
     memtrace_tool ctf FILE DIRECTORY
     memtrace_tool speed FILE stacks|skip N */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "convert/ctf_dir.h"
#include "convert/memtrace_writer.h"
#include "decode/backend.h"
#include "decode/trace_internal.h"

static struct sm_trace *open_trace(const char *path) {
    struct sm_error err;
    struct sm_trace *t;
    if (sm_trace_open(&t, path, NULL, &err) == SM_OK)
        return t;
    fprintf(stderr, "%s\n", err.text);
    exit(1);
}

static void put_text(const char *name, const char *text) {
    printf("\"%s\": \"", name);
    for (; *text != 0; text++)
        if (*text == '"' || *text == '\\' || (unsigned char)*text < 32)
            printf("\\u%04x", (unsigned char)*text);
        else
            putchar(*text);
    printf("\", ");
}

static void put_losses(const struct sm_trace *t) {
    const struct sm_loss *list;
    size_t n = sm_trace_losses(t, &list);
    printf("\"losses\": [");
    for (size_t i = 0; i < n; i++) {
        printf("%s{\"kind\": \"%s\", \"offset\": %" PRIu64 ", \"bytes\": %" PRIu64
               ", \"events\": %" PRIu64 ", \"count\": %" PRIu64 ", ",
               i > 0 ? ", " : "", sm_loss_kind_name(list[i].kind), list[i].offset, list[i].bytes,
               list[i].events, list[i].count);
        put_text("detail", list[i].detail);
        printf("\"known\": %s}", list[i].events_known ? "true" : "false");
    }
    printf("]");
}

static int stat_file(const char *path) {
    struct sm_trace *t = open_trace(path);
    const struct sm_meta *m = sm_trace_meta(t);
    uint64_t heaps[4] = {0}, promote = 0, collect = 0, samples = 0, words = 0, frames = 0,
             common = 0, deepest = 0, distinct = 0, orphans = 0, lost_stacks = 0, foreign = 0;
    int64_t last_us = 0;
    uint8_t *seen = calloc(SM_MAX_LOCATIONS, 1);
    printf("{\"per_domain\": {");
    bool any = false;
    for (uint32_t i = 0; i < sm_trace_n_streams(t); i++) {
        struct sm_stream_cursor *c = t->backend->stream_new(t, i, 1);
        struct sm_event e;
        uint64_t n = 0, s = 0, time = 0;
        while (t->backend->stream_next(c, &e) == SM_OK) {
            if (e.ticks < time)
                exit(9);
            time = e.ticks;
            if (e.obj_stream != e.stream)
                foreign++;
            if (sm_trace_time_ns(t, e.ticks) / 1000 > last_us)
                last_us = sm_trace_time_ns(t, e.ticks) / 1000;
            orphans += (e.flags & SM_EVENT_ORPHAN) != 0;
            lost_stacks += (e.flags & SM_EVENT_STACK_LOST) != 0;
            promote += e.kind == SM_EVENT_PROMOTE;
            collect += e.kind == SM_EVENT_COLLECT;
            if ((e.flags & SM_EVENT_ORPHAN) == 0 &&
                !t->backend->has_object(t, e.obj_stream, e.obj_seq))
                exit(8);
            if (e.kind != SM_EVENT_ALLOC)
                continue;
            heaps[e.heap]++;
            n++;
            s += e.n_samples;
            words += e.size;
            frames += e.n_frames;
            common += e.common_prefix;
            deepest = e.n_frames > deepest ? e.n_frames : deepest;
            for (uint32_t k = 0; k < e.n_frames; k++) {
                distinct += !seen[e.frames[k]];
                seen[e.frames[k]] = 1;
            }
        }
        t->backend->stream_free(c);
        samples += s;
        if (n > 0)
            printf("%s\"%u\": [%" PRIu64 ", %" PRIu64 "]", any ? ", " : "",
                   sm_trace_stream_id(t, i), n, s);
        any |= n > 0;
    }
    uint64_t named = 0;
    const struct sm_location *list;
    for (uint32_t id = 0; id < sm_trace_n_locations(t); id++)
        named += seen[id] && (t->locations.entries[id].known);
    printf("}, \"alloc\": %" PRIu64 ", \"alloc_major\": %" PRIu64 ", \"alloc_ext\": %" PRIu64
           ", \"promote\": %" PRIu64 ", \"collect\": %" PRIu64 ", \"nsamples\": %" PRIu64
           ", \"sum_len_words\": %" PRIu64 ", \"sum_bt_len\": %" PRIu64 ", \"max_bt_len\": %" PRIu64
           ", \"sum_common_prefix\": %" PRIu64 ", \"distinct_codes\": %" PRIu64
           ", \"last_time_us\": %" PRId64 ", \"pid\": %" PRIu64
           ", \"rate\": %.17g, \"word_size\": %u, "
           "\"version\": %d, \"missing\": %s, \"orphans\": %" PRIu64 ", \"lost_stacks\": %" PRIu64
           ", \"named\": %" PRIu64 ", \"foreign\": %" PRIu64 ", ",
           heaps[0], heaps[1], heaps[2], promote, collect, samples, words, frames, deepest, common,
           distinct, last_us, m->pid, m->sample_rate, m->word_bits, (int)m->format,
           m->missing ? "true" : "false", orphans, lost_stacks, named, foreign);
    (void)list;
    put_text("exe", m->executable);
    put_text("params", m->runtime_params);
    put_text("context", m->context);
    put_losses(t);
    printf("}\n");
    free(seen);
    sm_trace_free(t);
    return 0;
}

static FILE *content_out;
static uint64_t digest = 0xcbf29ce484222325u;

static void mix(uint64_t x) {
    digest = (digest ^ x) * 0x100000001b3u;
    digest ^= digest >> 29;
}

static void mix_text(const char *text) {
    for (; *text != 0; text++)
        mix((unsigned char)*text);
    mix(256);
}

static void content_event(const struct sm_trace *t, const struct sm_event *e) {
    uint64_t fields[] = {e->stream, e->kind,      e->ticks, e->obj_stream, e->obj_seq,
                         e->size,   e->n_samples, e->heap,  e->flags,      e->n_frames};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        mix(fields[i]);
    for (uint32_t k = 0; k < e->n_frames; k++)
        mix(sm_trace_location_code(t, e->frames[k]));
    if (content_out == NULL)
        return;
    fprintf(content_out,
            "%u %d %" PRIu64 " obj %u:%" PRIu64 " size %" PRIu64 " n %" PRIu64 " heap %u flags %u:",
            e->stream, e->kind, e->ticks, e->obj_stream, e->obj_seq, e->size, e->n_samples, e->heap,
            e->flags);
    for (uint32_t k = 0; k < e->n_frames; k++)
        fprintf(content_out, " %" PRIx64, sm_trace_location_code(t, e->frames[k]));
    fprintf(content_out, "\n");
}

/* Everything that the events and the names of the codes in them say: as text, or as a number. */
static int content(const char *path, bool text) {
    struct sm_trace *t = open_trace(path);
    uint8_t *used = calloc(SM_MAX_LOCATIONS, 1);
    content_out = text ? stdout : NULL;
    for (uint32_t i = 0; i < sm_trace_n_streams(t); i++) {
        struct sm_stream_cursor *c = t->backend->stream_new(t, i, 1);
        struct sm_event e;
        while (t->backend->stream_next(c, &e) == SM_OK) {
            content_event(t, &e);
            for (uint32_t k = e.common_prefix; k < e.n_frames; k++)
                used[e.frames[k]] = 1;
        }
        t->backend->stream_free(c);
    }
    for (uint32_t id = 0; id < sm_trace_n_locations(t); id++) {
        const struct sm_location *list;
        uint32_t n = sm_trace_location(t, id, &list);
        if (!used[id])
            continue;
        mix(sm_trace_location_code(t, id));
        if (text)
            printf("code %" PRIx64, sm_trace_location_code(t, id));
        for (uint32_t k = 0; k < n; k++) {
            mix(list[k].line);
            mix(list[k].start_char);
            mix(list[k].end_char);
            mix(list[k].flags);
            mix_text(list[k].file);
            mix_text(list[k].function);
            if (text)
                printf(" [%s %s %u:%u-%u %u]", list[k].file, list[k].function, list[k].line,
                       list[k].start_char, list[k].end_char, list[k].flags);
        }
        if (text)
            printf("\n");
    }
    if (!text)
        printf("%016" PRIx64 "\n", digest);
    free(used);
    sm_trace_free(t);
    return 0;
}

static uint32_t locate(void *ctx, uint64_t code, const struct sm_location **list) {
    struct sm_trace *t = ctx;
    return sm_trace_location(t, sm_locations_intern(t, code), list);
}

/* One stream's cursor with its next event. */
struct head {
    struct sm_stream_cursor *c;
    struct sm_event e;
    bool alive;
    uint64_t *ids; /* by seq */
    uint64_t capacity, n;
};

/* version 0: a CTF directory */
static int rewrite(unsigned version, enum sm_memtrace_order order, const char *in,
                   const char *out) {
    struct sm_trace *t = open_trace(in);
    const struct sm_meta *m = sm_trace_meta(t);
    struct sm_memtrace_header header = {.version = version,
                                        .sample_rate = m->sample_rate,
                                        .word_bits = m->word_bits,
                                        .executable = m->executable,
                                        .host = m->host,
                                        .runtime_params = m->runtime_params,
                                        .context = m->context,
                                        .pid = m->pid,
                                        .start_us = (int64_t)m->start_ticks,
                                        .initial_domain = (uint32_t)m->initial_domain};
    FILE *f = version == 0 ? NULL : fopen(out, "wb");
    struct sm_memtrace_writer *w;
    struct sm_ctf_dir *ctf = NULL;
    struct sm_error err = {""};
    enum sm_status made;
    if (version == 0)
        made = sm_ctf_dir_new(&ctf, out, &header, locate, t, &err);
    else
        made =
            f == NULL ? SM_FAILED : sm_memtrace_writer_new(&w, f, &header, order, locate, t, &err);
    if (made != SM_OK) {
        fprintf(stderr, "%s: %s\n", out, err.text);
        return 1;
    }
    if (ctf != NULL)
        w = sm_ctf_dir_writer(ctf);
    uint32_t n = sm_trace_n_streams(t);
    struct head *heads = calloc(n + 1, sizeof *heads);
    for (uint32_t i = 0; i < n; i++) {
        heads[i].c = t->backend->stream_new(t, i, 1);
        heads[i].alive = t->backend->stream_next(heads[i].c, &heads[i].e) == SM_OK;
    }
    uint64_t *codes = NULL;
    for (;;) {
        struct head *best = NULL;
        for (uint32_t i = 0; i < n; i++) {
            struct head *h = &heads[i];
            if (!h->alive)
                continue;
            struct head *owner = &heads[sm_trace_stream_index(t, h->e.obj_stream)];
            if (h->e.kind != SM_EVENT_ALLOC && h->e.obj_seq >= owner->n && owner != h &&
                owner->alive)
                continue; /* wait for the allocation */
            if (best == NULL || h->e.ticks < best->e.ticks)
                best = h;
        }
        if (best == NULL)
            break;
        struct sm_event *e = &best->e;
        struct head *owner = &heads[sm_trace_stream_index(t, e->obj_stream)];
        enum sm_status status;
        if (e->kind == SM_EVENT_ALLOC) {
            codes = realloc(codes, (e->n_frames + 1) * sizeof *codes);
            for (uint32_t k = 0; k < e->n_frames; k++)
                codes[k] = sm_trace_location_code(t, e->frames[k]);
            if (e->obj_seq >= owner->capacity) {
                owner->capacity = e->obj_seq * 2 + 1024;
                owner->ids = realloc(owner->ids, owner->capacity * sizeof *owner->ids);
            }
            status =
                sm_memtrace_put_alloc(w, e->stream, (int64_t)e->ticks, e->size, e->n_samples,
                                      e->heap, codes, e->n_frames, &owner->ids[e->obj_seq], &err);
            owner->n = e->obj_seq + 1;
        } else if (e->obj_seq >= owner->n) {
            status = SM_OK; /* orphan */
        } else if (e->kind == SM_EVENT_PROMOTE) {
            status = sm_memtrace_put_promote(w, e->stream, e->obj_stream, (int64_t)e->ticks,
                                             owner->ids[e->obj_seq], &err);
        } else {
            status = sm_memtrace_put_collect(w, e->stream, e->obj_stream, (int64_t)e->ticks,
                                             owner->ids[e->obj_seq], &err);
        }
        if (status != SM_OK) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        best->alive = t->backend->stream_next(best->c, &best->e) == SM_OK;
    }
    int result;
    if (ctf != NULL) {
        result = sm_ctf_dir_close(ctf, &err) == SM_OK ? 0 : 1;
        sm_ctf_dir_free(ctf);
    } else {
        result = sm_memtrace_writer_close(w, &err) == SM_OK ? 0 : 1;
        sm_memtrace_writer_free(w);
    }
    if (result != 0)
        fprintf(stderr, "%s\n", err.text);
    for (uint32_t i = 0; i < n; i++) {
        t->backend->stream_free(heads[i].c);
        free(heads[i].ids);
    }
    free(heads);
    free(codes);
    sm_trace_free(t);
    return f == NULL || fclose(f) == 0 ? result : 1;
}

static int speed(const char *path, bool stacks, int repeat) {
    struct sm_trace *t = open_trace(path);
    double best = 1e9;
    uint64_t events = 0, frames = 0;
    for (int k = 0; k < repeat; k++) {
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        events = frames = 0;
        for (uint32_t i = 0; i < sm_trace_n_streams(t); i++) {
            struct sm_stream_cursor *c = t->backend->stream_new(t, i, stacks);
            struct sm_event e;
            while (t->backend->stream_next(c, &e) == SM_OK) {
                events++;
                frames += e.n_frames;
            }
            t->backend->stream_free(c);
        }
        clock_gettime(CLOCK_MONOTONIC, &b);
        double s = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
        best = s < best ? s : best;
    }
    printf("%" PRIu64 " events, %" PRIu64 " frames: %.1f M events/s, %.0f MB/s\n", events, frames,
           (double)events / best / 1e6, (double)t->input.bytes / best / 1e6);
    sm_trace_free(t);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "stat") == 0)
        return stat_file(argv[2]);
    if (argc == 3 && (strcmp(argv[1], "content") == 0 || strcmp(argv[1], "digest") == 0))
        return content(argv[2], argv[1][0] == 'c');
    if (argc == 6 && strcmp(argv[1], "rewrite") == 0)
        return rewrite((unsigned)atoi(argv[2]),
                       strcmp(argv[3], "relaxed") == 0 ? SM_MEMTRACE_RELAXED : SM_MEMTRACE_EXACT,
                       argv[4], argv[5]);
    if (argc == 4 && strcmp(argv[1], "ctf") == 0)
        return rewrite(0, SM_MEMTRACE_RELAXED, argv[2], argv[3]);
    if (argc == 5 && strcmp(argv[1], "speed") == 0)
        return speed(argv[2], strcmp(argv[3], "stacks") == 0, atoi(argv[4]));
    fprintf(stderr, "usage: memtrace_tool stat|content|rewrite|speed ...\n");
    return 2;
}
