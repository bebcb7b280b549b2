/* What src/ocaml and src/base/elf can be asked without an OCaml runtime. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/elf.h"
#include "ocaml/locations.h"
#include "ocaml/symbols.h"

static void demangling(void **state) {
    static const char *const cases[][2] = {
        {"camlStdlib__List__map_123", "Stdlib__List.map"},
        {"camlStdlib__List.map_123", "Stdlib__List.map"},
        {"camlHello__f_81", "Hello.f"},
        {"camlHello.fun_270", "Hello.(fun)"},
        {"camlHello__entry", "Hello.entry"},
        {"camlDune__exe__Main__go_7", "Dune__exe__Main.go"},
        {"camlM__a__b_5", "M.a__b"},
        {"camlM__$2b$2b_12", "M.++"},
        {"camlM.x_1_22", "M.x_1"},
        {"camlM.x'_3", "M.x'"},
        {"camlA__B.f_1", "A__B.f"},
        {"caml_alloc_shr", ""},
        {"caml", ""},
        {"camlM", ""},
        {"camlM__", ""},
        {"camlM.", ""},
        {"main", ""},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[64] = "";
        size_t n = sm_ocaml_demangle(cases[i][0], out, sizeof out);
        if (cases[i][1][0] == 0) {
            assert_int_equal(n, 0);
            continue;
        }
        assert_string_equal(out, cases[i][1]);
        assert_int_equal(n, strlen(out));
    }
}

static void demangling_never_overflows(void **state) {
    const char *name = "camlVery__Long__Module__with_a_function$2a_name_17";
    for (size_t room = 0; room < 60; room++) {
        char out[64];
        memset(out, 0x55, sizeof out);
        size_t n = sm_ocaml_demangle(name, out, room);
        assert_true(room == 0 || n < room);
        for (size_t i = room; i < sizeof out; i++)
            assert_int_equal(out[i], 0x55);
    }
}

static void version_strings(void **state) {
    char version[32] = "";
    const char with[] = "abcdefg\0"
                        "5.3.0\0\0\2"
                        "Unix\0\0\0\3";
    assert_true(sm_ocaml_find_version(with, with + sizeof with - 1, version));
    assert_string_equal(version, "5.3.0");
    const char plus[] = "x\0"
                        "4.14.2+flambda\0";
    assert_true(sm_ocaml_find_version(plus, plus + sizeof plus - 1, version));
    assert_string_equal(version, "4.14.2+flambda");
    const char without[] = "%s version 5.x ... 3.14.1 a.b.c 45.3.0 .";
    assert_false(sm_ocaml_find_version(without, without + sizeof without - 1, version));
}

/* Our own executable as an example. */
static void read_elf(struct sm_elf *e) {
    const char *why = NULL;
    assert_true(sm_elf_map(e, "/proc/self/exe", &why));
}

static void elf_symbols(void **state) {
    struct sm_elf e;
    read_elf(&e);
    const Elf64_Sym *s = sm_elf_find(&e, "sm_ocaml_demangle");
    assert_non_null(s);
    assert_non_null(sm_elf_at(&e, s->st_value, s->st_size));
    assert_null(sm_elf_find(&e, "sm_ocaml_demangl"));
    assert_non_null(sm_elf_find_prefix(&e, "sm_ocaml_demangl"));
    assert_non_null(sm_elf_section(&e, ".text"));
    assert_non_null(e.interpreter);
    sm_elf_unmap(&e);
    const char *why = NULL;
    assert_false(sm_elf_map(&e, "/nonexistent", &why));
    assert_string_equal(why, "cannot be opened");
    assert_false(sm_elf_map(&e, "/", &why));
}

