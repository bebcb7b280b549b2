/* See output.h. */
#include "cli/output.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "util/terminal.h"
#include "util/text.h"

static void complain(const char *prefix, const char *format, va_list args) {
    char line[1024];
    vsnprintf(line, sizeof line, format, args);
    struct sm_buffer safe;
    sm_buffer_init(&safe, -1);
    sm_buffer_text(&safe, prefix);
    sm_text_safe(&safe, line, strlen(line));
    sm_progress_end();
    fflush(stdout);
    fprintf(stderr, "%s\n", sm_buffer_string(&safe));
    sm_buffer_release(&safe);
}

void sm_complain(const char *format, ...) {
    va_list args;
    va_start(args, format);
    complain("", format, args);
    va_end(args);
}

int sm_trouble(const char *format, ...) {
    va_list args;
    va_start(args, format);
    complain("statmem: ", format, args);
    va_end(args);
    return SM_EXIT_TROUBLE;
}

int sm_usage_error(const struct sm_invocation *in, const char *format, ...) {
    char prefix[64];
    snprintf(prefix, sizeof prefix, "statmem %s: ", in->command->name);
    va_list args;
    va_start(args, format);
    complain(prefix, format, args);
    va_end(args);
    fprintf(stderr, "'statmem %s --help' tells how to use it.\n", in->command->name);
    return SM_EXIT_USAGE;
}

int sm_output_end(struct sm_buffer *out) {
    sm_progress_end();
    sm_buffer_flush(out);
    int error = out->error;
    sm_buffer_release(out);
    if (error == 0 || error == EPIPE)
        return SM_EXIT_OK;
    return sm_trouble("cannot write the output: %s", strerror(error));
}
