/* Makes a native trace from lines of text, so that tests can name every event and know every answer.

   Usage: mktrace TEXT TRACE

     meta KEY VALUE              executable, host, context, params, ocaml, writer, args (words), rate,
                                 native_interval, rate_origin, word_bits, pid, session, start_ns, depth_limit, mode, kind
     loc CODE FILE FUNCTION LINE START END [FLAGS]
                                 repeated for one code: inlined, outermost first
     owner STREAM DOMAIN TID [NAME]   from here on; DOMAIN native: a thread of no domain
     at TICKS                    since the start
     alloc STREAM:SEQ SIZE SAMPLES HEAP [origin=N] [bytes] [CODE,CODE,...]   outermost first
     promote STREAM STREAM:SEQ   the stream that does it, the object
     collect STREAM STREAM:SEQ
     mark STREAM TEXT
     pause STREAM KIND NS    a pause for a collection
     counters STREAM K=V,K=V
     gc K=V                      a counter of the END packet
     end REASON [EXIT_STATUS]    0 = leave the trace unclosed (INDEX and END are cut off by the test)

   In words \xNN stands for any byte and \_ for a blank; "#" begins a comment line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "encode/tlv.h"
#include "trace_builder.h"

#define MAX_STREAMS 64
#define START_TICKS 1000000

struct maker {
    struct tb b;
    bool started;
    uint8_t meta_room[1 << 17];
    struct sm_tlv_writer meta;
    double rate;
    uint64_t word_bits, pid, start_ns;
    const char *executable;
    struct sm_source_location pending[64]; /* of pending_code */
    uint64_t pending_code;
    uint32_t n_pending;
    uint64_t now;
    uint8_t gc[256], *gc_end;
    uint64_t reason, exit_status;
    bool has_exit_status;
    unsigned line;
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

/* META is written when the first event or name comes. */
static void start(struct maker *m) {
    if (m->started)
        return;
    m->started = true;
    uint8_t anchor[16];
    sm_put_u64le(anchor, START_TICKS * 1000ull);
    sm_put_u64le(anchor + 8, m->start_ns);
    sm_tlv_leb(&m->meta, SM_META_FORMAT_VERSION, SM_FORMAT_VERSION);
    sm_tlv_leb(&m->meta, SM_META_TICK_NS, 1000);
    sm_tlv_leb(&m->meta, SM_META_CLOCK, SM_CLOCK_MONOTONIC);
    sm_tlv_bytes(&m->meta, SM_META_ANCHOR, anchor, sizeof anchor);
    sm_tlv_f64(&m->meta, SM_META_SAMPLE_RATE, m->rate);
    sm_tlv_leb(&m->meta, SM_META_WORD_SIZE, m->word_bits);
    sm_tlv_leb(&m->meta, SM_META_PID, m->pid);
    sm_tlv_text(&m->meta, SM_META_EXECUTABLE, m->executable);
    m->b.start_ticks = START_TICKS;
    m->b.pid = (uint32_t)m->pid;
    struct sm_packet_header h = {.kind = SM_PACKET_META, .ts_begin_ticks = START_TICKS};
    tb_packet(&m->b, &h, m->meta_room, m->meta.used);
}

static void flush_locations(struct maker *m) {
    if (m->n_pending == 0)
        return;
    start(m);
    if (!sm_syms_encode(&m->b.syms, m->pending_code, m->pending, m->n_pending))
        die(m, "too many names");
    for (uint32_t i = 0; i < m->n_pending; i++) {
        free((char *)m->pending[i].file);
        free((char *)m->pending[i].function);
    }
    m->n_pending = 0;
}

static void set_meta(struct maker *m, char **rest) {
    char *key = must(m, rest, "key"), *w;
    static const struct {
        const char *name;
        uint32_t tag;
    } texts[] = {{"host", SM_META_HOST},
                 {"context", SM_META_CONTEXT},
                 {"params", SM_META_RUNTIME_PARAMS},
                 {"ocaml", SM_META_OCAML_VERSION},
                 {"writer", SM_META_WRITER},
                 {"arch", SM_META_ARCH}},
      numbers[] = {{"rate_origin", SM_META_RATE_ORIGIN},
                   {"depth_limit", SM_META_DEPTH_LIMIT},
                   {"mode", SM_META_MODE},
                   {"native_interval", SM_META_NATIVE_INTERVAL},
                   {"kind", SM_META_OCAML_KIND},
                   {"parent_pid", SM_META_PARENT_PID},
                   {"imported", SM_META_IMPORTED_FROM}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(key, texts[i].name) == 0) {
            sm_tlv_text(&m->meta, texts[i].tag, must(m, rest, "text"));
            return;
        }
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(key, numbers[i].name) == 0) {
            sm_tlv_leb(&m->meta, numbers[i].tag, number(m, rest));
            return;
        }
    }
    if (strcmp(key, "args") == 0) {
        size_t used = 0;
        char *args = calloc(1, strlen(*rest) + 2);
        while ((w = word(rest)) != NULL) {
            strcpy(args + used, w);
            used += strlen(w) + 1;
        }
        sm_tlv_bytes(&m->meta, SM_META_ARGS, args, used);
        free(args);
    } else if (strcmp(key, "executable") == 0) {
        m->executable = strdup(must(m, rest, "text"));
    } else if (strcmp(key, "rate") == 0) {
        m->rate = strtod(must(m, rest, "rate"), NULL);
    } else if (strcmp(key, "word_bits") == 0) {
        m->word_bits = number(m, rest);
    } else if (strcmp(key, "pid") == 0) {
        m->pid = number(m, rest);
    } else if (strcmp(key, "session") == 0) {
        m->b.session = number(m, rest);
    } else if (strcmp(key, "start_ns") == 0) {
        m->start_ns = number(m, rest);
    } else {
        die(m, "unknown meta key");
    }
}

