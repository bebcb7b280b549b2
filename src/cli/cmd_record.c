/* statmem record: runs a program with the preload library and closes its trace afterwards.

   The request travels in the environment of the program (inject/request.h). What happened comes back in a
   file of answers, so that an empty run can be explained. Everything that can fail for reasons of
   ours is tried before the program is started; afterwards nothing of ours changes its output or its
   exit status. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/answers.h"
#include "cli/command.h"
#include "cli/launch.h"
#include "cli/output.h"
#include "cli/path_search.h"
#include "cli/probe.h"
#include "cli/record_end.h"
#include "inject/request.h"
#include "service/control.h"
#include "util/buffer.h"
#include "util/memory.h"
#include "util/number.h"

enum { EXIT_CANNOT_EXECUTE = 126, EXIT_NOT_FOUND = 127 };
enum { LEAST_DESCRIPTORS = 24 }; /* 8 above 16, from where ours are out of the program's way */

enum { LEAST_COUNTERS_NS = 1000000 };

struct recording {
    const struct sm_invocation *in;
    double rate;
    enum sm_rate_origin rate_origin;
    uint64_t depth; /* 0 = the recorder's default */
    uint64_t seed;
    int64_t duration_ns;            /* 0 = to the end */
    int64_t counters_ns;            /* 0 = none */
    uint64_t native_interval_bytes; /* 0 = native memory is not recorded */
    bool native_only;
    bool follow;
    bool paused;
    int toggle_signal; /* 0 = none */
    bool has_seed;
    char *preload;   /* path of the library */
    char *output;    /* -o made absolute; NULL = made from program and pid */
    char *directory; /* absolute: of the default output */
    char answers[64];
};

static const char *program_name(const struct sm_invocation *in) {
    const char *slash = strrchr(in->arguments[0], '/');
    return slash != NULL && slash[1] != 0 ? slash + 1 : in->arguments[0];
}

/* ---- options ---- */

static bool wrong(const struct sm_invocation *in, const char *option, const char *must_be) {
    sm_usage_error(in, "--%s must be %s, not '%.60s'", option, must_be,
                   sm_option_value(in, option));
    return false;
}

static bool read_rate(struct recording *r) {
    const char *rate = sm_option_value(r->in, "rate");
    const char *bytes = sm_option_value(r->in, "bytes-per-sample");
    const char *environment = getenv("STATMEM_RATE");
    uint64_t n;
    r->rate = SM_DEFAULT_RATE;
    r->rate_origin = SM_RATE_DEFAULT;
    if (rate != NULL && bytes != NULL) {
        sm_usage_error(r->in, "give --rate or --bytes-per-sample, not both");
        return false;
    }
    if (rate != NULL) {
        r->rate_origin = SM_RATE_COMMAND_LINE;
        return sm_parse_rate(rate, &r->rate) || wrong(r->in, "rate", "a number in (0,1], or 1/N");
    }
    if (bytes != NULL) {
        if (!sm_parse_bytes(bytes, 8, &n) || n < 8)
            return wrong(r->in, "bytes-per-sample", "a size of at least 8 bytes, such as 64k");
        r->rate = 8.0 / (double)n;
        r->rate_origin = SM_RATE_COMMAND_LINE;
    } else if (environment != NULL && environment[0] != 0) {
        r->rate_origin = SM_RATE_ENVIRONMENT;
        if (!sm_parse_rate(environment, &r->rate)) {
            sm_usage_error(r->in, "STATMEM_RATE must be a number in (0,1], or 1/N, not '%.60s'",
                           environment);
            return false;
        }
    }
    return true;
}

