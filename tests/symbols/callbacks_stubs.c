#include <stdlib.h>

#include <caml/callback.h>
#include <caml/mlvalues.h>

static char *volatile kept;

value stub_grab(value n) {
    kept = malloc((size_t)Long_val(n));
    return Val_long(1);
}

value stub_back(value f, value x) {
    return caml_callback(f, x);
}
