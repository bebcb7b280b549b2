/* See profile.h. */
#include "report/profile.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/estimate.h"
#include "merge/cursor.h"
#include "util/memory.h"

#define DEFAULT_MAX_NODES 24000000u
#define UNWANTED UINT32_MAX /* leaf of objects that the options leave out */

/* Hashes of a stream's last stack: of its first frame, of its first two, ... */
struct sm_profile_stream {
    uint64_t *hashes; /* by depth */
    size_t capacity;
    uint32_t depth; /* how many of them hold */
};

/* ---- tree ---- */

#define ROOT_HASH 0x6a09e667f3bcc909u

/* The hash of a stack with one more frame. */
static inline uint64_t extend(uint64_t hash, uint32_t location) {
    uint64_t x = (hash ^ location) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 32;
}

static inline uint32_t tag_of(uint64_t hash) {
    return (uint32_t)(hash >> 32);
}

/* The low half has been mixed by the last step of `extend`; once more for the tag's sake. */
static inline size_t home(const struct sm_profile *p, uint64_t hash) {
    return (size_t)(hash * 0xd6e8feb86659fd93u >> 20) & p->table_mask;
}

static void put_in_table(struct sm_profile *p, uint64_t hash, uint32_t node) {
    size_t at = home(p, hash);
    while (p->table[at].node != 0)
        at = (at + 1) & p->table_mask;
    p->table[at] = (struct sm_node_slot){.node = node, .tag = tag_of(hash)};
}

static void enlarge_table(struct sm_profile *p) {
    size_t capacity = p->table_mask ? 2 * (p->table_mask + 1) : 4096;
    free(p->table);
    p->table = sm_alloc_zero(capacity, sizeof *p->table);
    p->table_mask = capacity - 1;
    /* The table keeps half of each hash; the tree gives them again, parents first. */
    uint64_t *hashes = sm_alloc_zero(p->n_nodes, sizeof *hashes);
    hashes[SM_NODE_ROOT] = ROOT_HASH;
    for (size_t i = 1; i < p->n_nodes; i++) {
        hashes[i] = extend(hashes[p->nodes[i].parent], p->nodes[i].location);
        put_in_table(p, hashes[i], (uint32_t)i);
    }
    free(hashes);
}

/* The node of the stack with this hash and innermost frame; 0 = none. */
static uint32_t find_node(const struct sm_profile *p, uint64_t hash, uint32_t location) {
    for (size_t at = home(p, hash); p->table[at].node != 0; at = (at + 1) & p->table_mask) {
        if (p->table[at].tag == tag_of(hash) && p->nodes[p->table[at].node].location == location)
            return p->table[at].node;
    }
    return 0;
}

static uint32_t add_node(struct sm_profile *p, uint64_t hash, uint32_t parent, uint32_t location) {
    p->nodes = sm_grow(p->nodes, &p->nodes_capacity, p->n_nodes + 1, sizeof *p->nodes);
    uint32_t fresh = (uint32_t)p->n_nodes++;
    p->nodes[fresh] = (struct sm_node){.parent = parent, .location = location};
    if (p->n_nodes > (p->table_mask + 1) / 4 * 3)
        enlarge_table(p);
    else
        put_in_table(p, hash, fresh);
    return fresh;
}

/* A node below the root for a pseudo location. */
static uint32_t pseudo_node(struct sm_profile *p, uint32_t pseudo) {
    uint64_t hash = extend(ROOT_HASH, pseudo);
    uint32_t node = find_node(p, hash, pseudo);
    return node != 0 ? node : add_node(p, hash, SM_NODE_ROOT, pseudo);
}

static struct sm_profile_stream *stream_of(struct sm_profile *p, uint32_t id) {
    if (id != p->last_stream_id || p->n_streams == 0) {
        bool found;
        p->last_stream = *sm_map_place(&p->stream_numbers, id, (uint32_t)p->n_streams, &found) - 1;
        p->last_stream_id = id;
        if (!found) {
            p->streams =
                sm_grow(p->streams, &p->streams_capacity, p->n_streams + 1, sizeof *p->streams);
            p->streams[p->n_streams++] = (struct sm_profile_stream){0};
        }
    }
    return &p->streams[p->last_stream];
}

