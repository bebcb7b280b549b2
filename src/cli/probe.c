/* The same signs that the preload library goes by (runtime.c), read from the file; plus those that
   decide whether the library is loaded at all. */
#include "cli/probe.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/elf.h"
#include "ocaml/runtime.h"

#define MAGIC_BYTES 12 /* "Caml1999X030" at the end of bytecode files */

static void say(char *to, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void say(char *to, size_t bytes, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(to, bytes, format, args);
    va_end(args);
}

#define REASON(p, ...) say((p)->reason, sizeof(p)->reason, __VA_ARGS__)
#define ADVICE(p, ...) say((p)->advice, sizeof(p)->advice, __VA_ARGS__)

static void refuse(struct sm_probe *p, enum sm_ocaml_refusal refusal) {
    p->verdict = SM_VERDICT_NO;
    REASON(p, "%s", sm_ocaml_refusal_text(refusal));
    char *way_out = strstr(p->reason, ": ");
    if (way_out != NULL) {
        ADVICE(p, "%s", way_out + 2);
        *way_out = 0;
    }
}

/* ---- one ELF file ---- */

static bool has_symbol(const struct sm_elf *e, const char *name) {
    return sm_elf_find(e, name) != NULL;
}

static bool in_dynamic(const struct sm_elf *e, const char *name) {
    struct sm_elf only = *e;
    only.full = (struct sm_elf_table){0};
    return sm_elf_find(&only, name) != NULL;
}

/* An undefined dynamic symbol. */
static bool needs(const struct sm_elf *e, const char *name) {
    for (size_t i = 0; i < e->dynamic.n_symbols; i++) {
        const Elf64_Sym *s = &e->dynamic.symbols[i];
        if (s->st_shndx == SHN_UNDEF && strcmp(sm_elf_symbol_name(&e->dynamic, s), name) == 0)
            return true;
    }
    return false;
}

static void find_version(struct sm_probe *p, const struct sm_elf *e) {
    static const char *const bounds[][2] = {
        {"camlStdlib__Sys__data_begin", "camlStdlib__Sys__data_end"},
        {"camlStdlib__Sys.data_begin", "camlStdlib__Sys.data_end"},
    };
    for (size_t i = 0; i < 2; i++) {
        const Elf64_Sym *from = sm_elf_find(e, bounds[i][0]), *to = sm_elf_find(e, bounds[i][1]);
        if (from == NULL || to == NULL || to->st_value <= from->st_value)
            continue;
        size_t bytes = to->st_value - from->st_value;
        const char *data = (const char *)sm_elf_at(e, from->st_value, bytes);
        if (data != NULL && sm_ocaml_find_version(data, data + bytes, p->ocaml_version))
            return;
    }
}

/* The compiler gives calls their places even without -g, but allocations only with it: so what counts is
   how many of the frames that allocate have debug information.

   Frame descriptors: u64 count, then for each: u64 return address, u16 frame size and flags (1 debug
   information, 2 allocations), u16 live values, u16 for each, with flag 2 u8 n and n bytes, with flag 1 u32 (or n
   of them) aligned to 4; aligned to 8. False when the bytes are not of this form. */
static bool count_frames(const uint8_t *t, size_t bytes, uint64_t *with, uint64_t *all) {
    uint64_t n, found = 0, allocating = 0;
    if (bytes < 8)
        return false;
    memcpy(&n, t, 8);
    size_t at = 8;
    for (uint64_t i = 0; i < n; i++) {
        if (bytes < 12 || at > bytes - 12)
            return false;
        uint16_t size, live;
        memcpy(&size, t + at + 8, 2);
        memcpy(&live, t + at + 10, 2);
        at += 12 + 2u * live;
        if (size != 0xFFFF) {
            size_t lengths = 1;
            if (size & 2) {
                if (at >= bytes)
                    return false;
                lengths = t[at];
                at += 1 + lengths;
                allocating++;
                found += size & 1;
            }
            if (size & 1) {
                at = ((at + 3) & ~(size_t)3) + 4 * lengths;
            }
        }
        at = (at + 7) & ~(size_t)7;
    }
    *with += found;
    *all += allocating;
    return true;
}

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Looks at the units that are not OCaml's own. */
static void find_debug_info(struct sm_probe *p, const struct sm_elf *e) {
    const struct sm_elf_table *t = e->full.n_symbols > 0 ? &e->full : &e->dynamic;
    uint64_t with = 0, all = 0;
    for (size_t i = 0; i < t->n_symbols; i++) {
        const char *name = sm_elf_symbol_name(t, &t->symbols[i]);
        if (t->symbols[i].st_shndx == SHN_UNDEF || strncmp(name, "caml", 4) != 0 || name[4] < 'A' ||
            name[4] > 'Z' || !ends_with(name, "frametable") ||
            strncmp(name, "camlStdlib", 10) == 0 || strncmp(name, "camlCamlinternal", 16) == 0 ||
            strncmp(name, "camlStd_exit", 12) == 0)
            continue;
        /* It ends at the latest where the segment does. */
        for (size_t j = 0; j < e->n_segments; j++) {
            const Elf64_Phdr *s = &e->segments[j];
            uint64_t at = t->symbols[i].st_value;
            if (s->p_type != PT_LOAD || at < s->p_vaddr || at - s->p_vaddr >= s->p_filesz)
                continue;
            size_t bytes = s->p_filesz - (at - s->p_vaddr);
            const uint8_t *table = sm_elf_at(e, at, bytes);
            if (table != NULL)
                count_frames(table, bytes, &with, &all);
        }
    }
    if (all > 0)
        p->debug_info = with * 4 >= all; /* code that the compiler makes up has none even with -g */
}

/* Does code outside Stdlib.Gc call Gc.Memprof.start, or the primitive it stands for? Looks for the
   instructions (call, jump, address) whose operand leads there. */
static bool refers_to(const struct sm_elf *e, const uint64_t targets[2], uint64_t skip_from,
                      uint64_t skip_to) {
    const Elf64_Shdr *s = sm_elf_section(e, ".text");
    const uint8_t *code = s != NULL ? sm_elf_section_bytes(e, s) : NULL;
    if (code == NULL)
        return false;
    for (uint64_t i = 3; i + 4 <= s->sh_size; i++) {
        bool branch = code[i - 1] == 0xE8 || code[i - 1] == 0xE9;
        bool address = code[i - 2] == 0x8D && (code[i - 1] & 0xC7) == 0x05;
        bool constant = code[i - 2] == 0xC7 && (code[i - 1] & 0xF8) == 0xC0;
        if (!branch && !address && !constant)
            continue;
        int32_t operand;
        memcpy(&operand, code + i, 4);
        uint64_t place = s->sh_addr + i;
        uint64_t target = (constant && !branch ? 0 : place + 4) + (uint64_t)(int64_t)operand;
        if ((target == targets[0] || target == targets[1]) &&
            !(place >= skip_from && place < skip_to))
            return true;
    }
    return false;
}

static void find_memprof_use(struct sm_probe *p, const struct sm_elf *e) {
    const Elf64_Sym *start = sm_elf_find_prefix(e, "camlStdlib__Gc__start_");
    const Elf64_Sym *from = sm_elf_find(e, "camlStdlib__Gc__code_begin");
    const Elf64_Sym *to = sm_elf_find(e, "camlStdlib__Gc__code_end");
    if (from == NULL) {
        start = sm_elf_find_prefix(e, "camlStdlib__Gc.start_");
        from = sm_elf_find(e, "camlStdlib__Gc.code_begin");
        to = sm_elf_find(e, "camlStdlib__Gc.code_end");
    }
    const Elf64_Sym *primitive = sm_elf_find(e, "caml_memprof_start");
    if (p->kind != SM_OCAML_NATIVE || from == NULL || to == NULL || primitive == NULL)
        return;
    const uint64_t targets[2] = {primitive->st_value,
                                 start != NULL ? start->st_value : primitive->st_value};
    p->links_memprof = refers_to(e, targets, from->st_value, to->st_value);
}

static void judge_runtime(struct sm_probe *p, const struct sm_elf *e) {
    p->has_runtime = true;
    p->exports_runtime = in_dynamic(e, "caml_memprof_start");
    p->kind = has_symbol(e, "caml_prim_table") ? SM_OCAML_BYTECODE : SM_OCAML_NATIVE;
    find_version(p, e);
    if (has_symbol(e, "caml_memprof_young_trigger"))
        p->ocaml_major = 4;
    else if (has_symbol(e, "caml_memprof_sample_young"))
        p->ocaml_major = 5;
    else {
        p->ocaml_major = 5;
        refuse(p, SM_OCAML_WITHOUT_MEMPROF);
        return;
    }
    if (p->kind == SM_OCAML_NATIVE) {
        find_debug_info(p, e);
        find_memprof_use(p, e);
    }
#if !defined(__x86_64__)
    refuse(p, SM_OCAML_PROCESSOR);
#endif
}

static void judge_elf(struct sm_probe *p, const struct sm_elf *e) {
    p->is_elf = true;
    p->is_pie = e->header->e_type == ET_DYN;
    p->is_stripped = e->full.n_symbols == 0;
    p->is_static = e->interpreter == NULL;
    if (e->interpreter != NULL)
        say(p->interpreter, sizeof p->interpreter, "%s", e->interpreter);
    p->other_libc = e->interpreter != NULL && strstr(e->interpreter, "ld-linux") == NULL;
    p->own_malloc = in_dynamic(e, "malloc");
    p->sanitized = needs(e, "__asan_init") || needs(e, "__tsan_init") || needs(e, "__msan_init");
    p->native = !p->is_static && !p->other_libc && !p->own_malloc && !p->sanitized;
    if (has_symbol(e, "caml_memprof_start")) {
        judge_runtime(p, e);
    } else if (has_symbol(e, "caml_alloc_shr") || has_symbol(e, "caml_main")) {
        p->has_runtime = true;
        refuse(p, SM_OCAML_TOO_OLD);
    } else if (sm_ocaml_has_words(e)) {
        p->has_runtime = true;
        refuse(p, SM_OCAML_UNRESOLVABLE);
    } else {
        p->verdict = SM_VERDICT_PARTLY;
        REASON(p, "it holds no OCaml runtime: only its native memory can be recorded");
        if (p->own_malloc) {
            p->verdict = SM_VERDICT_NO;
            REASON(p, "it holds no OCaml runtime, and has a malloc of its own, which hides its "
                      "native memory");
        }
    }
    if (p->sanitized) {
        p->verdict = SM_VERDICT_NO;
        REASON(p, "it was built with a sanitizer, whose library must be the first one that is "
                  "loaded");
        ADVICE(p, "build it without -fsanitize");
    } else if (p->is_static) {
        p->verdict = SM_VERDICT_NO;
        REASON(p, "it is statically linked, so that no library can be preloaded");
        ADVICE(p,
               "link it dynamically (without -ccopt -static), or link it with the statmem library");
    } else if (p->other_libc) {
        p->verdict = SM_VERDICT_NO;
        REASON(p, "it is linked with another C library than glibc (%s)", p->interpreter);
        ADVICE(p, "link it with glibc, or link it with the statmem library");
    }
}

/* ---- the program's file ---- */

static bool read_at(int fd, void *to, size_t bytes, off_t at) {
    return pread(fd, to, bytes, at) == (ssize_t)bytes;
}

/* "#!/usr/bin/ocamlrun" into `to`: the first word, or the second after env. */
static bool script_interpreter(const char *line, char *to, size_t bytes) {
    const char *s = line + 2;
    for (int word = 0; word < 2; word++) {
        s += strspn(s, " \t");
        size_t n = strcspn(s, " \t\n");
        if (n == 0 || n >= bytes)
            return false;
        memcpy(to, s, n);
        to[n] = 0;
        if (!ends_with(to, "/env"))
            return true;
        s += n;
    }
    return true;
}

static void judge_file(struct sm_probe *p, const char *path, int depth);

static void judge_script(struct sm_probe *p, const char *interpreter, bool bytecode, int depth) {
    char found[1024] = "";
    p->is_script = true;
    p->is_bytecode_file |= bytecode;
    if (strchr(interpreter, '/') != NULL) {
        say(found, sizeof found, "%s", interpreter);
    } else { /* through env: one of the usual places */
        static const char *const folders[] = {"/usr/local/bin", "/usr/bin", "/bin"};
        for (size_t i = 0; i < 3 && (found[0] == 0 || access(found, X_OK) != 0); i++)
            say(found, sizeof found, "%s/%s", folders[i], interpreter);
    }
    if (depth >= 4) {
        p->verdict = SM_VERDICT_NO;
        REASON(p, "its interpreters lead in a circle");
        return;
    }
    judge_file(p, found, depth + 1);
    if (!bytecode && !p->has_runtime && p->is_elf && p->native) {
        p->verdict = SM_VERDICT_PARTLY;
        REASON(p,
               "it is a script for %.300s, which holds no OCaml runtime: only the native memory of "
               "that program can be recorded",
               found);
        ADVICE(
            p,
            "recording works when the script replaces itself by the OCaml program (exec), or with "
            "--follow-children");
    }
}

static void judge_file(struct sm_probe *p, const char *path, int depth) {
    char head[256] = "", tail[MAGIC_BYTES] = "", interpreter[256];
    struct stat st;
    say(p->file, sizeof p->file, "%s", path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        p->verdict = SM_VERDICT_NO;
        REASON(p, fd < 0 ? "%.300s cannot be opened" : "%.300s is not a regular file", path);
        if (fd >= 0)
            close(fd);
        return;
    }
    ssize_t n = pread(fd, head, sizeof head - 1, 0);
    head[n > 0 ? n : 0] = 0;
    bool bytecode = st.st_size > MAGIC_BYTES &&
                    read_at(fd, tail, MAGIC_BYTES, st.st_size - MAGIC_BYTES) &&
                    memcmp(tail, "Caml1999X", 9) == 0;
    p->set_id |= (st.st_mode & (S_ISUID | S_ISGID)) != 0 ||
                 fgetxattr(fd, "security.capability", NULL, 0) > 0;
    close(fd);
    if (head[0] == '#' && head[1] == '!') {
        if (script_interpreter(head, interpreter, sizeof interpreter))
            judge_script(p, interpreter, bytecode, depth);
        return;
    }
    struct sm_elf e;
    const char *why = "";
    if (!sm_elf_map(&e, path, &why)) {
        p->verdict = SM_VERDICT_NO;
        REASON(p,
               bytecode ? "it is a bytecode file without a first line that names ocamlrun"
                        : "%.300s is %s",
               path, why);
        if (bytecode)
            ADVICE(p, "record it as: statmem record -- ocamlrun FILE");
        p->is_bytecode_file |= bytecode;
        return;
    }
    judge_elf(p, &e);
    p->is_bytecode_file |= bytecode; /* -custom: runtime and bytecode in one file */
    sm_elf_unmap(&e);
}

bool sm_probe_file(struct sm_probe *p, const char *path) {
    memset(p, 0, sizeof *p);
    p->debug_info = -1;
    judge_file(p, path, 0);
    if (p->verdict == SM_VERDICT_NO)
        return p->is_elf || p->is_script || p->is_bytecode_file;
    if (p->kind == SM_OCAML_BYTECODE && !p->is_bytecode_file) {
        /* The interpreter itself, or bytecode as data of an executable. */
        if (!ends_with(p->file, "ocamlrun") && strstr(p->file, "/ocamlrun") == NULL) {
            refuse(p, SM_OCAML_EMBEDDED);
            return true;
        }
    }
    if (p->set_id) {
        p->native = false;
        p->verdict = SM_VERDICT_NO;
        REASON(p, "it runs with other rights than the user's (set-id bit or capabilities), and the "
                  "loader "
                  "then ignores LD_PRELOAD");
        ADVICE(p, "record a copy of the file: cp PROG /tmp/prog");
    } else if (p->links_memprof) {
        p->verdict = SM_VERDICT_PARTLY;
        REASON(
            p,
            "its own code can start Gc.Memprof, and only one profile runs at a time: the recording "
            "ends when it does");
        ADVICE(p,
               "run it in a way that leaves its own profiler off (for memtrace: without MEMTRACE)");
    } else if (p->debug_info == 0) {
        p->verdict = SM_VERDICT_PARTLY;
        REASON(p, "it was compiled without -g: many frames will have a function's name, but no "
                  "file and line");
        ADVICE(p, "compile and link it with -g (dune does)");
    }
    return true;
}
