/* The pass behind `info`. See info.h. */
#include "report/info.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "merge/cursor.h"
#include "report/objects.h"
#include "util/memory.h"

const char *const sm_size_class_names[SM_SIZE_CLASSES] = {
    "0", "1-2", "3-4", "5-8", "9-16", "17-32", "33-64", "65-128", "129-256", "over 256"};

static unsigned size_class(uint64_t words) {
    if (words <= 2)
        return words > 0;
    if (words > 256)
        return SM_SIZE_CLASSES - 1;
    return 64 - (unsigned)__builtin_clzll(words - 1); /* 3-4 -> 2, 5-8 -> 3, ... */
}

struct pass {
    struct sm_info *info;
    struct sm_trace *t;
    struct sm_objects objects;
    /* Per object only 32 bits are kept: the combination of owner, heap, origin and size class,
       numbered as met. Objects are counted in their combination alone; all other sums are made
       of these at the end. */
    struct sm_map combination_numbers;
    struct combination {
        struct sm_tally tally;
        uint32_t owner;
        uint8_t heap, origin, size;
    } * combinations;
    size_t n_combinations, combinations_capacity;
    uint64_t last_key; /* of the combination found last; most allocations resemble the one before */
    uint32_t last_combination;
    size_t owners_capacity;
    uint32_t last_owner; /* seen last; UINT32_MAX = none */
    uint32_t word_bytes;
    double native_interval; /* 0 = native allocations are like all others */
    struct sm_map native_streams;
};

/* Makes room for an owner and notes that it did something. */
static __attribute__((noinline)) void see_new_owner(struct pass *p, uint32_t index) {
    struct sm_info *info = p->info;
    p->last_owner = index;
    if (index < info->n_owners && info->owners[index].seen)
        return;
    if (index >= info->n_owners) {
        info->owners =
            sm_grow(info->owners, &p->owners_capacity, (size_t)index + 1, sizeof *info->owners);
        for (; info->n_owners <= index; info->n_owners++)
            info->owners[info->n_owners] =
                (struct sm_info_owner){.owner = *sm_trace_owner(p->t, info->n_owners)};
    }
    info->owners[index].seen = true;
}

static inline void see_owner(struct pass *p, uint32_t index) {
    if (index != p->last_owner)
        see_new_owner(p, index);
}

static inline uint32_t combination_of(struct pass *p, uint32_t owner, unsigned heap,
                                      unsigned origin, unsigned size) {
    uint64_t key = (uint64_t)owner << 16 | heap << 12 | origin << 8 | size;
    if (key == p->last_key)
        return p->last_combination;
    bool found;
    uint32_t *place =
        sm_map_place(&p->combination_numbers, key, (uint32_t)p->n_combinations, &found);
    if (!found) {
        p->combinations = sm_grow(p->combinations, &p->combinations_capacity, p->n_combinations + 1,
                                  sizeof *p->combinations);
        p->combinations[p->n_combinations++] = (struct combination){.owner = owner,
                                                                    .heap = (uint8_t)heap,
                                                                    .origin = (uint8_t)origin,
                                                                    .size = (uint8_t)size};
    }
    p->last_key = key;
    return p->last_combination = *place - 1;
}

static void add_tally(struct sm_tally *to, const struct sm_tally *t) {
    to->blocks += t->blocks;
    to->samples += t->samples;
    to->promoted_samples += t->promoted_samples;
    to->live_samples += t->live_samples;
}

/* From combinations to everything they are part of. */
static void add_up_combinations(struct pass *p) {
    struct sm_info *info = p->info;
    for (size_t i = 0; i < p->n_combinations; i++) {
        const struct combination *c = &p->combinations[i];
        add_tally(&info->all, &c->tally);
        add_tally(&info->heaps[c->heap], &c->tally);
        add_tally(&info->origins[c->origin], &c->tally);
        add_tally(&info->sizes[c->size], &c->tally);
        add_tally(&info->owners[c->owner].tally, &c->tally);
    }
}

/* Native objects have this bit and their origin where others have their combination. */
#define NATIVE 0x80000000u

