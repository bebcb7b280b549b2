/* Runs a fuzz target over files, and over damaged variants of them: replay [-n VARIANTS] FILE... */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static uint32_t random_state = 1;

static uint32_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}

int main(int argc, char **argv) {
    int first = 1;
    long variants = 0, files = 0;
    if (argc > 2 && strcmp(argv[1], "-n") == 0) {
        variants = atol(argv[2]);
        first = 3;
    }
    for (int i = first; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        static uint8_t data[1 << 20], copy[1 << 20];
        if (f == NULL) {
            perror(argv[i]);
            return 1;
        }
        size_t bytes = fread(data, 1, sizeof data, f);
        fclose(f);
        files++;
        LLVMFuzzerTestOneInput(data, bytes);
        for (long v = 0; v < variants && bytes > 1; v++) {
            size_t length = v % 4 == 0 ? 1 + next_random() % bytes : bytes;
            memcpy(copy, data, bytes);
            copy[0] = (uint8_t)(v & 1);
            for (uint32_t k = next_random() % 8; k > 0; k--)
                copy[next_random() % bytes] =
                    (uint8_t)(next_random() % 3 == 0 ? 0xFF : next_random());
            LLVMFuzzerTestOneInput(copy, length);
        }
    }
    printf("%ld files\n", files);
    return files > 0 ? 0 : 1;
}
