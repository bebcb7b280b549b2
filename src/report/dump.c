/* See dump.h. The text of each frame is made once and copied from then on: stacks are most of the
   output, and a program has few places compared with events. */
#include "report/dump.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "merge/cursor.h"
#include "report/naming.h"
#include "util/json.h"
#include "util/memory.h"
#include "util/text.h"

struct dump {
    struct sm_trace *t;
    const struct sm_dump_options *options;
    struct sm_buffer *out;
    struct sm_buffer texts; /* of all frames seen, one after the other */
    struct frame_text {
        size_t offset;
        uint32_t bytes;
        bool made;
    } * frames; /* by location id */
    size_t frames_capacity;
    unsigned decimals; /* of seconds */
    uint64_t unit;     /* ns in the last decimal */
};

/* ---- frames ---- */

static void append_safe(struct sm_buffer *to, const char *text) {
    sm_text_safe(to, text, strlen(text));
}

static void frame_as_text(struct dump *d, uint32_t id, const struct sm_location *list, uint32_t n) {
    struct sm_buffer place;
    sm_buffer_init(&place, -1);
    for (uint32_t i = n; i-- > 0;) { /* innermost first */
        append_safe(&d->texts, sm_function(&list[i]));
        place.used = 0;
        sm_place(&place, &list[i], true);
        if (place.used > 0) {
            sm_buffer_char(&d->texts, ' ');
            sm_text_safe(&d->texts, place.data, place.used);
        }
        if (i > 0)
            sm_buffer_text(&d->texts, " < ");
    }
    if (n == 0)
        sm_nameless_frame(&d->texts, sm_trace_location_code(d->t, id), d->options->utf8);
    sm_buffer_release(&place);
}

static void frame_as_json(struct dump *d, uint32_t id, const struct sm_location *list, uint32_t n) {
    struct sm_json j;
    sm_json_init(&j, &d->texts, true);
    for (uint32_t i = n; i-- > 0;) {
        const struct sm_location *l = &list[i];
        sm_json_open(&j, NULL, '{');
        sm_json_text(&j, "function", l->function);
        sm_json_text(&j, "file", l->file);
        sm_json_u64(&j, "line", l->line);
        if (l->end_line != l->line)
            sm_json_u64(&j, "end_line", l->end_line);
        if (!(l->flags & SM_SYMS_NO_COLUMNS)) {
            sm_json_u64(&j, "start_char", l->start_char);
            if (l->flags & SM_SYMS_CLAMPED)
                sm_json_bool(&j, "clamped", true);
            sm_json_u64(&j, "end_char", l->end_char);
        }
        if (i > 0)
            sm_json_bool(&j, "inlined_below", true);
        sm_json_close(&j, '}');
    }
    if (n > 0)
        return;
    uint64_t code = sm_trace_location_code(d->t, id);
    sm_json_open(&j, NULL, '{');
    if (code == SM_LOCATION_CUT)
        sm_json_bool(&j, "cut", true);
    else
        sm_json_u64(&j, "code", code);
    sm_json_close(&j, '}');
}

static const struct frame_text *frame_text(struct dump *d, uint32_t id) {
    if (id >= d->frames_capacity) {
        size_t old = d->frames_capacity;
        d->frames = sm_grow(d->frames, &d->frames_capacity, (size_t)id + 1, sizeof *d->frames);
        memset(d->frames + old, 0, (d->frames_capacity - old) * sizeof *d->frames);
    }
    struct frame_text *f = &d->frames[id];
    if (!f->made) {
        const struct sm_location *list;
        uint32_t n = sm_trace_location(d->t, id, &list);
        size_t offset = d->texts.used;
        if (d->options->json)
            frame_as_json(d, id, list, n);
        else
            frame_as_text(d, id, list, n);
        *f = (struct frame_text){
            .offset = offset, .bytes = (uint32_t)(d->texts.used - offset), .made = true};
    }
    return f;
}

