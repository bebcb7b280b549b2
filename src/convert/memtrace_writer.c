/* The memtrace writer: packets, domains and the order of the file.

   Every domain collects events in a packet of its own. Before an event, the packet is closed when
   it may lack room, when too many locations wait to be announced, when its times would not
   fit into 25 bits, or (version 3) when the domain's range of ids is used up; these are the original's
   rules, so that a trace with one domain comes out with its bytes. Closing writes the waiting
   locations as packets of their own first, so a location always precedes its use.

   Readers add up in file order, so order matters between domains:
     EXACT    a packet is closed when the next event is of another domain. File order = call order.
     RELAXED  a domain's packet is closed only before an event elsewhere that needs it: the
              object's allocation, or its promotion, is still in it.
   Version 2 knows no domains: all events go through one.

   Promotions go to the domain that allocated the object, whoever made them: readers refuse the
   negative distance that another domain's ids can give. */
#include "convert/memtrace_writer_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Worst case of one event: header and operands, then a stack. */
#define EVENT_ROOM (100u + SM_MT_STACK_ROOM)
#define MAX_PACKET_US 30000000
#define MAX_DOMAINS 65536u

struct sm_memtrace_writer {
    struct sm_memtrace_header header; /* strings not kept */
    enum sm_memtrace_order order;
    sm_memtrace_locate_fn *locate;
    void *locate_ctx;
    FILE *out;
    sm_mt_open_fn *open;
    void *open_ctx;
    struct sm_mt_domain **domains; /* by id; MAX_DOMAINS, owned */
    uint32_t *ids;                 /* of the domains there are, in order of appearance */
    uint32_t n_domains, n_coders;
    struct sm_mt_domain *current; /* wrote last */
    uint64_t next_chunk;
    uint64_t clock; /* counts events, for last_use */
    uint8_t *info;  /* trace-info packet, for further files */
    size_t info_bytes;
    uint8_t scratch[SM_MT_PACKET_BYTES];
};

static bool put_bytes(FILE *out, const uint8_t *p, size_t n, struct sm_error *err) {
    if (fwrite(p, 1, n, out) == n)
        return true;
    sm_error_set(err, "cannot write the memtrace file: %s", strerror(errno));
    return false;
}

static bool no_memory(struct sm_error *err) {
    sm_error_set(err, "out of memory while writing a memtrace file");
    return false;
}

/* ---- headers ---- */

struct verifier {
    uint16_t ix, pred;
    uint64_t val;
};
static const struct verifier no_verifier = {SM_MT_NO_VERIFY, 0, 0};

/* What is known when a packet is opened. Returns the header's length. */
static uint32_t open_header(const struct sm_memtrace_writer *w, uint8_t *p, uint32_t domain,
                            const struct verifier *v) {
    memset(p, 0, SM_MT_MAX_HEADER_BYTES);
    sm_put_u32le(p, SM_MT_MAGIC);
    sm_put_u16le(p + 28, (uint16_t)w->header.version);
    sm_put_u64le(p + 30, w->header.pid);
    uint32_t at = 38;
    if (w->header.version >= 3) {
        sm_put_u16le(p + at, (uint16_t)domain);
        at += 2;
    }
    sm_put_u16le(p + at, v->ix);
    sm_put_u16le(p + at + 2, v->pred);
    sm_put_u64le(p + at + 4, v->val);
    return at + 28;
}

static void close_header(const struct sm_memtrace_writer *w, uint8_t *p, uint32_t bytes,
                         int64_t begin_us, int64_t end_us, uint64_t alloc_begin,
                         uint64_t alloc_end) {
    uint32_t at = w->header.version >= 3 ? 52 : 50;
    sm_put_u32le(p + 4, bytes * 8);
    sm_put_u64le(p + 8, (uint64_t)begin_us);
    sm_put_u64le(p + 16, (uint64_t)end_us);
    sm_put_u64le(p + at, alloc_begin);
    sm_put_u64le(p + at + 8, alloc_end);
}

static uint8_t *put_event_header(uint8_t *p, unsigned id, int64_t us) {
    sm_put_u32le(p, ((uint32_t)us & SM_MT_TIME_MASK) | (uint32_t)id << SM_MT_TIME_BITS);
    return p + 4;
}

