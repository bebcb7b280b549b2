/* Reading a trace's events into raw rows, one stream after another.

   Streams need not be merged for this: an object's end finds its row by number, in its own stream at once, in another
   one when all are read. Numbers of a stream ascend without gaps but where something was lost, so a row is
   found by subtraction. */
#include <stdlib.h>
#include <string.h>

#include "analyze/build.h"
#include "decode/batch.h"
#include "merge/cursor.h"
#include "util/memory.h"

/* Beyond these many nodes new stacks are folded to their allocation site: 64 M nodes are 2 GB. */
#define MAX_CODE_NODES (64u << 20)

void sm_build_init(struct sm_build *b, struct sm_trace *t, const char *directory) {
    memset(b, 0, sizeof *b);
    b->trace = t;
    b->directory = directory;
    b->n_streams = sm_trace_n_streams(t);
    b->streams = sm_alloc_zero(b->n_streams, sizeof *b->streams);
    b->tick_ns = sm_trace_meta(t)->tick_ns;
    for (uint32_t i = 0; i < b->n_streams; i++) {
        sm_vec_init(&b->streams[i].rows, directory);
        sm_vec_init(&b->streams[i].ends, directory);
    }
    sm_code_tree_init(&b->codes, directory, MAX_CODE_NODES);
    sm_vec_init(&b->foreign, directory);
    sm_vec_init(&b->wide_ages, directory);
    sm_texts_init(&b->texts);
    sm_places_init(&b->places, &b->texts);
}

static void release_stream(struct sm_raw_stream *s) {
    sm_vec_release(&s->rows);
    sm_vec_release(&s->runs);
    sm_vec_release(&s->ends);
    sm_vec_release(&s->wide_sizes);
    sm_vec_release(&s->wide_samples);
    sm_map_release(&s->odd);
    sm_code_path_release(&s->path);
}

void sm_build_release(struct sm_build *b) {
    for (uint32_t i = 0; i < b->n_streams; i++)
        release_stream(&b->streams[i]);
    free(b->streams);
    sm_code_tree_release(&b->codes);
    sm_vec_release(&b->foreign);
    sm_vec_release(&b->other_lanes);
    sm_vec_release(&b->late);
    sm_vec_release(&b->wide_ages);
    sm_vec_release(&b->classes);
    sm_vec_release(&b->counters);
    sm_vec_release(&b->marks);
    sm_map_release(&b->class_numbers);
    sm_places_release(&b->places);
    sm_texts_release(&b->texts);
    memset(b, 0, sizeof *b);
}

/* ---- rows by number ---- */

static void note_number(struct sm_raw_stream *s, uint64_t seq, uint32_t row) {
    struct sm_raw_run *runs = s->runs.data;
    struct sm_raw_run *last = s->n_runs > 0 ? &runs[s->n_runs - 1] : NULL;
    if (last != NULL && seq == last->first_seq + last->n && row == last->first_row + last->n) {
        last->n++;
        return;
    }
    if (last != NULL && seq < last->first_seq + last->n) {
        sm_map_put(&s->odd, seq, row);
        return;
    }
    struct sm_raw_run fresh = {.first_seq = seq, .first_row = row, .n = 1};
    *(struct sm_raw_run *)sm_vec_push(&s->runs, sizeof fresh) = fresh;
    s->n_runs++;
}

static inline bool in_run(const struct sm_raw_run *r, uint64_t seq) {
    return seq - r->first_seq < r->n;
}

uint32_t sm_raw_find(struct sm_raw_stream *s, uint64_t seq) {
    const struct sm_raw_run *runs = s->runs.data;
    if (s->n_runs == 0)
        return UINT32_MAX;
    if (__builtin_expect(!in_run(&runs[s->last_run], seq), 0)) {
        uint32_t low = 0, high = s->n_runs; /* the last run that begins at or before seq */
        while (high - low > 1) {
            uint32_t middle = (low + high) / 2;
            if (runs[middle].first_seq <= seq)
                low = middle;
            else
                high = middle;
        }
        s->last_run = low;
        if (!in_run(&runs[low], seq)) {
            uint32_t row;
            return sm_map_get(&s->odd, seq, &row) ? row : UINT32_MAX;
        }
    }
    const struct sm_raw_run *r = &runs[s->last_run];
    return r->first_row + (uint32_t)(seq - r->first_seq);
}

