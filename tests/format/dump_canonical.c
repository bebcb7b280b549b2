/* Prints what the reader finds in a trace, in the lines of decode_trace.py, for comparison:
       dump_canonical [--no-tail] [--part N] [--merged] [--losses] TRACE
   --merged: events in the global order instead of stream after stream; --losses: the losses alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/trace_internal.h"
#include "merge/cursor.h"

static void put_text(const char *s) {
    for (; *s != 0; s++)
        if (*s >= 33 && *s < 127 && *s != '%')
            putchar(*s);
        else
            printf("%%%02X", (unsigned char)*s);
}

static void meta_number(const char *name, uint64_t x) {
    if (x != 0)
        printf("M %s %llu\n", name, (unsigned long long)x);
}

static void meta_text(const char *name, const char *s) {
    if (s[0] == 0)
        return;
    printf("M %s ", name);
    put_text(s);
    putchar('\n');
}

static void put_meta(const struct sm_meta *m) {
    if (m->missing)
        return;
    if (m->anchor_clock_ns != 0 || m->anchor_real_ns != 0)
        printf("M anchor %llu %llu\n", (unsigned long long)m->anchor_clock_ns,
               (unsigned long long)m->anchor_real_ns);
    meta_text("arch", m->arch);
    if (m->n_args > 0) {
        const char *arg = m->args;
        printf("M args ");
        for (uint32_t i = 0; i < m->n_args; i++, arg += strlen(arg) + 1) {
            put_text(arg);
            printf("%%00");
        }
        putchar('\n');
    }
    meta_text("boot_id", m->boot_id);
    if (m->build_id_bytes > 0) {
        printf("M build_id ");
        for (uint32_t i = 0; i < m->build_id_bytes; i++)
            printf("%02x", m->build_id[i]);
        putchar('\n');
    }
    meta_number("clock", m->clock);
    meta_text("context", m->context);
    meta_number("depth_limit", m->depth_limit);
    meta_text("executable", m->executable);
    meta_text("host", m->host);
    meta_number("imported_from", m->imported_from);
    meta_number("initial_domain", m->initial_domain);
    meta_number("mode", m->mode);
    meta_number("ocaml_kind", m->ocaml_kind);
    meta_text("ocaml_version", m->ocaml_version);
    meta_number("parent_pid", m->parent_pid);
    meta_number("pid", m->pid);
    meta_number("rate_origin", m->rate_origin);
    meta_text("runtime_params", m->runtime_params);
    if (m->sample_rate > 0)
        printf("M sample_rate %.17g\n", m->sample_rate);
    if (m->has_seed)
        meta_number("seed", m->seed);
    if (m->session != 0)
        printf("M session %llx\n", (unsigned long long)m->session);
    meta_number("start", m->start_ticks);
    meta_number("tick_ns", m->tick_ns);
    meta_number("word_size", m->word_bits);
    meta_text("writer", m->writer);
}

static void end_number(const char *name, uint64_t x) {
    if (x != 0)
        printf("E %s %lld\n", name, (long long)x);
}

static int compare_gc(const void *a, const void *b) {
    char x[32], y[32]; /* sorted as texts, like the names of the others */
    snprintf(x, sizeof x, "gc%llu", *(const unsigned long long *)a);
    snprintf(y, sizeof y, "gc%llu", *(const unsigned long long *)b);
    return strcmp(x, y);
}

static void put_end(const struct sm_end *end) {
    if (!end->present)
        return;
    struct sm_end d = *end;
    end_number("discarded", d.discarded);
    end_number("exit_status", d.exit_status);
    end_number("forks", d.forks);
    qsort(d.gc, d.n_gc, sizeof d.gc[0], compare_gc);
    for (uint32_t i = 0; i < d.n_gc; i++) {
        char name[32];
        snprintf(name, sizeof name, "gc%llu", (unsigned long long)d.gc[i].counter);
        end_number(name, (uint64_t)d.gc[i].value);
    }
    end_number("lost_bytes", d.lost_bytes);
    end_number("lost_events", d.lost_events);
    end_number("lost_names", d.lost_names);
    end_number("n_events", d.n_events);
    end_number("owners", d.owners);
    end_number("peak_streams", d.peak_streams);
    end_number("reason", d.reason);
    end_number("recovered", d.recovered);
    end_number("ticks", d.end_ticks);
}

static const struct sm_trace *sorted_trace;

static int compare_codes(const void *a, const void *b) {
    uint64_t x = sm_trace_location_code(sorted_trace, *(const uint32_t *)a);
    uint64_t y = sm_trace_location_code(sorted_trace, *(const uint32_t *)b);
    return x < y ? -1 : x > y;
}

