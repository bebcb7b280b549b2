/* Errors of hosted code: text in the caller's buffer, untouched on success. Only the command line
   prints and exits. */
#ifndef SM_UTIL_ERROR_H
#define SM_UTIL_ERROR_H

struct sm_error {
    char text[512];
};

/* Sets one line: what, where, what to do. Cut, never overflowing. */
void sm_error_set(struct sm_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