/* The tree is full: the allocation site alone, below FOLDED. */
static uint32_t folded(struct sm_profile *p, uint32_t site) {
    p->n_folded++;
    uint32_t parent = pseudo_node(p, SM_PSEUDO_FOLDED);
    uint64_t hash = extend(extend(ROOT_HASH, SM_PSEUDO_FOLDED), site);
    uint32_t node = find_node(p, hash, site);
    return node != 0 ? node : add_node(p, hash, parent, site);
}

/* The node of an allocation's stack. */
static uint32_t stack_node(struct sm_profile *p, const struct sm_event *e) {
    if (e->flags & SM_EVENT_STACK_LOST)
        return pseudo_node(p, SM_PSEUDO_LOST);
    struct sm_profile_stream *s = stream_of(p, e->stream);
    uint32_t at = e->common_prefix < s->depth ? e->common_prefix : s->depth, n = e->n_frames;
    if (at > n)
        at = n;
    s->depth = n;
    if (n == 0)
        return pseudo_node(p, SM_PSEUDO_EMPTY);
    s->hashes = sm_grow(s->hashes, &s->capacity, n, sizeof *s->hashes);
    uint64_t *hashes = s->hashes, hash = at > 0 ? hashes[at - 1] : ROOT_HASH;
    for (; at < n; at++)
        hashes[at] = hash = extend(hash, e->frames[at]);
    uint32_t node = find_node(p, hash, e->frames[n - 1]);
    if (node != 0)
        return node;
    /* A new stack: what is new of it is its inner end. */
    uint32_t known = n - 1;
    while (known > 0 && (node = find_node(p, hashes[known - 1], e->frames[known - 1])) == 0)
        known--;
    if (p->n_nodes + (n - known) > p->options.max_nodes)
        return folded(p, e->frames[n - 1]);
    for (; known < n; known++)
        node = add_node(p, hashes[known], node, e->frames[known]);
    return node;
}

/* ---- leaves ---- */

static uint32_t new_leaf(struct sm_profile *p, uint32_t key) {
    p->leaves = sm_grow(p->leaves, &p->leaves_capacity, p->n_leaves + 1, sizeof *p->leaves);
    p->leaves[p->n_leaves] = (struct sm_leaf){.key = key};
    return (uint32_t)p->n_leaves++;
}

static uint32_t leaf_by_key(struct sm_profile *p, uint32_t key) {
    bool found;
    uint32_t number = *sm_map_place(&p->leaf_numbers, key, (uint32_t)p->n_leaves, &found) - 1;
    return found ? number : new_leaf(p, key);
}

static uint32_t domain_index(struct sm_profile *p, uint64_t id) {
    bool found;
    uint32_t at = *sm_map_place(&p->domain_numbers, id, (uint32_t)p->n_domains, &found) - 1;
    if (!found) {
        p->domains =
            sm_grow(p->domains, &p->domains_capacity, p->n_domains + 1, sizeof *p->domains);
        p->domains[p->n_domains++] = id;
    }
    return at;
}

static uint32_t leaf_of(struct sm_profile *p, const struct sm_event *e) {
    uint32_t node;
    switch (p->options.leaf) {
    case SM_LEAF_STACK:
        node = stack_node(p, e);
        if (p->nodes[node].leaf == 0)
            p->nodes[node].leaf = new_leaf(p, node) + 1;
        return p->nodes[node].leaf - 1;
    case SM_LEAF_DOMAIN:
        return leaf_by_key(p, domain_index(p, sm_trace_owner(p->trace, e->owner)->domain));
    case SM_LEAF_OWNER:
        return leaf_by_key(p, e->owner);
    case SM_LEAF_SOURCE:
        return leaf_by_key(p, SM_SOURCE(e->heap, e->origin));
    }
    return UNWANTED;
}

/* Called before a leaf's `live` changes in the current event. */
static void before_change(struct sm_profile *p, struct sm_leaf *leaf) {
    if (leaf->changed <= p->peak_event) {
        leaf->weights.peak = leaf->weights.live;
        leaf->weights.seen_peak = leaf->weights.seen_live;
    }
    leaf->changed = p->event;
}

