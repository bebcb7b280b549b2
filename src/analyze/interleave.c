/* See interleave.h. Within a part a binary heap of streams by (ticks, stream) tells which goes on; it does so
   until it passes the next one's head, without touching the heap. */
#include "analyze/interleave.h"

#include <stdlib.h>
#include <string.h>

#include "util/memory.h"
#include "util/parallel.h"

struct head {
    uint64_t ticks;
    uint32_t stream;
};

struct source {
    const struct sm_raw_row *rows;
    const struct sm_raw_end *ends;
    uint32_t row, row_end;
    uint32_t end, end_end;
};

struct part {
    uint32_t *row, *end; /* by stream: where the part begins */
    uint32_t late;
    uint32_t first_row, first_free; /* in the result */
    /* Frees before the part's first row and after its last one: known whole only when all are done. */
    uint32_t leading, trailing;
    struct sm_vec wide_frees;
};

struct work {
    const struct sm_build *b;
    const uint32_t *node_of_code;
    const struct sm_row_columns *to;
    struct sm_interleaved *out;
    struct part *parts; /* one more than there are */
    uint32_t n_parts;
};

static uint32_t n_ends(const struct sm_raw_stream *s) {
    return (uint32_t)(s->ends.used_bytes / sizeof(struct sm_raw_end));
}

static uint32_t n_late(const struct sm_build *b) {
    return (uint32_t)(b->late.used_bytes / sizeof(struct sm_raw_end));
}

/* The first element whose ticks, at its beginning, are at least `ticks`. */
static uint32_t lower_bound(const void *data, size_t bytes_each, uint32_t n, uint64_t ticks) {
    uint32_t low = 0, high = n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        uint64_t at;
        memcpy(&at, (const char *)data + (size_t)middle * bytes_each, sizeof at);
        if (at < ticks)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- merging one part ---- */

static inline bool ends_first(const struct source *s) {
    return s->end < s->end_end && (s->row == s->row_end || s->ends[s->end].before <= s->row);
}

static inline bool exhausted(const struct source *s) {
    return s->row == s->row_end && s->end == s->end_end;
}

static inline uint64_t next_ticks(const struct source *s) {
    return ends_first(s) ? s->ends[s->end].ticks : s->rows[s->row].ticks;
}

static inline bool before(struct head a, struct head b) {
    return a.ticks < b.ticks || (a.ticks == b.ticks && a.stream < b.stream);
}

static void heap_down(struct head *heap, uint32_t n, uint32_t at, struct head h) {
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= n)
            break;
        if (child + 1 < n && before(heap[child + 1], heap[child]))
            child++;
        if (!before(heap[child], h))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = h;
}

struct output {
    const struct work *w;
    struct part *part;
    uint32_t row, free, pending; /* pending: frees since the last row */
    uint32_t late, late_end;
};

static void put_free(struct output *o, uint32_t stream, uint32_t row) {
    o->w->out->frees[o->free++] = (uint64_t)stream << 32 | row;
    o->pending++;
}

static void put_pending(struct output *o) {
    if (o->row == o->part->first_row) {
        o->part->leading = o->pending;
    } else if (o->pending < SM_ROW_MANY) {
        o->w->to->frees_before[o->row] = (uint8_t)o->pending;
    } else {
        o->w->to->frees_before[o->row] = SM_ROW_MANY;
        struct sm_wide x = {.row = o->row, .value = o->pending};
        *(struct sm_wide *)sm_vec_push(&o->part->wide_frees, sizeof x) = x;
    }
    o->pending = 0;
}

static inline void put_row(struct output *o, uint32_t stream, uint32_t local,
                           const struct sm_raw_row *r) {
    const struct sm_row_columns *to = o->w->to;
    uint32_t i = o->row;
    put_pending(o);
    o->w->out->ticks[i] = r->ticks;
    to->promote_age[i] = r->promote_age;
    to->free_age[i] = r->free_age;
    to->size[i] = r->size;
    to->samples[i] = r->samples;
    to->node[i] = o->w->node_of_code[r->code_node];
    to->class_id[i] = r->class_id;
    if (o->w->out->row_numbers != NULL)
        o->w->out->row_numbers[stream][local] = i;
    o->row++;
    const struct sm_raw_end *late = o->w->b->late.data;
    while (__builtin_expect(o->late < o->late_end, 0) && late[o->late].stream == stream &&
           late[o->late].row == local) {
        put_free(o, stream, local);
        o->late++;
    }
}

