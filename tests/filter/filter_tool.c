/* Parses filters for test scripts. Standard input: for each filter its length in bytes, a line end, and
   the bytes. Output, one line each: +CANONICAL, or -COLUMN, tab, EXPECTED, tab, MESSAGE. */
#include <stdio.h>
#include <stdlib.h>

#include "analyze/filter.h"

int main(void) {
    static char text[1 << 20];
    size_t bytes;
    while (scanf("%zu", &bytes) == 1) {
        if (getchar() != '\n' || bytes > sizeof text || fread(text, 1, bytes, stdin) != bytes)
            return 2;
        struct sm_filter_error err = {0};
        struct sm_filter *f = sm_filter_parse(text, bytes, &err);
        if (f == NULL) {
            printf("-%u\t%s\t%s\n", err.column, err.expected, err.text);
            continue;
        }
        struct sm_buffer out;
        sm_buffer_init(&out, -1);
        sm_filter_print(&out, f);
        printf("+%s\n", sm_buffer_string(&out));
        sm_buffer_release(&out);
        sm_filter_free(f);
    }
    return 0;
}
