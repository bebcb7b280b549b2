/* A pass over a trace with threads that decode ahead.

   Batches stand in a ring, packet i in place i modulo its size; a place is free again when its batch was taken. One lock
   guards the numbers below; it is held for a few instructions per packet, that is per hundred microseconds of
   decoding. The caller decodes too, as long as the packet it needs is not done and there are places: so it is idle only
   while others hold all of them, and a pass never waits for a thread that could not be made. */
#include <pthread.h>
#include <stdlib.h>

#include "decode/batch_internal.h"
#include "util/parallel.h"

#define MAX_THREADS 64
/* Packets a thread may be ahead: enough that none waits while another has a packet that takes long. */
#define PLACES_PER_THREAD 3

struct place {
    struct sm_batch batch;
    bool done; /* decoded; guarded by the lock */
};

struct each {
    struct sm_batch_pass *pass;
    struct place *places;
    uint32_t n_places, n_packets;
    pthread_mutex_t lock;
    pthread_cond_t decoded, freed; /* a place became done; or free, or the pass ends */
    /* Guarded by the lock. */
    uint32_t next;  /* packet that nobody has begun */
    uint32_t taken; /* packets before it have been taken */
    bool ending;
};

struct thread {
    pthread_t handle;
    struct each *e;
    struct sm_batch_decoder *decoder;
};

static void *decode_ahead(void *argument) {
    struct thread *self = argument;
    struct each *e = self->e;
    pthread_mutex_lock(&e->lock);
    for (;;) {
        while (!e->ending && e->next < e->n_packets && e->next >= e->taken + e->n_places)
            pthread_cond_wait(&e->freed, &e->lock);
        if (e->ending || e->next >= e->n_packets)
            break;
        uint32_t index = e->next++;
        struct place *place = &e->places[index % e->n_places];
        pthread_mutex_unlock(&e->lock);
        sm_batch_decode(self->decoder, index, &place->batch);
        pthread_mutex_lock(&e->lock);
        place->done = true;
        pthread_cond_signal(&e->decoded);
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

/* Has packet `index` decoded in its place, by whomever; until then this thread decodes what comes next. */
static struct sm_batch *wait_for(struct each *e, struct sm_batch_decoder *own, uint32_t index) {
    struct place *place = &e->places[index % e->n_places];
    pthread_mutex_lock(&e->lock);
    while (!place->done) {
        if (e->next >= e->n_packets || e->next >= e->taken + e->n_places) {
            pthread_cond_wait(&e->decoded, &e->lock);
            continue;
        }
        uint32_t next = e->next++;
        pthread_mutex_unlock(&e->lock);
        sm_batch_decode(own, next, &e->places[next % e->n_places].batch);
        pthread_mutex_lock(&e->lock);
        e->places[next % e->n_places].done = true;
    }
    place->done = false;
    pthread_mutex_unlock(&e->lock);
    return &place->batch;
}

static void run(struct each *e, struct sm_batch_decoder *own,
                bool (*take)(void *ctx, const struct sm_batch *b), void *ctx) {
    bool go_on = true;
    for (uint32_t index = 0; index < e->n_packets && go_on; index++) {
        struct sm_batch *b = wait_for(e, own, index);
        sm_batch_commit(e->pass, b);
        go_on = take(ctx, b);
        pthread_mutex_lock(&e->lock);
        e->taken = index + 1;
        pthread_cond_signal(&e->freed);
        pthread_mutex_unlock(&e->lock);
    }
}

enum sm_status sm_batch_each(struct sm_batch_pass *pass, unsigned threads,
                             bool (*take)(void *ctx, const struct sm_batch *b), void *ctx,
                             struct sm_error *err) {
    struct thread made[MAX_THREADS];
    struct each e = {.pass = pass, .n_packets = sm_batch_n_packets(pass)};
    unsigned n = 0;
    if (threads == 0)
        threads = sm_processors();
    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    if (threads > e.n_packets)
        threads = e.n_packets > 0 ? e.n_packets : 1;
    e.n_places = threads == 1 ? 1 : threads * PLACES_PER_THREAD;
    e.places = calloc(e.n_places, sizeof *e.places);
    struct sm_batch_decoder *own = sm_batch_decoder_new(pass);
    if (e.places == NULL || own == NULL) {
        free(e.places);
        sm_batch_decoder_free(own);
        sm_error_set(err, "out of memory for reading %u packets", e.n_packets);
        return SM_FAILED;
    }
    pthread_mutex_init(&e.lock, NULL);
    pthread_cond_init(&e.decoded, NULL);
    pthread_cond_init(&e.freed, NULL);
    while (n + 1 < threads) {
        made[n] = (struct thread){.e = &e, .decoder = sm_batch_decoder_new(pass)};
        if (made[n].decoder == NULL)
            break;
        if (pthread_create(&made[n].handle, NULL, decode_ahead, &made[n]) != 0) {
            sm_batch_decoder_free(made[n].decoder);
            break;
        }
        n++;
    }
    run(&e, own, take, ctx);
    pthread_mutex_lock(&e.lock);
    e.ending = true;
    pthread_cond_broadcast(&e.freed);
    pthread_mutex_unlock(&e.lock);
    while (n > 0) {
        pthread_join(made[--n].handle, NULL);
        sm_batch_decoder_free(made[n].decoder);
    }
    sm_batch_decoder_free(own);
    for (uint32_t i = 0; i < e.n_places; i++)
        sm_batch_release(&e.places[i].batch);
    free(e.places);
    pthread_cond_destroy(&e.decoded);
    pthread_cond_destroy(&e.freed);
    pthread_mutex_destroy(&e.lock);
    return SM_OK;
}
