/* The directory of cache files: ${XDG_CACHE_HOME:-~/.cache}/statmem/columns, made on demand with mode 0700.
   Hosted. Files are named by their trace's identity; nothing but speed is lost when they go. */
#ifndef SM_ANALYZE_CACHE_H
#define SM_ANALYZE_CACHE_H

#include "analyze/image.h"

/* The directory in new memory (free()); NULL when there is none and none could be made. STATMEM_CACHE names
   another, "" turns caching off. */
char *sm_cache_directory(void);

/* Where the cache of a trace lies, and what it is recognised by. The identity of an open regular file: its size,
   time of change, inode, and the checksum of its first and last 64 KiB; plus `part`. False when it cannot be
   cached: no regular file, or one with a side file (it may still grow). */
bool sm_cache_identity(const char *trace_path, uint32_t part, struct sm_trace_identity *identity);
char *sm_cache_path(const char *directory, const struct sm_trace_identity *identity);

struct sm_cache_entry {
    char *name;
    char *trace_path; /* of which it was made; "" = unknown */
    uint64_t bytes;
    int64_t used_s; /* when it was used last, since the epoch */
    bool usable;    /* of this version */
};
struct sm_cache_list {
    struct sm_cache_entry *list; /* used last first */
    size_t n;
    uint64_t bytes;
};
void sm_cache_list(const char *directory, struct sm_cache_list *out);
void sm_cache_list_release(struct sm_cache_list *l);
/* Removes one file by name; false when that fails. */
bool sm_cache_remove(const char *directory, const char *name);
/* Removes those used longest ago until at most max_bytes stay, and what interrupted runs left. */
void sm_cache_prune(const char *directory, uint64_t max_bytes);
#define SM_CACHE_MAX_BYTES ((uint64_t)20 << 30)

#endif
