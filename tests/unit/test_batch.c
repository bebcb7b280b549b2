/* Batches against a cursor: whatever bytes are read, both must give the same events, in every field, and tell of
   the same losses. Made traces, cut at every length, with bits flipped before and behind the checksums, and the
   corpus of real ones. */
#include "native_reading.h"

#include "decode/batch.h"
#include "encode/tlv.h"

/* What both ways are reduced to; texts and stacks as they are, since ids may differ where names are missing. */
struct seen {
    uint64_t ticks, obj_seq, size, n_samples, stack, owner, payload;
    uint32_t stream, obj_stream, n_frames, common_prefix;
    uint8_t kind, heap, origin, flags, op;
};

struct list {
    struct seen *items;
    size_t n, capacity;
};

static void add(struct list *l, const struct seen *s) {
    if (l->n == l->capacity) {
        l->capacity = l->capacity == 0 ? 256 : l->capacity * 2;
        l->items = realloc(l->items, l->capacity * sizeof *l->items);
        assert_non_null(l->items);
    }
    l->items[l->n++] = *s;
}

static uint64_t hash_bytes(const void *data, size_t bytes, uint64_t h) {
    const uint8_t *p = data;
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ p[i]) * 0x100000001B3ull;
    return h;
}

static uint64_t hash_owner(const struct sm_trace *t, uint32_t index) {
    const struct sm_owner *o = sm_trace_owner(t, index);
    uint64_t h = o->stream + o->domain * 31 + o->tid * 977 + o->incarnation * 7919 + o->kind;
    return hash_bytes(o->name, strlen(o->name), h);
}

/* ---- the cursor ---- */

static void by_cursor(struct sm_trace *t, unsigned flags, struct list *l) {
    struct sm_cursor *c;
    struct sm_error err;
    struct sm_event e;
    assert_int_equal(sm_cursor_new(&c, t, flags | SM_CURSOR_UNMERGED, &err), SM_OK);
    while (sm_cursor_next(c, &e) == SM_OK) {
        struct seen s;
        memset(&s, 0, sizeof s);
        s.ticks = e.ticks;
        s.obj_seq = e.obj_seq;
        s.size = e.size;
        s.n_samples = e.n_samples;
        s.stack = hash_stack(t, &e);
        s.owner = hash_owner(t, e.owner);
        s.payload = hash_bytes(e.payload, e.payload_bytes, e.payload_bytes);
        s.stream = e.stream;
        s.obj_stream = e.obj_stream;
        s.n_frames = e.n_frames;
        s.common_prefix = e.common_prefix;
        s.kind = e.kind;
        s.heap = e.heap;
        s.origin = e.origin;
        s.flags = e.flags;
        s.op = e.op;
        add(l, &s);
    }
    sm_cursor_free(c);
}

/* ---- batches ---- */

struct taking {
    struct sm_trace *t;
    struct list *list;
    uint32_t next; /* packet */
};

static uint64_t hash_ids(const struct sm_trace *t, const uint32_t *ids, uint32_t n) {
    struct sm_event e = {.frames = ids, .n_frames = n};
    for (uint32_t i = 0; i < n; i++)
        assert_true(ids[i] < sm_trace_n_locations(t));
    return hash_stack(t, &e);
}

static uint32_t owner_at(const struct sm_batch *b, uint32_t alloc, uint32_t ref,
                         uint32_t extension) {
    uint32_t owner = UINT32_MAX;
    for (uint32_t i = 0; i < b->n_owners && b->owners[i].first_alloc <= alloc &&
                         b->owners[i].first_ref <= ref && b->owners[i].first_extension <= extension;
         i++)
        owner = b->owners[i].owner;
    return owner;
}