/* What of the program's memory: OCaml's, native, or both. */
static bool read_native(struct recording *r) {
    const char *interval = sm_option_value(r->in, "native-interval");
    bool ocaml_only = sm_option_given(r->in, "ocaml-only");
    r->native_only = sm_option_given(r->in, "native-only");
    r->native_interval_bytes = SM_NATIVE_DEFAULT_INTERVAL_BYTES;
    if (ocaml_only && (r->native_only || interval != NULL || sm_option_given(r->in, "native"))) {
        sm_usage_error(r->in, "--ocaml-only leaves out what the other --native options ask for");
        return false;
    }
    if (interval != NULL &&
        (!sm_parse_bytes(interval, 1, &r->native_interval_bytes) || r->native_interval_bytes == 0))
        return wrong(r->in, "native-interval", "a size, such as 64k; 1 records every allocation");
    if (ocaml_only)
        r->native_interval_bytes = 0;
    return true;
}

static bool read_signal(const char *text, int *number) {
    static const struct {
        const char *name;
        int number;
    } names[] = {{"HUP", SIGHUP}, {"USR1", SIGUSR1},   {"USR2", SIGUSR2},
                 {"URG", SIGURG}, {"WINCH", SIGWINCH}, {"PROF", SIGPROF}};
    uint64_t n;
    if (strncmp(text, "SIG", 3) == 0)
        text += 3;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i].name, text) == 0) {
            *number = names[i].number;
            return true;
        }
    }
    if (!sm_parse_u64(text, &n) || n < 1 || n > (uint64_t)SIGRTMAX || n == SIGKILL ||
        n == SIGSTOP || n == SIGSEGV || n == SIGBUS || n == SIGFPE || n == SIGILL ||
        (n > SIGSYS && n < (uint64_t)SIGRTMIN))
        return false;
    *number = (int)n;
    return true;
}

static bool read_options(struct recording *r) {
    const char *depth = sm_option_value(r->in, "depth"), *seed = sm_option_value(r->in, "seed");
    const char *duration = sm_option_value(r->in, "duration");
    if (!read_rate(r) || !read_native(r))
        return false;
    if (depth != NULL &&
        (!sm_parse_u64(depth, &r->depth) || r->depth < 2 || r->depth > SM_MAX_DEPTH))
        return wrong(r->in, "depth", "a number of frames, 2 to 32768");
    r->has_seed = seed != NULL;
    if (seed != NULL && !sm_parse_u64(seed, &r->seed))
        return wrong(r->in, "seed", "a number");
    if (duration != NULL && (!sm_parse_duration(duration, &r->duration_ns) || r->duration_ns <= 0))
        return wrong(r->in, "duration", "a time, such as 10, 500ms or 2m");
    const char *counters = sm_option_value(r->in, "counters-interval");
    r->counters_ns = SM_DEFAULT_COUNTERS_NS;
    if (counters != NULL && (!sm_parse_duration(counters, &r->counters_ns) || r->counters_ns < 0 ||
                             (r->counters_ns > 0 && r->counters_ns < LEAST_COUNTERS_NS)))
        return wrong(r->in, "counters-interval", "0, or a time from 1ms on");
    r->paused = sm_option_given(r->in, "paused");
    const char *toggle = sm_option_value(r->in, "toggle-signal");
    if (toggle != NULL && !read_signal(toggle, &r->toggle_signal))
        return wrong(r->in, "toggle-signal",
                     "USR1, USR2, WINCH, URG, PROF or the number of a signal "
                     "that a program can catch");
    if ((r->paused || toggle != NULL) && r->counters_ns == 0) {
        sm_usage_error(r->in, "--counters-interval 0 leaves nobody who could begin a window");
        return false;
    }
    r->follow = sm_option_given(r->in, "follow-children");
    return true;
}

/* ---- what must be there before the program is started ---- */

