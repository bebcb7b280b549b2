/* Objects are found by dl_iterate_phdr (whose lock is held for moments only, never across code of
   others), mapped, and their functions sorted by address. An object is published by a compare-and-
   swap into a free place of a fixed table; when two threads prepare the same one, the loser's work
   is thrown away. Nothing is ever removed: OCaml does not unload code.

   Only symbols with a size are taken, so an address between them is not given the name of its
   nearest neighbour: in a stripped program most of the code lies between the exported symbols. */
#include "ocaml/symbols.h"

#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "base/elf.h"

#define MAX_OBJECTS 128
#define MEMORY_CHUNK_BYTES (256u << 10)

struct function {
    uint64_t address; /* before relocation */
    uint32_t bytes;
    uint32_t name; /* offset in the string table */
};

struct object {
    uintptr_t load_address;
    uintptr_t start, end; /* of the loaded segments */
    const char *path;
    const char *names; /* NULL = no symbols */
    struct function *functions;
    size_t n_functions;
};

/* Published with release order by add_object, read with acquire order by find_object. */
static _Atomic(struct object *) objects[MAX_OBJECTS];

static void *map_pages(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* ---- memory for names ---- */

struct chunk {
    atomic_size_t used;
    char bytes[];
};

static _Atomic(struct chunk *) current_chunk; /* release in the exchange below, acquire here */

char *sm_symbol_memory(size_t bytes) {
    const size_t room = MEMORY_CHUNK_BYTES - sizeof(struct chunk);
    if (bytes > room)
        return NULL;
    for (;;) {
        struct chunk *c = atomic_load_explicit(&current_chunk, memory_order_acquire);
        if (c != NULL) {
            /* Relaxed: it only divides the room; the bytes are the caller's alone. */
            size_t at = atomic_fetch_add_explicit(&c->used, bytes, memory_order_relaxed);
            if (at <= room && bytes <= room - at)
                return c->bytes + at;
        }
        struct chunk *fresh = map_pages(MEMORY_CHUNK_BYTES);
        if (fresh == NULL)
            return NULL;
        if (!atomic_compare_exchange_strong_explicit(&current_chunk, &c, fresh,
                                                     memory_order_release, memory_order_relaxed))
            munmap(fresh, MEMORY_CHUNK_BYTES);
    }
}

/* ---- one object's functions ---- */

/* Heap sort: in place, no recursion, no worst case. */
static void sift_down(struct function *f, size_t root, size_t n) {
    struct function moved = f[root];
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && f[child + 1].address > f[child].address)
            child++;
        if (f[child].address <= moved.address)
            break;
        f[root] = f[child];
    }
    f[root] = moved;
}

static void sort_functions(struct function *f, size_t n) {
    for (size_t i = n / 2; i-- > 0;)
        sift_down(f, i, n);
    for (size_t i = n; i-- > 1;) {
        struct function last = f[i];
        f[i] = f[0];
        f[0] = last;
        sift_down(f, 0, i);
    }
}

static bool is_function(const Elf64_Sym *s) {
    return ELF64_ST_TYPE(s->st_info) == STT_FUNC && s->st_shndx != SHN_UNDEF && s->st_size > 0;
}

/* The file may have been replaced since it was loaded. */
static bool is_the_loaded_file(const struct sm_elf *e, uintptr_t load_address) {
    for (size_t i = 0; i < e->n_segments; i++) {
        const Elf64_Phdr *p = &e->segments[i];
        if (p->p_type == PT_LOAD && p->p_offset == 0)
            return p->p_filesz >= sizeof *e->header &&
                   memcmp((const void *)(load_address + p->p_vaddr), e->header,
                          sizeof *e->header) == 0;
    }
    return true; /* nothing to compare with */
}

