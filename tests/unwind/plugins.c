/* Libraries that come and go, and libraries whose unwind tables are damaged: plugins PLUGIN_1 PLUGIN_2 [ROUNDS] */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/elf.h"
#include "unwind/modules.h"
#include "unwind/unwind.h"

static uintptr_t frames[256];
static uint32_t n_frames;
static struct sm_unwound how;
static int failures;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: not so: %s\n", __LINE__, #condition);                                 \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

static int take(int n) {
    n_frames = sm_unwind(frames, 256, 0, &how);
    return (int)n_frames;
}

struct plugin {
    void *handle;
    int (*calls)(int (*back)(int), int n);
    int (*version)(void);
};

static struct plugin load(const char *path) {
    struct plugin p = {.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (p.handle == NULL) {
        printf("%s\n", dlerror());
        exit(2);
    }
    *(void **)&p.calls = dlsym(p.handle, "plugin_calls");
    *(void **)&p.version = dlsym(p.handle, "plugin_version");
    return p;
}

static void unload(struct plugin *p) {
    dlclose(p->handle);
    sm_modules_unloaded();
}

/* Whole stacks, and frames that name the code for ever: (address, generation). */
static int test_generations(const char *one, const char *two) {
    struct plugin p = load(one);
    EXPECT(p.version() == 1);
    int depth = p.calls(take, 3);
    EXPECT(how.end == SM_UNWIND_OUTERMOST && depth >= 5);
    uintptr_t first = frames[1];
    const struct sm_module *m = sm_module_at((uintptr_t)p.calls);
    EXPECT(m != NULL && strcmp(m->path, one) == 0 && m->build_id_bytes == 20);
    EXPECT(sm_frame_address(first) - m->start < m->end - m->start);
    EXPECT(sm_frame_generation(first) == m->generation);
    unload(&p);

    p = load(two);
    EXPECT(p.version() == 2);
    EXPECT(p.calls(take, 3) == depth && how.end == SM_UNWIND_OUTERMOST);
    const struct sm_module *other = sm_module_at((uintptr_t)p.calls);
    EXPECT(other != NULL && other != m && strcmp(other->path, two) == 0);
    EXPECT(memcmp(other->build_id, m->build_id, 20) != 0);
    if (other->start == m->start) {
        EXPECT(frames[1] != first && sm_frame_address(frames[1]) == sm_frame_address(first));
        EXPECT(sm_frame_generation(frames[1]) == sm_frame_generation(first) + 1);
        EXPECT(m->unmapped && !other->unmapped);
    } else {
        printf("the second library is not at the place of the first\n");
    }
    unload(&p);

    p = load(one); /* the first again: its old entry */
    p.calls(take, 3);
    EXPECT(sm_module_at((uintptr_t)p.calls) == m || other->start != m->start);
    EXPECT(frames[1] == first || other->start != m->start);
    EXPECT(!m->unmapped);
    unload(&p);
    sm_modules_refresh();
    EXPECT(m->unmapped);

    uint32_t before = sm_modules_count();
    for (int i = 0; i < 500; i++) {
        p = load(i % 2 ? one : two);
        EXPECT(p.calls(take, 3) == depth);
        unload(&p);
    }
    EXPECT(sm_modules_count() <= before + 2); /* no entry for each time */
    EXPECT(sm_modules_not_kept() == 0);
    return depth;
}

static uint32_t random_state = 12345;

static uint32_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}

static void damage(uint8_t *bytes, size_t n, int kind) {
    unsigned times = kind == 0 ? 1 : 1 + next_random() % 40;
    for (unsigned i = 0; i < times; i++) {
        size_t at = next_random() % n;
        switch (next_random() % 4) {
        case 0:
            bytes[at] = (uint8_t)next_random();
            break;
        case 1:
            bytes[at] ^= (uint8_t)(1u << next_random() % 8);
            break;
        case 2:
            bytes[at] = 0xFF;
            break;
        default:
            memset(bytes + at, (int)(next_random() & 0xFF), n - at < 8 ? n - at : 8);
            break;
        }
    }
}

/* Damaged tables may give wrong stacks, never a fault or an endless walk. */
static void test_damage(const char *path, int depth, int rounds) {
    char copy[64];
    snprintf(copy, sizeof copy, "/tmp/statmem-damaged-%d.so", (int)getpid());
    unsigned whole = 0;
    for (int i = 0; i < rounds; i++) {
        struct sm_elf e;
        const char *why;
        if (!sm_elf_map(&e, path, &why))
            exit(2);
        uint8_t *bytes = malloc(e.bytes);
        memcpy(bytes, e.data, e.bytes);
        const Elf64_Shdr *header = sm_elf_section(&e, ".eh_frame_hdr");
        const Elf64_Shdr *frame = sm_elf_section(&e, ".eh_frame");
        if (i % 3 != 0)
            damage(bytes + frame->sh_offset, frame->sh_size, i % 5);
        if (i % 3 != 1)
            damage(bytes + header->sh_offset, header->sh_size, i % 7);
        FILE *f = fopen(copy, "wb");
        fwrite(bytes, 1, e.bytes, f);
        fclose(f);
        free(bytes);
        sm_elf_unmap(&e);
        struct plugin p = load(copy);
        EXPECT(p.version() == 1);
        int n = p.calls(take, 3);
        EXPECT(n >= 1 && n <= 256);
        whole += how.end == SM_UNWIND_OUTERMOST && n == depth;
        unload(&p);
    }
    unlink(copy);
    printf("%d damaged libraries, %u stacks whole all the same\n", rounds, whole);
    EXPECT(whole < (unsigned)rounds);
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    const struct sm_module *self = sm_module_at((uintptr_t)&main);
    char exe[4096];
    long n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = 0;
    EXPECT(self != NULL && self->executable && strcmp(self->path, exe) == 0);
    EXPECT(sm_module_at((uintptr_t)&n) == NULL);
    int depth = test_generations(argv[1], argv[2]);
    test_damage(argv[1], depth, argc > 3 ? atoi(argv[3]) : 400);
    return failures > 0;
}
