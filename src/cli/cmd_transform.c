/* statmem strip, subsample, merge: traces made of traces. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/trace_input.h"
#include "convert/temporary.h"
#include "convert/transform.h"
#include "util/memory.h"
#include "util/number.h"
#include "util/terminal.h"

#define FORCE_OPTION                                                                               \
    { 0, "force", SM_ARG_NONE, NULL, NULL, "Replace OUT if it exists" }

/* Makes the new trace of what is open. */
struct transform {
    enum sm_status (*run)(const struct transform *x, FILE *out, struct sm_transform_result *r,
                          struct sm_error *err);
    struct sm_trace **traces;
    uint32_t n;
    const char *key;
    struct sm_subsample_options subsample;
};

static enum sm_status write_out(const struct transform *x, const char *path,
                                struct sm_transform_result *r, struct sm_error *err) {
    struct sm_temporary file;
    if (strcmp(path, "-") == 0) {
        if (x->run(x, stdout, r, err) != SM_OK)
            return SM_FAILED;
        if (fflush(stdout) == 0)
            return SM_OK;
        sm_error_set(err, "cannot write standard output: %s", strerror(errno));
        return SM_FAILED;
    }
    if (sm_temporary_open(&file, path, 0600, err) != SM_OK)
        return SM_FAILED;
    if (x->run(x, file.out, r, err) == SM_OK)
        return sm_temporary_keep(&file, err);
    sm_temporary_discard(&file);
    return SM_FAILED;
}

/* What speaks against writing there; NULL = nothing. */
static const char *refusal(const struct sm_invocation *in, char *const *from, int n,
                           const char *to) {
    struct stat a, b;
    if (strcmp(to, "-") == 0 || stat(to, &b) != 0)
        return NULL;
    for (int i = 0; i < n; i++) {
        if (stat(from[i], &a) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
            return "it is the input; write to another name";
    }
    if (S_ISDIR(b.st_mode))
        return "it is a directory";
    return S_ISREG(b.st_mode) && !sm_option_given(in, "force") ? "it exists; --force replaces it"
                                                               : NULL;
}

static void tell(const char *to, const struct sm_transform_result *r) {
    char a[SM_NUMBER_BYTES], b[SM_NUMBER_BYTES], c[SM_NUMBER_BYTES];
    sm_complain("statmem: wrote %s: %s events, %s allocations%s%s%s", to,
                sm_number_count(a, r->n_events), sm_number_count(b, r->n_alloc),
                r->n_dropped > 0 ? "; " : "",
                r->n_dropped > 0 ? sm_number_count(c, r->n_dropped) : "",
                r->n_dropped > 0 ? " left out" : "");
}

static int transform(const struct sm_invocation *in, char *const *from, int n, const char *to,
                     struct transform *x) {
    const char *why = refusal(in, from, n, to);
    if (why != NULL)
        return sm_trouble("not written to %s: %s", to, why);
    x->traces = sm_alloc_zero((size_t)n, sizeof *x->traces);
    int code = SM_EXIT_OK;
    while ((int)x->n < n && code == SM_EXIT_OK) {
        code = sm_trace_input_open_path(in, from[x->n], &x->traces[x->n]);
        x->n += code == SM_EXIT_OK;
    }
    if (code == SM_EXIT_OK) {
        struct sm_transform_result result;
        struct sm_error err;
        enum sm_status status = write_out(x, to, &result, &err);
        sm_progress_end();
        if (status == SM_OK)
            tell(to, &result);
        else
            code = sm_trouble("%s", err.text);
    }
    for (uint32_t i = 0; i < x->n; i++)
        code = sm_trace_input_close(in, x->traces[i], false, code);
    free(x->traces);
    return code;
}

/* ---- strip ---- */

static const struct sm_option strip_options[] = {
    {0, "key-file", SM_ARG_FILE, "FILE", NULL,
     "Mix the contents of FILE into the pseudonyms: without it nobody can confirm a guess"},
    FORCE_OPTION,
    SM_TRACE_OPTIONS,
    {0},
};

static enum sm_status do_strip(const struct transform *x, FILE *out, struct sm_transform_result *r,
                               struct sm_error *err) {
    return sm_strip(x->traces[0], out, x->key, r, err);
}

#define MAX_KEY_BYTES 4096

static int run_strip(const struct sm_invocation *in) {
    char key[MAX_KEY_BYTES + 1] = "";
    const char *path = sm_option_value(in, "key-file");
    if (in->n_arguments != 2)
        return sm_usage_error(in, "name a trace and where to write: statmem strip IN OUT");
    if (path != NULL) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, key, MAX_KEY_BYTES);
        if (fd >= 0)
            close(fd);
        if (n <= 0)
            return sm_trouble("cannot take a key from %.300s: %s", path,
                              n == 0 ? "it is empty" : strerror(errno));
        key[n] = 0;
    }
    struct transform x = {.run = do_strip, .key = key};
    return transform(in, in->arguments, 1, in->arguments[1], &x);
}

