/* statmem cache: what is kept of large traces, so that they open at once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analyze/cache.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/trace_input.h"
#include "util/json.h"
#include "util/number.h"
#include "util/table.h"
#include "util/terminal.h"
#include "util/text.h"

static const struct sm_option options[] = {
    {'r', "remove", SM_ARG_NONE, NULL, NULL,
     "Remove the files of the named traces (or the named cache files)"},
    {0, "clear", SM_ARG_NONE, NULL, NULL, "Remove all of them"},
    {0, "max", SM_ARG_TEXT, "SIZE", NULL,
     "Remove those used longest ago until at most SIZE stays, and those of other versions"},
    {0, "bytes", SM_ARG_NONE, NULL, NULL, "Show sizes in bytes"},
    {'j', "json", SM_ARG_NONE, NULL, NULL, "Print JSON"},
    SM_COLOR_OPTION,
    {0},
};

static void print_json(struct sm_buffer *out, const char *directory,
                       const struct sm_cache_list *l) {
    struct sm_json j;
    sm_json_init(&j, out, false);
    sm_json_open(&j, NULL, '{');
    sm_json_text(&j, "directory", directory);
    sm_json_u64(&j, "bytes", l->bytes);
    sm_json_open(&j, "files", '[');
    for (size_t i = 0; i < l->n; i++) {
        const struct sm_cache_entry *e = &l->list[i];
        sm_json_open(&j, NULL, '{');
        sm_json_text(&j, "name", e->name);
        sm_json_text(&j, "trace", e->trace_path);
        sm_json_u64(&j, "bytes", e->bytes);
        sm_json_i64(&j, "used_s", e->used_s);
        sm_json_bool(&j, "usable", e->usable);
        sm_json_bool(&j, "trace_exists", e->trace_path[0] != 0 && access(e->trace_path, F_OK) == 0);
        sm_json_close(&j, '}');
    }
    sm_json_close(&j, ']');
    sm_json_close(&j, '}');
    sm_json_end(&j);
}

static void print_text(struct sm_buffer *out, const struct sm_invocation *in, const char *directory,
                       const struct sm_cache_list *l) {
    char a[SM_NUMBER_BYTES];
    bool bytes = sm_option_given(in, "bytes");
    sm_text_safe(out, directory, strlen(directory));
    sm_buffer_printf(out, ": %zu file%s, %s\n", l->n, l->n == 1 ? "" : "s",
                     sm_number_bytes(a, (double)l->bytes, bytes));
    if (l->n == 0)
        return;
    struct sm_table t;
    sm_table_init(&t, 3, sm_terminal_width(STDOUT_FILENO, 120), sm_want_colours(in),
                  sm_terminal_utf8());
    t.align[0] = SM_RIGHT;
    sm_buffer_char(out, '\n');
    sm_table_cell(&t, SM_DIM, "size");
    sm_table_cell(&t, SM_DIM, "used");
    sm_table_cell(&t, SM_DIM, "trace");
    for (size_t i = 0; i < l->n; i++) {
        const struct sm_cache_entry *e = &l->list[i];
        struct tm local;
        time_t when = (time_t)e->used_s;
        char date[32] = "?";
        if (localtime_r(&when, &local) != NULL)
            strftime(date, sizeof date, "%Y-%m-%d %H:%M", &local);
        sm_table_cell(&t, SM_BOLD, sm_number_bytes(a, (double)e->bytes, bytes));
        sm_table_cell(&t, SM_DIM, date);
        if (!e->usable)
            sm_table_cellf(&t, SM_YELLOW, "%s, of another version", e->name);
        else if (access(e->trace_path, F_OK) != 0)
            sm_table_cellf(&t, SM_YELLOW, "%.900s, which is gone", e->trace_path);
        else
            sm_table_cell(&t, SM_CYAN, e->trace_path);
    }
    sm_table_print(&t, out);
    sm_table_release(&t);
}

static int show(const struct sm_invocation *in, const char *directory) {
    struct sm_cache_list l;
    struct sm_buffer out;
    sm_cache_list(directory, &l);
    sm_buffer_init(&out, STDOUT_FILENO);
    if (sm_option_given(in, "json"))
        print_json(&out, directory, &l);
    else
        print_text(&out, in, directory, &l);
    sm_cache_list_release(&l);
    return sm_output_end(&out);
}

static int remove_entry(const char *directory, const struct sm_cache_entry *e) {
    if (sm_cache_remove(directory, e->name) || errno == ENOENT)
        return SM_EXIT_OK;
    return sm_trouble("cannot remove %s/%s: %s", directory, e->name, strerror(errno));
}

/* The files of a trace by its path (which need not exist any more), or one by its own name. */
static int remove_named(const char *directory, const struct sm_cache_list *l, const char *name) {
    char *path = realpath(name, NULL);
    int code = SM_EXIT_OK;
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        const struct sm_cache_entry *e = &l->list[i];
        if (strcmp(e->name, name) != 0 && strcmp(e->trace_path, name) != 0 &&
            (path == NULL || strcmp(e->trace_path, path) != 0))
            continue;
        n++;
        if (remove_entry(directory, e) != SM_EXIT_OK)
            code = SM_EXIT_TROUBLE;
    }
    free(path);
    return n > 0 ? code : sm_trouble("nothing is cached of %.300s", name);
}

