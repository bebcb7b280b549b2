/* What `record` does when the program has ended: closes its traces, converts them when asked, and
   tells what was recorded, or why nothing was. */
#ifndef SM_CLI_RECORD_END_H
#define SM_CLI_RECORD_END_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/answers.h"
#include "cli/launch.h"

struct sm_record_end {
    const struct sm_answers *answers;
    const struct sm_launch *launch;
    const char *program; /* path */
    bool follow;
    bool native, native_only;
    bool compress;
    bool memtrace;
    bool quiet;
    bool json;
    bool symbolize; /* name the machine code */
    bool debuginfod;
    int64_t duration_ns;
};

void sm_record_end(const struct sm_record_end *e);

#endif
