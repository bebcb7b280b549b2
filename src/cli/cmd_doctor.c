/* statmem doctor: can this program be recorded, how well, and if not, why and what to do. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/path_search.h"
#include "cli/probe.h"
#include "util/buffer.h"
#include "util/json.h"
#include "util/memory.h"
#include "util/number.h"
#include "util/text.h"

static const char *const verdicts[] = {
    [SM_VERDICT_YES] = "yes", [SM_VERDICT_PARTLY] = "partly", [SM_VERDICT_NO] = "no"};

static const char *kind_name(const struct sm_probe *p) {
    return p->kind == SM_OCAML_BYTECODE ? "bytecode"
           : p->kind == SM_OCAML_NATIVE ? "native code"
                                        : "unknown";
}

static const char *version_name(const struct sm_probe *p) {
    if (p->ocaml_version[0] != 0)
        return p->ocaml_version;
    if (p->verdict == SM_VERDICT_NO && p->ocaml_major == 5)
        return "5.0 to 5.2";
    return p->ocaml_major == 4 ? "4.11 to 4.14" : p->ocaml_major == 5 ? "5.3 or later" : "unknown";
}

static void row(struct sm_buffer *out, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void row(struct sm_buffer *out, const char *name, const char *format, ...) {
    char text[1400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sm_buffer_printf(out, "  %-12s ", name);
    sm_text_safe(out, text, strlen(text));
    sm_buffer_char(out, '\n');
}

static void print_text(struct sm_buffer *out, const struct sm_probe *p, const char *path) {
    sm_text_safe(out, path, strlen(path));
    sm_buffer_printf(out, "\n  %-12s %s\n", "recordable", verdicts[p->verdict]);
    if (p->reason[0] != 0)
        row(out, "because", "%s", p->reason);
    if (p->advice[0] != 0)
        row(out, "what to do", "%s", p->advice);
    if (strcmp(p->file, path) != 0)
        row(out, "runs in", "%s", p->file);
    if (p->has_runtime) {
        row(out, "OCaml", "%s, %s", version_name(p), kind_name(p));
        row(out, "runtime", "%s",
            p->exports_runtime ? "its symbols are exported"
            : p->is_stripped   ? "its symbols are hidden and stripped"
                             : "its symbols are found in the symbol table; do not strip the file");
    }
    if (p->is_elf)
        row(out, "linking", "%s%s%s", p->is_static ? "static" : "dynamic",
            p->is_pie ? ", position-independent" : "", p->is_stripped ? ", stripped" : "");
    if (p->kind == SM_OCAML_NATIVE && p->debug_info >= 0)
        row(out, "call stacks", "%s",
            p->debug_info ? "with file and line (compiled with -g)"
                          : "often function names only (compiled without -g)");
    if (p->has_runtime && p->kind == SM_OCAML_NATIVE)
        row(out, "own profiler", "%s",
            p->links_memprof ? "it can start Gc.Memprof itself" : "it does not use Gc.Memprof");
    if (p->is_elf)
        row(out, "native memory", "%s",
            p->native       ? "can be recorded"
            : p->own_malloc ? "cannot be seen: the executable has a malloc of its own"
                            : "cannot be recorded");
    if (p->verdict != SM_VERDICT_NO)
        row(out, "next", "statmem record -- %s", path);
}

static void print_json(struct sm_buffer *out, const struct sm_probe *p, const char *path) {
    struct sm_json j;
    sm_json_init(&j, out, false);
    sm_json_open(&j, NULL, '{');
    sm_json_text(&j, "program", path);
    sm_json_text(&j, "recordable", verdicts[p->verdict]);
    sm_json_text(&j, "reason", p->reason);
    sm_json_text(&j, "advice", p->advice);
    sm_json_text(&j, "runs_in", p->file);
    sm_json_bool(&j, "has_runtime", p->has_runtime);
    if (p->has_runtime) {
        sm_json_text(&j, "ocaml_version", version_name(p));
        sm_json_text(&j, "kind", kind_name(p));
        sm_json_bool(&j, "exports_runtime", p->exports_runtime);
        sm_json_bool(&j, "uses_memprof", p->links_memprof);
        if (p->debug_info >= 0)
            sm_json_bool(&j, "debug_info", p->debug_info == 1);
        else
            sm_json_null(&j, "debug_info");
    }
    if (p->is_elf) {
        sm_json_bool(&j, "static", p->is_static);
        sm_json_bool(&j, "pie", p->is_pie);
        sm_json_bool(&j, "stripped", p->is_stripped);
        sm_json_bool(&j, "set_id", p->set_id);
        sm_json_text(&j, "interpreter", p->interpreter);
        sm_json_bool(&j, "native_memory", p->native);
    }
    sm_json_close(&j, '}');
    sm_json_end(&j);
}

/* A number is a process, unless there is a file of that name. Its path for the probe, and for showing. */
static char *find(const struct sm_invocation *in, const char *word) {
    uint64_t pid;
    char link[64], target[4096];
    struct stat st;
    if (stat(word, &st) != 0 && sm_parse_u64(word, &pid)) {
        snprintf(link, sizeof link, "/proc/%llu/exe", (unsigned long long)pid);
        ssize_t n = readlink(link, target, sizeof target - 1);
        if (n < 0) {
            sm_trouble("process %llu: %s", (unsigned long long)pid,
                       errno == ENOENT ? "there is none" : strerror(errno));
            return NULL;
        }
        return sm_strdup(link);
    }
    char *program = sm_find_program(word);
    if (program == NULL && stat(word, &st) == 0)
        program = sm_strdup(word); /* not executable here, but can be looked at */
    if (program == NULL)
        sm_trouble("%s: there is no such program", word);
    return program;
}