static int change(const struct sm_invocation *in, const char *directory) {
    struct sm_cache_list l;
    int code = SM_EXIT_OK;
    sm_cache_list(directory, &l);
    for (int i = 0; i < in->n_arguments; i++) {
        if (remove_named(directory, &l, in->arguments[i]) != SM_EXIT_OK)
            code = SM_EXIT_TROUBLE;
    }
    for (size_t i = 0; sm_option_given(in, "clear") && i < l.n; i++) {
        if (remove_entry(directory, &l.list[i]) != SM_EXIT_OK)
            code = SM_EXIT_TROUBLE;
    }
    sm_cache_list_release(&l);
    return code;
}

static int run(const struct sm_invocation *in) {
    uint64_t max = 0;
    const char *text = sm_option_value(in, "max");
    bool removes = sm_option_given(in, "remove");
    if (text != NULL && !sm_parse_bytes(text, 0, &max))
        return sm_usage_error(in, "--max wants a size such as 10GB, not '%.60s'", text);
    if (removes && in->n_arguments == 0)
        return sm_usage_error(in, "--remove of which traces? (--clear removes all)");
    if (!removes && in->n_arguments > 0)
        return sm_usage_error(in, "'%.200s' without --remove", in->arguments[0]);
    char *directory = sm_cache_directory();
    if (directory == NULL)
        return sm_trouble("there is no cache: STATMEM_CACHE is empty, or its directory cannot be "
                          "made or is not yours");
    int code = SM_EXIT_OK;
    if (removes || sm_option_given(in, "clear"))
        code = change(in, directory);
    if (text != NULL)
        sm_cache_prune(directory, max);
    if (code == SM_EXIT_OK && !removes)
        code = show(in, directory);
    free(directory);
    return code;
}

const struct sm_command sm_cmd_cache = {
    .name = "cache",
    .summary = "list and remove what is kept of large traces",
    .usage = "[OPTION]... [TRACE]...",
    .description =
        "Reports keep the columns of a trace of 32 MB or more in a file, so that it opens at once "
        "the next time. Nothing but speed is lost when such a file goes. Those used longest ago "
        "are removed when they take more than 20 GiB together. They lie in STATMEM_CACHE, by "
        "default ~/.cache/statmem/columns; --no-cache of every report does without.",
    .examples = "statmem cache\n"
                "    what is there, used last first\n"
                "statmem cache --remove big.stm\n"
                "    forget this trace\n"
                "statmem cache --max 5GB\n"
                "    make room\n",
    .options = options,
    .arguments_are_files = true,
    .run = run,
};
