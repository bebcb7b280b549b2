#include "util/error.h"

#include <stdarg.h>
#include <stdio.h>

void sm_error_set(struct sm_error *err, const char *format, ...) {
    if (err == NULL)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
}
