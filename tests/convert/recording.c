/* A program that records made-up events: recording TRACE THREADS EVENTS [hold]. Each thread records
   EVENTS allocations, of which every third is promoted and every second dies, with stacks of changing
   depth. Prints the number of events recorded; with "hold" it then waits to be killed. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/recorder.h"

static unsigned long n_events;

static uint32_t symbolize(uint64_t code, struct sm_source_location *list, uint32_t max) {
    static __thread char name[32];
    (void)max;
    int n = snprintf(name, sizeof name, "f%llx", (unsigned long long)code);
    list[0] = (struct sm_source_location){.file = "recording.ml",
                                          .file_bytes = 12,
                                          .function = name,
                                          .function_bytes = (size_t)n,
                                          .line = (uint32_t)(code / 16)};
    return 1;
}

static void *work(void *arg) {
    uint64_t x = (uintptr_t)arg * 7919 + 1;
    uintptr_t stack[64];
    for (unsigned long i = 0; i < n_events; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        uint32_t depth = 1 + (uint32_t)(x >> 58);
        for (uint32_t k = 0; k < depth; k++)
            stack[k] = 0x1001 + 16 * ((k * 37 + (k < 3 ? x >> 40 : 0)) % 500);
        struct sm_raw_stack raw = {stack, depth, false, 0};
        uint64_t token = sm_recorder_alloc(1 + (x >> 33) % 40, 1, SM_HEAP_MINOR, &raw);
        if (i % 3 == 0)
            sm_recorder_promote(token);
        if (i % 2 == 0)
            sm_recorder_collect(token);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    char err[256];
    struct sm_recorder_config config = {
        .path = argv[1], .fd = -1, .sample_rate = 0.01, .symbolize = symbolize};
    if (sm_recorder_start(&config, err, sizeof err) != 0) {
        fprintf(stderr, "%s\n", err);
        return 1;
    }
    int threads = atoi(argv[2]);
    n_events = strtoul(argv[3], NULL, 10);
    pthread_t id[64];
    for (int i = 0; i < threads && i < 64; i++)
        pthread_create(&id[i], NULL, work, (void *)(uintptr_t)i);
    for (int i = 0; i < threads && i < 64; i++)
        pthread_join(id[i], NULL);
    printf("%lu\n", (unsigned long)threads * (n_events + (n_events + 2) / 3 + (n_events + 1) / 2));
    fflush(stdout);
    if (argc > 4)
        for (;;)
            pause();
    sm_recorder_stop(SM_REASON_EXIT);
    return 0;
}