/* Beside this program in the build folder, else where it was installed. */
static bool find_preload(struct recording *r) {
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash != NULL)
        *slash = 0;
    static const char *const beside[] = {"/src/inject/", "/../" SM_LIBDIR_NAME "/statmem/",
                                         "/../lib/statmem/"};
    char *candidates[5];
    size_t n_candidates = 0;
    const char *given = getenv("STATMEM_PRELOAD");
    if (given != NULL)
        candidates[n_candidates++] = sm_strdup(given);
    for (size_t i = 0; i < 3; i++)
        candidates[n_candidates++] = sm_concat(self, beside[i], SM_PRELOAD_NAME);
    candidates[n_candidates++] = sm_strdup(SM_PRELOAD_DIR "/" SM_PRELOAD_NAME);
    for (size_t i = 0; i < n_candidates; i++) {
        if (r->preload == NULL && access(candidates[i], R_OK) == 0)
            r->preload = realpath(candidates[i], NULL);
        free(candidates[i]);
    }
    if (r->preload == NULL) {
        sm_trouble("%s is missing: it should be in " SM_PRELOAD_DIR
                   ", or where STATMEM_PRELOAD says",
                   SM_PRELOAD_NAME);
        return false;
    }
    if (strpbrk(r->preload, ": ") != NULL) {
        sm_trouble("the loader cannot preload %s: move it to a path without spaces and colons",
                   r->preload);
        return false;
    }
    return true;
}

/* Makes the file, or opens it when it is there, and leaves all as it was. Trying is the only sure way:
   a file system can be read-only, or a user's rights greater than the mode tells. A name with "%p" is
   not known yet: then another file of the folder is tried. */
static bool can_write(const char *path, bool pattern) {
    const char *problem = NULL;
    char *tried = sm_strdup(path);
    if (pattern) {
        char *slash = strrchr(tried, '/');
        slash[1] = 0;
        char pid[32];
        snprintf(pid, sizeof pid, "%lld", (long long)getpid());
        char *other = sm_concat(tried, ".statmem-try.", pid);
        free(tried);
        tried = other;
    }
    struct stat st;
    bool there = lstat(tried, &st) == 0;
    if (there && stat(tried, &st) == 0 && S_ISDIR(st.st_mode)) {
        problem = "it is a directory";
    } else if (!there || S_ISREG(st.st_mode)) { /* a pipe would wait for its reader */
        int fd =
            open(tried, O_WRONLY | O_CLOEXEC | O_NOCTTY | (there ? 0 : O_CREAT | O_EXCL), 0600);
        if (fd < 0)
            problem = strerror(errno);
        else
            close(fd);
        if (fd >= 0 && !there)
            unlink(tried);
    } else if (access(tried, W_OK) != 0) {
        problem = strerror(errno);
    }
    if (problem != NULL)
        sm_trouble(
            "cannot write %s: %s; choose another place with -o (the program was not started)", path,
            problem);
    free(tried);
    return problem == NULL;
}

static char *absolute(const char *path) {
    if (path[0] == '/')
        return sm_strdup(path);
    char *here = getcwd(NULL, 0);
    if (here == NULL)
        return sm_strdup(path);
    char *s = sm_concat(here, "/", path);
    free(here);
    return s;
}

static bool choose_output(struct recording *r) {
    const char *given = sm_option_value(r->in, "output");
    r->directory = absolute("");
    /* Answers are lines, and hold the name. */
    if (strchr(given != NULL ? given : program_name(r->in), '\n') != NULL) {
        sm_usage_error(r->in,
                       "the name of the trace must not hold a line end; give another with -o");
        return false;
    }
    if (given == NULL) {
        char *example = sm_concat(r->directory, program_name(r->in), ".PID.stm");
        bool good = can_write(example, true);
        free(example);
        return good;
    }
    bool has_pid = strstr(given, "%p") != NULL;
    if (r->follow && !has_pid) {
        char *path = sm_concat(given, ".%p", "");
        r->output = absolute(path);
        free(path);
        has_pid = true;
    } else {
        r->output = absolute(given);
    }
    return can_write(r->output, has_pid);
}

/* ---- in the new process ---- */

static void set_number(const char *name, uint64_t x) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)x);
    setenv(name, text, 1);
}

static void append_escaped(struct sm_buffer *b, const char *s) {
    for (; *s != 0; s++) {
        if (*s == '%')
            sm_buffer_char(b, '%');
        sm_buffer_char(b, *s);
    }
}

