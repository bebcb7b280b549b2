/* Names for machine code, from the debug information of object files: functions, source places, inlined callers. Hosted;
   reads files and, only when asked to, a debuginfod server; prints nothing.

   Where an object's debug information is looked for, in this order: in the object itself, in the file that its
   `.gnu_debuglink` names, in the debug directories by build-id (`.build-id/xx/yyyy.debug`), at debuginfod. Split
   units (`.dwo`) are followed. An object whose build-id is not the recorded one is refused: its names would
   be wrong ones. Without debug information the symbol table names functions, and only those that cover the address:
   an address between symbols stays without a name. */
#ifndef SM_SYMBOLS_SYMBOLS_H
#define SM_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/arena.h"

struct sm_symbols_options {
    const char *debug_directories; /* colon-separated, before /usr/lib/debug; NULL = none */
    bool debuginfod;               /* ask the servers of DEBUGINFOD_URLS */
    unsigned debuginfod_seconds;   /* longest wait for one file; 0 = 10 */
};

/* One function, or one inlined call. Strings live in the arena. */
struct sm_symbol_frame {
    const char *function; /* demangled; never NULL */
    const char *file;     /* NULL = no debug information */
    uint32_t line;        /* 0 = unknown */
};

struct sm_symbol_query {
    uint64_t offset; /* virtual address in the object file, of a byte of the instruction meant */
    struct sm_symbol_frame *frames; /* outermost first; in the arena */
    uint32_t n_frames;              /* 0 = no name */
};

enum sm_symbols_source {
    SM_SYMBOLS_NONE,  /* nothing, see `why` */
    SM_SYMBOLS_TABLE, /* the symbol table alone */
    SM_SYMBOLS_DEBUG, /* debug information */
};

struct sm_symbols_outcome {
    enum sm_symbols_source source;
    uint64_t n_named; /* queries */
    char why[256];    /* "" or one clause: why there is no better source */
};

/* Answers all queries of one object. `queries` is sorted by offset by the call. build_id_bytes = 0: unknown, and not
   compared. Different objects may be asked for at the same time by different threads, each with an arena of
   its own. */
void sm_symbols_resolve(const struct sm_symbols_options *options, const char *path,
                        const uint8_t *build_id, size_t build_id_bytes,
                        struct sm_symbol_query *queries, size_t n, struct sm_arena *arena,
                        struct sm_symbols_outcome *outcome);

/* A readable form of a symbol's name (C++, Rust, OCaml), or the name itself. In the arena. */
const char *sm_symbols_demangle(const char *symbol, struct sm_arena *arena);

#endif
