/* Start and stop. Both hold session_lock; everything that happens while streams are active is in stream.c,
   whose essay describes the handshake that stop relies on. */
#include "record/internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

#define STOP_WAIT_NS 5000000000ull
#define LOCK_LIMIT_MS 20000
#define META_MAX_BYTES (256u << 10)

struct sm_session sm_session = {.fd = -1, .tail_fd = -1};
struct sm_control *_Atomic sm_control;

/* Counts the sessions of the process and of those it was forked from, so that no two are taken for one another. */
static uint32_t last_generation;
/* A session was stopped while a thread was stuck inside an event (blocked in a write, or interrupted by the very
   handler that called stop). What the thread uses must stay as it is; the rest of the stop is done by the next call of
   stop or start that finds the thread gone. */
static bool stop_pending;
static enum sm_end_reason stop_reason;

static bool complete_stop(struct sm_control *c, uint64_t deadline_ns);

struct sm_control *sm_control_setup(void) {
    struct sm_control *c = atomic_load_explicit(&sm_control, memory_order_acquire);
    if (c == NULL) {
        struct sm_control *fresh = sm_os_map_wiped_on_fork(4096);
        if (fresh == NULL)
            return NULL;
        if (!atomic_compare_exchange_strong_explicit(&sm_control, &c, fresh, memory_order_acq_rel,
                                                     memory_order_acquire))
            sm_os_unmap(fresh, 4096); /* another thread was faster: c is its page */
        else
            c = fresh;
    }
    return c;
}

/* In a forked child all of the parent's state is void: mappings are absent, threads gone, locks wiped. */
void sm_session_after_fork(void) {
    sm_slots_forget();
    sm_codes_forget();
    if (sm_session.config.fd < 0 && sm_descriptor_is(sm_session.fd, &sm_session.file_id))
        close(sm_session.fd);
    if (sm_descriptor_is(sm_session.tail_fd, &sm_session.tail_id))
        close(sm_session.tail_fd);
    sm_session.fd = sm_session.tail_fd = -1;
    sm_session.tail = NULL;
    memset(&sm_session.index, 0, sizeof sm_session.index);
    stop_pending = false;
}

/* ---- configuration ---- */

static const char *keep(struct sm_text *pool, const char *s, bool *ok) {
    if (s == NULL)
        return NULL;
    if (pool->used >= pool->capacity - 1) {
        *ok = false;
        return NULL;
    }
    struct sm_text part = sm_text_in(pool->buf + pool->used, pool->capacity - pool->used);
    sm_text_add(&part, s);
    if (part.overflowed)
        *ok = false;
    pool->used += part.used + 1;
    return part.buf;
}

/* The config of a followed child points into sm_session.strings already: copied through a scratch. */
static bool copy_config(struct sm_session *session, const struct sm_recorder_config *config) {
    static char scratch[sizeof session->strings];
    bool ok = true;
    struct sm_text pool = sm_text_in(scratch, sizeof scratch);
    struct sm_recorder_config copy = *config;
    const char **strings[] = {&copy.path, &copy.executable, &copy.ocaml_version,
                              &copy.runtime_params, &copy.context};
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        const char *in_scratch = keep(&pool, *strings[i], &ok);
        *strings[i] = in_scratch != NULL ? session->strings + (in_scratch - scratch) : NULL;
    }
    memcpy(session->strings, scratch, sizeof scratch);
    session->config = copy;
    return ok;
}

static bool expand_path(struct sm_session *session, bool child) {
    struct sm_text t = sm_text_in(session->path, sizeof session->path);
    const char *p = session->config.path;
    bool has_pid = false;
    for (; *p != 0; p++) {
        if (p[0] == '%' && p[1] == 'p') {
            sm_text_number(&t, session->pid);
            has_pid = true;
            p++;
        } else if (p[0] == '%' && p[1] == '%') {
            sm_text_char(&t, '%');
            p++;
        } else {
            sm_text_char(&t, *p);
        }
    }
    if (child && !has_pid) {
        sm_text_char(&t, '.');
        sm_text_number(&t, session->pid);
    }
    struct sm_text tail = sm_text_in(session->tail_path, sizeof session->tail_path);
    sm_text_add(&tail, session->path);
    sm_text_add(&tail, SM_TAIL_SUFFIX);
    return !t.overflowed && !tail.overflowed;
}