static void add_location(struct maker *m, char **rest) {
    uint64_t code = number(m, rest);
    if (m->n_pending > 0 && code != m->pending_code)
        flush_locations(m);
    m->pending_code = code;
    struct sm_source_location *l = &m->pending[m->n_pending++];
    *l = (struct sm_source_location){.file = strdup(must(m, rest, "file")),
                                     .function = strdup(must(m, rest, "function"))};
    l->file_bytes = strlen(l->file);
    l->function_bytes = strlen(l->function);
    l->line = l->end_line = (uint32_t)number(m, rest);
    l->start_char = (uint32_t)number(m, rest);
    l->end_char = (uint32_t)number(m, rest);
    char *flags = word(rest);
    l->flags = flags != NULL ? (uint8_t)strtoul(flags, NULL, 0) : 0;
}

static uint32_t stream(struct maker *m, char **rest) {
    uint64_t s = number(m, rest);
    if (s >= MAX_STREAMS)
        die(m, "too many streams");
    flush_locations(m);
    start(m);
    return (uint32_t)s;
}

/* STREAM:SEQ */
static uint64_t object(struct maker *m, char **rest, uint32_t *s) {
    char *end, *w = must(m, rest, "object");
    *s = (uint32_t)strtoul(w, &end, 0);
    if (*end != ':' || *s >= MAX_STREAMS)
        die(m, "STREAM:SEQ");
    flush_locations(m);
    start(m);
    return strtoull(end + 1, NULL, 0);
}

static void alloc(struct maker *m, char **rest) {
    uint64_t codes[4096];
    uint32_t s, n_codes = 0;
    uint64_t seq = object(m, rest, &s), size = number(m, rest), samples = number(m, rest);
    unsigned heap = 0, origin = 0;
    bool bytes = false;
    static const char *const heaps[] = {"minor", "major", "external", "native"};
    char *w = must(m, rest, "heap");
    while (heap < 4 && strcmp(heaps[heap], w) != 0)
        heap++;
    while ((w = word(rest)) != NULL) {
        if (strncmp(w, "origin=", 7) == 0) {
            origin = (unsigned)strtoul(w + 7, NULL, 0);
        } else if (strcmp(w, "bytes") == 0) {
            bytes = true;
        } else {
            for (char *code = strtok(w, ","); code != NULL && n_codes < 4096;
                 code = strtok(NULL, ","))
                codes[n_codes++] = strtoull(code, NULL, 0);
        }
    }
    if (tb_alloc_full(&m->b, s, START_TICKS + m->now, size, bytes, samples, SM_SOURCE(heap, origin),
                      codes, n_codes) != seq)
        die(m, "the object has another number");
}

static void ref(struct maker *m, char **rest, bool collect) {
    uint32_t by = stream(m, rest), s;
    uint64_t seq = object(m, rest, &s);
    tb_ref(&m->b, by, START_TICKS + m->now, collect, s, seq);
}

static uint8_t *put_pairs(uint8_t *p, char *text) {
    for (char *pair = strtok(text, ","); pair != NULL; pair = strtok(NULL, ",")) {
        char *end;
        uint64_t key = strtoull(pair, &end, 0);
        p = sm_put_zz(sm_put_leb(p, key), strtoll(end + 1, NULL, 0));
    }
    return p;
}

static void extension(struct maker *m, char **rest, uint8_t op) {
    uint8_t payload[1024];
    uint32_t s = stream(m, rest);
    char *text = must(m, rest, "text");
    if (op == SM_OP_MARK)
        tb_extension(&m->b, s, START_TICKS + m->now, op, text, strlen(text));
    else
        tb_extension(&m->b, s, START_TICKS + m->now, op, payload,
                     (size_t)(put_pairs(payload, text) - payload));
}

static void gc_pause(struct maker *m, char **rest) {
    uint8_t payload[1 + 2 * SM_LEB_MAX_BYTES] = {SM_GC_PHASE_PAUSE};
    uint32_t s = stream(m, rest);
    uint8_t *p = sm_put_leb(payload + 1, number(m, rest));
    p = sm_put_leb(p, number(m, rest));
    tb_extension(&m->b, s, START_TICKS + m->now, SM_OP_GC_PHASE, payload, (size_t)(p - payload));
}

