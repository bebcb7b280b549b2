/* See naming.h. */
#include "report/naming.h"

#include <inttypes.h>
#include <string.h>

static const char *from_list(const char *const *list, size_t n, uint64_t i, const char *otherwise) {
    return i < n && list[i] != NULL ? list[i] : otherwise;
}
#define FROM_LIST(list, i, otherwise) from_list((list), sizeof(list) / sizeof *(list), i, otherwise)

const char *sm_heap_name(unsigned heap) {
    static const char *const names[] = {"minor", "major", "external", "native"};
    return FROM_LIST(names, heap, "unknown");
}

const char *sm_origin_name(unsigned origin) {
    static const char *const names[] = {"normal",     "marshal",     "custom",
                                        "mapped",     "reported",    "ocaml-heap",
                                        "minor-heap", "ocaml-stack", "runtime"};
    return FROM_LIST(names, origin, "unknown");
}

const char *sm_native_origin_name(unsigned origin) {
    return origin == SM_ORIGIN_NORMAL ? "program" : sm_origin_name(origin);
}

const char *sm_gc_pause_name(uint64_t kind) {
    static const char *const names[] = {NULL, "minor collection", "major slice"};
    return FROM_LIST(names, kind, "collection");
}

const char *sm_counter_name(uint64_t counter) {
    static const char *const names[] = {NULL,
                                        "rss_bytes",
                                        "heap_words",
                                        "minor_collections",
                                        "major_collections",
                                        "compactions",
                                        "minor_words",
                                        "promoted_words",
                                        "major_words",
                                        "malloc_used_bytes",
                                        "malloc_total_bytes",
                                        "malloc_mapped_bytes",
                                        "page_faults",
                                        "threads",
                                        "rss_anonymous_bytes",
                                        "rss_file_bytes",
                                        "rss_shared_bytes",
                                        "swap_bytes",
                                        "pss_bytes",
                                        "major_faults",
                                        "heap_in_malloc_bytes",
                                        "gc_pauses",
                                        "gc_pause_ns",
                                        "gc_longest_pause_ns",
                                        "recorder_bytes",
                                        "interval_ns"};
    return FROM_LIST(names, counter, NULL);
}

const char *sm_discard_reason_name(uint64_t reason) {
    static const char *const names[] = {NULL,
                                        "no space on the device or write error",
                                        "no memory for the stream",
                                        "event inside an event",
                                        "arrived while tracing stopped",
                                        "too many streams"};
    return FROM_LIST(names, reason, "unknown reason");
}

const char *sm_format_name(const struct sm_meta *meta) {
    static const char *const names[] = {"statmem 1", "memtrace 1", "memtrace 2", "memtrace 3"};
    return FROM_LIST(names, meta->format, "unknown");
}

const char *sm_rate_origin_name(enum sm_rate_origin origin) {
    static const char *const names[] = {"", "default", "given by the program",
                                        "given by the environment", "given on the command line"};
    return FROM_LIST(names, origin, "");
}

const char *sm_function(const struct sm_location *l) {
    return l->function[0] != 0 ? l->function : "?";
}

void sm_place(struct sm_buffer *out, const struct sm_location *l, bool columns) {
    if (l->line == 0 || (l->flags & SM_SYMS_NO_DEBUG)) {
        const char *slash = strrchr(l->file, '/');
        if (l->file[0] != 0)
            sm_buffer_printf(out, "[%s]", slash != NULL ? slash + 1 : l->file);
        return;
    }
    sm_buffer_printf(out, "%s:%" PRIu32, l->file[0] != 0 ? l->file : "?", l->line);
    if (!columns || (l->flags & SM_SYMS_NO_COLUMNS))
        return;
    if (l->end_line != l->line && l->end_line != 0)
        sm_buffer_printf(out, ":%" PRIu32 "-%" PRIu32 ":%" PRIu32, l->start_char, l->end_line,
                         l->end_char);
    else
        sm_buffer_printf(out, ":%" PRIu32 "-%" PRIu32, l->start_char, l->end_char);
}

void sm_nameless_frame(struct sm_buffer *out, uint64_t code, bool utf8) {
    if (code == SM_LOCATION_CUT)
        sm_buffer_text(out, utf8 ? "[… frames cut …]" : "[... frames cut ...]");
    else
        sm_buffer_printf(out, "0x%" PRIx64, code);
}
