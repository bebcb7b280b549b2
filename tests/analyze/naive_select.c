/* A filter against one row, in the words of docs/filters.md, without any plan or table: what sm_select must
   agree with. */
#include "naive_select.h"

#include <string.h>

#include "analyze/match.h"
#include "analyze/select.h"
#include "util/buffer.h"

static bool frame_passes(const struct sm_analysis *a, const struct sm_filter_pattern *pattern,
                         uint32_t node) {
    const struct sm_frame *frame = &a->frames[a->tree.frame[node]];
    const struct sm_function *function = &a->functions[frame->function];
    struct sm_matcher m;
    struct sm_buffer line;
    if (node == 0 || !sm_matcher_init(&m, pattern))
        return false;
    const char *text = sm_text(a, pattern->subject == SM_SUBJECT_FUNCTION ? function->name
                                  : pattern->subject == SM_SUBJECT_MODULE ? function->module
                                                                          : function->file);
    bool yes = false;
    switch (pattern->subject) {
    case SM_SUBJECT_FUNCTION:
        yes = sm_match(&m, text, strlen(text));
        break;
    case SM_SUBJECT_FILE:
        yes = sm_match_file(&m, text, strlen(text));
        break;
    case SM_SUBJECT_MODULE:
        yes = sm_match_module(&m, text, strlen(text));
        break;
    case SM_SUBJECT_LINE:
        sm_buffer_init(&line, -1);
        sm_buffer_printf(&line, "%s:%u", text, frame->line);
        yes = frame->line != 0 && sm_match_file(&m, sm_buffer_string(&line), line.used);
        sm_buffer_release(&line);
        break;
    }
    sm_matcher_release(&m);
    return yes;
}

static bool time_passes(const struct sm_analysis *a, const struct sm_filter_node *node,
                        int64_t ns) {
    int64_t x = sm_filter_time_ns(a, &node->time[0]), y = sm_filter_time_ns(a, &node->time[1]);
    if (ns == SM_NEVER_NS)
        return false;
    if (node->any)
        return true;
    switch (node->op) {
    case SM_OP_LT:
        return ns < x;
    case SM_OP_LE:
        return ns <= x;
    case SM_OP_GT:
        return ns > x;
    case SM_OP_GE:
        return ns >= x;
    case SM_OP_EQ:
        return ns == x;
    case SM_OP_BETWEEN:
        return ns >= x && ns <= y;
    }
    return false;
}

static bool number_passes(const struct sm_filter_node *node, double n, double unit) {
    double x = (double)node->number[0].n * (node->number[0].words ? unit : 1);
    double y = (double)node->number[1].n * (node->number[1].words ? unit : 1);
    switch (node->op) {
    case SM_OP_LT:
        return n < x;
    case SM_OP_LE:
        return n <= x;
    case SM_OP_GT:
        return n > x;
    case SM_OP_GE:
        return n >= x;
    case SM_OP_EQ:
        return n == x;
    case SM_OP_BETWEEN:
        return n >= x && n <= y;
    }
    return false;
}

static bool live_passes(const struct sm_analysis *a, const struct sm_filter_node *node,
                        uint32_t row) {
    int64_t from = sm_filter_time_ns(a, &node->time[0]), to = from;
    int64_t born = sm_row_alloc_ns(a, row), freed = sm_row_free_ns(a, row);
    if (node->op == SM_OP_EQ && node->time[0].offset == 0) {
        if (node->time[0].anchor == SM_FROM_END)
            return freed == SM_NEVER_NS;
        if (node->time[0].anchor == SM_FROM_PEAK) {
            if (a->peak.row == UINT32_MAX || row > a->peak.row)
                return false;
            for (uint32_t k = 0; k < a->peak.freed; k++) {
                if (a->rows.free_order[k] == row)
                    return false;
            }
            return true;
        }
    }
    if (node->op == SM_OP_LE)
        from = INT64_MIN;
    if (node->op == SM_OP_GE)
        to = INT64_MAX;
    if (node->op == SM_OP_BETWEEN)
        to = sm_filter_time_ns(a, &node->time[1]);
    int64_t moment = born > from ? born : from;
    return from <= to && moment <= to && moment < freed;
}

static bool lane_passes(const struct sm_analysis *a, const struct sm_filter_node *node,
                        const struct sm_row_class *class) {
    const struct sm_lane *lane = &a->lanes[class->lane];
    const char *name = sm_text(a, lane->name);
    struct sm_matcher m;
    bool yes;
    switch (node->kind) {
    case SM_FILTER_SOURCE:
        return (node->sources & (1u << class->heap | 256u << class->origin)) != 0;
    case SM_FILTER_THREAD_ID:
        return lane->tid == node->number[0].n && lane->tid != 0;
    case SM_FILTER_THREAD:
        if (!sm_matcher_init(&m, &node->pattern))
            return false;
        yes = sm_match(&m, name, strlen(name));
        sm_matcher_release(&m);
        return yes;
    default:
        if (lane->kind == SM_OWNER_NATIVE)
            return false;
        for (uint32_t i = 0; i < node->n_list; i++) {
            if (node->list[i] == lane->domain)
                return true;
        }
        return node->n_list == 0 && number_passes(node, (double)lane->domain, 1);
    }
}

static bool passes(const struct sm_analysis *a, const struct sm_filter_node *node, uint32_t row) {
    const struct sm_row_class *class = &a->classes[a->rows.class_id[row]];
    int64_t freed = sm_row_free_ns(a, row);
    switch (node->kind) {
    case SM_FILTER_AND:
    case SM_FILTER_OR:
        for (const struct sm_filter_node *child = node->first; child != NULL; child = child->next) {
            if (passes(a, child, row) == (node->kind == SM_FILTER_OR))
                return node->kind == SM_FILTER_OR;
        }
        return node->kind == SM_FILTER_AND;
    case SM_FILTER_NOT:
        return !passes(a, node->first, row);
    case SM_FILTER_ALLOCATED:
        return time_passes(a, node, sm_row_alloc_ns(a, row));
    case SM_FILTER_PROMOTED:
        return time_passes(a, node, sm_row_promote_ns(a, row));
    case SM_FILTER_COLLECTED:
        return time_passes(a, node, freed);
    case SM_FILTER_LIVE:
        return live_passes(a, node, row);
    case SM_FILTER_SIZE:
        return number_passes(node, (double)sm_row_bytes(a, row), a->word_bytes);
    case SM_FILTER_LIFETIME:
        return number_passes(
            node,
            freed == SM_NEVER_NS ? __builtin_inf() : (double)(freed - sm_row_alloc_ns(a, row)), 1);
    case SM_FILTER_SAMPLES:
        return number_passes(node, (double)sm_row_samples(a, row), 1);
    case SM_FILTER_THREAD:
    case SM_FILTER_DOMAIN:
    case SM_FILTER_SOURCE:
    case SM_FILTER_THREAD_ID:
        return lane_passes(a, node, class);
    case SM_FILTER_SITE:
        return frame_passes(a, &node->pattern, a->rows.node[row]);
    case SM_FILTER_INSIDE:
        for (uint32_t n = a->rows.node[row]; n != 0; n = a->tree.parent[n]) {
            if (frame_passes(a, &node->pattern, n))
                return true;
        }
        return false;
    }
    return false;
}

bool naive_select(const struct sm_analysis *a, const struct sm_filter *f, uint32_t row) {
    return f == NULL || f->root == NULL || passes(a, f->root, row);
}
