/* Regular expressions that cannot run away. Hosted; a compiled expression may be used by several threads at
   once.

   The C library's regcomp takes exponential memory for "x++++++", and its regexec quadratic time for "(a|ab)*c":
   an expression out of a URL must not be able to do that. This one compiles to at most SM_REGEX_MAX_STEPS
   steps and follows all of them side by side (K. Thompson, "Regular expression search algorithm", CACM 11,
   1968), so that matching takes at most steps x bytes, whatever the expression.

   The syntax is POSIX extended, by bytes: . [a-z] [^a-z] [[:alpha:]] ( ) | * + ? {m} {m,} {m,n} ^ $, and \d \w
   \s \D \W \S; a backslash before anything but a letter or digit takes it as it is. Not allowed: what
   POSIX leaves undefined (a repetition of nothing or of a repetition, a lone brace or parenthesis), and
   back-references. */
#ifndef SM_ANALYZE_REGEX_H
#define SM_ANALYZE_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SM_REGEX_MAX_BYTES 1000u
#define SM_REGEX_MAX_STEPS 2000u
#define SM_REGEX_MAX_DEPTH 64u /* of parentheses */

struct sm_regex;

/* NULL when the expression is not well-formed or too large. */
struct sm_regex *sm_regex_new(const char *text, size_t bytes);
void sm_regex_free(struct sm_regex *r); /* NULL allowed */

/* True when some part of the text matches. */
bool sm_regex_match(const struct sm_regex *r, const char *text, size_t bytes);

#endif
