/* The TSDL text of a CTF directory (convert/ctf_dir.c). Hosted. */
#ifndef SM_CONVERT_CTF_METADATA_H
#define SM_CONVERT_CTF_METADATA_H

#include <stdbool.h>
#include <stdio.h>

/* Writes the description of memtrace packets, version 3. False: write error, in errno. */
bool sm_ctf_metadata_put(FILE *out);

#endif
