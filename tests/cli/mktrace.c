/* Makes a native trace from lines of text, so that tests can name every event and know every answer.

   Usage: mktrace TEXT TRACE

     meta KEY VALUE              executable, host, context, params, ocaml, writer, args (words), rate,
                                 rate_origin, word_bits, pid, start_ns, depth_limit, mode, kind
     loc CODE FILE FUNCTION LINE START END [FLAGS]
                                 repeated for one code: inlined, outermost first
     owner STREAM DOMAIN TID [NAME]   from here on
     at TICKS                    since the start
     alloc STREAM:SEQ SIZE SAMPLES HEAP [origin=N] [bytes] [CODE,CODE,...]   outermost first
     promote STREAM STREAM:SEQ   the stream that does it, the object
     collect STREAM STREAM:SEQ
     mark STREAM TEXT
     counters STREAM K=V,K=V
     gc K=V                      a counter of the END packet
     end REASON [EXIT_STATUS]    0 = leave the trace unclosed (INDEX and END are cut off by the test)

   In words \xNN stands for any byte and \_ for a blank; "#" begins a comment line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "convert/native_writer.h"

#define MAX_STREAMS 64
#define START_TICKS 1000000

struct maker {
    struct sm_meta meta;
    struct sm_native_writer *writer;
    struct sm_owner owners[MAX_STREAMS];
    bool has_owner[MAX_STREAMS];
    struct sm_end end;
    struct sm_location pending[64]; /* of pending_code */
    uint64_t pending_code;
    uint32_t n_pending;
    uint64_t now;
    unsigned line;
    FILE *out;
};

static void die(const struct maker *m, const char *what) {
    fprintf(stderr, "mktrace: line %u: %s\n", m->line, what);
    exit(2);
}

/* Next word, unescaped in place; NULL at the end. */
static char *word(char **rest) {
    char *p = *rest + strspn(*rest, " \n");
    if (*p == 0)
        return NULL;
    char *start = p, *to = p;
    while (*p != 0 && *p != ' ' && *p != '\n') {
        if (p[0] == '\\' && p[1] == 'x') {
            char digits[3] = {p[2], p[3], 0};
            *to++ = (char)strtoul(digits, NULL, 16);
            p += 4;
        } else if (p[0] == '\\' && p[1] == '_') {
            *to++ = ' ';
            p += 2;
        } else {
            *to++ = *p++;
        }
    }
    *rest = *p != 0 ? p + 1 : p;
    *to = 0;
    return start;
}

static char *must(struct maker *m, char **rest, const char *what) {
    char *w = word(rest);
    if (w == NULL)
        die(m, what);
    return w;
}

static uint64_t number(struct maker *m, char **rest) {
    char *end, *w = must(m, rest, "a number is missing");
    uint64_t x = strtoull(w, &end, 0);
    if (*end != 0)
        die(m, "not a number");
    return x;
}

static void check(struct maker *m, enum sm_status status, const struct sm_error *err) {
    if (status == SM_FAILED)
        die(m, err->text);
}

static void start(struct maker *m) {
    struct sm_error err;
    struct sm_native_writer_options options = {0};
    if (m->writer == NULL)
        check(m, sm_native_writer_new(&m->writer, m->out, &m->meta, &options, &err), &err);
}

static void flush_locations(struct maker *m) {
    struct sm_error err;
    if (m->n_pending == 0)
        return;
    start(m);
    check(m, sm_native_writer_location(m->writer, m->pending_code, m->pending, m->n_pending, &err),
          &err);
    m->n_pending = 0;
}