/* Gives out of one source what comes before `limit`. */
static void run(struct output *o, struct source *s, uint32_t stream, struct head limit) {
    while (!exhausted(s)) {
        bool end = ends_first(s);
        struct head next = {end ? s->ends[s->end].ticks : s->rows[s->row].ticks, stream};
        if (!before(next, limit))
            return;
        if (end) {
            const struct sm_raw_end *e = &s->ends[s->end++];
            if (e->row != SM_RAW_NO_ROW)
                put_free(o, e->stream, e->row);
        } else {
            put_row(o, stream, s->row, &s->rows[s->row]);
            s->row++;
        }
    }
}

static void merge_part(void *ctx, unsigned task) {
    const struct work *w = ctx;
    struct part *p = &w->parts[task], *next = p + 1;
    uint32_t n_streams = w->b->n_streams, n = 0;
    struct source *sources = sm_alloc_zero(n_streams, sizeof *sources);
    struct head *heap = sm_alloc_zero(n_streams, sizeof *heap);
    for (uint32_t i = 0; i < n_streams; i++) {
        const struct sm_raw_stream *s = &w->b->streams[i];
        sources[i] = (struct source){.rows = s->rows.data,
                                     .ends = s->ends.data,
                                     .row = p->row[i],
                                     .row_end = next->row[i],
                                     .end = p->end[i],
                                     .end_end = next->end[i]};
        if (!exhausted(&sources[i]))
            heap[n++] = (struct head){next_ticks(&sources[i]), i};
    }
    for (uint32_t i = n / 2; i-- > 0;)
        heap_down(heap, n, i, heap[i]);
    struct output o = {.w = w,
                       .part = p,
                       .row = p->first_row,
                       .free = p->first_free,
                       .late = p->late,
                       .late_end = next->late};
    static const struct head never = {UINT64_MAX, UINT32_MAX};
    while (n > 0) {
        uint32_t stream = heap[0].stream;
        struct head limit = n > 1 ? heap[1] : never;
        if (n > 2 && before(heap[2], limit))
            limit = heap[2];
        run(&o, &sources[stream], stream, limit);
        if (exhausted(&sources[stream])) {
            struct head last = heap[--n];
            if (n > 0)
                heap_down(heap, n, 0, last);
        } else {
            heap_down(heap, n, 0, (struct head){next_ticks(&sources[stream]), stream});
        }
    }
    p->trailing = o.pending;
    free(sources);
    free(heap);
}

/* ---- cutting ---- */

/* Frees of a stream's list [from, to) that count. */
static uint32_t counting(const struct sm_raw_end *ends, uint32_t from, uint32_t to) {
    uint32_t n = 0;
    for (uint32_t i = from; i < to; i++)
        n += ends[i].row != SM_RAW_NO_ROW;
    return n;
}

