/* Files that we keep open in the recorded program, under numbers that are out of its way. See descriptors.c. Hook-safe. */
#ifndef SM_RECORD_DESCRIPTORS_H
#define SM_RECORD_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

struct sm_file_id {
    uint64_t device, inode;
};

/* The same file under a high number; fd itself, when there is none. */
int sm_descriptor_high(int fd);
void sm_descriptor_identify(int fd, struct sm_file_id *id);
bool sm_descriptor_is(int fd, const struct sm_file_id *id);
/* *fd, or what it was replaced by; -1 when the file cannot be reached any more. `flags` as for open.
   In a session only. */
int sm_descriptor_sure(int *fd, const struct sm_file_id *id, const char *path, int flags);

#endif
