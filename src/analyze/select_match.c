/* What filters say of classes, frames, times and sizes: everything that is decided once, before any row is looked
   at. See select.h. */
#include <stdlib.h>
#include <string.h>

#include "analyze/select_plan.h"
#include "util/buffer.h"
#include "util/memory.h"

#define DAY_NS (86400 * INT64_C(1000000000))

static int64_t saturated(__int128 x) {
    return x > INT64_MAX ? INT64_MAX : x < INT64_MIN ? INT64_MIN : (int64_t)x;
}

int64_t sm_filter_time_ns(const struct sm_analysis *a, const struct sm_filter_time *time) {
    int64_t start = a->meta.start_real_ns;
    __int128 x = time->offset;
    switch (time->anchor) {
    case SM_FROM_START:
        break;
    case SM_FROM_END:
        x += a->last_ns;
        break;
    case SM_FROM_PEAK:
        x += a->peak.ns;
        break;
    case SM_FROM_PERCENT:
        x = x * a->last_ns / 100000000;
        break;
    case SM_FROM_EPOCH:
        x -= start;
        break;
    case SM_FROM_MIDNIGHT:
        x -= (start % DAY_NS + DAY_NS) % DAY_NS;
        break;
    }
    return saturated(x);
}

bool sm_number_interval(enum sm_filter_op op, uint64_t x, uint64_t y, uint64_t *least,
                        uint64_t *most) {
    *least = 0;
    *most = UINT64_MAX;
    switch (op) {
    case SM_OP_LT:
        *most = x - 1;
        return x > 0;
    case SM_OP_LE:
        *most = x;
        break;
    case SM_OP_GT:
        *least = x + 1;
        return x < UINT64_MAX;
    case SM_OP_GE:
        *least = x;
        break;
    case SM_OP_EQ:
        *least = *most = x;
        break;
    case SM_OP_BETWEEN:
        *least = x;
        *most = y;
        break;
    }
    return *least <= *most;
}

bool sm_time_interval(enum sm_filter_op op, int64_t x, int64_t y, int64_t *from, int64_t *to) {
    /* INT64_MAX is never, which is no time. */
    *from = INT64_MIN;
    *to = INT64_MAX - 1;
    switch (op) {
    case SM_OP_LT:
        *to = x > INT64_MIN ? x - 1 : x;
        return x > INT64_MIN;
    case SM_OP_LE:
        *to = x;
        break;
    case SM_OP_GT:
        *from = x < INT64_MAX ? x + 1 : x;
        break;
    case SM_OP_GE:
        *from = x;
        break;
    case SM_OP_EQ:
        *from = *to = x;
        break;
    case SM_OP_BETWEEN:
        *from = x;
        *to = y;
        break;
    }
    if (*to == INT64_MAX)
        *to = INT64_MAX - 1;
    return *from <= *to;
}

static uint64_t product(uint64_t x, uint64_t y) {
    unsigned __int128 p = (unsigned __int128)x * y;
    return p > UINT64_MAX ? UINT64_MAX : (uint64_t)p;
}

struct sm_size_range sm_size_range(const struct sm_analysis *a, const struct sm_filter_node *node,
                                   const struct sm_row_class *class) {
    static const struct sm_size_range nothing = {1, 0};
    uint64_t bytes[2], word = a->word_bytes;
    struct sm_size_range r;
    for (int i = 0; i < 2; i++)
        bytes[i] = node->number[i].words ? product(node->number[i].n, word) : node->number[i].n;
    if (!sm_number_interval(node->op, bytes[0], bytes[1], &r.least, &r.most))
        return nothing;
    if (!class->bytes && word > 0) {
        r.least = r.least / word + (r.least % word != 0);
        r.most /= word;
    }
    return r;
}

static bool domain_matches(const struct sm_filter_node *node, uint64_t domain) {
    uint64_t least, most;
    if (node->n_list == 0)
        return sm_number_interval(node->op, node->number[0].n, node->number[1].n, &least, &most) &&
               domain >= least && domain <= most;
    uint32_t low = 0, high = node->n_list;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (node->list[middle] < domain)
            low = middle + 1;
        else
            high = middle;
    }
    return low < node->n_list && node->list[low] == domain;
}