static uint8_t *put_vint(uint8_t *p, int64_t x) {
    if (x >= 0 && x <= 252) {
        *p = (uint8_t)x;
        return p + 1;
    }
    if (x >= 0 && x <= UINT16_MAX) {
        *p = 253;
        sm_put_u16le(p + 1, (uint16_t)x);
        return p + 3;
    }
    if (x >= INT32_MIN && x <= INT32_MAX) {
        *p = 254;
        sm_put_u32le(p + 1, (uint32_t)x);
        return p + 5;
    }
    *p = 255;
    sm_put_u64le(p + 1, (uint64_t)x);
    return p + 9;
}

/* A text field of the trace info. The packet must hold all of them: each has its share. */
static uint8_t *put_info_text(uint8_t *p, const char *text) {
    size_t n = text == NULL ? 0 : strnlen(text, 7 << 10);
    memcpy(p, n > 0 ? text : "", n);
    p[n] = 0;
    return p + n + 1;
}

static bool make_info(struct sm_memtrace_writer *w, const struct sm_memtrace_header *h) {
    uint8_t *b = w->scratch;
    uint8_t *p = b + open_header(w, b, h->initial_domain, &no_verifier);
    p = put_event_header(p, SM_MT_INFO, h->start_us);
    sm_put_f64le(p, h->sample_rate);
    p[8] = (uint8_t)h->word_bits;
    p = put_info_text(p + 9, h->executable);
    p = put_info_text(p, h->host);
    p = put_info_text(p, h->runtime_params);
    sm_put_u64le(p, h->pid);
    p = put_info_text(p + 8, h->context);
    w->info_bytes = (size_t)(p - b);
    close_header(w, b, (uint32_t)w->info_bytes, h->start_us, h->start_us, 0, 0);
    w->info = malloc(w->info_bytes);
    if (w->info != NULL)
        memcpy(w->info, b, w->info_bytes);
    return w->info != NULL;
}

/* ---- packets ---- */

static void open_packet(struct sm_memtrace_writer *w, struct sm_mt_domain *d, int64_t now_us) {
    struct verifier v;
    sm_mt_stacks_verifier(&d->coder->stacks, !d->had_packet, &v.ix, &v.pred, &v.val);
    d->had_packet = true;
    d->ts_begin_us = d->ts_end_us = now_us;
    if (d->next_id == d->chunk_end && w->header.version >= 3) {
        d->next_id = w->next_chunk;
        w->next_chunk += SM_MT_ID_CHUNK;
        d->chunk_end = w->next_chunk;
    }
    d->start_id = d->next_id;
    d->used = open_header(w, d->coder->packet, d->id, &v);
    memset(d->promoted, 0, sizeof d->promoted);
}

static bool packet_is_empty(const struct sm_memtrace_writer *w, const struct sm_mt_domain *d) {
    return d->used == (w->header.version >= 3 ? 68 : 66);
}

/* Announces the locations that the packet being closed uses first. */
static bool write_locations(struct sm_memtrace_writer *w, struct sm_mt_domain *d,
                            struct sm_error *err) {
    struct sm_mt_stack_encoder *stacks = &d->coder->stacks;
    uint8_t record[4 + SM_MT_LOCATION_BYTES], *b = w->scratch;
    uint32_t used = 0, empty = 0;
    for (uint32_t i = 0; i < stacks->n_pending; i++) {
        uint64_t code = stacks->pending[i];
        const struct sm_location *list = NULL;
        uint32_t n = w->locate == NULL ? 0 : w->locate(w->locate_ctx, code, &list);
        uint8_t *p = put_event_header(record, SM_MT_LOCATION, d->ts_begin_us);
        p = sm_mt_names_encode(&d->coder->names, p, code, list, n);
        if (p == NULL)
            return no_memory(err);
        uint32_t bytes = (uint32_t)(p - record);
        if (used > 0 && (SM_MT_PACKET_BYTES - used <= SM_MT_LOCATION_BYTES ||
                         bytes > SM_MT_PACKET_BYTES - used)) {
            close_header(w, b, used, d->ts_begin_us, d->ts_begin_us, d->start_id, d->start_id);
            if (!put_bytes(d->out, b, used, err))
                return false;
            used = 0;
        }
        if (used == 0)
            used = empty = open_header(w, b, d->id, &no_verifier);
        memcpy(b + used, record, bytes);
        used += bytes;
    }
    stacks->n_pending = 0;
    if (used == empty)
        return true;
    close_header(w, b, used, d->ts_begin_us, d->ts_begin_us, d->start_id, d->start_id);
    return put_bytes(d->out, b, used, err);
}