/* ---- native memory ---- */

static void see(struct sm_seen *to, const struct sm_seen *x, double sign) {
    to->blocks += sign > 0 ? x->blocks : 0 - x->blocks;
    to->variance += sign * x->variance;
}

/* The bytes that a block stands for. */
static uint64_t native_weight(const struct sm_profile *p, uint64_t size, struct sm_seen *seen) {
    struct sm_byte_sum one = {0};
    sm_byte_sum_add(&one, (double)size, p->native_interval);
    *seen = (struct sm_seen){.blocks = 1, .variance = one.variance};
    return (uint64_t)(one.bytes + 0.5);
}

/* ---- events ---- */

static bool wanted(const struct sm_profile *p, const struct sm_event *e) {
    const struct sm_profile_options *o = &p->options;
    if (o->heap >= 0 && e->heap != o->heap)
        return false;
    if (o->has_domain && sm_trace_owner(p->trace, e->owner)->domain != o->domain)
        return false;
    if (o->from_ns == INT64_MIN && o->to_ns == INT64_MAX)
        return true;
    int64_t ns = sm_trace_time_ns(p->trace, e->ticks);
    return ns >= o->from_ns && ns <= o->to_ns;
}

/* Of the other kind of memory than this profile. */
static bool other_kind(const struct sm_profile *p, const struct sm_event *e) {
    bool native = e->heap == SM_HEAP_NATIVE && p->interval > 0;
    return native != (p->native_interval > 0);
}

static void on_alloc(struct sm_profile *p, const struct sm_event *e) {
    uint32_t leaf = UNWANTED;
    uint64_t samples = e->n_samples, kept = samples;
    struct sm_seen seen = {0};
    bool other = other_kind(p, e);
    p->leaves_out_native |= other && e->heap == SM_HEAP_NATIVE;
    if (!other && p->native_interval > 0) {
        kept = e->size;
        samples = native_weight(p, e->size, &seen);
    }
    if (!other && wanted(p, e))
        leaf = leaf_of(p, e);
    else if (p->options.leaf == SM_LEAF_STACK) {
        /* The next stack's common prefix counts from this one. */
        struct sm_profile_stream *s = stream_of(p, e->stream);
        if (!(e->flags & SM_EVENT_STACK_LOST) && e->common_prefix < s->depth)
            s->depth = e->common_prefix;
    }
    if (other)
        return;
    bool fresh = sm_objects_add(&p->objects, e->obj_stream, e->obj_seq, leaf, kept) != NULL;
    p->trace_allocated += samples;
    see(&p->all_seen, &seen, 1);
    if (leaf != UNWANTED) {
        struct sm_leaf *l = &p->leaves[leaf];
        if (fresh) {
            before_change(p, l);
            l->weights.live += samples;
            see(&l->weights.seen_live, &seen, 1);
        }
        see(&l->weights.seen_allocated, &seen, 1);
        l->weights.allocated += samples;
        l->weights.blocks++;
    }
    if (!fresh)
        return;
    p->live_now += samples;
    see(&p->live_seen, &seen, 1);
    if (p->live_now > p->peak) {
        p->peak = p->live_now;
        p->peak_seen = p->live_seen;
        p->peak_event = p->event;
        p->peak_ns = sm_trace_time_ns(p->trace, e->ticks);
    }
}

static void on_ref(struct sm_profile *p, const struct sm_event *e) {
    struct sm_object *object = sm_objects_find(&p->objects, e->obj_stream, e->obj_seq);
    if (object == NULL)
        return;
    uint64_t samples = sm_object_samples(&p->objects, object);
    struct sm_seen seen = {0};
    if (p->native_interval > 0)
        samples = native_weight(p, samples, &seen);
    struct sm_leaf *l = object->what != UNWANTED ? &p->leaves[object->what] : NULL;
    if (e->kind == SM_EVENT_PROMOTE) {
        if (l != NULL && !object->promoted)
            l->weights.promoted += samples;
        object->promoted = 1;
        return;
    }
    if (l != NULL) {
        before_change(p, l);
        l->weights.live -= samples;
        see(&l->weights.seen_live, &seen, -1);
        l->weights.collected += samples;
    }
    p->live_now -= samples;
    see(&p->live_seen, &seen, -1);
    sm_objects_remove(&p->objects, e->obj_stream, e->obj_seq);
}