/* A batch as a list of events in their order. */
static bool take(void *ctx, const struct sm_batch *b) {
    struct taking *k = ctx;
    struct sm_batch_packet p = b->packet;
    static uint32_t stack[SM_MAX_DEPTH];
    uint32_t a = 0, r = 0, x = 0;
    assert_int_equal(b->index, k->next++);
    assert_int_equal(sm_trace_stream_id(k->t, p.stream_index), p.stream);
    assert_true(b->readable || b->n_allocs + b->n_refs + b->n_extensions == 0);
    while (a < b->n_allocs || r < b->n_refs || x < b->n_extensions) {
        struct seen s;
        memset(&s, 0, sizeof s);
        s.stream = s.obj_stream = p.stream;
        s.payload = hash_bytes(NULL, 0, 0);
        s.stack = hash_ids(k->t, NULL, 0);
        s.owner = hash_owner(k->t, owner_at(b, a, r, x));
        if (x < b->n_extensions && b->extensions[x].allocs_before <= a &&
            b->extensions[x].refs_before <= r) {
            const struct sm_batch_extension *e = &b->extensions[x++];
            s.ticks = e->ticks;
            s.kind = SM_EVENT_EXTENSION;
            s.op = e->op;
            s.payload = hash_bytes(e->payload, e->payload_bytes, e->payload_bytes);
            /* The record of an owner is its own already. */
            s.owner = hash_owner(k->t, owner_at(b, a, r, x));
            if (e->op != SM_OP_OWNER)
                s.owner = hash_owner(k->t, owner_at(b, a, r, x - 1));
            else
                for (uint32_t i = 0; i < b->n_owners; i++)
                    if (b->owners[i].payload == e->payload)
                        s.owner = hash_owner(k->t, b->owners[i].owner);
        } else if (r < b->n_refs && b->refs[r].allocs_before <= a) {
            const struct sm_batch_ref *e = &b->refs[r++];
            s.ticks = e->ticks;
            s.kind = e->kind;
            s.op = e->op;
            s.flags = e->flags;
            s.obj_stream = e->obj_stream;
            s.obj_seq = e->obj_seq;
        } else {
            assert_true(a < b->n_allocs);
            const struct sm_batch_alloc *e = &b->allocs[a];
            s.ticks = e->ticks;
            s.kind = SM_EVENT_ALLOC;
            s.op = e->op;
            s.flags = e->flags;
            s.heap = e->heap;
            s.origin = e->origin;
            s.size = e->size;
            s.n_samples = e->n_samples;
            s.obj_seq = p.first_seq + a++;
            s.n_frames = e->n_frames;
            s.common_prefix = e->common_prefix;
            assert_true(e->common_prefix <= e->n_frames && e->n_frames <= SM_MAX_DEPTH);
            uint32_t fresh = e->n_frames - e->common_prefix;
            assert_true((uint64_t)e->first_frame + fresh <= b->n_frames);
            if (fresh > 0)
                memcpy(stack + e->common_prefix, b->frames + e->first_frame, fresh * sizeof *stack);
            s.stack = hash_ids(k->t, stack, e->n_frames);
        }
        add(k->list, &s);
    }
    return true;
}

static void by_batches(struct sm_trace *t, unsigned flags, unsigned threads, struct list *l) {
    struct sm_batch_pass *pass;
    struct sm_error err;
    struct taking k = {.t = t, .list = l};
    assert_int_equal(sm_batch_pass_new(&pass, t, flags, &err), SM_OK);
    assert_int_equal(sm_batch_each(pass, threads, take, &k, &err), SM_OK);
    assert_int_equal(k.next, sm_batch_n_packets(pass));
    sm_batch_pass_free(pass);
}

/* ---- comparing ---- */

static void same_losses(const struct sm_trace *a, const struct sm_trace *b, const char *what,
                        size_t at) {
    const struct sm_loss *x, *y;
    size_t n = sm_trace_losses(a, &x);
    if (sm_trace_losses(b, &y) != n)
        fail_msg("%s at %zu: %zu losses, by batches %zu", what, at, n, sm_trace_losses(b, &y));
    for (size_t i = 0; i < n; i++)
        if (x[i].kind != y[i].kind || x[i].stream != y[i].stream || x[i].offset != y[i].offset ||
            x[i].bytes != y[i].bytes || x[i].events != y[i].events || x[i].count != y[i].count ||
            x[i].events_known != y[i].events_known || strcmp(x[i].detail, y[i].detail) != 0)
            fail_msg("%s at %zu: loss %zu: \"%s\", by batches \"%s\"", what, at, i, x[i].detail,
                     y[i].detail);
}

static size_t n_compared, n_events, n_with_losses;

