/* elfutils does the search; here its freedom is restricted: debuginfod is asked only when the user wants it and for as long
   as the user wants, and an object with another build-id is not used. */
#include "symbols/objects.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/memory.h"

#define WHY_BYTES 256
#define USUAL_DIRECTORIES ":.debug:/usr/lib/debug"

static void say(char *why, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(char *why, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(why, WHY_BYTES, format, args);
    va_end(args);
}

/* elfutils asks debuginfod whenever the environment names servers. The environment is the process's, so this is
   done once, before threads begin to work. */
static pthread_once_t environment_once = PTHREAD_ONCE_INIT;
static bool want_debuginfod;
static unsigned debuginfod_seconds;

static void set_environment(void) {
    char seconds[16];
    if (!want_debuginfod) {
        unsetenv("DEBUGINFOD_URLS");
        return;
    }
    snprintf(seconds, sizeof seconds, "%u", debuginfod_seconds);
    setenv("DEBUGINFOD_TIMEOUT", seconds, 1);
    setenv("DEBUGINFOD_MAXTIME", seconds, 1);
    setenv("DEBUGINFOD_RETRY_LIMIT", "0", 1);
}

static void prepare(const struct sm_symbols_options *options) {
    want_debuginfod = options->debuginfod;
    debuginfod_seconds = options->debuginfod_seconds > 0 ? options->debuginfod_seconds : 10;
    pthread_once(&environment_once, set_environment);
}

static bool same_build_id(Elf *elf, const uint8_t *build_id, size_t bytes) {
    const void *there;
    ssize_t n = dwelf_elf_gnu_build_id(elf, &there);
    return n > 0 && (size_t)n == bytes && memcmp(there, build_id, bytes) == 0;
}

/* An open file with the right build-id, or -1. */
static int open_checked(const char *path, const uint8_t *build_id, size_t bytes, char *why) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        say(why, "%.150s: %s", path, strerror(errno));
        return -1;
    }
    Elf *elf = NULL;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        say(why, "%.150s is not a file", path);
    else if ((elf = elf_begin(fd, ELF_C_READ_MMAP, NULL)) == NULL || elf_kind(elf) != ELF_K_ELF)
        say(why, "%.150s is not an ELF file", path);
    else if (bytes > 0 && !same_build_id(elf, build_id, bytes))
        say(why, "%.150s is another build than the one that ran (build-id differs)", path);
    else {
        elf_end(elf);
        return fd;
    }
    elf_end(elf);
    close(fd);
    return -1;
}

/* What the debug directories have for a build-id: the object itself (".build-id/xx/yy") or its debug file. */
static int open_by_build_id(const struct sm_object *o, const uint8_t *build_id, size_t bytes) {
    if (bytes < 2)
        return -1;
    char name[2 * 64 + 16], ignored[WHY_BYTES], path[4096];
    size_t n = (size_t)snprintf(name, sizeof name, ".build-id/%02x/", build_id[0]);
    for (size_t i = 1; i < bytes && i < 64; i++)
        n += (size_t)snprintf(name + n, sizeof name - n, "%02x", build_id[i]);
    for (const char *p = o->search_path; *p != 0;) {
        size_t length = strcspn(p, ":");
        static const char *const ends[] = {".debug", ""};
        for (int i = 0; i < 2 && *p == '/'; i++) {
            snprintf(path, sizeof path, "%.*s/%s%s", (int)length, p, name, ends[i]);
            int fd = open_checked(path, build_id, bytes, ignored);
            if (fd >= 0)
                return fd;
        }
        p += length + (p[length] == ':');
    }
    return -1;
}

/* ---- elfutils' callbacks ---- */

static int find_elf(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
                    char **file_name, Elf **elf) {
    return -1; /* it is given when the module is reported */
}

static int find_debug(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
                      const char *file, const char *link, GElf_Word crc, char **found) {
    return dwfl_standard_find_debuginfo(module, user, name, base, file, link, crc, found);
}

bool sm_object_open(struct sm_object *o, const struct sm_symbols_options *options, const char *path,
                    const uint8_t *build_id, size_t build_id_bytes, char *why) {
    static const char usual[] = USUAL_DIRECTORIES;
    const char *own = options->debug_directories != NULL ? options->debug_directories : "";
    memset(o, 0, sizeof *o);
    prepare(options);
    elf_version(EV_CURRENT);
    o->search_path = sm_alloc(strlen(own) + sizeof usual);
    memcpy(o->search_path, own, strlen(own));
    memcpy(o->search_path + strlen(own), usual, sizeof usual);
    o->callbacks = (Dwfl_Callbacks){
        .find_elf = find_elf, .find_debuginfo = find_debug, .debuginfo_path = &o->search_path};
    int fd = open_checked(path, build_id, build_id_bytes, why);
    if (fd < 0)
        fd = open_by_build_id(o, build_id, build_id_bytes);
    o->dwfl = dwfl_begin(&o->callbacks);
    if (fd < 0 || o->dwfl == NULL) {
        sm_object_close(o);
        if (fd >= 0)
            close(fd);
        return false;
    }
    why[0] = 0;
    dwfl_report_begin(o->dwfl);
    o->module = dwfl_report_elf(o->dwfl, path, path, fd, 0, false);
    if (o->module == NULL)
        close(fd);
    dwfl_report_end(o->dwfl, NULL, NULL);
    if (o->module == NULL || dwfl_module_getelf(o->module, &o->elf_bias) == NULL) {
        say(why, "%.150s: %s", path, dwfl_errmsg(-1));
        sm_object_close(o);
        return false;
    }
    o->dwarf = dwfl_module_getdwarf(o->module, &o->dwarf_bias);
    if (o->dwarf == NULL)
        say(why, "%.150s has no debug information, and none was found for it", path);
    return true;
}

void sm_object_close(struct sm_object *o) {
    if (o->dwfl != NULL)
        dwfl_end(o->dwfl);
    free(o->search_path);
    o->dwfl = NULL;
    o->module = NULL;
    o->search_path = NULL;
}
