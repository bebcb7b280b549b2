/* See trace_input.h. */
#include "cli/trace_input.h"

#include <dirent.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output.h"
#include "util/number.h"
#include "util/terminal.h"

#define LOSSES_TOLD 8

/* The *.stm in the working directory that was modified last: what `record` has just written. */
static const char *newest_trace(void) {
    static char name[NAME_MAX + 1];
    struct timespec best = {0, 0};
    bool found = name[0] != 0;
    if (found)
        return name; /* the same all along, whatever appears meanwhile */
    DIR *dir = opendir(".");
    for (struct dirent *d; dir != NULL && (d = readdir(dir)) != NULL;) {
        struct stat st;
        size_t n = strlen(d->d_name);
        if (n <= 4 || strcmp(d->d_name + n - 4, ".stm") != 0 || stat(d->d_name, &st) != 0 ||
            !S_ISREG(st.st_mode))
            continue;
        if (found && (st.st_mtim.tv_sec < best.tv_sec ||
                      (st.st_mtim.tv_sec == best.tv_sec && st.st_mtim.tv_nsec <= best.tv_nsec)))
            continue;
        best = st.st_mtim;
        memcpy(name, d->d_name, n + 1);
        found = true;
    }
    if (dir != NULL)
        closedir(dir);
    return found ? name : NULL;
}

const char *sm_trace_input_path(const struct sm_invocation *in) {
    const char *newest = in->n_arguments > 0 ? in->arguments[0] : newest_trace();
    return newest != NULL ? newest : "";
}

int sm_trace_input_open(const struct sm_invocation *in, struct sm_trace **trace) {
    *trace = NULL;
    if (in->n_arguments == 0) {
        const char *newest = newest_trace();
        if (newest == NULL)
            return sm_usage_error(in, "name a trace file, or - for standard input (there is no "
                                      "*.stm in this directory)");
        sm_complain("statmem: the newest trace here is %s", newest);
        return sm_trace_input_open_path(in, newest, trace);
    }
    if (in->n_arguments > 1)
        return sm_usage_error(in, "one trace at a time; '%.200s' is one too many",
                              in->arguments[1]);
    return sm_trace_input_open_path(in, in->arguments[0], trace);
}

int sm_trace_input_open_path(const struct sm_invocation *in, const char *path,
                             struct sm_trace **trace) {
    *trace = NULL;
    uint64_t part = 1;
    if (!sm_option_u64(in, "part", &part))
        return SM_EXIT_USAGE;
    if (part == 0 || part > UINT32_MAX)
        return sm_usage_error(in, "--part counts from 1");
    static char reading[] = "reading";
    struct sm_trace_options options = {.ignore_tail = sm_option_given(in, "no-tail"),
                                       .part = (uint32_t)(part - 1),
                                       .progress = sm_progress,
                                       .progress_ctx = reading};
    struct sm_error err;
    if (sm_trace_open(trace, path, &options, &err) != SM_OK) {
        *trace = NULL;
        return sm_trouble("%s", err.text);
    }
    return SM_EXIT_OK;
}

/* "Not closed" alone loses nothing when the side file was read. */
static bool is_loss(const struct sm_trace *trace, const struct sm_loss *loss) {
    const char *path;
    return loss->kind != SM_LOSS_EXTENT || !sm_trace_used_tail(trace, &path);
}

bool sm_trace_input_lost(const struct sm_trace *trace) {
    const struct sm_loss *losses;
    size_t n = sm_trace_losses(trace, &losses);
    for (size_t i = 0; i < n; i++) {
        if (is_loss(trace, &losses[i]))
            return true;
    }
    return false;
}

int sm_trace_input_close(const struct sm_invocation *in, struct sm_trace *trace, bool quiet,
                         int code) {
    const struct sm_loss *losses;
    size_t n = sm_trace_losses(trace, &losses);
    for (size_t i = 0; !quiet && i < n && i < LOSSES_TOLD; i++)
        sm_complain("statmem: %s%s: %s", is_loss(trace, &losses[i]) ? "lost, " : "",
                    sm_loss_kind_name(losses[i].kind), losses[i].detail);
    if (!quiet && n > LOSSES_TOLD)
        sm_complain("statmem: and %zu more; 'statmem info' lists all", n - LOSSES_TOLD);
    bool lost = sm_trace_input_lost(trace);
    sm_trace_free(trace);
    return lost && code == SM_EXIT_OK && sm_option_given(in, "strict") ? SM_EXIT_TROUBLE : code;
}

bool sm_want_colours(const struct sm_invocation *in) {
    const char *when = sm_option_value(in, "color");
    if (when != NULL && strcmp(when, "auto") != 0)
        return strcmp(when, "always") == 0;
    return sm_terminal_colours(STDOUT_FILENO);
}

bool sm_option_u64(const struct sm_invocation *in, const char *long_name, uint64_t *x) {
    const char *value = sm_option_value(in, long_name);
    if (value == NULL || sm_parse_u64(value, x))
        return true;
    sm_usage_error(in, "--%s wants a whole number, not '%.60s'", long_name, value);
    return false;
}

bool sm_option_duration(const struct sm_invocation *in, const char *long_name, int64_t *ns,
                        bool *given) {
    const char *value = sm_option_value(in, long_name);
    *given = value != NULL;
    if (value == NULL || sm_parse_duration(value, ns))
        return true;
    sm_usage_error(in, "--%s wants a time such as 10s, 500ms or 2m, not '%.60s'", long_name, value);
    return false;
}
