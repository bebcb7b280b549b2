/* The file is untrusted as far as memory safety goes: a program under study may be cut or odd, and this
   code runs inside it. So every table is taken only when it lies in the file as a whole, and names
   are looked up only in string tables that end with a 0 byte. */
#include "base/elf.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool inside(const struct sm_elf *e, uint64_t offset, uint64_t bytes) {
    return offset <= e->bytes && bytes <= e->bytes - offset;
}

static void take_table(struct sm_elf *e, const Elf64_Shdr *s, struct sm_elf_table *out) {
    if (s->sh_link >= e->n_sections || s->sh_offset % 8 != 0 ||
        !inside(e, s->sh_offset, s->sh_size))
        return;
    const Elf64_Shdr *strings = &e->sections[s->sh_link];
    if (strings->sh_type != SHT_STRTAB || strings->sh_size == 0 ||
        !inside(e, strings->sh_offset, strings->sh_size) ||
        e->data[strings->sh_offset + strings->sh_size - 1] != 0)
        return;
    out->symbols = (const Elf64_Sym *)(e->data + s->sh_offset);
    out->n_symbols = s->sh_size / sizeof(Elf64_Sym);
    out->strings = (const char *)(e->data + strings->sh_offset);
    out->strings_bytes = strings->sh_size;
}

static void take_sections(struct sm_elf *e) {
    const Elf64_Ehdr *h = e->header;
    if (h->e_shoff == 0 || h->e_shoff % 8 != 0 || h->e_shentsize != sizeof(Elf64_Shdr) ||
        !inside(e, h->e_shoff, sizeof(Elf64_Shdr)))
        return;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(e->data + h->e_shoff);
    uint64_t n = h->e_shnum != 0 ? h->e_shnum : sections[0].sh_size;
    if (n > e->bytes / sizeof(Elf64_Shdr) || !inside(e, h->e_shoff, n * sizeof(Elf64_Shdr)))
        return;
    e->sections = sections;
    e->n_sections = n;
    if (h->e_shstrndx < n) {
        const Elf64_Shdr *names = &sections[h->e_shstrndx];
        if (names->sh_size > 0 && inside(e, names->sh_offset, names->sh_size) &&
            e->data[names->sh_offset + names->sh_size - 1] == 0) {
            e->section_names = (const char *)(e->data + names->sh_offset);
            e->section_names_bytes = names->sh_size;
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (sections[i].sh_type == SHT_SYMTAB)
            take_table(e, &sections[i], &e->full);
        else if (sections[i].sh_type == SHT_DYNSYM)
            take_table(e, &sections[i], &e->dynamic);
    }
}

bool sm_elf_parse(struct sm_elf *e, const void *data, size_t bytes, const char **why) {
    memset(e, 0, sizeof *e);
    e->data = data;
    e->bytes = bytes;
    const Elf64_Ehdr *h = data;
    if (bytes < EI_NIDENT || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0) {
        *why = "not an ELF file";
        return false;
    }
    if (h->e_ident[EI_CLASS] != ELFCLASS64) {
        *why = "a 32-bit program";
        return false;
    }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const unsigned char order = ELFDATA2LSB;
#else
    const unsigned char order = ELFDATA2MSB;
#endif
    if (h->e_ident[EI_DATA] != order) {
        *why = "a program of another byte order";
        return false;
    }
    if (bytes < sizeof *h || h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phoff % 8 != 0 ||
        !inside(e, h->e_phoff, (uint64_t)h->e_phnum * sizeof(Elf64_Phdr))) {
        *why = "a damaged ELF file";
        return false;
    }
    e->header = h;
    e->segments = (const Elf64_Phdr *)(e->data + h->e_phoff);
    e->n_segments = h->e_phnum;
    for (size_t i = 0; i < e->n_segments; i++) {
        const Elf64_Phdr *p = &e->segments[i];
        if (p->p_type == PT_INTERP && p->p_filesz > 0 && inside(e, p->p_offset, p->p_filesz) &&
            e->data[p->p_offset + p->p_filesz - 1] == 0)
            e->interpreter = (const char *)(e->data + p->p_offset);
    }
    take_sections(e);
    return true;
}

bool sm_elf_map(struct sm_elf *e, const char *path, const char **why) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        *why = "cannot be opened";
        return false;
    }
    struct stat st;
    void *data = MAP_FAILED;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
        data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (data == MAP_FAILED) {
        *why = "cannot be read";
        return false;
    }
    if (sm_elf_parse(e, data, (size_t)st.st_size, why))
        return true;
    munmap(data, (size_t)st.st_size);
    return false;
}

void sm_elf_unmap(struct sm_elf *e) {
    if (e->data != NULL)
        munmap((void *)(uintptr_t)e->data, e->bytes);
    memset(e, 0, sizeof *e);
}

const char *sm_elf_symbol_name(const struct sm_elf_table *t, const Elf64_Sym *symbol) {
    return symbol->st_name < t->strings_bytes ? t->strings + symbol->st_name : "";
}

static const Elf64_Sym *find_in(const struct sm_elf_table *t, const char *name, bool prefix) {
    size_t bytes = strlen(name) + (prefix ? 0 : 1);
    if (bytes == 0)
        return NULL;
    /* Nearly all names of an OCaml program begin alike; they differ in how they end. */
    char last = name[bytes - 1], before = name[bytes > 1 ? bytes - 2 : 0];
    for (size_t i = 0; i < t->n_symbols; i++) {
        const Elf64_Sym *s = &t->symbols[i];
        if (s->st_name >= t->strings_bytes || bytes > t->strings_bytes - s->st_name)
            continue;
        const char *candidate = t->strings + s->st_name;
        if (candidate[bytes - 1] == last && candidate[bytes > 1 ? bytes - 2 : 0] == before &&
            s->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(s->st_info) < STT_SECTION &&
            memcmp(candidate, name, bytes) == 0)
            return s;
    }
    return NULL;
}

const Elf64_Sym *sm_elf_find(const struct sm_elf *e, const char *name) {
    const Elf64_Sym *s = find_in(&e->full, name, false);
    return s != NULL ? s : find_in(&e->dynamic, name, false);
}

const Elf64_Sym *sm_elf_find_prefix(const struct sm_elf *e, const char *prefix) {
    const Elf64_Sym *s = find_in(&e->full, prefix, true);
    return s != NULL ? s : find_in(&e->dynamic, prefix, true);
}

const Elf64_Shdr *sm_elf_section(const struct sm_elf *e, const char *name) {
    for (size_t i = 0; i < e->n_sections && e->section_names != NULL; i++) {
        const Elf64_Shdr *s = &e->sections[i];
        if (s->sh_name < e->section_names_bytes && strcmp(e->section_names + s->sh_name, name) == 0)
            return s;
    }
    return NULL;
}

const uint8_t *sm_elf_section_bytes(const struct sm_elf *e, const Elf64_Shdr *section) {
    if (section->sh_type == SHT_NOBITS || !inside(e, section->sh_offset, section->sh_size))
        return NULL;
    return e->data + section->sh_offset;
}

const uint8_t *sm_elf_at(const struct sm_elf *e, uint64_t address, size_t bytes) {
    for (size_t i = 0; i < e->n_segments; i++) {
        const Elf64_Phdr *p = &e->segments[i];
        if (p->p_type != PT_LOAD || address < p->p_vaddr || address - p->p_vaddr > p->p_filesz ||
            bytes > p->p_filesz - (address - p->p_vaddr))
            continue;
        uint64_t offset = p->p_offset + (address - p->p_vaddr);
        return inside(e, offset, bytes) ? e->data + offset : NULL;
    }
    return NULL;
}
