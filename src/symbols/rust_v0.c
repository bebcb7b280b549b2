/* A recursive descent over the grammar of RFC 2603, printing as it goes. Back references go back to an earlier place
   in the symbol and may so repeat exponentially much: depth and output are limited. Crates' disambiguators, and the types of
   constants, are not printed. */
#include <stdint.h>
#include <string.h>

#include "symbols/demangle.h"

#define MAX_DEPTH 120

struct printer {
    const char *s; /* behind "_R" */
    size_t n, at;
    char *out;
    size_t bytes, used;
    unsigned depth, lifetimes; /* bound ones */
    bool quiet;                /* parse only */
    bool bad;
};

static void put_n(struct printer *p, const char *text, size_t n) {
    if (p->quiet || p->bad || n == 0 || text == NULL)
        return;
    if (n >= p->bytes - p->used) {
        p->bad = true;
        return;
    }
    memcpy(p->out + p->used, text, n);
    p->used += n;
}

static void put(struct printer *p, const char *text) {
    put_n(p, text, strlen(text));
}

static void put_u64(struct printer *p, uint64_t x) {
    char digits[20];
    size_t n = sizeof digits;
    do
        digits[--n] = (char)('0' + x % 10);
    while ((x /= 10) != 0);
    put_n(p, digits + n, sizeof digits - n);
}

static char peek(const struct printer *p) {
    return p->at < p->n && !p->bad ? p->s[p->at] : 0;
}

static char next(struct printer *p) {
    if (p->at >= p->n) {
        p->bad = true;
        return 0;
    }
    return p->s[p->at++];
}

static bool eat(struct printer *p, char c) {
    if (peek(p) != c || p->bad)
        return false;
    p->at++;
    return true;
}

/* "_" = 0, "0_" = 1, ... */
static uint64_t base_62(struct printer *p) {
    uint64_t x = 0;
    if (eat(p, '_'))
        return 0;
    for (int i = 0; i < 12; i++) { /* 11 digits hold 64 bits */
        char c = next(p);
        unsigned digit;
        if (c == '_')
            return x + 1;
        if (c >= '0' && c <= '9')
            digit = (unsigned)(c - '0');
        else if (c >= 'a' && c <= 'z')
            digit = (unsigned)(c - 'a') + 10;
        else if (c >= 'A' && c <= 'Z')
            digit = (unsigned)(c - 'A') + 36;
        else
            break;
        x = x * 62 + digit;
    }
    p->bad = true;
    return 0;
}

static uint64_t optional_base_62(struct printer *p, char tag) {
    return eat(p, tag) ? base_62(p) + 1 : 0;
}

/* ---- identifiers ---- */

struct identifier {
    const char *text;
    size_t n;
    bool punycode;
    uint64_t disambiguator;
};

static struct identifier plain_identifier(struct printer *p) {
    struct identifier id = {.punycode = eat(p, 'u')};
    size_t n = 0;
    char c = next(p);
    if (c < '0' || c > '9') {
        p->bad = true;
        return id;
    }
    n = (size_t)(c - '0');
    while (c != '0' && peek(p) >= '0' && peek(p) <= '9' && n < 100000)
        n = n * 10 + (size_t)(next(p) - '0');
    eat(p, '_');
    if (n > p->n - p->at) {
        p->bad = true;
        return id;
    }
    id.text = p->s + p->at;
    id.n = n;
    p->at += n;
    return id;
}

static struct identifier an_identifier(struct printer *p) {
    uint64_t disambiguator = optional_base_62(p, 's');
    struct identifier id = plain_identifier(p);
    id.disambiguator = disambiguator;
    return id;
}

static void put_utf8(struct printer *p, uint32_t c) {
    char b[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n; i-- > 1; c >>= 6)
        b[i] = (char)(0x80 | (c & 63));
    b[0] = (char)(lead[n] | c);
    put_n(p, b, n);
}

