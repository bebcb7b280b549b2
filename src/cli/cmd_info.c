/* statmem info: what a trace holds. */
#include <unistd.h>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/trace_input.h"
#include "report/info.h"
#include "util/terminal.h"

static const struct sm_option options[] = {
    {'j', "json", SM_ARG_NONE, NULL, NULL, "Print JSON"},
    {'q', "quick", SM_ARG_NONE, NULL, NULL, "Show the header only, without reading the events"},
    {'b', "bytes", SM_ARG_NONE, NULL, NULL, "Show sizes in bytes rather than kB, MB, ..."},
    SM_COLOR_OPTION,
    SM_TRACE_OPTIONS,
    {0},
};

static int run(const struct sm_invocation *in) {
    struct sm_trace *trace;
    int code = sm_trace_input_open(in, &trace);
    if (code != SM_EXIT_OK)
        return code;
    struct sm_info_options o = {.quick = sm_option_given(in, "quick"),
                                .bytes = sm_option_given(in, "bytes"),
                                .colours = sm_want_colours(in),
                                .utf8 = sm_terminal_utf8(),
                                .width = sm_terminal_width(STDOUT_FILENO, 100),
                                .path = sm_trace_input_path(in)};
    struct sm_info info = {0};
    struct sm_error err;
    if (!o.quick && sm_info_collect(&info, trace, &err) != SM_OK) {
        sm_trace_free(trace);
        return sm_trouble("%s", err.text);
    }
    sm_progress_end();
    struct sm_buffer out;
    sm_buffer_init(&out, STDOUT_FILENO);
    if (sm_option_given(in, "json"))
        sm_info_json(&out, trace, o.quick ? NULL : &info, &o);
    else
        sm_info_print(&out, trace, o.quick ? NULL : &info, &o);
    code = sm_output_end(&out);
    sm_info_release(&info);
    return sm_trace_input_close(in, trace, true, code);
}

const struct sm_command sm_cmd_info = {
    .name = "info",
    .summary = "show what a trace holds: program, sampling, totals, losses",
    .usage = "[OPTION]... [TRACE]",
    .description =
        "Sizes are estimates: each stands with its 95 % interval and the number of samples behind "
        "it. "
        "A sample is one sampled word, so a large block may have several. Only at sampling rate 1 "
        "sizes are exact. Block sizes do not count headers, estimates do.\n"
        "\n"
        "Everything that was lost (cut files, damage, events the recorder had to discard) is "
        "listed; "
        "see --strict.",
    .examples = "statmem info prog.statmem\n"
                "    all about a trace\n"
                "statmem info --json old.ctf | jq .events\n"
                "    counts of events of a memtrace trace\n",
    .options = options,
    .arguments_are_files = true,
    .run = run,
};
