#include "cli/path_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/memory.h"

char *sm_concat(const char *a, const char *b, const char *c) {
    size_t n = strlen(a) + strlen(b) + strlen(c) + 1;
    char *s = sm_alloc(n);
    snprintf(s, n, "%s%s%s", a, b, c);
    return s;
}

char *sm_find_program(const char *name) {
    if (strchr(name, '/') != NULL)
        return sm_strdup(name);
    const char *path = getenv("PATH");
    for (const char *from = path != NULL ? path : "/usr/bin:/bin"; from != NULL;) {
        const char *colon = strchr(from, ':');
        size_t n = colon != NULL ? (size_t)(colon - from) : strlen(from);
        char *folder = sm_alloc(n + 2);
        memcpy(folder, n > 0 ? from : ".",
               n > 0 ? n : 1); /* an empty entry is the current folder */
        folder[n > 0 ? n : 1] = 0;
        char *candidate = sm_concat(folder, "/", name);
        free(folder);
        struct stat st;
        if (stat(candidate, &st) == 0 && S_ISREG(st.st_mode) && access(candidate, X_OK) == 0)
            return candidate;
        free(candidate);
        from = colon != NULL ? colon + 1 : NULL;
    }
    return NULL;
}