/* Writes the packet, empty or not, and opens the next one at `now_us`. */
static bool flush(struct sm_memtrace_writer *w, struct sm_mt_domain *d, int64_t now_us,
                  struct sm_error *err) {
    if (!write_locations(w, d, err))
        return false;
    close_header(w, d->coder->packet, d->used, d->ts_begin_us, d->ts_end_us, d->start_id,
                 d->next_id);
    if (!put_bytes(d->out, d->coder->packet, d->used, err))
        return false;
    open_packet(w, d, now_us);
    return true;
}

/* ---- domains ---- */

static bool close_file(struct sm_memtrace_writer *w, struct sm_mt_domain *d, struct sm_error *err) {
    FILE *out = d->out;
    if (w->open == NULL || out == NULL)
        return true;
    d->out = NULL;
    if (fclose(out) == 0)
        return true;
    sm_error_set(err, "cannot write the memtrace file: %s", strerror(errno));
    return false;
}

/* Takes the coder of the domain that has not been used for longest; its packet is written. */
static struct sm_mt_coder *reclaim_coder(struct sm_memtrace_writer *w, struct sm_error *err) {
    struct sm_mt_domain *oldest = NULL;
    for (uint32_t i = 0; i < w->n_domains; i++) {
        struct sm_mt_domain *d = w->domains[w->ids[i]];
        if (d->coder != NULL && (oldest == NULL || d->last_use < oldest->last_use))
            oldest = d;
    }
    if (!packet_is_empty(w, oldest) && !flush(w, oldest, oldest->ts_end_us, err))
        return NULL;
    if (!close_file(w, oldest, err))
        return NULL;
    struct sm_mt_coder *coder = oldest->coder;
    oldest->coder = NULL;
    sm_mt_stacks_release(&coder->stacks);
    sm_mt_names_release(&coder->names);
    return coder;
}

/* Gives the domain what it needs to write: a coder, and its file. */
static bool give_coder(struct sm_memtrace_writer *w, struct sm_mt_domain *d, bool again,
                       struct sm_error *err) {
    if (w->n_coders >= SM_MT_MAX_CODERS) {
        d->coder = reclaim_coder(w, err);
        if (d->coder == NULL)
            return false;
    } else {
        d->coder = malloc(sizeof *d->coder);
        if (d->coder == NULL)
            return no_memory(err);
        w->n_coders++;
    }
    if (again)
        sm_mt_stacks_resume(&d->coder->stacks);
    else
        sm_mt_stacks_init(&d->coder->stacks);
    sm_mt_names_init(&d->coder->names);
    d->out = w->open == NULL ? w->out : w->open(w->open_ctx, d->id, again, err);
    return d->out != NULL;
}

static struct sm_mt_domain *domain_new(struct sm_memtrace_writer *w, uint32_t id, int64_t now_us,
                                       struct sm_error *err) {
    bool first = w->n_domains == 0;
    struct sm_mt_domain *d = calloc(1, sizeof *d);
    if (d == NULL) {
        no_memory(err);
        return NULL;
    }
    d->id = id;
    if (w->header.version < 3)
        d->chunk_end = UINT64_MAX;
    w->domains[id] = d;
    w->ids[w->n_domains++] = id;
    if (!give_coder(w, d, false, err))
        return NULL;
    if ((w->open != NULL || first) && !put_bytes(d->out, w->info, w->info_bytes, err))
        return NULL;
    open_packet(w, d, now_us);
    return d;
}

/* The domain that an event goes to. Only the low 16 bits of the number fit into the file. */
static uint32_t domain_of(const struct sm_memtrace_writer *w, uint32_t domain) {
    return w->header.version >= 3 ? domain & (MAX_DOMAINS - 1) : 0;
}

/* The domain's state, with room for an event at *now_us, which is raised to the domain's time. */
static struct sm_mt_domain *begin_event(struct sm_memtrace_writer *w, uint32_t id, int64_t *now_us,
                                        struct sm_error *err) {
    struct sm_mt_domain *d = w->domains[id], *current = w->current;
    if (d != current && w->order == SM_MEMTRACE_EXACT && w->open == NULL &&
        !packet_is_empty(w, current) && !flush(w, current, current->ts_end_us, err))
        return NULL;
    if (d == NULL) {
        /* The first packet begins where the domain that was writing stands, as if spawned there. */
        int64_t begin = *now_us < current->ts_end_us ? *now_us : current->ts_end_us;
        if (begin < w->header.start_us)
            begin = w->header.start_us;
        d = domain_new(w, id, begin, err);
        if (d == NULL)
            return NULL;
    } else if (d->coder == NULL) {
        if (!give_coder(w, d, true, err))
            return NULL;
        open_packet(w, d, d->ts_end_us);
    }
    w->current = d;
    d->last_use = ++w->clock;
    if (*now_us < d->ts_end_us)
        *now_us = d->ts_end_us;
    if ((SM_MT_PACKET_BYTES - d->used < EVENT_ROOM ||
         d->coder->stacks.n_pending > SM_MT_MAX_PENDING ||
         *now_us - d->ts_begin_us > MAX_PACKET_US || d->next_id == d->chunk_end) &&
        !flush(w, d, *now_us, err))
        return NULL;
    d->ts_end_us = *now_us;
    return d;
}