bool sm_class_matches(const struct sm_analysis *a, const struct sm_filter_node *node,
                      const struct sm_matcher *m, const struct sm_row_class *class) {
    const struct sm_lane *lane = &a->lanes[class->lane];
    const char *name;
    switch (node->kind) {
    case SM_FILTER_DOMAIN:
        return lane->kind != SM_OWNER_NATIVE && domain_matches(node, lane->domain);
    case SM_FILTER_SOURCE:
        return (class->heap < 8 && (node->sources & SM_FILTER_HEAP(class->heap)) != 0) ||
               (class->origin < 16 && (node->sources & SM_FILTER_ORIGIN(class->origin)) != 0);
    case SM_FILTER_THREAD_ID:
        return lane->tid != 0 && lane->tid == node->number[0].n;
    default:
        name = sm_text(a, lane->name);
        return sm_match(m, name, strlen(name));
    }
}

/* ---- frames ---- */

static bool function_matches(const struct sm_analysis *a, const struct sm_matcher *m,
                             const struct sm_function *f) {
    const char *text;
    switch (m->subject) {
    case SM_SUBJECT_FILE:
        text = sm_text(a, f->file);
        return sm_match_file(m, text, strlen(text));
    case SM_SUBJECT_MODULE:
        text = sm_text(a, f->module);
        return sm_match_module(m, text, strlen(text));
    default:
        text = sm_text(a, f->name);
        return sm_match(m, text, strlen(text));
    }
}

static void match_lines(const struct sm_analysis *a, const struct sm_matcher *m, uint8_t *found) {
    struct sm_buffer text;
    sm_buffer_init(&text, -1);
    for (uint32_t i = 1; i < a->n_frames; i++) {
        const struct sm_frame *frame = &a->frames[i];
        if (frame->line == 0)
            continue;
        text.used = 0;
        sm_buffer_text(&text, sm_text(a, a->functions[frame->function].file));
        sm_buffer_char(&text, ':');
        sm_buffer_u64(&text, frame->line);
        const char *line = sm_buffer_string(&text);
        found[i] = sm_match_file(m, line, text.used);
    }
    sm_buffer_release(&text);
}

uint8_t *sm_match_frames(const struct sm_analysis *a, const struct sm_filter_pattern *pattern) {
    struct sm_matcher m;
    uint8_t *found = sm_alloc_zero((size_t)a->n_frames + 1, 1);
    if (!sm_matcher_init(&m, pattern))
        return found; /* the parser has compiled it once: memory ran out */
    if (pattern->subject == SM_SUBJECT_LINE) {
        match_lines(a, &m, found);
    } else {
        /* Function 0 is the root's. */
        uint8_t *functions = sm_alloc_zero((size_t)a->n_functions + 1, 1);
        for (uint32_t i = 1; i < a->n_functions; i++)
            functions[i] = function_matches(a, &m, &a->functions[i]);
        for (uint32_t i = 1; i < a->n_frames; i++)
            found[i] = functions[a->frames[i].function];
        free(functions);
    }
    sm_matcher_release(&m);
    return found;
}

void sm_filter_views(const struct sm_analysis *a, const struct sm_filter *f, uint64_t **hidden,
                     sm_text_id **collapsed) {
    *hidden = NULL;
    *collapsed = NULL;
    if (f == NULL)
        return;
    for (const struct sm_filter_view *view = f->views; view != NULL; view = view->next) {
        bool hide = view->kind == SM_VIEW_HIDE;
        uint8_t *found = sm_match_frames(a, &view->pattern);
        if (hide && *hidden == NULL)
            *hidden = sm_alloc_zero((size_t)a->n_frames / 64 + 1, sizeof **hidden);
        if (!hide && *collapsed == NULL)
            *collapsed = sm_alloc_zero((size_t)a->n_frames + 1, sizeof **collapsed);
        for (uint32_t i = 1; i < a->n_frames; i++) {
            const struct sm_function *function = &a->functions[a->frames[i].function];
            if (found[i] && hide)
                (*hidden)[i >> 6] |= 1ull << (i & 63);
            else if (found[i] && (*collapsed)[i] == 0)
                (*collapsed)[i] = view->pattern.subject == SM_SUBJECT_MODULE ? function->module
                                  : view->pattern.subject == SM_SUBJECT_FILE ? function->file
                                                                             : function->name;
        }
        free(found);
    }
}
