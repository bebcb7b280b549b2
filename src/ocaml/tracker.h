/* The five Memprof callbacks, in C: they turn OCaml values into calls of the recorder. Hook-safe;
   they allocate nothing on the OCaml heap, raise nothing, and neither poll nor release the
   runtime lock, so they may be called from OCaml as [@@noalloc] externals. Any domain and thread. */
#ifndef SM_OCAML_TRACKER_H
#define SM_OCAML_TRACKER_H

#include <stdbool.h>
#include <stdint.h>

#include "ocaml/runtime.h"

/* Callbacks of Gc.Memprof.tracker. `info` is Gc.Memprof.allocation. The alloc and promote callbacks
   return an OCaml option: None when the object is not recorded (the runtime drops it), or Some token in
   a block that is valid until this thread's next callback; the runtime reads it at once. An OCaml
   program may only hand it on, not keep it. `token` is the recorder's token as an OCaml int. The
   dealloc callbacks return (). */
sm_value sm_tracker_alloc_minor(sm_value info);
sm_value sm_tracker_alloc_major(sm_value info);
sm_value sm_tracker_promote(sm_value token);
sm_value sm_tracker_dealloc_minor(sm_value token);
sm_value sm_tracker_dealloc_major(sm_value token);

/* The largest number of frames to ask the runtime for, given the depth limit of the trace. Larger
   than the limit: the recorder cuts the middle, so that the outermost callers stay known. */
uint32_t sm_tracker_callstack_size(uint32_t depth_limit);

/* To be called before Memprof starts. `rt` is kept by reference. `callstack_size` is the figure given to the runtime;
   stacks of just this length are marked as cut. `deadline_ns` (CLOCK_MONOTONIC) ends the recording at the
   first allocation after it; 0 = never. */
void sm_tracker_configure(const struct sm_ocaml_runtime *rt, uint32_t callstack_size,
                          uint64_t deadline_ns);

/* True when the deadline has ended the profile. */
bool sm_tracker_ended(void);

/* Unique id of the calling thread's OCaml domain (0 on OCaml 4); for struct sm_recorder_config.
   The thread must hold the runtime lock, as in a callback. */
uint64_t sm_tracker_current_domain(void);

/* For the recorder's config as well: for any thread, 0 when it is in no domain or OCaml has not begun. */
uint64_t sm_tracker_domain_if_any(void);

#endif
