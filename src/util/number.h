/* Numbers as people read them. Each writes into `to` (SM_NUMBER_BYTES) and returns it. Units are
   decimal (1 kB = 1000 B), three digits are shown. Hosted. */
#ifndef SM_UTIL_NUMBER_H
#define SM_UTIL_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SM_NUMBER_BYTES 40

char *sm_number_count(char *to, uint64_t n);                      /* 1,234,567 */
char *sm_number_bytes(char *to, double bytes, bool exact);        /* 1.23 MB; exact: 1,234,567 */
char *sm_number_duration(char *to, int64_t ns);                   /* 12.3 ms, 1.23 s, 2 min 3 s */
char *sm_number_percent(char *to, double part, double whole);     /* 38.1%, <0.1%, - of nothing */
char *sm_number_significant(char *to, double x, unsigned digits); /* 0.0123, 12.3, 1,230 */

/* Parsing; the whole text must be used, else false with *x untouched.
   Bytes: 512, 64k = 64K = 64KiB = 65536, 1MB = 1000000; words may be given where `word_bytes` > 0:
   100w. Durations: 10 = 10s, 500ms, 20us, 7ns, 2m, 1h. Rates: a number in (0,1], also as 1/N. */
bool sm_parse_u64(const char *text, uint64_t *x);
bool sm_parse_bytes(const char *text, unsigned word_bytes, uint64_t *x);
bool sm_parse_duration(const char *text, int64_t *ns);
bool sm_parse_rate(const char *text, double *rate);

#endif
