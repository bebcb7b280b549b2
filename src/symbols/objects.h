/* Finding an object file and its debug information. Hosted. */
#ifndef SM_SYMBOLS_OBJECTS_H
#define SM_SYMBOLS_OBJECTS_H

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/symbols.h"

struct sm_object { /* not to be moved while open */
    Dwfl *dwfl;
    Dwfl_Module *module; /* NULL = nothing could be opened */
    GElf_Addr elf_bias;  /* add to the file's addresses for the module's */
    Dwarf *dwarf;        /* NULL = no debug information */
    Dwarf_Addr dwarf_bias;
    char *search_path; /* debug directories */
    Dwfl_Callbacks callbacks;
};

/* Opens the file, or what the debug directories or debuginfod have for its build-id; refuses another build-id.
   False: *why (256 bytes) says in one clause. Also when true, *why may tell why there is no debug information. */
bool sm_object_open(struct sm_object *o, const struct sm_symbols_options *options, const char *path,
                    const uint8_t *build_id, size_t build_id_bytes, char *why);
void sm_object_close(struct sm_object *o);

#endif
