/* The functions of statmem.h over the recorder.

   The caller's stack is walked by the unwinder (unwind/unwind.h), through OCaml's frames too. Blocks are sampled in words, as OCaml's
   are, so that one rate means one thing; a block that is no whole number of words is rounded up or down
   at random, with the probability that makes the expectation right. */
#include "statmem.h"

#include <stdlib.h>
#include <string.h>

#include "ocaml/native.h"
#include "record/native_code.h"
#include "record/recorder.h"
#include "unwind/modules.h"
#include "unwind/unwind.h"

#define EXPORTED __attribute__((visibility("default")))
#define WORD_BYTES 8
/* Twice of what stays of a deeper stack. */
#define MAX_FRAMES 512

static __thread uint32_t rounding __attribute__((tls_model("initial-exec")));

static void stop_at_exit(void) {
    sm_recorder_stop(SM_REASON_EXIT);
}

static int start(const struct sm_recorder_config *config, char *err, size_t err_bytes) {
    static int registered;
    if (sm_recorder_start(config, err, err_bytes) != 0)
        return -1;
    if (__atomic_exchange_n(&registered, 1, __ATOMIC_RELAXED) == 0)
        atexit(stop_at_exit);
    return 0;
}

EXPORTED int statmem_start(const struct statmem_options *options, char *err, size_t err_bytes) {
    struct statmem_options o;
    memset(&o, 0, sizeof o);
    memcpy(&o, options, options->struct_bytes < sizeof o ? options->struct_bytes : sizeof o);
    struct sm_recorder_config config = {
        .path = o.path,
        .fd = -1,
        .sample_rate = o.rate != 0 ? o.rate : 1e-6,
        .rate_origin = o.rate != 0 ? SM_RATE_ARGUMENT : SM_RATE_DEFAULT,
        .depth_limit = o.depth_limit,
        .has_seed = o.has_seed != 0,
        .seed = o.seed,
        .follow_children = o.follow_children != 0,
        .mode = SM_MODE_LINKED,
        .context = o.context,
        .symbolize = sm_native_symbolize,
    };
    return start(&config, err, err_bytes);
}

/* Digits, a point, an exponent: what people write as a rate. Negative = not a number. (strtod depends on the
   locale.) */
static double parse_rate(const char *s) {
    double x = 0, unit = 1;
    int digits = 0, exponent = 0, sign = 1;
    for (; *s >= '0' && *s <= '9'; s++, digits++)
        x = x * 10 + (*s - '0');
    if (*s == '.')
        for (s++; *s >= '0' && *s <= '9'; s++, digits++)
            x += (*s - '0') * (unit /= 10);
    if (digits > 0 && *s == '/') { /* 1/1000 */
        double divisor = 0;
        for (s++; *s >= '0' && *s <= '9'; s++)
            divisor = divisor * 10 + (*s - '0');
        return *s == 0 && divisor > 0 ? x / divisor : -1;
    }
    if (digits > 0 && (*s == 'e' || *s == 'E')) {
        s++;
        if (*s == '-' || *s == '+')
            sign = *s++ == '-' ? -1 : 1;
        if (*s < '0' || *s > '9')
            return -1;
        for (; *s >= '0' && *s <= '9' && exponent < 400; s++)
            exponent = exponent * 10 + (*s - '0');
    }
    if (digits == 0 || *s != 0)
        return -1;
    while (exponent-- > 0)
        x = sign < 0 ? x / 10 : x * 10;
    return x;
}

EXPORTED int statmem_start_if_requested(char *err, size_t err_bytes) {
    const char *path = getenv("MEMTRACE"), *rate = getenv("STATMEM_RATE");
    if (path == NULL || path[0] == 0)
        return 0;
    if (rate == NULL)
        rate = getenv("MEMTRACE_RATE");
    struct sm_recorder_config config = {
        .path = path,
        .fd = -1,
        .sample_rate = rate != NULL ? parse_rate(rate) : 1e-6,
        .rate_origin = rate != NULL ? SM_RATE_ENVIRONMENT : SM_RATE_DEFAULT,
        .mode = SM_MODE_LINKED,
        .symbolize = sm_native_symbolize,
    };
    return start(&config, err, err_bytes) == 0 ? 1 : -1;
}

EXPORTED void statmem_stop(void) {
    sm_recorder_stop(SM_REASON_STOPPED);
}

EXPORTED int statmem_active(void) {
    return sm_recorder_active();
}

EXPORTED double statmem_rate(void) {
    return sm_recorder_sample_rate();
}

EXPORTED uint64_t statmem_discarded(void) {
    return sm_recorder_discarded();
}

EXPORTED __attribute__((noinline)) statmem_token statmem_ext_alloc(size_t bytes) {
    uint64_t words = bytes / WORD_BYTES;
    if (bytes % WORD_BYTES != 0) {
        rounding = rounding * 1664525u + 1013904223u;
        words += (rounding >> 29) < bytes % WORD_BYTES;
    }
    uint64_t n_samples = sm_recorder_sample(words);
    if (n_samples == 0)
        return 0;
    uintptr_t frames[MAX_FRAMES];
    struct sm_unwound unwound;
    uint32_t n = sm_unwind(frames, MAX_FRAMES, 1, &unwound);
    if (!sm_modules_verify(frames, n)) /* a library has taken another's place */
        n = sm_unwind(frames, MAX_FRAMES, 1, &unwound);
    if (n == 0) { /* it could not be walked at all */
        frames[0] = (uintptr_t)__builtin_return_address(0);
        n = 1;
    }
    if (unwound.n_cut > 0)
        n = unwound.cut_at;
    for (uint32_t i = 0; i < n; i++)
        frames[i] = sm_native_element((const void *)frames[i]);
    struct sm_raw_stack stack = {.innermost_first = frames,
                                 .n_frames = n,
                                 .cut_outermost =
                                     unwound.n_cut > 0 || unwound.end != SM_UNWIND_OUTERMOST};
    return sm_recorder_alloc_bytes(bytes, n_samples,
                                   SM_SOURCE(SM_HEAP_EXTERNAL, SM_ORIGIN_REPORTED), &stack);
}

EXPORTED void statmem_ext_free(statmem_token token) {
    if (token != 0)
        sm_recorder_collect(token);
}

EXPORTED void statmem_mark(const char *text) {
    sm_recorder_mark(text, strlen(text));
}

EXPORTED void statmem_thread_name(const char *name) {
    sm_recorder_thread_name(name, strlen(name));
}
