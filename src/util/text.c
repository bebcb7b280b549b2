/* See text.h. */
#include "util/text.h"

uint32_t sm_utf8_get(const char *text, size_t bytes, size_t *used) {
    const unsigned char *p = (const unsigned char *)text;
    *used = 1;
    if (p[0] < 0x80)
        return p[0];
    unsigned n = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    if (p[0] < 0xC2 || p[0] > 0xF4 || bytes < n)
        return UINT32_MAX;
    uint32_t code = p[0] & (0x7Fu >> n);
    for (unsigned i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return UINT32_MAX;
        code = code << 6 | (p[i] & 0x3Fu);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < least[n] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        return UINT32_MAX;
    *used = n;
    return code;
}

static bool in_ranges(uint32_t code, const uint32_t (*ranges)[2], size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (code >= ranges[i][0] && code <= ranges[i][1])
            return true;
    }
    return false;
}

bool sm_char_hostile(uint32_t code) {
    static const uint32_t ranges[][2] = {
        {0x7F, 0x9F},     {0xAD, 0xAD},     {0x061C, 0x061C},    {0x180E, 0x180E}, {0x200B, 0x200F},
        {0x2028, 0x202E}, {0x2060, 0x206F}, {0xE000, 0xF8FF},    {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF},
        {0xFFF0, 0xFFFB}, {0xFFFE, 0xFFFF}, {0xE0000, 0x10FFFF},
    };
    return code < 0x20 || (code >= 0x7F && in_ranges(code, ranges, sizeof ranges / sizeof *ranges));
}

unsigned sm_char_columns(uint32_t code) {
    static const uint32_t combining[][2] = {
        {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A},
        {0x064B, 0x065F}, {0x0E31, 0x0E31}, {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E},
        {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x20D0, 0x20FF}, {0xFE20, 0xFE2F},
    };
    static const uint32_t wide[][2] = {
        {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF}, {0x3400, 0x4DBF},
        {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},   {0xAC00, 0xD7A3}, {0xF900, 0xFAFF},
        {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F},
        {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD},
    };
    if (code < 0x300)
        return 1;
    if (in_ranges(code, combining, sizeof combining / sizeof *combining))
        return 0;
    return in_ranges(code, wide, sizeof wide / sizeof *wide) ? 2 : 1;
}

void sm_text_safe(struct sm_buffer *out, const char *text, size_t bytes) {
    while (bytes > 0) {
        /* Most text is printable ASCII. */
        size_t plain = 0;
        while (plain < bytes && text[plain] >= 0x20 && text[plain] < 0x7F)
            plain++;
        sm_buffer_bytes(out, text, plain);
        text += plain;
        bytes -= plain;
        if (bytes == 0)
            break;
        size_t used;
        uint32_t code = sm_utf8_get(text, bytes, &used);
        if (code == UINT32_MAX)
            sm_buffer_printf(out, "\\x%02x", (unsigned char)*text);
        else if (code == '\n')
            sm_buffer_text(out, "\\n");
        else if (code == '\t')
            sm_buffer_text(out, "\\t");
        else if (code < 0x80)
            sm_buffer_printf(out, "\\x%02x", (unsigned)code);
        else if (sm_char_hostile(code))
            sm_buffer_printf(out, "<U+%04X>", (unsigned)code);
        else
            sm_buffer_bytes(out, text, used);
        text += used;
        bytes -= used;
    }
}

unsigned sm_text_columns(const char *text, size_t bytes) {
    unsigned columns = 0;
    for (size_t at = 0, used; at < bytes; at += used) {
        uint32_t code = sm_utf8_get(text + at, bytes - at, &used);
        columns += code == UINT32_MAX ? 1 : sm_char_columns(code);
    }
    return columns;
}

unsigned sm_text_shortened(struct sm_buffer *out, const char *text, size_t bytes, unsigned columns,
                           bool utf8) {
    unsigned total = sm_text_columns(text, bytes);
    if (total <= columns) {
        sm_buffer_bytes(out, text, bytes);
        return total;
    }
    unsigned ellipsis = utf8 ? 1 : 2;
    if (columns < ellipsis) {
        sm_buffer_fill(out, '.', columns);
        return columns;
    }
    /* The end of a name tells more than its beginning: it gets two thirds. */
    unsigned head = (columns - ellipsis) / 3, tail = columns - ellipsis - head, taken = 0;
    size_t at = 0, used;
    while (at < bytes) {
        unsigned c = sm_char_columns(sm_utf8_get(text + at, bytes - at, &used));
        if (taken + c > head)
            break;
        taken += c;
        at += used;
    }
    sm_buffer_bytes(out, text, at);
    sm_buffer_text(out, utf8 ? "…" : "..");
    unsigned left = total - taken;
    while (at < bytes && left > tail) {
        left -= sm_char_columns(sm_utf8_get(text + at, bytes - at, &used));
        at += used;
    }
    /* Combining marks of the last dropped character go with it. */
    while (at < bytes && sm_char_columns(sm_utf8_get(text + at, bytes - at, &used)) == 0)
        at += used;
    sm_buffer_bytes(out, text + at, bytes - at);
    return taken + ellipsis + left;
}
