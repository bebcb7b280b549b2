/* The calling thread's stack, from inside a hook. Hook-safe: no allocation, no lock (the loader's neither), never a
   fault; reentrant, so a signal handler may call it in the middle of another call.

   A frame is stored as one number, `sm_frame`:

       bits 0..47   return address. Of a frame that a signal interrupted: the interrupted address plus 1. So that in both
                    cases the byte before (address minus 1) belongs to the instruction meant
       bits 48..59  load generation: 0, or how often another object file had been loaded at this place before
                    (unwind/modules.h). Two frames are the same code when their numbers are the same

   0 is no frame: it stands for those that were cut. */
#ifndef SM_UNWIND_UNWIND_H
#define SM_UNWIND_UNWIND_H

#include <stdint.h>

#define SM_FRAME_ADDRESS_BITS 48

static inline uintptr_t sm_frame_address(uintptr_t frame) {
    return frame & (((uintptr_t)1 << SM_FRAME_ADDRESS_BITS) - 1);
}

static inline unsigned sm_frame_generation(uintptr_t frame) {
    return (unsigned)(frame >> SM_FRAME_ADDRESS_BITS);
}

/* Frames beyond are not looked at: what stands there is not known (SM_UNWIND_TOO_DEEP). */
#define SM_UNWIND_MAX_FRAMES 65536u

enum sm_unwind_end {
    SM_UNWIND_OUTERMOST, /* the thread's first function was reached */
    SM_UNWIND_NO_INFO,   /* code without unwind information and without frame pointer */
    SM_UNWIND_BAD_STACK, /* the next frame is not in readable memory, or not above this one */
    SM_UNWIND_TOO_DEEP,
};

struct sm_unwound {
    uint32_t n_cut;  /* frames left out in the middle; 0 = none */
    uint32_t cut_at; /* index of the 0 that stands for them, when n_cut > 0 */
    enum sm_unwind_end end;
};

/* Stores the stack innermost first, beginning with the place in the calling function (its inlining callers are one with
   it), without the first `skip` frames. Returns the number stored, at most `max`. A deeper
   stack loses its middle: the innermost half of `max` stays, then comes a 0, then the outermost frames.
   `out` may be NULL. */
uint32_t sm_unwind(uintptr_t *frames, uint32_t max, uint32_t skip, struct sm_unwound *out);

#endif