/* Both ways over the bytes, each on a trace of its own that has not been read before. */
static void compare(const uint8_t *data, size_t bytes, unsigned flags, unsigned threads,
                    const char *what, size_t at) {
    struct sm_trace *t, *u;
    struct sm_error err;
    struct list x = {0}, y = {0};
    uint8_t *copy = malloc(bytes == 0 ? 1 : bytes);
    memcpy(copy, data, bytes);
    if (sm_trace_open_memory(&t, copy, bytes, NULL, &err) != SM_OK) {
        free(copy);
        return;
    }
    assert_int_equal(sm_trace_open_memory(&u, copy, bytes, NULL, &err), SM_OK);
    by_cursor(t, flags, &x);
    by_batches(u, flags, threads, &y);
    for (size_t i = 0; i < x.n && i < y.n; i++)
        if (memcmp(&x.items[i], &y.items[i], sizeof *x.items) != 0) {
            const struct seen *p = &x.items[i], *q = &y.items[i];
            fail_msg("%s at %zu: event %zu of stream %u: kind %u/%u ticks %llu/%llu seq %llu/%llu "
                     "flags %u/%u frames %u/%u prefix %u/%u owner %d stack %d",
                     what, at, i, p->stream, p->kind, q->kind, (unsigned long long)p->ticks,
                     (unsigned long long)q->ticks, (unsigned long long)p->obj_seq,
                     (unsigned long long)q->obj_seq, p->flags, q->flags, p->n_frames, q->n_frames,
                     p->common_prefix, q->common_prefix, p->owner == q->owner,
                     p->stack == q->stack);
        }
    if (x.n != y.n)
        fail_msg("%s at %zu: %zu events, by batches %zu", what, at, x.n, y.n);
    same_losses(t, u, what, at);
    const struct sm_loss *losses;
    n_compared++;
    n_events += x.n;
    n_with_losses += sm_trace_losses(t, &losses) > 0;
    free(x.items);
    free(y.items);
    sm_trace_free(t);
    sm_trace_free(u);
    free(copy);
}

static const unsigned every_flags[] = {SM_CURSOR_STACKS | SM_CURSOR_EXTENSIONS, SM_CURSOR_STACKS,
                                       SM_CURSOR_EXTENSIONS, 0};

static void compare_all(const uint8_t *data, size_t bytes, const char *what, size_t at) {
    for (unsigned i = 0; i < 4; i++)
        compare(data, bytes, every_flags[i], 1 + (unsigned)(at + i) % 3, what, at);
}

static void test_sound(void **state) {
    for (uint32_t seed = 0; seed < 40; seed++) {
        struct tb b;
        tb_init(&b, 1 + seed % 5);
        b.compress = seed % 2 == 1;
        b.target_bytes = seed % 3 == 0 ? 0 : 200 + 100 * seed;
        tb_mixed(&b, 1 + seed % 5, 3000, seed);
        size_t before = n_events;
        compare_all(b.data, b.bytes, "sound", seed);
        assert_true(n_events - before > 4 * 2500);
        tb_release(&b);
    }
}

static void test_cut(void **state) {
    for (int packed = 0; packed < 2; packed++) {
        struct tb b;
        small_trace(&b, packed);
        for (size_t n = 0; n < b.bytes; n += n < 2000 ? 7 : 3)
            compare(b.data, n, every_flags[n % 4], 1 + n % 2, "cut", n);
        tb_release(&b);
    }
    assert_true(n_with_losses > 100);
}

/* Bits flipped under a checksum that then does not hold, and, mended, under one that does. */
static void test_flipped(void **state) {
    struct tb b;
    uint32_t random = 77;
    small_trace(&b, false);
    uint8_t *data = malloc(b.bytes);
    size_t before = n_with_losses;
    for (uint32_t round = 0; round < 6000; round++) {
        memcpy(data, b.data, b.bytes);
        const struct tb_packet *p = &b.packets[tb_random(&random) % b.n_packets];
        size_t payload = p->bytes - SM_PACKET_HEADER_BYTES;
        unsigned flips = 1 + tb_random(&random) % 3;
        bool mend = round % 4 != 0;
        for (unsigned i = 0; i < flips && payload > 0; i++)
            data[p->offset + SM_PACKET_HEADER_BYTES + tb_random(&random) % payload] =
                (uint8_t)tb_random(&random);
        if (mend) {
            struct sm_packet_header h = p->header;
            if (h.kind == SM_PACKET_EVENTS && round % 16 == 1)
                h.ts_begin_ticks ^= tb_random(&random) % 2000; /* backwards, too */
            if (h.kind == SM_PACKET_EVENTS && round % 16 == 2)
                h.n_alloc += tb_random(&random) % 5;
            if (h.kind == SM_PACKET_EVENTS && round % 64 == 3)
                h.ts_begin_ticks = UINT64_MAX - 5000;
            h.payload_crc = sm_crc32c(0, data + p->offset + SM_PACKET_HEADER_BYTES, payload);
            sm_packet_header_put(data + p->offset, &h);
        }
        compare(data, b.bytes, every_flags[round % 4], 1 + round % 2, "flipped", round);
    }
    assert_true(n_with_losses - before > 1500);
    free(data);
    tb_release(&b);
}

