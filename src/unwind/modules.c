/* An append-only table in static memory (a forked child needs it too). An entry is written completely, then published by
   the count; readers go through it without a lock. Who adds holds a lock that nobody waits for: a thread that finds it
   taken, by another thread or by itself under a signal handler, uses what the loader said without keeping it.

   The loader is asked each time an address is looked up here, and its answer is compared with the entry: objects
   may have come and gone unseen. That is the way of addresses seen for the first time; known ones are in the unwinder's
   cache, which asks for the epoch alone. */
#include "unwind/modules.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unwind/probe.h"
#include "unwind/unwind.h"

#define PATHS_BYTES (512u << 10)

#pragma weak _dl_find_object

static struct sm_module table[SM_MAX_MODULES];
static char paths[PATHS_BYTES]; /* by the lock's holder */
static size_t paths_used;
/* Release in add (after the entry is written), acquire in sm_modules_count. */
static _Atomic uint32_t n_modules;
static _Atomic uint32_t not_kept;  /* relaxed: a figure */
static _Atomic uint32_t epoch;     /* relaxed: see sm_modules_epoch */
static _Atomic int32_t lock_owner; /* pid of the process whose thread adds; 0 = free */

/* ---- the lock nobody waits for ---- */

static bool try_lock(void) {
    int32_t pid = (int32_t)syscall(SYS_getpid), there = 0;
    /* acquire: pairs with the release in unlock. A parent's, copied by fork, is nobody's: its holder is not here. */
    if (atomic_compare_exchange_strong_explicit(&lock_owner, &there, pid, memory_order_acquire,
                                                memory_order_relaxed))
        return true;
    return there != pid &&
           atomic_compare_exchange_strong_explicit(&lock_owner, &there, pid, memory_order_acquire,
                                                   memory_order_relaxed);
}

static void unlock(void) {
    atomic_store_explicit(&lock_owner, 0, memory_order_release); /* pairs with try_lock */
}

/* ---- reading an object's program headers ---- */

struct headers {
    const Elf64_Phdr *h;
    size_t n;
};

static void read_build_id(struct sm_module *m, uintptr_t start, size_t bytes) {
    const uint8_t *p = (const uint8_t *)start, *end = p + bytes;
    while ((size_t)(end - p) >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr n;
        memcpy(&n, p, sizeof n);
        size_t name_bytes = ((size_t)n.n_namesz + 3) & ~(size_t)3;
        size_t value_bytes = ((size_t)n.n_descsz + 3) & ~(size_t)3;
        p += sizeof n;
        if (name_bytes > (size_t)(end - p) || value_bytes > (size_t)(end - p) - name_bytes)
            return;
        if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && memcmp(p, "GNU", 4) == 0 &&
            n.n_descsz <= sizeof m->build_id) {
            m->build_id_bytes = (uint8_t)n.n_descsz;
            memcpy(m->build_id, p + name_bytes, n.n_descsz);
            return;
        }
        p += name_bytes + value_bytes;
    }
}

/* [at, at+bytes) lies in the part of a readable segment that comes from the file? Its bounds then. */
static bool in_segment(const struct headers *s, uintptr_t bias, uintptr_t at, size_t bytes,
                       uintptr_t *start, uintptr_t *end) {
    for (size_t i = 0; i < s->n; i++) {
        const Elf64_Phdr *p = &s->h[i];
        uintptr_t from = bias + p->p_vaddr;
        if (p->p_type == PT_LOAD && p->p_flags & PF_R && at - from < p->p_filesz &&
            bytes <= p->p_filesz - (at - from)) {
            *start = from;
            *end = from + p->p_filesz;
            return true;
        }
    }
    return false;
}

