/* Call frame information of any content: no read outside of it, no endless loop. The first 8 bytes say where the header
   stands and which address is asked for. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/cfi.h"

#define ADDRESS 0x10000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    uint32_t header, code;
    if (bytes < 8)
        return 0;
    memcpy(&header, data, 4);
    memcpy(&code, data + 4, 4);
    uint8_t *copy = malloc(bytes - 8 > 0 ? bytes - 8 : 1); /* so that its ends are watched */
    if (copy == NULL)
        return 0;
    memcpy(copy, data + 8, bytes - 8);
    struct sm_cfi_memory m = {copy, bytes - 8, ADDRESS};
    struct sm_cfi_rule rule;
    for (unsigned i = 0; i < 8; i++) {
        /* Near the address, and far below: code lies before its tables. */
        uintptr_t pc = ADDRESS + (uintptr_t)(intptr_t)(int32_t)code + i * i * 16;
        bool found = sm_cfi_find(&m, ADDRESS + header, pc, pc + 1, &rule);
        if (found == (rule.kind == SM_CFI_NONE) || rule.kind > SM_CFI_MEMORY_2 ||
            rule.base > SM_CFI_RBX || rule.ra_place > SM_CFI_AT_RBP)
            abort();
    }
    free(copy);
    return 0;
}
