/* The environment is edited in place: entries are dropped from the array, LD_PRELOAD loses our entry by a
   move within its string. Nothing is allocated, and what remains keeps its order, so that the
   program sees the environment that it would have had. This happens before main, on the only
   thread. */
#include "inject/request.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const variables[] = {
    "STATMEM_OUT",         "STATMEM_RATE",        "STATMEM_RATE_ORIGIN",     "STATMEM_DEPTH",
    "STATMEM_SEED",        "STATMEM_DURATION_NS", "STATMEM_TARGET_PID",      "STATMEM_FOLLOW",
    "STATMEM_CHAIN",       "STATMEM_STATUS",      "STATMEM_NATIVE_INTERVAL", "STATMEM_NATIVE_ONLY",
    "STATMEM_COUNTERS_NS", "STATMEM_PAUSED",      "STATMEM_TOGGLE_SIGNAL"};

static uint64_t number(const char *name, uint64_t otherwise) {
    const char *s = getenv(name);
    if (s == NULL || *s < '0' || *s > '9')
        return otherwise;
    return strtoull(s, NULL, 10);
}

static bool copy_variable(const char *name, char *out, size_t bytes) {
    const char *s = getenv(name);
    size_t n = s != NULL ? strlen(s) : 0;
    if (n == 0 || n >= bytes)
        return false;
    memcpy(out, s, n + 1);
    return true;
}

bool sm_request_read(struct sm_request *r) {
    memset(r, 0, sizeof *r);
    if (!copy_variable("STATMEM_OUT", r->out, sizeof r->out))
        return false;
    if (!copy_variable("STATMEM_STATUS", r->status, sizeof r->status))
        r->status[0] = 0;
    const char *rate = getenv("STATMEM_RATE");
    r->rate = rate != NULL ? strtod(rate, NULL) : SM_DEFAULT_RATE;
    if (!(r->rate > 0 && r->rate <= 1))
        return false;
    r->rate_origin = (enum sm_rate_origin)number(
        "STATMEM_RATE_ORIGIN", rate != NULL ? SM_RATE_ENVIRONMENT : SM_RATE_DEFAULT);
    r->depth = (uint32_t)number("STATMEM_DEPTH", 0);
    r->has_seed = getenv("STATMEM_SEED") != NULL;
    r->seed = number("STATMEM_SEED", 0);
    r->duration_ns = number("STATMEM_DURATION_NS", 0);
    r->counters_ns = number("STATMEM_COUNTERS_NS", SM_DEFAULT_COUNTERS_NS);
    r->paused = number("STATMEM_PAUSED", 0) == 1;
    r->toggle_signal = (uint32_t)number("STATMEM_TOGGLE_SIGNAL", 0);
    r->target_pid = (uint32_t)number("STATMEM_TARGET_PID", 0);
    r->follow = number("STATMEM_FOLLOW", 0) == 1;
    r->native_interval_bytes = number("STATMEM_NATIVE_INTERVAL", 0);
    r->native_only = number("STATMEM_NATIVE_ONLY", 0) == 1 && r->native_interval_bytes != 0;
    r->force = number("STATMEM_FORCE", 0) == 1;
    return true;
}

/* The value of an environment entry when it is `name`'s, else NULL. */
static char *value_of(char *entry, const char *name) {
    size_t n = strlen(name);
    return strncmp(entry, name, n) == 0 && entry[n] == '=' ? entry + n + 1 : NULL;
}

/* `record` puts our path first in LD_PRELOAD. True when nothing remains, and the variable was not
   there before (a variable that was empty has a ':' after our path). */
static bool restore_preload(char *value) {
    size_t n = strcspn(value, ": ");
    const size_t name = sizeof SM_PRELOAD_NAME - 1;
    if (n < name || memcmp(value + n - name, SM_PRELOAD_NAME, name) != 0)
        return false;
    if (value[n] == 0)
        return true;
    memmove(value, value + n + 1, strlen(value + n + 1) + 1);
    return false;
}

static bool is_ours(char *entry) {
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        if (value_of(entry, variables[i]) != NULL)
            return true;
    char *preload = value_of(entry, "LD_PRELOAD");
    return preload != NULL && restore_preload(preload);
}

void sm_request_remove(void) {
    char **to = environ;
    for (char **from = environ; from != NULL && *from != NULL; from++)
        if (!is_ours(*from))
            *to++ = *from;
    if (to != NULL)
        *to = NULL;
}

static char *put_number(char *end, uint64_t x) {
    do
        *--end = (char)('0' + x % 10);
    while ((x /= 10) != 0);
    return end;
}

/* Writes x into digits[0..n), with leading zeros. */
static void put_digits(char *digits, size_t n, uint64_t x) {
    while (n-- > 0) {
        digits[n] = (char)('0' + x % 10);
        x /= 10;
    }
}

void sm_request_chain(struct sm_request *r) {
    enum { PID = 10, COUNT = 4 };
    char *chain = getenv("STATMEM_CHAIN");
    if (!r->follow || chain == NULL || strlen(chain) != PID + 1 + COUNT)
        return;
    uint64_t pid = (uint64_t)getpid(), n = 1;
    if (strtoull(chain, NULL, 10) == pid)
        n = strtoull(chain + PID + 1, NULL, 10) + 1;
    put_digits(chain, PID, pid);
    put_digits(chain + PID + 1, COUNT, n);
    size_t used = strlen(r->out);
    if (n > 1 && used + 6 < sizeof r->out) {
        char text[24];
        char *digits = put_number(text + sizeof text, n);
        r->out[used++] = '.';
        memcpy(r->out + used, digits, (size_t)(text + sizeof text - digits));
        r->out[used + (size_t)(text + sizeof text - digits)] = 0;
    }
}

void sm_answer(const struct sm_request *r, enum sm_answer kind, const char *text) {
    static const char *const kinds[] = {
        [SM_ANSWER_NONE] = "none",       [SM_ANSWER_CHILD] = "child",
        [SM_ANSWER_REFUSED] = "refused", [SM_ANSWER_ARMED] = "armed",
        [SM_ANSWER_STARTED] = "started", [SM_ANSWER_FAILED] = "failed",
        [SM_ANSWER_YIELDED] = "yielded", [SM_ANSWER_OTHER] = "other",
        [SM_ANSWER_PAUSED] = "paused",   [SM_ANSWER_OWN_MALLOC] = "ownmalloc",
    };
    if (r->status[0] == 0)
        return;
    int saved_errno = errno;
    char line[5000], pid_text[24];
    size_t n = 0;
    pid_text[sizeof pid_text - 1] = 0;
    const char *pid = put_number(pid_text + sizeof pid_text - 1, (uint64_t)getpid());
    const char *parts[] = {kinds[kind], " ", pid, " ", text, "\n"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *s = parts[i];
        size_t bytes = strlen(s);
        if (bytes > sizeof line - 1 - n)
            bytes = sizeof line - 1 - n;
        for (size_t j = 0; j < bytes; j++) /* one answer, one line */
            line[n++] = s[j] == '\n' && i != sizeof parts / sizeof parts[0] - 1 ? ' ' : s[j];
    }
    if (n == sizeof line - 1)
        line[n - 1] = '\n';
    int fd = open(r->status, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
        ssize_t written = write(fd, line, n);
        (void)written; /* nobody else to tell */
        close(fd);
    }
    errno = saved_errno;
}
