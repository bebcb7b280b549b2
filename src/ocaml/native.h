/* Names for the frames of C code (record/native_code.h). Hook-safe. */
#ifndef SM_OCAML_NATIVE_H
#define SM_OCAML_NATIVE_H

#include <stdint.h>

#include "encode/syms_encoder.h"

/* A sm_symbolize_fn for native codes alone (record/native_code.h): one location with the flag OFFSET (docs/format.md,
   section 6): object file, build-id and offset, and the name from the symbol tables where there is one. */
uint32_t sm_native_symbolize(uint64_t code, struct sm_source_location *locations, uint32_t max);

/* Names come after the run, from whoever reads the trace (`statmem record` does): the symbol tables are not read in this
   process. Call before the first event. */
void sm_native_names_later(void);

#endif
