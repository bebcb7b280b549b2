/* statmem convert: one trace into another format, or into a sound native trace. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/trace_input.h"
#include "convert/convert.h"
#include "convert/temporary.h"
#include "util/json.h"
#include "util/number.h"
#include "util/terminal.h"
#include "util/text.h"

static const char *const target_names[] = {"native", "memtrace3", "memtrace2", "ctf"};
enum { N_TARGETS = 4 };

static const struct sm_option options[] = {
    {'t', "to", SM_ARG_CHOICE, "FORMAT", "native|memtrace3|memtrace2|ctf",
     "Format to write; else guessed from the name of OUT: .stm native, .ctf memtrace3, NAME/ ctf"},
    {0, "order", SM_ARG_CHOICE, "ORDER", "exact|relaxed",
     "memtrace3: exact keeps the order of events over domains; relaxed gives a smaller file"},
    {0, "no-compress", SM_ARG_NONE, NULL, NULL, "native: do not compress"},
    {'f', "force", SM_ARG_NONE, NULL, NULL, "Replace OUT if it exists"},
    {0, "json", SM_ARG_NONE, NULL, NULL, "Print what was written as JSON"},
    SM_TRACE_OPTIONS,
    {0, NULL, SM_ARG_NONE, NULL, NULL, NULL},
};

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

/* The wanted format, or -1 with the usage error told. */
static int target_of(const struct sm_invocation *in, const char *out) {
    const char *to = sm_option_value(in, "to");
    if (to != NULL) {
        for (int i = 0; i < N_TARGETS; i++)
            if (strcmp(to, target_names[i]) == 0)
                return i;
    }
    if (ends_with(out, "/"))
        return SM_TO_CTF;
    if (ends_with(out, ".ctf"))
        return SM_TO_MEMTRACE_3;
    if (ends_with(out, ".stm"))
        return SM_TO_NATIVE;
    sm_usage_error(in, "the name '%.200s' tells no format; give --to", out);
    return -1;
}

/* One line for each thing that the target's format cannot hold. */
struct remark {
    const char *key;
    uint64_t n;
    const char *text;
};
enum { N_REMARKS = 9 };

static void remarks_of(const struct sm_convert_result *r, struct remark list[N_REMARKS]) {
    const struct remark all[N_REMARKS] = {
        {"orphans", r->n_orphans, "events on objects that are not in the trace were left out"},
        {"records", r->n_records, "marks, counters and other records were left out"},
        {"rounded_times", r->n_rounded, "times were rounded down to a microsecond"},
        {"cut_stacks", r->n_cut, "stacks have frames cut; a pseudo location marks the place"},
        {"lost_stacks", r->n_lost_stacks,
         "stacks had been cut by their writer at the allocation site; as its own tools do, the "
         "stack before is taken"},
        {"merged_threads", r->n_threads_merged, "threads were merged with others of their domain"},
        {"renumbered_domains", r->n_renumbered, "domains beyond 65534 were given other numbers"},
        {"native_allocations", r->n_native, "native allocations were left out"},
        {"external_events", r->n_other_heap, "native allocations were written as external"},
    };
    memcpy(list, all, sizeof all);
}

static bool not_held(const struct sm_convert_result *r) {
    struct remark remarks[N_REMARKS];
    bool any = false;
    remarks_of(r, remarks);
    for (int i = 0; i < N_REMARKS; i++)
        any |= remarks[i].n > 0;
    return any;
}

static int tell(const struct sm_invocation *in, int target, const char *out_path,
                const struct sm_convert_result *r) {
    struct remark remarks[N_REMARKS];
    struct sm_buffer out;
    bool json = sm_option_given(in, "json");
    remarks_of(r, remarks);
    /* Standard output may be the trace itself. */
    sm_buffer_init(&out, json ? STDOUT_FILENO : STDERR_FILENO);
    if (json) {
        struct sm_json j;
        sm_json_init(&j, &out, false);
        sm_json_open(&j, NULL, '{');
        sm_json_text(&j, "output", out_path);
        sm_json_text(&j, "format", target_names[target]);
        sm_json_u64(&j, "events", r->n_events);
        sm_json_u64(&j, "allocations", r->n_alloc);
        sm_json_u64(&j, "promotions", r->n_promote);
        sm_json_u64(&j, "collections", r->n_collect);
        sm_json_u64(&j, "domains", r->n_domains);
        sm_json_u64(&j, "bytes", r->bytes);
        sm_json_open(&j, "not_held", '{');
        for (int i = 0; i < N_REMARKS; i++)
            sm_json_u64(&j, remarks[i].key, remarks[i].n);
        sm_json_close(&j, '}');
        sm_json_close(&j, '}');
        sm_json_end(&j);
        return sm_output_end(&out);
    }
    char a[SM_NUMBER_BYTES], b[SM_NUMBER_BYTES];
    sm_buffer_text(&out, "statmem: wrote ");
    sm_text_safe(&out, out_path, strlen(out_path));
    sm_buffer_printf(&out, " (%s): %s events", target_names[target],
                     sm_number_count(a, r->n_events));
    if (r->bytes > 0)
        sm_buffer_printf(&out, ", %s", sm_number_bytes(b, (double)r->bytes, false));
    sm_buffer_char(&out, '\n');
    for (int i = 0; i < N_REMARKS; i++)
        if (remarks[i].n > 0)
            sm_buffer_printf(&out, "statmem: %s %s\n", sm_number_count(a, remarks[i].n),
                             remarks[i].text);
    return sm_output_end(&out);
}

