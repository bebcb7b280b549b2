/* Where an analysis' arrays lie: anonymous memory, or a cache file that later runs map again. Hosted, internal to
   src/analyze.

   File: a header page, then sections at page boundaries. The header holds the file's identity, the sections'
   places and XXH3 checksums, and struct sm_analysis as it was, whose pointers are set anew when the file is mapped. A
   file of another version, another structure size, another trace, or with a wrong checksum is not used; it is
   written anew. It is written under another name and renamed when complete. */
#ifndef SM_ANALYZE_IMAGE_H
#define SM_ANALYZE_IMAGE_H

#include "analyze/analysis.h"

enum sm_section {
    SM_SEC_BLOCK_NS = 0,
    SM_SEC_ALLOC_DELTA,
    SM_SEC_PROMOTE_AGE,
    SM_SEC_FREE_AGE,
    SM_SEC_SIZE,
    SM_SEC_SAMPLES,
    SM_SEC_NODE,
    SM_SEC_CLASS,
    SM_SEC_UNITS,
    SM_SEC_FREE_ORDER,
    SM_SEC_FREES_BEFORE,
    SM_SEC_BLOCK_FREES,
    SM_SEC_FOREIGN,
    SM_SEC_WIDE_AGES,
    SM_SEC_WIDE_DELTAS,
    SM_SEC_WIDE_SIZES,
    SM_SEC_WIDE_SAMPLES,
    SM_SEC_WIDE_FREES,
    SM_SEC_TREE_PARENT,
    SM_SEC_TREE_END,
    SM_SEC_TREE_FRAME,
    SM_SEC_TREE_FUNCTION,
    SM_SEC_TREE_DEPTH,
    SM_SEC_TREE_FLAGS,
    SM_SEC_FRAMES,
    SM_SEC_FUNCTIONS,
    SM_SEC_LANES,
    SM_SEC_CLASSES,
    SM_SEC_TEXTS,
    SM_SEC_COUNTERS,
    SM_SEC_MARKS,
    SM_SEC_LOSSES,
    SM_SEC_META_TEXTS, /* text ids of the strings in struct sm_meta and of the losses' details */
    SM_SECTIONS,
};

#define SM_IMAGE_META_STRINGS 10

struct sm_image {
    int fd; /* -1 = memory */
    char *path, *temporary_path;
    uint64_t file_bytes;
    void *whole; /* a mapped cache file */
    struct sm_image_section {
        void *data;
        uint64_t bytes, offset, checksum;
    } sections[SM_SECTIONS];
};

/* What a trace is recognised by. */
struct sm_trace_identity {
    uint64_t a, b;
};

/* A new image; path: the cache file to be, NULL = memory only. Falls back to memory when the file cannot be made. */
void sm_image_create(struct sm_image *im, const char *path);
/* Zeroed memory for a section; 8-byte aligned. Call once for each. */
void *sm_image_add(struct sm_image *im, enum sm_section s, uint64_t bytes);
/* Points the analysis' arrays to the sections. */
void sm_image_connect(const struct sm_image *im, struct sm_analysis *a);
/* Completes the cache file, if there is one. Failing to do so is no error: the file is given up. */
void sm_image_publish(struct sm_image *im, const struct sm_analysis *a,
                      const struct sm_trace_identity *identity);
/* Maps an existing file; false when it is not there or not usable. */
bool sm_image_open(struct sm_image *im, const char *path, const struct sm_trace_identity *identity,
                   struct sm_analysis *a);
/* The strings of struct sm_meta in the order in which SM_SEC_META_TEXTS holds their ids, before those of the
   losses' details. `args` and `build_id` are bytes. */
const char *sm_image_meta_string(const struct sm_meta *meta, uint32_t i, size_t *bytes);
/* The trace a cache file was made of, in new memory; "" when the file is not one of ours. *usable: of this version. */
char *sm_image_source(const char *path, bool *usable);
void sm_image_release(struct sm_image *im);

#endif
