/* Writes a mixed trace: make_trace OUT STREAMS EVENTS SEED [compress] [target bytes] */
#include <stdlib.h>

#include "trace_builder.h"

int main(int argc, char **argv) {
    struct tb b;
    if (argc < 5)
        return 2;
    tb_init(&b, (uint32_t)atoi(argv[2]));
    b.compress = argc > 5 && atoi(argv[5]) != 0;
    b.target_bytes = argc > 6 ? (size_t)atoi(argv[6]) : 0;
    tb_mixed(&b, (uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]), (uint32_t)atoi(argv[4]));
    tb_save(&b, argv[1]);
    tb_release(&b);
    return 0;
}
