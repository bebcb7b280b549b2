/* statmem view: the viewer. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/trace_input.h"
#include "view/server.h"

#define DEFAULT_PORT 8080
#define MAX_ROOTS 32

static const struct sm_option options[] = {
    {'p', "port", SM_ARG_NUMBER, "N", NULL,
     "Listen on port N only (the first free one from 8080 on)"},
    {0, "bind", SM_ARG_TEXT, "ADDRESS", NULL,
     "Listen on ADDRESS rather than on the loopback; whoever has the token can read the traces"},
    {0, "no-open", SM_ARG_NONE, NULL, NULL, "Do not open a browser"},
    {0, "follow", SM_ARG_NONE, NULL, NULL, "Read the trace again whenever it has grown"},
    {0, "source-root", SM_ARG_FILE, "DIR", NULL,
     "Show source files that lie below DIR; may be repeated"},
    {0, "no-cache", SM_ARG_NONE, NULL, NULL, "Neither read nor write a cache file"},
    {0},
};

#ifdef SM_HAVE_VIEWER
extern char **environ;

/* The desktop's own way; in its absence the address on the terminal will do. */
static void open_browser(const char *url) {
    if (getenv("DISPLAY") == NULL && getenv("WAYLAND_DISPLAY") == NULL)
        return;
    char *const argv[] = {(char *)"xdg-open", (char *)(uintptr_t)url, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnp(&pid, "xdg-open", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
}

static void block(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN); /* of the browser's starter nothing is to be known */
}

static int serve(const struct sm_invocation *in, struct sm_api *api, struct sm_server_options *o) {
    struct sm_server *server;
    struct sm_error err;
    sigset_t set;
    int received;
    if (sm_server_start(&server, api, o, &err) != SM_OK)
        return sm_trouble("%s", err.text);
    if (o->bind != NULL)
        sm_complain(
            "statmem: WARNING: listening on %s: everyone who gets the address below can read these "
            "traces; the connection is not encrypted",
            o->bind);
    printf("%s\n", sm_server_url(server));
    fflush(stdout);
    if (isatty(STDERR_FILENO))
        sm_complain("statmem: open this address in a browser; Ctrl-C ends");
    if (!sm_option_given(in, "no-open"))
        open_browser(sm_server_url(server));
    block(&set);
    sigwait(&set, &received);
    sm_traces_wake(api->traces);
    sm_server_free(server);
    return SM_EXIT_OK;
}

/* A trace that cannot be opened at all is told before anything starts. */
static int check(char *const *paths, int n) {
    for (int i = 0; i < n; i++) {
        struct stat st;
        if (stat(paths[i], &st) != 0)
            return sm_trouble("%.300s: %s", paths[i], strerror(errno));
        if (S_ISDIR(st.st_mode))
            return sm_trouble("%.300s is a directory, not a trace", paths[i]);
    }
    return SM_EXIT_OK;
}

static int run(const struct sm_invocation *in) {
    uint64_t port = DEFAULT_PORT;
    const char *roots[MAX_ROOTS];
    uint32_t n_roots = 0;
    if (!sm_option_u64(in, "port", &port))
        return SM_EXIT_USAGE;
    if (port == 0 || port > UINT16_MAX)
        return sm_usage_error(in, "--port wants 1 to 65535");
    while (n_roots < MAX_ROOTS &&
           (roots[n_roots] = sm_option_nth(in, "source-root", n_roots)) != NULL)
        n_roots++;
    char *newest = (char *)(uintptr_t)sm_trace_input_path(in);
    char *const *paths = in->n_arguments > 0 ? in->arguments : &newest;
    int n = in->n_arguments > 0 ? in->n_arguments : 1;
    if (paths[0][0] == 0)
        return sm_usage_error(in, "name a trace file (there is no *.stm in this directory)");
    int code = check(paths, n);
    if (code != SM_EXIT_OK)
        return code;
    sigset_t set;
    block(&set); /* before threads are made: all of them inherit it */
    struct sm_api api = {.traces = sm_traces_new(paths, (uint32_t)n, sm_option_given(in, "follow"),
                                                 sm_option_given(in, "no-cache")),
                         .source_roots = roots,
                         .n_source_roots = n_roots};
    struct sm_server_options o = {.bind = sm_option_value(in, "bind"),
                                  .port = (uint16_t)port,
                                  .only_port = sm_option_given(in, "port")};
    code = serve(in, &api, &o);
    sm_traces_free(api.traces);
    return code;
}

#else
static int run(const struct sm_invocation *in) {
    return sm_trouble("this statmem was built without libmicrohttpd, and so without the viewer");
}
#endif

const struct sm_command sm_cmd_view = {
    .name = "view",
    .summary = "look at traces in a browser",
    .usage = "[OPTION]... [TRACE]...",
    .description = "Serves a page with everything the other commands show, and prints its address. "
                   "Only this machine can reach it, "
                   "and only with the token in the address, which is new in every run. Several "
                   "traces can be compared. Nothing is "
                   "fetched from anywhere. docs/api.md documents the interface behind the page.",
    .examples = "statmem view prog.stm\n"
                "    open the viewer\n"
                "statmem view --source-root ~/src/prog old.stm new.stm\n"
                "    two traces, with source lines\n"
                "statmem view --follow prog.stm\n"
                "    while the program still runs\n",
    .options = options,
    .arguments_are_files = true,
    .run = run,
};