static int run(const struct sm_invocation *in) {
    if (in->n_arguments != 1)
        return sm_usage_error(in, "name one program or process");
    char *program = find(in, in->arguments[0]);
    if (program == NULL)
        return SM_EXIT_TROUBLE;
    struct sm_probe probe;
    sm_probe_file(&probe, program);
    char shown[4096];
    ssize_t n =
        strncmp(program, "/proc/", 6) == 0 ? readlink(program, shown, sizeof shown - 1) : -1;
    if (n > 0)
        shown[n] = 0;
    struct sm_buffer out;
    sm_buffer_init(&out, STDOUT_FILENO);
    if (sm_option_given(in, "json"))
        print_json(&out, &probe, n > 0 ? shown : program);
    else
        print_text(&out, &probe, n > 0 ? shown : program);
    free(program);
    int code = sm_output_end(&out);
    return code != SM_EXIT_OK               ? code
           : probe.verdict == SM_VERDICT_NO ? SM_EXIT_TROUBLE
                                            : SM_EXIT_OK;
}

static const struct sm_option options[] = {
    {'j', "json", SM_ARG_NONE, NULL, NULL, "One JSON object"},
    {0},
};

const struct sm_command sm_cmd_doctor = {
    .name = "doctor",
    .summary = "Tell whether a program can be recorded, and if not, why",
    .usage = "[--json] PROG|PID",
    .description =
        "Looks at the file of a program, or of a running process, and tells whether `statmem "
        "record` can "
        "record it unchanged: which OCaml it was made with, native code or bytecode, whether "
        "libraries "
        "can be preloaded, whether call stacks will have files and lines, and whether it uses "
        "Gc.Memprof itself. Nothing is started.\n"
        "\n"
        "The exit status is 0 when it can be recorded, at least partly, and 1 when it cannot.",
    .examples = "statmem doctor ./prog\n"
                "    before recording it\n"
                "statmem doctor --json $(pidof server)\n"
                "    a running process, for a script\n",
    .options = options,
    .arguments_are_files = true,
    .run = run,
};
