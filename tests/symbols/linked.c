/* A C program that reports memory from several places: linked TRACE PLUGIN. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "statmem.h"

static inline __attribute__((always_inline)) statmem_token in_inlined(size_t n) {
    return statmem_ext_alloc(n); /* INLINED */
}

__attribute__((noinline)) statmem_token in_caller(size_t n) {
    statmem_token t = in_inlined(n); /* CALLER */
    __asm__ volatile("" ::: "memory");
    return t;
}

static __attribute__((noinline)) statmem_token in_static(size_t n) {
    statmem_token t = statmem_ext_alloc(n + 8); /* STATIC */
    __asm__ volatile("" ::: "memory");
    return t;
}

int main(int argc, char **argv) {
    char err[512];
    struct statmem_options options = {
        .struct_bytes = sizeof options, .path = argv[1], .rate = 1, .has_seed = 1};
    if (argc < 3 || statmem_start(&options, err, sizeof err) != 0)
        return 2;
    for (int i = 0; i < 10; i++) {
        statmem_ext_free(in_caller(1000));
        in_static(64);
    }
    for (int i = 2; i < argc; i++) {
        void *plugin = dlopen(argv[i], RTLD_NOW);
        if (plugin == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return 2;
        }
        void (*work)(void);
        *(void **)&work = dlsym(plugin, "plugin_work");
        work();
        dlclose(plugin);
    }
    statmem_stop();
    return 0;
}