static void read_headers(struct sm_module *m, const struct headers *s) {
    uintptr_t start, end;
    for (size_t i = 0; i < s->n; i++) {
        const Elf64_Phdr *p = &s->h[i];
        uintptr_t at = m->bias + p->p_vaddr;
        if (p->p_type != PT_NOTE && p->p_type != PT_GNU_EH_FRAME)
            continue;
        if (!in_segment(s, m->bias, at, p->p_filesz, &start, &end))
            continue;
        if (p->p_type == PT_NOTE && m->build_id_bytes == 0) {
            read_build_id(m, at, p->p_filesz);
        } else if (p->p_type == PT_GNU_EH_FRAME) {
            m->eh_frame_hdr = at;
            m->tables_start = start;
            m->tables_end = end;
        }
    }
}

/* The program headers, if the file's beginning is mapped where it should be. */
static struct headers headers_at(uintptr_t start, uintptr_t end) {
    struct headers none = {NULL, 0};
    if (!sm_probe_readable(start) || end - start < sizeof(Elf64_Ehdr))
        return none;
    const Elf64_Ehdr *e = (const Elf64_Ehdr *)start;
    if (memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 || e->e_ident[EI_CLASS] != ELFCLASS64 ||
        e->e_phentsize != sizeof(Elf64_Phdr) || e->e_phoff > end - start ||
        e->e_phnum * sizeof(Elf64_Phdr) > end - start - e->e_phoff)
        return none;
    uintptr_t first = start + e->e_phoff, last = first + e->e_phnum * sizeof(Elf64_Phdr) - 1;
    if (e->e_phnum == 0 || first % 8 != 0 || !sm_probe_readable(first) || !sm_probe_readable(last))
        return none;
    return (struct headers){(const Elf64_Phdr *)first, e->e_phnum};
}

/* ---- what the loader knows ---- */

#ifdef DLFO_STRUCT_HAS_EH_DBASE
/* start, end, bias, path, executable. */
static bool ask_loader(uintptr_t address, struct sm_module *m) {
    struct dl_find_object found;
    if (_dl_find_object == NULL || _dl_find_object((void *)address, &found) != 0)
        return false;
    memset(m, 0, sizeof *m);
    m->start = (uintptr_t)found.dlfo_map_start;
    m->end = (uintptr_t)found.dlfo_map_end;
    m->bias = found.dlfo_link_map->l_addr;
    m->path = found.dlfo_link_map->l_name;
    m->executable = m->path[0] == 0;
    return true;
}
#else
static bool ask_loader(uintptr_t address, struct sm_module *m) {
    return false;
}
#endif

/* The rest of what ask_loader describes. */
static void read_object(struct sm_module *m) {
    struct headers s = headers_at(m->start, m->end);
    if (s.n == 0 && m->executable) /* its ELF header is not in memory */
        s = (struct headers){(const Elf64_Phdr *)getauxval(AT_PHDR), getauxval(AT_PHNUM)};
    read_headers(m, &s);
}

/* ---- the table ---- */

static bool same(const struct sm_module *a, const struct sm_module *b) {
    return a->start == b->start && a->end == b->end && a->bias == b->bias &&
           a->eh_frame_hdr == b->eh_frame_hdr && a->build_id_bytes == b->build_id_bytes &&
           memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0 &&
           a->executable == b->executable && a->listed == b->listed &&
           (a->executable || strcmp(a->path, b->path) == 0);
}

static bool overlap(const struct sm_module *a, const struct sm_module *b) {
    return a->start < b->end && b->start < a->end;
}

/* NULL when it is not in the table. */
static struct sm_module *known_as(const struct sm_module *m) {
    uint32_t n = sm_modules_count();
    for (uint32_t i = 0; i < n; i++)
        if (same(&table[i], m))
            return &table[i];
    return NULL;
}

/* The lock is held. */
static const char *keep_path(const struct sm_module *m) {
    char *kept = paths + paths_used;
    size_t room = PATHS_BYTES - paths_used, bytes;
    if (m->executable) {
        long n = syscall(SYS_readlink, "/proc/self/exe", kept, room);
        bytes = n > 0 ? (size_t)n : 0;
    } else {
        bytes = strnlen(m->path, room);
        memcpy(kept, m->path, bytes);
    }
    if (bytes >= room)
        return NULL;
    kept[bytes] = 0;
    paths_used += bytes + 1;
    return kept;
}

