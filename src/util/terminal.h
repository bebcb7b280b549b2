/* What the terminal can do. Hosted. */
#ifndef SM_UTIL_TERMINAL_H
#define SM_UTIL_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

/* Columns of the terminal behind fd; COLUMNS wins; `otherwise` when it is no terminal. Between 20 and
   1000. */
unsigned sm_terminal_width(int fd, unsigned otherwise);

/* Colours: a terminal, TERM not "dumb", NO_COLOR unset or empty. */
bool sm_terminal_colours(int fd);

/* The locale's characters are UTF-8 (by LC_ALL, LC_CTYPE, LANG as setlocale would find them). */
bool sm_terminal_utf8(void);

/* Progress on stderr, shown only on a terminal and only after half a second; erased at the end.
   One at a time. Matches sm_trace_options.progress; ctx is what is being done, e.g. "reading". */
void sm_progress(void *ctx, uint64_t done, uint64_t total);
void sm_progress_end(void);

#endif
