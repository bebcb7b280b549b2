/* Location events of memtrace, writing side: names in two levels of move-to-front lists, 31 files
   and 31 functions of each. Hosted; one encoder per domain. */
#ifndef SM_CONVERT_MEMTRACE_NAMES_H
#define SM_CONVERT_MEMTRACE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/memtrace_wire.h"
#include "decode/trace.h"

/* Most bytes of a location's record after the event header. */
#define SM_MT_LOCATION_BYTES 4096u

struct sm_mt_name_file {
    char *name;
    char *functions[SM_MT_MTF_NEW]; /* most recent first */
    uint32_t n_functions;
};

struct sm_mt_name_encoder {
    struct sm_mt_name_file *files[SM_MT_MTF_NEW]; /* most recent first; owned, with their names */
    uint32_t n_files;
};

void sm_mt_names_init(struct sm_mt_name_encoder *e);
void sm_mt_names_release(struct sm_mt_name_encoder *e);

/* Writes code, count and locations to `to` (SM_MT_LOCATION_BYTES bytes) and returns the end; NULL: no
   memory. Numbers above their field's limit become the limit. A list that is too long for the
   format becomes one location "<unknown>". */
uint8_t *sm_mt_names_encode(struct sm_mt_name_encoder *e, uint8_t *to, uint64_t code,
                            const struct sm_location *list, uint32_t n);

#endif
