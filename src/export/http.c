/* See http.h. */
#include "export/http.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "export/gzip.h"
#include "util/text.h"

void sm_http_escape(struct sm_buffer *out, const char *text) {
    for (; *text != 0; text++) {
        unsigned char c = (unsigned char)*text;
        if (isalnum(c) || strchr("-._~", c) != NULL)
            sm_buffer_char(out, (char)c);
        else
            sm_buffer_printf(out, "%%%02X", c);
    }
}

#ifdef SM_HAVE_CURL
#include <curl/curl.h>

#define ANSWER_BYTES (64u << 10)
#define TOLD_BYTES 200
#define LONGEST_WAIT_S 60.0
#define CONNECTION_TIMEOUT_S 10

static size_t take(char *data, size_t size, size_t n, void *ctx) {
    struct sm_buffer *answer = ctx;
    size_t room = answer->used < ANSWER_BYTES ? ANSWER_BYTES - answer->used : 0;
    sm_buffer_bytes(answer, data, size * n < room ? size * n : room);
    return size * n;
}

static bool worth_again(CURLcode code, long status) {
    if (code == CURLE_OK)
        return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
    return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
           code == CURLE_OPERATION_TIMEDOUT || code == CURLE_GOT_NOTHING ||
           code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR || code == CURLE_PARTIAL_FILE;
}

static void wait_for(double seconds) {
    struct timespec t = {.tv_sec = (time_t)seconds,
                         .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) != 0)
        ;
}

/* One attempt; true when it is done, well or badly. */
static bool attempt(CURL *curl, struct sm_buffer *answer, enum sm_status *status,
                    curl_off_t *retry_after, struct sm_error *err) {
    char detail[CURL_ERROR_SIZE] = "";
    long http = 0;
    answer->used = 0;
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    CURLcode code = curl_easy_perform(curl);
    *retry_after = 0;
    if (code == CURLE_OK) {
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &http);
        curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, retry_after);
        if (http >= 200 && http < 300) {
            *status = SM_OK;
            return true;
        }
        struct sm_buffer words;
        sm_buffer_init(&words, -1);
        sm_text_safe(&words, answer->data, answer->used < TOLD_BYTES ? answer->used : TOLD_BYTES);
        sm_error_set(err, "the server answers %ld%s%s", http, words.used > 0 ? ": " : "",
                     sm_buffer_string(&words));
        sm_buffer_release(&words);
    } else {
        sm_error_set(err, "%s", detail[0] != 0 ? detail : curl_easy_strerror(code));
    }
    *status = SM_FAILED;
    return !worth_again(code, http);
}

static struct curl_slist *headers(const struct sm_http_post *p, bool gzip) {
    struct sm_buffer line;
    sm_buffer_init(&line, -1);
    sm_buffer_printf(&line, "Content-Type: %s", p->content_type);
    struct curl_slist *list = curl_slist_append(NULL, sm_buffer_string(&line));
    if (gzip)
        list = curl_slist_append(list, "Content-Encoding: gzip");
    if (p->authorization != NULL) {
        line.used = 0;
        sm_buffer_printf(&line, "Authorization: %s", p->authorization);
        list = curl_slist_append(list, sm_buffer_string(&line));
    }
    sm_buffer_release(&line);
    return curl_slist_append(list, "Expect:");
}

enum sm_status sm_http_post(const struct sm_http_post *p, struct sm_error *err) {
    CURL *curl = curl_easy_init();
    struct sm_buffer packed, own, *answer = p->answer != NULL ? p->answer : &own;
    enum sm_status status = SM_FAILED;
    if (curl == NULL) {
        sm_error_set(err, "libcurl cannot be used");
        return SM_FAILED;
    }
    sm_buffer_init(&packed, -1);
    sm_buffer_init(&own, -1);
    bool gzip = p->gzip && sm_gzip(&packed, p->body, p->bytes);
    struct curl_slist *list = headers(p, gzip);
    curl_easy_setopt(curl, CURLOPT_URL, p->url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, gzip ? packed.data : p->body);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     (curl_off_t)(gzip ? packed.used : p->bytes));
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "statmem/" SM_VERSION);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)p->timeout_s);
    curl_easy_setopt(
        curl, CURLOPT_CONNECTTIMEOUT,
        (long)(p->timeout_s < CONNECTION_TIMEOUT_S ? p->timeout_s : CONNECTION_TIMEOUT_S));
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    double pause = 0.5;
    for (unsigned n = 1;; n++) {
        curl_off_t asked;
        if (attempt(curl, answer, &status, &asked, err) || n >= p->attempts)
            break;
        double seconds = (double)asked > pause ? (double)asked : pause;
        if (seconds > LONGEST_WAIT_S)
            seconds = LONGEST_WAIT_S;
        if (p->waiting != NULL)
            p->waiting(p->ctx, err->text, seconds);
        wait_for(seconds);
        pause *= 2;
    }
    curl_slist_free_all(list);
    curl_easy_cleanup(curl);
    sm_buffer_release(&packed);
    sm_buffer_release(&own);
    return status;
}
#else
enum sm_status sm_http_post(const struct sm_http_post *p, struct sm_error *err) {
    (void)p;
    sm_error_set(err, "this statmem was built without libcurl: install libcurl4-openssl-dev and "
                      "build it anew, or "
                      "send what `statmem export` writes by other means");
    return SM_FAILED;
}
#endif
