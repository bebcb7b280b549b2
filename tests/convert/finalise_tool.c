/* finalise_tool TRACE [compress] [force]: prints the result, or the error and exit status 1. */
#include <stdio.h>
#include <string.h>

#include "convert/finalise.h"

int main(int argc, char **argv) {
    struct sm_finalise_options options = {.has_exit_status = true, .exit_status = 9};
    struct sm_finalise_result r;
    struct sm_error err;
    if (argc < 2)
        return 2;
    for (int i = 2; i < argc; i++) {
        options.compress |= strcmp(argv[i], "compress") == 0;
        options.force |= strcmp(argv[i], "force") == 0;
    }
    if (sm_finalise_trace(argv[1], &options, &r, &err) != SM_OK) {
        printf("%s\n", err.text);
        return 1;
    }
    printf("{\"before\": %llu, \"after\": %llu, \"recovered\": %llu, \"torn\": %llu, "
           "\"left_alone\": %s, \"why\": \"%s\"}\n",
           (unsigned long long)r.bytes_before, (unsigned long long)r.bytes_after,
           (unsigned long long)r.events_recovered, (unsigned long long)r.torn_bytes,
           r.left_alone ? "true" : "false", r.left_alone ? r.why : "");
    return 0;
}
