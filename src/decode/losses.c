/* What could not be read, as a bounded list: the first SM_LOSSES_PER_KIND of each kind one by one,
   the others added up in the last of their kind. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/trace_internal.h"

const char *sm_loss_kind_name(enum sm_loss_kind kind) {
    static const char *const names[SM_LOSS_KINDS] = {
        [SM_LOSS_CUT] = "cut",
        [SM_LOSS_GARBAGE] = "garbage",
        [SM_LOSS_CORRUPT] = "corrupt",
        [SM_LOSS_GAP] = "gap",
        [SM_LOSS_FOREIGN] = "foreign",
        [SM_LOSS_DISCARDED] = "discarded",
        [SM_LOSS_ORPHANS] = "orphans",
        [SM_LOSS_NAMES] = "names",
        [SM_LOSS_TIME] = "time",
        [SM_LOSS_CONCATENATED] = "concatenated",
        [SM_LOSS_UNSUPPORTED] = "unsupported",
        [SM_LOSS_EXTENT] = "extent",
    };
    return (unsigned)kind < SM_LOSS_KINDS ? names[kind] : "unknown";
}

static uint64_t add_saturating(uint64_t a, uint64_t b) {
    return a + b < a ? UINT64_MAX : a + b;
}

static void merge_into(struct sm_trace *t, struct sm_loss *last, const struct sm_loss *more) {
    if (last->count == 1) {
        char text[320];
        snprintf(text, sizeof text, "%s (and further ones, added up here)", last->detail);
        last->detail = sm_trace_text(t, text, strlen(text));
    }
    last->count++;
    last->bytes = add_saturating(last->bytes, more->bytes);
    last->events = add_saturating(last->events, more->events);
    last->events_known = last->events_known && more->events_known;
    if (last->stream != more->stream)
        last->stream = UINT32_MAX;
}

void sm_trace_add_loss(struct sm_trace *t, enum sm_loss_kind kind, uint32_t stream, uint64_t offset,
                       uint64_t bytes, uint64_t events, bool events_known, const char *format,
                       ...) {
    struct sm_losses *l = &t->losses;
    struct sm_loss loss = {.kind = kind,
                           .events_known = events_known,
                           .stream = stream,
                           .offset = offset,
                           .bytes = bytes,
                           .events = events,
                           .count = 1,
                           .detail = ""};
    bool full = l->n_of_kind[kind] >= SM_LOSSES_PER_KIND;
    if (!full && l->n == l->capacity) {
        size_t capacity = l->capacity == 0 ? 16 : l->capacity * 2;
        struct sm_loss *list = realloc(l->list, capacity * sizeof *list);
        if (list == NULL)
            full = true;
        else {
            l->list = list;
            l->capacity = capacity;
        }
    }
    if (full) {
        for (size_t i = l->n; i-- > 0;)
            if (l->list[i].kind == kind) {
                merge_into(t, &l->list[i], &loss);
                return;
            }
        return;
    }
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    loss.detail = sm_trace_text(t, text, strlen(text));
    l->list[l->n++] = loss;
    l->n_of_kind[kind]++;
}

size_t sm_trace_losses(const struct sm_trace *t, const struct sm_loss **list) {
    *list = t->losses.list;
    return t->losses.n;
}

void sm_trace_report_orphans(struct sm_trace *t, uint64_t n, bool exact) {
    if (n > 0 && !t->orphans_reported)
        sm_trace_add_loss(t, SM_LOSS_ORPHANS, UINT32_MAX, 0, 0, n, exact,
                          "%llu promotions or collections are of allocations that are not in the "
                          "trace",
                          (unsigned long long)n);
    t->orphans_reported = true;
}
