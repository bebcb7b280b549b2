/* See image.h. */
#include "analyze/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "util/memory.h"
#include "util/parallel.h"

#define MAGIC "STMCOLS1"
#define PAGE ((uint64_t)4096)
/* Sections in memory from this size ask for large pages. */
#define LARGE_BYTES ((uint64_t)4 << 20)
/* Raised whenever the meaning of a section changes. */
#define IMAGE_VERSION 3

struct header {
    char magic[8];
    uint32_t version, n_sections;
    uint64_t struct_bytes; /* of what is stored as it is in memory */
    struct sm_trace_identity identity;
    uint64_t file_bytes;
    struct {
        uint64_t offset, bytes, checksum;
    } sections[SM_SECTIONS];
    struct sm_analysis analysis;
    char source[1024]; /* the trace's absolute path, cut if longer */
    uint64_t checksum; /* of all before */
};
_Static_assert(sizeof(struct header) <= 2 * PAGE, "the header has two pages");

static uint64_t struct_bytes(void) {
    return sizeof(struct sm_analysis) | sizeof(struct sm_loss) << 16 |
           (uint64_t)sizeof(struct sm_row_class) << 32 | (uint64_t)sizeof(struct sm_lane) << 48;
}

void sm_image_create(struct sm_image *im, const char *path) {
    memset(im, 0, sizeof *im);
    im->fd = -1;
    if (path == NULL)
        return;
    if (asprintf(&im->temporary_path, "%s.%d.tmp", path, (int)getpid()) < 0)
        sm_memory_failed(0);
    im->fd = open(im->temporary_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (im->fd < 0) {
        free(im->temporary_path);
        im->temporary_path = NULL;
        return;
    }
    im->path = sm_strdup(path);
    im->file_bytes = 2 * PAGE;
}

static void give_up_file(struct sm_image *im) {
    if (im->temporary_path != NULL)
        unlink(im->temporary_path);
    if (im->fd >= 0)
        close(im->fd);
    im->fd = -1;
    free(im->temporary_path);
    im->temporary_path = NULL;
}

static uint64_t pages(uint64_t bytes) {
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

void *sm_image_add(struct sm_image *im, enum sm_section s, uint64_t bytes) {
    struct sm_image_section *sec = &im->sections[s];
    sec->bytes = bytes;
    if (bytes == 0)
        return NULL;
    sec->data = MAP_FAILED;
    /* Blocks are allocated before they are touched: a full disk is an error code, not a SIGBUS. */
    if (im->fd >= 0 && posix_fallocate(im->fd, (off_t)im->file_bytes, (off_t)pages(bytes)) == 0) {
        sec->offset = im->file_bytes;
        sec->data =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, im->fd, (off_t)sec->offset);
        if (sec->data != MAP_FAILED)
            im->file_bytes += pages(bytes);
    }
    if (sec->data == MAP_FAILED) {
        /* What is in the file stays mapped and in use; only its name goes. */
        give_up_file(im);
        sec->data = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (sec->data == MAP_FAILED)
            sm_memory_failed(bytes);
        /* Written once from end to end: half of a load's time is the kernel's page faults otherwise. */
        if (bytes >= LARGE_BYTES)
            madvise(sec->data, bytes, MADV_HUGEPAGE);
    }
    return sec->data;
}

/* Strings of struct sm_meta, in the order of SM_SEC_META_TEXTS. */
static const size_t meta_strings[] = {
    offsetof(struct sm_meta, executable),     offsetof(struct sm_meta, host),
    offsetof(struct sm_meta, runtime_params), offsetof(struct sm_meta, context),
    offsetof(struct sm_meta, args),           offsetof(struct sm_meta, ocaml_version),
    offsetof(struct sm_meta, writer),         offsetof(struct sm_meta, arch),
    offsetof(struct sm_meta, boot_id),        offsetof(struct sm_meta, build_id),
};
_Static_assert(sizeof meta_strings / sizeof *meta_strings == SM_IMAGE_META_STRINGS, "one id each");
#define N_META_STRINGS (sizeof meta_strings / sizeof *meta_strings)

const char *sm_image_meta_string(const struct sm_meta *meta, uint32_t i, size_t *bytes) {
    const char *text;
    memcpy(&text, (const char *)meta + meta_strings[i], sizeof text);
    if (text == NULL)
        text = "";
    *bytes = 0;
    if (meta_strings[i] == offsetof(struct sm_meta, build_id)) {
        *bytes = meta->build_id_bytes;
    } else if (meta_strings[i] == offsetof(struct sm_meta, args)) {
        for (uint32_t k = 0; k < meta->n_args; k++)
            *bytes += strlen(text + *bytes) + 1;
    } else {
        *bytes = strlen(text);
    }
    return text;
}

static void connect_texts(const struct sm_image *im, struct sm_analysis *a) {
    const uint32_t *ids = im->sections[SM_SEC_META_TEXTS].data;
    for (size_t i = 0; i < N_META_STRINGS; i++) {
        const char *text = a->texts + ids[i];
        memcpy((char *)&a->meta + meta_strings[i], &text, sizeof text);
    }
    struct sm_loss *losses = im->sections[SM_SEC_LOSSES].data;
    for (size_t i = 0; i < a->n_losses; i++)
        losses[i].detail = a->texts + ids[N_META_STRINGS + i];
}

static const size_t places[SM_SECTIONS] = {
    [SM_SEC_BLOCK_NS] = offsetof(struct sm_analysis, rows.block_ns),
    [SM_SEC_ALLOC_DELTA] = offsetof(struct sm_analysis, rows.alloc_delta),
    [SM_SEC_PROMOTE_AGE] = offsetof(struct sm_analysis, rows.promote_age),
    [SM_SEC_FREE_AGE] = offsetof(struct sm_analysis, rows.free_age),
    [SM_SEC_SIZE] = offsetof(struct sm_analysis, rows.size),
    [SM_SEC_SAMPLES] = offsetof(struct sm_analysis, rows.samples),
    [SM_SEC_NODE] = offsetof(struct sm_analysis, rows.node),
    [SM_SEC_CLASS] = offsetof(struct sm_analysis, rows.class_id),
    [SM_SEC_UNITS] = offsetof(struct sm_analysis, rows.units),
    [SM_SEC_FREE_ORDER] = offsetof(struct sm_analysis, rows.free_order),
    [SM_SEC_FREES_BEFORE] = offsetof(struct sm_analysis, rows.frees_before),
    [SM_SEC_BLOCK_FREES] = offsetof(struct sm_analysis, rows.block_frees),
    [SM_SEC_FOREIGN] = offsetof(struct sm_analysis, rows.foreign),
    [SM_SEC_WIDE_AGES] = offsetof(struct sm_analysis, rows.wide_ages),
    [SM_SEC_WIDE_DELTAS] = offsetof(struct sm_analysis, rows.wide_deltas),
    [SM_SEC_WIDE_SIZES] = offsetof(struct sm_analysis, rows.wide_sizes),
    [SM_SEC_WIDE_SAMPLES] = offsetof(struct sm_analysis, rows.wide_samples),
    [SM_SEC_WIDE_FREES] = offsetof(struct sm_analysis, rows.wide_frees),
    [SM_SEC_TREE_PARENT] = offsetof(struct sm_analysis, tree.parent),
    [SM_SEC_TREE_END] = offsetof(struct sm_analysis, tree.end),
    [SM_SEC_TREE_FRAME] = offsetof(struct sm_analysis, tree.frame),
    [SM_SEC_TREE_FUNCTION] = offsetof(struct sm_analysis, tree.function),
    [SM_SEC_TREE_DEPTH] = offsetof(struct sm_analysis, tree.depth),
    [SM_SEC_TREE_FLAGS] = offsetof(struct sm_analysis, tree.flags),
    [SM_SEC_FRAMES] = offsetof(struct sm_analysis, frames),
    [SM_SEC_FUNCTIONS] = offsetof(struct sm_analysis, functions),
    [SM_SEC_LANES] = offsetof(struct sm_analysis, lanes),
    [SM_SEC_CLASSES] = offsetof(struct sm_analysis, classes),
    [SM_SEC_TEXTS] = offsetof(struct sm_analysis, texts),
    [SM_SEC_COUNTERS] = offsetof(struct sm_analysis, counters),
    [SM_SEC_MARKS] = offsetof(struct sm_analysis, marks),
    [SM_SEC_LOSSES] = offsetof(struct sm_analysis, losses),
};

void sm_image_connect(const struct sm_image *im, struct sm_analysis *a) {
    for (int s = 0; s < SM_SEC_META_TEXTS; s++)
        memcpy((char *)a + places[s], &im->sections[s].data, sizeof(void *));
    connect_texts(im, a);
}

/* ---- the file ---- */

static void checksum_section(void *ctx, unsigned task) {
    struct sm_image *im = ctx;
    struct sm_image_section *s = &im->sections[task];
    s->checksum = s->bytes == 0 ? 0 : XXH3_64bits(s->data, s->bytes);
}

void sm_image_publish(struct sm_image *im, const struct sm_analysis *a,
                      const struct sm_trace_identity *identity) {
    if (im->fd < 0)
        return;
    sm_parallel(SM_SECTIONS, 0, checksum_section, im);
    struct header *h = sm_alloc_zero(1, 2 * PAGE);
    memcpy(h->magic, MAGIC, sizeof h->magic);
    h->version = IMAGE_VERSION;
    h->n_sections = SM_SECTIONS;
    h->struct_bytes = struct_bytes();
    h->identity = *identity;
    h->file_bytes = im->file_bytes;
    h->analysis = *a;
    char *source = realpath(a->path, NULL);
    if (source != NULL)
        snprintf(h->source, sizeof h->source, "%s", source);
    free(source);
    for (int s = 0; s < SM_SECTIONS; s++) {
        h->sections[s].offset = im->sections[s].offset;
        h->sections[s].bytes = im->sections[s].bytes;
        h->sections[s].checksum = im->sections[s].checksum;
    }
    h->checksum = XXH3_64bits(h, offsetof(struct header, checksum));
    bool done = pwrite(im->fd, h, 2 * PAGE, 0) == (ssize_t)(2 * PAGE) &&
                rename(im->temporary_path, im->path) == 0;
    free(h);
    if (!done) {
        give_up_file(im);
        return;
    }
    close(im->fd);
    im->fd = -1;
    free(im->temporary_path);
    im->temporary_path = NULL;
}

static bool header_holds(const struct header *h, uint64_t file_bytes,
                         const struct sm_trace_identity *identity) {
    if (memcmp(h->magic, MAGIC, sizeof h->magic) != 0 || h->version != IMAGE_VERSION ||
        h->n_sections != SM_SECTIONS || h->struct_bytes != struct_bytes() ||
        h->identity.a != identity->a || h->identity.b != identity->b ||
        h->file_bytes != file_bytes ||
        h->checksum != XXH3_64bits(h, offsetof(struct header, checksum)))
        return false;
    for (int s = 0; s < SM_SECTIONS; s++) {
        uint64_t offset = h->sections[s].offset, bytes = h->sections[s].bytes;
        if (bytes > 0 && (offset % PAGE != 0 || offset > file_bytes || bytes > file_bytes - offset))
            return false;
    }
    return true;
}

/* Files above are taken as they are, but for the sections whose damage would lead astray quickly. */
#define MAX_CHECKED_BYTES ((uint64_t)2 << 30)

static bool sections_hold(struct sm_image *im, const struct header *h, uint64_t file_bytes) {
    if (file_bytes > MAX_CHECKED_BYTES) {
        for (int s = SM_SEC_FRAMES; s < SM_SECTIONS; s++)
            checksum_section(im, (unsigned)s);
    } else {
        sm_parallel(SM_SECTIONS, 0, checksum_section, im);
    }
    for (int s = file_bytes > MAX_CHECKED_BYTES ? SM_SEC_FRAMES : 0; s < SM_SECTIONS; s++) {
        if (im->sections[s].checksum != h->sections[s].checksum)
            return false;
    }
    return true;
}

bool sm_image_open(struct sm_image *im, const char *path, const struct sm_trace_identity *identity,
                   struct sm_analysis *a) {
    memset(im, 0, sizeof *im);
    im->fd = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    struct stat st;
    void *data = MAP_FAILED;
    /* Private: the pointers inside the losses are set in place. */
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        (uint64_t)st.st_size >= 2 * PAGE)
        data = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    close(fd);
    if (data == MAP_FAILED)
        return false;
    const struct header *h = data;
    uint64_t file_bytes = (uint64_t)st.st_size;
    im->whole = data;
    im->file_bytes = file_bytes;
    bool ok = header_holds(h, file_bytes, identity);
    if (ok) {
        for (int s = 0; s < SM_SECTIONS; s++) {
            struct sm_image_section *sec = &im->sections[s];
            sec->bytes = h->sections[s].bytes;
            sec->data = sec->bytes > 0 ? (char *)data + h->sections[s].offset : NULL;
        }
        ok = sections_hold(im, h, file_bytes);
    }
    if (!ok) {
        sm_image_release(im);
        return false;
    }
    *a = h->analysis;
    sm_image_connect(im, a);
    /* The time of use decides what is removed first. */
    utimensat(AT_FDCWD, path, (const struct timespec[2]){{0, UTIME_NOW}, {0, UTIME_OMIT}}, 0);
    return true;
}

char *sm_image_source(const char *path, bool *usable) {
    struct header *h = sm_alloc_zero(1, sizeof *h);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *usable = fd >= 0 && pread(fd, h, sizeof *h, 0) == (ssize_t)sizeof *h &&
              memcmp(h->magic, MAGIC, sizeof h->magic) == 0 && h->version == IMAGE_VERSION &&
              h->struct_bytes == struct_bytes() &&
              h->checksum == XXH3_64bits(h, offsetof(struct header, checksum));
    if (fd >= 0)
        close(fd);
    h->source[sizeof h->source - 1] = 0;
    char *source = sm_strdup(*usable ? h->source : "");
    free(h);
    return source;
}

void sm_image_release(struct sm_image *im) {
    if (im->whole != NULL) {
        munmap(im->whole, im->file_bytes);
    } else {
        for (int s = 0; s < SM_SECTIONS; s++) {
            if (im->sections[s].data != NULL)
                munmap(im->sections[s].data, im->sections[s].bytes);
        }
    }
    give_up_file(im);
    free(im->path);
    memset(im, 0, sizeof *im);
    im->fd = -1;
}