/* Packets that are missing or stand twice: holes in the numbers, orphans. */
static void test_missing(void **state) {
    struct tb b;
    small_trace(&b, false);
    uint8_t *data = malloc(b.bytes * 2);
    for (size_t skip = 1; skip < b.n_packets; skip++) {
        size_t n = 0;
        for (size_t i = 0; i < b.n_packets; i++)
            if (i != skip || skip % 2 == 0) {
                memcpy(data + n, b.data + b.packets[i].offset, b.packets[i].bytes);
                n += b.packets[i].bytes;
                if (i == skip) {
                    memcpy(data + n, b.data + b.packets[i].offset, b.packets[i].bytes);
                    n += b.packets[i].bytes;
                }
            }
        compare_all(data, n, "missing or twice", skip);
    }
    free(data);
    tb_release(&b);
}

/* Puts an allocation with a stack of `depth` frames of one location, after taking `pops` frames away. */
static size_t put_deep(uint8_t *p, uint32_t depth, uint32_t pops, bool first) {
    uint8_t codes[2048];
    size_t n = 0, at = 0;
    if (first) { /* the location, and itself as its successor */
        memcpy(codes, "\xF4\x80\x01\x00\x04", 5);
        n = 5;
        depth -= 2;
    }
    for (; depth >= 256; depth -= 256) { /* the successor of rank 0, and 255 predicted ones */
        codes[n++] = 0xE2;
        codes[n++] = 0xFF;
    }
    for (; depth > 0; depth--)
        codes[n++] = 0xE0;
    p[at++] = 3;
    p[at++] = 1;
    for (; pops >= 128; pops >>= 7)
        p[at++] = (uint8_t)(pops | 128);
    p[at++] = (uint8_t)pops;
    p[at++] = (uint8_t)(n | 128);
    p[at++] = (uint8_t)(n >> 7);
    memcpy(p + at, codes, n);
    return at + n;
}

/* Stacks at the deepest, one frame too many, and more frames than a packet may expand to. */
static void test_deep(void **state) {
    static uint8_t payload[4 << 20];
    for (uint32_t more = 0; more < 3; more++) {
        struct tb b;
        size_t bytes = 0;
        uint32_t n = more == 2 ? 2100 : 30; /* 2048 such stacks are 2^26 frames */
        tb_init(&b, 1);
        tb_meta(&b);
        bytes += put_deep(payload, SM_MAX_DEPTH, 0, true);
        for (uint32_t i = 1; i < n; i++)
            bytes += put_deep(payload + bytes, SM_MAX_DEPTH - 1 + (more == 1 && i == 20 ? 1 : 0),
                              SM_MAX_DEPTH - 1, false);
        struct sm_packet_header h = {.kind = SM_PACKET_EVENTS,
                                     .stream = 0,
                                     .n_events = n,
                                     .n_alloc = n,
                                     .ts_begin_ticks = 2000,
                                     .ts_span_ticks = n};
        tb_packet(&b, &h, payload, bytes);
        tb_end(&b, 5000);
        size_t before = n_events, losses = n_with_losses;
        compare(b.data, b.bytes, SM_CURSOR_STACKS, 1, "deep", more);
        /* All, all before the one that is too deep, and as many as the cap on expansion lets through. */
        size_t got = n_events - before;
        if (more == 0)
            assert_int_equal(got, n);
        else if (more == 1)
            assert_int_equal(got, 20);
        else
            assert_in_range(got, 2040, 2060);
        assert_int_equal(n_with_losses - losses, more > 0);
        tb_release(&b);
    }
}

static const char *folder;

