/* Which language a symbol comes from is told by its beginning; Rust's older scheme is C++'s with a hash at the end. C++
   itself is left to the C++ runtime: a program in C++ needs it anyhow, so it is there when such names are, and statmem
   itself does not depend on it. */
#include "symbols/demangle.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ocaml/locations.h"
#include "symbols/symbols.h"

#define MAX_NAME_BYTES 65536u

/* ---- C++ ---- */

typedef char *cxa_demangle_fn(const char *name, char *out, size_t *bytes, int *status);
static cxa_demangle_fn *cxa_demangle;
static pthread_once_t cxa_once = PTHREAD_ONCE_INIT;

static void find_cxa(void) {
    void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    if (library != NULL)
        *(void **)&cxa_demangle = dlsym(library, "__cxa_demangle");
}

bool sm_demangle_cpp(const char *symbol, char *out, size_t bytes) {
    int status = -1;
    if (strncmp(symbol, "_Z", 2) != 0)
        return false;
    pthread_once(&cxa_once, find_cxa);
    if (cxa_demangle == NULL)
        return false;
    char *name = cxa_demangle(symbol, NULL, NULL, &status);
    size_t n = name != NULL && status == 0 ? strlen(name) : bytes;
    if (n < bytes)
        memcpy(out, name, n + 1);
    free(name);
    return n < bytes;
}

/* ---- Rust's older scheme ---- */

static const struct escape {
    const char *name, *text;
} escapes[] = {{"SP$", "@"}, {"BP$", "*"}, {"RF$", "&"}, {"LT$", "<"},
               {"GT$", ">"}, {"LP$", "("}, {"RP$", ")"}, {"C$", ","}};

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "$LT$" and the like, "$u7b$". Bytes used of s, 0 = no escape. */
static size_t unescape(const char *s, size_t n, char *c, size_t *c_bytes) {
    for (size_t i = 0; i < sizeof escapes / sizeof escapes[0]; i++) {
        size_t length = strlen(escapes[i].name);
        if (n > length && memcmp(s + 1, escapes[i].name, length) == 0) {
            *c = escapes[i].text[0];
            *c_bytes = 1;
            return length + 1;
        }
    }
    unsigned code = 0;
    size_t i = 2;
    if (n < 4 || s[1] != 'u')
        return 0;
    for (; i < n && i < 8 && hex_digit(s[i]) >= 0; i++)
        code = code * 16 + (unsigned)hex_digit(s[i]);
    if (i >= n || s[i] != '$' || i == 2 || code < 0x20 || code >= 0x7F)
        return 0;
    *c = (char)code;
    *c_bytes = 1;
    return i + 1;
}

bool sm_demangle_rust_legacy(const char *symbol, char *out, size_t bytes) {
    size_t n = strlen(symbol), used = 0, at = 3;
    if (n < 3 + 2 + 17 + 1 + 1 || strncmp(symbol, "_ZN", 3) != 0)
        return false;
    /* Compilers may add a suffix, such as ".llvm.1234". */
    const char *suffix = strstr(symbol, "E.llvm."), *end = suffix != NULL ? suffix : symbol + n - 1;
    if (*end != 'E' || end - symbol < 22 || strncmp(end - 19, "17h", 3) != 0)
        return false;
    for (int i = 1; i <= 16; i++)
        if (hex_digit(end[-i]) < 0)
            return false;
    size_t stop = (size_t)(end - symbol) - 19;
    while (at < stop) {
        size_t length = 0;
        if (symbol[at] < '1' || symbol[at] > '9')
            return false;
        for (; symbol[at] >= '0' && symbol[at] <= '9' && length < MAX_NAME_BYTES; at++)
            length = length * 10 + (size_t)(symbol[at] - '0');
        if (length > stop - at)
            return false;
        const char *s = symbol + at, *s_end = s + length;
        at += length;
        if (used > 0) {
            if (bytes - used < 3)
                return false;
            memcpy(out + used, "::", 2);
            used += 2;
        }
        if (s_end - s >= 2 && s[0] == '_' && s[1] == '$')
            s++;
        while (s < s_end) {
            char c = *s;
            size_t c_bytes = 1, taken = 1;
            if (c == '$') {
                taken = unescape(s, (size_t)(s_end - s), &c, &c_bytes);
                if (taken == 0)
                    return false;
            } else if (c == '.' && s + 1 < s_end && s[1] == '.') {
                taken = 2; /* ".." is "::" */
                if (bytes - used < 3)
                    return false;
                out[used++] = ':';
                c = ':';
            }
            if (bytes - used < 2)
                return false;
            out[used++] = c;
            s += taken;
        }
    }
    if (used == 0 || used >= bytes)
        return false;
    out[used] = 0;
    return true;
}

/* ---- any ---- */

const char *sm_symbols_demangle(const char *symbol, struct sm_arena *arena) {
    char buf[8192];
    if (sm_demangle_rust_v0(symbol, buf, sizeof buf) ||
        sm_demangle_rust_legacy(symbol, buf, sizeof buf) ||
        sm_demangle_cpp(symbol, buf, sizeof buf) || sm_ocaml_demangle(symbol, buf, sizeof buf) > 0)
        symbol = buf;
    const char *kept = sm_arena_intern(arena, symbol, strlen(symbol));
    return kept != NULL ? kept : "";
}
