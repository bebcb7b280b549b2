/* statmem query and the commands that ask a question of its kind: sizes, lifetimes, temporary, peak, domains. */
#include <string.h>
#include <unistd.h>

#include "cli/analysis_input.h"
#include "cli/output.h"
#include "report/query.h"

struct question {
    const char *by, *weights;
    bool by_value, bars;
};

static int answer(const struct sm_invocation *in, const struct sm_analysis_input *input,
                  const struct question *question) {
    struct sm_weight weights[SM_MAX_WEIGHTS];
    uint32_t n;
    struct sm_query q;
    struct sm_error err;
    if (!sm_analysis_weights(in, input, question->weights, weights, SM_MAX_WEIGHTS, &n))
        return SM_EXIT_USAGE;
    if (!sm_query_make(&q, &input->asked, question->by, weights, n, question->by_value, &err)) {
        sm_query_release(&q);
        return sm_usage_error(in, "--by: %s", err.text);
    }
    q.bars = question->bars && n == 1;
    struct sm_buffer out;
    sm_buffer_init(&out, STDOUT_FILENO);
    if (sm_option_given(in, "json"))
        sm_query_json(&out, &q);
    else if (sm_option_given(in, "csv"))
        sm_query_csv(&out, &q);
    else
        sm_query_print(&out, &q);
    sm_query_release(&q);
    return sm_output_end(&out);
}

static int ask(const struct sm_invocation *in, const struct question *question) {
    struct sm_analysis_input input;
    int code = sm_analysis_input_open(in, &input);
    if (code != SM_EXIT_OK)
        return code;
    code = answer(in, &input, question);
    return sm_analysis_input_close(in, &input, false, code);
}

/* ---- query ---- */

static const struct sm_option query_options[] = {
    {'b', "by", SM_ARG_TEXT, "WHAT", NULL,
     "Group by: function, line, frame, file, module (of the allocation site), stack, domain, "
     "thread, heap, source, size, lifetime, time, promoted; up to 4, commas between (function)"},
    SM_WEIGHT_OPTION("allocated; up to 4, commas between"),
    {'s', "sort", SM_ARG_CHOICE, "ORDER", "weight|value", "Order of rows (weight)"},
    SM_TOP_OPTION,
    SM_FOLD_OPTION,
    SM_JSON_OPTION,
    SM_CSV_OPTION,
    SM_ANALYSIS_OPTIONS,
    {0},
};

static int run_query(const struct sm_invocation *in) {
    const char *by = sm_option_value(in, "by"), *sort = sm_option_value(in, "sort");
    struct question q = {.by = by != NULL ? by : "function",
                         .weights = "allocated",
                         .by_value = sort != NULL && strcmp(sort, "value") == 0};
    return ask(in, &q);
}

const struct sm_command sm_cmd_query = {
    .name = "query",
    .summary = "group allocations by anything and weigh them",
    .usage = "[OPTION]... [TRACE]",
    .description = "Every allocation that the filter lets through falls into one group; each "
                   "weight is summed over each "
                   "group. All sums are exact sums of samples; what they stand for is estimated, "
                   "with its 95 % interval.",
    .examples = "statmem query --by domain,function --weight live@end prog.stm\n"
                "    who keeps what, by domain\n"
                "statmem query --by size,promoted --weight allocated,objects prog.stm\n"
                "    sizes of what survives a minor collection and of what does not\n"
                "statmem query --by time --sort value --weight allocated --csv prog.stm\n"
                "    the allocation rate as a table\n",
    .options = query_options,
    .arguments_are_files = true,
    .run = run_query,
};

/* ---- sizes, lifetimes ---- */

static const struct sm_option histogram_options[] = {
    SM_WEIGHT_OPTION("allocated"), SM_TOP_OPTION, SM_JSON_OPTION, SM_CSV_OPTION,
    SM_ANALYSIS_OPTIONS,           {0},
};

static int run_sizes(const struct sm_invocation *in) {
    return ask(in, &(struct question){
                       .by = "size", .weights = "allocated", .by_value = true, .bars = true});
}