/* ---- events ---- */

static uint32_t class_of(struct sm_build *b, struct sm_raw_stream *s, const struct sm_event *e) {
    bool bytes = (e->flags & SM_EVENT_SIZE_IN_BYTES) != 0;
    uint32_t key = e->owner << 9 | (e->heap & 15u) << 5 | (e->origin & 15u) << 1 | bytes;
    if (__builtin_expect(key == s->class_key && s->n_rows > 0, 1))
        return s->class_id;
    bool found;
    uint32_t fresh = (uint32_t)(b->classes.used_bytes / sizeof(struct sm_row_class));
    uint32_t *place =
        sm_map_place(&b->class_numbers, key | (uint64_t)e->owner << 32, fresh, &found);
    s->class_key = key;
    s->class_id = *place - 1;
    if (!found) {
        struct sm_row_class c = {
            .lane = e->owner,
            .heap = e->heap,
            .origin = e->origin,
            .bytes = bytes,
            .byte_sampled = bytes && e->heap == SM_HEAP_NATIVE &&
                            sm_trace_meta(b->trace)->native_interval_bytes != 0,
        };
        *(struct sm_row_class *)sm_vec_push(&b->classes, sizeof c) = c;
    }
    return s->class_id;
}

/* The reader has clamped what ran backwards within a stream; here it is made sure of. */
static uint64_t in_order(struct sm_raw_stream *s, uint64_t ticks) {
    if (ticks > s->last_ticks)
        s->last_ticks = ticks;
    return s->last_ticks;
}

static void push_wide(struct sm_vec *v, uint32_t row, uint64_t value) {
    struct sm_wide w = {.row = row, .value = value};
    *(struct sm_wide *)sm_vec_push(v, sizeof w) = w;
}

/* The event's frames are those beyond its common prefix, which the stream's path has. */
static void read_alloc(struct sm_build *b, struct sm_raw_stream *s, const struct sm_event *e) {
    uint32_t row = s->n_rows;
    uint32_t class_id = class_of(b, s, e);
    struct sm_raw_row *r = sm_vec_push(&s->rows, sizeof *r);
    r->ticks = in_order(s, e->ticks);
    r->size = e->size < SM_ROW_ESCAPE ? (uint32_t)e->size : SM_ROW_ESCAPE;
    r->samples = e->n_samples < SM_ROW_MANY ? (uint8_t)e->n_samples : SM_ROW_MANY;
    r->class_id = class_id;
    r->promote_age = r->free_age = SM_ROW_NEVER;
    r->code_node = sm_code_path_follow(&s->path, &b->codes, e->frames, e->common_prefix,
                                       e->n_frames, e->flags);
    if (r->size == SM_ROW_ESCAPE)
        push_wide(&s->wide_sizes, row, e->size);
    if (r->samples == SM_ROW_MANY)
        push_wide(&s->wide_samples, row, e->n_samples);
    s->n_rows++;
    note_number(s, e->obj_seq, row);
}

static uint32_t age(struct sm_build *b, uint64_t from_ticks, uint64_t to_ticks) {
    uint64_t ns = to_ticks > from_ticks ? (to_ticks - from_ticks) * b->tick_ns : 0;
    if (__builtin_expect(ns < SM_ROW_WIDE_AGE, 1))
        return (uint32_t)ns;
    uint32_t index = (uint32_t)(b->wide_ages.used_bytes / sizeof(uint64_t));
    if (index >= SM_ROW_WIDE_AGE - 1)
        return SM_ROW_WIDE_AGE - 1; /* 2^31 long-lived rows: the age saturates at 2.1 s */
    sm_vec_push_u64(&b->wide_ages, ns);
    return SM_ROW_WIDE_AGE | index;
}

static void promoted(struct sm_build *b, struct sm_raw_row *r, uint64_t ticks) {
    if (r->promote_age != SM_ROW_NEVER)
        return;
    r->promote_age = age(b, r->ticks, ticks);
    b->n_promoted++;
}

/* False when the object has ended already (damage). */
static bool freed(struct sm_build *b, struct sm_raw_row *r, uint64_t ticks) {
    if (r->free_age != SM_ROW_NEVER)
        return false;
    r->free_age = age(b, r->ticks, ticks);
    b->n_frees++;
    return true;
}