static void test_files(void **state) {
    char name[4096];
    size_t n_read = 0;
    if (folder == NULL)
        skip();
    snprintf(name, sizeof name, "ls %s/*", folder);
    FILE *ls = popen(name, "r");
    assert_non_null(ls);
    while (fgets(name, sizeof name, ls) != NULL) {
        name[strcspn(name, "\n")] = 0;
        FILE *f = fopen(name, "rb");
        uint8_t *data = malloc(1 << 20);
        assert_non_null(f);
        size_t bytes = fread(data, 1, 1 << 20, f);
        fclose(f);
        struct sm_trace *t;
        if (bytes > 1 && sm_trace_open_memory(&t, data + 1, bytes - 1, NULL, NULL) == SM_OK) {
            bool native = sm_trace_meta(t)->format == SM_TRACE_NATIVE;
            sm_trace_free(t);
            if (native)
                compare_all(data + 1, bytes - 1, name, n_read++);
        }
        free(data);
    }
    pclose(ls);
    assert_true(n_read > 2);
}

static size_t n_flagged(const struct tb *b, unsigned flags, bool batches) {
    struct sm_trace *t;
    struct sm_error err;
    struct list l = {0};
    size_t n = 0;
    assert_int_equal(sm_trace_open_memory(&t, b->data, b->bytes, NULL, &err), SM_OK);
    if (batches)
        by_batches(t, flags, 1, &l);
    else
        by_cursor(t, flags, &l);
    for (size_t i = 0; i < l.n; i++) {
        n += (l.items[i].flags & SM_EVENT_STACK_CUT) != 0;
        assert_true((flags & SM_CURSOR_STACKS) != 0 || l.items[i].n_frames == 0);
    }
    free(l.items);
    sm_trace_free(t);
    return n;
}

/* That a stack was cut is told without stacks, too. */
static void test_cut_flag(void **state) {
    struct tb b;
    tb_init(&b, 3);
    tb_mixed(&b, 3, 5000, 3);
    size_t n = n_flagged(&b, SM_CURSOR_STACKS, false);
    assert_true(n > 20);
    assert_int_equal(n_flagged(&b, 0, false), n);
    assert_int_equal(n_flagged(&b, SM_CURSOR_STACKS, true), n);
    assert_int_equal(n_flagged(&b, 0, true), n);
    tb_release(&b);
}

/* Depths without stacks are those of the stacks; merged, too. */
static void test_depths(void **state) {
    for (uint32_t seed = 0; seed < 12; seed++) {
        struct tb b;
        struct sm_trace *t;
        struct sm_cursor *c, *d;
        struct sm_error err;
        struct sm_event e, f;
        uint64_t n = 0, sum = 0;
        unsigned more = seed % 2 == 0 ? SM_CURSOR_UNMERGED : 0;
        tb_init(&b, 1 + seed % 4);
        tb_mixed(&b, 1 + seed % 4, 4000, seed);
        assert_int_equal(sm_trace_open_memory(&t, b.data, b.bytes, NULL, &err), SM_OK);
        assert_int_equal(sm_cursor_new(&c, t, more | SM_CURSOR_STACKS, &err), SM_OK);
        assert_int_equal(sm_cursor_new(&d, t, more | SM_CURSOR_DEPTHS, &err), SM_OK);
        while (sm_cursor_next(c, &e) == SM_OK) {
            assert_int_equal(sm_cursor_next(d, &f), SM_OK);
            assert_int_equal(e.kind, f.kind);
            assert_int_equal(e.obj_seq, f.obj_seq);
            assert_int_equal(e.n_frames, f.n_frames);
            assert_int_equal(e.common_prefix, f.common_prefix);
            assert_int_equal(e.flags, f.flags);
            assert_null(f.frames);
            n++;
            sum += e.n_frames;
        }
        assert_int_equal(sm_cursor_next(d, &f), SM_END);
        assert_true(n > 3500 && sum > 3 * n / 2);
        sm_cursor_free(c);
        sm_cursor_free(d);
        sm_trace_free(t);
        tb_release(&b);
    }
}

static size_t module_record(uint8_t *out, size_t room, uint64_t state, uint64_t start,
                            const char *name) {
    struct sm_tlv_writer w = {out, room, 0, false};
    sm_tlv_leb(&w, SM_MODULE_STATE, state);
    sm_tlv_leb(&w, SM_MODULE_START, start);
    sm_tlv_leb(&w, SM_MODULE_END, start + 0x1000);
    sm_tlv_leb(&w, SM_MODULE_FILE_OFFSET, 0x200);
    sm_tlv_leb(&w, SM_MODULE_LOAD_GENERATION, 3);
    sm_tlv_bytes(&w, SM_MODULE_BUILD_ID, "\x00\xAB\xCD", 3);
    sm_tlv_text(&w, 77, "of a later version");
    sm_tlv_text(&w, SM_MODULE_PATH, name);
    assert_false(w.overflowed);
    return w.used;
}

