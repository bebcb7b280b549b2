/* Programs whose business is to start another one in their place. */
#ifndef SM_INJECT_LAUNCHER_H
#define SM_INJECT_LAUNCHER_H

#include <stdbool.h>

/* By the executable's file name: shells, env, nice, ... */
bool sm_is_launcher(const char *path);

#endif
