/* OCaml's frame descriptors, found by return address: where the frames of OCaml code in a native stack have their source
   locations. Hook-safe. */
#ifndef SM_OCAML_FRAMES_H
#define SM_OCAML_FRAMES_H

#include <stdint.h>

/* The descriptor of a call in the executable's own OCaml code; it is what the runtime takes as a call-stack slot. NULL for C code,
   for calls that the runtime need not walk through ([@@noalloc]), and for plugins (Dynlink). `frametable`: the runtime's
   variable of that name. The first call makes an index of all descriptors (some milliseconds for a large program). */
const void *sm_ocaml_frame_descriptor(const int64_t *const *frametable, uintptr_t return_address);

#endif
