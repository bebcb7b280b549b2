/* statmem domains: what each domain or thread does to memory. */
#include <string.h>
#include <unistd.h>

#include "cli/analysis_input.h"
#include "cli/output.h"
#include "report/domains.h"

static const struct sm_option options[] = {
    {'t', "threads", SM_ARG_NONE, NULL, NULL, "A row for each thread of each domain"},
    SM_TOP_OPTION,
    SM_JSON_OPTION,
    SM_CSV_OPTION,
    SM_ANALYSIS_OPTIONS,
    {0},
};

static int run(const struct sm_invocation *in) {
    struct sm_analysis_input input;
    int code = sm_analysis_input_open(in, &input);
    if (code != SM_EXIT_OK)
        return code;
    struct sm_domains_report r;
    struct sm_buffer out;
    sm_domains_report_make(&r, &input.asked, sm_option_given(in, "threads"));
    sm_buffer_init(&out, STDOUT_FILENO);
    if (sm_option_given(in, "json"))
        sm_domains_report_json(&out, &r);
    else if (sm_option_given(in, "csv"))
        sm_domains_report_csv(&out, &r);
    else
        sm_domains_report_print(&out, &r);
    sm_domains_report_release(&r);
    code = sm_output_end(&out);
    return sm_analysis_input_close(in, &input, false, code);
}

const struct sm_command sm_cmd_domains = {
    .name = "domains",
    .summary = "compare domains, or threads, and what they free of each other",
    .usage = "[OPTION]... [TRACE]",
    .description =
        "What each domain allocated, with its share; what of it was promoted, what lives at the "
        "end, and the domain's own peak: the most of its blocks that were alive at one time "
        "(peaks of several domains need not fall together, so they do not add up to that of the "
        "whole). Below that, what was freed by another domain than allocated it: who hands memory "
        "to whom.\n"
        "\n"
        "Narrow terminals show fewer columns; --json and --csv have all, with intervals.",
    .examples = "statmem domains prog.stm\n"
                "    is the work shared evenly\n"
                "statmem domains --threads -f 'source = external' prog.stm\n"
                "    which threads hold memory outside of the OCaml heap\n",
    .options = options,
    .arguments_are_files = true,
    .run = run,
};