static void read_functions(struct object *o) {
    struct sm_elf e;
    const char *why;
    if (!sm_elf_map(&e, o->path[0] != 0 ? o->path : "/proc/self/exe", &why))
        return;
    const struct sm_elf_table *table = e.full.n_symbols > 0 ? &e.full : &e.dynamic;
    size_t n = 0;
    for (size_t i = 0; i < table->n_symbols; i++)
        n += is_function(&table->symbols[i]);
    if (n == 0 || !is_the_loaded_file(&e, o->load_address) ||
        (o->functions = map_pages(n * sizeof *o->functions)) == NULL) {
        sm_elf_unmap(&e);
        return;
    }
    for (size_t i = 0; i < table->n_symbols; i++) {
        const Elf64_Sym *s = &table->symbols[i];
        if (is_function(s))
            o->functions[o->n_functions++] = (struct function){
                s->st_value, s->st_size < UINT32_MAX ? (uint32_t)s->st_size : UINT32_MAX,
                s->st_name};
    }
    sort_functions(o->functions, o->n_functions);
    o->names = table->strings; /* the mapping stays, for the names */
    for (size_t i = 0; i < o->n_functions; i++)
        if (o->functions[i].name >= table->strings_bytes)
            o->functions[i].bytes = 0; /* a wrong name covers nothing */
}

/* ---- objects ---- */

struct search {
    uintptr_t address;
    unsigned index;
    bool found;
    struct object object; /* path: the loader's own string */
    bool executable;
};

static int visit_object(struct dl_phdr_info *info, size_t bytes, void *ctx) {
    struct search *search = ctx;
    uintptr_t start = UINTPTR_MAX, end = 0;
    bool inside = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD)
            continue;
        uintptr_t from = info->dlpi_addr + p->p_vaddr, to = from + p->p_memsz;
        start = from < start ? from : start;
        end = to > end ? to : end;
        inside |= search->address >= from && search->address < to;
    }
    if (inside) {
        search->found = true;
        search->executable = search->index == 0;
        search->object.load_address = info->dlpi_addr;
        search->object.start = start;
        search->object.end = end;
        search->object.path = info->dlpi_name;
    }
    search->index++;
    return inside;
}

static const struct object *add_object(const struct search *search) {
    size_t path_bytes = search->executable ? 1 : strlen(search->object.path) + 1;
    size_t bytes = sizeof(struct object) + path_bytes;
    struct object *o = map_pages(bytes);
    if (o == NULL)
        return NULL;
    *o = search->object;
    char *path = (char *)(o + 1);
    memcpy(path, search->executable ? "" : search->object.path, path_bytes);
    o->path = path;
    read_functions(o);
    for (size_t i = 0; i < MAX_OBJECTS; i++) {
        struct object *there = NULL;
        /* release: pairs with the load in find_object; acquire: so that the other's is readable */
        if (atomic_compare_exchange_strong_explicit(&objects[i], &there, o, memory_order_acq_rel,
                                                    memory_order_acquire))
            return o;
        if (there->start == o->start) {
            if (o->functions != NULL)
                munmap(o->functions, o->n_functions * sizeof *o->functions);
            munmap(o, bytes);
            return there;
        }
    }
    return o; /* the table is full: known this once */
}

static const struct object *find_object(uintptr_t address) {
    for (size_t i = 0; i < MAX_OBJECTS; i++) {
        const struct object *o = atomic_load_explicit(&objects[i], memory_order_acquire);
        if (o == NULL)
            break;
        if (address >= o->start && address < o->end)
            return o;
    }
    struct search search = {.address = address};
    dl_iterate_phdr(visit_object, &search);
    return search.found ? add_object(&search) : NULL;
}

bool sm_symbol_at(uintptr_t address, struct sm_symbol *out) {
    const struct object *o = find_object(address);
    if (o == NULL)
        return false;
    uint64_t at = address - o->load_address;
    *out = (struct sm_symbol){.name = NULL, .offset = at, .object = o->path};
    size_t low = 0, high = o->n_functions;
    while (low < high) { /* the first function that begins after the address */
        size_t middle = low + (high - low) / 2;
        if (o->functions[middle].address <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low > 0 && at - o->functions[low - 1].address < o->functions[low - 1].bytes) {
        out->name = o->names + o->functions[low - 1].name;
        out->offset = at - o->functions[low - 1].address;
    }
    return true;
}
