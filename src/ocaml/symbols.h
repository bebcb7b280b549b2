/* Which function holds an address of this process: from the symbol tables of the object files.
   Hook-safe and without locks; the first question about an object file maps it and sorts its table
   (about 10 ms for 50 000 symbols). */
#ifndef SM_OCAML_SYMBOLS_H
#define SM_OCAML_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sm_symbol {
    const char *name;   /* NULL when no symbol covers the address */
    uint64_t offset;    /* address minus the symbol's, or minus the object's load address */
    const char *object; /* the object file's path, "" = the executable; stays valid */
};

/* False when the address lies in no object file. Names stay valid as long as the process lives. */
bool sm_symbol_at(uintptr_t address, struct sm_symbol *out);

/* Memory for names made at run time, for ever; NULL when there is no more. */
char *sm_symbol_memory(size_t bytes);

#endif
