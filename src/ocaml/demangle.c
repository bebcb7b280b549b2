/* Symbols of OCaml's native code: "caml", the unit's name, a separator ("__" in 4.x, "." from 5.1 on), the
   function, "_" and a number. Characters that assemblers dislike stand as "$" and two hex digits.
   The unit's name may hold "__" itself (a library's modules), but then a capital letter follows, which
   no function begins with. */
#include <string.h>

#include "ocaml/locations.h"

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static int hex_value(char c) {
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Copies s[0..n), "$2b" read as '+', and returns the new length of `out`. */
static size_t append(char *out, size_t used, size_t bytes, const char *s, size_t n) {
    for (size_t i = 0; i < n && used + 1 < bytes; i++) {
        if (s[i] == '$' && i + 2 < n && hex_value(s[i + 1]) >= 0 && hex_value(s[i + 2]) >= 0) {
            out[used++] = (char)(hex_value(s[i + 1]) * 16 + hex_value(s[i + 2]));
            i += 2;
        } else {
            out[used++] = s[i];
        }
    }
    out[used] = 0;
    return used;
}

size_t sm_ocaml_demangle(const char *symbol, char *out, size_t bytes) {
    if (bytes == 0 || strncmp(symbol, "caml", 4) != 0 || symbol[4] < 'A' || symbol[4] > 'Z')
        return 0;
    const char *unit = symbol + 4, *function = NULL;
    const char *dot = strchr(unit, '.');
    size_t unit_bytes;
    if (dot != NULL) {
        unit_bytes = (size_t)(dot - unit);
        function = dot + 1;
    } else {
        /* The separator is the first "__" after the last one that a capital follows. */
        const char *from = unit;
        for (const char *p = unit; (p = strstr(p, "__")) != NULL; p += 2)
            if (p[2] >= 'A' && p[2] <= 'Z')
                from = p + 2;
        const char *separator = strstr(from, "__");
        if (separator == NULL)
            return 0;
        unit_bytes = (size_t)(separator - unit);
        function = separator + 2;
    }
    size_t n = strlen(function), stamp = n;
    while (stamp > 0 && is_digit(function[stamp - 1]))
        stamp--;
    if (stamp < n && stamp > 1 && function[stamp - 1] == '_')
        n = stamp - 1;
    if (n == 0)
        return 0;
    size_t used = append(out, 0, bytes, unit, unit_bytes);
    used = append(out, used, bytes, ".", 1);
    /* The compiler calls functions without a name "fun"; the runtime's debug information "(fun)". */
    if (n == 3 && memcmp(function, "fun", 3) == 0)
        return append(out, used, bytes, "(fun)", 5);
    return append(out, used, bytes, function, n);
}
