/* Writes a CTF 1.8 trace: a directory with one stream file per domain (memtrace packets, version 3)
   and `metadata`, which describes them to babeltrace2 and other CTF tools. Hosted.

   One file per domain, because CTF wants the times of a stream file to ascend; the tools merge. */
#ifndef SM_CONVERT_CTF_DIR_H
#define SM_CONVERT_CTF_DIR_H

#include <stdint.h>

#include "convert/memtrace_writer.h"

struct sm_ctf_dir;

/* Makes the directory, which must not exist or be empty, `metadata` and the first stream file. The
   header's version is not used (it is 3). locate as in convert/memtrace_writer.h. */
enum sm_status sm_ctf_dir_new(struct sm_ctf_dir **out, const char *path,
                              const struct sm_memtrace_header *header,
                              sm_memtrace_locate_fn *locate, void *locate_ctx,
                              struct sm_error *err);

/* Events go to sm_memtrace_put_alloc and its siblings with this writer; it belongs to `d`. */
struct sm_memtrace_writer *sm_ctf_dir_writer(struct sm_ctf_dir *d);

/* Writes all that is left and closes the files. Free comes after, whether this succeeded or not. */
enum sm_status sm_ctf_dir_close(struct sm_ctf_dir *d, struct sm_error *err);
void sm_ctf_dir_free(struct sm_ctf_dir *d);

#endif
