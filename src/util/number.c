/* See number.h. */
#include "util/number.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *sm_number_count(char *to, uint64_t n) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, n);
    char *p = to;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *p++ = ',';
        *p++ = digits[i];
    }
    *p = 0;
    return to;
}

/* x >= 0 with `digits` significant digits, never in exponent form. */
char *sm_number_significant(char *to, double x, unsigned digits) {
    if (!isfinite(x)) {
        snprintf(to, SM_NUMBER_BYTES, "?");
        return to;
    }
    if (x >= 1000 && x < 1e18) {
        double unit = pow(10, floor(log10(x)) + 1 - digits);
        return sm_number_count(to, (uint64_t)(unit >= 1 ? round(x / unit) * unit : round(x)));
    }
    int decimals = x > 0 ? (int)digits - 1 - (int)floor(log10(x)) : (int)digits - 1;
    if (x == 0)
        decimals = 0;
    if (decimals > 12)
        decimals = 12;
    snprintf(to, SM_NUMBER_BYTES, "%.*f", decimals < 0 ? 0 : decimals, x);
    return to;
}

char *sm_number_bytes(char *to, double bytes, bool exact) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    if (!isfinite(bytes)) {
        snprintf(to, SM_NUMBER_BYTES, "?");
        return to;
    }
    if (exact)
        return sm_number_count(to, bytes < 1.8e19 ? (uint64_t)llround(bytes) : UINT64_MAX);
    size_t unit = 0;
    double x = bytes;
    /* 999.5 would be shown as 1000. */
    while (x >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
        x /= 1000;
        unit++;
    }
    int decimals = unit == 0 || x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2;
    snprintf(to, SM_NUMBER_BYTES, "%.*f %s", decimals, x, units[unit]);
    return to;
}

char *sm_number_duration(char *to, int64_t ns) {
    const char *sign = ns < 0 ? "-" : "";
    double x = fabs((double)ns);
    static const struct {
        double ns;
        const char *name;
    } units[] = {{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}};
    if (x >= 3600e9) {
        uint64_t minutes = (uint64_t)(x / 60e9 + 0.5);
        snprintf(to, SM_NUMBER_BYTES, "%s%" PRIu64 " h %02u min", sign, minutes / 60,
                 (unsigned)(minutes % 60));
        return to;
    }
    if (x >= 99.95e9) {
        uint64_t seconds = (uint64_t)(x / 1e9 + 0.5);
        snprintf(to, SM_NUMBER_BYTES, "%s%" PRIu64 " min %02u s", sign, seconds / 60,
                 (unsigned)(seconds % 60));
        return to;
    }
    size_t unit = 0;
    while (unit < 3 && x >= 999.5 * units[unit].ns)
        unit++;
    x /= units[unit].ns;
    snprintf(to, SM_NUMBER_BYTES, "%s%.*f %s", sign,
             unit == 0 || x >= 99.95 ? 0
             : x >= 9.995            ? 1
                                     : 2,
             x, units[unit].name);
    return to;
}

char *sm_number_percent(char *to, double part, double whole) {
    double x = whole > 0 ? part / whole * 100 : NAN;
    if (!isfinite(x))
        snprintf(to, SM_NUMBER_BYTES, "-");
    else if (x > 0 && x < 0.05)
        snprintf(to, SM_NUMBER_BYTES, "<0.1%%");
    else if (x >= 99.95)
        snprintf(to, SM_NUMBER_BYTES, "%.0f%%", x);
    else
        snprintf(to, SM_NUMBER_BYTES, "%.1f%%", x);
    return to;
}

/* strtod that takes plain decimal numbers only: no sign, no hexadecimal, no inf or nan. */
static bool parse_double(const char *text, char **end, double *x) {
    if (!isdigit((unsigned char)*text) && *text != '.')
        return false;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        return false;
    errno = 0;
    *x = strtod(text, end);
    return *end != text && isfinite(*x);
}

bool sm_parse_u64(const char *text, uint64_t *x) {
    if (!isdigit((unsigned char)*text))
        return false;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *end != 0)
        return false;
    *x = value;
    return true;
}

bool sm_parse_bytes(const char *text, unsigned word_bytes, uint64_t *x) {
    char *end;
    double value;
    if (!parse_double(text, &end, &value))
        return false;
    double factor = 1;
    if ((*end == 'w' || *end == 'W') && end[1] == 0 && word_bytes > 0) {
        factor = word_bytes;
    } else if (*end != 0 && strcmp(end, "B") != 0) {
        static const char letters[] = "kmgt";
        const char *letter = strchr(letters, tolower((unsigned char)*end));
        if (letter == NULL || *letter == 0)
            return false;
        const char *rest = end + 1;
        double base = strcmp(rest, "B") == 0 ? 1000 : 1024;
        if (*rest != 0 && strcmp(rest, "B") != 0 && strcmp(rest, "iB") != 0)
            return false;
        factor = pow(base, (double)(letter - letters + 1));
    }
    value *= factor;
    if (value >= 1.8e19)
        return false;
    *x = (uint64_t)(value + 0.5);
    return true;
}

bool sm_parse_duration(const char *text, int64_t *ns) {
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"", 1e9}, {"s", 1e9},  {"ms", 1e6},   {"us", 1e3},
                 {"ns", 1}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}};
    char *end;
    double value;
    if (!parse_double(text, &end, &value))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].name) == 0 && value * units[i].ns < 9e18) {
            *ns = (int64_t)(value * units[i].ns + 0.5);
            return true;
        }
    }
    return false;
}

bool sm_parse_rate(const char *text, double *rate) {
    char *end;
    double value, divisor;
    if (!parse_double(text, &end, &value))
        return false;
    if (*end == '/') {
        if (!parse_double(end + 1, &end, &divisor) || divisor == 0)
            return false;
        value /= divisor;
    }
    if (*end != 0 || !(value > 0 && value <= 1))
        return false;
    *rate = value;
    return true;
}
