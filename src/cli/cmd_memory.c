/* statmem memory: what the process' memory is made of. */
#include <unistd.h>

#include "cli/analysis_input.h"
#include "cli/output.h"
#include "report/memory.h"

static const struct sm_option options[] = {
    SM_JSON_OPTION,
    SM_CSV_OPTION,
    SM_READING_OPTIONS,
    {0},
};

static int run(const struct sm_invocation *in) {
    struct sm_analysis_input input;
    int code = sm_analysis_input_open(in, &input);
    if (code != SM_EXIT_OK)
        return code;
    struct sm_memory m;
    if (sm_memory_make(&m, &input.asked)) {
        struct sm_buffer out;
        sm_buffer_init(&out, STDOUT_FILENO);
        if (sm_option_given(in, "json"))
            sm_memory_json(&out, &m);
        else if (sm_option_given(in, "csv"))
            sm_memory_csv(&out, &m);
        else
            sm_memory_print(&out, &m);
        code = sm_output_end(&out);
    } else {
        code = sm_trouble(
            "the trace does not tell the memory of the process: it was recorded by another "
            "tool, with --counters-interval 0, or by a linked program");
    }
    sm_memory_release(&m);
    return sm_analysis_input_close(in, &input, false, code);
}

const struct sm_command sm_cmd_memory = {
    .name = "memory",
    .summary = "split the process' resident memory into parts: which one grew",
    .usage = "[OPTION]... [TRACE]",
    .description =
        "What the resident memory (RSS) is made of, at the first reading, at its peak, at the last "
        "one, "
        "and over time: files, OCaml's heap as its runtime counts it, native memory in use as the "
        "allocator counts it, memory that the allocator keeps although it is free, and what none "
        "of "
        "these explain. Then which part grew, in words.\n"
        "\n"
        "These are readings of the system, the allocator and the runtime, taken while the program "
        "ran "
        "(statmem record --counters-interval), not estimates from samples. They are taken one "
        "after the "
        "other, so that parts may miss each other by what happened in between.",
    .examples = "statmem memory prog.stm\n"
                "    is it OCaml's heap at all\n"
                "statmem memory --csv prog.stm > memory.csv\n"
                "    every reading\n",
    .options = options,
    .arguments_are_files = true,
    .run = run,
};