static int check_config(const struct sm_recorder_config *c, char *err, size_t err_bytes) {
    if (c->fd < 0 && (c->path == NULL || c->path[0] == 0)) {
        sm_recorder_error(err, err_bytes, "no file to record into", "");
        return -1;
    }
    bool native_only = c->sample_rate == 0 && c->native_interval_bytes != 0;
    if (!native_only && !(c->sample_rate > 0 && c->sample_rate <= 1)) {
        sm_recorder_error(err, err_bytes, "the sampling rate must be above 0 and at most 1", "");
        return -1;
    }
    if (c->depth_limit == 1 || c->depth_limit > SM_MAX_DEPTH) {
        sm_recorder_error(err, err_bytes, "the depth limit must be within 2 and 32768", "");
        return -1;
    }
    return 0;
}

/* ---- start ---- */

static int write_meta(struct sm_session *session, char *err, size_t err_bytes) {
    uint8_t *buf = sm_os_map(META_MAX_BYTES);
    if (buf == NULL) {
        sm_recorder_error(err, err_bytes, "no memory", "");
        return -1;
    }
    struct sm_packet_header h = {.kind = SM_PACKET_META};
    size_t bytes = sm_meta_build(session, buf, META_MAX_BYTES, &h.ts_begin_ticks);
    h.flags = SM_PACKET_FLAG_RESET;
    session->started = false;
    bool done = sm_output_packet(session, &h, buf, bytes);
    sm_os_unmap(buf, META_MAX_BYTES);
    if (!done) {
        uint32_t error = atomic_load_explicit(&session->failed, memory_order_relaxed);
        sm_recorder_error(err, err_bytes, session->path[0] != 0 ? session->path : "output",
                          sm_os_error_text((int)error));
        return -1;
    }
    return 0;
}

int sm_session_start_locked(const struct sm_recorder_config *config, uint32_t parent_pid, char *err,
                            size_t err_bytes) {
    struct sm_session *session = &sm_session;
    struct sm_control *c = atomic_load_explicit(&sm_control, memory_order_acquire);
    if (atomic_load_explicit(&c->active, memory_order_relaxed) != 0) {
        sm_recorder_error(err, err_bytes, "a recording is active already", "");
        return -1;
    }
    if (!c->alive && last_generation != 0)
        sm_session_after_fork();
    if (stop_pending && !complete_stop(c, 0)) {
        sm_recorder_error(err, err_bytes,
                          "a thread is still writing events of the recording that was stopped", "");
        return -1;
    }
    if (check_config(config, err, err_bytes) != 0)
        return -1;
    if (sm_slots_setup() != 0) {
        sm_recorder_error(err, err_bytes, "no memory for the recorder", "");
        return -1;
    }
    sm_fork_setup();
    c->symmetric = !sm_os_barrier_prepare();
    c->alive = 1;

    if (!copy_config(session, config)) {
        sm_recorder_error(err, err_bytes, "the configuration's strings are too long", "");
        return -1;
    }
    session->parent_pid = parent_pid;
    session->pid = (uint32_t)getpid();
    session->path[0] = 0;
    session->tail_fd = -1;
    if (session->config.fd < 0 && !expand_path(session, parent_pid != 0)) {
        sm_recorder_error(err, err_bytes, "the file's name is too long", "");
        return -1;
    }
    session->tick_ns = config->tick_ns != 0 ? config->tick_ns : 1000;
    session->plain_clock = !sm_clock_usable();
    session->depth_limit = config->depth_limit != 0 ? config->depth_limit : 1024;
    session->rate = config->sample_rate;
    session->log1p_rate = sm_log1p_negative(session->rate);
    session->n_final_counters = 0;
    atomic_store_explicit(&session->forks, 0, memory_order_relaxed);
    atomic_store_explicit(&c->discarded, 0, memory_order_relaxed);
    sm_os_random(&session->id, sizeof session->id);
    sm_slots_session_begins();
    sm_codes_begin();

    if (sm_output_open(session, session->path, session->config.fd, err, err_bytes) != 0)
        return -1;
    int error = sm_tail_begin(session);
    if (error != 0) {
        sm_recorder_error(err, err_bytes, session->tail_path, sm_os_error_text(-error));
        sm_output_close(session);
        return -1;
    }
    if (write_meta(session, err, err_bytes) != 0) {
        sm_tail_end(session, false);
        sm_output_close(session);
        return -1;
    }
    session->started = true;
    session->generation = ++last_generation;
    /* release: hands the session's fields to every thread that sees it (stream.c, enter). */
    atomic_store_explicit(&c->active, session->generation, memory_order_seq_cst);
    return 0;
}

