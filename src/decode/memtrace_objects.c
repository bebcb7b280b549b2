#include "decode/memtrace_internal.h"

#include <stdlib.h>

bool sm_mt_objects_add(struct sm_memtrace *m, uint64_t begin, uint64_t end, uint32_t stream_index) {
    if (begin >= end)
        return true;
    struct sm_mt_range *last = m->n_ranges > 0 ? &m->ranges[m->n_ranges - 1] : NULL;
    if (last != NULL && last->end == begin && last->stream_index == stream_index) {
        last->end = end;
        return true;
    }
    if (m->n_ranges == m->ranges_capacity) {
        uint32_t capacity = m->ranges_capacity * 2 + 64;
        struct sm_mt_range *ranges = realloc(m->ranges, capacity * sizeof *ranges);
        if (ranges == NULL)
            return false;
        m->ranges = ranges;
        m->ranges_capacity = capacity;
    }
    m->ranges[m->n_ranges++] = (struct sm_mt_range){begin, end, begin, stream_index};
    return true;
}

static int compare(const void *a, const void *b) {
    const struct sm_mt_range *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

void sm_mt_objects_finish(struct sm_memtrace *m) {
    bool sorted = true;
    for (uint32_t i = 1; i < m->n_ranges; i++)
        sorted &= m->ranges[i - 1].begin <= m->ranges[i].begin;
    if (!sorted)
        qsort(m->ranges, m->n_ranges, sizeof *m->ranges, compare);
    /* Overlaps come from damaged headers or packets that stand twice: the earlier range keeps its
       ids. */
    uint32_t n = 0;
    uint64_t taken = 0;
    for (uint32_t i = 0; i < m->n_ranges; i++) {
        struct sm_mt_range r = m->ranges[i];
        if (r.begin < taken)
            r.begin = taken;
        if (r.begin >= r.end)
            continue;
        taken = r.end;
        struct sm_mt_stream *s = &m->streams[r.stream_index];
        r.seq_begin = m->n_streams > 1 ? s->n_objects : r.begin;
        s->n_objects += r.end - r.begin;
        m->ranges[n++] = r;
    }
    m->n_ranges = n;
}

const struct sm_mt_range *sm_mt_objects_find(const struct sm_memtrace *m, uint64_t id) {
    uint32_t low = 0, high = m->n_ranges;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (m->ranges[middle].end <= id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->n_ranges && m->ranges[low].begin <= id ? &m->ranges[low] : NULL;
}

bool sm_mt_has_object(const struct sm_trace *t, uint32_t stream, uint64_t seq) {
    const struct sm_memtrace *m = t->backend_data;
    uint32_t index = sm_trace_stream_index(t, stream);
    if (index == UINT32_MAX)
        return false;
    if (m->n_streams > 1)
        return seq < m->streams[index].n_objects;
    return sm_mt_objects_find(m, seq) != NULL;
}
