/* Call frame information of x86-64 (`.eh_frame_hdr`, `.eh_frame`): from an address to the rule by which the caller's
   registers are found. Hook-safe. The tables are not trusted: no byte outside of the given memory is read,
   whatever they say, and the work has limits.

   Followed are the registers that compilers for this processor use as the base of a frame: rsp, rbp, rbx. DWARF
   expressions are evaluated here, symbolically, down to "a register plus a number, at most twice followed as a pointer",
   which is all that procedure linkage tables, signal frames, realigned stacks and OCaml's changes of stack need.
   What does not come down to that is no rule. */
#ifndef SM_UNWIND_CFI_H
#define SM_UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sm_cfi_kind {
    SM_CFI_NONE,      /* nothing is known */
    SM_CFI_OUTERMOST, /* the thread's first function: it has no caller */
    SM_CFI_REGISTER,  /* CFA = base + a */
    SM_CFI_MEMORY,    /* CFA = *(base + a) + c */
    SM_CFI_MEMORY_2,  /* CFA = *(*(base + a) + b) + c */
};

enum sm_cfi_base { SM_CFI_RSP, SM_CFI_RBP, SM_CFI_RBX };

/* Where the caller's value of a register is. */
enum sm_cfi_place {
    SM_CFI_SAME,   /* still in the register */
    SM_CFI_AT_CFA, /* in memory, at CFA + offset */
    SM_CFI_AT_RSP, /* at rsp (of this frame, not the caller's) + offset */
    SM_CFI_AT_RBP, /* at rbp (likewise) + offset */
};

struct sm_cfi_rule {
    uint8_t kind; /* enum sm_cfi_kind */
    uint8_t base; /* enum sm_cfi_base */
    bool signal;  /* the caller was interrupted here: its address is no return address */
    uint8_t rbp_place, rbx_place, ra_place;
    int32_t a;
    int16_t b, c;
    int32_t rbp_offset, rbx_offset, ra_offset;
};

/* Readable memory. `address` is the one that the tables believe in: that of `bytes` itself in a live process. */
struct sm_cfi_memory {
    const uint8_t *bytes;
    size_t n;
    uintptr_t address;
};

/* The rule for the instruction that holds `pc`; `rip` is what expressions see in that register (the return address, or
   pc itself in an interrupted frame). False, and *rule is SM_CFI_NONE, when there is none. */
bool sm_cfi_find(const struct sm_cfi_memory *m, uintptr_t eh_frame_hdr, uintptr_t pc, uintptr_t rip,
                 struct sm_cfi_rule *rule);

#endif
