/* Location events: a code and a list of source locations, whose names are numbers in move-to-front
   lists or, when new, texts.

   Two histories of writers are told from the data alone:
   - Version 1 gave a new file, once there were 31, the function list of the file that fell out. Later
     writers begin an empty list and never refer to what it might have inherited, so inheriting always
     reads both.
   - Writers before September 2024 let columns above 1023 spill over the file's number. The wrong
     entry then moves to the front, and from there on our lists differ from the writer's. This shows
     when a number lies beyond a list or a code comes again with other names. Such a domain's
     lists are then forgotten (distrust): a number that leads to a forgotten entry gives no name
     instead of a wrong one, and every new text makes an entry good again. */
#include "decode/memtrace_internal.h"

#include <stdlib.h>
#include <string.h>

struct name_file {
    const char *name;                     /* NULL = unknown */
    const char *functions[SM_MT_MTF_NEW]; /* most recent first; NULL = unknown */
    uint32_t n_functions;
};

struct sm_mt_names {
    struct name_file files[SM_MT_MTF_NEW];
    uint8_t order[SM_MT_MTF_NEW]; /* indices of files, most recent first */
    uint32_t n_files;
};

static void distrust(struct sm_mt_names *names) {
    names->n_files = SM_MT_MTF_NEW;
    for (uint32_t i = 0; i < SM_MT_MTF_NEW; i++) {
        struct name_file *f = &names->files[i];
        names->order[i] = (uint8_t)i;
        f->name = NULL;
        f->n_functions = SM_MT_MTF_NEW;
        memset(f->functions, 0, sizeof f->functions);
    }
}

void sm_mt_names_distrust(struct sm_memtrace *m) {
    for (uint32_t i = 0; m->names != NULL && i < 65536; i++)
        if (m->names[i] != NULL)
            distrust(m->names[i]);
}

void sm_mt_names_free(struct sm_memtrace *m) {
    for (uint32_t i = 0; m->names != NULL && i < 65536; i++)
        free(m->names[i]);
    free(m->names);
    m->names = NULL;
}

/* The file a number stands for, moved to the front. New: `name` is its text. */
static struct name_file *use_file(struct sm_mt_names *names, uint32_t number, const char *name) {
    if (number == SM_MT_MTF_NEW) {
        uint32_t slot = names->n_files;
        if (names->n_files == SM_MT_MTF_NEW)
            slot = names->order[SM_MT_MTF_NEW - 1]; /* falls out; its functions are inherited */
        else
            names->files[names->n_files++].n_functions = 0;
        memmove(names->order + 1, names->order, (names->n_files - 1) * sizeof names->order[0]);
        names->order[0] = (uint8_t)slot;
        names->files[slot].name = name;
        return &names->files[slot];
    }
    uint8_t slot = names->order[number];
    memmove(names->order + 1, names->order, number * sizeof names->order[0]);
    names->order[0] = slot;
    return &names->files[slot];
}

static const char *use_function(struct name_file *f, uint32_t number, const char *name) {
    uint32_t last = number;
    if (number == SM_MT_MTF_NEW) {
        if (f->n_functions < SM_MT_MTF_NEW)
            f->n_functions++;
        last = f->n_functions - 1;
    } else {
        name = f->functions[number];
    }
    memmove(f->functions + 1, f->functions, last * sizeof f->functions[0]);
    f->functions[0] = name;
    return name;
}

static bool take_name(struct sm_trace *t, const uint8_t **p, const uint8_t *end,
                      const char **name) {
    const uint8_t *nul = *p < end ? memchr(*p, 0, (size_t)(end - *p)) : NULL;
    if (nul == NULL)
        return false;
    *name = sm_trace_intern(t, *p, (size_t)(nul - *p));
    *p = nul + 1;
    return true;
}

enum outcome { NAMED, PARTLY_NAMED, OUT_OF_STEP, UNREADABLE };

/* One location, at *p. */
static enum outcome read_location(struct sm_trace *t, struct sm_mt_names *names, bool big,
                                  const uint8_t **p, const uint8_t *end, struct sm_location *l) {
    if (end - *p < 6)
        return UNREADABLE;
    uint64_t word = sm_mt_get_u32(*p, big) | (uint64_t)sm_mt_get_u16(*p + 4, big) << 32;
    uint32_t file = word >> 38 & 31, function = word >> 43 & 31;
    const char *file_name = NULL, *function_name = NULL;
    enum outcome outcome = NAMED;
    *p += 6;
    l->line = l->end_line = (uint32_t)(word & SM_MT_MAX_LINE);
    l->start_char = (uint32_t)(word >> 20 & SM_MT_MAX_START_CHAR);
    l->end_char = (uint32_t)(word >> 28 & SM_MT_MAX_END_CHAR);
    l->flags = 0;
    l->unnamed = NULL;
    if (l->line == SM_MT_MAX_LINE || l->start_char == SM_MT_MAX_START_CHAR ||
        l->end_char == SM_MT_MAX_END_CHAR)
        l->flags |= SM_SYMS_CLAMPED; /* or exactly at the limit: nobody knows */
    if ((file == SM_MT_MTF_NEW && !take_name(t, p, end, &file_name)) ||
        (function == SM_MT_MTF_NEW && !take_name(t, p, end, &function_name)))
        return UNREADABLE;
    if (file != SM_MT_MTF_NEW && file >= names->n_files) {
        distrust(names);
        outcome = OUT_OF_STEP;
    }
    struct name_file *f = use_file(names, file, file_name);
    if (function != SM_MT_MTF_NEW && function >= f->n_functions) {
        distrust(names);
        f = use_file(names, 0, NULL);
        outcome = OUT_OF_STEP;
    }
    function_name = use_function(f, function, function_name);
    if (outcome == NAMED && (f->name == NULL || function_name == NULL))
        outcome = PARTLY_NAMED;
    l->file = f->name != NULL ? f->name : sm_trace_intern(t, "", 0);
    l->function = function_name != NULL ? function_name : sm_trace_intern(t, "", 0);
    return outcome;
}

