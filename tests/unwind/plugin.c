/* A library that is loaded, damaged, unloaded and loaded again. */
int plugin_calls(int (*back)(int), int n);
int plugin_version(void);

#define NOINLINE __attribute__((noinline, noclone))
static volatile int sink;

NOINLINE static int inner(int (*back)(int), int n) {
    volatile char *room = __builtin_alloca((unsigned)n * 16 + 16);
    room[0] = (char)n;
    int got = back(n);
    sink = room[0];
    return got;
}

__attribute__((visibility("default"))) int plugin_calls(int (*back)(int), int n) {
    int got = n > 0 ? plugin_calls(back, n - 1) : inner(back, 5);
    sink = got;
    return got;
}

__attribute__((visibility("default"))) int plugin_version(void) {
    return PLUGIN;
}
