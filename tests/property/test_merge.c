/* The merge against a reference that looks at every stream for every event. Streams are random:
   equal times, references to other streams' objects before and after their allocation's time, to objects
   that do not exist, in circles, and packets that are missing or damaged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/packet.h"
#include "merge/cursor.h"
#include "trace_builder.h"

#define MAX_STREAMS 70

static struct sm_event *events[MAX_STREAMS]; /* per stream, as UNMERGED gives them */
static size_t n_events[MAX_STREAMS], at[MAX_STREAMS];
static uint64_t given_end[MAX_STREAMS];

static void fail(uint32_t seed, const char *what) {
    fprintf(stderr, "seed %u: %s\n", seed, what);
    exit(1);
}

static bool exists(uint32_t stream, uint64_t seq) {
    for (size_t i = 0; i < n_events[stream]; i++)
        if (events[stream][i].kind == SM_EVENT_ALLOC && events[stream][i].obj_seq == seq)
            return true;
    return false;
}

static bool is_reference(const struct sm_event *e) {
    return e->kind == SM_EVENT_PROMOTE || e->kind == SM_EVENT_COLLECT;
}

/* Does the stream's next event have to wait? */
static bool blocked(uint32_t stream) {
    const struct sm_event *e = &events[stream][at[stream]];
    uint32_t o = e->obj_stream;
    return is_reference(e) && o != stream && o < MAX_STREAMS && e->obj_seq >= given_end[o] &&
           at[o] < n_events[o] && exists(o, e->obj_seq);
}

/* The stream that comes next: by time, then number, among those that need not wait; else among all. */
static uint32_t choose(uint32_t n) {
    for (int any = 0; any < 2; any++) {
        uint32_t best = UINT32_MAX;
        for (uint32_t s = 0; s < n; s++)
            if (at[s] < n_events[s] && (any == 1 || !blocked(s)) &&
                (best == UINT32_MAX || events[s][at[s]].ticks < events[best][at[best]].ticks))
                best = s;
        if (best != UINT32_MAX)
            return best;
    }
    return UINT32_MAX;
}

static void build(struct tb *b, uint32_t n, uint32_t *random, unsigned kind) {
    tb_init(b, n);
    b->target_bytes = 100 + tb_random(random) % 400;
    tb_meta(b);
    uint64_t ticks[MAX_STREAMS], made[MAX_STREAMS] = {0};
    for (uint32_t s = 0; s < n; s++)
        ticks[s] = 2000 + tb_random(random) % 50;
    uint32_t total = 200 + tb_random(random) % 600;
    for (uint32_t i = 0; i < total; i++) {
        uint32_t s = tb_random(random) % n, o = tb_random(random) % n;
        uint64_t stack[2] = {64 + s, 128 + i % 7};
        ticks[s] += tb_random(random) % (kind == 0 ? 3 : 20);
        unsigned what = tb_random(random) % 8;
        if (what < 4)
            made[s] = 1 + tb_alloc(b, s, ticks[s], 1 + i % 40, stack, 2);
        else if (what < 7) /* somewhat beyond what has been made: the future, or nothing */
            tb_ref(b, s, ticks[s], what == 6, o,
                   tb_random(random) % (made[o] + (kind < 2 ? 1 : 6)));
        else
            tb_extension(b, s, ticks[s], SM_OP_MARK, "m", 1);
    }
    tb_end(b, 100000);
}

static void check(uint32_t seed) {
    uint32_t random = seed * 2654435761u + 1;
    uint32_t n = seed % 8 == 7 ? 64 : 2 + tb_random(&random) % 6;
    struct tb b;
    struct sm_trace *t;
    struct sm_cursor *c;
    struct sm_error err = {""};
    struct sm_event e;
    build(&b, n, &random, seed % 4);
    /* Damage: headers are found broken at the open; payloads only when the merge comes to them, and until
       then it waits for what they seemed to hold, so that the order is another one. */
    bool payloads = seed % 6 == 5;
    if (seed % 3 == 2)
        for (size_t i = 0; i < b.n_packets; i++)
            if (b.packets[i].header.kind == SM_PACKET_EVENTS && tb_random(&random) % 8 == 0)
                b.data[b.packets[i].offset + (payloads ? 96 : 20)] ^= 1;
    if (sm_trace_open_memory(&t, b.data, b.bytes, NULL, &err) != SM_OK)
        fail(seed, err.text);
    for (uint32_t s = 0; s < n; s++) {
        events[s] = calloc(b.events_made + 1, sizeof **events);
        n_events[s] = at[s] = 0;
        given_end[s] = 0;
    }
    if (sm_cursor_new(&c, t, SM_CURSOR_UNMERGED | SM_CURSOR_EXTENSIONS, &err) != SM_OK)
        fail(seed, err.text);
    while (sm_cursor_next(c, &e) == SM_OK)
        events[e.stream][n_events[e.stream]++] = e;
    sm_cursor_free(c);
    sm_trace_free(t);

    /* Opened anew: the merge must find out about the damage by itself. */
    sm_trace_open_memory(&t, b.data, b.bytes, NULL, &err);
    if (sm_cursor_new(&c, t, SM_CURSOR_STACKS | SM_CURSOR_EXTENSIONS, &err) != SM_OK)
        fail(seed, err.text);
    uint64_t orphans = 0;
    for (size_t count = 0;; count++) {
        uint32_t s = choose(n);
        enum sm_status status = sm_cursor_next(c, &e);
        if ((s == UINT32_MAX) != (status == SM_END))
            fail(seed, "the merge ends too early or too late");
        if (s == UINT32_MAX)
            break;
        if (payloads) {
            s = e.stream;
            if (at[s] == n_events[s])
                fail(seed, "an event that is not in the stream");
        }
        const struct sm_event *want = &events[s][at[s]++];
        if (e.stream != want->stream || e.kind != want->kind || e.ticks != want->ticks ||
            e.obj_stream != want->obj_stream || e.obj_seq != want->obj_seq ||
            e.size != want->size) {
            fprintf(stderr, "event %zu: stream %u kind %u ticks %llu, expected %u %u %llu\n", count,
                    e.stream, e.kind, (unsigned long long)e.ticks, want->stream, want->kind,
                    (unsigned long long)want->ticks);
            fail(seed, "another event than the reference gives");
        }
        if (want->kind == SM_EVENT_ALLOC) {
            given_end[s] = want->obj_seq + 1;
            if (e.n_frames != 2 || sm_trace_location_code(t, e.frames[0]) != 64 + s)
                fail(seed, "a stack of another stream");
        }
        bool orphan = is_reference(want) && !exists(want->obj_stream, want->obj_seq);
        if (orphan != ((e.flags & SM_EVENT_ORPHAN) != 0) && !payloads)
            fail(seed, "orphan where there is none, or not seen");
        orphans += (e.flags & SM_EVENT_ORPHAN) != 0;
    }
    const struct sm_loss *list;
    size_t n_losses = sm_trace_losses(t, &list);
    uint64_t reported = 0;
    for (size_t i = 0; i < n_losses; i++)
        if (list[i].kind == SM_LOSS_ORPHANS)
            reported += list[i].events;
    if (reported != orphans)
        fail(seed, "orphans are not reported");
    sm_cursor_free(c);
    sm_trace_free(t);
    for (uint32_t s = 0; s < n; s++)
        free(events[s]);
    tb_release(&b);
}

int main(int argc, char **argv) {
    uint32_t from = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;
    for (uint32_t seed = from; seed < from + 400; seed++)
        check(seed);
    return 0;
}