/* PROG.PID.stm in the current folder. */
static void default_output(const struct recording *r, struct sm_buffer *b, bool pattern,
                           pid_t pid) {
    sm_buffer_init(b, -1);
    if (pattern) {
        append_escaped(b, r->directory);
        append_escaped(b, program_name(r->in));
        sm_buffer_text(b, ".%p.stm");
    } else {
        sm_buffer_printf(b, "%s%s.%lld.stm", r->directory, program_name(r->in), (long long)pid);
    }
}

static void prepare(void *ctx) {
    const struct recording *r = ctx;
    struct sm_buffer output;
    char rate[40];
    const char *preload = getenv("LD_PRELOAD");
    char *list = preload != NULL ? sm_concat(r->preload, ":", preload) : sm_strdup(r->preload);
    setenv("LD_PRELOAD", list, 1);
    default_output(r, &output, true, 0);
    setenv("STATMEM_OUT", r->output != NULL ? r->output : sm_buffer_string(&output), 1);
    snprintf(rate, sizeof rate, "%.17g", r->rate);
    setenv("STATMEM_RATE", rate, 1);
    set_number("STATMEM_RATE_ORIGIN", r->rate_origin);
    if (r->depth != 0)
        set_number("STATMEM_DEPTH", r->depth);
    if (r->has_seed)
        set_number("STATMEM_SEED", r->seed);
    if (r->duration_ns != 0)
        set_number("STATMEM_DURATION_NS", (uint64_t)r->duration_ns);
    if (r->paused)
        set_number("STATMEM_PAUSED", 1);
    if (r->toggle_signal != 0)
        set_number("STATMEM_TOGGLE_SIGNAL", (uint64_t)r->toggle_signal);
    set_number("STATMEM_COUNTERS_NS", (uint64_t)r->counters_ns);
    if (r->native_interval_bytes != 0)
        set_number("STATMEM_NATIVE_INTERVAL", r->native_interval_bytes);
    if (r->native_only)
        set_number("STATMEM_NATIVE_ONLY", 1);
    set_number("STATMEM_TARGET_PID", (uint64_t)getpid());
    setenv("STATMEM_STATUS", r->answers, 1);
    if (r->follow) {
        setenv("STATMEM_FOLLOW", "1", 1);
        setenv("STATMEM_CHAIN", "0000000000.0000", 1);
    }
}

/* ---- the run ---- */

static int could_not_run(const struct sm_invocation *in, int code) {
    sm_complain("statmem record: %s: %s", in->arguments[0],
                code == ENOENT ? "command not found" : strerror(code));
    return code == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE;
}

/* The loader of another C library would fail, and the program with it, when it is told to load our library. */
static bool can_be_preloaded(const char *program) {
    struct sm_probe probe;
    if (!sm_probe_file(&probe, program) || (!probe.other_libc && !probe.sanitized))
        return true;
    if (probe.sanitized) {
        sm_trouble("%s was built with a sanitizer, whose library must be the first one that is "
                   "loaded: build it without -fsanitize (the program was not started)",
                   program);
        return false;
    }
    sm_trouble("%s is linked with another C library than glibc (%.200s), whose loader cannot load "
               "the recorder: link it with glibc, or link it with the statmem library (the program "
               "was not started)",
               program, probe.interpreter);
    return false;
}

/* A program that was killed leaves its socket behind. */
static void remove_socket(pid_t pid) {
    const char *runtime_dirs[] = {getenv("XDG_RUNTIME_DIR"), NULL};
    char path[128];
    for (size_t i = 0; i < 2; i++)
        if (sm_control_path(path, sizeof path, runtime_dirs[i], geteuid(), (unsigned)pid))
            unlink(path);
}

