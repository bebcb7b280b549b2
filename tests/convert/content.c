/* content TRACE: prints numbers that stand for the whole content of a trace, in merged order:
     events    number of allocations, promotions and collections
     ids       every event: time, domain, object, size, samples, source, stack as location codes
     plain     the same without object and stream numbers, and objects named by order of birth
     names     the source locations of every code that occurs
   Equal numbers, equal content. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/cursor.h"
#include "util/map.h"

static uint64_t mix(uint64_t digest, uint64_t x) {
    return sm_mix64((digest ^ x) * 0x9E3779B97F4A7C15u + 1);
}

static uint64_t mix_text(uint64_t digest, const char *text) {
    for (; *text != 0; text++)
        digest = mix(digest, (unsigned char)*text);
    return mix(digest, 256);
}

static uint64_t names_of(const struct sm_trace *t, uint32_t id) {
    const struct sm_location *list;
    uint32_t n = sm_trace_location(t, id, &list);
    uint64_t d = mix(sm_trace_location_code(t, id), n);
    for (uint32_t i = 0; i < n; i++) {
        d = mix_text(mix_text(d, list[i].file), list[i].function);
        d = mix(mix(mix(d, list[i].line), list[i].start_char), list[i].end_char);
    }
    return d;
}

int main(int argc, char **argv) {
    struct sm_trace *t;
    struct sm_cursor *c;
    struct sm_event e;
    struct sm_error err;
    if (argc != 2)
        return 2;
    if (sm_trace_open(&t, argv[1], NULL, &err) != SM_OK ||
        sm_cursor_new(&c, t, SM_CURSOR_STACKS, &err) != SM_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    uint64_t ids = 0, plain = 0, names = 0, n = 0;
    uint32_t born = 0;
    struct sm_map birth = {0}, used = {0};
    while (sm_cursor_next(c, &e) == SM_OK) {
        uint64_t key = (uint64_t)e.obj_stream << 40 ^ e.obj_seq;
        uint32_t order = UINT32_MAX;
        if (e.kind == SM_EVENT_ALLOC)
            sm_map_put(&birth, key, order = born++);
        else
            (void)sm_map_get(&birth, key, &order);
        uint64_t d = mix((uint64_t)sm_trace_time_ns(t, e.ticks), e.kind);
        if (e.kind == SM_EVENT_ALLOC) {
            d = mix(mix(mix(mix(d, sm_trace_owner(t, e.owner)->domain), e.size), e.n_samples),
                    e.heap);
            for (uint32_t i = 0; i < e.n_frames; i++) {
                sm_map_put(&used, e.frames[i], 0);
                d = mix(d, sm_trace_location_code(t, e.frames[i]));
            }
        }
        ids = mix(mix(mix(ids, d), e.stream), key);
        plain = mix(mix(plain, d), order);
        n++;
    }
    for (uint32_t id = 0; id < sm_trace_n_locations(t); id++) {
        uint32_t ignored;
        if (sm_map_get(&used, id, &ignored))
            names += names_of(t, id);
    }
    printf("{\"events\": %" PRIu64 ", \"ids\": \"%016" PRIx64 "\", \"plain\": \"%016" PRIx64
           "\", \"names\": \"%016" PRIx64 "\"}\n",
           n, ids, plain, names);
    sm_map_release(&birth);
    sm_map_release(&used);
    sm_cursor_free(c);
    sm_trace_free(t);
    return 0;
}
