/* The memtrace writer's inside: one packet under construction per domain. Private to the writer
   and to the CTF directory (convert/ctf_dir.c), which gives each domain a file of its own. */
#ifndef SM_CONVERT_MEMTRACE_WRITER_INTERNAL_H
#define SM_CONVERT_MEMTRACE_WRITER_INTERNAL_H

#include "convert/memtrace_names.h"
#include "convert/memtrace_stacks.h"
#include "convert/memtrace_writer.h"

/* Coding state; 380 KiB, so only so many domains have one at a time. */
struct sm_mt_coder {
    struct sm_mt_stack_encoder stacks;
    struct sm_mt_name_encoder names;
    uint8_t packet[SM_MT_PACKET_BYTES];
};
#define SM_MT_MAX_CODERS 128u

struct sm_mt_domain {
    uint32_t id;
    FILE *out;                 /* borrowed; split: owned, NULL while there is no coder */
    struct sm_mt_coder *coder; /* NULL: given away while the packet was empty */
    uint64_t last_use;
    bool had_packet; /* an event packet has been opened */
    int64_t ts_begin_us, ts_end_us;
    uint64_t start_id, next_id, chunk_end;
    /* Objects promoted in the open packet, by id modulo 1024. An event elsewhere on one of these must
       come later in the file. */
    uint64_t promoted[16];
    uint32_t used; /* bytes in coder->packet, header included */
};

/* Opens a domain's file, new or (again) to append to it; the writer closes it. At most
   SM_MT_MAX_CODERS are open at a time. NULL = cannot, err set. */
typedef FILE *sm_mt_open_fn(void *ctx, uint32_t domain, bool again, struct sm_error *err);

/* As sm_memtrace_writer_new; but when open != NULL, each domain writes to a file of its own, and each
   of these files begins with a trace-info packet. */
enum sm_status sm_mt_writer_new_split(struct sm_memtrace_writer **w, FILE *out, sm_mt_open_fn *open,
                                      void *open_ctx, const struct sm_memtrace_header *header,
                                      enum sm_memtrace_order order, sm_memtrace_locate_fn *locate,
                                      void *locate_ctx, struct sm_error *err);

#endif
