/* The library that loading.c loads again and again. */
#include <stdlib.h>
#include <string.h>

static __thread char here[256] __attribute__((tls_model("initial-exec")));

char *plugin_allocates(int i);
char *plugin_allocates(int i) {
    char *p = malloc(1000);
    here[i % 256] = 1;
    memset(p, here[i % 256], 1000);
    free(calloc(5, (size_t)i));
    return p;
}
