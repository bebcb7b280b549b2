/* SYMS packets: names of locations. A record that does not parse ends its packet; what came
   before stays. */
#include <stdlib.h>
#include <string.h>

#include "decode/native_internal.h"

struct strings {
    const char **list;
    uint32_t n, capacity;
};

static bool read_string(struct sm_trace *t, const uint8_t **p, const uint8_t *end,
                        struct strings *s, const char **out) {
    uint64_t k, bytes;
    if (!sm_get_leb(p, end, &k) || k > s->n)
        return false;
    if (k > 0) {
        *out = s->list[k - 1];
        return true;
    }
    if (!sm_get_leb(p, end, &bytes) || bytes > (size_t)(end - *p) || bytes > SM_MAX_NAME_BYTES)
        return false;
    if (s->n == s->capacity) {
        uint32_t capacity = s->capacity == 0 ? 256 : s->capacity * 2;
        const char **list = realloc(s->list, capacity * sizeof *list);
        if (list == NULL)
            return false;
        s->list = list;
        s->capacity = capacity;
    }
    *out = s->list[s->n++] = sm_trace_intern(t, *p, (size_t)bytes);
    *p += bytes;
    return true;
}

static bool read_u32(const uint8_t **p, const uint8_t *end, uint32_t *x) {
    uint64_t wide;
    if (!sm_get_leb(p, end, &wide))
        return false;
    *x = wide > UINT32_MAX ? UINT32_MAX : (uint32_t)wide;
    return true;
}

/* "BUILD-ID:PATH" and "+0xOFFSET NAME" into something to show, and their parts. What does not look like that is left as
   it is. */
static void read_offset(struct sm_trace *t, struct sm_location *l) {
    const char *colon = strchr(l->file, ':'), *digits = l->function + 3, *p = digits;
    struct sm_unnamed u = {.file = l->file, .function = l->function};
    if (colon == NULL || strncmp(l->function, "+0x", 3) != 0)
        return;
    for (; (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f'); p++)
        u.offset = u.offset << 4 | (uint64_t)(*p <= '9' ? *p - '0' : *p - 'a' + 10);
    if (p == digits || p - digits > 16 || (*p != 0 && *p != ' '))
        return;
    u.build_id = sm_trace_intern(t, l->file, (size_t)(colon - l->file));
    u.path = sm_trace_intern(t, colon + 1, strlen(colon + 1));
    struct sm_unnamed *kept = sm_arena_alloc(&t->arena, sizeof *kept);
    if (kept == NULL)
        return;
    *kept = u;
    l->file = u.path;
    l->unnamed = kept;
    if (*p == ' ' && p[1] != 0) {
        l->function = sm_trace_intern(t, p + 1, strlen(p + 1));
        return;
    }
    const char *slash = strrchr(u.path, '/'), *name = slash != NULL ? slash + 1 : u.path;
    size_t name_bytes = strlen(name), offset_bytes = (size_t)(p - l->function);
    char shown[4096];
    if (name_bytes == 0) {
        l->function = sm_trace_intern(t, l->function + 1, offset_bytes - 1);
    } else if (name_bytes + offset_bytes < sizeof shown) {
        memcpy(shown, name, name_bytes);
        memcpy(shown + name_bytes, l->function, offset_bytes);
        l->function = sm_trace_intern(t, shown, name_bytes + offset_bytes);
    }
}

static bool read_location(struct sm_trace *t, const uint8_t **p, const uint8_t *end,
                          struct strings *s, struct sm_location *l) {
    int64_t lines;
    if (!read_string(t, p, end, s, &l->file) || !read_string(t, p, end, s, &l->function) ||
        !read_u32(p, end, &l->line) || !sm_get_zz(p, end, &lines) ||
        !read_u32(p, end, &l->start_char) || !read_u32(p, end, &l->end_char) || *p >= end)
        return false;
    int64_t end_line = (int64_t)((uint64_t)l->line + (uint64_t)lines);
    l->end_line = end_line < 0 || end_line > UINT32_MAX ? l->line : (uint32_t)end_line;
    l->flags = *(*p)++;
    l->unnamed = NULL;
    if (l->flags & SM_SYMS_OFFSET)
        read_offset(t, l);
    return true;
}

struct problems {
    uint64_t different, no_room;
};

/* Reads one record; *list is scratch. */
static bool read_record(struct sm_trace *t, const uint8_t **p, const uint8_t *end,
                        struct strings *strings, struct sm_location **list, uint32_t *capacity,
                        uint64_t *code, struct problems *problems) {
    int64_t delta;
    uint64_t n;
    if (!sm_get_zz(p, end, &delta) || !sm_get_leb(p, end, &n) || n > (size_t)(end - *p) / 7)
        return false;
    *code += (uint64_t)delta;
    if (n > *capacity) {
        struct sm_location *larger = realloc(*list, (size_t)n * sizeof *larger);
        if (larger == NULL)
            return false;
        *list = larger;
        *capacity = (uint32_t)n;
    }
    for (uint64_t i = 0; i < n; i++)
        if (!read_location(t, p, end, strings, &(*list)[i]))
            return false;
    uint64_t overflowed = t->locations.overflowed;
    uint32_t id = sm_locations_intern(t, *code);
    if (t->locations.overflowed != overflowed)
        return true; /* counted there */
    enum sm_announced a = sm_locations_set(t, id, *list, (uint32_t)n);
    problems->different += a == SM_ANNOUNCED_DIFFERENT;
    problems->no_room += a == SM_ANNOUNCED_NO_ROOM;
    return true;
}

void sm_native_read_syms(struct sm_trace *t, struct sm_native_packet *packet,
                         struct sm_native_buffer *buffer) {
    const uint8_t *p;
    size_t bytes;
    if (!sm_native_payload(t, packet, buffer, SM_LOSS_NAMES, &p, &bytes))
        return;
    const uint8_t *end = p + bytes;
    struct strings strings = {0};
    struct sm_location *list = NULL;
    uint32_t capacity = 0;
    struct problems problems = {0};
    uint64_t code = 0;
    uint32_t n_records = 0;
    bool ok = true;
    while (ok && p < end) {
        ok = read_record(t, &p, end, &strings, &list, &capacity, &code, &problems);
        n_records += ok;
    }
    free(strings.list);
    free(list);
    uint64_t offset = sm_native_header_offset(packet);
    bool cut = (packet->flags & SM_NATIVE_CUT) != 0;
    if (cut || (!ok && (packet->flags & SM_NATIVE_TAIL) == 0))
        sm_trace_add_loss(t, cut ? SM_LOSS_CUT : SM_LOSS_NAMES, packet->stream, offset,
                          SM_PACKET_HEADER_BYTES + (uint64_t)packet->stored_bytes,
                          packet->n_events > n_records ? packet->n_events - n_records : 0, true,
                          "a packet of names %s: %u of its %u locations are known",
                          cut ? "is cut by the end of the file" : "cannot be read to its end",
                          n_records, packet->n_events);
    if (problems.different > 0)
        sm_trace_add_loss(t, SM_LOSS_NAMES, packet->stream, offset, 0, problems.different, true,
                          "locations are announced twice with different contents; the first are "
                          "used");
    if (problems.no_room > 0)
        sm_trace_add_loss(t, SM_LOSS_NAMES, packet->stream, offset, 0, problems.no_room, true,
                          "more names than a reader keeps (%zu MiB): locations stay without names",
                          SM_MAX_TRACE_ARENA_BYTES >> 20);
}