/* RFC 3492, with "_" in place of "-". False: print it as it stands. */
static bool put_punycode(struct printer *p, const char *s, size_t n) {
    uint32_t out[128];
    size_t n_out = 0, at = 0;
    for (size_t i = n; i-- > 0;)
        if (s[i] == '_') {
            if (i > sizeof out / sizeof out[0])
                return false;
            for (; n_out < i; n_out++)
                out[n_out] = (uint8_t)s[n_out];
            at = i + 1;
            break;
        }
    uint32_t code = 128, bias = 72;
    uint64_t i = 0;
    for (bool first = true; at < n; first = false) {
        uint64_t old = i, weight = 1;
        for (uint32_t k = 36;; k += 36) {
            if (at >= n)
                return false;
            char c = s[at++];
            uint32_t digit = c >= 'a' && c <= 'z'   ? (uint32_t)(c - 'a')
                             : c >= '0' && c <= '9' ? (uint32_t)(c - '0') + 26
                                                    : 99;
            uint32_t t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
            if (digit > 35 || weight > UINT32_MAX)
                return false;
            i += digit * weight;
            if (digit < t)
                break;
            weight *= 36 - t;
        }
        if (n_out == sizeof out / sizeof out[0] || i > UINT32_MAX)
            return false;
        uint64_t delta = first ? (i - old) / 700 : (i - old) / 2;
        uint32_t k = 0;
        n_out++;
        for (delta += delta / n_out; delta > 455; k += 36)
            delta /= 35;
        bias = k + (uint32_t)(36 * delta / (delta + 38));
        code += (uint32_t)(i / n_out);
        i %= n_out;
        if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
            return false;
        memmove(out + i + 1, out + i, (n_out - 1 - (size_t)i) * sizeof out[0]);
        out[i++] = code;
    }
    for (size_t j = 0; j < n_out; j++)
        put_utf8(p, out[j]);
    return true;
}

static void put_identifier(struct printer *p, const struct identifier *id) {
    if (!id->punycode || !put_punycode(p, id->text, id->n))
        put_n(p, id->text, id->n);
}

/* ---- paths, types, constants ---- */

static void path(struct printer *p, bool in_value);
static void type(struct printer *p);
static void constant(struct printer *p);

static bool deeper(struct printer *p) {
    if (++p->depth > MAX_DEPTH)
        p->bad = true;
    return !p->bad;
}

/* Reads at an earlier place with `read`. */
static void back_reference(struct printer *p, void (*read)(struct printer *p, bool flag),
                           bool flag) {
    size_t here = p->at - 1;
    uint64_t to = base_62(p);
    if (to >= here)
        p->bad = true;
    if (p->bad || p->quiet)
        return;
    size_t back = p->at;
    p->at = (size_t)to;
    if (deeper(p))
        read(p, flag);
    p->depth--;
    p->at = back;
}

static void lifetime(struct printer *p, uint64_t index) {
    if (index == 0) {
        put(p, "'_");
        return;
    }
    if (index > p->lifetimes) {
        p->bad = true;
        return;
    }
    uint64_t depth = p->lifetimes - index;
    char name[2] = {'\'', (char)('a' + depth)};
    if (depth < 26) {
        put_n(p, name, 2);
    } else {
        put(p, "'_");
        put_u64(p, depth);
    }
}

/* "for<'a, 'b> "; the number bound, to be unbound by the caller. */
static unsigned binder(struct printer *p) {
    uint64_t n = optional_base_62(p, 'G');
    if (n == 0)
        return 0;
    if (n > 64) {
        p->bad = true;
        return 0;
    }
    put(p, "for<");
    for (uint64_t i = 0; i < n; i++) {
        if (i > 0)
            put(p, ", ");
        p->lifetimes++;
        lifetime(p, 1);
    }
    put(p, "> ");
    return (unsigned)n;
}

static void generic_argument(struct printer *p) {
    if (eat(p, 'L'))
        lifetime(p, base_62(p));
    else if (eat(p, 'K'))
        constant(p);
    else
        type(p);
}

/* Up to "E". */
static unsigned list(struct printer *p, void (*element)(struct printer *p)) {
    unsigned n = 0;
    while (!p->bad && !eat(p, 'E')) {
        if (n++ > 0)
            put(p, ", ");
        element(p);
    }
    return n;
}

static void impl_path(struct printer *p) {
    bool quiet = p->quiet;
    optional_base_62(p, 's');
    p->quiet = true;
    path(p, false);
    p->quiet = quiet;
}