const struct sm_command sm_cmd_sizes = {
    .name = "sizes",
    .summary = "show how large blocks are",
    .usage = "[OPTION]... [TRACE]",
    .description = "A histogram of block sizes, headers not counted, in steps of powers of two.",
    .examples = "statmem sizes --weight objects prog.stm\n"
                "    how many blocks of each size\n"
                "statmem sizes --weight live@end -f 'inside \"Cache.add\"' prog.stm\n"
                "    sizes of what the cache keeps\n",
    .options = histogram_options,
    .arguments_are_files = true,
    .run = run_sizes,
};

static int run_lifetimes(const struct sm_invocation *in) {
    return ask(in, &(struct question){
                       .by = "lifetime", .weights = "allocated", .by_value = true, .bars = true});
}

const struct sm_command sm_cmd_lifetimes = {
    .name = "lifetimes",
    .summary = "show how long blocks live",
    .usage = "[OPTION]... [TRACE]",
    .description = "A histogram of the time from allocation to the moment when the collector "
                   "noticed that the block was "
                   "dead, in logarithmic steps. What was not seen to die is the last row.",
    .examples = "statmem lifetimes prog.stm\n"
                "    how long what was allocated lived\n"
                "statmem lifetimes -f promoted prog.stm\n"
                "    the same of what reached the major heap\n",
    .options = histogram_options,
    .arguments_are_files = true,
    .run = run_lifetimes,
};

/* ---- temporary, peak ---- */

static const struct sm_option place_options[] = {
    {'b', "by", SM_ARG_TEXT, "WHAT", NULL, "Group by, as in `statmem query` (function)"},
    SM_WEIGHT_OPTION("see below"),
    SM_TOP_OPTION,
    SM_FOLD_OPTION,
    SM_JSON_OPTION,
    SM_CSV_OPTION,
    SM_ANALYSIS_OPTIONS,
    {0},
};

static int run_place(const struct sm_invocation *in, const char *weights) {
    const char *by = sm_option_value(in, "by");
    return ask(in, &(struct question){.by = by != NULL ? by : "function", .weights = weights});
}

static int run_temporary(const struct sm_invocation *in) {
    return run_place(in, "temporary,allocated");
}

const struct sm_command sm_cmd_temporary = {
    .name = "temporary",
    .summary = "show what is allocated and dropped at once",
    .usage = "[OPTION]... [TRACE]",
    .description =
        "Sites whose blocks died before 1 MB more was allocated, beside all that they allocated. "
        "--weight 'temporary<10ms,allocated' and the like set another limit: a time, a size, or a "
        "number of samples (100allocs). The collector notices a death only when it runs: a limit "
        "below "
        "the size of the minor heap finds little in OCaml programs.",
    .examples = "statmem temporary prog.stm\n"
                "    who makes garbage\n"
                "statmem temporary -w 'temporary<4MB,allocated' --by line prog.stm\n"
                "    the same with a larger limit, by line\n",
    .options = place_options,
    .arguments_are_files = true,
    .run = run_temporary,
};

static int run_peak(const struct sm_invocation *in) {
    return run_place(in, "live@peak");
}

const struct sm_command sm_cmd_peak = {
    .name = "peak",
    .summary = "show what lived when memory was at its largest",
    .usage = "[OPTION]... [TRACE]",
    .description = "The peak is exact: the moment, in the order of all domains' events, at which "
                   "the sum of what "
                   "was alive was largest. With a filter the rows are what of it lived at the peak "
                   "of the whole; "
                   "--weight live@own-peak takes the filtered set's own peak instead.",
    .examples = "statmem peak prog.stm\n"
                "    what the memory was\n"
                "statmem peak --by domain,function prog.stm\n"
                "    and whose\n"
                "statmem tree --weight live@peak prog.stm\n"
                "    the same as a tree of callees\n",
    .options = place_options,
    .arguments_are_files = true,
    .run = run_peak,
};
