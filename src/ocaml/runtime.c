/* How the versions are told apart: OCaml 4.11-4.14 export caml_memprof_young_trigger; 5.3 and later, and 5.2
   with the backport, export caml_memprof_sample_young. 5.0-5.2 have a caml_memprof_start that can only raise.
   Programs made by ocamlopt export the runtime's symbols (its linker flag -E) even when stripped; without
   -E the file's full symbol table serves. */
#include "ocaml/runtime.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "base/elf.h"

struct resolver {
    struct sm_elf executable;
    bool tried;
    bool mapped;
    uintptr_t load_address;
};

static int first_object(struct dl_phdr_info *info, size_t bytes, void *ctx) {
    *(uintptr_t *)ctx = info->dlpi_addr; /* the executable comes first */
    return 1;
}

static void *look_up(struct resolver *r, const char *name) {
    void *p = dlsym(RTLD_DEFAULT, name);
    if (p != NULL)
        return p;
    if (!r->tried) {
        const char *why;
        r->tried = true;
        r->mapped = sm_elf_map(&r->executable, "/proc/self/exe", &why);
        dl_iterate_phdr(first_object, &r->load_address);
    }
    if (!r->mapped)
        return NULL;
    const Elf64_Sym *s = sm_elf_find(&r->executable, name);
    return s != NULL ? (void *)(r->load_address + s->st_value) : NULL;
}

/* Function pointers are filled through their bytes: ISO C has no cast from void *. */
static void take(struct resolver *r, const char *name, void *function_pointer) {
    void *p = look_up(r, name);
    memcpy(function_pointer, &p, sizeof p);
}

static bool version_at(const char *p, const char *end, char out[32]) {
    size_t n = 0;
    while (p + n < end && n < 31 && p[n] > ' ' && p[n] < 127)
        n++;
    if (n < 5 || (p[0] != '4' && p[0] != '5') || p[1] != '.' || p[2] < '0' || p[2] > '9')
        return false;
    for (size_t i = 0; i < n; i++)
        if (i < 3 ? !((p[i] >= '0' && p[i] <= '9') || p[i] == '.') : p[i] == '%')
            return false;
    memcpy(out, p, n);
    out[n] = 0;
    return true;
}

bool sm_ocaml_find_version(const char *from, const char *to, char out[32]) {
    /* Strings of OCaml are word-aligned, those of C follow a 0 byte or stand after "version ". */
    for (const char *p = from; p + 5 < to; p++) {
        p = memchr(p, '.', (size_t)(to - p - 1));
        if (p == NULL)
            return false;
        if (p - from < 1)
            continue;
        bool begins = p - from == 1 || p[-2] == 0 || p[-2] == ' ' || ((uintptr_t)(p - 1) & 7) == 0;
        if (begins && version_at(p - 1, to, out))
            return true;
    }
    return false;
}

static void find_version(struct resolver *r, struct sm_ocaml_runtime *rt) {
    static const char *const bounds[][2] = {
        {"camlStdlib__Sys__data_begin", "camlStdlib__Sys__data_end"},
        {"camlStdlib__Sys.data_begin", "camlStdlib__Sys.data_end"},
    };
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        const char *from = look_up(r, bounds[i][0]), *to = look_up(r, bounds[i][1]);
        if (from != NULL && to != NULL && from < to && sm_ocaml_find_version(from, to, rt->version))
            return;
    }
    static const char known[2][sizeof rt->version] = {"4.11-4.14", "5.3+"};
    memcpy(rt->version, known[rt->major != 4], sizeof rt->version);
}

/* caml_state is thread-local in the executable: its distance from the thread pointer is the same in all threads. */
static void find_state_5(struct sm_ocaml_runtime *rt) {
#if defined(__x86_64__)
    const char *here = dlsym(RTLD_DEFAULT, "caml_state"); /* the calling thread's */
    const char *thread;
    __asm__("movq %%fs:0, %0" : "=r"(thread));
    rt->has_state_5 = here != NULL;
    rt->state_5_offset = rt->has_state_5 ? here - thread : 0;
#endif
}

bool sm_ocaml_thread_has_domain(const struct sm_ocaml_runtime *rt) {
#if defined(__x86_64__)
    const char *thread;
    __asm__("movq %%fs:0, %0" : "=r"(thread));
    return rt->has_state_5 && *(void *const *)(thread + rt->state_5_offset) != NULL;
#else
    return false;
#endif
}

bool sm_ocaml_has_words(const struct sm_elf *e) {
    /* Without its first letter, so that a program that holds this code is not taken for a runtime. */
    static const char message[] = "atal error: exception %s\n";
    const Elf64_Shdr *s = sm_elf_section(e, ".rodata");
    const char *text = s != NULL ? (const char *)sm_elf_section_bytes(e, s) : NULL;
    if (text == NULL || memmem(text, s->sh_size, "OCAMLRUNPARAM", 13) == NULL)
        return false;
    const char *end = text + s->sh_size, *at = text + 1;
    while (at < end && (at = memmem(at, (size_t)(end - at), message, sizeof message)) != NULL) {
        if (at[-1] == 'F')
            return true;
        at++;
    }
    return false;
}

