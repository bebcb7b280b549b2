/* Help texts from the commands' tables. */
#include "cli/help.h"

#include <string.h>

#include "cli/options.h"

const struct sm_command *sm_find_command(const char *name) {
    for (size_t i = 0; sm_commands[i] != NULL; i++) {
        if (strcmp(sm_commands[i]->name, name) == 0)
            return sm_commands[i];
    }
    return NULL;
}

/* Words of `text` between `indent` and `width`; the first line begins at column `column`, which has
   been written already. Line breaks of the text are kept; lines that begin with a blank are not
   wrapped. */
static void wrap(struct sm_buffer *out, const char *text, unsigned indent, unsigned column,
                 unsigned width) {
    bool line_start = column == indent;
    while (*text != 0) {
        if (*text == '\n') {
            sm_buffer_char(out, '\n');
            column = 0;
            text++;
            line_start = true;
            if (*text != '\n' && *text != 0) {
                sm_buffer_fill(out, ' ', indent);
                column = indent;
            }
            continue;
        }
        bool verbatim = line_start && *text == ' ';
        size_t length = verbatim ? strcspn(text, "\n") : strcspn(text, " \n");
        if (!line_start && column + 1 + length > width) {
            sm_buffer_char(out, '\n');
            sm_buffer_fill(out, ' ', indent);
            column = indent;
            line_start = true;
        }
        if (!line_start) {
            sm_buffer_char(out, ' ');
            column++;
        }
        sm_buffer_bytes(out, text, length);
        column += (unsigned)length;
        text += length;
        while (*text == ' ')
            text++;
        line_start = false;
    }
    sm_buffer_char(out, '\n');
}

void sm_help_overview(struct sm_buffer *out, unsigned width) {
    sm_buffer_text(out, "statmem: a statistical memory profiler for OCaml programs\n\n"
                        "Usage: statmem COMMAND [OPTION]... [ARGUMENT]...\n\nCommands:\n");
    for (size_t i = 0; sm_commands[i] != NULL; i++) {
        sm_buffer_printf(out, "  %-10s ", sm_commands[i]->name);
        wrap(out, sm_commands[i]->summary, 13, 13, width);
    }
    sm_buffer_text(out, "  help       show this, or a command's help\n\n"
                        "Options:\n"
                        "  -h, --help     show this\n"
                        "  -V, --version  show the version\n\n"
                        "'statmem COMMAND --help' tells about a command.\n");
}

static void option_head(struct sm_buffer *out, const struct sm_option *o) {
    if (o->short_name != 0)
        sm_buffer_printf(out, "-%c, ", o->short_name);
    else
        sm_buffer_text(out, "    ");
    sm_buffer_printf(out, "--%s", o->long_name);
    if (o->kind != SM_ARG_NONE)
        sm_buffer_printf(out, " %s", o->argument);
}

static void help_option(struct sm_buffer *out, const struct sm_option *o, unsigned width) {
    struct sm_buffer head;
    sm_buffer_init(&head, -1);
    option_head(&head, o);
    unsigned column = 2 + (unsigned)head.used;
    sm_buffer_printf(out, "  %s", sm_buffer_string(&head));
    sm_buffer_release(&head);
    if (column > 26) {
        sm_buffer_char(out, '\n');
        column = 0;
    }
    sm_buffer_fill(out, ' ', 28 - column);
    if (o->kind == SM_ARG_CHOICE) {
        struct sm_buffer text;
        sm_buffer_init(&text, -1);
        sm_buffer_printf(&text, "%s: ", o->help);
        for (const char *c = o->choices; *c != 0; c++) {
            if (*c == '|')
                sm_buffer_text(&text, ", ");
            else
                sm_buffer_char(&text, *c);
        }
        wrap(out, sm_buffer_string(&text), 28, 28, width);
        sm_buffer_release(&text);
    } else {
        wrap(out, o->help, 28, 28, width);
    }
}

void sm_help_command(struct sm_buffer *out, const struct sm_command *command, unsigned width) {
    sm_buffer_printf(out, "statmem %s: %s\n\nUsage: statmem %s %s\n", command->name,
                     command->summary, command->name, command->usage);
    if (command->description != NULL) {
        sm_buffer_char(out, '\n');
        wrap(out, command->description, 0, 0, width);
    }
    sm_buffer_text(out, "\nOptions:\n");
    for (const struct sm_option *o = command->options; o->long_name != NULL; o++)
        help_option(out, o, width);
    sm_buffer_text(out, "  -h, --help                show this\n");
    if (command->examples != NULL) {
        sm_buffer_text(out, "\nExamples:\n  ");
        for (const char *c = command->examples; *c != 0; c++) {
            sm_buffer_char(out, *c);
            if (*c == '\n' && c[1] != 0)
                sm_buffer_text(out, "  ");
        }
    }
}