static void stack(struct dump *d, const struct sm_event *e, const char *separator) {
    for (uint32_t i = e->n_frames; i-- > 0;) {
        const struct frame_text *f = frame_text(d, e->frames[i]);
        sm_buffer_bytes(d->out, d->texts.data + f->offset, f->bytes);
        if (i > 0)
            sm_buffer_text(d->out, separator);
    }
}

/* ---- extension records ---- */

static const char *extension_name(unsigned op) {
    static const char *const names[] = {"owner",      "mark",   "counters", "gc_phase",
                                        "clock_sync", "module", "discard"};
    unsigned i = op - SM_OP_EXTENSION_MIN;
    return i < sizeof names / sizeof *names ? names[i] : "extension";
}

/* Pairs `LEB key, LEB or zz value`. */
static bool next_pair(const uint8_t **p, const uint8_t *end, bool zigzag, uint64_t *key,
                      int64_t *value) {
    uint64_t raw;
    if (!sm_get_leb(p, end, key) || !sm_get_leb(p, end, &raw))
        return false;
    *value = zigzag ? sm_unzigzag(raw) : (int64_t)raw;
    return true;
}

static void put_phase(struct dump *d, const struct sm_event *e, uint64_t phase, const uint8_t *p) {
    uint64_t ns;
    if (e->payload[0] != SM_GC_PHASE_PAUSE)
        sm_buffer_printf(d->out, "%s %" PRIu64, e->payload[0] == 0 ? "begin" : "end", phase);
    else if (sm_get_leb(&p, e->payload + e->payload_bytes, &ns))
        sm_buffer_printf(d->out, "%s of %.1f ms", sm_gc_pause_name(phase), (double)ns * 1e-6);
}

static void extension_text(struct dump *d, const struct sm_event *e) {
    const uint8_t *p = e->payload, *end = p + e->payload_bytes;
    uint64_t key, phase;
    int64_t value;
    sm_buffer_char(d->out, ' ');
    switch (e->op) {
    case SM_OP_MARK:
        sm_text_safe(d->out, (const char *)p, e->payload_bytes);
        break;
    case SM_OP_COUNTERS:
        while (next_pair(&p, end, true, &key, &value)) {
            const char *name = sm_counter_name(key);
            sm_buffer_printf(d->out, "%s=%" PRId64 " ", name != NULL ? name : "?", value);
        }
        break;
    case SM_OP_DISCARD:
        while (next_pair(&p, end, false, &key, &value))
            sm_buffer_printf(d->out, "%" PRId64 " (%s) ", value, sm_discard_reason_name(key));
        break;
    case SM_OP_GC_PHASE:
        if (p < end && (p++, sm_get_leb(&p, end, &phase)))
            put_phase(d, e, phase, p);
        break;
    case SM_OP_OWNER: {
        const struct sm_owner *owner = sm_trace_owner(d->t, e->owner);
        sm_buffer_printf(d->out, "stream %" PRIu32 " thread %" PRIu64 " ", e->stream, owner->tid);
        append_safe(d->out, owner->name);
        break;
    }
    default:
        sm_buffer_printf(d->out, "%" PRIu32 " bytes", e->payload_bytes);
    }
    while (d->out->used > 0 && d->out->data[d->out->used - 1] == ' ')
        d->out->used--;
}

