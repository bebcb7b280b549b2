/* statmem symbolize: names the machine code of a recorded trace, in place. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/trace_input.h"
#include "convert/finalise.h"
#include "symbols/name_trace.h"
#include "util/json.h"
#include "util/number.h"
#include "util/text.h"

static const struct sm_option options[] = {
    {0, "debug-dirs", SM_ARG_TEXT, "DIRS", NULL,
     "Look for debug files in these directories too, separated by colons; inside by build-id "
     "(.build-id/xx/yyyy.debug) or by the name that the object gives"},
    {0, "debuginfod", SM_ARG_NONE, NULL, NULL,
     "Ask the servers named by DEBUGINFOD_URLS for what is not on this machine"},
    {0, "debuginfod-timeout", SM_ARG_NUMBER, "S", NULL,
     "Longest wait for one file from a server, in seconds (default: 10)"},
    {0, "no-compress", SM_ARG_NONE, NULL, NULL, "Leave the trace as it was written"},
    {0, "json", SM_ARG_NONE, NULL, NULL, "Print what was named as JSON"},
    {0, "strict", SM_ARG_NONE, NULL, NULL, "Exit with 1 when any code stays without a name"},
    {0, NULL, SM_ARG_NONE, NULL, NULL, NULL},
};

static const char *source_name(enum sm_symbols_source source) {
    static const char *const names[] = {"none", "symbol table", "debug information"};
    return (unsigned)source < 3 ? names[source] : "none";
}

static void tell_json(const struct sm_naming *n, const char *path, struct sm_buffer *out) {
    struct sm_json j;
    sm_json_init(&j, out, false);
    sm_json_open(&j, NULL, '{');
    sm_json_text(&j, "trace", path);
    sm_json_u64(&j, "codes", n->n_codes);
    sm_json_u64(&j, "named", n->n_named);
    sm_json_open(&j, "objects", '[');
    for (size_t i = 0; i < n->n_objects; i++) {
        const struct sm_named_object *o = &n->objects[i];
        sm_json_open(&j, NULL, '{');
        sm_json_text(&j, "path", o->path);
        sm_json_text(&j, "build_id", o->build_id);
        sm_json_u64(&j, "codes", o->n_codes);
        sm_json_u64(&j, "named", o->n_named);
        sm_json_text(&j, "source", source_name(o->source));
        sm_json_text(&j, "why", o->why);
        sm_json_close(&j, '}');
    }
    sm_json_close(&j, ']');
    sm_json_close(&j, '}');
    sm_json_end(&j);
}

static void tell_text(const struct sm_naming *n, const char *path, struct sm_buffer *out) {
    char a[SM_NUMBER_BYTES], b[SM_NUMBER_BYTES];
    if (n->n_codes == 0) {
        sm_text_safe(out, path, strlen(path));
        sm_buffer_text(out, ": every place in it has a name already\n");
        return;
    }
    sm_text_safe(out, path, strlen(path));
    sm_buffer_printf(out, ": %s of %s places in machine code named\n",
                     sm_number_count(a, n->n_named), sm_number_count(b, n->n_codes));
    for (size_t i = 0; i < n->n_objects; i++) {
        const struct sm_named_object *o = &n->objects[i];
        const char *name = o->path[0] != 0 ? o->path : "(no object file)";
        sm_buffer_printf(out, "%10s of %-8s ", sm_number_count(a, o->n_named),
                         sm_number_count(b, o->n_codes));
        sm_text_safe(out, name, strlen(name));
        if (o->source != SM_SYMBOLS_NONE)
            sm_buffer_printf(out, " (%s)", source_name(o->source));
        sm_buffer_char(out, '\n');
        if (o->why[0] != 0) {
            sm_buffer_fill(out, ' ', 23);
            sm_text_safe(out, o->why, strlen(o->why));
            sm_buffer_char(out, '\n');
        }
    }
}

static int run(const struct sm_invocation *in) {
    struct sm_naming naming = {.options = {.debug_directories = sm_option_value(in, "debug-dirs"),
                                           .debuginfod = sm_option_given(in, "debuginfod")}};
    uint64_t seconds = 10;
    if (!sm_option_u64(in, "debuginfod-timeout", &seconds))
        return SM_EXIT_USAGE;
    if (seconds == 0 || seconds > 86400)
        return sm_usage_error(in, "--debuginfod-timeout must be from 1 to 86400 seconds");
    if (in->n_arguments > 1)
        return sm_usage_error(in, "name one trace");
    naming.options.debuginfod_seconds = (unsigned)seconds;
    const char *path = sm_trace_input_path(in);
    if (path[0] == 0) {
        struct sm_trace *trace; /* tells what is wrong */
        int code = sm_trace_input_open(in, &trace);
        return code != SM_EXIT_OK ? code : sm_trace_input_close(in, trace, true, SM_EXIT_TROUBLE);
    }
    struct sm_finalise_options closing = {.compress = !sm_option_given(in, "no-compress"),
                                          .add_names = sm_naming_add,
                                          .add_names_ctx = &naming};
    struct sm_finalise_result result;
    struct sm_error err;
    int code = SM_EXIT_OK;
    if (strcmp(path, "-") == 0)
        return sm_trouble("the names go into the file itself, which standard input has not");
    if (sm_finalise_trace(path, &closing, &result, &err) != SM_OK) {
        code = sm_trouble("%s", err.text);
    } else if (result.left_alone) {
        code = sm_trouble("%s was left as it is: %s", path, result.why);
    } else {
        struct sm_buffer out;
        sm_buffer_init(&out, STDOUT_FILENO);
        if (sm_option_given(in, "json"))
            tell_json(&naming, path, &out);
        else
            tell_text(&naming, path, &out);
        code = sm_output_end(&out);
        if (code == SM_EXIT_OK && sm_option_given(in, "strict") && naming.n_named < naming.n_codes)
            code = SM_EXIT_TROUBLE;
    }
    sm_naming_release(&naming);
    return code;
}

const struct sm_command sm_cmd_symbolize = {
    .name = "symbolize",
    .summary = "Name the machine code of a trace",
    .usage = "[OPTION]... [TRACE]",
    .description =
        "A recorded trace knows the frames of C, C++ and Rust code as offsets in object files. "
        "This "
        "command finds their functions, source places and inlined callers and writes them into the "
        "trace. `statmem record` does it when the program has ended; the command serves for traces "
        "of "
        "linked programs, when debug files came later, and on other machines.\n"
        "\n"
        "Names come from the object itself, its .gnu_debuglink, the debug directories (by "
        "build-id; "
        "/usr/lib/debug and --debug-dirs), and with --debuginfod from debuginfod's servers. An "
        "object "
        "with another build-id than the one that ran is refused. Without debug information the "
        "symbol "
        "table names functions; an address that no symbol covers stays an offset, such as "
        "libm.so.6+0x1a2b0, and can be named later.",
    .examples = "statmem symbolize prog.stm\n"
                "    with what this machine has\n"
                "statmem symbolize --debug-dirs ~/symbols --debuginfod prog.stm\n"
                "    with a directory of debug files, then the servers\n",
    .options = options,
    .arguments_are_files = true,
    .run = run,
};
