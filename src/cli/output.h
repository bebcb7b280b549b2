/* Ends and complaints of commands: one place for exit codes and for text on stderr. */
#ifndef SM_CLI_OUTPUT_H
#define SM_CLI_OUTPUT_H

#include "cli/command.h"
#include "util/buffer.h"

/* Flushes and frees the buffer. A reader that has gone away is no trouble (`| head`); other write
   errors are told. Returns the exit code. */
int sm_output_end(struct sm_buffer *out);

/* True when output has failed, so that long loops can stop. */
static inline bool sm_output_gone(const struct sm_buffer *out) {
    return out->error != 0;
}

/* One line on stderr, control characters made harmless, with a line end. */
void sm_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
