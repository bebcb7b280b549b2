/* See next.h. A look-up walks the loaded objects (dl_iterate_phdr: in the loader's order, its lock is recursive and held
   for moments), passes over all up to our own, and reads each one's dynamic symbols by the GNU hash table, or
   the old one. All functions are looked up at once, at the first call of any. */
#include "native/next.h"

#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

/* The lists' parameters and arguments come with their own parentheses. NOLINTBEGIN(bugprone-macro-parentheses) */

/* ---- one object's symbols ---- */

struct symbols {
    uintptr_t load_address;
    const ElfW(Sym) * table;
    const char *names;
    const uint32_t *gnu_hash;
    const uint32_t *old_hash;
};

static uintptr_t absolute(uintptr_t load_address, uintptr_t p) {
    return p < load_address ? load_address + p
                            : p; /* the loader relocates these in place, the vDSO's not */
}

static bool read_symbols(const struct dl_phdr_info *info, struct symbols *s) {
    *s = (struct symbols){.load_address = info->dlpi_addr};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        for (; d->d_tag != DT_NULL; d++) {
            const void *p = (const void *)absolute(info->dlpi_addr, d->d_un.d_ptr);
            if (d->d_tag == DT_SYMTAB)
                s->table = p;
            else if (d->d_tag == DT_STRTAB)
                s->names = p;
            else if (d->d_tag == DT_GNU_HASH)
                s->gnu_hash = p;
            else if (d->d_tag == DT_HASH)
                s->old_hash = p;
        }
    }
    return s->table != NULL && s->names != NULL && (s->gnu_hash != NULL || s->old_hash != NULL);
}

static bool defines(const struct symbols *s, uint32_t i, const char *name) {
    const ElfW(Sym) *sym = &s->table[i];
    unsigned type = ELF64_ST_TYPE(sym->st_info);
    return sym->st_shndx != SHN_UNDEF && sym->st_value != 0 &&
           (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) &&
           ELF64_ST_BIND(sym->st_info) != STB_LOCAL && strcmp(s->names + sym->st_name, name) == 0;
}

static uint32_t find_gnu(const struct symbols *s, const char *name) {
    const uint32_t *h = s->gnu_hash;
    uint32_t n_buckets = h[0], first = h[1], bloom_words = h[2];
    const uint32_t *buckets = h + 4 + bloom_words * (sizeof(uintptr_t) / 4);
    const uint32_t *chain = buckets + n_buckets;
    uint32_t hash = 5381;
    for (const char *c = name; *c != 0; c++)
        hash = hash * 33 + (uint8_t)*c;
    if (n_buckets == 0)
        return 0;
    for (uint32_t i = buckets[hash % n_buckets]; i >= first && i != 0; i++) {
        uint32_t x = chain[i - first];
        if ((x | 1) == (hash | 1) && defines(s, i, name))
            return i;
        if (x & 1)
            break;
    }
    return 0;
}

static uint32_t find_old(const struct symbols *s, const char *name) {
    uint32_t n = s->old_hash[1];
    for (uint32_t i = 1; i < n; i++) {
        if (defines(s, i, name))
            return i;
    }
    return 0;
}

static void *find(const struct symbols *s, const char *name) {
    uint32_t i = s->gnu_hash != NULL ? find_gnu(s, name) : find_old(s, name);
    if (i == 0)
        return NULL;
    void *address = (void *)(s->load_address + s->table[i].st_value);
    if (ELF64_ST_TYPE(s->table[i].st_info) == STT_GNU_IFUNC) {
        void *(*resolver)(void);
        memcpy(&resolver, &address, sizeof resolver);
        address = resolver();
    }
    return address;
}

/* ---- the walk ---- */

enum {
#define X(name, parameters, arguments, bytes) AT_##name,
    SM_NATIVE_ALLOCATORS(X) SM_NATIVE_NEW(X)
#undef X
#define X(name, parameters, arguments) AT_##name,
        SM_NATIVE_RELEASERS(X) SM_NATIVE_DELETE(X)
#undef X
            AT_realloc,
    AT_posix_memalign,
    N_FUNCTIONS
};

static const char *const names[N_FUNCTIONS] = {
#define X(name, parameters, arguments, bytes) #name,
    SM_NATIVE_ALLOCATORS(X) SM_NATIVE_NEW(X)
#undef X
#define X(name, parameters, arguments) #name,
        SM_NATIVE_RELEASERS(X) SM_NATIVE_DELETE(X)
#undef X
            "realloc",
    "posix_memalign",
};

struct walk {
    bool behind_us;
    void *found[N_FUNCTIONS];
    uintptr_t object[N_FUNCTIONS]; /* load address of the one that defines it */
};

/* In this library's data: its address tells which object we are. */
static const char here;

static bool holds(const struct dl_phdr_info *info, uintptr_t address) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && address - (info->dlpi_addr + p->p_vaddr) < p->p_memsz)
            return true;
    }
    return false;
}

static int visit(struct dl_phdr_info *info, size_t bytes, void *ctx) {
    struct walk *w = ctx;
    struct symbols s;
    if (!w->behind_us) {
        w->behind_us = holds(info, (uintptr_t)&here);
        return 0;
    }
    if (!read_symbols(info, &s))
        return 0;
    for (int i = 0; i < N_FUNCTIONS; i++) {
        if (w->found[i] == NULL && (w->found[i] = find(&s, names[i])) != NULL)
            w->object[i] = info->dlpi_addr;
    }
    return 0;
}

/* ---- what stands in where the allocator lacks a function ---- */

#define NEXT sm_native_next