static void on_native_alloc(struct pass *p, const struct sm_event *e) {
    struct sm_info *info = p->info;
    unsigned origin = e->origin < SM_ORIGINS ? e->origin : 0;
    double size = (double)e->size, interval = p->native_interval;
    bool found;
    info->n_alloc[SM_HEAP_NATIVE]++;
    if (e->size > info->native.max_bytes)
        info->native.max_bytes = e->size;
    sm_map_place(&p->native_streams, e->stream, info->native.n_streams, &found);
    info->native.n_streams += !found;
    sm_byte_sum_add(&info->native.all.allocated, size, interval);
    sm_byte_sum_add(&info->native.origins[origin].allocated, size, interval);
    if (!sm_objects_add(&p->objects, e->obj_stream, e->obj_seq, NATIVE | origin, e->size))
        return;
    sm_byte_sum_add(&info->native.all.live, size, interval);
    sm_byte_sum_add(&info->native.origins[origin].live, size, interval);
    if (info->native.all.live.bytes > info->native.peak.bytes) {
        info->native.peak = info->native.all.live;
        info->native.peak_ns = sm_trace_time_ns(p->t, e->ticks);
    }
}

static void on_free(struct pass *p, const struct sm_event *e, const struct sm_object *object) {
    struct sm_info *info = p->info;
    double size = (double)sm_object_samples(&p->objects, object);
    info->native.n_free++;
    sm_byte_sum_subtract(&info->native.all.live, size, p->native_interval);
    sm_byte_sum_subtract(&info->native.origins[object->what & ~NATIVE].live, size,
                         p->native_interval);
    sm_objects_remove(&p->objects, e->obj_stream, e->obj_seq);
}

static void on_alloc(struct pass *p, const struct sm_event *e) {
    struct sm_info *info = p->info;
    uint64_t words = e->size;
    if (e->flags & SM_EVENT_SIZE_IN_BYTES)
        words = words / p->word_bytes + (words % p->word_bytes != 0);
    unsigned heap = e->heap < SM_HEAPS ? e->heap : SM_HEAPS - 1;
    unsigned origin = e->origin < SM_ORIGINS ? e->origin : 0;
    info->n_alloc[heap]++;
    info->words += words;
    if (words > info->max_words)
        info->max_words = words;
    if (e->flags & SM_EVENT_STACK_LOST)
        info->lost_stacks++;
    else if (e->n_frames == 0)
        info->empty_stacks++;
    if (e->flags & SM_EVENT_STACK_CUT)
        info->cut_stacks++;
    if (e->n_frames > info->max_depth)
        info->max_depth = e->n_frames;
    info->sum_depth += e->n_frames;

    uint32_t combination = combination_of(p, e->owner, heap, origin, size_class(words));
    struct sm_tally *tally = &p->combinations[combination].tally;
    see_owner(p, e->owner);
    tally->blocks++;
    tally->samples += e->n_samples;
    if (sm_objects_add(&p->objects, e->obj_stream, e->obj_seq, combination, e->n_samples)) {
        tally->live_samples += e->n_samples;
        info->live_samples += e->n_samples;
    }
    if (info->live_samples > info->peak_samples) {
        info->peak_samples = info->live_samples;
        info->peak_ns = sm_trace_time_ns(p->t, e->ticks);
    }
}

static void on_ref(struct pass *p, const struct sm_event *e) {
    struct sm_info *info = p->info;
    bool collect = e->kind == SM_EVENT_COLLECT;
    struct sm_object *object = sm_objects_find(&p->objects, e->obj_stream, e->obj_seq);
    if (object != NULL && object->what >= NATIVE && collect) {
        on_free(p, e, object);
        return;
    }
    if (collect)
        info->n_collect++;
    else
        info->n_promote++;
    see_owner(p, e->owner);
    if (object == NULL) {
        info->n_orphans++;
        return;
    }
    uint64_t samples = sm_object_samples(&p->objects, object);
    struct sm_tally *tally = &p->combinations[object->what].tally;
    if (collect) {
        tally->live_samples -= samples;
        info->live_samples -= samples;
        sm_objects_remove(&p->objects, e->obj_stream, e->obj_seq);
    } else if (!object->promoted) {
        object->promoted = 1;
        tally->promoted_samples += samples;
    }
}

static void on_extension(struct pass *p, const struct sm_event *e) {
    struct sm_info *info = p->info;
    const uint8_t *at = e->payload, *end = at + e->payload_bytes;
    uint64_t counter;
    int64_t value;
    info->n_other++;
    if (e->op == SM_OP_MARK) {
        if (info->n_marks < SM_INFO_MARKS) {
            size_t bytes =
                e->payload_bytes < sizeof *info->marks ? e->payload_bytes : sizeof *info->marks - 1;
            memcpy(info->marks[info->n_marks], e->payload, bytes);
            info->marks[info->n_marks][bytes] = 0;
            info->mark_ns[info->n_marks] = sm_trace_time_ns(p->t, e->ticks);
        }
        info->n_marks++;
    }
    while (e->op == SM_OP_COUNTERS && sm_get_leb(&at, end, &counter) &&
           sm_get_zz(&at, end, &value)) {
        if (counter == SM_COUNTER_RSS && value > 0 && (uint64_t)value > info->max_rss_bytes)
            info->max_rss_bytes = (uint64_t)value;
    }
}

