/* For the unwinder: is memory readable, and an object that need not be in the table. Hook-safe. */
#ifndef SM_UNWIND_PROBE_H
#define SM_UNWIND_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/modules.h"

#define SM_PROBE_PAGE_BYTES 4096u

/* Asks the kernel whether the page that holds the address can be read now (about 100 ns). Keeps errno. */
bool sm_probe_readable(uintptr_t address);

/* sm_module_at for those that are described rather than kept: *kept is NULL when there was no room or a moment's
   contention, and then out->path is the loader's own. */
bool sm_module_find(uintptr_t address, struct sm_module *out, const struct sm_module **kept);

#endif