static void without_cfree(void *p) {
    NEXT.free(p);
}
static void without_free_sized(void *p, size_t bytes) {
    NEXT.free(p);
}
static void without_free_aligned_sized(void *p, size_t alignment, size_t bytes) {
    NEXT.free(p);
}
static void *without_memalign(size_t alignment, size_t bytes) {
    void *p = NULL;
    int error = NEXT.posix_memalign(&p, alignment < sizeof p ? sizeof p : alignment, bytes);
    if (error != 0)
        errno = error;
    return error == 0 ? p : NULL;
}
static void *without_valloc(size_t bytes) {
    return NEXT.memalign(4096, bytes);
}
static void *without_pvalloc(size_t bytes) {
    return NEXT.memalign(4096, (bytes + 4095) & ~(size_t)4095);
}
/* ---- the pointers ---- */

static void look_up(void);

/* Until the first call, and for C++'s operators while there is no C++ library (it may come by dlopen), the pointers
   lead here. An operator that finds no other one behind us is malloc or free. */
#define X(name, parameters, arguments, bytes)                                                      \
    static void *first_##name parameters {                                                         \
        look_up();                                                                                 \
        return NEXT.name arguments;                                                                \
    }
SM_NATIVE_ALLOCATORS(X)
#undef X
#define X(name, parameters, arguments, bytes_)                                                     \
    static void *first_##name parameters {                                                         \
        look_up();                                                                                 \
        return NEXT.name != first_##name ? NEXT.name arguments : NEXT.malloc(bytes_);              \
    }
SM_NATIVE_NEW(X)
#undef X
#define X(name, parameters, arguments)                                                             \
    static void first_##name parameters {                                                          \
        look_up();                                                                                 \
        NEXT.name arguments;                                                                       \
    }
SM_NATIVE_RELEASERS(X)
#undef X
#define X(name, parameters, arguments)                                                             \
    static void first_##name parameters {                                                          \
        look_up();                                                                                 \
        if (NEXT.name != first_##name)                                                             \
            NEXT.name arguments;                                                                   \
        else                                                                                       \
            NEXT.free(p);                                                                          \
    }
SM_NATIVE_DELETE(X)
#undef X
static void *first_realloc(void *p, size_t bytes) {
    look_up();
    return NEXT.realloc(p, bytes);
}
static int first_posix_memalign(void **p, size_t alignment, size_t bytes) {
    look_up();
    return NEXT.posix_memalign(p, alignment, bytes);
}

struct sm_native_next sm_native_next = {
#define X(name, parameters, arguments, bytes) .name = first_##name,
    SM_NATIVE_ALLOCATORS(X) SM_NATIVE_NEW(X)
#undef X
#define X(name, parameters, arguments) .name = first_##name,
        SM_NATIVE_RELEASERS(X) SM_NATIVE_DELETE(X)
#undef X
            .realloc = first_realloc,
    .posix_memalign = first_posix_memalign,
};

/* relaxed: threads that look up at the same time store the same */
#define SET(name, function) __atomic_store_n(&NEXT.name, function, __ATOMIC_RELAXED)

static void look_up(void) {
    struct walk w;
    memset(&w, 0, sizeof w);
    dl_iterate_phdr(visit, &w);
    struct sm_native_next found;
    /* Stand-ins first: a pointer never goes from the real function to one of these. */
    if (w.found[AT_cfree] == NULL)
        SET(cfree, without_cfree);
    if (w.found[AT_free_sized] == NULL)
        SET(free_sized, without_free_sized);
    if (w.found[AT_free_aligned_sized] == NULL)
        SET(free_aligned_sized, without_free_aligned_sized);
    if (w.found[AT_memalign] == NULL)
        SET(memalign, without_memalign);
    if (w.found[AT_aligned_alloc] == NULL)
        SET(aligned_alloc, without_memalign);
    if (w.found[AT_valloc] == NULL)
        SET(valloc, without_valloc);
    if (w.found[AT_pvalloc] == NULL)
        SET(pvalloc, without_pvalloc);
#define TAKE(name)                                                                                 \
    if (w.found[AT_##name] != NULL) {                                                              \
        memcpy(&found.name, &w.found[AT_##name], sizeof found.name);                               \
        SET(name, found.name);                                                                     \
    }
#define X(name, parameters, arguments, bytes) TAKE(name)
    SM_NATIVE_ALLOCATORS(X)
    SM_NATIVE_NEW(X)
#undef X
#define X(name, parameters, arguments) TAKE(name)
    SM_NATIVE_RELEASERS(X)
    SM_NATIVE_DELETE(X)
#undef X
    TAKE(realloc)
    TAKE(posix_memalign)
#define X(name, parameters, arguments, bytes)                                                      \
    if (w.found[AT_##name] == NULL || w.object[AT_##name] != w.object[AT_malloc])                  \
        SET(kind##name, SM_OPERATOR_CALLS_US);                                                     \
    else if (NEXT.kind##name != SM_OPERATOR_DIRECT)                                                \
        SET(kind##name, SM_OPERATOR_UNKNOWN);
    SM_NATIVE_NEW(X)
#undef X
}

/* ---- who is in front ---- */

static int visit_front(struct dl_phdr_info *info, size_t bytes, void *ctx) {
    struct symbols s;
    bool *taken = ctx;
    if (holds(info, (uintptr_t)&here))
        return 1;
    if (read_symbols(info, &s) && find(&s, "malloc") != NULL)
        *taken = true;
    return *taken;
}

bool sm_native_in_front(void) {
    bool taken = false;
    dl_iterate_phdr(visit_front, &taken);
    return !taken;
}

/* NOLINTEND(bugprone-macro-parentheses) */
