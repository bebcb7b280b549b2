/* statmem push: a trace's profile to a server. Credentials come from a file or the environment
   (STATMEM_AUTHORIZATION, docs/environment.md), never from the command line, which other users see. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/analysis_input.h"
#include "cli/output.h"
#include "export/export.h"
#include "export/http.h"

static const struct sm_option options[] = {
    {'t', "to", SM_ARG_CHOICE, "SERVER", "pyroscope|otlp",
     "What the server speaks (needed): Pyroscope's /ingest, or OTLP over HTTP"},
    {'u', "url", SM_ARG_TEXT, "URL", NULL, "The server, e.g. http://localhost:4040 (needed)"},
    {0, "name", SM_ARG_TEXT, "NAME", NULL,
     "pyroscope: the application's name (the program's file name)"},
    {0, "authorization", SM_ARG_FILE, "FILE", NULL,
     "A file whose first line is the value of the header Authorization, e.g. 'Bearer ...'"},
    {0, "attempts", SM_ARG_NUMBER, "N", NULL, "Try N times, with growing pauses (5)"},
    {0, "timeout", SM_ARG_NUMBER, "SECONDS", NULL, "Of one attempt (30)"},
    SM_WEIGHT_OPTION("allocated; of live memory: when the inuse kinds are looked at"),
    SM_FOLD_OPTION,
    SM_FILTER_OPTIONS_BUT_TO,
    SM_READING_OPTIONS,
    {0},
};

static void waiting(void *ctx, const char *why, double seconds) {
    (void)ctx;
    sm_complain("statmem: %s; trying again in %.1f s", why, seconds);
}

/* The secret's first line, in `to`; false when told. */
static bool authorization(const struct sm_invocation *in, char *to, size_t bytes) {
    const char *path = sm_option_value(in, "authorization");
    const char *given = getenv("STATMEM_AUTHORIZATION");
    to[0] = 0;
    if (path == NULL) {
        snprintf(to, bytes, "%s", given != NULL ? given : "");
    } else {
        FILE *f = fopen(path, "re");
        if (f == NULL || fgets(to, (int)bytes, f) == NULL) {
            if (f != NULL)
                fclose(f);
            sm_trouble("--authorization: %.200s cannot be read, or is empty", path);
            return false;
        }
        fclose(f);
    }
    to[strcspn(to, "\r\n")] = 0;
    return true;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Where the body goes: the base URL with the protocol's path, unless it has one of its own (OTLP). */
static void target(const struct sm_invocation *in, const struct sm_analysis *a, bool otlp,
                   struct sm_buffer *url) {
    const char *base = sm_option_value(in, "url"), *name = sm_option_value(in, "name");
    size_t n = strlen(base);
    while (n > 0 && base[n - 1] == '/')
        n--;
    sm_buffer_bytes(url, base, n);
    const char *host = strstr(base, "://");
    if (otlp) {
        if (host == NULL || memchr(host + 3, '/', (size_t)(base + n - host - 3)) == NULL)
            sm_buffer_text(url, "/v1development/profiles");
        return;
    }
    struct sm_buffer series;
    int64_t from = a->meta.start_real_ns / 1000000000;
    int64_t until = (a->meta.start_real_ns + a->last_ns) / 1000000000;
    sm_buffer_init(&series, -1);
    sm_buffer_printf(&series, "%s{host=%s,pid=%" PRIu64 "}",
                     name != NULL ? name : base_name(a->meta.executable), a->meta.host,
                     a->meta.pid);
    sm_buffer_text(url, "/ingest?name=");
    sm_http_escape(url, sm_buffer_string(&series));
    sm_buffer_printf(url, "&from=%" PRId64 "&until=%" PRId64 "&format=pprof&spyName=statmem", from,
                     until > from ? until : from + 1);
    sm_buffer_release(&series);
}

static int push(const struct sm_invocation *in, const struct sm_analysis_input *input,
                struct sm_http_post *post) {
    const struct sm_asked *asked = &input->asked;
    bool otlp = strcmp(sm_option_value(in, "to"), "otlp") == 0;
    struct sm_export x = {.a = asked->a,
                          .selection = &asked->selection,
                          .filter_text = asked->filter_text,
                          .hidden = asked->hidden,
                          .collapsed = asked->collapsed,
                          .fold_recursion = asked->fold_recursion,
                          .threads = asked->threads};
    uint32_t n;
    struct sm_error err;
    struct sm_buffer body, url;
    if (!sm_analysis_weights(in, input, "allocated", &x.weight, 1, &n))
        return SM_EXIT_USAGE;
    sm_buffer_init(&body, -1);
    sm_buffer_init(&url, -1);
    target(in, asked->a, otlp, &url);
    int code = SM_EXIT_OK;
    post->url = sm_buffer_string(&url);
    post->content_type = otlp ? "application/x-protobuf" : "application/octet-stream";
    post->gzip = otlp; /* a pprof file is compressed itself */
    if (sm_export_write(&x, otlp ? SM_EXPORT_OTLP : SM_EXPORT_PPROF, &body, &err) != SM_OK) {
        code = sm_trouble("%s", err.text);
    } else {
        post->body = body.data;
        post->bytes = body.used;
        struct sm_buffer answer, why;
        sm_buffer_init(&answer, -1);
        sm_buffer_init(&why, -1);
        post->answer = &answer;
        if (sm_http_post(post, &err) != SM_OK)
            code = sm_trouble("%.200s: nothing was stored as far as is known: %s",
                              sm_option_value(in, "url"), err.text);
        else if (otlp && sm_otlp_rejected(answer.data, answer.used, &why) > 0)
            code = sm_trouble("%.200s: the server took the request and threw the profile away%s%s",
                              sm_option_value(in, "url"), why.used > 0 ? ": " : "",
                              sm_buffer_string(&why));
        else if (why.used > 0)
            sm_complain("statmem: the server says: %s", sm_buffer_string(&why));
        sm_buffer_release(&answer);
        sm_buffer_release(&why);
    }
    sm_buffer_release(&body);
    sm_buffer_release(&url);
    return code;
}

static int run(const struct sm_invocation *in) {
    const char *url = sm_option_value(in, "url");
    uint64_t attempts = 5, timeout = 30;
    char secret[4096];
    if (sm_option_value(in, "to") == NULL || url == NULL)
        return sm_usage_error(in, "--to pyroscope or otlp, and --url are needed");
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return sm_usage_error(in, "--url begins with http:// or https://");
    if (strchr(url, '@') != NULL)
        return sm_usage_error(in, "a password on the command line is seen by others: use "
                                  "--authorization FILE or STATMEM_AUTHORIZATION");
    if (!sm_option_u64(in, "attempts", &attempts) || !sm_option_u64(in, "timeout", &timeout))
        return SM_EXIT_USAGE;
    if (attempts < 1 || attempts > 20 || timeout < 1 || timeout > 3600)
        return sm_usage_error(in, "--attempts is 1 to 20, --timeout 1 to 3600");
    if (!authorization(in, secret, sizeof secret))
        return SM_EXIT_TROUBLE;
    struct sm_http_post post = {.authorization = secret[0] != 0 ? secret : NULL,
                                .attempts = (unsigned)attempts,
                                .timeout_s = (unsigned)timeout,
                                .waiting = waiting};
    struct sm_analysis_input input;
    int code = sm_analysis_input_open(in, &input);
    if (code != SM_EXIT_OK)
        return code;
    code = push(in, &input, &post);
    return sm_analysis_input_close(in, &input, false, code);
}

const struct sm_command sm_cmd_push = {
    .name = "push",
    .summary = "send a trace's profile to a server",
    .usage = "--to SERVER --url URL [OPTION]... [TRACE]",
    .description = "Sends what `statmem export --to pprof` or `--to otlp` writes. What fails for a "
                   "reason that may "
                   "pass (no connection, timeouts, 408, 429, 5xx) is tried again.",
    .examples = "statmem push --to pyroscope --url http://localhost:4040 prog.stm\n"
                "    to Pyroscope\n"
                "statmem push --to otlp --url http://collector:4318 prog.stm\n"
                "    to an OpenTelemetry collector that takes profiles\n",
    .options = options,
    .arguments_are_files = true,
    .run = run,
};
