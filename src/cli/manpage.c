/* Man pages from the commands' tables: troff with the man macros. */
#include "cli/help.h"

/* Escapes what troff would take as its own; a dot or quote at a line's start too. */
static void roff(struct sm_buffer *out, const char *text) {
    bool line_start = true;
    for (const char *c = text; *c != 0; c++) {
        if (line_start && (*c == '.' || *c == '\''))
            sm_buffer_text(out, "\\&");
        if (*c == '\\')
            sm_buffer_text(out, "\\e");
        else if (*c == '-')
            sm_buffer_text(out, "\\-");
        else
            sm_buffer_char(out, *c);
        line_start = *c == '\n';
    }
}

static void heading(struct sm_buffer *out, const char *name) {
    sm_buffer_printf(out, ".SH %s\n", name);
}

static void paragraphs(struct sm_buffer *out, const char *text) {
    for (const char *c = text; *c != 0;) {
        const char *end = c;
        while (*end != 0 && *end != '\n')
            end++;
        struct sm_buffer line;
        sm_buffer_init(&line, -1);
        sm_buffer_bytes(&line, c, (size_t)(end - c));
        if (line.used == 0)
            sm_buffer_text(out, ".PP\n");
        else if (*c == ' ')
            sm_buffer_text(out, ".br\n");
        if (line.used > 0) {
            roff(out, sm_buffer_string(&line));
            sm_buffer_char(out, '\n');
        }
        sm_buffer_release(&line);
        c = *end == 0 ? end : end + 1;
    }
}

static void options(struct sm_buffer *out, const struct sm_option *o) {
    for (; o->long_name != NULL; o++) {
        sm_buffer_text(out, ".TP\n");
        if (o->short_name != 0)
            sm_buffer_printf(out, "\\fB\\-%c\\fR, ", o->short_name);
        sm_buffer_text(out, "\\fB\\-\\-");
        roff(out, o->long_name);
        sm_buffer_text(out, "\\fR");
        if (o->kind != SM_ARG_NONE) {
            sm_buffer_text(out, " \\fI");
            roff(out, o->argument);
            sm_buffer_text(out, "\\fR");
        }
        sm_buffer_char(out, '\n');
        roff(out, o->help);
        if (o->kind == SM_ARG_CHOICE) {
            sm_buffer_text(out, ": ");
            roff(out, o->choices);
        }
        sm_buffer_char(out, '\n');
    }
    sm_buffer_text(out, ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nShow help.\n");
}

static void exit_status(struct sm_buffer *out) {
    heading(out, "EXIT STATUS");
    sm_buffer_text(out, ".TP\n0\nDone.\n.TP\n1\nThe input or the program under study had trouble.\n"
                        ".TP\n2\nWrong usage.\n");
}

static void page_of_statmem(struct sm_buffer *out) {
    sm_buffer_text(out, ".TH STATMEM 1 \"\" \"statmem " SM_VERSION "\" \"User Commands\"\n");
    heading(out, "NAME");
    sm_buffer_text(out, "statmem \\- statistical memory profiler for OCaml programs\n");
    heading(out, "SYNOPSIS");
    sm_buffer_text(out,
                   "\\fBstatmem\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]...\n");
    heading(out, "COMMANDS");
    for (size_t i = 0; sm_commands[i] != NULL; i++) {
        sm_buffer_printf(out, ".TP\n\\fBstatmem\\-%s\\fR(1)\n", sm_commands[i]->name);
        roff(out, sm_commands[i]->summary);
        sm_buffer_char(out, '\n');
    }
    exit_status(out);
}

void sm_manpage(struct sm_buffer *out, const struct sm_command *command) {
    if (command == NULL) {
        page_of_statmem(out);
        return;
    }
    sm_buffer_printf(out, ".TH STATMEM\\-%s 1 \"\" \"statmem " SM_VERSION "\" \"User Commands\"\n",
                     command->name);
    heading(out, "NAME");
    sm_buffer_printf(out, "statmem\\-%s \\- ", command->name);
    roff(out, command->summary);
    sm_buffer_char(out, '\n');
    heading(out, "SYNOPSIS");
    sm_buffer_printf(out, "\\fBstatmem %s\\fR ", command->name);
    roff(out, command->usage);
    sm_buffer_char(out, '\n');
    if (command->description != NULL) {
        heading(out, "DESCRIPTION");
        paragraphs(out, command->description);
    }
    heading(out, "OPTIONS");
    options(out, command->options);
    if (command->examples != NULL) {
        heading(out, "EXAMPLES");
        sm_buffer_text(out, ".nf\n");
        roff(out, command->examples);
        sm_buffer_text(out, ".fi\n");
    }
    exit_status(out);
    heading(out, "SEE ALSO");
    sm_buffer_text(out, "\\fBstatmem\\fR(1)\n");
}
