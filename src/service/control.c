/* See control.h. Datagrams, as a connection would take the lowest free descriptor of the program for a while. */
#include "service/control.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "record/descriptors.h"
#include "record/recorder.h"

static const struct sm_control_actions *actions;
static atomic_uint toggles; /* signals since the last turn; relaxed: a number alone */
static int socket_fd = -1;
static struct sm_file_id socket_id;
static bool by_signal;
static pid_t opened_by;
static char socket_path[sizeof((struct sockaddr_un *)0)->sun_path];

/* Makes the folder; false unless it is this user's alone. */
static bool own_folder(const char *path) {
    struct stat st;
    mkdir(path, 0700);
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & 077) == 0;
}

static bool open_in(const char *runtime_dir) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char folder[sizeof address.sun_path];
    int on = 1;
    if (!sm_control_folder(folder, sizeof folder, runtime_dir, geteuid()) || !own_folder(folder) ||
        !sm_control_path(address.sun_path, sizeof address.sun_path, runtime_dir, geteuid(),
                         (unsigned)getpid()))
        return false;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    fd = sm_descriptor_high(fd);
    unlink(address.sun_path); /* of an earlier process with this number */
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return false;
    }
    sm_descriptor_identify(fd, &socket_id);
    memcpy(socket_path, address.sun_path, sizeof socket_path);
    socket_fd = fd;
    opened_by = getpid();
    return true;
}

void sm_control_open(const struct sm_control_actions *a) {
    actions = a;
    const char *runtime_dir = getenv("XDG_RUNTIME_DIR");
    if (!(runtime_dir != NULL && runtime_dir[0] == '/' && open_in(runtime_dir)))
        open_in(NULL);
}

static void on_signal(int ignored) {
    (void)ignored;
    atomic_fetch_add_explicit(&toggles, 1, memory_order_relaxed);
}

void sm_control_toggle_by(int signal_number) {
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&a.sa_mask);
    sigaction(signal_number, &a, NULL);
    by_signal = true;
}

bool sm_control_is_open(void) {
    return socket_fd >= 0 || by_signal;
}

void sm_control_close(void) {
    if (socket_fd < 0)
        return;
    if (opened_by == getpid())
        unlink(socket_path);
    if (sm_descriptor_is(socket_fd, &socket_id))
        close(socket_fd);
    socket_fd = -1;
}

/* True when the sender is this process' user, or root. */
static bool may_ask(struct msghdr *m) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        struct ucred who;
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
            continue;
        memcpy(&who, CMSG_DATA(c), sizeof who);
        return who.uid == geteuid() || who.uid == 0;
    }
    return false;
}

static bool act(const char *request, char *text, size_t bytes) {
    if (strcmp(request, "status") == 0)
        return actions->status(text, bytes);
    if (strcmp(request, "start") == 0)
        return actions->start(text, bytes);
    if (strcmp(request, "stop") == 0)
        return actions->stop(text, bytes);
    if (strncmp(request, "mark ", 5) == 0) {
        bool recording = sm_recorder_active();
        if (recording)
            sm_recorder_process_mark(request + 5, strlen(request + 5));
        sm_control_append(text, bytes, recording ? "marked" : "nothing is being recorded");
        return recording;
    }
    sm_control_append(text, bytes, "the request is not understood");
    return false;
}

void sm_control_serve(void) {
    enum { MOST = 16 }; /* in a turn */
    if (atomic_exchange_explicit(&toggles, 0, memory_order_relaxed) % 2 == 1) {
        char ignored[SM_CONTROL_BYTES] = "";
        if (!actions->stop(ignored, sizeof ignored))
            actions->start(ignored, sizeof ignored);
    }
    for (int i = 0; i < MOST && sm_descriptor_is(socket_fd, &socket_id); i++) {
        char request[SM_CONTROL_BYTES], answer[SM_CONTROL_BYTES] = "", text[SM_CONTROL_BYTES] = "";
        union {
            char bytes[CMSG_SPACE(sizeof(struct ucred))];
            struct cmsghdr aligned;
        } room;
        struct sockaddr_un from;
        struct iovec part = {request, sizeof request - 1};
        struct msghdr m = {.msg_name = &from,
                           .msg_namelen = sizeof from,
                           .msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = room.bytes,
                           .msg_controllen = sizeof room.bytes};
        ssize_t n = recvmsg(socket_fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0)
            return;
        request[n] = 0;
        if (!may_ask(&m) || m.msg_namelen <= sizeof(sa_family_t))
            continue;
        bool done = act(request, text, sizeof text);
        sm_control_append(answer, sizeof answer, done ? "ok " : "no ");
        sm_control_append(answer, sizeof answer, text);
        sendto(socket_fd, answer, strlen(answer), MSG_DONTWAIT | MSG_NOSIGNAL,
               (struct sockaddr *)&from, m.msg_namelen);
    }
}
