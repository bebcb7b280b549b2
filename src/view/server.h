/* The viewer's HTTP server, on libmicrohttpd: loopback unless told otherwise, one random token per run, no other
   origin, nothing but GET. Hosted. */
#ifndef SM_VIEW_SERVER_H
#define SM_VIEW_SERVER_H

#include "util/error.h"
#include "view/api.h"

struct sm_server_options {
    const char *bind;  /* address; NULL = loopback */
    uint16_t port;     /* the first that is tried */
    bool only_port;    /* fail when it is taken, rather than try the next ones */
    const char *token; /* NULL = a random one */
};

struct sm_server;

/* `api` must live until the server is freed. */
enum sm_status sm_server_start(struct sm_server **out, const struct sm_api *api,
                               const struct sm_server_options *options, struct sm_error *err);
/* "http://127.0.0.1:8080/?token=..." */
const char *sm_server_url(const struct sm_server *s);
/* Ends all connections; sm_traces_wake must have been called, so that no event stream waits. */
void sm_server_free(struct sm_server *s);

/* The page's files, made at build time (view/page.py). */
struct sm_page_file {
    const char *path; /* "/index.html" */
    const char *type;
    const unsigned char *data;
    size_t bytes;
};
extern const struct sm_page_file sm_page_files[];
extern const unsigned sm_n_page_files;

#endif
