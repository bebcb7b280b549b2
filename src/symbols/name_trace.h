/* Naming the machine code of a trace: each code that is an offset in an object file (docs/format.md, section 6) and can be
   named gets its functions and source places; the others stay what they are. Hosted. */
#ifndef SM_SYMBOLS_NAME_TRACE_H
#define SM_SYMBOLS_NAME_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "convert/finalise.h"
#include "decode/trace.h"
#include "symbols/symbols.h"
#include "util/error.h"

/* One object file of a trace. */
struct sm_named_object {
    char *path;     /* "" = addresses in no object file */
    char *build_id; /* hexadecimal */
    uint64_t n_codes, n_named;
    enum sm_symbols_source source;
    char why[256]; /* "" or one clause: why its names are not better */
};

struct sm_naming {
    struct sm_symbols_options options;
    /* Results, in the order of the number of codes, most first. */
    struct sm_named_object *objects;
    size_t n_objects;
    uint64_t n_codes, n_named;
};

/* For sm_finalise_options: add_names, with a zeroed struct sm_naming (but for its options) as context. Objects are read by
   several threads. */
enum sm_status sm_naming_add(void *naming, const struct sm_trace *trace, sm_put_names_fn *put,
                             void *to, struct sm_error *err);
void sm_naming_release(struct sm_naming *n);

#endif
