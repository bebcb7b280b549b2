/* Sending a body to a server by libcurl, again and again while it makes sense. Hosted. */
#ifndef SM_EXPORT_HTTP_H
#define SM_EXPORT_HTTP_H

#include "decode/trace.h"
#include "util/buffer.h"

struct sm_http_post {
    const char *url;
    const char *content_type;
    const char *authorization; /* value of the header; NULL = none */
    const void *body;
    size_t bytes;
    bool gzip;          /* compress the body, and say so */
    unsigned attempts;  /* at least 1 */
    unsigned timeout_s; /* of one attempt; of a connection 10 s at most */
    struct sm_buffer
        *answer; /* gets the begin of the last answer's body, 64 KiB at most; NULL = not wanted */
    /* Told before each wait; NULL = nobody. */
    void (*waiting)(void *ctx, const char *why, double seconds);
    void *ctx;
};

/* Posts until the server answers 2xx. Tried again, after twice the time each time (or what Retry-After asks, up to a
   minute): what never reached a server, timeouts, 408, 429, 500, 502, 503, 504. Redirects are not followed. The
   error holds the server's first words. Fails without libcurl. */
enum sm_status sm_http_post(const struct sm_http_post *p, struct sm_error *err);
/* How many profiles an OTLP server says that it has thrown away, though it answered 2xx, and its words. What is no such
   message says nothing: 0. */
uint64_t sm_otlp_rejected(const void *answer, size_t bytes, struct sm_buffer *why);
/* Appends text as a component of a URL. */
void sm_http_escape(struct sm_buffer *out, const char *text);

#endif