static void extension_json(struct sm_json *j, const struct sm_event *e,
                           const struct sm_owner *owner) {
    const uint8_t *p = e->payload, *end = p + e->payload_bytes;
    uint64_t key, phase;
    int64_t value;
    switch (e->op) {
    case SM_OP_MARK:
        sm_json_bytes(j, "text", (const char *)p, e->payload_bytes);
        break;
    case SM_OP_COUNTERS:
        sm_json_open(j, "counters", '{');
        while (next_pair(&p, end, true, &key, &value)) {
            char number[32];
            const char *name = sm_counter_name(key);
            snprintf(number, sizeof number, "counter_%" PRIu64, key);
            sm_json_i64(j, name != NULL ? name : number, value);
        }
        sm_json_close(j, '}');
        break;
    case SM_OP_DISCARD:
        sm_json_open(j, "discarded", '[');
        while (next_pair(&p, end, false, &key, &value)) {
            sm_json_open(j, NULL, '{');
            sm_json_text(j, "reason", sm_discard_reason_name(key));
            sm_json_u64(j, "events", (uint64_t)value);
            sm_json_close(j, '}');
        }
        sm_json_close(j, ']');
        break;
    case SM_OP_GC_PHASE:
        if (p < end && (p++, sm_get_leb(&p, end, &phase))) {
            if (e->payload[0] == SM_GC_PHASE_PAUSE) {
                sm_json_text(j, "pause", sm_gc_pause_name(phase));
                if (sm_get_leb(&p, end, &phase))
                    sm_json_u64(j, "ns", phase);
            } else {
                sm_json_bool(j, "begin", e->payload[0] == 0);
                sm_json_u64(j, "phase", phase);
            }
        }
        break;
    case SM_OP_OWNER:
        sm_json_text(j, "name", owner->name);
        break;
    default:
        sm_json_u64(j, "payload_bytes", e->payload_bytes);
    }
}

/* ---- events ---- */

static const char *kind_name(const struct sm_event *e) {
    static const char *const names[] = {"alloc", "promote", "collect"};
    return e->kind < 3 ? names[e->kind] : extension_name(e->op);
}

static void put_time(struct dump *d, int64_t ns) {
    if (ns < 0)
        sm_buffer_char(d->out, '-');
    uint64_t x = (ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns) / d->unit;
    uint64_t scale = d->decimals == 6 ? 1000000 : 1000000000;
    sm_buffer_u64(d->out, x / scale);
    sm_buffer_char(d->out, '.');
    uint64_t fraction = x % scale;
    char *p = sm_buffer_room(d->out, d->decimals);
    for (unsigned i = d->decimals; i-- > 0; fraction /= 10)
        p[i] = (char)('0' + fraction % 10);
    d->out->used += d->decimals;
}

static void put_text(struct dump *d, const struct sm_event *e, int64_t ns) {
    struct sm_buffer *out = d->out;
    put_time(d, ns);
    sm_buffer_bytes(out, " d", 2);
    sm_buffer_u64(out, sm_trace_owner(d->t, e->owner)->domain);
    sm_buffer_char(out, ' ');
    sm_buffer_text(out, kind_name(e));
    if (e->kind == SM_EVENT_EXTENSION) {
        extension_text(d, e);
    } else {
        sm_buffer_char(out, ' ');
        sm_buffer_u64(out, e->obj_stream);
        sm_buffer_char(out, ':');
        sm_buffer_u64(out, e->obj_seq);
        if (e->flags & SM_EVENT_ORPHAN)
            sm_buffer_text(out, " orphan");
    }
    if (e->kind == SM_EVENT_ALLOC) {
        sm_buffer_char(out, ' ');
        sm_buffer_u64(out, e->size);
        sm_buffer_bytes(out, e->flags & SM_EVENT_SIZE_IN_BYTES ? "B " : "w ", 2);
        sm_buffer_text(out, sm_heap_name(e->heap));
        if (e->origin != SM_ORIGIN_NORMAL) {
            sm_buffer_char(out, '/');
            sm_buffer_text(out, sm_origin_name(e->origin));
        }
        sm_buffer_bytes(out, " x", 2);
        sm_buffer_u64(out, e->n_samples);
        if (d->options->stacks) {
            sm_buffer_text(out, e->flags & SM_EVENT_STACK_LOST ? " |? " : " | ");
            if (e->n_frames > 0)
                stack(d, e, " < ");
            else
                sm_buffer_text(out, "[no stack]");
        }
    }
    sm_buffer_char(out, '\n');
}