static void put_locations(const struct sm_trace *t) {
    uint32_t n = sm_trace_n_locations(t);
    uint32_t *ids = calloc(n + 1, sizeof *ids);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = i;
    sorted_trace = t;
    qsort(ids, n, sizeof *ids, compare_codes);
    for (uint32_t i = 0; i < n; i++) {
        const struct sm_location *list;
        if (!t->locations.entries[ids[i]].known)
            continue;
        printf("S %llx", (unsigned long long)sm_trace_location_code(t, ids[i]));
        uint32_t k = sm_trace_location(t, ids[i], &list);
        for (uint32_t j = 0; j < k; j++) {
            const struct sm_location *l = &list[j];
            putchar(' ');
            put_text(l->unnamed != NULL ? l->unnamed->file : l->file);
            putchar('|');
            put_text(l->unnamed != NULL ? l->unnamed->function : l->function);
            printf("|%u|%u|%u|%u|%u", l->line, l->end_line, l->start_char, l->end_char, l->flags);
        }
        putchar('\n');
    }
    free(ids);
}

static void put_owner(const struct sm_trace *t, uint32_t index) {
    const struct sm_owner *o = sm_trace_owner(t, index);
    printf("%llu/%llu/%d/%u/", (unsigned long long)o->domain, (unsigned long long)o->tid,
           (int)o->kind, o->incarnation);
    put_text(o->name);
}

static void put_event(const struct sm_trace *t, const struct sm_event *e) {
    unsigned long long ticks = e->ticks;
    switch (e->kind) {
    case SM_EVENT_ALLOC:
        printf("A %u %llu %llu %llu%c %llu %u %u ", e->stream, (unsigned long long)e->obj_seq,
               ticks, (unsigned long long)e->size,
               (e->flags & SM_EVENT_SIZE_IN_BYTES) != 0 ? 'b' : 'w',
               (unsigned long long)e->n_samples, e->heap, e->origin);
        put_owner(t, e->owner);
        putchar(' ');
        for (uint32_t i = 0; i < e->n_frames; i++)
            printf(i == 0 ? "%llx" : ",%llx",
                   (unsigned long long)sm_trace_location_code(t, e->frames[i]));
        break;
    case SM_EVENT_EXTENSION:
        printf("X %u %u %llu ", e->stream, e->op, ticks);
        put_owner(t, e->owner);
        putchar(' ');
        for (uint32_t i = 0; i < e->payload_bytes; i++)
            printf("%02x", e->payload[i]);
        break;
    default:
        printf("%c %u %u:%llu %llu ", e->kind == SM_EVENT_PROMOTE ? 'P' : 'C', e->stream,
               e->obj_stream, (unsigned long long)e->obj_seq, ticks);
        put_owner(t, e->owner);
        break;
    }
    putchar('\n');
}

int main(int argc, char **argv) {
    struct sm_trace_options options = {0};
    unsigned flags = SM_CURSOR_STACKS | SM_CURSOR_EXTENSIONS | SM_CURSOR_UNMERGED;
    bool losses = false;
    const char *path = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--no-tail") == 0)
            options.ignore_tail = true;
        else if (strcmp(argv[i], "--part") == 0 && i + 1 < argc)
            options.part = (uint32_t)atoi(argv[++i]);
        else if (strcmp(argv[i], "--merged") == 0)
            flags &= ~(unsigned)SM_CURSOR_UNMERGED;
        else if (strcmp(argv[i], "--losses") == 0)
            losses = true;
        else
            path = argv[i];
    }
    struct sm_trace *t;
    struct sm_cursor *c;
    struct sm_error err;
    struct sm_event e;
    if (path == NULL) {
        fprintf(stderr,
                "usage: dump_canonical [--no-tail] [--part N] [--merged] [--losses] TRACE\n");
        return 2;
    }
    if (sm_trace_open(&t, path, &options, &err) != SM_OK ||
        sm_cursor_new(&c, t, flags, &err) != SM_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    if (!losses) {
        put_meta(sm_trace_meta(t));
        put_end(sm_trace_end(t));
        put_locations(t);
    }
    while (sm_cursor_next(c, &e) == SM_OK)
        if (!losses)
            put_event(t, &e);
    const struct sm_loss *list;
    size_t n = sm_trace_losses(t, &list);
    for (size_t i = 0; losses && i < n; i++)
        printf("%s stream %d offset %llu bytes %llu events %llu%s count %llu: %s\n",
               sm_loss_kind_name(list[i].kind), (int)list[i].stream,
               (unsigned long long)list[i].offset, (unsigned long long)list[i].bytes,
               (unsigned long long)list[i].events, list[i].events_known ? "" : "+",
               (unsigned long long)list[i].count, list[i].detail);
    sm_cursor_free(c);
    sm_trace_free(t);
    return 0;
}
