/* See server.h. A thread per connection: answers are computed where they are asked for, event streams sleep in theirs.

   Who may ask: the Host header must be an address of ours, so that a page elsewhere cannot reach us by a
   name that it makes point here; and the token must come along, in the URL once, then in a cookie that is
   sent to pages of ours only. Cookies do not tell ports apart, so the port is in the cookie's name. */
#include "view/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/memory.h"

#define MAX_CONNECTIONS 128
#define MAX_ANSWERS 32 /* being computed at once */
#define TIMEOUT_S 60
#define CONNECTION_BYTES (160u << 10) /* a filter of the largest size, encoded */
#define PORTS_TRIED 100
#define EVENT_WAIT_MS 15000

struct sm_server {
    const struct sm_api *api;
    struct MHD_Daemon *daemon;
    char token[65];
    char cookie[48];    /* its name */
    char hosts[4][128]; /* that may be asked for */
    char url[256];
    uint16_t port;
    int answering; /* answers being computed; relaxed: a limit, nothing hangs on it */
};

static void random_token(char to[65]) {
    unsigned char bytes[16];
    size_t got = 0;
    while (got < sizeof bytes) {
        ssize_t n = getrandom(bytes + got, sizeof bytes - got, 0);
        if (n > 0)
            got += (size_t)n;
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(to + 2 * i, 3, "%02x", bytes[i]);
}

/* Takes the same time wherever they differ. */
static bool same_token(const char *a, const char *b) {
    size_t n = strlen(b);
    unsigned char difference = strlen(a) != n;
    for (size_t i = 0; i < n && a[i] != 0; i++)
        difference |= (unsigned char)(a[i] ^ b[i]);
    return difference == 0;
}

/* ---- answers ---- */

static enum MHD_Result send_response(struct MHD_Connection *c, unsigned status,
                                     struct MHD_Response *r, const char *type) {
    static const char *const headers[][2] = {
        {"Content-Security-Policy",
         "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
         "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
         "frame-ancestors 'none'"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cache-Control", "no-store"},
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        MHD_add_response_header(r, headers[i][0], headers[i][1]);
    if (type != NULL)
        MHD_add_response_header(r, "Content-Type", type);
    enum MHD_Result result = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return result;
}

static enum MHD_Result send_text(struct MHD_Connection *c, unsigned status, const char *text) {
    struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
                                                             MHD_RESPMEM_MUST_COPY);
    return r == NULL ? MHD_NO : send_response(c, status, r, "text/plain; charset=utf-8");
}

static enum MHD_Result send_file(struct MHD_Connection *c, const char *path) {
    if (strcmp(path, "/") == 0)
        path = "/index.html";
    for (unsigned i = 0; i < sm_n_page_files; i++) {
        const struct sm_page_file *f = &sm_page_files[i];
        if (strcmp(f->path, path) != 0)
            continue;
        struct MHD_Response *r = MHD_create_response_from_buffer(
            f->bytes, (void *)(uintptr_t)f->data, MHD_RESPMEM_PERSISTENT);
        return r == NULL ? MHD_NO : send_response(c, MHD_HTTP_OK, r, f->type);
    }
    return send_text(c, MHD_HTTP_NOT_FOUND, "there is nothing here\n");
}

struct parameters {
    struct sm_parameter list[64];
    uint32_t n;
};

static enum MHD_Result take_parameter(void *ctx, enum MHD_ValueKind kind, const char *name,
                                      const char *value) {
    struct parameters *p = ctx;
    if (p->n == sizeof p->list / sizeof *p->list)
        return MHD_NO;
    p->list[p->n++] = (struct sm_parameter){(char *)(uintptr_t)name,
                                            (char *)(uintptr_t)(value != NULL ? value : "")};
    return MHD_YES;
}

static enum MHD_Result send_answer(struct sm_server *s, struct MHD_Connection *c,
                                   const char *path) {
    struct parameters p = {.n = 0};
    struct sm_buffer out;
    MHD_get_connection_values(c, MHD_GET_ARGUMENT_KIND, take_parameter, &p);
    struct sm_request request = {.path = path, .parameters = p.list, .n_parameters = p.n};
    sm_buffer_init(&out, -1);
    /* Relaxed, both: a limit of work at hand, nothing else depends on it. */
    int before = __atomic_fetch_add(&s->answering, 1, __ATOMIC_RELAXED);
    unsigned status = 503;
    bool profile = false;
    if (before < MAX_ANSWERS)
        profile = sm_api_profile(s->api, &request, &out, &status);
    if (before < MAX_ANSWERS && !profile)
        status = sm_api_answer(s->api, &request, &out);
    else if (before >= MAX_ANSWERS)
        sm_buffer_text(&out, "{\"error\":\"too much is asked at once; try again\"}\n");
    __atomic_fetch_sub(&s->answering, 1, __ATOMIC_RELAXED);
    struct MHD_Response *r =
        MHD_create_response_from_buffer(out.used, out.data, MHD_RESPMEM_MUST_COPY);
    sm_buffer_release(&out);
    return r == NULL ? MHD_NO
                     : send_response(c, status, r,
                                     profile && status == 200 ? "application/octet-stream"
                                                              : "application/json");
}

/* ---- events ---- */

struct events {
    struct sm_traces *traces;
    uint64_t seen;
    bool begun;
};

static ssize_t next_event(void *ctx, uint64_t position, char *to, size_t max) {
    struct events *e = ctx;
    const char *text = ": waiting\n\n";
    if (!e->begun) {
        e->begun = true;
        e->seen = sm_traces_wait(e->traces, UINT64_MAX, 0);
        text = "event: traces\ndata: {}\n\n";
    } else {
        uint64_t now = sm_traces_wait(e->traces, e->seen, EVENT_WAIT_MS);
        if (sm_traces_stopping(e->traces))
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (now != e->seen)
            text = "event: traces\ndata: {}\n\n";
        e->seen = now;
    }
    size_t n = strlen(text) < max ? strlen(text) : max;
    memcpy(to, text, n);
    return (ssize_t)n;
}

static enum MHD_Result send_events(struct sm_server *s, struct MHD_Connection *c) {
    struct events *e = sm_alloc_zero(1, sizeof *e);
    e->traces = s->api->traces;
    struct MHD_Response *r =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 256, next_event, e, free);
    if (r == NULL) {
        free(e);
        return MHD_NO;
    }
    return send_response(c, MHD_HTTP_OK, r, "text/event-stream");
}

/* ---- who may ask ---- */

static bool host_allowed(const struct sm_server *s, struct MHD_Connection *c) {
    const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host");
    for (size_t i = 0; host != NULL && i < sizeof s->hosts / sizeof *s->hosts; i++) {
        if (s->hosts[i][0] != 0 && strcasecmp(host, s->hosts[i]) == 0)
            return true;
    }
    return false;
}

enum right { NOBODY, BY_URL, BY_COOKIE };

static enum right right_of(const struct sm_server *s, struct MHD_Connection *c) {
    const char *cookie = MHD_lookup_connection_value(c, MHD_COOKIE_KIND, s->cookie);
    const char *bearer = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
    const char *url = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "token");
    if (cookie != NULL && same_token(cookie, s->token))
        return BY_COOKIE;
    if (bearer != NULL && strncmp(bearer, "Bearer ", 7) == 0 && same_token(bearer + 7, s->token))
        return BY_COOKIE;
    return url != NULL && same_token(url, s->token) ? BY_URL : NOBODY;
}