static void cut(struct work *w, unsigned threads) {
    const struct sm_build *b = w->b;
    uint32_t longest = 0;
    for (uint32_t i = 1; i < b->n_streams; i++) {
        if (b->streams[i].n_rows > b->streams[longest].n_rows)
            longest = i;
    }
    uint32_t rows = b->n_streams > 0 ? b->streams[longest].n_rows : 0;
    w->n_parts = rows < 100000 ? 1 : 4 * (threads == 0 ? sm_processors() : threads);
    w->parts = sm_alloc_zero((size_t)w->n_parts + 1, sizeof *w->parts);
    for (uint32_t p = 0; p <= w->n_parts; p++) {
        struct part *part = &w->parts[p];
        part->row = sm_alloc_zero(b->n_streams, sizeof *part->row);
        part->end = sm_alloc_zero(b->n_streams, sizeof *part->end);
        bool last = p == w->n_parts;
        uint64_t ticks = 0;
        if (p > 0 && !last) {
            const struct sm_raw_row *r = b->streams[longest].rows.data;
            ticks = r[(uint64_t)rows * p / w->n_parts].ticks;
        }
        for (uint32_t i = 0; i < b->n_streams && p > 0; i++) {
            const struct sm_raw_stream *s = &b->streams[i];
            part->row[i] =
                last ? s->n_rows
                     : lower_bound(s->rows.data, sizeof(struct sm_raw_row), s->n_rows, ticks);
            part->end[i] =
                last ? n_ends(s)
                     : lower_bound(s->ends.data, sizeof(struct sm_raw_end), n_ends(s), ticks);
        }
        if (p > 0)
            part->late =
                last ? n_late(b)
                     : lower_bound(b->late.data, sizeof(struct sm_raw_end), n_late(b), ticks);
    }
    for (uint32_t p = 1; p <= w->n_parts; p++) {
        const struct part *before = &w->parts[p - 1];
        struct part *part = &w->parts[p];
        part->first_row = before->first_row;
        part->first_free = before->first_free + part->late - before->late;
        for (uint32_t i = 0; i < b->n_streams; i++) {
            part->first_row += part->row[i] - before->row[i];
            part->first_free += counting(b->streams[i].ends.data, before->end[i], part->end[i]);
        }
    }
}

/* Frees between the last row of one part and the first of the next. */
static void join(struct work *w) {
    uint32_t pending = 0;
    for (uint32_t p = 0; p < w->n_parts; p++) {
        struct part *part = &w->parts[p];
        if (w->parts[p + 1].first_row > part->first_row) {
            pending += part->leading;
            w->to->frees_before[part->first_row] =
                pending < SM_ROW_MANY ? (uint8_t)pending : SM_ROW_MANY;
            if (pending >= SM_ROW_MANY) {
                struct sm_wide x = {.row = part->first_row, .value = pending};
                *(struct sm_wide *)sm_vec_push(&w->out->wide_frees, sizeof x) = x;
            }
            pending = 0;
        }
        pending += part->trailing;
        if (part->wide_frees.used_bytes > 0)
            memcpy(sm_vec_push(&w->out->wide_frees, part->wide_frees.used_bytes),
                   part->wide_frees.data, part->wide_frees.used_bytes);
    }
}

void sm_interleave(struct sm_interleaved *out, const struct sm_build *b,
                   const uint32_t *node_of_code, const struct sm_row_columns *to,
                   unsigned threads) {
    memset(out, 0, sizeof *out);
    struct work w = {.b = b, .node_of_code = node_of_code, .to = to, .out = out};
    cut(&w, threads);
    out->n_rows = w.parts[w.n_parts].first_row;
    out->n_frees = w.parts[w.n_parts].first_free;
    out->ticks = sm_alloc((size_t)out->n_rows * sizeof *out->ticks);
    out->frees = sm_alloc((size_t)out->n_frees * sizeof *out->frees);
    if (b->n_streams > 1) {
        out->row_numbers = sm_alloc_zero(b->n_streams, sizeof *out->row_numbers);
        for (uint32_t i = 0; i < b->n_streams; i++)
            out->row_numbers[i] = sm_alloc((size_t)b->streams[i].n_rows * sizeof(uint32_t));
    }
    sm_parallel(w.n_parts, threads, merge_part, &w);
    join(&w);
    for (uint32_t p = 0; p <= w.n_parts; p++) {
        free(w.parts[p].row);
        free(w.parts[p].end);
        sm_vec_release(&w.parts[p].wide_frees);
    }
    free(w.parts);
}

void sm_interleaved_release(struct sm_interleaved *il, uint32_t n_streams) {
    for (uint32_t i = 0; il->row_numbers != NULL && i < n_streams; i++)
        free(il->row_numbers[i]);
    free(il->row_numbers);
    free(il->ticks);
    free(il->frees);
    sm_vec_release(&il->wide_frees);
}
