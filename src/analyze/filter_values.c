/* Numbers, sizes, durations and times of filters: out of words and back into canonical words.

   All arithmetic is in integers, so that every implementation of the language agrees: a decimal number
   is a mantissa below 10^19 and a count of decimals, and the product with its unit is rounded half up. The
   canonical form uses the largest unit that divides the value, hence never a decimal point. */
#include <inttypes.h>
#include <string.h>

#include "analyze/filter_internal.h"
#include "format/wire.h"

#define MAX_DIGITS 19
#define DAY_NS (86400 * INT64_C(1000000000))

struct unit {
    const char *name;
    uint64_t factor;
    bool alias; /* read, not printed */
};

/* From large to small: the order in which the printer tries them. */
static const struct unit size_units[] = {
    {"TB", 1000000000000, false}, {"GB", 1000000000, false},  {"MB", 1000000, false},
    {"kB", 1000, false},          {"TiB", 1ull << 40, false}, {"GiB", 1ull << 30, false},
    {"MiB", 1ull << 20, false},   {"KiB", 1ull << 10, false}, {"B", 1, false},
};
static const struct unit time_units[] = {
    {"d", 86400000000000, false}, {"h", 3600000000000, false},
    {"m", 60000000000, false},    {"min", 60000000000, true},
    {"s", 1000000000, false},     {"ms", 1000000, false},
    {"us", 1000, false},          {"ns", 1, false},
};
#define N_UNITS(units) (sizeof(units) / sizeof *(units))

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool same_word(const char *text, size_t bytes, const char *word, bool any_case) {
    if (bytes != strlen(word))
        return false;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] != word[i] && !(any_case && lower(text[i]) == lower(word[i])))
            return false;
    }
    return true;
}

/* A decimal number at the start of text: its mantissa and power of ten; the bytes used, 0 = none. */
static size_t get_decimal(const char *text, size_t bytes, uint64_t *mantissa, uint64_t *divisor) {
    size_t i = 0;
    unsigned digits = 0;
    bool point = false;
    *mantissa = 0;
    *divisor = 1;
    for (; i < bytes; i++) {
        if (text[i] == '.' && !point && i > 0 && i + 1 < bytes && is_digit(text[i + 1])) {
            point = true;
            continue;
        }
        if (!is_digit(text[i]))
            break;
        if (++digits > MAX_DIGITS)
            return 0;
        *mantissa = *mantissa * 10 + (uint64_t)(text[i] - '0');
        if (point)
            *divisor *= 10;
    }
    return digits == 0 ? 0 : i;
}

/* mantissa / divisor * factor, rounded half up; false beyond INT64_MAX. */
static bool scale(uint64_t mantissa, uint64_t divisor, uint64_t factor, uint64_t *x) {
    unsigned __int128 value = ((unsigned __int128)mantissa * factor + divisor / 2) / divisor;
    if (value > INT64_MAX)
        return false;
    *x = (uint64_t)value;
    return true;
}

static bool get_with_unit(const char *text, size_t bytes, const struct unit *units, size_t n_units,
                          bool any_case, uint64_t *x) {
    uint64_t mantissa, divisor;
    size_t used = get_decimal(text, bytes, &mantissa, &divisor);
    if (used == 0)
        return false;
    for (size_t i = 0; i < n_units; i++) {
        if (same_word(text + used, bytes - used, units[i].name, any_case))
            return scale(mantissa, divisor, units[i].factor, x);
    }
    return false;
}

static void put_with_unit(struct sm_buffer *out, uint64_t x, const struct unit *units,
                          size_t n_units) {
    for (size_t i = 0; i < n_units; i++) {
        if (!units[i].alias && x % units[i].factor == 0) {
            sm_buffer_u64(out, x / units[i].factor);
            sm_buffer_text(out, units[i].name);
            return;
        }
    }
}

bool sm_filter_count_get(const char *text, size_t bytes, uint64_t *n) {
    uint64_t mantissa, divisor;
    if (get_decimal(text, bytes, &mantissa, &divisor) != bytes || divisor != 1 || bytes == 0 ||
        mantissa > INT64_MAX)
        return false;
    *n = mantissa;
    return true;
}

bool sm_filter_size_get(const char *text, size_t bytes, struct sm_filter_number *size) {
    static const struct unit word = {"w", 1, false};
    size->words = get_with_unit(text, bytes, &word, 1, true, &size->n);
    return size->words ||
           get_with_unit(text, bytes, size_units, N_UNITS(size_units), true, &size->n);
}

bool sm_filter_duration_get(const char *text, size_t bytes, uint64_t *ns) {
    return get_with_unit(text, bytes, time_units, N_UNITS(time_units), false, ns);
}

void sm_filter_size_put(struct sm_buffer *out, const struct sm_filter_number *size) {
    if (size->words || size->n == 0) {
        sm_buffer_u64(out, size->n);
        sm_buffer_char(out, size->words ? 'w' : 'B');
        return;
    }
    put_with_unit(out, size->n, size_units, N_UNITS(size_units));
}

