/* The reader of native traces: ways in, what is not a trace, the side file, payloads that lie. */
#include "native_reading.h"

/* ---- what is not a trace, or hardly ---- */

static void save(const char *to, const void *data, size_t bytes) {
    FILE *f = fopen(to, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    fclose(f);
}

static void check_refused(const char *what, const char *word) {
    struct sm_trace *t;
    struct sm_error err = {""};
    assert_int_equal(sm_trace_open(&t, what, NULL, &err), SM_FAILED);
    if (strstr(err.text, word) == NULL || (what[0] == '/' && strstr(err.text, what) == NULL))
        fail_msg("%s: \"%s\" does not say \"%s\"", what, err.text, word);
}

static void not_traces(void **state) {
    uint8_t magic[200] = SM_PACKET_MAGIC;
    save(path, "", 0);
    check_refused(path, "empty");
    save(path, "let x = 1\nlet y = 2\n", 20);
    check_refused(path, "text");
    save(path, "\x1f\x8b\x08\x00\x00", 5);
    check_refused(path, "gzip");
    save(path, "\x28\xb5\x2f\xfd....", 8);
    check_refused(path, "zstd");
    save(path, SM_TAIL_MAGIC "....", 12);
    check_refused(path, "side file");
    save(path, magic, sizeof magic);
    check_refused(path, "begins like a trace");
    check_refused(directory, "directory");
    check_refused("/nonexistent/file", "No such file");
    check_refused("/dev/zero", "not a trace"); /* endless */
    unlink(path);
}

static void without_samples(void **state) {
    struct tb b;
    struct reading r;
    tb_init(&b, 1);
    tb_meta(&b);
    tb_end(&b, 2000);
    assert_true(read_memory(b.data, b.bytes, &r));
    assert_int_equal(r.n, 0);
    assert_int_equal(r.n_losses, 0);
    release(&r);
    assert_true(read_memory(b.data, b.packets[0].bytes, &r)); /* META alone */
    assert_int_equal(r.n, 0);
    assert_true(has_loss(&r, SM_LOSS_EXTENT));
    release(&r);
    tb_release(&b);
}

/* ---- ways in ---- */

static void check_open(struct tb *b, const struct reading *full, const char *what) {
    struct sm_trace *t;
    struct sm_error err = {""};
    struct reading r;
    if (sm_trace_open(&t, what, NULL, &err) != SM_OK)
        fail_msg("%s", err.text);
    read_trace(t, all, &r);
    check_events(b, full, &r, keep_all, NULL, what, 0);
    release(&r);
    sm_trace_free(t);
}

static void feed(int fd, const struct tb *b) {
    for (size_t at = 0; at < b->bytes;) {
        size_t n = b->bytes - at < 777 ? b->bytes - at : 777;
        ssize_t done = write(fd, b->data + at, n);
        if (done <= 0)
            _exit(1);
        at += (size_t)done;
    }
    _exit(0);
}

static void ways_in(void **state) {
    struct tb b;
    struct reading full;
    small_trace(&b, false);
    assert_true(read_memory(b.data, b.bytes, &full));
    tb_save(&b, path);
    check_open(&b, &full, path);
    int saved = dup(STDIN_FILENO);
    for (int kind = 0; kind < 3; kind++) {
        int ends[2] = {-1, -1};
        pid_t child = -1;
        if (kind == 0)
            assert_int_equal(pipe(ends), 0);
        else if (kind == 1)
            assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        if (kind < 2) {
            child = fork();
            if (child == 0)
                feed(ends[1], &b);
            close(ends[1]);
            dup2(ends[0], STDIN_FILENO);
            close(ends[0]);
        } else {
            assert_non_null(freopen(path, "rb", stdin));
        }
        check_open(&b, &full, "-");
        int status = 0;
        if (child > 0)
            waitpid(child, &status, 0);
        assert_int_equal(status, 0);
    }
    dup2(saved, STDIN_FILENO);
    close(saved);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    pid_t child = fork();
    if (child == 0) {
        FILE *f = fopen(path, "wb");
        feed(fileno(f), &b);
    }
    check_open(&b, &full, path);
    waitpid(child, NULL, 0);
    unlink(path);
    release(&full);
    tb_release(&b);
}

/* Cut by another process while it is mapped: no SIGBUS, what is gone is reported. */
static void cut_while_open(void **state) {
    struct tb b;
    struct reading full, r;
    struct sm_trace *t;
    tb_init(&b, 2);
    tb_mixed(&b, 2, 60000, 8);
    assert_true(b.bytes > 200000);
    assert_true(read_memory(b.data, b.bytes, &full));
    tb_save(&b, path);
    assert_int_equal(sm_trace_open(&t, path, NULL, NULL), SM_OK);
    assert_int_equal(truncate(path, 100000), 0);
    read_trace(t, all, &r);
    assert_true(r.n < full.n);
    assert_true(has_loss(&r, SM_LOSS_CORRUPT));
    assert_int_equal(r.n + r.lost_events, full.n);
    sm_trace_free(t);
    unlink(path);
    release(&r);
    release(&full);
    tb_release(&b);
}

/* ---- side file ---- */

static void side_file(void **state) {
    for (int variant = 0; variant < 4; variant++) {
        struct tb b;
        struct reading full, r;
        struct sm_trace *t;
        uint64_t stack[2] = {0x1000, 0x2000};
        tb_init(&b, 3);
        tb_meta(&b);
        for (uint32_t i = 0; i < 500; i++) {
            tb_alloc(&b, i % 3, 1100 + i, 1 + i % 30, stack, 1 + i % 2);
            if (i % 5 == 4)
                tb_ref(&b, i % 3, 1100 + i, true, (i + 1) % 3, i / 6);
            if (i % 100 == 99)
                tb_flush(&b, i % 3);
        }
        tb_name(&b, 0x1000, "a.ml", "f", 1);
        tb_save_tail(&b, tail_path);
        if (variant == 1) { /* two streams' packets reached the trace too */
            tb_flush(&b, 0);
            tb_flush(&b, 1);
        }
        size_t bytes = b.bytes;
        if (variant == 2) { /* the program died while it appended one of them */
            tb_flush(&b, 0);
            bytes = b.bytes - 40;
        }
        struct tb cut = b;
        cut.bytes = bytes;
        tb_save(&cut, path);
        if (variant == 3) { /* of another recording */
            FILE *f = fopen(tail_path, "r+b");
            assert_non_null(f);
            fseek(f, SM_TAIL_AT_SESSION, SEEK_SET);
            fputc(1, f);
            fclose(f);
        }
        assert_int_equal(sm_trace_open(&t, path, NULL, NULL), SM_OK);
        const char *used = NULL;
        assert_true(sm_trace_used_tail(t, &used) == (variant != 3));
        read_trace(t, all, &r);
        if (variant == 3) {
            assert_true(r.n < b.events_made);
        } else {
            assert_string_equal(used, tail_path);
            assert_int_equal(r.n, b.events_made);
            assert_false(has_loss(&r, SM_LOSS_CUT));
            assert_true(has_loss(&r, SM_LOSS_EXTENT));
            assert_true(has_loss(&r, SM_LOSS_DISCARDED));
            assert_int_equal(r.orphans, 0);
            const struct sm_location *list;
            bool named = false;
            for (uint32_t i = 0; i < sm_trace_n_locations(t); i++)
                named |= sm_trace_location_code(t, i) == 0x1000 &&
                         sm_trace_location(t, i, &list) == 1 && strcmp(list->function, "f") == 0;
            assert_true(named);
            /* against the trace as it would have been closed */
            tb_flush_all(&b);
            assert_true(read_memory(b.data, b.bytes, &full));
            check_events(&b, &full, &r, keep_all, NULL, "side file", (size_t)variant);
            release(&full);
        }
        sm_trace_free(t);
        release(&r);
        struct sm_trace_options options = {.ignore_tail = true};
        assert_int_equal(sm_trace_open(&t, path, &options, NULL), SM_OK);
        read_trace(t, all, &r);
        assert_true(r.n < b.events_made);
        sm_trace_free(t);
        release(&r);
        unlink(path);
        unlink(tail_path);
        tb_release(&b);
    }
}

/* Packets whose header is right and whose payload lies. */
static void lying_payloads(void **state) {
    static const struct {
        const char *bytes;
        size_t n;
        uint32_t readable;
        enum sm_loss_kind kind;
    } cases[] = {
        {"\x01\x00\x00\x00\x63\x00", 6, 1, SM_LOSS_UNSUPPORTED},     /* unknown op */
        {"\x01\x00\x00\x00\xcc\x00\x00", 7, 1, SM_LOSS_UNSUPPORTED}, /* resize: reserved */
        {"\x01\x00\x05\x00", 4, 0, SM_LOSS_CORRUPT},                 /* pops of an empty stack */
        {"\x01\x00\x00\x02\x00\x04", 6, 0, SM_LOSS_CORRUPT},         /* index 1, not numbered */
        {"\x01\x00\x00\x01\xe0", 5, 0, SM_LOSS_CORRUPT},             /* no successor */
        {"\x01\x00\x00\x02\xf3\x00", 6, 0, SM_LOSS_UNSUPPORTED},     /* tag 3 */
        {"\x01\x00\x00\x02\xf8\x00", 6, 0, SM_LOSS_UNSUPPORTED},     /* reserved code */
        {"\x01\x00\x00\x02\xf5\x10", 6, 0, SM_LOSS_CORRUPT},         /* predicts nothing */
        {"\x01\x00\x00\x7f\xf4\x10", 6, 0, SM_LOSS_CORRUPT},         /* codes beyond the end */
        {"\x01\x00\x00\x01\xf4\x10", 6, 0, SM_LOSS_CORRUPT},         /* codes cut short */
        {"\xe1\x00\x7fmark", 7, 0, SM_LOSS_CORRUPT},                 /* extension too long */
        {"\xc9\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00", 12, 0, SM_LOSS_CORRUPT}, /* dt */
        {"\x40\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01\x00\x00\x00", 16, 0,
         SM_LOSS_CORRUPT},
        {"\xca\x00\xff\xff\xff\x7f\x00", 7, 0, SM_LOSS_CORRUPT}, /* stream beyond the limit */
        {"\xfa\x00\x02zz\x01\x00\x00\x00", 9, 2, SM_LOSS_KINDS}, /* op 250 is skipped: sound */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tb b;
        struct reading r;
        uint64_t stack[1] = {0x77};
        tb_init(&b, 2);
        tb_meta(&b);
        struct sm_packet_header h = {.kind = SM_PACKET_EVENTS,
                                     .stream = 1,
                                     .ts_begin_ticks = 5000,
                                     .n_events = cases[i].kind == SM_LOSS_KINDS ? 2 : 9,
                                     .n_alloc = cases[i].kind == SM_LOSS_KINDS ? 1 : 2};
        tb_packet(&b, &h, cases[i].bytes, cases[i].n);
        tb_alloc(&b, 0, 6000, 3, stack, 1);
        tb_end(&b, 7000);
        assert_true(read_memory(b.data, b.bytes, &r));
        if (r.n != cases[i].readable + 1u)
            fail_msg("case %zu: %zu events", i, r.n);
        if (cases[i].kind == SM_LOSS_KINDS) {
            assert_int_equal(r.n_losses, 0);
        } else {
            assert_int_equal(r.n_losses, 1);
            if (r.losses[0].kind != cases[i].kind)
                fail_msg("case %zu: %s", i, sm_loss_kind_name(r.losses[0].kind));
            assert_int_equal(r.losses[0].events, 9 - cases[i].readable);
            assert_int_equal(r.losses[0].stream, 1);
        }
        release(&r);
        tb_release(&b);
    }
}

/* Three bytes expand to 256 frames: the cap stops it. */
static void expansion(void **state) {
    struct tb b;
    struct reading r;
    size_t room = 8u << 20, n = 0;
    uint8_t *payload = malloc(room);
    uint32_t n_events = 0;
    memcpy(payload, "\x01\x00\x00\x06\xf4\x10\xe0\xe0\xe0\xe0", 10);
    /* a location that follows itself: index 1 after index 1 */
    n = 0;
    payload[n++] = 1, payload[n++] = 0, payload[n++] = 0, payload[n++] = 4;
    payload[n++] = 0xF4, payload[n++] = 0x10, payload[n++] = 0x00, payload[n++] = 0x04;
    n_events++;
    while (n + 600 < room) { /* 128 codes of 256 frames each, then all but two frames popped */
        payload[n++] = 1, payload[n++] = 0;
        n = (size_t)(sm_put_leb(payload + n, n_events == 1 ? 0 : 127 * 256) - payload);
        n = (size_t)(sm_put_leb(payload + n, 127 * 2) - payload);
        for (int i = 0; i < 127; i++)
            payload[n++] = 0xE2, payload[n++] = 255;
        n_events++;
    }
    tb_init(&b, 1);
    tb_meta(&b);
    struct sm_packet_header h = {.kind = SM_PACKET_EVENTS,
                                 .ts_begin_ticks = 5000,
                                 .n_events = n_events,
                                 .n_alloc = n_events};
    tb_packet(&b, &h, payload, n);
    tb_end(&b, 7000);
    assert_true(read_memory(b.data, b.bytes, &r));
    assert_int_equal(r.n, 1 + SM_MAX_PACKET_FRAMES / (127 * 256));
    assert_true(has_loss(&r, SM_LOSS_CORRUPT));
    assert_int_equal(r.n + r.lost_events, n_events);
    free(payload);
    release(&r);
    tb_release(&b);
}

int main(void) {
    if (!make_directory())
        return 99;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_traces), cmocka_unit_test(without_samples),
        cmocka_unit_test(ways_in),    cmocka_unit_test(cut_while_open),
        cmocka_unit_test(side_file),  cmocka_unit_test(lying_payloads),
        cmocka_unit_test(expansion),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(directory);
    return failed;
}