static void set_meta(struct maker *m, char **rest) {
    char *key = must(m, rest, "key"), *copy;
    struct sm_meta *meta = &m->meta;
    const struct {
        const char *name;
        const char **text;
    } texts[] = {{"executable", &meta->executable}, {"host", &meta->host},
                 {"context", &meta->context},       {"params", &meta->runtime_params},
                 {"ocaml", &meta->ocaml_version},   {"writer", &meta->writer}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(key, texts[i].name) == 0) {
            *texts[i].text = strdup(must(m, rest, "text"));
            meta->has_context |= strcmp(key, "context") == 0;
            return;
        }
    }
    if (strcmp(key, "args") == 0) {
        size_t used = 0;
        char *args = calloc(1, strlen(*rest) + 2);
        while ((copy = word(rest)) != NULL) {
            strcpy(args + used, copy);
            used += strlen(copy) + 1;
            meta->n_args++;
        }
        meta->args = args;
    } else if (strcmp(key, "rate") == 0) {
        meta->sample_rate = strtod(must(m, rest, "rate"), NULL);
    } else if (strcmp(key, "rate_origin") == 0) {
        meta->rate_origin = (enum sm_rate_origin)number(m, rest);
    } else if (strcmp(key, "word_bits") == 0) {
        meta->word_bits = (uint32_t)number(m, rest);
    } else if (strcmp(key, "pid") == 0) {
        meta->pid = number(m, rest);
    } else if (strcmp(key, "start_ns") == 0) {
        meta->start_real_ns = (int64_t)number(m, rest);
        meta->anchor_real_ns = (uint64_t)meta->start_real_ns;
        meta->anchor_clock_ns = START_TICKS * 1000ull;
    } else if (strcmp(key, "depth_limit") == 0) {
        meta->depth_limit = (uint32_t)number(m, rest);
    } else if (strcmp(key, "mode") == 0) {
        meta->mode = (enum sm_mode)number(m, rest);
    } else if (strcmp(key, "kind") == 0) {
        meta->ocaml_kind = (enum sm_ocaml_kind)number(m, rest);
    } else {
        die(m, "unknown meta key");
    }
}

static void add_location(struct maker *m, char **rest) {
    uint64_t code = number(m, rest);
    if (m->n_pending > 0 && code != m->pending_code)
        flush_locations(m);
    m->pending_code = code;
    struct sm_location *l = &m->pending[m->n_pending++];
    *l = (struct sm_location){.file = strdup(must(m, rest, "file")),
                              .function = strdup(must(m, rest, "function"))};
    l->line = l->end_line = (uint32_t)number(m, rest);
    l->start_char = (uint32_t)number(m, rest);
    l->end_char = (uint32_t)number(m, rest);
    char *flags = word(rest);
    l->flags = flags != NULL ? (uint8_t)strtoul(flags, NULL, 0) : 0;
}

static void object(struct maker *m, char **rest, struct sm_event *e) {
    char *end, *w = must(m, rest, "object");
    e->obj_stream = (uint32_t)strtoul(w, &end, 0);
    if (*end != ':')
        die(m, "STREAM:SEQ");
    e->obj_seq = strtoull(end + 1, NULL, 0);
}

static void put(struct maker *m, struct sm_event *e, const uint64_t *codes) {
    struct sm_error err;
    flush_locations(m);
    start(m);
    e->ticks = START_TICKS + m->now;
    if (e->stream >= MAX_STREAMS)
        die(m, "too many streams");
    check(m,
          sm_native_writer_event(m->writer, e, codes,
                                 m->has_owner[e->stream] ? &m->owners[e->stream] : NULL, &err),
          &err);
    m->end.n_events++;
}

static void alloc(struct maker *m, char **rest) {
    struct sm_event e = {.kind = SM_EVENT_ALLOC};
    uint64_t codes[4096];
    object(m, rest, &e);
    e.stream = e.obj_stream;
    e.size = number(m, rest);
    e.n_samples = number(m, rest);
    static const char *const heaps[] = {"minor", "major", "external", "native"};
    char *w = must(m, rest, "heap");
    while (e.heap < 4 && strcmp(heaps[e.heap], w) != 0)
        e.heap++;
    while ((w = word(rest)) != NULL) {
        if (strncmp(w, "origin=", 7) == 0) {
            e.origin = (uint8_t)strtoul(w + 7, NULL, 0);
        } else if (strcmp(w, "bytes") == 0) {
            e.flags |= SM_EVENT_SIZE_IN_BYTES;
        } else {
            for (char *code = strtok(w, ","); code != NULL && e.n_frames < 4096;
                 code = strtok(NULL, ","))
                codes[e.n_frames++] = strtoull(code, NULL, 0);
        }
    }
    put(m, &e, codes);
}

static void pairs(struct maker *m, char *text, bool gc, uint8_t *to, uint32_t *bytes) {
    uint8_t *p = to;
    for (char *pair = strtok(text, ","); pair != NULL; pair = strtok(NULL, ",")) {
        char *end;
        uint64_t key = strtoull(pair, &end, 0);
        int64_t value = strtoll(end + 1, NULL, 0);
        if (gc) {
            m->end.gc[m->end.n_gc].counter = key;
            m->end.gc[m->end.n_gc++].value = value;
        } else {
            p = sm_put_zz(sm_put_leb(p, key), value);
        }
    }
    *bytes = (uint32_t)(p - to);
}

