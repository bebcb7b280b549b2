/* libgcc's unwinder beside ours. */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The deepest stack that is compared. */
#define ORACLE_MAX 4096

/* Takes the stack with both, from here, and compares every frame; says and counts where they differ. Returns the number of
   frames of ours. */
unsigned oracle_check(const char *where);

/* The same without output, for signal handlers: 0 = alike, else 1 + the index of the first frame that differs. */
unsigned oracle_compare(unsigned *n);

/* Stacks that begin in nobody's code (coroutines): how ours says that it ended is left open. */
extern bool oracle_any_end;
/* OCaml 5: libgcc takes callers of the runtime's changes of stack for interrupted code, and so says an address one larger. */
extern bool oracle_ocaml_5;

/* Checks made, and how many of them failed; a failure's frames are printed. */
extern unsigned oracle_checks, oracle_failures;
/* The deepest stack seen. */
extern unsigned oracle_deepest;

/* Prints a line and returns an exit status: 1 when something differed, or fewer than `least` checks were made. */
int oracle_result(unsigned least);

#ifdef __cplusplus
}
#endif

#endif
