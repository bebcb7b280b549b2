/* The rows of the command line. See command.h for how to add one. */
#include "cli/command.h"

const struct sm_command *const sm_commands[] = {
    /* One a line: */
    /* clang-format off */
    &sm_cmd_record,
    &sm_cmd_ctl,
    &sm_cmd_view,
    &sm_cmd_info,
    &sm_cmd_top,
    &sm_cmd_tree,
    &sm_cmd_flame,
    &sm_cmd_source,
    &sm_cmd_timeline,
    &sm_cmd_memory,
    &sm_cmd_peak,
    &sm_cmd_leaks,
    &sm_cmd_temporary,
    &sm_cmd_sizes,
    &sm_cmd_lifetimes,
    &sm_cmd_domains,
    &sm_cmd_query,
    &sm_cmd_diff,
    &sm_cmd_dump,
    &sm_cmd_convert,
    &sm_cmd_export,
    &sm_cmd_push,
    &sm_cmd_strip,
    &sm_cmd_subsample,
    &sm_cmd_merge,
    &sm_cmd_symbolize,
    &sm_cmd_cache,
    &sm_cmd_doctor,
    NULL,
    /* clang-format on */
};
