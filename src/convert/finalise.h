/* Closing a recorded trace after its program has ended, or died: the packets of the side file are
   taken over, payloads compressed, torn bytes dropped, INDEX and END written. Events are not coded
   anew. Hosted.

   The new file is made beside the old one and takes its place by rename, so that at every moment one
   whole trace with that name exists; when anything fails, the old one and its side file stay as they
   were, and both remain readable. */
#ifndef SM_CONVERT_FINALISE_H
#define SM_CONVERT_FINALISE_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/trace.h"
#include "util/error.h"

/* Takes the payload of a SYMS packet with `n` records into the new file. */
typedef enum sm_status sm_put_names_fn(void *to, const uint8_t *payload, uint32_t bytes, uint32_t n,
                                       struct sm_error *err);

struct sm_finalise_options {
    bool compress;
    int zstd_level; /* 0 = 1 */
    bool has_exit_status;
    uint32_t exit_status; /* as waitpid gives it */
    bool force;           /* also when its writer seems to run still */
    /* Called when all else is in the new file, to add names (symbols/name_trace.h); NULL = none. */
    enum sm_status (*add_names)(void *ctx, const struct sm_trace *trace, sm_put_names_fn *put,
                                void *to, struct sm_error *err);
    void *add_names_ctx;
};

struct sm_finalise_result {
    uint64_t bytes_before; /* trace and what was used of the side file */
    uint64_t bytes_after;
    uint64_t events_recovered; /* from the side file */
    uint64_t torn_bytes;       /* belonged to no whole packet */
    bool writing_failed;       /* for its writer already, which has said so */
    bool left_alone;           /* nothing was changed: see `why` */
    const char *why;           /* static text */
};

/* Fails (nothing changed) when the trace cannot be read, the new file cannot be written, or its
   writer still runs. Things that are not for us (a memtrace file, several traces in one file) are
   left alone: SM_OK with result->left_alone. */
enum sm_status sm_finalise_trace(const char *path, const struct sm_finalise_options *options,
                                 struct sm_finalise_result *result, struct sm_error *err);

#endif
