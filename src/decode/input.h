/* A trace's bytes: a mapped file, or what a pipe or socket delivered, or the caller's memory. Internal.

   Regular files are mapped privately and read-only at the size they have at the open. A file that is
   cut while it is read would raise SIGBUS; see input.c for how that becomes zero bytes, which the
   checksums then reject. Pipes, sockets and character devices are read to their end into memory, and beyond
   SM_INPUT_SPOOL_BYTES into an unlinked temporary file, which is then mapped. */
#ifndef SM_DECODE_INPUT_H
#define SM_DECODE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

#define SM_INPUT_SPOOL_BYTES (64u << 20)

struct sm_input {
    const uint8_t *data; /* NULL when bytes = 0 */
    uint64_t bytes;
    const char *path; /* "-" for standard input, NULL for memory; owned */
    bool mapped;
    bool owned;   /* heap memory to be freed */
    bool regular; /* a file with a name beside which a side file may lie */
};

/* Fills *in. False with err set: cannot be opened or read, a directory. */
bool sm_input_open(struct sm_input *in, const char *path, struct sm_error *err);
void sm_input_memory(struct sm_input *in, const uint8_t *data, size_t bytes);
void sm_input_release(struct sm_input *in);

/* Tells the system that bytes from..to will not be needed soon (keeps the resident memory of huge
   files small), and that they will be read in order. No effect on others than mapped files. */
void sm_input_done(const struct sm_input *in, uint64_t from, uint64_t to);
void sm_input_sequential(const struct sm_input *in);

#endif
