/* Call-stack slots of OCaml's runtime into source locations, in the process and at first sight.
   Hook-safe; the first frame without debug information of an object file maps that file. */
#ifndef SM_OCAML_LOCATIONS_H
#define SM_OCAML_LOCATIONS_H

#include <stdint.h>

#include "encode/syms_encoder.h"
#include "ocaml/runtime.h"

/* `rt` is kept by reference. Call before the first event. */
void sm_ocaml_locations_init(const struct sm_ocaml_runtime *rt);

/* A sm_symbolize_fn (record/recorder.h): inlined frames outermost first. Without debug information one
   location, named by the symbol that holds the return address (flag NO_DEBUG), else by object
   file and offset. The strings stay valid as long as the process lives. */
uint32_t sm_ocaml_symbolize(uint64_t code, struct sm_source_location *locations, uint32_t max);

/* "camlStdlib__List__map_123" or "camlStdlib__List.map_123" into "Stdlib__List.map", the form of the runtime's own
   debug information. Writes at most `bytes` bytes with the terminating 0; returns the length,
   0 when the name is not one of OCaml's. */
size_t sm_ocaml_demangle(const char *symbol, char *out, size_t bytes);

#endif
