/* Which object file (the executable, a library, the vDSO) holds an address, by the loader's own tables. Hook-safe and
   without locks: glibc's _dl_find_object (2.35) never waits. Where it is missing, objects are known from
   sm_modules_refresh alone.

   **Load generation.** An object that is unloaded may be followed by another at the same addresses. Each entry of the table
   has a number, 0 when its addresses were nobody's before, else one more than those of all that had been there. The same
   file that comes back to the same place gets its old entry again. So (address, generation) names code for the
   whole run, however often libraries come and go. */
#ifndef SM_UNWIND_MODULES_H
#define SM_UNWIND_MODULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SM_MODULE_MAX_BUILD_ID_BYTES 32
/* Further ones are not kept, and counted. */
#define SM_MAX_MODULES 2048
#define SM_MODULE_MAX_GENERATION 0xFFFu

struct sm_module {
    uintptr_t start, end; /* of all that is mapped of it, gaps included */
    uintptr_t bias;       /* add to the file's virtual addresses */
    const char
        *path; /* the loader's name; for the executable what /proc/self/exe says. Stays valid */
    uint16_t generation;
    bool executable; /* the program itself */
    bool listed;     /* known from sm_modules_refresh; _dl_find_object does not know it whole */
    uint8_t build_id_bytes; /* 0 = it has none */
    uint8_t build_id[SM_MODULE_MAX_BUILD_ID_BYTES];
    /* Where its unwind tables are, NULL = none: `.eh_frame_hdr`, and the readable memory around it. */
    uintptr_t eh_frame_hdr, tables_start, tables_end;
    /* Not there any more, as far as known. Relaxed: it only spares work. */
    _Atomic bool unmapped;
    _Atomic uint32_t
        checked_epoch; /* when the loader's object was last compared; relaxed, likewise */
};

/* NULL: no object file. Entries are never changed, but for the last two fields, and never freed. */
const struct sm_module *sm_module_at(uintptr_t address);

/* The entries so far, in the order in which they were found. */
uint32_t sm_modules_count(void);
const struct sm_module *sm_modules_get(uint32_t i);
uint32_t sm_modules_not_kept(void);

/* Enters all objects that are loaded now, and notes which are not any more. Takes the loader's lock (dl_iterate_phdr):
   at the start, and from places where nothing is held; not inside a hook. */
void sm_modules_refresh(void);

/* To be called when objects may have been unloaded (after dlclose): what is remembered of code is asked for anew. */
void sm_modules_unloaded(void);

/* For who is not told of dlclose: asks the loader for each object that the frames (of sm_unwind) lie in, about 50 ns each.
   False, and sm_modules_unloaded has been called, when one is not the object that the frame's generation means: the
   stack is to be taken again. A file that was replaced and loaded anew to the same place goes unnoticed. */
bool sm_modules_verify(const uintptr_t *frames, uint32_t n);

/* Changes whenever something was, or may have been, unloaded. */
uint32_t sm_modules_epoch(void);

#endif