static void put_json(struct dump *d, const struct sm_event *e, int64_t ns) {
    const struct sm_owner *owner = sm_trace_owner(d->t, e->owner);
    struct sm_json j;
    sm_json_init(&j, d->out, true);
    sm_json_open(&j, NULL, '{');
    sm_json_i64(&j, "time_ns", ns);
    sm_json_text(&j, "event", kind_name(e));
    sm_json_u64(&j, "domain", owner->domain);
    if (owner->tid != 0)
        sm_json_u64(&j, "thread", owner->tid);
    sm_json_u64(&j, "stream", e->stream);
    if (e->kind == SM_EVENT_EXTENSION) {
        extension_json(&j, e, owner);
    } else {
        sm_json_u64(&j, "object_stream", e->obj_stream);
        sm_json_u64(&j, "object_seq", e->obj_seq);
        if (e->flags & SM_EVENT_ORPHAN)
            sm_json_bool(&j, "orphan", true);
    }
    if (e->kind == SM_EVENT_ALLOC) {
        sm_json_u64(&j, e->flags & SM_EVENT_SIZE_IN_BYTES ? "bytes" : "words", e->size);
        sm_json_text(&j, "heap", sm_heap_name(e->heap));
        sm_json_text(&j, "origin", sm_origin_name(e->origin));
        sm_json_u64(&j, "samples", e->n_samples);
        if (e->flags & SM_EVENT_STACK_CUT)
            sm_json_bool(&j, "stack_cut", true);
        if (e->flags & SM_EVENT_STACK_LOST)
            sm_json_bool(&j, "stack_lost", true);
        if (d->options->stacks) {
            sm_json_open(&j, "stack", '['); /* innermost first */
            stack(d, e, ",");
            sm_json_close(&j, ']');
        }
    }
    sm_json_close(&j, '}');
    sm_json_end(&j);
}

static bool wanted(const struct dump *d, const struct sm_event *e) {
    const struct sm_dump_options *o = d->options;
    if (!(o->kinds & 1u << e->kind))
        return false;
    if (o->heap >= 0 && (e->kind != SM_EVENT_ALLOC || e->heap != o->heap))
        return false;
    return !o->has_domain || sm_trace_owner(d->t, e->owner)->domain == o->domain;
}

enum sm_status sm_dump(struct sm_trace *t, const struct sm_dump_options *options,
                       struct sm_buffer *out, struct sm_error *err) {
    struct dump d = {.t = t, .options = options, .out = out, .decimals = 6, .unit = 1000};
    if (sm_trace_meta(t)->tick_ns % 1000 != 0) {
        d.decimals = 9;
        d.unit = 1;
    }
    unsigned flags = (options->stacks ? SM_CURSOR_STACKS : 0) |
                     (options->kinds & SM_DUMP_EXTENSION ? SM_CURSOR_EXTENSIONS : 0);
    struct sm_cursor *c;
    if (sm_cursor_new(&c, t, flags, err) != SM_OK)
        return SM_FAILED;
    sm_buffer_init(&d.texts, -1);
    struct sm_event e;
    uint64_t lines = 0;
    enum sm_status status = SM_END;
    while (lines < options->limit && out->error == 0 && (status = sm_cursor_next(c, &e)) == SM_OK) {
        int64_t ns = sm_trace_time_ns(t, e.ticks);
        if (ns > options->to_ns)
            break; /* the order is by time */
        if (ns < options->from_ns || !wanted(&d, &e))
            continue;
        if (options->json)
            put_json(&d, &e, ns);
        else
            put_text(&d, &e, ns);
        lines++;
    }
    sm_cursor_free(c);
    sm_buffer_release(&d.texts);
    free(d.frames);
    return status == SM_FAILED ? SM_FAILED : SM_OK;
}
