/* Text from traces shown to people. Names in a trace may hold any bytes; what reaches a terminal is
   harmless and has a known width. Hosted. */
#ifndef SM_UTIL_TEXT_H
#define SM_UTIL_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "util/buffer.h"

/* One character of UTF-8 at text[0..bytes), bytes > 0: its length in *used and its code point, or
   UINT32_MAX with *used = 1 when the bytes are no valid UTF-8 (overlong forms, surrogates included). */
uint32_t sm_utf8_get(const char *text, size_t bytes, size_t *used);

/* Columns a terminal gives to a code point: 0 combining, 2 wide, else 1. */
unsigned sm_char_columns(uint32_t code);

/* True for characters that must not reach a terminal: controls, bidirectional and invisible format
   characters, line and paragraph separators, private use, non-characters. */
bool sm_char_hostile(uint32_t code);

/* Appends `text`, hostile characters as <U+202E> or \x1b-like escapes, invalid bytes as \xNN. */
void sm_text_safe(struct sm_buffer *out, const char *text, size_t bytes);

/* Columns of a safe text (as sm_text_safe makes it). */
unsigned sm_text_columns(const char *text, size_t bytes);

/* Appends a safe text in at most `columns` columns, shortened in the middle by an ellipsis
   ("…", or ".." where not utf8) when it is longer. Returns the columns used. */
unsigned sm_text_shortened(struct sm_buffer *out, const char *text, size_t bytes, unsigned columns,
                           bool utf8);

#endif
