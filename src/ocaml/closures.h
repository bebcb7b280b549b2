/* Starts Memprof in a program that knows nothing of it: builds the tracker record, its five
   closures and the rate outside the OCaml heap, with code that leads from OCaml's calling convention
   to the C callbacks. For the preload library only; needs a runtime filled by
   sm_ocaml_runtime_resolve. Hook-safe. */
#ifndef SM_OCAML_CLOSURES_H
#define SM_OCAML_CLOSURES_H

#include "ocaml/runtime.h"

/* True when the runtime has come far enough in its start to begin a profile: heap made, and for bytecode
   code, primitives and global data loaded. */
bool sm_ocaml_ready(const struct sm_ocaml_runtime *rt);

/* True for bytecode that stands in the executable as data (-output-complete-exe, -output-obj): its
   start makes no call that we could take as the moment to begin. */
bool sm_ocaml_embedded(const struct sm_ocaml_runtime *rt);

/* Begins the profile on the calling thread, which must be in the runtime's start, between the
   creation of the heap and the first OCaml code. sm_tracker_configure comes first. */
void sm_ocaml_start_profile(const struct sm_ocaml_runtime *rt, double rate,
                            uint32_t callstack_size);

#endif
