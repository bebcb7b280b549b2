/* Any bytes as a filter: parsed; what parses is printed, parsed again, and must be the same; what does not
   must say where and why. Patterns that come out of it are held against the input itself. */
#include <stdlib.h>
#include <string.h>

#include "analyze/filter.h"
#include "analyze/match.h"
#include "util/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void match(const struct sm_filter_pattern *pattern, const char *name, size_t bytes) {
    struct sm_matcher m;
    if (!sm_matcher_init(&m, pattern))
        abort(); /* the parser lets only valid ones through */
    bool whole = sm_match(&m, name, bytes);
    bool file = sm_match_file(&m, name, bytes), module = sm_match_module(&m, name, bytes);
    if (whole && !(file && module))
        abort();
    sm_matcher_release(&m);
}

static void walk(const struct sm_filter_node *node, const char *name, size_t bytes) {
    if (node->pattern.text != NULL)
        match(&node->pattern, name, bytes);
    for (const struct sm_filter_node *child = node->first; child != NULL; child = child->next)
        walk(child, name, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct sm_filter_error err = {0};
    struct sm_filter *f = sm_filter_parse((const char *)data, bytes, &err);
    if (f == NULL) {
        if (err.column == 0 || err.column > bytes + 1 || err.expected == NULL ||
            strstr(err.text, err.expected) == NULL)
            abort();
        return 0;
    }
    struct sm_buffer text, again;
    sm_buffer_init(&text, -1);
    sm_buffer_init(&again, -1);
    sm_filter_print(&text, f);
    struct sm_filter *g = sm_filter_parse(text.data, text.used, &err);
    if (g == NULL || !sm_filter_equal(f, g))
        abort();
    sm_filter_print(&again, g);
    if (again.used != text.used || (text.used > 0 && memcmp(text.data, again.data, text.used) != 0))
        abort();
    for (size_t i = 0, used; i < text.used; i += used) {
        uint32_t c = sm_utf8_get(text.data + i, text.used - i, &used);
        if (c < ' ' || (c >= 0x7F && c < 0xA0) || c == UINT32_MAX)
            abort();
    }
    char *name = malloc(bytes + 1);
    if (bytes > 0)
        memcpy(name, data, bytes);
    name[bytes] = 0;
    size_t name_bytes = strlen(name);
    if (f->root != NULL)
        walk(f->root, name, name_bytes);
    for (const struct sm_filter_view *view = f->views; view != NULL; view = view->next)
        match(&view->pattern, name, name_bytes);
    free(name);
    sm_filter_free(g);
    sm_filter_free(f);
    sm_buffer_release(&again);
    sm_buffer_release(&text);
    return 0;
}
