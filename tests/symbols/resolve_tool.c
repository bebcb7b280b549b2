/* Names for offsets: resolve_tool OBJECT [-d DEBUG-DIRECTORIES] [-b BUILD-ID] < OFFSETS (hexadecimal, one a line)
   Prints for each, in order: the offset, then one line "function<TAB>file:line" for each frame, innermost first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "symbols/demangle.h"
#include "symbols/symbols.h"
#include "util/memory.h"

static int demangle_lines(void) {
    char line[8192];
    struct sm_arena arena = {0};
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = 0;
        printf("%s\n", sm_symbols_demangle(line, &arena));
    }
    sm_arena_release(&arena);
    return 0;
}

/* A damaged object's names may hold anything, line ends too; the tests read one frame a line. */
static void print_name(const char *name) {
    for (; *name != 0; name++)
        putchar((unsigned char)*name < ' ' ? '?' : *name);
}

int main(int argc, char **argv) {
    struct sm_symbols_options options = {0};
    uint8_t build_id[32];
    size_t build_id_bytes = 0;
    int c;
    while ((c = getopt(argc, argv, "d:b:DM")) != -1) {
        switch (c) {
        case 'd':
            options.debug_directories = optarg;
            break;
        case 'D':
            options.debuginfod = true;
            options.debuginfod_seconds = 2;
            break;
        case 'M':
            return demangle_lines();
        case 'b':
            for (; optarg[0] != 0 && build_id_bytes < sizeof build_id; optarg += 2) {
                char digits[3] = {optarg[0], optarg[1], 0};
                build_id[build_id_bytes++] = (uint8_t)strtoul(digits, NULL, 16);
            }
            break;
        default:
            return 2;
        }
    }
    struct sm_symbol_query *queries = NULL;
    size_t n = 0, capacity = 0;
    char line[64];
    while (fgets(line, sizeof line, stdin) != NULL) {
        queries = sm_grow(queries, &capacity, n + 1, sizeof *queries);
        queries[n++] = (struct sm_symbol_query){.offset = strtoull(line, NULL, 16)};
    }
    struct sm_arena arena = {0};
    struct sm_symbols_outcome outcome;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    sm_symbols_resolve(&options, argv[optind], build_id, build_id_bytes, queries, n, &arena,
                       &outcome);
    clock_gettime(CLOCK_MONOTONIC, &b);
    for (size_t i = 0; i < n; i++) {
        printf("0x%llx\n", (unsigned long long)queries[i].offset);
        for (uint32_t k = queries[i].n_frames; k-- > 0;) {
            const struct sm_symbol_frame *f = &queries[i].frames[k];
            print_name(f->function);
            putchar('\t');
            print_name(f->file != NULL ? f->file : "?");
            printf(":%u\n", f->line);
        }
    }
    fprintf(stderr, "source %d, %llu of %zu named, %.3f s. %s\n", outcome.source,
            (unsigned long long)outcome.n_named, n,
            (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9, outcome.why);
    free(queries);
    sm_arena_release(&arena);
    return 0;
}