static void finish(struct sm_profile *p) {
    for (size_t i = 0; i < p->n_leaves; i++) {
        struct sm_leaf *l = &p->leaves[i];
        if (l->changed <= p->peak_event) {
            l->weights.peak = l->weights.live;
            l->weights.seen_peak = l->weights.seen_live;
        }
        see(&p->all.seen_allocated, &l->weights.seen_allocated, 1);
        see(&p->all.seen_live, &l->weights.seen_live, 1);
        see(&p->all.seen_peak, &l->weights.seen_peak, 1);
        p->all.allocated += l->weights.allocated;
        p->all.live += l->weights.live;
        p->all.peak += l->weights.peak;
        p->all.promoted += l->weights.promoted;
        p->all.collected += l->weights.collected;
        p->all.blocks += l->weights.blocks;
    }
    sm_objects_release(&p->objects);
    for (size_t i = 0; i < p->n_streams; i++)
        free(p->streams[i].hashes);
    p->n_streams = 0;
}

enum sm_status sm_profile_collect(struct sm_profile *p, struct sm_trace *t,
                                  const struct sm_profile_options *options, struct sm_error *err) {
    *p = (struct sm_profile){.options = *options, .trace = t};
    p->interval = (double)sm_trace_meta(t)->native_interval_bytes;
    p->native_interval = options->heap == SM_HEAP_NATIVE ? p->interval : 0;
    if (p->options.max_nodes == 0)
        p->options.max_nodes = DEFAULT_MAX_NODES;
    struct sm_cursor *c;
    unsigned flags = options->leaf == SM_LEAF_STACK ? SM_CURSOR_STACKS : 0;
    if (sm_cursor_new(&c, t, flags, err) != SM_OK)
        return SM_FAILED;
    sm_objects_init(&p->objects);
    p->nodes = sm_grow(NULL, &p->nodes_capacity, 1, sizeof *p->nodes);
    p->nodes[0] = (struct sm_node){.location = SM_PSEUDO_EMPTY};
    p->n_nodes = 1;
    enlarge_table(p);
    struct sm_event e;
    enum sm_status status;
    uint64_t last_ticks = sm_trace_meta(t)->start_ticks;
    while ((status = sm_cursor_next(c, &e)) == SM_OK) {
        p->event++;
        last_ticks = e.ticks;
        if (e.kind == SM_EVENT_ALLOC)
            on_alloc(p, &e);
        else if (e.kind != SM_EVENT_EXTENSION)
            on_ref(p, &e);
    }
    sm_cursor_free(c);
    finish(p);
    p->last_ns = sm_trace_time_ns(t, last_ticks);
    const struct sm_end *end = sm_trace_end(t);
    if (end->present && sm_trace_time_ns(t, end->end_ticks) > p->last_ns)
        p->last_ns = sm_trace_time_ns(t, end->end_ticks);
    if (status != SM_FAILED)
        return SM_OK;
    sm_error_set(err, "reading the trace failed");
    sm_profile_release(p);
    return SM_FAILED;
}

void sm_profile_release(struct sm_profile *p) {
    free(p->nodes);
    free(p->table);
    free(p->leaves);
    free(p->domains);
    free(p->streams);
    sm_map_release(&p->leaf_numbers);
    sm_map_release(&p->domain_numbers);
    sm_map_release(&p->stream_numbers);
    *p = (struct sm_profile){0};
}

enum sm_status sm_trace_last_ns(struct sm_trace *t, int64_t *ns, struct sm_error *err) {
    const struct sm_end *end = sm_trace_end(t);
    if (end->present) {
        *ns = sm_trace_time_ns(t, end->end_ticks);
        return SM_OK;
    }
    struct sm_cursor *c;
    if (sm_cursor_new(&c, t, 0, err) != SM_OK)
        return SM_FAILED;
    struct sm_event e;
    *ns = 0;
    while (sm_cursor_next(c, &e) == SM_OK)
        *ns = sm_trace_time_ns(t, e.ticks);
    sm_cursor_free(c);
    return SM_OK;
}
