/* Names for the frames of C code (record/native_code.h). Hook-safe. */
#ifndef SM_OCAML_NATIVE_H
#define SM_OCAML_NATIVE_H

#include <stdint.h>

#include "encode/syms_encoder.h"

/* A sm_symbolize_fn: function and object file from the symbol tables, flags NO_DEBUG and NATIVE; without a symbol
   the offset in the object. Knows native codes alone. */
uint32_t sm_native_symbolize(uint64_t code, struct sm_source_location *locations, uint32_t max);

#endif
