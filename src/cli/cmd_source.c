/* statmem source: annotated source lines. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/analysis_input.h"
#include "cli/output.h"
#include "report/source.h"
#include "util/memory.h"

static const struct sm_option options[] = {
    SM_WEIGHT_OPTION("allocated"),
    {0, "source-root", SM_ARG_FILE, "DIR", NULL,
     "Where source files are (the working directory); may be repeated"},
    {0, "context", SM_ARG_NUMBER, "N", NULL, "Show N lines around those that allocate (2)"},
    {'a', "all", SM_ARG_NONE, NULL, NULL, "Show the whole file"},
    SM_JSON_OPTION,
    SM_CSV_OPTION,
    SM_ANALYSIS_OPTIONS,
    {0},
};

#define MAX_BYTES (16 << 20)

static char *read_file(const char *path) {
    struct stat st;
    char *text = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= MAX_BYTES) {
        text = sm_alloc_zero((size_t)st.st_size + 1, 1);
        ssize_t n = read(fd, text, (size_t)st.st_size);
        text[n > 0 ? n : 0] = 0;
    }
    if (fd >= 0)
        close(fd);
    return text;
}

/* Below each root: the path as the trace has it, then without its leading directories one by one. */
static char *find_text(const struct sm_invocation *in, const char *file) {
    const char *root = sm_option_nth(in, "source-root", 0);
    for (size_t i = 0; i == 0 || root != NULL; root = sm_option_nth(in, "source-root", ++i)) {
        for (const char *at = file; at != NULL && *at != 0; at = strchr(at, '/')) {
            char *path;
            at += strspn(at, "/");
            if (asprintf(&path, "%s/%s", root != NULL ? root : ".", at) < 0)
                sm_memory_failed(0);
            char *text = read_file(path);
            free(path);
            if (text != NULL)
                return text;
        }
    }
    return NULL;
}

static int report(const struct sm_invocation *in, const struct sm_analysis_input *input,
                  const char *file) {
    struct sm_weight weight;
    struct sm_source s;
    struct sm_error err;
    struct sm_buffer out;
    uint32_t n;
    uint64_t context = 2;
    if (!sm_option_u64(in, "context", &context) ||
        !sm_analysis_weights(in, input, "allocated", &weight, 1, &n))
        return SM_EXIT_USAGE;
    if (!sm_source_make(&s, &input->asked, file, &weight, &err))
        return sm_trouble("%s", err.text);
    char *text = find_text(in, s.file);
    s.text = text;
    s.context = sm_option_given(in, "all") ? 0 : context;
    sm_buffer_init(&out, STDOUT_FILENO);
    if (sm_option_given(in, "json"))
        sm_source_json(&out, &s);
    else if (sm_option_given(in, "csv"))
        sm_source_csv(&out, &s);
    else
        sm_source_print(&out, &s);
    sm_source_release(&s);
    free(text);
    return sm_output_end(&out);
}

static int run(const struct sm_invocation *in) {
    struct sm_analysis_input input;
    struct sm_invocation trace = *in;
    if (in->n_arguments < 1 || in->n_arguments > 2)
        return sm_usage_error(in, "name a source file, and a trace: statmem source FILE [TRACE]");
    trace.arguments = in->arguments + 1;
    trace.n_arguments = in->n_arguments - 1;
    int code = sm_analysis_input_open(&trace, &input);
    if (code != SM_EXIT_OK)
        return code;
    code = report(in, &input, in->arguments[0]);
    return sm_analysis_input_close(in, &input, false, code);
}

const struct sm_command sm_cmd_source = {
    .name = "source",
    .summary = "show a source file's lines with what they allocate",
    .usage = "[OPTION]... FILE [TRACE]",
    .description = "FILE is named as in the trace, or by the end of that name. Its text is looked "
                   "for below --source-root, or here; without it the "
                   "lines are shown by number and function. `itself` is what a line allocates "
                   "without help of a callee.",
    .examples = "statmem source solver.ml prog.stm\n"
                "    lines that allocate, with two lines around them\n"
                "statmem source --all --weight live@peak --source-root ~/src solver.ml prog.stm\n"
                "    the whole file, by what lived at the peak\n",
    .options = options,
    .arguments_are_files = true,
    .run = run,
};
