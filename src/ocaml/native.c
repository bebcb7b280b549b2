/* What is written of a place in machine code must be enough to name it later and elsewhere, so it is the object file with its
   build-id, and the offset in it. The first of these texts is made once for each object file. */
#include "ocaml/native.h"

#include <stdatomic.h>
#include <string.h>

#include "ocaml/symbols.h"
#include "record/native_code.h"
#include "unwind/modules.h"
#include "unwind/unwind.h"

/* By the module's number. Release when a text is complete, acquire where it is used: object_text. */
static _Atomic(const char *) object_texts[SM_MAX_MODULES];
/* Relaxed: written before the first event. */
static _Atomic bool names_later;

void sm_native_names_later(void) {
    atomic_store_explicit(&names_later, true, memory_order_relaxed);
}

static size_t put_hex(char *to, uint64_t x) {
    size_t n = 0;
    int shift = 60;
    while (shift > 0 && x >> shift == 0)
        shift -= 4;
    for (; shift >= 0; shift -= 4)
        to[n++] = "0123456789abcdef"[x >> shift & 15];
    return n;
}

/* "BUILD-ID:PATH"; NULL without memory. */
static const char *object_text(const struct sm_module *m) {
    size_t number = (size_t)(m - sm_modules_get(0));
    const char *there = atomic_load_explicit(&object_texts[number], memory_order_acquire);
    if (there != NULL)
        return there;
    size_t path_bytes = strlen(m->path), n = 0;
    char *text = sm_symbol_memory(2u * m->build_id_bytes + 1 + path_bytes + 1);
    if (text == NULL)
        return NULL;
    for (unsigned i = 0; i < m->build_id_bytes; i++) {
        text[n++] = "0123456789abcdef"[m->build_id[i] >> 4];
        text[n++] = "0123456789abcdef"[m->build_id[i] & 15];
    }
    text[n++] = ':';
    memcpy(text + n, m->path, path_bytes + 1);
    /* Two threads may make the same text; either serves. */
    atomic_store_explicit(&object_texts[number], text, memory_order_release);
    return text;
}

/* "+0xOFFSET" or "+0xOFFSET NAME"; NULL without memory. */
static const char *offset_text(uint64_t offset, const char *name) {
    size_t name_bytes = name != NULL ? strlen(name) : 0;
    char *text = sm_symbol_memory(3 + 16 + 1 + name_bytes + 1);
    if (text == NULL)
        return NULL;
    memcpy(text, "+0x", 3);
    size_t n = 3 + put_hex(text + 3, offset);
    if (name_bytes > 0) {
        text[n++] = ' ';
        memcpy(text + n, name, name_bytes);
        n += name_bytes;
    }
    text[n] = 0;
    return text;
}

uint32_t sm_native_symbolize(uint64_t code, struct sm_source_location *locations, uint32_t max) {
    if (max == 0 || !sm_code_is_native(code))
        return 0;
    uintptr_t address = sm_frame_address(sm_native_code_address(code));
    const struct sm_module *m = sm_module_at(address);
    struct sm_symbol symbol = {.name = NULL};
    if (m != NULL && !atomic_load_explicit(&names_later, memory_order_relaxed))
        sm_symbol_at(address, &symbol);
    const char *file = m != NULL ? object_text(m) : ":";
    const char *function = offset_text(m != NULL ? address - m->bias : address, symbol.name);
    if (file == NULL || function == NULL)
        return 0;
    struct sm_source_location *l = &locations[0];
    memset(l, 0, sizeof *l);
    l->file = file;
    l->file_bytes = strlen(file);
    l->function = function;
    l->function_bytes = strlen(function);
    l->flags = SM_SYMS_NO_DEBUG | SM_SYMS_NATIVE | SM_SYMS_NO_COLUMNS | SM_SYMS_OFFSET;
    return 1;
}
