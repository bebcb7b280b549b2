/* See weight.h: weights as people write and read them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/weight.h"
#include "util/number.h"

#define DEFAULT_TEMPORARY_BYTES 1000000

static const struct {
    const char *text, *title;
    enum sm_weight_kind kind;
} plain[] = {
    {"allocated", "allocated", SM_WEIGHT_ALLOCATED},
    {"live@end", "live at the end", SM_WEIGHT_LIVE_END},
    {"live@peak", "live at the peak", SM_WEIGHT_LIVE_PEAK},
    {"live@own-peak", "live at its own peak", SM_WEIGHT_LIVE_OWN_PEAK},
    {"freed", "freed", SM_WEIGHT_FREED},
    {"promoted", "promoted", SM_WEIGHT_PROMOTED},
    {"early", "freed before promotion", SM_WEIGHT_FREED_EARLY},
    {"lifetime", "allocated x lifetime", SM_WEIGHT_LIFETIME},
    {"samples", "samples", SM_WEIGHT_SAMPLES},
    {"objects", "objects", SM_WEIGHT_OBJECTS},
};
#define N_PLAIN (sizeof plain / sizeof *plain)

#define EXPECTED                                                                                   \
    "allocated, live@end, live@peak, live@own-peak, live@TIME (3.5s, -5s before the end, 50%%), "  \
    "freed, promoted, early, temporary (temporary<1MB, <10ms, <100allocs), lifetime, samples or "  \
    "objects"

static bool parse_moment(const char *text, const struct sm_analysis *a, int64_t *ns) {
    char *end;
    size_t n = strlen(text);
    if (n > 1 && text[n - 1] == '%') {
        double share = strtod(text, &end);
        if (end != text + n - 1 || !(share >= 0 && share <= 100))
            return false;
        *ns = (int64_t)llround((double)a->last_ns * share / 100);
        return true;
    }
    bool before_end = text[0] == '-';
    if (!sm_parse_duration(text + before_end, ns))
        return false;
    if (before_end)
        *ns = a->last_ns - *ns;
    return true;
}

static bool parse_limit(const char *text, struct sm_weight *w) {
    int64_t ns;
    char *end;
    if (text[0] == 0) {
        w->temporary_by = SM_TEMPORARY_BYTES;
        w->limit = DEFAULT_TEMPORARY_BYTES;
        return true;
    }
    if (*text++ != '<')
        return false;
    size_t n = strlen(text), suffix = strlen("allocs");
    if (n > suffix && strcmp(text + n - suffix, "allocs") == 0) {
        w->temporary_by = SM_TEMPORARY_ALLOCATIONS;
        w->limit = strtoull(text, &end, 10);
        return end == text + n - suffix && text[0] != '-';
    }
    if (strchr("sm", text[n > 0 ? n - 1 : 0]) != NULL && sm_parse_duration(text, &ns)) {
        w->temporary_by = SM_TEMPORARY_NS;
        w->limit = (uint64_t)ns;
        return true;
    }
    w->temporary_by = SM_TEMPORARY_BYTES;
    return sm_parse_bytes(text, 0, &w->limit);
}

enum sm_status sm_weight_parse(struct sm_weight *w, const char *text, const struct sm_analysis *a,
                               struct sm_error *err) {
    *w = (struct sm_weight){0};
    for (size_t i = 0; i < N_PLAIN; i++) {
        if (strcmp(text, plain[i].text) == 0) {
            w->kind = plain[i].kind;
            return SM_OK;
        }
    }
    if (strcmp(text, "live") == 0) {
        w->kind = SM_WEIGHT_LIVE_END;
        return SM_OK;
    }
    if (strncmp(text, "live@", 5) == 0 && parse_moment(text + 5, a, &w->at_ns)) {
        w->kind = SM_WEIGHT_LIVE_AT;
        return SM_OK;
    }
    if (strncmp(text, "temporary", 9) == 0 && parse_limit(text + 9, w)) {
        w->kind = SM_WEIGHT_TEMPORARY;
        return SM_OK;
    }
    sm_error_set(err, "\"%.60s\" is no weight; expected " EXPECTED, text);
    return SM_FAILED;
}

static const char *limit_text(const struct sm_weight *w, char to[40]) {
    switch (w->temporary_by) {
    case SM_TEMPORARY_NS:
        snprintf(to, 40, "%lluns", (unsigned long long)w->limit);
        break;
    case SM_TEMPORARY_BYTES:
        snprintf(to, 40, "%lluB", (unsigned long long)w->limit);
        break;
    default:
        snprintf(to, 40, "%lluallocs", (unsigned long long)w->limit);
    }
    return to;
}

const char *sm_weight_text(const struct sm_weight *w, char to[64]) {
    char limit[40];
    if (w->kind == SM_WEIGHT_LIVE_AT) {
        snprintf(to, 64, "live@%lldns", (long long)w->at_ns);
    } else if (w->kind == SM_WEIGHT_TEMPORARY) {
        snprintf(to, 64, "temporary<%s", limit_text(w, limit));
    } else {
        for (size_t i = 0; i < N_PLAIN; i++) {
            if (plain[i].kind == w->kind)
                snprintf(to, 64, "%s", plain[i].text);
        }
    }
    return to;
}

const char *sm_weight_title(const struct sm_weight *w, char to[96]) {
    char number[SM_NUMBER_BYTES];
    if (w->kind == SM_WEIGHT_LIVE_AT) {
        snprintf(to, 96, "live at %s", sm_number_duration(number, w->at_ns));
    } else if (w->kind == SM_WEIGHT_TEMPORARY && w->temporary_by == SM_TEMPORARY_NS) {
        snprintf(to, 96, "freed within %s", sm_number_duration(number, (int64_t)w->limit));
    } else if (w->kind == SM_WEIGHT_TEMPORARY && w->temporary_by == SM_TEMPORARY_BYTES) {
        snprintf(to, 96, "freed within %s more", sm_number_bytes(number, (double)w->limit, false));
    } else if (w->kind == SM_WEIGHT_TEMPORARY) {
        snprintf(to, 96, "freed within %s more samples", sm_number_count(number, w->limit));
    } else {
        for (size_t i = 0; i < N_PLAIN; i++) {
            if (plain[i].kind == w->kind)
                snprintf(to, 96, "%s", plain[i].title);
        }
    }
    return to;
}

enum sm_measure sm_weight_measure(const struct sm_weight *w) {
    switch (w->kind) {
    case SM_WEIGHT_LIFETIME:
        return SM_MEASURE_BYTE_SECONDS;
    case SM_WEIGHT_SAMPLES:
        return SM_MEASURE_SAMPLES;
    case SM_WEIGHT_OBJECTS:
        return SM_MEASURE_OBJECTS;
    default:
        return SM_MEASURE_BYTES;
    }
}

#define Z 1.959963984540054

struct sm_estimate sm_weight_estimate(const struct sm_weigher *w, const struct sm_sum *sum) {
    const struct sm_analysis *a = w->analysis;
    double scale;
    switch (sm_weight_measure(&w->weight)) {
    case SM_MEASURE_SAMPLES: {
        double n = (double)sum->units;
        return (struct sm_estimate){
            .samples = sum->samples, .value = n, .low = n, .high = n, .exact = true};
    }
    case SM_MEASURE_BYTE_SECONDS:
        scale = a->bytes_per_unit / 1e6;
        break;
    case SM_MEASURE_OBJECTS:
        scale = a->meta.sample_rate > 0 ? 1 / 1024.0 : NAN;
        break;
    default:
        return sm_sum_estimate(a, sum);
    }
    double value = (double)sum->units * scale, half = Z * sqrt(sum->variance) * scale;
    return (struct sm_estimate){.samples = sum->samples,
                                .value = value,
                                .low = value > half ? value - half : 0,
                                .high = value + half,
                                .exact = sum->variance <= 0 && value == value};
}
