/* See terminal.h. */
#include "util/terminal.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

unsigned sm_terminal_width(int fd, unsigned otherwise) {
    unsigned width = otherwise;
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    if (columns != NULL && isdigit((unsigned char)*columns))
        width = (unsigned)strtoul(columns, NULL, 10);
    else if (isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        width = size.ws_col;
    return width < 20 ? 20 : width > 1000 ? 1000 : width;
}

bool sm_terminal_colours(int fd) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return (no == NULL || *no == 0) && isatty(fd) && term != NULL && strcmp(term, "dumb") != 0;
}

bool sm_terminal_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && *value != 0)
            return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
    }
    return false;
}

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t first_ms, shown_ms;
static bool shown;

void sm_progress(void *ctx, uint64_t done, uint64_t total) {
    int64_t now = now_ms();
    if (first_ms == 0)
        first_ms = now;
    if (now - first_ms < 500 || now - shown_ms < 100 || !isatty(STDERR_FILENO))
        return;
    shown_ms = now;
    shown = true;
    if (total > 0)
        fprintf(stderr, "\r\033[K%s: %u %%", (const char *)ctx,
                (unsigned)((double)done / (double)total * 100));
    else
        fprintf(stderr, "\r\033[K%s: %u MB", (const char *)ctx, (unsigned)(done / 1000000));
    fflush(stderr);
}

void sm_progress_end(void) {
    if (shown)
        fputs("\r\033[K", stderr);
    shown = false;
    first_ms = shown_ms = 0;
}