static int record(struct recording *r) {
    char *program = sm_find_program(r->in->arguments[0]);
    if (program == NULL)
        return could_not_run(r->in, ENOENT);
    if (!can_be_preloaded(program)) {
        free(program);
        return SM_EXIT_TROUBLE;
    }
    struct sm_launch launch = {.argv = r->in->arguments, .prepare = prepare, .ctx = r};
    if (sm_launch(&launch) != 0) {
        free(program);
        return sm_trouble("cannot start a process: %s", strerror(errno));
    }
    if (launch.exec_errno != 0) {
        free(program);
        return could_not_run(r->in, launch.exec_errno);
    }
    struct sm_answers answers;
    sm_answers_read(&answers, r->answers);
    const char *format = sm_option_value(r->in, "format");
    struct sm_record_end end = {
        .answers = &answers,
        .launch = &launch,
        .program = program,
        .follow = r->follow,
        .native = r->native_interval_bytes != 0,
        .native_only = r->native_only,
        .compress = !sm_option_given(r->in, "no-compress"),
        .memtrace = format != NULL && strcmp(format, "memtrace") == 0,
        .quiet = sm_option_given(r->in, "quiet"),
        .json = sm_option_given(r->in, "json"),
        .symbolize = !sm_option_given(r->in, "no-symbolize"),
        .debuginfod = sm_option_given(r->in, "debuginfod"),
        .duration_ns = r->duration_ns,
    };
    remove_socket(launch.pid);
    for (size_t i = 0; i < answers.n; i++)
        if (kill((pid_t)answers.lines[i].pid, 0) != 0)
            remove_socket((pid_t)answers.lines[i].pid);
    sm_record_end(&end);
    sm_answers_release(&answers);
    free(program);
    unlink(r->answers);
    sm_launch_end_alike(launch.wait_status);
}

static bool make_answers_file(struct recording *r) {
    static const char *const folders[] = {NULL, "/tmp", "/dev/shm"};
    for (size_t i = 0; i < 3; i++) {
        const char *folder = folders[i] != NULL ? folders[i] : getenv("XDG_RUNTIME_DIR");
        if (folder == NULL || strlen(folder) > 40)
            continue;
        snprintf(r->answers, sizeof r->answers, "%s/statmem.XXXXXX", folder);
        int fd = mkostemp(r->answers, O_CLOEXEC);
        if (fd >= 0) {
            close(fd);
            return true;
        }
    }
    sm_trouble("cannot make a file in /tmp: %s", strerror(errno));
    return false;
}

/* The recorder keeps a few files open in the program, beside those that the program may open. */
static bool has_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= LEAST_DESCRIPTORS)
        return true;
    sm_trouble("the limit of %llu open files leaves none for the recorder: raise it to %d at "
               "least, with ulimit -n (the program was not started)",
               (unsigned long long)limit.rlim_cur, LEAST_DESCRIPTORS);
    return false;
}

static int run(const struct sm_invocation *in) {
    struct recording r = {.in = in};
    int result = SM_EXIT_TROUBLE;
    if (in->n_arguments == 0)
        return sm_usage_error(in, "name the program to record: statmem record -- CMD...");
    if (!read_options(&r))
        return SM_EXIT_USAGE;
    if (has_descriptors() && find_preload(&r) && choose_output(&r) && make_answers_file(&r)) {
        result = record(&r); /* returns only when the program did not run */
        unlink(r.answers);
    }
    free(r.preload);
    free(r.output);
    free(r.directory);
    return result;
}

