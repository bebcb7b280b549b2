/* Judges an executable file: can it be recorded without changing it, how well, and if not, why. Reads the
   file only; for `doctor` and for explaining an empty run. */
#ifndef SM_CLI_PROBE_H
#define SM_CLI_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/wire.h"

enum sm_verdict { SM_VERDICT_YES = 0, SM_VERDICT_PARTLY = 1, SM_VERDICT_NO = 2 };

struct sm_probe {
    enum sm_verdict verdict;
    char reason[400]; /* one sentence: why not, or what is missing; "" when all is well */
    char advice[400]; /* what to do; "" when nothing is to be done */

    char file[1024]; /* the ELF file judged: the interpreter for a script or bytecode file */
    bool is_elf;
    bool is_bytecode_file; /* the program is a file for ocamlrun */
    bool is_script;        /* begins with #! */
    bool is_static;
    bool is_pie;
    bool is_stripped;     /* no full symbol table */
    bool has_runtime;     /* an OCaml runtime was found in it */
    bool exports_runtime; /* in the dynamic symbol table */
    bool set_id;          /* setuid or setgid, or with file capabilities: LD_PRELOAD is ignored */
    bool other_libc;      /* not linked with glibc, e.g. musl */
    bool native;          /* its native memory can be recorded */
    bool own_malloc;      /* the executable defines malloc */
    bool
        sanitized; /* it needs a sanitizer's runtime library, which insists on being loaded first */
    bool links_memprof; /* its own code refers to Gc.Memprof.start */
    enum sm_ocaml_kind kind;
    int ocaml_major;        /* 0 = unknown */
    char ocaml_version[32]; /* "" = unknown */
    int debug_info;         /* OCaml debug information: 1 yes, 0 no, -1 unknown */
    char interpreter[256];
};

/* False when the file cannot be read at all; reason says so. */
bool sm_probe_file(struct sm_probe *p, const char *path);

#endif
