/* Patterns of filters and searches against names. Hosted; a compiled pattern may be used by several
   threads at once.

   Names are bytes; letters are compared as they are. Matching time is linear in the name for a
   regular expression (no back-references are allowed, sub-matches are not asked for) and at worst
   name times pattern for a glob. */
#ifndef SM_ANALYZE_MATCH_H
#define SM_ANALYZE_MATCH_H

#include <regex.h>

#include "analyze/filter.h"

#define SM_REGEX_MAX_BYTES 1000u
#define SM_REGEX_MAX_REPEATS 1000u /* product of the upper bounds of all {m,n} */

struct sm_matcher {
    enum sm_filter_match match;
    enum sm_filter_subject subject;
    const char *text; /* borrowed from the pattern */
    size_t bytes;
    regex_t regex; /* REGEX only */
};

/* POSIX extended, within the limits above, without back-references, without NUL. */
bool sm_regex_valid(const char *text, size_t bytes);

/* False when the pattern is a regular expression that is not valid. The pattern must outlive *m. */
bool sm_matcher_init(struct sm_matcher *m, const struct sm_filter_pattern *pattern);
void sm_matcher_release(struct sm_matcher *m);

/* The text against the pattern, whatever its subject. `name` is ended by NUL at name[bytes]. */
bool sm_match(const struct sm_matcher *m, const char *name, size_t bytes);

/* The same by subject. EQUAL of a file also accepts its last parts ("b.ml" for "src/b.ml"), EQUAL of a
   module also those inside ("Stdlib" for "Stdlib.List"). */
bool sm_match_file(const struct sm_matcher *m, const char *name, size_t bytes);
bool sm_match_module(const struct sm_matcher *m, const char *name, size_t bytes);

#endif
