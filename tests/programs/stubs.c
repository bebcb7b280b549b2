/* Stubs that take memory in the ways of the field: bigarrays' data, buffers that nobody tells the GC of, custom blocks. */
#include <stdlib.h>
#include <string.h>

#define CAML_NAME_SPACE
#include <caml/alloc.h>
#include <caml/custom.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>

static void *kept[100000];
static int n_kept;

__attribute__((noinline)) static void *grab(long n) {
    void *p = malloc((size_t)n);
    memset(p, 1, (size_t)n);
    return p;
}

/* A16, A17: kept for ever. */
value stub_keep(value n) {
    kept[n_kept++ % 100000] = grab(Long_val(n));
    return Val_unit;
}

/* A19: freed but on one path. */
value stub_path(value n, value forgets) {
    void *p = grab(Long_val(n));
    if (!Bool_val(forgets))
        free(p);
    return Val_unit;
}

/* The stub takes it through the runtime's own function: it is the program's all the same. */
value stub_stat(value n) {
    char *p = caml_stat_alloc((asize_t)Long_val(n));
    p[0] = 1;
    caml_stat_free(p);
    return Val_unit;
}

static void finalize(value v) {
    free(*(void **)Data_custom_val(v));
}
static struct custom_operations operations = {"statmem.test",
                                              finalize,
                                              custom_compare_default,
                                              custom_hash_default,
                                              custom_serialize_default,
                                              custom_deserialize_default,
                                              custom_compare_ext_default,
                                              custom_fixed_length_default};

value stub_custom(value n) {
    value v = caml_alloc_custom_mem(&operations, sizeof(void *), (mlsize_t)Long_val(n));
    *(void **)Data_custom_val(v) = grab(Long_val(n));
    return v;
}