void sm_filter_duration_put(struct sm_buffer *out, uint64_t ns) {
    if (ns == 0)
        sm_buffer_text(out, "0s");
    else
        put_with_unit(out, ns, time_units, N_UNITS(time_units));
}

/* ---- the calendar (proleptic Gregorian; years 1970 to 2261, whose ns fit 63 bits) ---- */

static unsigned days_of_month(unsigned year, unsigned month) {
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && leap ? 29 : days[month - 1];
}

static int64_t days_before_year(unsigned year) {
    unsigned y = year - 1;
    return (int64_t)y * 365 + y / 4 - y / 100 + y / 400 - 719162; /* days up to 1970-01-01 */
}

/* Exactly n digits at *p; moves *p. False and unmoved otherwise. */
static bool get_digits(const char **p, const char *end, unsigned n, unsigned *x) {
    if ((size_t)(end - *p) < n)
        return false;
    unsigned value = 0;
    for (unsigned i = 0; i < n; i++) {
        if (!is_digit((*p)[i]))
            return false;
        value = value * 10 + (unsigned)((*p)[i] - '0');
    }
    *x = value;
    *p += n;
    return true;
}

static bool get_char(const char **p, const char *end, char c) {
    if (*p == end || **p != c)
        return false;
    (*p)++;
    return true;
}

/* HH:MM, HH:MM:SS, HH:MM:SS.fraction (up to nine digits). */
static bool get_clock(const char **p, const char *end, int64_t *ns) {
    unsigned hours, minutes, seconds = 0;
    int64_t fraction = 0;
    if (!get_digits(p, end, 2, &hours) || !get_char(p, end, ':') ||
        !get_digits(p, end, 2, &minutes))
        return false;
    if (get_char(p, end, ':')) {
        if (!get_digits(p, end, 2, &seconds))
            return false;
        if (get_char(p, end, '.')) {
            int64_t unit = 100000000;
            unsigned digit;
            if (*p == end || !is_digit(**p))
                return false;
            for (; unit > 0 && get_digits(p, end, 1, &digit); unit /= 10)
                fraction += digit * unit;
        }
    }
    if (hours > 23 || minutes > 59 || seconds > 59)
        return false;
    *ns = ((int64_t)hours * 3600 + minutes * 60 + seconds) * 1000000000 + fraction;
    return true;
}

/* Behind the @. */
static bool get_wall_time(const char *p, const char *end, struct sm_filter_time *time) {
    unsigned year, month, day, hours, minutes;
    int64_t ns = 0;
    if (end - p < 5 || p[4] != '-') {
        if (!get_clock(&p, end, &ns))
            return false;
        *time = (struct sm_filter_time){SM_FROM_MIDNIGHT, ns};
        get_char(&p, end, 'Z');
        return p == end;
    }
    if (!get_digits(&p, end, 4, &year) || !get_char(&p, end, '-') ||
        !get_digits(&p, end, 2, &month) || !get_char(&p, end, '-') ||
        !get_digits(&p, end, 2, &day) || year < 1970 || year > 2261 || month < 1 || month > 12 ||
        day < 1 || day > days_of_month(year, month))
        return false;
    int64_t days = days_before_year(year) + day - 1;
    for (unsigned m = 1; m < month; m++)
        days += days_of_month(year, m);
    if (get_char(&p, end, 'T') && !get_clock(&p, end, &ns))
        return false;
    ns += days * DAY_NS;
    if (!get_char(&p, end, 'Z') && p != end) {
        int64_t east = *p == '+' ? 1 : -1;
        if ((*p != '+' && *p != '-') || (p++, !get_digits(&p, end, 2, &hours)) ||
            !get_char(&p, end, ':') || !get_digits(&p, end, 2, &minutes) || hours > 23 ||
            minutes > 59)
            return false;
        ns -= east * ((int64_t)hours * 60 + minutes) * 60 * 1000000000;
    }
    *time = (struct sm_filter_time){SM_FROM_EPOCH, ns};
    return p == end && ns >= 0;
}

static void put_clock(struct sm_buffer *out, int64_t ns) {
    int64_t s = ns / 1000000000;
    sm_buffer_printf(out, "%02d:%02d:%02d", (int)(s / 3600), (int)(s / 60 % 60), (int)(s % 60));
    int64_t fraction = ns % 1000000000;
    if (fraction == 0)
        return;
    unsigned digits = 9;
    for (; fraction % 10 == 0; digits--)
        fraction /= 10;
    sm_buffer_printf(out, ".%0*" PRId64, (int)digits, fraction);
}

static void put_date(struct sm_buffer *out, int64_t days) {
    unsigned year = 1970, month = 1;
    while (days_before_year(year + 1) <= days)
        year++;
    days -= days_before_year(year);
    for (; days >= days_of_month(year, month); month++)
        days -= days_of_month(year, month);
    sm_buffer_printf(out, "%04u-%02u-%02u", year, month, (unsigned)days + 1);
}

/* ---- times ---- */