const struct sm_command sm_cmd_strip = {
    .name = "strip",
    .summary = "write a trace whose names are pseudonyms",
    .usage = "[OPTION]... IN OUT",
    .description = "Names of functions, files, threads, the program and the host become "
                   "pseudonyms, arguments and context go; sizes, "
                   "times, lines and the structure of stacks stay, so that the trace can be given "
                   "to others. The same name has the same "
                   "pseudonym in every trace that is stripped with the same key, and modules stay "
                   "visible as such.\n"
                   "\n"
                   "Pseudonyms are hashes, not encryption: without --key-file whoever guesses a "
                   "name can confirm it.",
    .examples = "statmem strip prog.stm public.stm\n"
                "    for a bug report\n"
                "statmem strip --key-file ~/.statmem-key prog.stm public.stm\n"
                "    nobody can confirm names by guessing\n",
    .options = strip_options,
    .arguments_are_files = true,
    .run = run_strip,
};

/* ---- subsample ---- */

static const struct sm_option subsample_options[] = {
    {0, "factor", SM_ARG_TEXT, "F", NULL,
     "Keep each sample with probability F, as 0.1 or 1/10 (1)"},
    {0, "from", SM_ARG_TEXT, "TIME", NULL, "Only blocks allocated at or after TIME"},
    {0, "to", SM_ARG_TEXT, "TIME", NULL, "Only blocks allocated at or before TIME"},
    {0, "seed", SM_ARG_NUMBER, "N", NULL, "Another choice of samples"},
    FORCE_OPTION,
    SM_TRACE_OPTIONS,
    {0},
};

static enum sm_status do_subsample(const struct transform *x, FILE *out,
                                   struct sm_transform_result *r, struct sm_error *err) {
    return sm_subsample(x->traces[0], out, &x->subsample, r, err);
}

static int run_subsample(const struct sm_invocation *in) {
    struct transform x = {.run = do_subsample,
                          .subsample = {.factor = 1, .from_ns = INT64_MIN, .to_ns = INT64_MAX}};
    const char *factor = sm_option_value(in, "factor");
    bool given;
    if (in->n_arguments != 2)
        return sm_usage_error(in, "name a trace and where to write: statmem subsample IN OUT");
    if (factor != NULL && !sm_parse_rate(factor, &x.subsample.factor))
        return sm_usage_error(
            in, "--factor wants a number above 0 and at most 1, such as 0.1 or 1/10, not '%.60s'",
            factor);
    if (!sm_option_duration(in, "from", &x.subsample.from_ns, &given) ||
        !sm_option_duration(in, "to", &x.subsample.to_ns, &given) ||
        !sm_option_u64(in, "seed", &x.subsample.seed))
        return SM_EXIT_USAGE;
    return transform(in, in->arguments, 1, in->arguments[1], &x);
}

const struct sm_command sm_cmd_subsample = {
    .name = "subsample",
    .summary = "write a trace with fewer samples, or of a part of the run",
    .usage = "[OPTION]... IN OUT",
    .description = "Every sample is kept with probability F, independently of all others: what is "
                   "written is a trace as sampling at F times the "
                   "rate would have given it, and estimates stay unbiased. Blocks sampled by "
                   "malloc's bytes have an interval of their "
                   "own; all of them stay.",
    .examples = "statmem subsample --factor 1/10 big.stm small.stm\n"
                "    a tenth of the samples\n"
                "statmem subsample --from 10s --to 20s prog.stm part.stm\n"
                "    what was allocated in these ten seconds\n",
    .options = subsample_options,
    .arguments_are_files = true,
    .run = run_subsample,
};

/* ---- merge ---- */

static const struct sm_option merge_options[] = {
    {'o', "output", SM_ARG_FILE, "OUT", NULL, "Where to write"},
    FORCE_OPTION,
    SM_TRACE_OPTIONS,
    {0},
};

static enum sm_status do_merge(const struct transform *x, FILE *out, struct sm_transform_result *r,
                               struct sm_error *err) {
    return sm_merge_traces(x->traces, x->n, out, r, err);
}

static int run_merge(const struct sm_invocation *in) {
    const char *to = sm_option_value(in, "output");
    if (in->n_arguments < 2 || to == NULL)
        return sm_usage_error(
            in, "name two or more traces and where to write: statmem merge -o OUT IN...");
    struct transform x = {.run = do_merge};
    return transform(in, in->arguments, in->n_arguments, to, &x);
}

const struct sm_command sm_cmd_merge = {
    .name = "merge",
    .summary = "write the traces of several processes as one",
    .usage = "-o OUT IN IN...",
    .description = "Events of all traces on one axis of wall-clock time, so that memory of "
                   "processes that work together can be seen "
                   "together. Threads are named after their process; a domain gets another number "
                   "where two have the same. All traces "
                   "must have been recorded at the same rate.",
    .examples = "statmem record --follow-children -o 'job.%p.stm' -- ./job && statmem merge -o "
                "job.stm job.*.stm\n"
                "    a program and its children\n",
    .options = merge_options,
    .arguments_are_files = true,
    .run = run_merge,
};