static void count_lost(struct sm_trace *t, struct sm_memtrace *m, const uint8_t *p) {
    if (m->names_lost++ == 0)
        m->names_lost_offset = (uint64_t)(p - t->input.data);
}

const uint8_t *sm_mt_names_read(struct sm_trace *t, struct sm_memtrace *m, uint32_t domain,
                                int64_t ts_begin_us, const uint8_t *p, const uint8_t *end) {
    bool big = m->order == SM_MT_BIG;
    struct sm_mt_names *names = m->names[domain];
    if (names == NULL) {
        names = m->names[domain] = calloc(1, sizeof *names);
        if (names == NULL) {
            count_lost(t, m, p);
            return end;
        }
    }
    uint32_t expected = ((uint32_t)ts_begin_us & SM_MT_TIME_MASK) | SM_MT_LOCATION
                                                                        << SM_MT_TIME_BITS;
    struct sm_location list[255];
    while (end - p >= 4 && sm_mt_get_u32(p, big) >> SM_MT_TIME_BITS == SM_MT_LOCATION) {
        const uint8_t *start = p, *q = p + 13;
        enum outcome worst = end - p < 13 ? UNREADABLE : NAMED;
        uint64_t code = worst == NAMED ? sm_mt_extend63(sm_mt_get_u64(p + 4, big)) : 0;
        uint32_t n = worst == NAMED ? p[12] : 0;
        for (uint32_t i = 0; i < n && worst != UNREADABLE; i++) {
            enum outcome outcome = read_location(t, names, big, &q, end, &list[i]);
            worst = outcome > worst ? outcome : worst;
        }
        /* A record that does not end before another one, or the packet's end, was misread: its numbers
           were damaged such that a text was read where there is none. */
        if (worst != UNREADABLE && q < end &&
            (end - q < 4 ||
             sm_mt_get_u32(q, big) >> SM_MT_TIME_BITS > SM_MT_SHORT_BASE + SM_MT_SHORT_MAX_WORDS))
            worst = UNREADABLE;
        if (worst == UNREADABLE) {
            count_lost(t, m, start);
            distrust(names);
            /* All location events of a packet begin with the same word: go on at the next. */
            uint8_t word[4] = {(uint8_t)expected, (uint8_t)(expected >> 8),
                               (uint8_t)(expected >> 16), (uint8_t)(expected >> 24)};
            if (big)
                sm_put_u32le(word, __builtin_bswap32(expected));
            p = end - start > 13 ? memmem(start + 13, (size_t)(end - start - 13), word, 4) : NULL;
            if (p == NULL)
                return end;
            continue;
        }
        p = q;
        if (worst != NAMED)
            count_lost(t, m, start);
        switch (sm_locations_set(t, sm_locations_intern(t, code), list, n)) {
        case SM_ANNOUNCED_DIFFERENT:
            if (worst == NAMED) {
                m->contradictions++;
                count_lost(t, m, start);
                distrust(names);
            }
            break;
        case SM_ANNOUNCED_NO_ROOM:
            count_lost(t, m, start);
            break;
        default:
            break;
        }
    }
    return p;
}

void sm_mt_names_again(struct sm_trace *t) {
    struct sm_memtrace *m = t->backend_data;
    if (m->names_again)
        return;
    m->names_again = true;
    m->names = calloc(65536, sizeof *m->names);
    if (m->names == NULL)
        return;
    uint64_t offset = t->first_offset, lost = m->names_lost;
    struct sm_mt_header h;
    while (
        offset < t->input.bytes &&
        sm_mt_header_get(t->input.data + offset, (size_t)(t->input.bytes - offset), m->order, &h) &&
        h.packet_bytes <= t->input.bytes - offset) {
        const uint8_t *p = t->input.data + offset, *end = p + h.packet_bytes;
        p += h.header_bytes;
        while (p != NULL && end - p >= 4 && h.pid == m->pid) {
            uint32_t id = sm_mt_get_u32(p, m->order == SM_MT_BIG) >> SM_MT_TIME_BITS;
            p = id == SM_MT_LOCATION ? sm_mt_names_read(t, m, h.domain, h.ts_begin_us, p, end)
                                     : sm_mt_step(p, end, m->order, &id);
        }
        offset += h.packet_bytes;
    }
    sm_mt_names_free(m);
    if (m->names_lost > lost)
        sm_trace_add_loss(t, SM_LOSS_NAMES, UINT32_MAX, m->names_lost_offset, 0,
                          m->names_lost - lost, true,
                          "%llu locations that stand among other events have incomplete names",
                          (unsigned long long)(m->names_lost - lost));
}