/* Why OUT must not be written; NULL = it may. */
static const char *refusal(const struct sm_invocation *in, const char *from, const char *to,
                           int target) {
    struct stat a, b;
    if (strcmp(to, "-") == 0)
        return target == SM_TO_CTF ? "a CTF directory cannot go to standard output" : NULL;
    if (stat(to, &b) != 0)
        return NULL;
    if (stat(from, &a) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
        return "it is the input; write to another name";
    if (target == SM_TO_CTF)
        return NULL; /* the writer wants an empty directory and says so */
    if (S_ISDIR(b.st_mode))
        return "it is a directory";
    if (S_ISREG(b.st_mode) && !sm_option_given(in, "force"))
        return "it exists; --force replaces it";
    return NULL;
}

static enum sm_status write_to(struct sm_trace *trace, const char *path,
                               const struct sm_convert_options *o, struct sm_convert_result *r,
                               struct sm_error *err) {
    struct stat st;
    if (o->target == SM_TO_CTF)
        return sm_convert(trace, NULL, path, o, r, err);
    bool standard = strcmp(path, "-") == 0;
    if (standard || (stat(path, &st) == 0 && !S_ISREG(st.st_mode))) { /* pipe, device */
        FILE *out = standard ? stdout : fopen(path, "wb");
        if (out == NULL) {
            sm_error_set(err, "cannot open %s for writing", path);
            return SM_FAILED;
        }
        enum sm_status status = sm_convert(trace, out, NULL, o, r, err);
        if ((standard ? fflush(out) : fclose(out)) != 0 && status == SM_OK) {
            sm_error_set(err, "cannot write %s", path);
            status = SM_FAILED;
        }
        return status;
    }
    struct sm_temporary file;
    if (sm_temporary_open(&file, path, 0600, err) != SM_OK)
        return SM_FAILED;
    if (sm_convert(trace, file.out, NULL, o, r, err) == SM_OK)
        return sm_temporary_keep(&file, err);
    sm_temporary_discard(&file);
    return SM_FAILED;
}

static int run(const struct sm_invocation *in) {
    if (in->n_arguments != 2)
        return sm_usage_error(in, "name a trace and where to write: statmem convert IN OUT");
    const char *from = in->arguments[0], *to = in->arguments[1];
    int target = target_of(in, to);
    if (target < 0)
        return SM_EXIT_USAGE;
    const char *order = sm_option_value(in, "order");
    if (order != NULL && target != SM_TO_MEMTRACE_3)
        return sm_usage_error(in, "--order goes with --to memtrace3");
    if (strcmp(to, "-") == 0 && sm_option_given(in, "json"))
        return sm_usage_error(in, "standard output cannot take the trace and --json");
    const char *why = refusal(in, from, to, target);
    if (why != NULL)
        return sm_trouble("not written to %s: %s", to, why);
    struct sm_convert_options o = {.target = (enum sm_convert_target)target,
                                   .order = order != NULL && strcmp(order, "relaxed") == 0
                                                ? SM_MEMTRACE_RELAXED
                                                : SM_MEMTRACE_EXACT,
                                   .compress = !sm_option_given(in, "no-compress")};
    struct sm_convert_result result;
    struct sm_trace *trace;
    struct sm_error err;
    int code = sm_trace_input_open_path(in, from, &trace);
    if (code != SM_EXIT_OK)
        return code;
    if (write_to(trace, to, &o, &result, &err) != SM_OK) {
        sm_progress_end();
        code = sm_trouble("%s", err.text);
    } else {
        sm_progress_end();
        code = tell(in, target, to, &result);
        if (code == SM_EXIT_OK && sm_option_given(in, "strict") && not_held(&result))
            code = SM_EXIT_TROUBLE;
    }
    return sm_trace_input_close(in, trace, false, code);
}

const struct sm_command sm_cmd_convert = {
    .name = "convert",
    .summary = "write a trace in another format",
    .usage = "[OPTION]... IN OUT",
    .description =
        "Reads any trace (statmem's own, memtrace 1 to 3; - is standard input) and writes it as\n"
        "  native     statmem's format, compressed; also repacks and mends a damaged trace\n"
        "  memtrace3  for memtrace_viewer and memtrace's tools\n"
        "  memtrace2  for their older versions: one domain\n"
        "  ctf        a directory for babeltrace2 and other CTF tools, one stream file per domain\n"
        "OUT appears only when it is complete; - is standard output. What the format cannot hold "
        "is "
        "counted and told.",
    .examples = "statmem convert prog.stm prog.ctf\n"
                "    for memtrace_viewer\n"
                "statmem convert old.ctf new.stm\n"
                "    a memtrace trace, three to seven times smaller\n"
                "statmem convert prog.stm prog-ctf/ && babeltrace2 prog-ctf\n"
                "    as CTF\n",
    .options = options,
    .arguments_are_files = true,
    .run = run,
};