static const struct sm_option options[] = {
    {'o', "output", SM_ARG_FILE, "FILE", NULL,
     "Where to write the trace; %p stands for the process id (default: PROG.PID.stm)"},
    {'r', "rate", SM_ARG_NUMBER, "RATE", NULL,
     "Probability that a word of memory is sampled, 0 to 1 (default: 1e-4, one sample in 80 kB)"},
    {0, "bytes-per-sample", SM_ARG_NUMBER, "N", NULL,
     "The same as a size: one sample in N bytes, such as 64k"},
    {0, "native", SM_ARG_NONE, NULL, NULL,
     "Record memory from malloc and the like as well (the default)"},
    {0, "ocaml-only", SM_ARG_NONE, NULL, NULL, "Record OCaml's memory alone"},
    {0, "native-only", SM_ARG_NONE, NULL, NULL, "Record memory from malloc and the like alone"},
    {0, "native-interval", SM_ARG_NUMBER, "BYTES", NULL,
     "One sample of native memory in so many bytes, on average (default: 512k); 1 records every "
     "allocation"},
    {0, "depth", SM_ARG_NUMBER, "N", NULL,
     "Most frames kept of a call stack; deeper ones lose their middle (default: 1024)"},
    {0, "duration", SM_ARG_TEXT, "T", NULL,
     "Stop recording after this time, such as 10, 500ms or 2m; the program goes on"},
    {0, "paused", SM_ARG_NONE, NULL, NULL,
     "Record nothing before statmem ctl PID start, or the signal, begins a window"},
    {0, "toggle-signal", SM_ARG_TEXT, "SIGNAL", NULL,
     "A signal to the program, such as USR2, ends the recording, the next one begins another "
     "window"},
    {0, "counters-interval", SM_ARG_TEXT, "T", NULL,
     "Time between two readings of what the process uses (default: 100ms); 0 reads nothing"},
    {0, "follow-children", SM_ARG_NONE, NULL, NULL,
     "Record child processes too, each into a file of its own"},
    {0, "format", SM_ARG_CHOICE, "FORMAT", "native|memtrace",
     "native, or memtrace: also write FILE.ctf for tools that read memtrace's format"},
    {0, "seed", SM_ARG_NUMBER, "N", NULL, "Seed of statmem's own samplers, for repeatable runs"},
    {0, "no-symbolize", SM_ARG_NONE, NULL, NULL,
     "Do not look for the names of C code at the end; statmem symbolize can do it later"},
    {0, "debuginfod", SM_ARG_NONE, NULL, NULL,
     "Ask the servers named by DEBUGINFOD_URLS for debug information, 10 seconds for a file at "
     "most"},
    {0, "no-compress", SM_ARG_NONE, NULL, NULL, "Leave the trace as it was written"},
    {'q', "quiet", SM_ARG_NONE, NULL, NULL, "Print nothing but trouble"},
    {0, "json", SM_ARG_NONE, NULL, NULL, "Print the summary as one line of JSON, to stderr"},
    {0, NULL, SM_ARG_NONE, NULL, NULL, NULL},
};

const struct sm_command sm_cmd_record = {
    .name = "record",
    .summary = "Run a program and record its allocations",
    .usage = "[OPTION]... -- CMD [ARG]...",
    .description =
        "Runs CMD unmodified and records a sample of its allocations, in every domain and thread, "
        "with call stacks, until it ends. OCaml's memory: in native code and bytecode of OCaml "
        "4.11 "
        "to 4.14, and of 5.3 and later. Native memory, from malloc, operator new and the like: in "
        "every program that is dynamically linked with glibc, whatever its language. The program's "
        "output, exit status and environment stay as they are without statmem; a summary goes to "
        "stderr.\n"
        "\n"
        "The exit status is that of CMD; 127 when it is not found, 126 when it cannot be executed, "
        "2 when "
        "the command line is wrong, 1 when the trace's place is not writable (then CMD is not "
        "started).\n"
        "\n"
        "The rate comes from --rate or --bytes-per-sample, else from the variable STATMEM_RATE, "
        "else it is "
        "1e-4.\n"
        "\n"
        "Only one profile can run in a process. When the program starts Gc.Memprof itself, the "
        "recording of OCaml's memory ends there, and the program goes on undisturbed.",
    .examples = "statmem record -- ./prog data.txt\n"
                "    record into prog.PID.stm\n"
                "statmem record -r 1e-5 -o server.stm --duration 1m -- ./server\n"
                "    the first minute of a busy server\n"
                "statmem record --follow-children -- dune build\n"
                "    one trace for each OCaml process that the build starts\n",
    .options = options,
    .stop_at_first_argument = true,
    .run = run,
};
