#include "convert/convert.h"

#include <stdlib.h>
#include <string.h>

#include "convert/convert_internal.h"
#include "convert/native_writer.h"
#include "convert/temporary.h"
#include "merge/cursor.h"
#include "util/map.h"
#include "util/memory.h"

void sm_event_codes(const struct sm_trace *t, const struct sm_event *e, struct sm_code_buffer *b) {
    if (b->capacity < e->n_frames)
        b->codes = sm_grow(b->codes, &b->capacity, e->n_frames, sizeof *b->codes);
    for (uint32_t i = 0; i < e->n_frames; i++)
        b->codes[i] = sm_trace_location_code(t, e->frames[i]);
}

/* ---- native ---- */

/* A trace that was closed keeps the figures of its END. What was lost of it, now or earlier (the reader
   reports that too), stays known. */
struct sm_end sm_convert_end_of(const struct sm_trace *t) {
    struct sm_end end = *sm_trace_end(t);
    const struct sm_loss *losses;
    size_t n = sm_trace_losses(t, &losses);
    if (!end.present) {
        end.reason = SM_REASON_CONVERTED;
        for (size_t i = 0; i < n; i++)
            if (losses[i].kind == SM_LOSS_DISCARDED)
                end.discarded += losses[i].events;
    }
    end.owners = end.peak_streams = 0; /* as written now */
    end.lost_events = end.lost_bytes = end.lost_names = 0;
    for (size_t i = 0; i < n; i++) {
        switch (losses[i].kind) {
        case SM_LOSS_CUT:
        case SM_LOSS_GARBAGE:
        case SM_LOSS_CORRUPT:
        case SM_LOSS_GAP:
        case SM_LOSS_UNSUPPORTED:
            end.lost_events += losses[i].events;
            end.lost_bytes += losses[i].bytes;
            break;
        case SM_LOSS_NAMES:
            end.lost_names += losses[i].events;
            break;
        default:
            break;
        }
    }
    return end;
}

static enum sm_status copy_events(struct sm_trace *t, struct sm_native_writer *w,
                                  struct sm_convert_result *r, struct sm_error *err) {
    struct sm_cursor *cursor;
    struct sm_event e;
    struct sm_code_buffer codes = {0};
    if (sm_cursor_new(&cursor, t, SM_CURSOR_STACKS | SM_CURSOR_EXTENSIONS, err) != SM_OK)
        return SM_FAILED;
    enum sm_status status = SM_OK;
    while (status == SM_OK && sm_cursor_next(cursor, &e) == SM_OK) {
        if (e.kind == SM_EVENT_EXTENSION && e.op == SM_OP_OWNER)
            continue;
        const struct sm_owner *owner = sm_trace_owner(t, e.owner);
        sm_event_codes(t, &e, &codes);
        r->n_events++;
        r->n_alloc += e.kind == SM_EVENT_ALLOC;
        r->n_promote += e.kind == SM_EVENT_PROMOTE;
        r->n_collect += e.kind == SM_EVENT_COLLECT;
        r->n_cut += (e.flags & SM_EVENT_STACK_CUT) != 0;
        r->n_lost_stacks += (e.flags & SM_EVENT_STACK_LOST) != 0;
        status = sm_native_writer_event(w, &e, codes.codes, owner, err);
    }
    sm_cursor_free(cursor);
    free(codes.codes);
    return status;
}

enum sm_status sm_convert_names(struct sm_trace *t, struct sm_native_writer *w,
                                struct sm_error *err) {
    uint32_t n = sm_trace_n_locations(t);
    for (uint32_t id = 0; id < n; id++) {
        const struct sm_location *list;
        uint32_t length = sm_trace_location(t, id, &list);
        uint64_t code = sm_trace_location_code(t, id);
        if (code != SM_LOCATION_CUT &&
            sm_native_writer_location(w, code, list, length, err) != SM_OK)
            return SM_FAILED;
    }
    return SM_OK;
}

enum sm_status sm_convert_to_native(struct sm_trace *t, FILE *out,
                                    const struct sm_convert_options *options,
                                    struct sm_convert_result *result, struct sm_error *err) {
    struct sm_native_writer *w;
    struct sm_native_writer_options wo = {.compress = options->compress};
    struct sm_meta meta = *sm_trace_meta(t);
    if (meta.format != SM_TRACE_NATIVE) {
        meta.imported_from = (uint32_t)meta.format;
        meta.mode = SM_MODE_CONVERTED;
        meta.writer = "statmem " SM_VERSION;
    }
    if (sm_native_writer_new(&w, out, &meta, &wo, err) != SM_OK)
        return SM_FAILED;
    enum sm_status status = copy_events(t, w, result, err);
    if (status == SM_OK)
        status = sm_convert_names(t, w, err);
    if (status == SM_OK) {
        struct sm_end end = sm_convert_end_of(t);
        status = sm_native_writer_close(w, &end, err);
    }
    sm_native_writer_free(w);
    return status;
}

/* ---- all ---- */

static uint64_t count_domains(const struct sm_trace *t) {
    uint64_t n = 0;
    uint32_t owners = sm_trace_n_owners(t);
    struct sm_map seen = {0};
    for (uint32_t i = 0; i < owners; i++) {
        bool found;
        sm_map_place(&seen, sm_trace_owner(t, i)->domain, 0, &found);
        n += !found;
    }
    sm_map_release(&seen);
    return n;
}

enum sm_status sm_convert(struct sm_trace *t, FILE *out, const char *path,
                          const struct sm_convert_options *options,
                          struct sm_convert_result *result, struct sm_error *err) {
    *result = (struct sm_convert_result){0};
    enum sm_status status = options->target == SM_TO_NATIVE
                                ? sm_convert_to_native(t, out, options, result, err)
                                : sm_convert_to_memtrace(t, out, path, options, result, err);
    if (status == SM_OK) {
        result->n_domains = count_domains(t);
        if (out != NULL && ftello(out) > 0)
            result->bytes = (uint64_t)ftello(out);
    }
    return status;
}

enum sm_status sm_convert_memtrace_file(const char *from, const char *to, struct sm_error *err) {
    static const struct sm_convert_options options = {.target = SM_TO_MEMTRACE_3,
                                                      .order = SM_MEMTRACE_EXACT};
    struct sm_convert_result result;
    struct sm_temporary file;
    struct sm_trace *t;
    if (sm_trace_open(&t, from, NULL, err) != SM_OK)
        return SM_FAILED;
    enum sm_status status = sm_temporary_open(&file, to, 0600, err);
    if (status == SM_OK) {
        status = sm_convert(t, file.out, NULL, &options, &result, err);
        if (status == SM_OK)
            status = sm_temporary_keep(&file, err);
        else
            sm_temporary_discard(&file);
    }
    sm_trace_free(t);
    return status;
}