int sm_recorder_start(const struct sm_recorder_config *config, char *err, size_t err_bytes) {
    int saved_errno = errno;
    int result = -1;
    struct sm_control *c = sm_control_setup();
    if (c == NULL) {
        sm_recorder_error(err, err_bytes, "no memory for the recorder", "");
    } else if (!sm_os_lock_acquire(&c->session_lock, LOCK_LIMIT_MS)) {
        sm_recorder_error(err, err_bytes, "a recording is just being started or stopped", "");
    } else {
        result = sm_session_start_locked(config, 0, err, err_bytes);
        sm_os_lock_release(&c->session_lock);
    }
    errno = saved_errno;
    return result;
}

/* ---- stop ---- */

/* Waits until the stream's owner is outside of events. */
static bool quiesced(struct sm_stream *s, uint64_t deadline_ns) {
    uint32_t turns = 0;
    /* acquire: pairs with the release in sm_stream_leave */
    while (atomic_load_explicit(&s->busy, memory_order_acquire) != 0) {
        /* An event of this very thread has been interrupted, and it will not go on before we return. */
        if ((s == sm_thread.stream && sm_thread.epoch == sm_epoch) ||
            (s == sm_native_thread.stream && sm_native_thread.epoch == sm_epoch))
            return false;
        if (sm_os_monotonic_ns() > deadline_ns)
            return false;
        sm_os_sleep_us(turns++ < 20 ? 20 : 500);
    }
    return true;
}

/* The last packets of a stream, whose owner is not inside of an event and will find no session. */
static bool finish_stream(struct sm_stream *s) {
    if (s->slot == NULL)
        return true;
    sm_stream_take_over_reentered(s);
    s->attention &= ~(uint32_t)(SM_ATTENTION_BLOCKED | SM_ATTENTION_OWNER);
    if (s->attention & SM_ATTENTION_DISCARD)
        sm_stream_prepare(s, sm_clock_ticks(&s->clock));
    return sm_stream_flush(s);
}

