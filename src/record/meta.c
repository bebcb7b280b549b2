/* The META packet: what a reader should know about the process (docs/format.md, section 4). */
#include "record/internal.h"

#include <link.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/bytes.h"
#include "encode/tlv.h"

#define ARGS_MAX_BYTES 32768

struct build_id {
    uint8_t bytes[64];
    size_t n;
};

/* The first object that the loader names is the main program. */
static int find_build_id(struct dl_phdr_info *info, size_t size, void *ctx) {
    struct build_id *found = ctx;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_NOTE)
            continue;
        const uint8_t *p = (const uint8_t *)(info->dlpi_addr + segment->p_vaddr);
        const uint8_t *end = p + segment->p_memsz;
        while (end - p >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
            ElfW(Nhdr) note;
            memcpy(&note, p, sizeof note);
            const uint8_t *name = p + sizeof note;
            size_t name_bytes = (note.n_namesz + 3u) & ~(size_t)3;
            size_t desc_bytes = (note.n_descsz + 3u) & ~(size_t)3;
            if ((size_t)(end - name) < name_bytes + desc_bytes)
                break;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
                memcmp(name, "GNU", 4) == 0 && note.n_descsz <= sizeof found->bytes) {
                memcpy(found->bytes, name + name_bytes, note.n_descsz);
                found->n = note.n_descsz;
                return 1;
            }
            p = name + name_bytes + desc_bytes;
        }
    }
    return 1;
}

static void put_executable(struct sm_tlv_writer *w, const char *given) {
    char path[4096];
    if (given != NULL) {
        sm_tlv_text(w, SM_META_EXECUTABLE, given);
        return;
    }
    ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    if (n > 0)
        sm_tlv_bytes(w, SM_META_EXECUTABLE, path, (size_t)n);
}

static void put_args(struct sm_tlv_writer *w) {
    /* Read to its place; the LEB of its length goes before it. */
    uint8_t *scratch = sm_os_map(ARGS_MAX_BYTES);
    if (scratch == NULL)
        return;
    long n = sm_os_read_file("/proc/self/cmdline", scratch, ARGS_MAX_BYTES - 1);
    if (n > 0) {
        if (scratch[n - 1] != 0)
            scratch[n++] = 0;
        sm_tlv_bytes(w, SM_META_ARGS, scratch, (size_t)n);
    }
    sm_os_unmap(scratch, ARGS_MAX_BYTES);
}

size_t sm_meta_build(struct sm_session *session, uint8_t *buf, size_t capacity,
                     uint64_t *start_ticks) {
    const struct sm_recorder_config *c = &session->config;
    struct sm_tlv_writer w = {.buf = buf, .capacity = capacity};
    uint64_t clock_ns = sm_os_monotonic_ns();
    uint8_t pair[16];
    sm_put_u64le(pair, clock_ns);
    sm_put_u64le(pair + 8, sm_os_realtime_ns());
    *start_ticks = clock_ns / session->tick_ns;

    sm_tlv_leb(&w, SM_META_FORMAT_VERSION, SM_FORMAT_VERSION);
    sm_tlv_leb(&w, SM_META_TICK_NS, session->tick_ns);
    sm_tlv_leb(&w, SM_META_CLOCK, SM_CLOCK_MONOTONIC);
    sm_tlv_bytes(&w, SM_META_ANCHOR, pair, sizeof pair);
    if (session->rate > 0)
        sm_tlv_f64(&w, SM_META_SAMPLE_RATE, session->rate);
    if (c->native_interval_bytes != 0)
        sm_tlv_leb(&w, SM_META_NATIVE_INTERVAL, c->native_interval_bytes);
    sm_tlv_leb(&w, SM_META_WORD_SIZE, 8 * sizeof(void *));
    put_executable(&w, c->executable);
    struct utsname machine;
    if (uname(&machine) == 0) {
        sm_tlv_text(&w, SM_META_HOST, machine.nodename);
        sm_tlv_text(&w, SM_META_ARCH, machine.machine);
    }
    if (c->runtime_params != NULL)
        sm_tlv_text(&w, SM_META_RUNTIME_PARAMS, c->runtime_params);
    sm_tlv_leb(&w, SM_META_PID, session->pid);
    if (c->context != NULL)
        sm_tlv_text(&w, SM_META_CONTEXT, c->context);
    if (!c->hide_args)
        put_args(&w);
    sm_tlv_text(&w, SM_META_OCAML_VERSION, c->ocaml_version != NULL ? c->ocaml_version : "");
    struct build_id id = {.n = 0};
    dl_iterate_phdr(find_build_id, &id);
    if (id.n > 0)
        sm_tlv_bytes(&w, SM_META_BUILD_ID, id.bytes, id.n);
    sm_tlv_text(&w, SM_META_WRITER, "statmem " SM_VERSION);
    sm_tlv_leb(&w, SM_META_DEPTH_LIMIT, session->depth_limit);
    sm_tlv_leb(&w, SM_META_RATE_ORIGIN, c->rate_origin);
    uint64_t (*domain)(void) = c->native_domain != NULL ? c->native_domain : c->current_domain;
    if (domain != NULL)
        sm_tlv_leb(&w, SM_META_INITIAL_DOMAIN, domain());
    if (c->has_seed) {
        uint8_t seed[8];
        sm_put_u64le(seed, c->seed);
        sm_tlv_bytes(&w, SM_META_SEED, seed, sizeof seed);
    }
    char boot_id[64];
    long n = sm_os_read_file("/proc/sys/kernel/random/boot_id", boot_id, sizeof boot_id);
    while (n > 0 && boot_id[n - 1] == '\n')
        n--;
    if (n > 0)
        sm_tlv_bytes(&w, SM_META_BOOT_ID, boot_id, (size_t)n);
    sm_tlv_leb(&w, SM_META_MODE, c->mode);
    sm_tlv_leb(&w, SM_META_OCAML_KIND, c->ocaml_kind);
    if (session->parent_pid != 0)
        sm_tlv_leb(&w, SM_META_PARENT_PID, session->parent_pid);
    return w.used;
}