/* ---- interface ---- */

enum sm_status sm_mt_writer_new_split(struct sm_memtrace_writer **out_w, FILE *out,
                                      sm_mt_open_fn *open, void *open_ctx,
                                      const struct sm_memtrace_header *header,
                                      enum sm_memtrace_order order, sm_memtrace_locate_fn *locate,
                                      void *locate_ctx, struct sm_error *err) {
    if (header->version != 2 && header->version != 3) {
        sm_error_set(err, "memtrace version %u cannot be written, only 2 and 3", header->version);
        return SM_FAILED;
    }
    struct sm_memtrace_writer *w = calloc(1, sizeof *w);
    if (w == NULL) {
        no_memory(err);
        return SM_FAILED;
    }
    w->header = *header;
    w->order = order;
    w->locate = locate;
    w->locate_ctx = locate_ctx;
    w->out = out;
    w->open = open;
    w->open_ctx = open_ctx;
    w->domains = calloc(MAX_DOMAINS, sizeof *w->domains);
    w->ids = calloc(MAX_DOMAINS, sizeof *w->ids);
    if (w->domains == NULL || w->ids == NULL || !make_info(w, header)) {
        no_memory(err);
        sm_memtrace_writer_free(w);
        return SM_FAILED;
    }
    w->header.executable = w->header.host = w->header.runtime_params = w->header.context = NULL;
    uint32_t id = domain_of(w, header->initial_domain);
    w->current = domain_new(w, id, header->start_us, err);
    if (w->current == NULL) {
        sm_memtrace_writer_free(w);
        return SM_FAILED;
    }
    *out_w = w;
    return SM_OK;
}

enum sm_status sm_memtrace_writer_new(struct sm_memtrace_writer **w, FILE *out,
                                      const struct sm_memtrace_header *header,
                                      enum sm_memtrace_order order, sm_memtrace_locate_fn *locate,
                                      void *locate_ctx, struct sm_error *err) {
    return sm_mt_writer_new_split(w, out, NULL, NULL, header, order, locate, locate_ctx, err);
}

enum sm_status sm_memtrace_put_alloc(struct sm_memtrace_writer *w, uint32_t domain, int64_t now_us,
                                     uint64_t length_words, uint64_t n_samples, unsigned source,
                                     const uint64_t *codes, uint32_t n_codes, uint64_t *obj_id,
                                     struct sm_error *err) {
    if (source > 2 || length_words >> 62 != 0 || n_samples >> 62 != 0) {
        sm_error_set(err,
                     "an allocation does not fit into a memtrace file (%llu words, %llu "
                     "samples, heap %u)",
                     (unsigned long long)length_words, (unsigned long long)n_samples, source);
        return SM_FAILED;
    }
    struct sm_mt_domain *d = begin_event(w, domain_of(w, domain), &now_us, err);
    if (d == NULL)
        return SM_FAILED;
    struct sm_mt_stack_encoder *stacks = &d->coder->stacks;
    uint32_t common = sm_mt_stacks_common(stacks, codes, n_codes);
    bool brief = length_words >= 1 && length_words <= SM_MT_SHORT_MAX_WORDS && source == 0 &&
                 n_samples == 1 && n_codes - common < 256;
    uint8_t *p = d->coder->packet + d->used;
    p = put_event_header(p, brief ? SM_MT_SHORT_BASE + (unsigned)length_words : SM_MT_ALLOC,
                         now_us);
    if (!brief) {
        p = put_vint(p, (int64_t)length_words);
        p = put_vint(p, (int64_t)n_samples);
        *p++ = (uint8_t)source;
    }
    p = put_vint(p, common);
    uint8_t *count = p;
    uint32_t n_words;
    p = sm_mt_stacks_encode(stacks, p + (brief ? 1 : 2), codes, n_codes, common, d->next_id,
                            &n_words);
    if (p == NULL) {
        no_memory(err);
        return SM_FAILED;
    }
    if (brief)
        *count = (uint8_t)n_words;
    else
        sm_put_u16le(count, (uint16_t)n_words);
    d->used = (uint32_t)(p - d->coder->packet);
    *obj_id = d->next_id++;
    return SM_OK;
}

