/* What OCaml's runtime says of itself while it runs: the sizes of its heap, its collections, and how long they held up
   the program. Hook-safe.

   The runtime calls hooks of ours at the begin and the end of each minor collection and of each slice of a major one.
   They measure, and write the figures as COUNTERS into the calling domain's stream, once in an interval at most. */
#ifndef SM_OCAML_GC_H
#define SM_OCAML_GC_H

#include <stdint.h>

#include "ocaml/runtime.h"

/* Pauses of this length and more stand in the trace one by one, as GC_PHASE records. */
#define SM_GC_LONG_PAUSE_NS 1000000u

/* To be called before the other functions, with the runtime lock held. `rt` is kept by reference. With an interval of 0
   the hooks are left alone. A second call changes nothing: hooks that were set stay. */
void sm_gc_watch(const struct sm_ocaml_runtime *rt, uint64_t interval_ns);

/* Hands the runtime's figures to the recorder for END, as far as they can be read without
   allocating. Call it where the thread holds the runtime lock, or when no OCaml code runs any more. */
void sm_gc_final_counters(void);

#endif
