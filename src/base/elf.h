/* ELF files, read only as far as a profiler needs: symbols, the machine code's place, and the marks
   by which a program says how it was built. Hook-safe: maps files, allocates nothing; every
   offset taken from the file is checked against its length.

   Only 64-bit files of this machine's byte order are read. */
#ifndef SM_BASE_ELF_H
#define SM_BASE_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sm_elf_table {
    const Elf64_Sym *symbols;
    size_t n_symbols;
    const char *strings; /* ends with a 0 byte */
    size_t strings_bytes;
};

struct sm_elf {
    const uint8_t *data;
    size_t bytes;
    const Elf64_Ehdr *header;
    const Elf64_Phdr *segments;
    size_t n_segments;
    const Elf64_Shdr *sections; /* NULL when stripped of them */
    size_t n_sections;
    const char *section_names; /* NULL when absent */
    size_t section_names_bytes;
    struct sm_elf_table full;    /* .symtab; n_symbols = 0 when stripped */
    struct sm_elf_table dynamic; /* .dynsym */
    const char *interpreter;     /* PT_INTERP; NULL = static or a library */
};

/* Maps the file and reads its tables. False, with one word or two in *why, when it is no ELF file that can be
   read. `e` needs no earlier initialisation; after success call sm_elf_unmap. */
bool sm_elf_map(struct sm_elf *e, const char *path, const char **why);
void sm_elf_unmap(struct sm_elf *e);

/* The same over memory that the caller keeps. */
bool sm_elf_parse(struct sm_elf *e, const void *data, size_t bytes, const char **why);

/* Name of a symbol; "" when its offset is wrong. */
const char *sm_elf_symbol_name(const struct sm_elf_table *t, const Elf64_Sym *symbol);

/* The defined symbol of that name, in the full table, else in the dynamic one; NULL when absent. */
const Elf64_Sym *sm_elf_find(const struct sm_elf *e, const char *name);

/* The first defined symbol whose name begins with `prefix`. */
const Elf64_Sym *sm_elf_find_prefix(const struct sm_elf *e, const char *prefix);

/* Section by name, NULL when absent. Its bytes: sm_elf_section_bytes, NULL when they aren't in the file. */
const Elf64_Shdr *sm_elf_section(const struct sm_elf *e, const char *name);
const uint8_t *sm_elf_section_bytes(const struct sm_elf *e, const Elf64_Shdr *section);

/* The file's bytes that are loaded at virtual address `address`; NULL unless `bytes` of them are in the
   file. */
const uint8_t *sm_elf_at(const struct sm_elf *e, uint64_t address, size_t bytes);

#endif