/* The lock is held. Others that lay where it lies are gone. */
static void retire_overlapping(const struct sm_module *m) {
    uint32_t n = sm_modules_count();
    bool any = false;
    for (uint32_t i = 0; i < n; i++) {
        struct sm_module *other = &table[i];
        if (other != m && overlap(other, m) &&
            !atomic_load_explicit(&other->unmapped, memory_order_relaxed)) {
            atomic_store_explicit(&other->unmapped, true, memory_order_relaxed);
            any = true;
        }
    }
    if (any)
        sm_modules_unloaded();
}

static void mapped_again(struct sm_module *m) {
    atomic_store_explicit(&m->checked_epoch, sm_modules_epoch(), memory_order_relaxed);
    if (!atomic_load_explicit(&m->unmapped, memory_order_relaxed) || !try_lock())
        return;
    atomic_store_explicit(&m->unmapped, false, memory_order_relaxed);
    retire_overlapping(m);
    unlock();
}

/* The entry for what the loader described; NULL when it could not be kept. */
static struct sm_module *enter(const struct sm_module *m) {
    struct sm_module *known = known_as(m);
    if (known != NULL) {
        mapped_again(known);
        return known;
    }
    if (!try_lock())
        return NULL;
    known = known_as(m); /* another thread was faster */
    uint32_t n = sm_modules_count();
    if (known == NULL && n < SM_MAX_MODULES) {
        struct sm_module *e = &table[n];
        unsigned generation = 0;
        for (uint32_t i = 0; i < n; i++)
            if (overlap(&table[i], m) && table[i].generation >= generation)
                generation = table[i].generation + 1u;
        memcpy(e, m, sizeof *e); /* nobody reads it yet */
        e->generation =
            (uint16_t)(generation < SM_MODULE_MAX_GENERATION ? generation
                                                             : SM_MODULE_MAX_GENERATION);
        e->path = keep_path(m);
        if (e->path != NULL) {
            /* release: pairs with the acquire in sm_modules_count */
            atomic_store_explicit(&n_modules, n + 1, memory_order_release);
            retire_overlapping(e);
            atomic_store_explicit(&e->checked_epoch, sm_modules_epoch(), memory_order_relaxed);
            known = e;
        }
    }
    if (known == NULL)
        atomic_fetch_add_explicit(&not_kept, 1, memory_order_relaxed);
    unlock();
    return known;
}

/* The entry of what ask_loader described, if nothing was unloaded since it was compared in full. */
static const struct sm_module *checked_before(const struct sm_module *m) {
    uint32_t n = sm_modules_count(), now = sm_modules_epoch();
    for (uint32_t i = n; i-- > 0;) {
        const struct sm_module *e = &table[i];
        if (e->start == m->start && e->end == m->end && e->bias == m->bias &&
            atomic_load_explicit(&e->checked_epoch, memory_order_relaxed) == now &&
            !atomic_load_explicit(&e->unmapped, memory_order_relaxed) &&
            (m->executable ? e->executable : strcmp(e->path, m->path) == 0))
            return e;
    }
    return NULL;
}

/* Objects that _dl_find_object does not know, or not whole: where it is missing, and in static programs. */
static const struct sm_module *in_table(uintptr_t address) {
    for (uint32_t i = sm_modules_count(); i-- > 0;) {
        const struct sm_module *e = &table[i];
        if (address - e->start < e->end - e->start && e->listed &&
            !atomic_load_explicit(&e->unmapped, memory_order_relaxed))
            return e;
    }
    return NULL;
}

bool sm_module_find(uintptr_t address, struct sm_module *out, const struct sm_module **kept) {
    *kept = in_table(address);
    if (*kept == NULL) {
        if (!ask_loader(address, out))
            return false;
        *kept = checked_before(out);
        if (*kept == NULL) {
            read_object(out);
            *kept = enter(out);
        }
    }
    if (*kept != NULL)
        memcpy(out, *kept, sizeof *out);
    return true;
}

