/* 1, 2, 3: libraries loaded and unloaded while threads allocate; symbols that are not there, whose error texts are
   allocated; a library that needs static thread-local memory. The first argument is the library (plugin.c). */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int stop;

__attribute__((constructor(101))) static void early(void) {
    dlsym(RTLD_DEFAULT, "there_is_no_such_function");
    char *error = dlerror();
    free(strdup(error != NULL ? error : ""));
}

static void *busy(void *x) {
    while (!stop)
        free(malloc(300));
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t t[2];
    unsigned long sum = 0;
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, busy, NULL);
    for (int i = 0; i < 300; i++) {
        void *library = dlopen(argv[1], RTLD_NOW);
        if (library == NULL) {
            printf("%s\n", dlerror());
            break;
        }
        char *(*function)(int);
        *(void **)&function = dlsym(library, "plugin_allocates");
        char *p = function(i);
        sum += (unsigned long)p[0];
        free(p);
        if (dlsym(library, "nothing") == NULL)
            sum += strlen(dlerror()) > 0;
        dlclose(library);
    }
    stop = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    printf("%lu\n", sum);
    return 0;
}