/* The token goes from the address into the cookie: an address that is copied gives no right away. */
static enum MHD_Result move_token(const struct sm_server *s, struct MHD_Connection *c,
                                  const char *path) {
    char cookie[256];
    struct MHD_Response *r = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (r == NULL)
        return MHD_NO;
    snprintf(cookie, sizeof cookie, "%s=%s; Path=/; HttpOnly; SameSite=Strict", s->cookie,
             s->token);
    MHD_add_response_header(r, "Set-Cookie", cookie);
    MHD_add_response_header(r, "Location", strcmp(path, "/index.html") == 0 ? path : "/");
    return send_response(c, MHD_HTTP_FOUND, r, NULL);
}

static enum MHD_Result handle(void *ctx, struct MHD_Connection *c, const char *path,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_bytes, void **request) {
    struct sm_server *s = ctx;
    static int begun;
    /* The first call is for looking at the headers only. */
    if (*request == NULL) {
        *request = &begun;
        return MHD_YES;
    }
    if (*upload_bytes > 0) {
        *upload_bytes = 0; /* read and forgotten; the answer is below */
        return MHD_YES;
    }
    if (!host_allowed(s, c))
        return send_text(c, MHD_HTTP_FORBIDDEN, "this server is not known by that name\n");
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return send_text(c, MHD_HTTP_METHOD_NOT_ALLOWED, "GET only\n");
    enum right right = right_of(s, c);
    if (right == NOBODY)
        return send_text(c, MHD_HTTP_UNAUTHORIZED,
                         "open the address that `statmem view` has printed, with its token\n");
    bool api = strncmp(path, "/api/", 5) == 0 || strncmp(path, "/debug/pprof/", 13) == 0;
    if (right == BY_URL && !api)
        return move_token(s, c, path);
    if (strcmp(path, "/api/v1/events") == 0)
        return send_events(s, c);
    return api ? send_answer(s, c, path) : send_file(c, path);
}