/* Names depend on the answer, so a moment's contention is sat out; but not by a signal handler over the holder, for ever. */
const struct sm_module *sm_module_at(uintptr_t address) {
    struct sm_module m;
    const struct sm_module *kept = NULL;
    for (int tries = 0; tries < 1000; tries++) {
        if (!sm_module_find(address, &m, &kept) || kept != NULL ||
            sm_modules_count() == SM_MAX_MODULES)
            break;
        sched_yield();
    }
    return kept;
}

bool sm_modules_verify(const uintptr_t *frames, uint32_t n) {
    struct sm_module m = {.start = 0, .end = 0};
    for (uint32_t i = 0; i < n; i++) {
        uintptr_t address = sm_frame_address(frames[i]) - 1;
        if (frames[i] == 0 || address - m.start < m.end - m.start || !ask_loader(address, &m))
            continue;
        const struct sm_module *e = checked_before(&m);
        if (e == NULL || e->generation != sm_frame_generation(frames[i])) {
            sm_modules_unloaded();
            return false;
        }
    }
    return true;
}

uint32_t sm_modules_count(void) {
    return atomic_load_explicit(&n_modules, memory_order_acquire); /* pairs with enter */
}

const struct sm_module *sm_modules_get(uint32_t i) {
    return i < sm_modules_count() ? &table[i] : NULL;
}

uint32_t sm_modules_not_kept(void) {
    return atomic_load_explicit(&not_kept, memory_order_relaxed);
}

/* Relaxed: a cache entry of a lower epoch is not used by whoever sees the new one; who does not yet could as well have
   run a moment earlier. */
uint32_t sm_modules_epoch(void) {
    return atomic_load_explicit(&epoch, memory_order_relaxed);
}

void sm_modules_unloaded(void) {
    atomic_fetch_add_explicit(&epoch, 1, memory_order_relaxed);
}

/* ---- all of them ---- */

struct refresh {
    bool first;
    uint8_t seen[SM_MAX_MODULES / 8];
};

static int visit(struct dl_phdr_info *info, size_t bytes, void *ctx) {
    struct refresh *r = ctx;
    struct headers s = {info->dlpi_phdr, info->dlpi_phnum};
    struct sm_module m = {.start = UINTPTR_MAX, .bias = info->dlpi_addr, .path = info->dlpi_name};
    for (size_t i = 0; i < s.n; i++) {
        if (s.h[i].p_type != PT_LOAD)
            continue;
        uintptr_t from = m.bias + s.h[i].p_vaddr, to = from + s.h[i].p_memsz;
        m.start = from < m.start ? from : m.start;
        m.end = to > m.end ? to : m.end;
    }
    m.executable = r->first || m.path == NULL || m.path[0] == 0;
    r->first = false;
    if (m.start >= m.end)
        return 0;
    struct sm_module described;
    const struct sm_module *kept = NULL;
    /* In a static executable the loader's answer, if it has one, ends with the first segment. */
    if (!ask_loader(m.start, &described) || described.end < m.end) {
        m.listed = true;
        read_headers(&m, &s);
        kept = enter(&m);
    } else { /* so that one object is described in one way */
        sm_module_find(m.start, &described, &kept);
    }
    if (kept != NULL)
        r->seen[(kept - table) / 8] |= (uint8_t)(1u << (kept - table) % 8);
    return 0;
}

void sm_modules_refresh(void) {
    struct refresh r;
    memset(&r, 0, sizeof r);
    r.first = true;
    dl_iterate_phdr(visit, &r);
    bool gone = false;
    uint32_t n = sm_modules_count();
    for (uint32_t i = 0; i < n; i++)
        if (!(r.seen[i / 8] >> i % 8 & 1) &&
            !atomic_load_explicit(&table[i].unmapped, memory_order_relaxed)) {
            struct sm_module m;
            /* What came after the list was made is not gone. */
            if (ask_loader(table[i].start, &m)) {
                read_object(&m);
                if (same(&table[i], &m))
                    continue;
            }
            atomic_store_explicit(&table[i].unmapped, true, memory_order_relaxed);
            gone = true;
        }
    if (gone)
        sm_modules_unloaded();
}
