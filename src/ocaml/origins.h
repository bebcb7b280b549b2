/* Which memory from malloc is OCaml's runtime's own, and for what. Hook-safe. */
#ifndef SM_OCAML_ORIGINS_H
#define SM_OCAML_ORIGINS_H

#include <stddef.h>
#include <stdint.h>

/* Finds the runtime's code. Call once, before the first question; without a runtime all is the program's. */
void sm_ocaml_origins_init(void);

/* A sm_native_classify_fn (native/native.h): SM_ORIGIN_OCAML_HEAP, _MINOR_HEAP, _OCAML_STACK, _CUSTOM or
   _RUNTIME when a function of the runtime asked for the memory, else SM_ORIGIN_NORMAL. Goes by the names of the
   functions on the stack. */
uint8_t sm_ocaml_native_origin(const uintptr_t *frames, size_t n);

#endif