static void check_module(const struct sm_trace *t, uint32_t index, bool mapped, uint64_t ticks,
                         uint64_t start, const char *name) {
    const struct sm_trace_module *m = sm_trace_module(t, index);
    assert_int_equal(m->mapped, mapped);
    assert_int_equal(m->ticks, ticks);
    assert_int_equal(m->start, start);
    assert_int_equal(m->end, start + 0x1000);
    assert_int_equal(m->file_offset, 0x200);
    assert_int_equal(m->load_generation, 3);
    assert_int_equal(m->build_id_bytes, 3);
    assert_memory_equal(m->build_id, "\x00\xAB\xCD", 3);
    assert_string_equal(m->path, name);
}

/* Object files: of the header at once, of events when they are met, by whichever way and only once. */
static void test_modules(void **state) {
    for (int batches = 0; batches < 2; batches++) {
        struct tb b;
        struct sm_trace *t;
        struct sm_error err;
        uint8_t meta[1024], record[512];
        struct sm_tlv_writer w = {meta, sizeof meta, 0, false};
        tb_init(&b, 1);
        sm_tlv_leb(&w, SM_META_FORMAT_VERSION, 1);
        sm_tlv_bytes(&w, SM_META_MODULE, record, module_record(record, 512, 1, 0x400000, "/bin/p"));
        sm_tlv_bytes(&w, SM_META_MODULE, record, module_record(record, 512, 1, 0x800000, "/l.so"));
        struct sm_packet_header h = {.kind = SM_PACKET_META, .ts_begin_ticks = b.start_ticks};
        tb_packet(&b, &h, meta, w.used);
        tb_extension(&b, 0, b.start_ticks + 7, SM_OP_MODULE, record,
                     module_record(record, 512, 0, 0x800000, "/l.so"));
        tb_end(&b, b.start_ticks + 9);
        assert_int_equal(sm_trace_open_memory(&t, b.data, b.bytes, NULL, &err), SM_OK);
        assert_int_equal(sm_trace_n_modules(t), 2);
        for (int again = 0; again < 2; again++) {
            struct list l = {0};
            if (batches == again)
                by_batches(t, SM_CURSOR_EXTENSIONS, 1, &l);
            else
                by_cursor(t, SM_CURSOR_EXTENSIONS, &l);
            assert_int_equal(l.n, 1);
            free(l.items);
            assert_int_equal(sm_trace_n_modules(t), 3);
        }
        check_module(t, 0, true, b.start_ticks, 0x400000, "/bin/p");
        check_module(t, 1, true, b.start_ticks, 0x800000, "/l.so");
        check_module(t, 2, false, b.start_ticks + 7, 0x800000, "/l.so");
        assert_string_equal(sm_trace_module(t, 3)->path, "");
        sm_trace_free(t);
        tb_release(&b);
    }
}

/* Other formats are refused, and a pass may be given up in its middle. */
static bool take_two(void *ctx, const struct sm_batch *b) {
    return ++*(unsigned *)ctx < 2;
}

static void test_ends(void **state) {
    struct tb b;
    struct sm_trace *t;
    struct sm_batch_pass *pass;
    struct sm_error err;
    unsigned taken = 0;
    small_trace(&b, true);
    assert_int_equal(sm_trace_open_memory(&t, b.data, b.bytes, NULL, &err), SM_OK);
    assert_int_equal(sm_batch_pass_new(&pass, t, SM_CURSOR_STACKS, &err), SM_OK);
    assert_int_equal(sm_batch_each(pass, 4, take_two, &taken, &err), SM_OK);
    sm_batch_pass_free(pass);
    assert_int_equal(taken, 2);
    sm_trace_free(t);
    tb_release(&b);
}

/* test_batch [FOLDER]: of the fuzzer's inputs. */
int main(int argc, char **argv) {
    folder = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound),    cmocka_unit_test(test_cut),
        cmocka_unit_test(test_flipped),  cmocka_unit_test(test_missing),
        cmocka_unit_test(test_deep),     cmocka_unit_test(test_files),
        cmocka_unit_test(test_cut_flag), cmocka_unit_test(test_depths),
        cmocka_unit_test(test_modules),  cmocka_unit_test(test_ends),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    printf("%zu traces compared, %zu with losses, %zu events\n", n_compared, n_with_losses,
           n_events);
    return failed;
}