static void nested(struct printer *p, bool in_value) {
    char space = next(p);
    path(p, in_value);
    struct identifier id = an_identifier(p);
    if (space >= 'A' && space <= 'Z') {
        put(p, "::{");
        if (space == 'C')
            put(p, "closure");
        else if (space == 'S')
            put(p, "shim");
        else
            put_n(p, &space, 1);
        if (id.n > 0) {
            put(p, ":");
            put_identifier(p, &id);
        }
        put(p, "#");
        put_u64(p, id.disambiguator);
        put(p, "}");
    } else if (space >= 'a' && space <= 'z') {
        if (id.n > 0) {
            put(p, "::");
            put_identifier(p, &id);
        }
    } else {
        p->bad = true;
    }
}

static void path(struct printer *p, bool in_value) {
    if (!deeper(p))
        return;
    struct identifier id;
    switch (next(p)) {
    case 'C':
        id = an_identifier(p);
        put_identifier(p, &id);
        break;
    case 'N':
        nested(p, in_value);
        break;
    case 'M':
        impl_path(p);
        put(p, "<");
        type(p);
        put(p, ">");
        break;
    case 'X':
        impl_path(p); /* fall through */
    case 'Y':
        put(p, "<");
        type(p);
        put(p, " as ");
        path(p, false);
        put(p, ">");
        break;
    case 'I':
        path(p, in_value);
        put(p, in_value ? "::<" : "<");
        list(p, generic_argument);
        put(p, ">");
        break;
    case 'B':
        back_reference(p, path, in_value);
        break;
    default:
        p->bad = true;
    }
    p->depth--;
}

static const char *basic_type(char c) {
    static const char *const names[26] = {
        ['b' - 'a'] = "bool", ['c' - 'a'] = "char",  ['e' - 'a'] = "str",  ['u' - 'a'] = "()",
        ['a' - 'a'] = "i8",   ['s' - 'a'] = "i16",   ['l' - 'a'] = "i32",  ['x' - 'a'] = "i64",
        ['n' - 'a'] = "i128", ['i' - 'a'] = "isize", ['h' - 'a'] = "u8",   ['t' - 'a'] = "u16",
        ['m' - 'a'] = "u32",  ['y' - 'a'] = "u64",   ['o' - 'a'] = "u128", ['j' - 'a'] = "usize",
        ['f' - 'a'] = "f32",  ['d' - 'a'] = "f64",   ['z' - 'a'] = "!",    ['p' - 'a'] = "_",
        ['v' - 'a'] = "..."};
    return c >= 'a' && c <= 'z' ? names[c - 'a'] : NULL;
}

static void function_type(struct printer *p) {
    unsigned bound = binder(p);
    if (eat(p, 'U'))
        put(p, "unsafe ");
    if (eat(p, 'K')) {
        put(p, "extern \"");
        if (eat(p, 'C')) {
            put(p, "C");
        } else {
            struct identifier abi = plain_identifier(p);
            for (size_t i = 0; i < abi.n; i++)
                put_n(p, abi.text[i] == '_' ? "-" : &abi.text[i], 1);
        }
        put(p, "\" ");
    }
    put(p, "fn(");
    list(p, type);
    put(p, ")");
    if (!eat(p, 'u')) {
        put(p, " -> ");
        type(p);
    }
    p->lifetimes -= bound;
}

/* A path whose "<...>" may stay open for the associated types that follow; true when it is. */
static bool open_path(struct printer *p) {
    if (eat(p, 'B')) {
        /* Whether the earlier path has arguments of its own shows in what it prints: nothing closes it. */
        size_t here = p->at - 1;
        uint64_t to = base_62(p);
        if (to >= here || p->bad || p->quiet) {
            p->bad |= to >= here;
            return false;
        }
        size_t back = p->at;
        p->at = (size_t)to;
        bool open = deeper(p) && open_path(p);
        p->depth--;
        p->at = back;
        return open;
    }
    if (eat(p, 'I')) {
        path(p, false);
        put(p, "<");
        list(p, generic_argument);
        return true;
    }
    path(p, false);
    return false;
}

static void dyn_trait(struct printer *p) {
    bool open = open_path(p);
    while (eat(p, 'p')) {
        put(p, open ? ", " : "<");
        open = true;
        struct identifier name = plain_identifier(p);
        put_identifier(p, &name);
        put(p, " = ");
        type(p);
    }
    if (open)
        put(p, ">");
}