static struct sm_raw_row *raw_row(const struct sm_raw_stream *s, uint32_t row) {
    return (struct sm_raw_row *)s->rows.data + row;
}

static uint32_t push_end(struct sm_raw_stream *teller, uint64_t ticks, uint32_t stream,
                         uint32_t row) {
    struct sm_raw_end *e = sm_vec_push(&teller->ends, sizeof *e);
    *e =
        (struct sm_raw_end){.ticks = ticks, .row = row, .stream = stream, .before = teller->n_rows};
    return (uint32_t)(teller->ends.used_bytes / sizeof *e) - 1;
}

/* Index of a stream among the trace's, UINT32_MAX when it has none. */
static uint32_t stream_index(const struct sm_trace *t, uint32_t id) {
    uint32_t low = 0, high = sm_trace_n_streams(t);
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (sm_trace_stream_id(t, middle) < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < sm_trace_n_streams(t) && sm_trace_stream_id(t, low) == id ? low : UINT32_MAX;
}

static void push_other_lane(struct sm_build *b, uint32_t stream, uint32_t row, uint32_t lane) {
    struct sm_raw_other_lane *o = sm_vec_push(&b->other_lanes, sizeof *o);
    *o = (struct sm_raw_other_lane){.stream = stream, .row = row, .lane = lane};
}

static void read_reference(struct sm_build *b, uint32_t index, const struct sm_event *e) {
    bool free = e->kind == SM_EVENT_COLLECT;
    struct sm_raw_stream *s = &b->streams[index];
    uint64_t ticks = in_order(s, e->ticks);
    if (__builtin_expect(e->obj_stream == e->stream, 1)) {
        uint32_t row = sm_raw_find(s, e->obj_seq);
        if (row == UINT32_MAX)
            return; /* an orphan, which the trace counts */
        struct sm_raw_row *r = raw_row(s, row);
        if (!free) {
            promoted(b, r, ticks);
        } else if (freed(b, r, ticks)) {
            push_end(s, ticks, index, row);
            uint32_t lane = ((struct sm_row_class *)b->classes.data)[r->class_id].lane;
            if (__builtin_expect(lane != e->owner, 0))
                push_other_lane(b, index, row, e->owner);
        }
        return;
    }
    uint32_t of = stream_index(b->trace, e->obj_stream);
    if (of == UINT32_MAX)
        return;
    struct sm_raw_foreign f = {.ticks = ticks,
                               .seq = e->obj_seq,
                               .stream = of,
                               .teller = index,
                               .lane = e->owner,
                               .end = free ? push_end(s, ticks, of, SM_RAW_NO_ROW) : SM_RAW_NO_ROW};
    *(struct sm_raw_foreign *)sm_vec_push(&b->foreign, sizeof f) = f;
}

static bool get_leb(const uint8_t **p, const uint8_t *end, uint64_t *x) {
    uint64_t value = 0;
    for (unsigned shift = 0; *p < end && shift < 64; shift += 7) {
        uint8_t byte = *(*p)++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *x = value;
            return true;
        }
    }
    return false;
}

static void read_extension(struct sm_build *b, const struct sm_event *e) {
    int64_t ns = sm_trace_time_ns(b->trace, e->ticks);
    const uint8_t *p = e->payload, *end = p + e->payload_bytes;
    if (e->op == SM_OP_MARK) {
        struct sm_trace_mark m = {
            .ns = ns,
            .lane = e->owner,
            .text = sm_texts_add_bytes(&b->texts, (const char *)p, e->payload_bytes)};
        *(struct sm_trace_mark *)sm_vec_push(&b->marks, sizeof m) = m;
    }
    while (e->op == SM_OP_COUNTERS && p < end) {
        uint64_t counter, value;
        if (!get_leb(&p, end, &counter) || !get_leb(&p, end, &value))
            break;
        struct sm_counter_sample c = {.ns = ns,
                                      .value = (int64_t)(value >> 1) ^ -(int64_t)(value & 1),
                                      .counter =
                                          counter < UINT32_MAX ? (uint32_t)counter : UINT32_MAX,
                                      .lane = e->owner};
        *(struct sm_counter_sample *)sm_vec_push(&b->counters, sizeof c) = c;
    }
}

