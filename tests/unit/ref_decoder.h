/* A small, straightforward decoder of EVENTS payloads, written from docs/format.md for the tests of
   the writers: no tricks, every rule checked, aborts the test on a violation. */
#ifndef SM_TESTS_REF_DECODER_H
#define SM_TESTS_REF_DECODER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "format/wire.h"

struct ref_event {
    uint8_t op; /* short allocations are given as SM_OP_ALLOC */
    uint64_t ticks;
    uint64_t size, n_samples, source;
    const uint64_t *codes; /* outermost first; valid during the callback */
    uint32_t depth;
    uint64_t obj_stream, obj_seq; /* stream UINT64_MAX = own */
    const uint8_t *payload;
    size_t payload_bytes;
};

typedef void ref_event_fn(void *ctx, const struct ref_event *event);

struct ref_totals {
    uint32_t n_events, n_alloc, max_depth, n_cut;
    uint64_t last_ticks;
};

static uint64_t ref_leb(const uint8_t **p, const uint8_t *end) {
    uint64_t x = 0;
    if (!sm_get_leb(p, end, &x))
        fail_msg("LEB past the end");
    return x;
}

static int64_t ref_zz(const uint8_t **p, const uint8_t *end) {
    return sm_unzigzag(ref_leb(p, end));
}

static uint8_t ref_u8(const uint8_t **p, const uint8_t *end) {
    assert_true(*p < end);
    return *(*p)++;
}

static struct ref_totals ref_decode(const uint8_t *p, size_t bytes, uint64_t first_seq,
                                    uint64_t ts_begin, ref_event_fn *fn, void *ctx) {
    struct list {
        uint32_t n, of[4];
    };
    static struct list successors[65536];
    static uint64_t code_of[65536];
    static uint64_t stack[65536];
    static uint32_t stack_index[65536];
    static int64_t last_ref[SM_MAX_STREAMS];
    static uint8_t seen[SM_MAX_STREAMS];
    const uint8_t *end = p + bytes;
    struct ref_totals t = {.last_ticks = ts_begin};
    uint64_t previous_new = 0, own_last = first_seq - 1;
    uint32_t depth = 0, n_codes = 0;
    successors[0].n = 0;
    memset(seen, 0, sizeof seen);

    while (p < end) {
        struct ref_event ev = {.op = ref_u8(&p, end)};
        t.last_ticks += ref_leb(&p, end);
        ev.ticks = t.last_ticks;
        t.n_events++;
        if ((ev.op >= 1 && ev.op <= 16) || ev.op == SM_OP_ALLOC || ev.op == SM_OP_ALLOC_BYTES) {
            if (ev.op <= 16) {
                ev.size = ev.op;
                ev.n_samples = 1;
                ev.op = SM_OP_ALLOC;
            } else {
                ev.size = ref_leb(&p, end);
                ev.n_samples = ref_leb(&p, end);
                ev.source = ref_u8(&p, end);
            }
            uint64_t pops = ref_leb(&p, end);
            assert_true(pops <= depth);
            depth -= (uint32_t)pops;
            uint64_t code_bytes = ref_leb(&p, end);
            assert_true(code_bytes <= (uint64_t)(end - p));
            const uint8_t *codes_end = p + code_bytes;
            while (p < codes_end) {
                uint32_t c = depth > 0 ? stack_index[depth - 1] : 0;
                uint8_t b = ref_u8(&p, codes_end);
                uint32_t tag, i;
                if (b < 0xE0) {
                    uint32_t v = (uint32_t)b << 8 | ref_u8(&p, codes_end);
                    i = v >> 2;
                    tag = v & 3;
                } else if (b < 0xF0) {
                    uint32_t r = b >> 2 & 3;
                    assert_true(r < successors[c].n);
                    i = successors[c].of[r];
                    tag = b & 3;
                } else if (b <= 0xF2) {
                    i = (uint32_t)ref_leb(&p, codes_end);
                    tag = b & 3;
                } else {
                    assert_true(b >= 0xF4 && b <= 0xF6);
                    previous_new += (uint64_t)ref_zz(&p, codes_end);
                    i = ++n_codes;
                    assert_true(n_codes <= SM_MAX_PACKET_LOCATIONS);
                    code_of[i] = previous_new;
                    successors[i].n = 0;
                    tag = b & 3;
                }
                assert_true(tag != 3);
                assert_true(i >= 1 && i <= n_codes);
                uint32_t n_predicted = tag == 2 ? ref_u8(&p, codes_end) : tag;
                struct list *l = &successors[c];
                uint32_t at = 0;
                while (at < l->n && l->of[at] != i)
                    at++;
                if (at == l->n && l->n < 4)
                    l->n++;
                if (at == 4)
                    at = 3;
                memmove(l->of + 1, l->of, at * sizeof l->of[0]);
                l->of[0] = i;
                for (;;) {
                    assert_true(depth < 65536);
                    stack[depth] = code_of[i];
                    stack_index[depth++] = i;
                    if (n_predicted-- == 0)
                        break;
                    assert_true(successors[i].n > 0);
                    i = successors[i].of[0];
                }
            }
            ev.codes = stack;
            ev.depth = depth;
            ev.obj_seq = first_seq + t.n_alloc++;
            if (depth > t.max_depth)
                t.max_depth = depth;
            for (uint32_t k = 0; k < depth; k++) {
                if (stack[k] == 0) {
                    t.n_cut++;
                    break;
                }
            }
        } else if (ev.op == 200 || ev.op == 201) {
            ev.obj_stream = UINT64_MAX;
            ev.obj_seq = own_last = own_last + 1 + (uint64_t)ref_zz(&p, end);
        } else if (ev.op == 202 || ev.op == 203) {
            ev.obj_stream = ref_leb(&p, end);
            assert_true(ev.obj_stream < SM_MAX_STREAMS);
            if (!seen[ev.obj_stream]) {
                seen[ev.obj_stream] = 1;
                last_ref[ev.obj_stream] = -1;
            }
            last_ref[ev.obj_stream] += 1 + ref_zz(&p, end);
            ev.obj_seq = (uint64_t)last_ref[ev.obj_stream];
        } else {
            assert_true(ev.op >= SM_OP_EXTENSION_MIN);
            ev.payload_bytes = ref_leb(&p, end);
            assert_true(ev.payload_bytes <= (size_t)(end - p));
            ev.payload = p;
            p += ev.payload_bytes;
        }
        if (fn != NULL)
            fn(ctx, &ev);
    }
    return t;
}

#endif
