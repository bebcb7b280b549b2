#include "inject/launcher.h"

#include <stddef.h>
#include <string.h>

static const char *const launchers[] = {
    "sh",      "dash",    "bash",    "ksh",     "mksh",   "zsh",     "busybox",   "fish",
    "env",     "nice",    "nohup",   "setsid",  "stdbuf", "taskset", "chrt",      "ionice",
    "setarch", "linux64", "numactl", "prlimit", "chroot", "unshare", "coreutils", "catchsegv",
};

bool sm_is_launcher(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        if (strcmp(launchers[i], name) == 0)
            return true;
    }
    return false;
}