static const struct {
    const char *name;
    enum sm_filter_anchor anchor;
} anchors[] = {{"start", SM_FROM_START}, {"end", SM_FROM_END}, {"peak", SM_FROM_PEAK}};

/* Index of the anchor at the start of text when nothing but an offset follows; -1 = none. */
static int anchor_of(const char *text, size_t bytes) {
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(anchors[i].name);
        if (bytes >= n && memcmp(text, anchors[i].name, n) == 0 &&
            (bytes == n || text[n] == '+' || text[n] == '-'))
            return i;
    }
    return -1;
}

bool sm_filter_looks_like_time(const char *text, size_t bytes) {
    return bytes > 0 && (is_digit(text[0]) || text[0] == '@' || anchor_of(text, bytes) >= 0);
}

bool sm_filter_time_get(const char *text, size_t bytes, struct sm_filter_time *time) {
    uint64_t ns = 0, mantissa, divisor;
    if (bytes == 0)
        return false;
    if (text[0] == '@')
        return get_wall_time(text + 1, text + bytes, time);
    if (text[bytes - 1] == '%') {
        if (get_decimal(text, bytes - 1, &mantissa, &divisor) != bytes - 1 || bytes == 1 ||
            !scale(mantissa, divisor, 1000000, &ns) || ns > 100000000)
            return false;
        *time = (struct sm_filter_time){SM_FROM_PERCENT, (int64_t)ns};
        return true;
    }
    int anchor = anchor_of(text, bytes);
    if (anchor < 0) {
        if (!sm_filter_duration_get(text, bytes, &ns))
            return false;
        *time = (struct sm_filter_time){SM_FROM_START, (int64_t)ns};
        return true;
    }
    size_t n = strlen(anchors[anchor].name);
    if (bytes > n && !sm_filter_duration_get(text + n + 1, bytes - n - 1, &ns))
        return false;
    *time = (struct sm_filter_time){anchors[anchor].anchor,
                                    bytes > n && text[n] == '-' ? -(int64_t)ns : (int64_t)ns};
    return time->anchor != SM_FROM_START || time->offset >= 0;
}

void sm_filter_time_put(struct sm_buffer *out, const struct sm_filter_time *time) {
    int64_t x = time->offset;
    switch (time->anchor) {
    case SM_FROM_START:
        sm_filter_duration_put(out, (uint64_t)x);
        break;
    case SM_FROM_END:
    case SM_FROM_PEAK:
        sm_buffer_text(out, time->anchor == SM_FROM_END ? "end" : "peak");
        if (x != 0) {
            sm_buffer_char(out, x < 0 ? '-' : '+');
            sm_filter_duration_put(out, x < 0 ? -(uint64_t)x : (uint64_t)x);
        }
        break;
    case SM_FROM_PERCENT: {
        int64_t fraction = x % 1000000;
        unsigned digits = 6;
        sm_buffer_u64(out, (uint64_t)x / 1000000);
        for (; fraction != 0 && fraction % 10 == 0; digits--)
            fraction /= 10;
        if (fraction != 0)
            sm_buffer_printf(out, ".%0*" PRId64, (int)digits, fraction);
        sm_buffer_char(out, '%');
        break;
    }
    case SM_FROM_EPOCH:
        sm_buffer_char(out, '@');
        put_date(out, x / DAY_NS);
        sm_buffer_char(out, 'T');
        put_clock(out, x % DAY_NS);
        sm_buffer_char(out, 'Z');
        break;
    case SM_FROM_MIDNIGHT:
        sm_buffer_char(out, '@');
        put_clock(out, x);
        break;
    }
}

/* ---- sources ---- */

/* Bits as SM_FILTER_HEAP and SM_FILTER_ORIGIN number them. The names are those of reports. */
static const char *const source_names[] = {
    [SM_HEAP_MINOR] = "minor",
    [SM_HEAP_MAJOR] = "major",
    [SM_HEAP_EXTERNAL] = "external",
    [SM_HEAP_NATIVE] = "native",
    [8 + SM_ORIGIN_NORMAL] = "normal",
    [8 + SM_ORIGIN_MARSHAL] = "marshal",
    [8 + SM_ORIGIN_CUSTOM] = "custom",
    [8 + SM_ORIGIN_MAPPED] = "mapped",
    [8 + SM_ORIGIN_REPORTED] = "reported",
    [8 + SM_ORIGIN_OCAML_HEAP] = "ocaml-heap",
    [8 + SM_ORIGIN_MINOR_HEAP] = "minor-heap",
    [8 + SM_ORIGIN_OCAML_STACK] = "ocaml-stack",
    [8 + SM_ORIGIN_RUNTIME] = "runtime",
};

const char *sm_filter_source_name(unsigned index) {
    return index < sizeof source_names / sizeof *source_names ? source_names[index] : NULL;
}

bool sm_filter_source_get(const char *text, size_t bytes, uint32_t *bit) {
    for (unsigned i = 0; i < sizeof source_names / sizeof *source_names; i++) {
        if (source_names[i] != NULL && same_word(text, bytes, source_names[i], false)) {
            *bit = 1u << i;
            return true;
        }
    }
    return false;
}
