/* Answers questions about a trace for test scripts: query_tool TRACE THREADS POINTS WEIGHT... < FILTERS

   Standard input: for each filter its length in bytes, a line end, and the bytes. Output, one line of JSON each: the
   number of selected rows and their bits as hexadecimal digits (row 0 is the lowest bit of the first), the sum of each
   weight, the peak of the selection, and its live curve over the whole trace in POINTS spans. */
#include <stdio.h>
#include <stdlib.h>

#include "analyze/curve.h"
#include "analyze/select.h"
#include "analyze/weight.h"
#include "util/json.h"

static void put_bits(struct sm_json *j, const struct sm_analysis *a, const struct sm_selection *s) {
    size_t n = (a->rows.n + 3) / 4;
    char *digits = malloc(n + 1);
    for (size_t i = 0; i < n; i++) {
        unsigned digit = 0;
        for (uint32_t k = 0; k < 4 && i * 4 + k < a->rows.n; k++)
            digit |= (unsigned)sm_selected(s, (uint32_t)(i * 4) + k) << k;
        digits[i] = "0123456789abcdef"[digit];
    }
    digits[n] = 0;
    sm_json_text(j, "bits", digits);
    free(digits);
}

static void put_weights(struct sm_json *j, const struct sm_analysis *a,
                        const struct sm_selection *s, unsigned threads, char **weights) {
    sm_json_open(j, "weights", '{');
    for (; *weights != NULL; weights++) {
        struct sm_error err;
        struct sm_weight weight;
        struct sm_weigher w;
        if (sm_weight_parse(&weight, *weights, a, &err) != SM_OK) {
            fprintf(stderr, "%s\n", err.text);
            exit(2);
        }
        sm_weigher_init(&w, a, s, &weight, threads);
        struct sm_sum sum = sm_weigh(&w, threads);
        sm_json_open(j, *weights, '[');
        sm_json_u64(j, NULL, sum.units);
        sm_json_u64(j, NULL, sum.samples);
        sm_json_u64(j, NULL, sum.rows);
        sm_json_close(j, ']');
        sm_weigher_release(&w);
    }
    sm_json_close(j, '}');
}

static void put_curve(struct sm_json *j, const struct sm_analysis *a, const struct sm_selection *s,
                      unsigned threads, uint32_t points) {
    struct sm_curve c;
    struct sm_peak peak = sm_selection_peak(a, s, threads);
    sm_curve_make(&c, a, s, 0, a->last_ns + 1, points, 1, NULL, NULL, threads);
    for (int i = 0; i < 2; i++) {
        const struct sm_peak *p = i == 0 ? &peak : &c.peaks[0];
        sm_json_open(j, i == 0 ? "peak" : "curve_peak", '[');
        sm_json_u64(j, NULL, p->units);
        sm_json_i64(j, NULL, p->ns);
        sm_json_u64(j, NULL, p->row);
        sm_json_u64(j, NULL, p->freed);
        sm_json_close(j, ']');
    }
    sm_json_open(j, "curve", '[');
    for (uint32_t i = 0; i < points; i++) {
        const struct sm_curve_point *p = &c.points[i];
        sm_json_open(j, NULL, '[');
        sm_json_u64(j, NULL, p->live);
        sm_json_u64(j, NULL, p->low);
        sm_json_u64(j, NULL, p->high);
        sm_json_u64(j, NULL, p->allocated);
        sm_json_u64(j, NULL, p->freed);
        sm_json_close(j, ']');
    }
    sm_json_close(j, ']');
    sm_curve_release(&c);
}

int main(int argc, char **argv) {
    static char text[SM_FILTER_MAX_BYTES];
    struct sm_analysis *a;
    struct sm_error err;
    struct sm_buffer out;
    size_t bytes;
    if (argc < 4)
        return 2;
    unsigned threads = (unsigned)strtoul(argv[2], NULL, 10);
    uint32_t points = (uint32_t)strtoul(argv[3], NULL, 10);
    struct sm_analysis_options options = {.threads = threads, .no_cache = true};
    if (sm_analysis_open(&a, argv[1], &options, &err) != SM_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    sm_buffer_init(&out, 1);
    while (scanf("%zu", &bytes) == 1) {
        if (getchar() != '\n' || bytes > sizeof text || fread(text, 1, bytes, stdin) != bytes)
            return 2;
        struct sm_filter_error wrong;
        struct sm_filter *f = sm_filter_parse(text, bytes, &wrong);
        if (f == NULL) {
            fprintf(stderr, "%.*s: %s\n", (int)bytes, text, wrong.text);
            return 2;
        }
        struct sm_selection s;
        struct sm_json j;
        sm_select(&s, a, f, threads);
        sm_json_init(&j, &out, true);
        sm_json_open(&j, NULL, '{');
        sm_json_u64(&j, "rows", s.n_rows);
        put_bits(&j, a, &s);
        put_weights(&j, a, &s, threads, argv + 4);
        put_curve(&j, a, &s, threads, points);
        sm_json_close(&j, '}');
        sm_json_end(&j);
        sm_selection_release(&s);
        sm_filter_free(f);
    }
    sm_buffer_flush(&out);
    sm_buffer_release(&out);
    sm_analysis_free(a);
    return 0;
}