/* ---- start and end ---- */

static bool is_loopback(const char *bind) {
    return bind == NULL || strcmp(bind, "127.0.0.1") == 0 || strcmp(bind, "localhost") == 0;
}

static struct MHD_Daemon *listen_on(struct sm_server *s, const char *bind, uint16_t port) {
    struct sockaddr_storage address = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL;
    if (is_loopback(bind))
        bind = "127.0.0.1";
    if (inet_pton(AF_INET, bind, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
    } else if (inet_pton(AF_INET6, bind, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        flags |= MHD_USE_IPv6;
    } else {
        errno = EADDRNOTAVAIL;
        return NULL;
    }
    return MHD_start_daemon(flags, port, NULL, NULL, handle, s, MHD_OPTION_SOCK_ADDR, &address,
                            MHD_OPTION_CONNECTION_LIMIT, (unsigned)MAX_CONNECTIONS,
                            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_S,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
                            MHD_OPTION_END);
}

static void name_hosts(struct sm_server *s, const char *bind) {
    unsigned port = s->port;
    const char *shown = is_loopback(bind) ? "127.0.0.1" : bind;
    bool v6 = strchr(shown, ':') != NULL;
    snprintf(s->hosts[0], sizeof s->hosts[0], "127.0.0.1:%u", port);
    snprintf(s->hosts[1], sizeof s->hosts[1], "localhost:%u", port);
    snprintf(s->hosts[2], sizeof s->hosts[2], "[::1]:%u", port);
    snprintf(s->hosts[3], sizeof s->hosts[3], v6 ? "[%s]:%u" : "%s:%u", shown, port);
    snprintf(s->url, sizeof s->url, "http://%s/?token=%s", s->hosts[3], s->token);
    snprintf(s->cookie, sizeof s->cookie, "statmem_%u", port);
}

enum sm_status sm_server_start(struct sm_server **out, const struct sm_api *api,
                               const struct sm_server_options *o, struct sm_error *err) {
    struct sm_server *s = sm_alloc_zero(1, sizeof *s);
    s->api = api;
    *out = NULL;
    if (o->token != NULL)
        snprintf(s->token, sizeof s->token, "%s", o->token);
    else
        random_token(s->token);
    unsigned tries = o->only_port ? 1 : PORTS_TRIED;
    for (unsigned i = 0; i < tries && s->daemon == NULL && o->port + i <= UINT16_MAX; i++) {
        s->port = (uint16_t)(o->port + i);
        errno = 0;
        s->daemon = listen_on(s, o->bind, s->port);
        if (s->daemon == NULL && errno != EADDRINUSE)
            break;
    }
    if (s->daemon == NULL) {
        sm_error_set(err, "cannot listen on %s port %u: %s%s",
                     is_loopback(o->bind) ? "127.0.0.1" : o->bind, s->port, strerror(errno),
                     o->only_port ? "; without --port the next free one is taken" : "");
        free(s);
        return SM_FAILED;
    }
    name_hosts(s, o->bind);
    *out = s;
    return SM_OK;
}

const char *sm_server_url(const struct sm_server *s) {
    return s->url;
}

void sm_server_free(struct sm_server *s) {
    if (s == NULL)
        return;
    MHD_stop_daemon(s->daemon);
    free(s);
}
