/* statmem ctl: asks the recorder in a running program, by its socket (service/control.h). */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/output.h"
#include "service/control.h"
#include "util/json.h"
#include "util/number.h"

enum { WAIT_MS = 5000 };

static const struct sm_option options[] = {
    {'j', "json", SM_ARG_NONE, NULL, NULL, "Print JSON"},
    {0},
};

/* The socket of a process whose user is `uid` now; it may have begun as root, or as who asks. */
static bool find_socket(struct sockaddr_un *to, uint64_t pid, uid_t uid) {
    const uid_t users[] = {uid, geteuid(), 0};
    struct stat st;
    for (size_t i = 0; i < sizeof users / sizeof *users; i++) {
        char of_user[64];
        snprintf(of_user, sizeof of_user, "/run/user/%u", (unsigned)users[i]);
        const char *runtime_dirs[] = {getenv("XDG_RUNTIME_DIR"), of_user, NULL};
        for (size_t k = 0; k < sizeof runtime_dirs / sizeof *runtime_dirs; k++) {
            if (sm_control_path(to->sun_path, sizeof to->sun_path, runtime_dirs[k], users[i],
                                (unsigned)pid) &&
                lstat(to->sun_path, &st) == 0 && S_ISSOCK(st.st_mode))
                return true;
        }
    }
    return false;
}

static int cannot(uint64_t pid, const char *why) {
    return sm_trouble("process %llu: %s", (unsigned long long)pid, why);
}

/* Sends the request and waits for its answer, in `answer`. */
static int ask(uint64_t pid, const char *request, char *answer, size_t bytes) {
    struct sockaddr_un to = {.sun_family = AF_UNIX}, own = {.sun_family = AF_UNIX};
    struct stat st;
    char proc[64];
    snprintf(proc, sizeof proc, "/proc/%llu", (unsigned long long)pid);
    if (stat(proc, &st) != 0)
        return cannot(pid, "there is no such process");
    if (!find_socket(&to, pid, st.st_uid))
        return cannot(pid,
                      "no recorder answers for it: it is not recorded by statmem record, or with "
                      "--counters-interval 0, or with another XDG_RUNTIME_DIR, or is "
                      "another user's");
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    /* A name that the kernel makes up, for the answer. */
    if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof(sa_family_t)) != 0 ||
        sendto(fd, request, strlen(request), 0, (struct sockaddr *)&to, sizeof to) < 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return cannot(pid, error == ECONNREFUSED ? "it is not recorded any more" : strerror(error));
    }
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ssize_t n = poll(&p, 1, WAIT_MS) == 1 ? recv(fd, answer, bytes - 1, 0) : -1;
    close(fd);
    if (n < 0)
        return cannot(pid, "no answer within 5 s: it is stopped, or does not run as your user");
    answer[n] = 0;
    return SM_EXIT_OK;
}

static int run(const struct sm_invocation *in) {
    static const char *const verbs[] = {"start", "stop", "status", "mark"};
    uint64_t pid;
    size_t verb = 0;
    char request[SM_CONTROL_BYTES] = "", answer[SM_CONTROL_BYTES + 1];
    if (in->n_arguments < 2 || !sm_parse_u64(in->arguments[0], &pid) || pid == 0 || pid > INT32_MAX)
        return sm_usage_error(in, "give the process id and start, stop, status or mark TEXT");
    while (verb < 4 && strcmp(verbs[verb], in->arguments[1]) != 0)
        verb++;
    bool mark = verb == 3;
    if (verb == 4)
        return sm_usage_error(in, "start, stop, status or mark TEXT, not '%.60s'",
                              in->arguments[1]);
    if (in->n_arguments != (mark ? 3 : 2))
        return sm_usage_error(in, mark ? "mark wants one TEXT" : "too many arguments");
    if (mark && in->arguments[2][0] == 0)
        return sm_usage_error(in, "mark wants a text");
    if (mark && strlen(in->arguments[2]) > SM_CONTROL_BYTES - 16)
        return sm_usage_error(in, "the text is longer than %d bytes", SM_CONTROL_BYTES - 16);
    sm_control_append(request, sizeof request, verbs[verb]);
    if (mark) {
        sm_control_append(request, sizeof request, " ");
        sm_control_append(request, sizeof request, in->arguments[2]);
    }
    int code = ask(pid, request, answer, sizeof answer);
    if (code != SM_EXIT_OK)
        return code;
    bool done = strncmp(answer, "ok ", 3) == 0;
    const char *text = strlen(answer) > 3 ? answer + 3 : "";
    if (!sm_option_given(in, "json") && !done)
        return cannot(pid, text);
    struct sm_buffer out;
    struct sm_json j;
    sm_buffer_init(&out, STDOUT_FILENO);
    if (sm_option_given(in, "json")) {
        sm_json_init(&j, &out, true);
        sm_json_open(&j, NULL, '{');
        sm_json_u64(&j, "pid", pid);
        sm_json_bool(&j, "done", done);
        sm_json_text(&j, "answer", text);
        sm_json_close(&j, '}');
        sm_json_end(&j);
    } else {
        sm_buffer_printf(&out, "%s\n", text);
    }
    code = sm_output_end(&out);
    return done ? code : SM_EXIT_TROUBLE;
}

const struct sm_command sm_cmd_ctl = {
    .name = "ctl",
    .summary = "start, stop and mark a recording while the program runs",
    .usage = "[OPTION]... PID start|stop|status|mark TEXT",
    .description =
        "Talks to the recorder in a program that runs under statmem record. `stop` ends the "
        "recording "
        "and closes its trace; the program goes on. `start` begins the next window, in a trace of "
        "its own: "
        "prog.PID.stm.2, then .3, and so on. `mark` puts a note into the trace, which timelines "
        "show. "
        "`status` tells what is being recorded.\n"
        "\n"
        "PID is the program's, as in the name of its trace. Only its user and root are answered. "
        "A window holds what is allocated in it; what was allocated before is not in it, nor its "
        "end.",
    .examples = "statmem ctl 4711 stop\n"
                "    enough seen\n"
                "statmem ctl 4711 start\n"
                "    another window\n"
                "statmem ctl 4711 mark 'cache warmed up'\n"
                "    a note at this time\n",
    .options = options,
    .run = run,
};