static void dyn_type(struct printer *p) {
    put(p, "dyn ");
    unsigned bound = binder(p);
    for (unsigned n = 0; !p->bad && !eat(p, 'E'); n++) {
        if (n > 0)
            put(p, " + ");
        dyn_trait(p);
    }
    p->lifetimes -= bound;
    if (!eat(p, 'L')) {
        p->bad = true;
        return;
    }
    uint64_t index = base_62(p);
    if (index > 0) {
        put(p, " + ");
        lifetime(p, index);
    }
}

static void type_flagged(struct printer *p, bool flag) {
    (void)flag;
    type(p);
}

static void type(struct printer *p) {
    char tag = peek(p);
    const char *basic = basic_type(tag);
    if (basic != NULL) {
        p->at++;
        put(p, basic);
        return;
    }
    if (!deeper(p))
        return;
    unsigned n;
    switch (tag) {
    case 'R':
    case 'Q':
        p->at++;
        put(p, "&");
        if (eat(p, 'L')) {
            uint64_t index = base_62(p);
            if (index > 0) {
                lifetime(p, index);
                put(p, " ");
            }
        }
        if (tag == 'Q')
            put(p, "mut ");
        type(p);
        break;
    case 'P':
    case 'O':
        p->at++;
        put(p, tag == 'P' ? "*const " : "*mut ");
        type(p);
        break;
    case 'A':
    case 'S':
        p->at++;
        put(p, "[");
        type(p);
        if (tag == 'A') {
            put(p, "; ");
            constant(p);
        }
        put(p, "]");
        break;
    case 'T':
        p->at++;
        put(p, "(");
        n = list(p, type);
        put(p, n == 1 ? ",)" : ")");
        break;
    case 'F':
        p->at++;
        function_type(p);
        break;
    case 'D':
        p->at++;
        dyn_type(p);
        break;
    case 'B':
        p->at++;
        back_reference(p, type_flagged, false);
        break;
    default:
        path(p, false);
    }
    p->depth--;
}

/* Hexadecimal digits up to "_". False when they stand for more than 64 bits: then they are in *digits. */
static bool hexadecimal(struct printer *p, uint64_t *x, const char **digits, size_t *n) {
    *digits = p->s + p->at;
    *x = 0;
    for (*n = 0; !eat(p, '_'); ++*n) {
        char c = next(p);
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            p->bad = true;
            return true;
        }
        *x = *x << 4 | (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return *n <= 16;
}

static void constant_flagged(struct printer *p, bool flag) {
    (void)flag;
    constant(p);
}

static void constant(struct printer *p) {
    uint64_t x;
    const char *digits;
    size_t n;
    char tag = next(p);
    switch (tag) {
    case 'p':
        put(p, "_");
        return;
    case 'B':
        back_reference(p, constant_flagged, false);
        return;
    case 'b':
        hexadecimal(p, &x, &digits, &n);
        p->bad |= x > 1;
        put(p, x ? "true" : "false");
        return;
    case 'c':
        if (!hexadecimal(p, &x, &digits, &n) || x > 0x10FFFF)
            p->bad = true;
        put(p, "'");
        if (!p->bad && x >= 0x20 && x != '\'' && x != '\\') {
            put_utf8(p, (uint32_t)x);
        } else {
            put(p, "\\u{");
            put_n(p, digits, n);
            put(p, "}");
        }
        put(p, "'");
        return;
    default:
        break;
    }
    if (tag == 0 || strchr("aslxnihtmyoj", tag) == NULL) {
        p->bad = true; /* structured constants are not stable */
        return;
    }
    if (eat(p, 'n'))
        put(p, "-");
    if (hexadecimal(p, &x, &digits, &n)) {
        put_u64(p, x);
    } else {
        put(p, "0x");
        put_n(p, digits, n);
    }
}

bool sm_demangle_rust_v0(const char *symbol, char *out, size_t bytes) {
    if (strncmp(symbol, "_R", 2) != 0 || bytes == 0)
        return false;
    /* Suffixes of later stages begin with "." or "$", which the grammar does not use. */
    struct printer p = {
        .s = symbol + 2, .n = strcspn(symbol + 2, ".$"), .out = out, .bytes = bytes};
    if (peek(&p) < 'A' || peek(&p) > 'Z')
        return false;
    path(&p, true);
    if (!p.bad && p.at < p.n) { /* the crate that instantiated it */
        p.quiet = true;
        path(&p, false);
    }
    if (p.bad || p.at != p.n)
        return false;
    out[p.used] = 0;
    return true;
}
