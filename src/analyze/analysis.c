/* See analysis.h: opening, and what rows and sums mean. */
#include "analyze/analysis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/build.h"
#include "analyze/cache.h"
#include "util/memory.h"

struct sm_analysis_private {
    struct sm_image image;
    char *path;
};

/* Bytes of memory that loading takes, for a byte of trace: 2.5 bytes an event, 2.2 events a row, 70 bytes a row
   while loading. */
#define LOADING_FACTOR 13
#define CACHE_MIN_BYTES ((uint64_t)32 << 20)

static bool fits_memory(uint64_t trace_bytes) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : (uint64_t)4 << 30;
    return trace_bytes < memory / 2 / LOADING_FACTOR;
}

static struct sm_analysis *make(const char *path) {
    struct sm_analysis *a = sm_alloc_zero(1, sizeof *a);
    a->private_data = sm_alloc_zero(1, sizeof *a->private_data);
    a->private_data->image.fd = -1;
    a->private_data->path = sm_strdup(path);
    a->path = a->private_data->path;
    return a;
}

void sm_analysis_free(struct sm_analysis *a) {
    if (a == NULL)
        return;
    sm_image_release(&a->private_data->image);
    sm_selection_release(&a->base);
    free(a->private_data->path);
    free(a->private_data);
    free(a);
}

static enum sm_status build(struct sm_analysis *a, struct sm_trace *t, const char *cache_path,
                            const char *directory, unsigned threads, struct sm_error *err) {
    struct sm_build b;
    sm_build_init(&b, t, directory);
    enum sm_status status = sm_build_read(&b, threads, err);
    if (status == SM_OK) {
        sm_image_create(&a->private_data->image, cache_path);
        status = sm_build_arrange(&b, &a->private_data->image, a, threads, err);
    }
    sm_build_release(&b);
    return status;
}

enum sm_status sm_analysis_of_trace(struct sm_analysis **out, struct sm_trace *t,
                                    const struct sm_analysis_options *options,
                                    struct sm_error *err) {
    struct sm_analysis *a = make("");
    char *directory = fits_memory(sm_trace_bytes(t)) ? NULL : sm_cache_directory();
    enum sm_status status =
        build(a, t, NULL, directory, options != NULL ? options->threads : 0, err);
    free(directory);
    if (status != SM_OK) {
        sm_analysis_free(a);
        a = NULL;
    }
    *out = a;
    return status;
}

/* Restores what is of this run, not of the cached one. */
static bool from_cache(struct sm_analysis *a, const char *path,
                       const struct sm_trace_identity *identity) {
    struct sm_analysis_private *private_data = a->private_data;
    if (!sm_image_open(&private_data->image, path, identity, a))
        return false;
    a->private_data = private_data;
    a->path = private_data->path;
    a->from_cache = true;
    sm_analysis_find_base(a);
    return true;
}

enum sm_status sm_analysis_open(struct sm_analysis **out, const char *path,
                                const struct sm_analysis_options *options, struct sm_error *err) {
    static const struct sm_analysis_options defaults;
    const struct sm_analysis_options *o = options != NULL ? options : &defaults;
    struct sm_trace_identity identity;
    uint64_t least = o->cache_min_bytes != 0 ? o->cache_min_bytes : CACHE_MIN_BYTES;
    struct stat st = {0};
    char *directory = NULL, *cache_path = NULL;
    struct sm_trace *t = NULL;
    *out = NULL;
    bool big = stat(path, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size >= least;
    if (big && (!o->no_cache || !fits_memory((uint64_t)st.st_size)))
        directory = sm_cache_directory();
    if (directory != NULL && !o->no_cache && !o->trace.ignore_tail &&
        sm_cache_identity(path, o->trace.part, &identity))
        cache_path = sm_cache_path(directory, &identity);
    struct sm_analysis *a = make(path);
    enum sm_status status = SM_OK;
    if (cache_path == NULL || !from_cache(a, cache_path, &identity)) {
        status = sm_trace_open(&t, path, &o->trace, err);
        if (status == SM_OK)
            status = build(a, t, cache_path, fits_memory((uint64_t)st.st_size) ? NULL : directory,
                           o->threads, err);
        if (status == SM_OK && cache_path != NULL) {
            sm_cache_prune(directory, SM_CACHE_MAX_BYTES);
            sm_image_publish(&a->private_data->image, a, &identity);
        }
        sm_trace_free(t);
    }
    free(cache_path);
    free(directory);
    if (status != SM_OK) {
        sm_analysis_free(a);
        a = NULL;
    }
    *out = a;
    return status;
}

uint64_t sm_wide_find(const struct sm_wide *list, uint32_t n, uint32_t row) {
    uint32_t low = 0, high = n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (list[middle].row < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && list[low].row == row ? list[low].value : 0;
}

void sm_selection_release(struct sm_selection *s) {
    free(s->words);
    *s = (struct sm_selection){0};
}

void sm_analysis_find_base(struct sm_analysis *a) {
    bool *counted = sm_alloc((a->n_classes + 1u) * sizeof *counted), all = true;
    for (uint32_t i = 0; i < a->n_classes; i++) {
        counted[i] = !(a->meta.sample_rate > 0) || !sm_class_holds_blocks(&a->classes[i]);
        all = all && counted[i];
    }
    a->base = (struct sm_selection){.n_rows = a->rows.n};
    if (!all) {
        a->base = (struct sm_selection){
            .words = sm_alloc_zero((size_t)a->rows.n / 64 + 1, sizeof *a->base.words)};
        for (uint32_t row = 0; row < a->rows.n; row++) {
            uint64_t bit = counted[a->rows.class_id[row]];
            a->base.words[row >> 6] |= bit << (row & 63);
            a->base.n_rows += (uint32_t)bit;
        }
    }
    free(counted);
}

double sm_row_variance(const struct sm_analysis *a, uint32_t row) {
    if (!a->mixed)
        return 0;
    const struct sm_row_class *c = &a->classes[a->rows.class_id[row]];
    if (!c->byte_sampled) {
        double unit = (double)a->sample_units;
        return (double)sm_row_samples(a, row) * (1 - a->meta.sample_rate) * unit * unit;
    }
    double p = sm_byte_probability((double)sm_row_bytes(a, row), a->byte_interval);
    double w = (double)sm_row_units(a, row);
    return w * w * (1 - p);
}

#define Z 1.959963984540054

struct sm_estimate sm_sum_estimate(const struct sm_analysis *a, const struct sm_sum *sum) {
    if (!a->mixed)
        return sm_estimate(sum->units, a->meta.sample_rate, a->word_bytes);
    double rate = a->meta.sample_rate, interval = a->byte_interval;
    if (sum->units == 0) {
        /* Nothing was seen, of either kind. */
        struct sm_estimate none = sm_estimate(0, rate, a->word_bytes);
        struct sm_byte_sum zero = {0};
        struct sm_estimate e = sm_byte_estimate(&zero, interval);
        e.high = rate > 0 ? fmax(e.high, none.high) : e.high;
        e.exact = e.high <= 0;
        return e;
    }
    if (rate > 0 && sum->units == sum->samples * a->sample_units)
        return sm_estimate(sum->samples, rate, a->word_bytes); /* of Memprof's alone */
    double value = (double)sum->units * a->bytes_per_unit;
    double half = Z * sqrt(sum->variance > 0 ? sum->variance : 0) * a->bytes_per_unit;
    return (struct sm_estimate){.samples = sum->samples,
                                .value = value,
                                .low = value > half ? value - half : 0,
                                .high = value + half,
                                .exact = sum->variance <= 0};
}
