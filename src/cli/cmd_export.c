/* statmem export: what was recorded in the formats of other tools. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/analysis_input.h"
#include "cli/output.h"
#include "convert/temporary.h"
#include "export/export.h"

static const struct sm_option options[] = {
    {'t', "to", SM_ARG_CHOICE, "FORMAT", SM_EXPORT_FORMATS, "Format to write (needed)"},
    {'o', "output", SM_ARG_FILE, "FILE", NULL,
     "Write to FILE, which appears when it is complete; without it, to standard output"},
    SM_WEIGHT_OPTION("allocated; docs/exports.md tells which formats have more than one"),
    SM_KEY_OPTION,
    SM_FOLD_OPTION,
    SM_FILTER_OPTIONS_BUT_TO,
    SM_READING_OPTIONS,
    {0},
};

static int to_file(const char *path, struct sm_buffer *out) {
    struct sm_temporary file;
    struct sm_error err;
    if (sm_temporary_open(&file, path, 0666, &err) != SM_OK)
        return sm_trouble("%s", err.text);
    if (fwrite(out->data, 1, out->used, file.out) != out->used) {
        sm_temporary_discard(&file);
        return sm_trouble("%.200s: cannot be written", path);
    }
    if (sm_temporary_keep(&file, &err) != SM_OK)
        return sm_trouble("%s", err.text);
    return SM_EXIT_OK;
}

static int write_export(const struct sm_invocation *in, const struct sm_analysis_input *input,
                        enum sm_export_format format) {
    const struct sm_asked *asked = &input->asked;
    const char *path = sm_option_value(in, "output");
    bool direct = path == NULL || strcmp(path, "-") == 0;
    struct sm_export x = {.a = asked->a,
                          .selection = &asked->selection,
                          .filter_text = asked->filter_text,
                          .hidden = asked->hidden,
                          .collapsed = asked->collapsed,
                          .fold_recursion = asked->fold_recursion,
                          .key = sm_analysis_key(in),
                          .threads = asked->threads};
    uint32_t n;
    struct sm_error err;
    if (!sm_analysis_weights(in, input, "allocated", &x.weight, 1, &n))
        return SM_EXIT_USAGE;
    struct sm_buffer out;
    sm_buffer_init(&out, direct ? STDOUT_FILENO : -1);
    if (sm_export_write(&x, format, &out, &err) != SM_OK) {
        sm_buffer_release(&out);
        return sm_trouble("%s", err.text);
    }
    if (direct)
        return sm_output_end(&out);
    int code = to_file(path, &out);
    sm_buffer_release(&out);
    return code;
}

static int run(const struct sm_invocation *in) {
    const char *to = sm_option_value(in, "to"), *path = sm_option_value(in, "output");
    enum sm_export_format format;
    if (to == NULL)
        return sm_usage_error(in, "--to is missing; one of " SM_EXPORT_FORMATS);
    if (!sm_export_format_parse(&format, to))
        return sm_usage_error(in, "no format '%.60s'", to);
    if (sm_option_given(in, "weight") && !sm_export_weighs(format))
        return sm_usage_error(in, "%s has no choice of weight: leave --weight out", to);
    if (sm_export_binary(format) && path == NULL && isatty(STDOUT_FILENO))
        return sm_usage_error(in,
                              "%s is binary: give --output FILE, or --output - to write it to "
                              "the terminal all the same",
                              to);
    struct sm_analysis_input input;
    int code = sm_analysis_input_open(in, &input);
    if (code != SM_EXIT_OK)
        return code;
    code = write_export(in, &input, format);
    return sm_analysis_input_close(in, &input, false, code);
}

const struct sm_command sm_cmd_export = {
    .name = "export",
    .summary = "write a trace's figures in another tool's format",
    .usage = "--to FORMAT [OPTION]... [TRACE]",
    .description =
        "pprof: for Go's pprof and all that read its format. collapsed: stacks for flame graphs. "
        "speedscope: for speedscope.app. dhat: for valgrind's dh_view.html. massif: for ms_print "
        "and "
        "massif-visualizer. callgrind: for KCachegrind, callgrind_annotate and gprof2dot. csv, "
        "jsonl: "
        "one line per sampled block. otlp: OpenTelemetry profiles.\n\n"
        "Values are estimates, as in the reports; the total of a file is the rounded total of the "
        "weight. docs/exports.md tells what each format holds.",
    .examples =
        "statmem export --to pprof -o prog.pb.gz prog.stm && go tool pprof -top prog.pb.gz\n"
        "    Go's pprof\n"
        "statmem export --to collapsed --weight live@peak prog.stm | flamegraph.pl > peak.svg\n"
        "    what lived at the peak as a flame graph\n"
        "statmem export --to csv -f 'not collected' prog.stm\n"
        "    each sampled block that was never freed\n",
    .options = options,
    .arguments_are_files = true,
    .run = run,
};