/* Everything after the handshake. False: a thread is still inside an event; call again later. */
static bool complete_stop(struct sm_control *c, uint64_t deadline_ns) {
    struct sm_session *session = &sm_session;
    bool stuck = false, all_written = true;
    uint32_t n = sm_slots_count();
    for (uint32_t i = 0; i < n; i++)
        stuck |= !quiesced(sm_slots_get(i), deadline_ns);

    uint64_t end_ticks = sm_os_monotonic_ns() / session->tick_ns;
    bool failed = atomic_load_explicit(&session->failed, memory_order_relaxed) != 0;
    sm_tail_state(session, failed ? 3 : 2, end_ticks);
    if (failed && !stuck)
        sm_output_repair(session);
    for (uint32_t i = 0; i < n; i++) {
        struct sm_stream *s = sm_slots_get(i);
        if (s->generation == session->generation &&
            atomic_load_explicit(&s->busy, memory_order_acquire) == 0)
            all_written &= finish_stream(s);
    }
    if (stuck)
        return false;
    stop_pending = false;
    if (all_written)
        sm_output_end(session, failed ? SM_REASON_OUTPUT_FAILED : stop_reason, end_ticks);
    all_written &= atomic_load_explicit(&session->failed, memory_order_relaxed) == 0;
    for (uint32_t i = 0; i < n; i++)
        sm_tail_slot_close(sm_slots_get(i));
    bool locked = sm_os_lock_acquire(&c->slots_lock, 1000); /* see sm_discard_without_stream */
    sm_tail_counts(session);
    sm_tail_end(session, !all_written);
    if (locked)
        sm_os_lock_release(&c->slots_lock);
    sm_output_close(session);
    return true;
}

static void stop_locked(struct sm_control *c, enum sm_end_reason reason) {
    if (atomic_load_explicit(&c->active, memory_order_acquire) != 0) {
        /* The stopper's side of the handshake in stream.c. */
        atomic_store_explicit(&c->active, 0, memory_order_seq_cst);
        if (!c->symmetric)
            sm_os_barrier_all();
        stop_pending = true;
        stop_reason = reason;
    }
    if (stop_pending)
        complete_stop(c, sm_os_monotonic_ns() + STOP_WAIT_NS);
}

void sm_recorder_stop(enum sm_end_reason reason) {
    int saved_errno = errno;
    struct sm_control *c = atomic_load_explicit(&sm_control, memory_order_acquire);
    if (c != NULL && c->alive && sm_os_lock_acquire(&c->session_lock, LOCK_LIMIT_MS)) {
        stop_locked(c, reason);
        sm_os_lock_release(&c->session_lock);
    }
    errno = saved_errno;
}

/* ---- questions ---- */

bool sm_recorder_active(void) {
    struct sm_control *c = atomic_load_explicit(&sm_control, memory_order_acquire);
    return c != NULL && atomic_load_explicit(&c->active, memory_order_acquire) != 0 &&
           atomic_load_explicit(&sm_session.failed, memory_order_relaxed) == 0;
}

uint32_t sm_recorder_session(void) {
    struct sm_control *c = atomic_load_explicit(&sm_control, memory_order_acquire);
    return c != NULL ? atomic_load_explicit(&c->active, memory_order_acquire) : 0;
}

double sm_recorder_sample_rate(void) {
    struct sm_control *c = atomic_load_explicit(&sm_control, memory_order_acquire);
    if (c == NULL || atomic_load_explicit(&c->active, memory_order_acquire) == 0)
        return 0;
    return sm_session.rate;
}

uint32_t sm_recorder_generation(void) {
    return __atomic_load_n(&last_generation, __ATOMIC_RELAXED);
}

uint64_t sm_recorder_discarded(void) {
    struct sm_control *c = atomic_load_explicit(&sm_control, memory_order_acquire);
    if (c == NULL || !c->alive)
        return 0;
    uint64_t sum = atomic_load_explicit(&c->discarded, memory_order_relaxed);
    for (uint32_t i = 0; i < sm_slots_count(); i++) {
        struct sm_stream *s = sm_slots_get(i);
        sum += atomic_load_explicit(&s->discarded, memory_order_relaxed) +
               atomic_load_explicit(&s->reentered, memory_order_relaxed);
    }
    return sum;
}

void sm_recorder_final_counters(const struct sm_counter_value *values, uint32_t n) {
    struct sm_control *c = atomic_load_explicit(&sm_control, memory_order_acquire);
    if (c == NULL || !sm_os_lock_acquire(&c->session_lock, 1000))
        return;
    if (n > 16)
        n = 16;
    memcpy(sm_session.final_counters, values, n * sizeof *values);
    sm_session.n_final_counters = n;
    sm_os_lock_release(&c->session_lock);
}
