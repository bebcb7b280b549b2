#include "ocaml/native.h"

#include <string.h>

#include "ocaml/symbols.h"
#include "record/native_code.h"

static size_t put_hex(char *to, const char *prefix, uint64_t x) {
    size_t n = strlen(prefix);
    memcpy(to, prefix, n);
    int shift = 60;
    while (shift > 0 && x >> shift == 0)
        shift -= 4;
    for (; shift >= 0; shift -= 4)
        to[n++] = "0123456789abcdef"[x >> shift & 15];
    return n;
}

uint32_t sm_native_symbolize(uint64_t code, struct sm_source_location *locations, uint32_t max) {
    if (max == 0 || !sm_code_is_native(code))
        return 0;
    struct sm_symbol symbol;
    uintptr_t address = sm_native_code_address(code);
    bool known = sm_symbol_at(address, &symbol);
    const char *file =
        known ? (symbol.object[0] != 0 ? symbol.object : "(executable)") : "(unknown)";
    struct sm_source_location *l = &locations[0];
    memset(l, 0, sizeof *l);
    l->file = file;
    l->file_bytes = strlen(file);
    l->flags = SM_SYMS_NO_DEBUG | SM_SYMS_NATIVE | SM_SYMS_NO_COLUMNS;
    if (known && symbol.name != NULL) {
        l->function = symbol.name;
        l->function_bytes = strlen(symbol.name);
    } else {
        char *name = sm_symbol_memory(24);
        l->function = name != NULL ? name : "";
        l->function_bytes =
            name != NULL ? put_hex(name, known ? "+0x" : "0x", known ? symbol.offset : address) : 0;
    }
    return 1;
}
