/* Reading in call frame information (a bounded position), and its DWARF expressions. Hook-safe. */
#ifndef SM_UNWIND_CFI_EXPRESSION_H
#define SM_UNWIND_CFI_EXPRESSION_H

#include "unwind/cfi.h"

/* A position. Reading past `end` gives 0 and sets `bad`; at <= end <= m->n always. */
struct sm_cfi_in {
    const struct sm_cfi_memory *m;
    size_t at, end;
    bool bad;
};

static inline uintptr_t sm_cfi_address(const struct sm_cfi_in *in) {
    return in->m->address + in->at;
}

/* False, and bad, when the address is not in the memory. */
static inline bool sm_cfi_seek(struct sm_cfi_in *in, uintptr_t address) {
    uintptr_t offset = address - in->m->address;
    in->bad |= offset > in->end;
    in->at = in->bad ? in->end : (size_t)offset;
    return !in->bad;
}

static inline void sm_cfi_skip(struct sm_cfi_in *in, uint64_t bytes) {
    in->bad |= bytes > in->end - in->at;
    in->at = in->bad ? in->end : in->at + (size_t)bytes;
}

static inline uint8_t sm_cfi_byte(struct sm_cfi_in *in) {
    if (in->at >= in->end) {
        in->bad = true;
        return 0;
    }
    return in->m->bytes[in->at++];
}

/* Little-endian. */
static inline uint64_t sm_cfi_fixed(struct sm_cfi_in *in, unsigned bytes) {
    uint64_t x = 0;
    for (unsigned i = 0; i < bytes; i++)
        x |= (uint64_t)sm_cfi_byte(in) << 8 * i;
    return x;
}

uint64_t sm_cfi_uleb(struct sm_cfi_in *in);
int64_t sm_cfi_sleb(struct sm_cfi_in *in);

/* What an expression stands for, with the registers' values open:
   n_followed = 0: reg + offset[0];  1: *(reg + offset[0]) + offset[1];  2: *(*(reg + offset[0]) + offset[1]) + offset[2].
   reg < 0: the number offset[0]. */
struct sm_cfi_value {
    int reg; /* DWARF number */
    int n_followed;
    int64_t offset[3];
};

/* False when it does not come down to that. */
bool sm_cfi_evaluate(struct sm_cfi_in expression, uintptr_t rip, struct sm_cfi_value *out);

#endif
