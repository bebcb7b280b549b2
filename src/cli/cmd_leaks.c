/* statmem leaks: what is alive at the end and growing; an exit status for continuous integration. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/analysis_input.h"
#include "cli/output.h"
#include "report/leaks.h"
#include "util/memory.h"
#include "util/number.h"

static const struct sm_option options[] = {
    {0, "fail-above", SM_ARG_TEXT, "SIZE", NULL,
     "Exit with 1 when surely more than SIZE is alive at the end: when the lower end of the "
     "interval is above it"},
    {0, "suppress", SM_ARG_FILE, "FILE", NULL,
     "Leave out sites that contain, or match as a glob, a line of FILE; # begins a comment"},
    {0, "generations", SM_ARG_NUMBER, "N", NULL, "Cut the run into N spans, 3 to 64 (20)"},
    SM_KEY_OPTION,
    SM_TOP_OPTION,
    SM_JSON_OPTION,
    SM_CSV_OPTION,
    SM_ANALYSIS_OPTIONS,
    {0},
};

#define MAX_SUPPRESS_BYTES (1 << 20)

/* The whole file, or NULL with the trouble told. */
static char *read_patterns(const char *path) {
    struct sm_buffer b;
    sm_buffer_init(&b, -1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = -1;
    while (fd >= 0 && b.used < MAX_SUPPRESS_BYTES) {
        n = read(fd, sm_buffer_room(&b, 4096), 4096);
        if (n <= 0)
            break;
        b.used += (size_t)n;
    }
    if (n != 0)
        sm_trouble("cannot read %.300s: %s", path, n > 0 ? "larger than 1 MiB" : strerror(errno));
    if (fd >= 0)
        close(fd);
    char *text = n == 0 ? sm_strdup(sm_buffer_string(&b)) : NULL;
    sm_buffer_release(&b);
    return text;
}

static int report(const struct sm_invocation *in, const struct sm_asked *asked,
                  const char *suppress, uint64_t generations, bool judged, uint64_t limit) {
    struct sm_leaks_report r;
    struct sm_buffer out;
    sm_leaks_report_make(&r, asked, sm_analysis_key(in), (uint32_t)generations, suppress);
    sm_buffer_init(&out, STDOUT_FILENO);
    if (sm_option_given(in, "json"))
        sm_leaks_report_json(&out, &r);
    else if (sm_option_given(in, "csv"))
        sm_leaks_report_csv(&out, &r);
    else
        sm_leaks_report_print(&out, &r);
    int code = sm_output_end(&out);
    struct sm_estimate e = sm_sum_estimate(asked->a, &r.total);
    if (judged && e.low > (double)limit) {
        char a[SM_NUMBER_BYTES], b[SM_NUMBER_BYTES];
        code =
            sm_trouble("%s or more (95 %%) is alive at the end; --fail-above allows %s",
                       sm_number_bytes(a, e.low, false), sm_number_bytes(b, (double)limit, false));
    }
    sm_leaks_report_release(&r);
    return code;
}

static int run(const struct sm_invocation *in) {
    struct sm_analysis_input input;
    uint64_t limit = 0, generations = 0;
    const char *fail_above = sm_option_value(in, "fail-above");
    const char *suppress_path = sm_option_value(in, "suppress");
    if (fail_above != NULL && !sm_parse_bytes(fail_above, 0, &limit))
        return sm_usage_error(in, "--fail-above wants a size such as 10MB, not '%.60s'",
                              fail_above);
    if (!sm_option_u64(in, "generations", &generations))
        return SM_EXIT_USAGE;
    if (sm_option_given(in, "generations") && (generations < 3 || generations > 64))
        return sm_usage_error(in, "--generations wants 3 to 64");
    char *suppress = NULL;
    if (suppress_path != NULL && (suppress = read_patterns(suppress_path)) == NULL)
        return SM_EXIT_TROUBLE;
    int code = sm_analysis_input_open(in, &input);
    if (code == SM_EXIT_OK) {
        code = report(in, &input.asked, suppress, generations, fail_above != NULL, limit);
        code = sm_analysis_input_close(in, &input, false, code);
    }
    free(suppress);
    return code;
}

const struct sm_command sm_cmd_leaks = {
    .name = "leaks",
    .summary = "show what is alive at the end and keeps growing",
    .usage = "[OPTION]... [TRACE]",
    .description =
        "Allocation sites by leak score times what lives at the end. The score is the share of the "
        "run's generations "
        "that still have a block alive (spread), times the correlation of the site's live memory "
        "with time "
        "(trend): memory that is filled once, that is replaced as it goes, or that merely waits "
        "for the collector scores low. Growth is the slope of live memory with its 95 % interval.\n"
        "\n"
        "OCaml tells of a death only when a collector notices, and of none at exit: end a program "
        "that is "
        "to be judged with Gc.full_major (), or filter by age (-f 'allocated <= end-10s').",
    .examples = "statmem leaks prog.stm\n"
                "    suspects first\n"
                "statmem leaks --fail-above 10MB --suppress known-leaks.txt prog.stm\n"
                "    for continuous integration: exit status 1 when more is alive\n",
    .options = options,
    .arguments_are_files = true,
    .run = run,
};
