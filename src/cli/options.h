/* Parsing a command line by a command's table. */
#ifndef SM_CLI_OPTIONS_H
#define SM_CLI_OPTIONS_H

#include "cli/command.h"
#include "util/error.h"

/* Number of options in a table. */
size_t sm_options_count(const struct sm_option *options);

/* Fills `in` from argv[0..argc) (what follows the command's name). Accepts --name value, --name=value,
   -x value, -xvalue, grouped flags, "--" and "-" as an argument. False with a message that names the
   nearest option when something is unknown, lacks its value or has one too many.
   --help is answered by the caller: *wants_help. */
bool sm_options_parse(struct sm_invocation *in, const struct sm_command *command, int argc,
                      char **argv, bool *wants_help, struct sm_error *err);
void sm_options_release(struct sm_invocation *in);

/* Of a list of names the one that was probably meant by `word`; NULL when none is near. */
const char *sm_nearest_name(const char *word, const char *const *names, size_t n_names);

#endif