static void extension(struct maker *m, char **rest, uint8_t op) {
    uint8_t payload[1024];
    struct sm_event e = {.kind = SM_EVENT_EXTENSION, .op = op, .payload = payload};
    e.stream = (uint32_t)number(m, rest);
    char *text = must(m, rest, "text");
    if (op == SM_OP_MARK) {
        e.payload = (uint8_t *)text;
        e.payload_bytes = (uint32_t)strlen(text);
    } else {
        pairs(m, text, false, payload, &e.payload_bytes);
    }
    put(m, &e, NULL);
}

static void command(struct maker *m, char *line) {
    char *rest = line;
    char *w = word(&rest);
    struct sm_event e = {0};
    uint32_t bytes;
    uint8_t unused[1];
    if (w == NULL || *w == '#')
        return;
    if (strcmp(w, "meta") == 0) {
        set_meta(m, &rest);
    } else if (strcmp(w, "loc") == 0) {
        add_location(m, &rest);
    } else if (strcmp(w, "owner") == 0) {
        uint32_t stream = (uint32_t)number(m, &rest);
        if (stream >= MAX_STREAMS)
            die(m, "too many streams");
        struct sm_owner *o = &m->owners[stream];
        uint32_t incarnation = m->has_owner[stream] ? o->incarnation + 1 : 0;
        *o =
            (struct sm_owner){.stream = stream, .kind = SM_OWNER_OCAML, .incarnation = incarnation};
        o->domain = number(m, &rest);
        o->tid = number(m, &rest);
        char *name = word(&rest);
        o->name = name != NULL ? strdup(name) : "";
        m->has_owner[stream] = true;
    } else if (strcmp(w, "at") == 0) {
        m->now = number(m, &rest);
    } else if (strcmp(w, "alloc") == 0) {
        alloc(m, &rest);
    } else if (strcmp(w, "promote") == 0 || strcmp(w, "collect") == 0) {
        e.kind = *w == 'p' ? SM_EVENT_PROMOTE : SM_EVENT_COLLECT;
        e.stream = (uint32_t)number(m, &rest);
        object(m, &rest, &e);
        put(m, &e, NULL);
    } else if (strcmp(w, "mark") == 0) {
        extension(m, &rest, SM_OP_MARK);
    } else if (strcmp(w, "counters") == 0) {
        extension(m, &rest, SM_OP_COUNTERS);
    } else if (strcmp(w, "gc") == 0) {
        pairs(m, must(m, &rest, "K=V"), true, unused, &bytes);
    } else if (strcmp(w, "end") == 0) {
        m->end.reason = (enum sm_end_reason)number(m, &rest);
        char *status = word(&rest);
        m->end.has_exit_status = status != NULL;
        m->end.exit_status = status != NULL ? (uint32_t)strtoul(status, NULL, 0) : 0;
    } else {
        die(m, "unknown word");
    }
}

int main(int argc, char **argv) {
    struct maker m = {.meta = {.format = SM_TRACE_NATIVE,
                               .sample_rate = 1,
                               .word_bits = 64,
                               .tick_ns = 1000,
                               .start_ticks = START_TICKS,
                               .clock = SM_CLOCK_MONOTONIC,
                               .anchor_clock_ns = START_TICKS * 1000ull,
                               .session = 7,
                               .pid = 42,
                               .executable = "prog",
                               .host = "",
                               .runtime_params = "",
                               .context = "",
                               .args = "",
                               .ocaml_version = "",
                               .writer = "",
                               .arch = "",
                               .boot_id = ""}};
    FILE *in = argc == 3 ? fopen(argv[1], "r") : NULL;
    m.out = argc == 3 ? fopen(argv[2], "wb") : NULL;
    if (in == NULL || m.out == NULL) {
        fputs("usage: mktrace TEXT TRACE\n", stderr);
        return 2;
    }
    static char line[1 << 16];
    while (fgets(line, sizeof line, in) != NULL) {
        m.line++;
        command(&m, line);
    }
    struct sm_error err;
    flush_locations(&m);
    start(&m);
    m.end.end_ticks = START_TICKS + m.now;
    check(&m, sm_native_writer_close(m.writer, &m.end, &err), &err);
    sm_native_writer_free(m.writer);
    fclose(in);
    return fclose(m.out) == 0 ? 0 : 1;
}