static enum sm_status put_reference(struct sm_memtrace_writer *w, unsigned event_id,
                                    uint32_t domain, int64_t now_us, uint64_t obj_id,
                                    struct sm_error *err) {
    struct sm_mt_domain *d = begin_event(w, domain, &now_us, err);
    if (d == NULL)
        return SM_FAILED;
    int64_t delta = (int64_t)(d->next_id - 1 - obj_id);
    if (delta < 0 && (event_id == SM_MT_PROMOTE || w->header.version < 3)) {
        sm_error_set(err,
                     "an event on object %llu, which no allocation before it made, does not fit "
                     "into a memtrace file",
                     (unsigned long long)obj_id);
        return SM_FAILED;
    }
    uint8_t *p = put_event_header(d->coder->packet + d->used, event_id, now_us);
    p = put_vint(p, delta);
    d->used = (uint32_t)(p - d->coder->packet);
    if (event_id == SM_MT_PROMOTE)
        d->promoted[obj_id / 64 % 16] |= 1ull << obj_id % 64;
    return SM_OK;
}

enum sm_status sm_memtrace_put_promote(struct sm_memtrace_writer *w, uint32_t domain,
                                       uint32_t obj_domain, int64_t now_us, uint64_t obj_id,
                                       struct sm_error *err) {
    return put_reference(w, SM_MT_PROMOTE, domain_of(w, obj_domain), now_us, obj_id, err);
}

enum sm_status sm_memtrace_put_collect(struct sm_memtrace_writer *w, uint32_t domain,
                                       uint32_t obj_domain, int64_t now_us, uint64_t obj_id,
                                       struct sm_error *err) {
    struct sm_mt_domain *owner = w->domains[domain_of(w, obj_domain)];
    domain = domain_of(w, domain);
    if (owner != NULL && owner != w->domains[domain] && w->open == NULL && owner->coder != NULL &&
        !packet_is_empty(w, owner) &&
        ((obj_id >= owner->start_id && obj_id < owner->next_id) ||
         (owner->promoted[obj_id / 64 % 16] >> obj_id % 64 & 1) != 0) &&
        !flush(w, owner, owner->ts_end_us, err))
        return SM_FAILED;
    return put_reference(w, SM_MT_COLLECT, domain, now_us, obj_id, err);
}

enum sm_status sm_memtrace_writer_flush(struct sm_memtrace_writer *w, struct sm_error *err) {
    for (uint32_t i = 0; i < w->n_domains; i++) {
        struct sm_mt_domain *d = w->domains[w->ids[i]];
        /* With one domain an empty packet is written too: the original does, and its times count. */
        if (d->coder != NULL && (w->n_domains == 1 || !packet_is_empty(w, d)) &&
            !flush(w, d, d->ts_end_us, err))
            return SM_FAILED;
    }
    for (uint32_t i = 0; i < w->n_domains; i++) {
        FILE *out = w->domains[w->ids[i]]->out;
        if (out != NULL && fflush(out) != 0) {
            sm_error_set(err, "cannot write the memtrace file: %s", strerror(errno));
            return SM_FAILED;
        }
    }
    return SM_OK;
}

enum sm_status sm_memtrace_writer_close(struct sm_memtrace_writer *w, struct sm_error *err) {
    enum sm_status status = sm_memtrace_writer_flush(w, err);
    for (uint32_t i = 0; i < w->n_domains; i++)
        if (!close_file(w, w->domains[w->ids[i]], err))
            status = SM_FAILED;
    return status;
}

void sm_memtrace_writer_free(struct sm_memtrace_writer *w) {
    if (w == NULL)
        return;
    for (uint32_t i = 0; i < w->n_domains; i++) {
        struct sm_mt_domain *d = w->domains[w->ids[i]];
        close_file(w, d, NULL);
        if (d->coder != NULL) {
            sm_mt_stacks_release(&d->coder->stacks);
            sm_mt_names_release(&d->coder->names);
            free(d->coder);
        }
        free(d);
    }
    free(w->domains);
    free(w->ids);
    free(w->info);
    free(w);
}
