/* A call-stack slot of native code is the address of a frame descriptor, or, with bit 1 set, of debug information
   itself (an allocation combined with others). In bytecode it is a code address. The runtime's own
   functions decode it; their strings live in the program's data and never move. Only frames compiled without -g
   have no debug information; their return address, the descriptor's first word, finds the
   function's name in the symbol tables. */
#include "ocaml/locations.h"

#include <string.h>

#include "ocaml/frames.h"
#include "ocaml/native.h"
#include "ocaml/symbols.h"
#include "record/native_code.h"
#include "unwind/modules.h"
#include "unwind/unwind.h"

static const struct sm_ocaml_runtime *runtime;

void sm_ocaml_locations_init(const struct sm_ocaml_runtime *rt) {
    runtime = rt;
}

static void set_name(const char *s, const char **name, size_t *bytes) {
    *name = s != NULL ? s : "";
    *bytes = strlen(*name);
}

static uint32_t clamp(int x, uint8_t *flags) {
    if (x >= 0)
        return (uint32_t)x;
    *flags |= SM_SYMS_CLAMPED;
    return 0;
}

/* Native debug information has fields of few bits; the compiler puts their largest value where a number does not fit.
   Whether it was exactly that number, nobody knows. Before 5.2, and in the short form since: 20 bits of line, 8 and
   10 of columns; the long form, for places beyond, has 19 bits of line and 16 of a column or more. */
static void mark_limits(struct sm_source_location *l) {
    enum { SHORT_LINE = 0xFFFFF, LONG_LINE = 0x7FFFF, SHORT_START = 0xFF, SHORT_END = 0x3FF };
    bool cut =
        runtime->locations_since_5_2
            ? l->line == LONG_LINE || l->end_line == LONG_LINE
            : l->line == SHORT_LINE || l->start_char == SHORT_START || l->end_char == SHORT_END;
    if (cut && runtime->kind != SM_OCAML_BYTECODE)
        l->flags |= SM_SYMS_CLAMPED;
}

static bool one_location(void *debuginfo, struct sm_source_location *out) {
    struct sm_ocaml_location l;
    memset(&l, 0, sizeof l);
    runtime->debuginfo_location(debuginfo, &l);
    /* Bytecode without a source place, such as code that the compiler made, says "??" in "_none_". */
    if (!l.valid || (l.u.before_5_2.line <= 0 && l.file != NULL && strcmp(l.file, "_none_") == 0))
        return false;
    memset(out, 0, sizeof *out);
    set_name(l.file, &out->file, &out->file_bytes);
    set_name(l.function, &out->function, &out->function_bytes);
    if (runtime->locations_since_5_2) {
        out->line = clamp(l.u.since_5_2.line, &out->flags);
        out->end_line = clamp(l.u.since_5_2.end_line, &out->flags);
        out->start_char = clamp(l.u.since_5_2.start_char, &out->flags);
        out->end_char = clamp(l.u.since_5_2.end_char, &out->flags);
    } else {
        out->line = out->end_line = clamp(l.u.before_5_2.line, &out->flags);
        out->start_char = clamp(l.u.before_5_2.start_char, &out->flags);
        out->end_char = clamp(l.u.before_5_2.end_char, &out->flags);
    }
    mark_limits(out);
    if (out->function_bytes == 0 && out->file_bytes > 0)
        set_name("(unknown)", &out->function, &out->function_bytes);
    return true;
}

/* "NAME+0x1f" in memory that stays; NULL when there is none. */
static const char *name_and_offset(const char *name, uint64_t offset) {
    size_t n = strlen(name);
    char *p = sm_symbol_memory(n + 3 + 16 + 1);
    if (p == NULL)
        return NULL;
    memcpy(p, name, n);
    memcpy(p + n, "+0x", 3);
    n += 3;
    int digits = 1;
    while (digits < 16 && offset >> (4 * digits) != 0)
        digits++;
    while (digits-- > 0)
        p[n++] = "0123456789abcdef"[(offset >> (4 * digits)) & 15];
    p[n] = 0;
    return p;
}

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static uint32_t from_symbols(uintptr_t return_address, struct sm_source_location *out) {
    struct sm_symbol symbol;
    memset(out, 0, sizeof *out);
    out->file = "";
    out->flags = SM_SYMS_NO_DEBUG;
    /* The call instruction lies before the return address, and may be its function's last. */
    if (!sm_symbol_at(return_address - 1, &symbol))
        return 0;
    set_name(file_name(symbol.object), &out->file, &out->file_bytes);
    const char *name = symbol.name;
    if (name == NULL) {
        name = name_and_offset(symbol.object[0] != 0 ? out->file : "exe", symbol.offset);
    } else {
        size_t bytes = strlen(name) + 8;
        char *readable = sm_symbol_memory(bytes);
        if (readable != NULL && sm_ocaml_demangle(name, readable, bytes) > 0)
            name = readable;
    }
    set_name(name, &out->function, &out->function_bytes);
    return out->function_bytes > 0 ? 1 : 0;
}

static uint32_t without_debug_information(uint64_t code, struct sm_source_location *out) {
    if (runtime->kind == SM_OCAML_BYTECODE) {
        uint64_t start = runtime->start_code != NULL ? *runtime->start_code : 0;
        memset(out, 0, sizeof *out);
        out->file = "";
        out->flags = SM_SYMS_NO_DEBUG;
        set_name(name_and_offset("bytecode", code - start), &out->function, &out->function_bytes);
        return out->function_bytes > 0 ? 1 : 0;
    }
    if (code & 2)
        return 0; /* debug information that the runtime cannot read */
    return from_symbols(*(const uintptr_t *)(uintptr_t)code, out);
}

uint32_t sm_ocaml_symbolize(uint64_t code, struct sm_source_location *locations, uint32_t max) {
    uint64_t slot = code;
    if (max == 0 || code == 0)
        return 0;
    if (sm_code_is_native(code)) {
        if (runtime != NULL && runtime->frametable != NULL)
            slot = (uint64_t)(uintptr_t)sm_ocaml_frame_descriptor(
                runtime->frametable, sm_frame_address(sm_native_code_address(code)) + 1);
        else
            slot = 0;
        if (slot == 0)
            return sm_native_symbolize(code, locations, max);
    } else if (runtime->kind == SM_OCAML_NATIVE && sm_module_at((uintptr_t)code) == NULL) {
        /* OCaml 5.3 now and then hands over a call stack with something else in it, while many domains end (a heap
           address, mostly). Frame descriptors stand in object files; what does not is not looked at. */
        return 0;
    }
    /* Innermost first: the places of inlined code, then the function that holds them. */
    uint32_t n = 0;
    void *info = runtime->debuginfo_extract((void *)(uintptr_t)slot);
    for (; info != NULL && n < max; info = runtime->debuginfo_next(info))
        n += one_location(info, &locations[n]);
    if (n == 0)
        return slot != code ? sm_native_symbolize(code, locations, max)
                            : without_debug_information(code, locations);
    if (info != NULL)
        locations[n - 1].flags |= SM_SYMS_CLAMPED;
    for (uint32_t i = 0, j = n - 1; i < j; i++, j--) {
        struct sm_source_location swapped = locations[i];
        locations[i] = locations[j];
        locations[j] = swapped;
    }
    return n;
}
