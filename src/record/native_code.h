/* Location codes of machine code that is not OCaml's: bit 61 marks them (no user address and no slot of OCaml's has
   it), the address stands above bit 0, which belongs to the runtime's tag, in bits 1..47, and above it, in bits 49..60, the
   load generation (unwind/unwind.h). */
#ifndef SM_RECORD_NATIVE_CODE_H
#define SM_RECORD_NATIVE_CODE_H

#include <stdbool.h>
#include <stdint.h>

#define SM_NATIVE_CODE_BIT (1ull << 61)

/* The raw stack element for a return address. The code names the call, the byte before. */
static inline uintptr_t sm_native_element(const void *return_address) {
    return (uintptr_t)(SM_NATIVE_CODE_BIT | ((uint64_t)(uintptr_t)return_address - 1) << 1 | 1);
}

/* The same for a frame of sm_unwind. */
static inline uintptr_t sm_native_element_of(uintptr_t address, unsigned generation) {
    return (uintptr_t)(SM_NATIVE_CODE_BIT | (uint64_t)generation << 49 |
                       ((uint64_t)address - 1) << 1 | 1);
}

static inline bool sm_code_is_native(uint64_t code) {
    return (code & SM_NATIVE_CODE_BIT) != 0 && code >> 62 == 0;
}

static inline uintptr_t sm_native_code_address(uint64_t code) {
    return (uintptr_t)((code & (((uint64_t)1 << 49) - 1)) >> 1);
}

static inline unsigned sm_native_code_generation(uint64_t code) {
    return (unsigned)(code >> 49) & 0xfff;
}

#endif