static int by_id(const void *a, const void *b) {
    uint64_t x = ((const struct sm_info_domain *)a)->id, y = ((const struct sm_info_domain *)b)->id;
    return x < y ? -1 : x > y;
}

/* A reader also lists owners that never did anything, such as a stream's before its first OWNER record. */
static void drop_unseen_owners(struct sm_info *info) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < info->n_owners; i++) {
        if (info->owners[i].seen)
            info->owners[n++] = info->owners[i];
    }
    info->n_owners = n;
}

static void add_up_domains(struct sm_info *info) {
    struct sm_map numbers = {0};
    size_t capacity = 0;
    for (uint32_t i = 0; i < info->n_owners; i++) {
        const struct sm_info_owner *o = &info->owners[i];
        bool found;
        uint32_t at = *sm_map_place(&numbers, o->owner.domain, info->n_domains, &found) - 1;
        if (!found) {
            info->domains = sm_grow(info->domains, &capacity, (size_t)info->n_domains + 1,
                                    sizeof *info->domains);
            info->domains[info->n_domains++] = (struct sm_info_domain){.id = o->owner.domain};
        }
        struct sm_info_domain *d = &info->domains[at];
        d->n_owners++;
        add_tally(&d->tally, &o->tally);
    }
    sm_map_release(&numbers);
    struct sm_map streams = {0};
    for (uint32_t i = 0; i < info->n_owners; i++) {
        bool found;
        sm_map_place(&streams, info->owners[i].owner.stream, info->n_streams, &found);
        info->n_streams += !found;
    }
    sm_map_release(&streams);
    if (info->n_domains > 0)
        qsort(info->domains, info->n_domains, sizeof *info->domains, by_id);
}

enum sm_status sm_info_collect(struct sm_info *info, struct sm_trace *t, struct sm_error *err) {
    *info = (struct sm_info){0};
    struct pass p = {.info = info,
                     .t = t,
                     .last_key = UINT64_MAX,
                     .last_owner = UINT32_MAX,
                     .word_bytes = sm_trace_meta(t)->word_bits / 8};
    if (p.word_bytes == 0)
        p.word_bytes = 8;
    p.native_interval = (double)sm_trace_meta(t)->native_interval_bytes;
    struct sm_cursor *c;
    if (sm_cursor_new(&c, t, SM_CURSOR_DEPTHS | SM_CURSOR_EXTENSIONS, err) != SM_OK)
        return SM_FAILED;
    sm_objects_init(&p.objects);
    info->marks = sm_alloc_zero(SM_INFO_MARKS, sizeof *info->marks);
    info->mark_ns = sm_alloc_zero(SM_INFO_MARKS, sizeof *info->mark_ns);
    struct sm_event e;
    enum sm_status status;
    bool any = false;
    uint64_t last_ticks = 0;
    while ((status = sm_cursor_next(c, &e)) == SM_OK) {
        if (!any || e.ticks > last_ticks)
            last_ticks = e.ticks;
        any = true;
        if (e.kind == SM_EVENT_ALLOC && e.heap == SM_HEAP_NATIVE && p.native_interval > 0)
            on_native_alloc(&p, &e);
        else if (e.kind == SM_EVENT_ALLOC)
            on_alloc(&p, &e);
        else if (e.kind == SM_EVENT_EXTENSION)
            on_extension(&p, &e);
        else
            on_ref(&p, &e);
    }
    sm_cursor_free(c);
    sm_objects_release(&p.objects);
    sm_map_release(&p.combination_numbers);
    sm_map_release(&p.native_streams);
    add_up_combinations(&p);
    free(p.combinations);
    info->last_ns = any ? sm_trace_time_ns(t, last_ticks) : 0;
    info->duration_ns = info->last_ns;
    const struct sm_end *end = sm_trace_end(t);
    if (end->present && sm_trace_time_ns(t, end->end_ticks) > info->duration_ns)
        info->duration_ns = sm_trace_time_ns(t, end->end_ticks);
    drop_unseen_owners(info);
    add_up_domains(info);
    if (status == SM_FAILED) {
        sm_error_set(err, "reading the trace failed");
        sm_info_release(info);
        return SM_FAILED;
    }
    return SM_OK;
}

void sm_info_release(struct sm_info *info) {
    free(info->owners);
    free(info->domains);
    free(info->marks);
    free(info->mark_ns);
    *info = (struct sm_info){0};
}