static int compare_late(const void *left, const void *right) {
    const struct sm_raw_end *x = left, *y = right;
    if (x->ticks != y->ticks)
        return x->ticks < y->ticks ? -1 : 1;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* A free that is told at a time before its allocation's comes right after it, as in merge/cursor.h. */
static void foreign_free(struct sm_build *b, const struct sm_raw_foreign *f, uint32_t row) {
    struct sm_raw_row *r = raw_row(&b->streams[f->stream], row);
    if (!freed(b, r, f->ticks))
        return;
    bool late = f->ticks < r->ticks || (f->ticks == r->ticks && f->teller < f->stream);
    if (late) {
        struct sm_raw_end *e = sm_vec_push(&b->late, sizeof *e);
        *e = (struct sm_raw_end){.ticks = r->ticks, .row = row, .stream = f->stream};
    } else {
        ((struct sm_raw_end *)b->streams[f->teller].ends.data)[f->end].row = row;
    }
    if (((struct sm_row_class *)b->classes.data)[r->class_id].lane != f->lane)
        push_other_lane(b, f->stream, row, f->lane);
}

static void resolve_foreign(struct sm_build *b) {
    const struct sm_raw_foreign *list = b->foreign.data;
    size_t n = b->foreign.used_bytes / sizeof *list;
    for (size_t i = 0; i < n; i++) {
        struct sm_raw_stream *object = &b->streams[list[i].stream];
        uint32_t row = sm_raw_find(object, list[i].seq);
        if (row == UINT32_MAX)
            continue;
        if (list[i].end == SM_RAW_NO_ROW)
            promoted(b, raw_row(object, row), list[i].ticks);
        else
            foreign_free(b, &list[i], row);
    }
    sm_vec_release(&b->foreign);
    if (b->late.used_bytes > 0)
        qsort(b->late.data, b->late.used_bytes / sizeof(struct sm_raw_end),
              sizeof(struct sm_raw_end), compare_late);
}

static void note_time(struct sm_build *b, uint64_t ticks) {
    if (!b->any || ticks < b->first_ticks)
        b->first_ticks = ticks;
    if (!b->any || ticks > b->last_ticks)
        b->last_ticks = ticks;
    b->any = true;
}

/* ---- by a cursor: memtrace ---- */

static bool room_for_row(const struct sm_build *b) {
    return b->n_rows < UINT32_MAX - 1;
}

/* The event's frames become those beyond what the path has of them. */
static void keep_prefix(const struct sm_code_path *path, struct sm_event *e) {
    uint32_t kept = e->common_prefix < e->n_frames ? e->common_prefix : e->n_frames;
    if (kept > path->n)
        kept = (uint32_t)path->n;
    e->common_prefix = kept;
    if (kept > 0)
        e->frames += kept;
}

static enum sm_status read_by_cursor(struct sm_build *b, struct sm_error *err) {
    struct sm_cursor *c;
    if (sm_cursor_new(&c, b->trace, SM_CURSOR_STACKS | SM_CURSOR_UNMERGED | SM_CURSOR_EXTENSIONS,
                      err) != SM_OK)
        return SM_FAILED;
    struct sm_event e;
    uint32_t stream = UINT32_MAX, index = 0;
    while (sm_cursor_next(c, &e) == SM_OK) {
        if (__builtin_expect(e.stream != stream, 0)) {
            index = stream_index(b->trace, e.stream);
            if (index == UINT32_MAX)
                continue;
            stream = e.stream;
        }
        b->n_events += e.kind != SM_EVENT_EXTENSION;
        note_time(b, e.ticks);
        if (e.kind == SM_EVENT_EXTENSION) {
            read_extension(b, &e);
        } else if (e.kind != SM_EVENT_ALLOC) {
            read_reference(b, index, &e);
        } else if (room_for_row(b)) {
            keep_prefix(&b->streams[index].path, &e);
            read_alloc(b, &b->streams[index], &e);
            b->n_rows++;
        }
    }
    sm_cursor_free(c);
    return SM_OK;
}

/* ---- by packets: native; other threads decode ahead ---- */

struct batch_reading {
    struct sm_build *b;
    const struct sm_batch *batch;
    uint32_t index; /* of the stream */
    uint32_t owner; /* next change of owner in the batch */
    uint32_t ref, extension;
    struct sm_event e;
};

/* The owner of what comes next. */
static void change_owner(struct batch_reading *r, uint32_t alloc) {
    const struct sm_batch *batch = r->batch;
    while (r->owner < batch->n_owners && batch->owners[r->owner].first_alloc <= alloc &&
           batch->owners[r->owner].first_ref <= r->ref) {
        r->e.owner = batch->owners[r->owner].owner;
        r->owner++;
    }
}

/* References and extensions that stand before allocation i. */
static void read_others(struct batch_reading *r, uint32_t i) {
    const struct sm_batch *batch = r->batch;
    for (;;) {
        change_owner(r, i);
        bool ref = r->ref < batch->n_refs && batch->refs[r->ref].allocs_before <= i;
        bool extension = r->extension < batch->n_extensions &&
                         batch->extensions[r->extension].allocs_before <= i;
        if (extension && ref && batch->extensions[r->extension].refs_before > r->ref)
            extension = false;
        if (extension) {
            const struct sm_batch_extension *x = &batch->extensions[r->extension++];
            r->e.kind = SM_EVENT_EXTENSION;
            r->e.op = x->op;
            r->e.ticks = x->ticks;
            r->e.payload = x->payload;
            r->e.payload_bytes = x->payload_bytes;
            note_time(r->b, x->ticks);
            read_extension(r->b, &r->e);
        } else if (ref) {
            const struct sm_batch_ref *x = &batch->refs[r->ref++];
            r->e.kind = x->kind;
            r->e.ticks = x->ticks;
            r->e.obj_stream = x->obj_stream;
            r->e.obj_seq = x->obj_seq;
            note_time(r->b, x->ticks);
            read_reference(r->b, r->index, &r->e);
        } else {
            return;
        }
    }
}

static bool take_batch(void *ctx, const struct sm_batch *batch) {
    struct sm_build *b = ctx;
    struct batch_reading r = {.b = b, .batch = batch, .index = batch->packet.stream_index};
    struct sm_raw_stream *s = &b->streams[r.index];
    r.e.stream = batch->packet.stream;
    for (uint32_t i = 0; i < batch->n_allocs; i++) {
        const struct sm_batch_alloc *x = &batch->allocs[i];
        read_others(&r, i);
        if (!room_for_row(b))
            continue;
        r.e.kind = SM_EVENT_ALLOC;
        r.e.ticks = x->ticks;
        r.e.heap = x->heap;
        r.e.origin = x->origin;
        r.e.flags = x->flags;
        r.e.obj_stream = r.e.stream;
        r.e.obj_seq = batch->packet.first_seq + i;
        r.e.size = x->size;
        r.e.n_samples = x->n_samples;
        r.e.frames = batch->frames + x->first_frame;
        r.e.common_prefix = i == 0 ? 0 : x->common_prefix;
        r.e.n_frames = x->n_frames;
        note_time(b, x->ticks);
        read_alloc(b, s, &r.e);
        b->n_rows++;
    }
    read_others(&r, UINT32_MAX);
    b->n_events += (uint64_t)batch->n_allocs + batch->n_refs;
    return true;
}

static enum sm_status read_by_packets(struct sm_build *b, unsigned threads, struct sm_error *err) {
    struct sm_batch_pass *pass;
    if (sm_batch_pass_new(&pass, b->trace, SM_CURSOR_STACKS | SM_CURSOR_EXTENSIONS, err) != SM_OK)
        return SM_FAILED;
    enum sm_status status = sm_batch_each(pass, threads, take_batch, b, err);
    sm_batch_pass_free(pass);
    return status;
}

enum sm_status sm_build_read(struct sm_build *b, unsigned threads, struct sm_error *err) {
    enum sm_status status = sm_trace_meta(b->trace)->format == SM_TRACE_NATIVE
                                ? read_by_packets(b, threads, err)
                                : read_by_cursor(b, err);
    if (status != SM_OK)
        return SM_FAILED;
    resolve_foreign(b);
    if (!room_for_row(b)) {
        sm_error_set(err,
                     "the trace has more than the %u allocations that can be analysed; take a part "
                     "of it with `statmem subsample`",
                     UINT32_MAX - 2);
        return SM_FAILED;
    }
    return SM_OK;
}
