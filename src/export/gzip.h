/* gzip, where zlib was there when statmem was built. Hosted. */
#ifndef SM_EXPORT_GZIP_H
#define SM_EXPORT_GZIP_H

#include "util/buffer.h"

/* Appends data[0..bytes) as one gzip member, the same bytes for the same data. False without zlib: nothing is
   appended. */
bool sm_gzip(struct sm_buffer *out, const void *data, size_t bytes);

#endif
