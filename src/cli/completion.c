/* Shell completion from the commands' tables. */
#include "cli/help.h"

#include <string.h>

/* In single quotes, for any of the three shells: quotes are dropped rather than escaped three ways. */
static void quoted(struct sm_buffer *out, const char *text) {
    for (const char *c = text; *c != 0; c++) {
        if (*c == '\'' || *c == '\\' || *c == '\n')
            sm_buffer_char(out, ' ');
        else
            sm_buffer_char(out, *c);
    }
}

static void words(struct sm_buffer *out, const char *choices) {
    for (const char *c = choices; *c != 0; c++)
        sm_buffer_char(out, *c == '|' ? ' ' : *c);
}

static void bash(struct sm_buffer *out) {
    sm_buffer_text(out, "# bash completion of statmem\n"
                        "_statmem() {\n"
                        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                        "    COMPREPLY=()\n"
                        "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                        "        COMPREPLY=($(compgen -W '");
    for (size_t i = 0; sm_commands[i] != NULL; i++)
        sm_buffer_printf(out, "%s ", sm_commands[i]->name);
    sm_buffer_text(out, "help --help --version' -- \"$cur\"))\n        return\n    fi\n"
                        "    case \"${COMP_WORDS[1]} $prev\" in\n");
    for (size_t i = 0; sm_commands[i] != NULL; i++) {
        const struct sm_command *c = sm_commands[i];
        for (const struct sm_option *o = c->options; o->long_name != NULL; o++) {
            if (o->kind == SM_ARG_NONE)
                continue;
            sm_buffer_printf(out, "    '%s --%s'", c->name, o->long_name);
            if (o->short_name != 0)
                sm_buffer_printf(out, "|'%s -%c'", c->name, o->short_name);
            if (o->kind == SM_ARG_CHOICE) {
                sm_buffer_text(out, ") COMPREPLY=($(compgen -W '");
                words(out, o->choices);
                sm_buffer_text(out, "' -- \"$cur\")); return;;\n");
            } else if (o->kind == SM_ARG_FILE) {
                sm_buffer_text(out, ") COMPREPLY=($(compgen -f -- \"$cur\")); return;;\n");
            } else {
                sm_buffer_text(out, ") return;;\n");
            }
        }
    }
    sm_buffer_text(
        out, "    esac\n    case \"${COMP_WORDS[1]}\" in\n    help) COMPREPLY=($(compgen -W '");
    for (size_t i = 0; sm_commands[i] != NULL; i++)
        sm_buffer_printf(out, "%s ", sm_commands[i]->name);
    sm_buffer_text(out, "' -- \"$cur\"));;\n");
    for (size_t i = 0; sm_commands[i] != NULL; i++) {
        const struct sm_command *c = sm_commands[i];
        sm_buffer_printf(out,
                         "    %s)\n        if [[ $cur == -* ]]; then\n"
                         "            COMPREPLY=($(compgen -W '",
                         c->name);
        for (const struct sm_option *o = c->options; o->long_name != NULL; o++)
            sm_buffer_printf(out, "--%s ", o->long_name);
        sm_buffer_text(out, "--help' -- \"$cur\"))\n        else\n");
        sm_buffer_printf(out, "            %s\n        fi;;\n",
                         c->arguments_are_files || c->stop_at_first_argument
                             ? "COMPREPLY=($(compgen -f -- \"$cur\"))"
                             : ":");
    }
    sm_buffer_text(out, "    esac\n}\ncomplete -o filenames -F _statmem statmem\n");
}

static void zsh(struct sm_buffer *out) {
    sm_buffer_text(out, "#compdef statmem\n_statmem() {\n    local -a commands\n    commands=(\n");
    for (size_t i = 0; sm_commands[i] != NULL; i++) {
        sm_buffer_printf(out, "        '%s:", sm_commands[i]->name);
        quoted(out, sm_commands[i]->summary);
        sm_buffer_text(out, "'\n");
    }
    sm_buffer_text(out, "        'help:show help'\n    )\n"
                        "    if (( CURRENT == 2 )); then\n"
                        "        _describe command commands\n        return\n    fi\n"
                        "    local name=$words[2]\n    shift words\n    (( CURRENT-- ))\n"
                        "    case $name in\n    help) _describe command commands;;\n");
    for (size_t i = 0; sm_commands[i] != NULL; i++) {
        const struct sm_command *c = sm_commands[i];
        sm_buffer_printf(out, "    %s) _arguments -s", c->name);
        for (const struct sm_option *o = c->options; o->long_name != NULL; o++) {
            for (int form = o->short_name != 0 ? 0 : 1; form < 2; form++) {
                sm_buffer_text(out, " \\\n        ");
                if (form == 0)
                    sm_buffer_printf(out, "'-%c%s[", o->short_name,
                                     o->kind != SM_ARG_NONE ? "+" : "");
                else
                    sm_buffer_printf(out, "'--%s%s[", o->long_name,
                                     o->kind != SM_ARG_NONE ? "=" : "");
                for (const char *t = o->help; *t != 0; t++)
                    sm_buffer_char(out, strchr("[]'\\:\n", *t) ? ' ' : *t);
                sm_buffer_char(out, ']');
                if (o->kind != SM_ARG_NONE)
                    sm_buffer_printf(out, ":%s:", o->argument);
                if (o->kind == SM_ARG_CHOICE) {
                    sm_buffer_char(out, '(');
                    words(out, o->choices);
                    sm_buffer_char(out, ')');
                } else if (o->kind == SM_ARG_FILE) {
                    sm_buffer_text(out, "_files");
                }
                sm_buffer_char(out, '\'');
            }
        }
        sm_buffer_text(out, " \\\n        '--help[show help]'");
        if (c->stop_at_first_argument)
            sm_buffer_text(out, " \\\n        '*::command: _normal'");
        else if (c->arguments_are_files)
            sm_buffer_text(out, " \\\n        '*:file:_files'");
        sm_buffer_text(out, ";;\n");
    }
    sm_buffer_text(out, "    esac\n}\n_statmem \"$@\"\n");
}

static void fish(struct sm_buffer *out) {
    sm_buffer_text(out, "# fish completion of statmem\n"
                        "complete -c statmem -n __fish_use_subcommand -f -a help -d 'show help'\n");
    for (size_t i = 0; sm_commands[i] != NULL; i++) {
        const struct sm_command *c = sm_commands[i];
        sm_buffer_printf(out, "complete -c statmem -n __fish_use_subcommand -f -a %s -d '",
                         c->name);
        quoted(out, c->summary);
        sm_buffer_text(out, "'\n");
        for (const struct sm_option *o = c->options; o->long_name != NULL; o++) {
            sm_buffer_printf(out, "complete -c statmem -n '__fish_seen_subcommand_from %s'",
                             c->name);
            if (o->short_name != 0)
                sm_buffer_printf(out, " -s %c", o->short_name);
            sm_buffer_printf(out, " -l %s", o->long_name);
            if (o->kind == SM_ARG_CHOICE) {
                sm_buffer_text(out, " -x -a '");
                words(out, o->choices);
                sm_buffer_char(out, '\'');
            } else if (o->kind == SM_ARG_FILE) {
                sm_buffer_text(out, " -r -F");
            } else if (o->kind != SM_ARG_NONE) {
                sm_buffer_text(out, " -x");
            }
            sm_buffer_text(out, " -d '");
            quoted(out, o->help);
            sm_buffer_text(out, "'\n");
        }
    }
}

bool sm_completion(struct sm_buffer *out, const char *shell) {
    if (strcmp(shell, "bash") == 0)
        bash(out);
    else if (strcmp(shell, "zsh") == 0)
        zsh(out);
    else if (strcmp(shell, "fish") == 0)
        fish(out);
    else
        return false;
    return true;
}
