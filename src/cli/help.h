/* Everything that is made from the commands' tables: help, man pages, shell completion. */
#ifndef SM_CLI_HELP_H
#define SM_CLI_HELP_H

#include "cli/command.h"
#include "util/buffer.h"

const struct sm_command *sm_find_command(const char *name); /* NULL = none */

/* Text wrapped at `width` columns. */
void sm_help_overview(struct sm_buffer *out, unsigned width);
void sm_help_command(struct sm_buffer *out, const struct sm_command *command, unsigned width);

/* troff with the man macros; command NULL = the page of statmem itself. */
void sm_manpage(struct sm_buffer *out, const struct sm_command *command);

/* shell: "bash", "zsh" or "fish"; false for others. */
bool sm_completion(struct sm_buffer *out, const char *shell);

#endif
