/* The part of control.h that both sides have. */
#include "service/control.h"

#include <string.h>

void sm_control_append(char *to, size_t bytes, const char *text) {
    size_t used = strlen(to), n = strlen(text);
    if (n > bytes - 1 - used)
        n = bytes - 1 - used;
    memcpy(to + used, text, n);
    to[used + n] = 0;
}

void sm_control_append_number(char *to, size_t bytes, unsigned long long x) {
    char digits[24];
    size_t i = sizeof digits - 1;
    digits[i] = 0;
    do
        digits[--i] = (char)('0' + x % 10);
    while ((x /= 10) != 0);
    sm_control_append(to, bytes, digits + i);
}

bool sm_control_folder(char *path, size_t bytes, const char *runtime_dir, unsigned uid) {
    path[0] = 0;
    if (runtime_dir != NULL && runtime_dir[0] == '/') {
        sm_control_append(path, bytes, runtime_dir);
        sm_control_append(path, bytes, "/statmem");
    } else {
        sm_control_append(path, bytes, "/tmp/statmem-");
        sm_control_append_number(path, bytes, uid);
    }
    return strlen(path) + 1 < bytes;
}

bool sm_control_path(char *path, size_t bytes, const char *runtime_dir, unsigned uid,
                     unsigned pid) {
    if (!sm_control_folder(path, bytes, runtime_dir, uid))
        return false;
    sm_control_append(path, bytes, "/");
    sm_control_append_number(path, bytes, pid);
    sm_control_append(path, bytes, ".ctl");
    return strlen(path) + 1 < bytes;
}