static void owner(struct maker *m, char **rest) {
    uint8_t room[4096];
    struct sm_tlv_writer w = {room, sizeof room, 0, false};
    uint32_t s = stream(m, rest);
    char *domain = must(m, rest, "domain");
    bool native = strcmp(domain, "native") == 0;
    if (!native)
        sm_tlv_leb(&w, SM_OWNER_DOMAIN, strtoull(domain, NULL, 0));
    sm_tlv_leb(&w, SM_OWNER_TID, number(m, rest));
    sm_tlv_leb(&w, SM_OWNER_KIND, native ? SM_OWNER_NATIVE : SM_OWNER_OCAML);
    char *name = word(rest);
    if (name != NULL)
        sm_tlv_text(&w, SM_OWNER_NAME, name);
    tb_extension(&m->b, s, START_TICKS + m->now, SM_OP_OWNER, room, w.used);
}

static void command(struct maker *m, char *line) {
    char *rest = line;
    char *w = word(&rest);
    if (w == NULL || *w == '#')
        return;
    if (strcmp(w, "meta") == 0) {
        set_meta(m, &rest);
    } else if (strcmp(w, "loc") == 0) {
        add_location(m, &rest);
    } else if (strcmp(w, "owner") == 0) {
        owner(m, &rest);
    } else if (strcmp(w, "at") == 0) {
        m->now = number(m, &rest);
    } else if (strcmp(w, "alloc") == 0) {
        alloc(m, &rest);
    } else if (strcmp(w, "promote") == 0 || strcmp(w, "collect") == 0) {
        ref(m, &rest, *w == 'c');
    } else if (strcmp(w, "mark") == 0) {
        extension(m, &rest, SM_OP_MARK);
    } else if (strcmp(w, "counters") == 0) {
        extension(m, &rest, SM_OP_COUNTERS);
    } else if (strcmp(w, "pause") == 0) {
        gc_pause(m, &rest);
    } else if (strcmp(w, "flush") == 0) {
        tb_flush_all(&m->b);
    } else if (strcmp(w, "gc") == 0) {
        m->gc_end = put_pairs(m->gc_end, must(m, &rest, "K=V"));
    } else if (strcmp(w, "end") == 0) {
        m->reason = number(m, &rest);
        char *status = word(&rest);
        m->has_exit_status = status != NULL;
        m->exit_status = status != NULL ? strtoul(status, NULL, 0) : 0;
    } else {
        die(m, "unknown word");
    }
}

/* END without an INDEX: nothing depends on that. */
static void finish(struct maker *m) {
    uint8_t room[512];
    struct sm_tlv_writer w = {room, sizeof room - SM_END_TRAILER_BYTES, 0, false};
    flush_locations(m);
    start(m);
    tb_flush_names(&m->b);
    tb_flush_all(&m->b);
    if (m->reason == UINT64_MAX)
        return;
    sm_tlv_leb(&w, SM_END_REASON, m->reason);
    sm_tlv_leb(&w, SM_END_N_EVENTS, m->b.n_events);
    if (m->has_exit_status)
        sm_tlv_leb(&w, SM_END_EXIT_STATUS, m->exit_status);
    if (m->gc_end > m->gc)
        sm_tlv_bytes(&w, SM_END_GC, m->gc, (size_t)(m->gc_end - m->gc));
    sm_put_u64le(room + w.used, 0);
    sm_put_u32le(room + w.used + 8,
                 (uint32_t)(SM_PACKET_HEADER_BYTES + w.used + SM_END_TRAILER_BYTES));
    memcpy(room + w.used + 12, SM_END_TRAILER_MAGIC, 4);
    struct sm_packet_header h = {.kind = SM_PACKET_END, .ts_begin_ticks = START_TICKS + m->now};
    tb_packet(&m->b, &h, room, w.used + SM_END_TRAILER_BYTES);
}

int main(int argc, char **argv) {
    static struct maker m = {
        .rate = 1, .word_bits = 64, .pid = 42, .executable = "prog", .reason = UINT64_MAX};
    m.meta = (struct sm_tlv_writer){m.meta_room, sizeof m.meta_room, 0, false};
    m.gc_end = m.gc;
    FILE *in = argc == 3 ? fopen(argv[1], "r") : NULL;
    if (in == NULL) {
        fputs("usage: mktrace TEXT TRACE\n", stderr);
        return 2;
    }
    tb_init(&m.b, MAX_STREAMS);
    static char line[1 << 16];
    while (fgets(line, sizeof line, in) != NULL) {
        m.line++;
        command(&m, line);
    }
    finish(&m);
    tb_save(&m.b, argv[2]);
    tb_release(&m.b);
    return fclose(in);
}
