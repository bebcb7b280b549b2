/* Patterns of filters and searches against names. Hosted; a compiled pattern may be used by several
   threads at once.

   Names are bytes; letters are compared as they are. Matching takes at worst name times pattern. */
#ifndef SM_ANALYZE_MATCH_H
#define SM_ANALYZE_MATCH_H

#include "analyze/filter.h"
#include "analyze/regex.h"

struct sm_matcher {
    enum sm_filter_match match;
    enum sm_filter_subject subject;
    const char *text; /* borrowed from the pattern */
    size_t bytes;
    struct sm_regex *regex; /* REGEX only */
};

/* False when the pattern is a regular expression that is not valid. The pattern must outlive *m. */
bool sm_matcher_init(struct sm_matcher *m, const struct sm_filter_pattern *pattern);
void sm_matcher_release(struct sm_matcher *m);

/* The text against the pattern, whatever its subject. */
bool sm_match(const struct sm_matcher *m, const char *name, size_t bytes);

/* The same by subject. EQUAL of a file also accepts its last parts ("b.ml" for "src/b.ml"), EQUAL of a
   module also those inside ("Stdlib" for "Stdlib.List"). */
bool sm_match_file(const struct sm_matcher *m, const char *name, size_t bytes);
bool sm_match_module(const struct sm_matcher *m, const char *name, size_t bytes);

#endif