static enum sm_ocaml_refusal resolve(struct resolver *r, struct sm_ocaml_runtime *rt) {
#if !defined(__x86_64__)
    return SM_OCAML_PROCESSOR;
#endif
    take(r, "caml_memprof_start", &rt->memprof_start);
    if (rt->memprof_start == NULL) {
        if (look_up(r, "caml_alloc_shr") != NULL || look_up(r, "caml_main") != NULL)
            return SM_OCAML_TOO_OLD;
        return r->mapped && sm_ocaml_has_words(&r->executable) ? SM_OCAML_UNRESOLVABLE
                                                               : SM_OCAML_NOT_OCAML;
    }
    if (look_up(r, "caml_memprof_young_trigger") != NULL)
        rt->major = 4;
    else if (look_up(r, "caml_memprof_sample_young") != NULL)
        rt->major = 5;
    else
        return SM_OCAML_WITHOUT_MEMPROF;
    rt->locations_since_5_2 = rt->major == 5;
    take(r, "caml_memprof_stop", &rt->memprof_stop);
    take(r, "caml_debuginfo_extract", &rt->debuginfo_extract);
    take(r, "caml_debuginfo_next", &rt->debuginfo_next);
    take(r, "caml_debuginfo_location", &rt->debuginfo_location);
    take(r, "caml_gc_minor_words_unboxed", &rt->minor_words);
    rt->prim_table = look_up(r, "caml_prim_table");
    rt->start_code = look_up(r, "caml_start_code");
    rt->kind =
        rt->prim_table != NULL && rt->start_code != NULL ? SM_OCAML_BYTECODE : SM_OCAML_NATIVE;
    if (rt->kind == SM_OCAML_BYTECODE) {
        rt->global_data = look_up(r, "caml_global_data");
        take(r, "caml_ext_table_add", &rt->ext_table_add);
        take(r, "caml_thread_code", &rt->thread_code);
        if (rt->global_data == NULL || rt->ext_table_add == NULL)
            return SM_OCAML_UNRESOLVABLE;
    } else {
        rt->c_call = look_up(r, "caml_c_call");
        rt->frametable = look_up(r, "caml_frametable");
        if (rt->c_call == NULL)
            return SM_OCAML_UNRESOLVABLE;
    }
    if (rt->major == 4) {
        rt->state_4 = look_up(r, "Caml_state");
    } else {
        take(r, "caml_ml_domain_id", &rt->domain_id);
        find_state_5(rt);
        take(r, "caml_compute_gc_stats", &rt->compute_gc_stats);
        rt->minor_collections = look_up(r, "caml_minor_collections_count");
        rt->major_cycles = look_up(r, "caml_major_cycles_completed");
    }
    take(r, "caml_minor_gc_begin_hook", &rt->minor_gc_begin_hook);
    take(r, "caml_minor_gc_end_hook", &rt->minor_gc_end_hook);
    take(r, "caml_major_slice_begin_hook", &rt->major_slice_begin_hook);
    take(r, "caml_major_slice_end_hook", &rt->major_slice_end_hook);
    if (rt->memprof_stop == NULL || rt->debuginfo_extract == NULL || rt->debuginfo_next == NULL ||
        rt->debuginfo_location == NULL)
        return SM_OCAML_UNRESOLVABLE;
    find_version(r, rt);
    return SM_OCAML_TRACEABLE;
}

enum sm_ocaml_refusal sm_ocaml_runtime_resolve(struct sm_ocaml_runtime *rt) {
    struct resolver r = {.tried = false};
    memset(rt, 0, sizeof *rt);
    enum sm_ocaml_refusal refusal = resolve(&r, rt);
    if (r.mapped)
        sm_elf_unmap(&r.executable);
    return refusal;
}

const char *sm_ocaml_refusal_text(enum sm_ocaml_refusal refusal) {
    switch (refusal) {
    case SM_OCAML_TRACEABLE:
        return "it can be traced";
    case SM_OCAML_NOT_OCAML:
        return "it holds no OCaml runtime";
    case SM_OCAML_TOO_OLD:
        return "its OCaml is older than 4.11, which has no Gc.Memprof: build it with OCaml 4.14, "
               "or 5.3 "
               "or later";
    case SM_OCAML_WITHOUT_MEMPROF:
        return "its OCaml is 5.0, 5.1 or 5.2, which were released without Gc.Memprof: build it "
               "with "
               "OCaml 5.3 or later, or 4.14";
    case SM_OCAML_EMBEDDED:
        return "it is bytecode made with -output-complete-exe or -output-obj, which gives no safe "
               "moment to start: build it with ocamlopt, or as plain bytecode";
    case SM_OCAML_UNRESOLVABLE:
        return "its runtime's symbols are hidden and stripped: build it without stripping, or "
               "without "
               "-ccopt -Wl,--no-export-dynamic";
    case SM_OCAML_PROCESSOR:
        return "recording without linking is not made for this processor yet: link the program "
               "with the "
               "statmem library";
    }
    return "";
}