/* Uses all that a parsed file offers. */
static void use(const void *data, size_t bytes) {
    struct sm_elf e;
    const char *why = NULL;
    if (!sm_elf_parse(&e, data, bytes, &why)) {
        assert_non_null(why);
        return;
    }
    sm_elf_find(&e, "no such name");
    const Elf64_Shdr *text = sm_elf_section(&e, ".rodata");
    if (text != NULL) {
        const uint8_t *p = sm_elf_section_bytes(&e, text);
        if (p != NULL && text->sh_size > 0)
            assert_true(p >= (const uint8_t *)data &&
                        p + text->sh_size <= (const uint8_t *)data + bytes);
    }
    sm_elf_at(&e, 0x1000, 64);
    if (e.interpreter != NULL)
        assert_true(strlen(e.interpreter) < bytes);
}

static void elf_damage(void **state) {
    struct sm_elf e;
    read_elf(&e);
    size_t bytes = e.bytes < 200000 ? e.bytes : 200000;
    uint8_t *copy = malloc(bytes); /* its own block, so that a sanitizer sees its end */
    assert_non_null(copy);
    for (size_t cut = 0; cut < 4096; cut += cut < 256 ? 1 : 61) {
        uint8_t *shorter = malloc(cut + 1);
        assert_non_null(shorter);
        memcpy(shorter, e.data, cut);
        use(shorter, cut);
        free(shorter);
    }
    /* Every byte of the header and of the program headers, and the last pages, where sections are. */
    memcpy(copy, e.data, bytes);
    for (size_t i = 16; i < 1024; i++) {
        static const uint8_t values[] = {0, 1, 0x7f, 0xff};
        for (size_t j = 0; j < sizeof values; j++) {
            uint8_t old = copy[i];
            copy[i] = values[j];
            use(copy, bytes);
            copy[i] = old;
        }
    }
    free(copy);
    /* The same in the section headers of the whole file. */
    uint8_t *whole = malloc(e.bytes);
    assert_non_null(whole);
    memcpy(whole, e.data, e.bytes);
    for (size_t i = e.header->e_shoff; i < e.bytes; i += 3) {
        uint8_t old = whole[i];
        whole[i] ^= 0xff;
        use(whole, e.bytes);
        whole[i] = old;
    }
    free(whole);
    sm_elf_unmap(&e);
}

__attribute__((noinline)) static int a_function_to_find(int x) {
    __asm__ volatile("" ::: "memory");
    return x + 1;
}

static void symbols(void **state) {
    struct sm_symbol s;
    int (*volatile f)(int) = a_function_to_find;
    assert_true(sm_symbol_at((uintptr_t)f, &s));
    assert_string_equal(s.name, "a_function_to_find");
    assert_int_equal(s.offset, 0);
    assert_string_equal(s.object, "");
    assert_true(sm_symbol_at((uintptr_t)f + 1, &s));
    assert_string_equal(s.name, "a_function_to_find");
    assert_int_equal(s.offset, 1);
    /* Data of the executable is covered by no function: the object is known, no neighbour's name given. */
    static int data = 1;
    assert_true(sm_symbol_at((uintptr_t)&data, &s));
    assert_null(s.name);
    /* A library, and no object at all. */
    /* Asked of the library itself: a sanitizer may stand before the name. */
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    assert_non_null(libc);
    assert_true(sm_symbol_at((uintptr_t)dlsym(libc, "qsort"), &s));
    assert_non_null(strstr(s.object, "libc"));
    int local;
    assert_false(sm_symbol_at((uintptr_t)&local, &s));
}

static void symbol_memory(void **state) {
    char *a = sm_symbol_memory(100), *b = sm_symbol_memory(100);
    assert_non_null(a);
    assert_true(b >= a + 100 || a >= b + 100);
    for (int i = 0; i < 10000; i++) {
        char *p = sm_symbol_memory(100);
        assert_non_null(p);
        memset(p, i, 100);
    }
    assert_null(sm_symbol_memory(1u << 30));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(demangling),      cmocka_unit_test(demangling_never_overflows),
        cmocka_unit_test(version_strings), cmocka_unit_test(elf_symbols),
        cmocka_unit_test(elf_damage),      cmocka_unit_test(symbols),
        cmocka_unit_test(symbol_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
