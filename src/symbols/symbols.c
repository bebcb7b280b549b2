/* All queries of an object are answered in one pass over its debug information. Units (what one compiler run left) are
   found by their address ranges; of a unit that some query falls into, the functions are looked through once, and only
   those that hold a query are entered for inlined calls. So the work grows with the units touched, not with queries
   times units, and a query costs a few binary searches.

   The place in a frame is: for the innermost one what the line table says of the address, for the others the place of the
   call that was inlined. */
#include "symbols/symbols.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/objects.h"
#include "util/memory.h"

/* Deeper nests are cut: their outermost frames stay. */
#define MAX_NEST 64

/* ---- queries while they are being answered ---- */

struct answer {
    struct sm_symbol_frame *frames;
    uint32_t n, capacity;
    bool short_name; /* of the outermost frame: without its scope; a mangled symbol says more */
};

struct work {
    struct sm_object object;
    struct sm_symbol_query *queries; /* sorted */
    struct answer *answers;          /* of the same index */
    size_t n;
    struct sm_arena *arena;
    bool rust;
};

static int by_offset(const void *a, const void *b) {
    const struct sm_symbol_query *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* The first query at or after an offset, from index `from` on. */
static size_t first_query(const struct work *w, size_t from, uint64_t offset) {
    size_t low = from, high = w->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (w->queries[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void push(struct answer *a, const char *function) {
    if (a->n == a->capacity) {
        size_t capacity = a->capacity;
        a->frames = sm_grow(a->frames, &capacity, a->n + 1u, sizeof *a->frames);
        a->capacity = (uint32_t)capacity;
    }
    a->frames[a->n++] = (struct sm_symbol_frame){.function = function};
}

static const char *keep(struct work *w, const char *text) {
    return text != NULL ? sm_arena_intern(w->arena, text, strlen(text)) : NULL;
}

/* ---- functions ---- */

static const char *function_name(struct work *w, Dwarf_Die *die, bool *short_name) {
    Dwarf_Attribute a;
    const char *name = NULL;
    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &a) != NULL ||
        dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &a) != NULL)
        name = dwarf_formstring(&a);
    *short_name = name == NULL;
    if (name != NULL)
        return sm_symbols_demangle(name, w->arena);
    if (dwarf_attr_integrate(die, DW_AT_name, &a) != NULL)
        name = dwarf_formstring(&a);
    if (name != NULL && strncmp(name, "caml", 4) == 0) /* OCaml's assembler tells symbols */
        return sm_symbols_demangle(name, w->arena);
    return name != NULL ? keep(w, name) : "(unknown)";
}

struct place {
    const char *file;
    uint32_t line;
};

static struct place call_place(struct work *w, Dwarf_Die *die) {
    struct place p = {NULL, 0};
    Dwarf_Attribute a;
    Dwarf_Word file, line;
    Dwarf_Die unit;
    Dwarf_Files *files;
    size_t n;
    if (dwarf_attr(die, DW_AT_call_line, &a) != NULL && dwarf_formudata(&a, &line) == 0)
        p.line = line > UINT32_MAX ? 0 : (uint32_t)line;
    if (dwarf_attr(die, DW_AT_call_file, &a) != NULL && dwarf_formudata(&a, &file) == 0 &&
        dwarf_diecu(die, &unit, NULL, NULL) != NULL && dwarf_getsrcfiles(&unit, &files, &n) == 0 &&
        file < n)
        p.file = keep(w, dwarf_filesrc(files, (size_t)file, NULL, NULL));
    return p;
}

/* Adds the function of `die`, or the inlined call, to the answers of the queries [from, to) that lie in it. True when there are
   any. */
static bool enter_scope(struct work *w, Dwarf_Die *die, bool inlined, size_t from, size_t to) {
    Dwarf_Addr base, start, end;
    const char *name = NULL;
    struct place call = {NULL, 0};
    bool short_name = false;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;) {
        size_t q = first_query(w, from, start);
        for (; q < to && w->queries[q].offset < end; q++) {
            struct answer *a = &w->answers[q];
            if (name == NULL) {
                name = function_name(w, die, &short_name);
                if (inlined)
                    call = call_place(w, die);
            }
            if (a->n >= MAX_NEST)
                continue;
            if (inlined && a->n > 0) {
                a->frames[a->n - 1].file = call.file;
                a->frames[a->n - 1].line = call.line;
            }
            a->short_name = a->n == 0 ? short_name : a->short_name;
            push(a, name);
        }
    }
    return name != NULL;
}

/* A block without name that holds queries of [from, to)? Blocks without ranges are looked into. */
static bool may_hold(struct work *w, Dwarf_Die *die, size_t from, size_t to) {
    Dwarf_Addr base, start, end;
    ptrdiff_t at = 0;
    bool any = false;
    while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
        any = true;
        size_t q = first_query(w, from, start);
        if (q < to && w->queries[q].offset < end)
            return true;
    }
    return !any;
}

static void look_through(struct work *w, Dwarf_Die *parent, bool in_function, size_t from,
                         size_t to, unsigned depth) {
    Dwarf_Die die;
    if (depth > 200 || dwarf_child(parent, &die) != 0)
        return;
    do {
        switch (dwarf_tag(&die)) {
        case DW_TAG_subprogram:
            if (enter_scope(w, &die, false, from, to))
                look_through(w, &die, true, from, to, depth + 1);
            break;
        case DW_TAG_inlined_subroutine:
            if (enter_scope(w, &die, true, from, to))
                look_through(w, &die, true, from, to, depth + 1);
            break;
        case DW_TAG_lexical_block:
        case DW_TAG_try_block:
        case DW_TAG_catch_block:
            if (in_function && may_hold(w, &die, from, to))
                look_through(w, &die, true, from, to, depth + 1);
            break;
        case DW_TAG_namespace:
        case DW_TAG_module:
            look_through(w, &die, false, from, to, depth + 1);
            break;
        case DW_TAG_structure_type:
        case DW_TAG_class_type:
        case DW_TAG_union_type:
        case DW_TAG_enumeration_type:
            if (w->rust) /* whose functions stand in their types */
                look_through(w, &die, false, from, to, depth + 1);
            break;
        default:
            break;
        }
    } while (dwarf_siblingof(&die, &die) == 0);
}

/* ---- units ---- */

struct span {
    uint64_t start, end; /* file addresses */
    uint32_t unit;
};

struct unit {
    Dwarf_Die die, split; /* split: the same unit's part in a .dwo file */
    bool has_split;
};

struct units {
    struct unit *list;
    size_t n, capacity;
    struct span *spans;
    size_t n_spans, spans_capacity;
};

static int by_start(const void *a, const void *b) {
    const struct span *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

static void read_units(struct work *w, struct units *u) {
    Dwarf_CU *cu = NULL;
    Dwarf_Die die, split;
    uint8_t type;
    while (dwarf_get_units(w->object.dwarf, cu, &cu, NULL, &type, &die, &split) == 0) {
        Dwarf_Addr base, start, end;
        size_t before = u->n_spans;
        for (ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &start, &end)) > 0;) {
            if (start >= end || start == 0) /* of a section that the linker dropped */
                continue;
            u->spans = sm_grow(u->spans, &u->spans_capacity, u->n_spans + 1, sizeof *u->spans);
            u->spans[u->n_spans++] = (struct span){start, end, (uint32_t)u->n};
        }
        if (u->n_spans == before)
            continue;
        u->list = sm_grow(u->list, &u->capacity, u->n + 1, sizeof *u->list);
        u->list[u->n++] = (struct unit){die, split, type == DW_UT_skeleton && split.addr != NULL};
    }
    if (u->n_spans > 1)
        qsort(u->spans, u->n_spans, sizeof *u->spans, by_start);
}

/* The last span that begins at or before an address, if it covers it. */
static const struct span *span_at(const struct units *u, uint64_t address) {
    size_t low = 0, high = u->n_spans;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (u->spans[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && address < u->spans[low - 1].end ? &u->spans[low - 1] : NULL;
}

static void answer_lines(struct work *w, struct unit *unit, size_t from, size_t to) {
    for (size_t q = from; q < to; q++) {
        Dwarf_Line *line = dwarf_getsrc_die(&unit->die, w->queries[q].offset);
        int number = 0;
        if (line == NULL)
            continue;
        dwarf_lineno(line, &number);
        struct answer *a = &w->answers[q];
        if (a->n == 0)
            push(a, NULL); /* the symbol table will name it */
        a->frames[a->n - 1].file = keep(w, dwarf_linesrc(line, NULL, NULL));
        a->frames[a->n - 1].line = number > 0 ? (uint32_t)number : 0;
    }
}

/* The queries of one unit are in one or more runs of neighbours; each unit is looked through once for each run, so runs are
   made as long as they can be: neighbours of other units in between do not end them. */
struct run {
    size_t from, to;
};

static void answer_from_debug(struct work *w) {
    struct units u = {0};
    read_units(w, &u);
    struct run *runs = sm_alloc_zero(u.n + 1, sizeof *runs);
    for (size_t q = 0; q < w->n; q++) {
        const struct span *s = span_at(&u, w->queries[q].offset);
        if (s == NULL)
            continue;
        struct run *r = &runs[s->unit];
        if (r->to == 0)
            r->from = q;
        r->to = q + 1;
    }
    for (size_t i = 0; i < u.n; i++) {
        if (runs[i].to == 0)
            continue;
        struct unit *unit = &u.list[i];
        Dwarf_Die *functions = unit->has_split ? &unit->split : &unit->die;
        w->rust = dwarf_srclang(functions) == DW_LANG_Rust;
        look_through(w, functions, false, runs[i].from, runs[i].to, 0);
        for (size_t q = runs[i].from; q < runs[i].to; q++) {
            const struct span *s = span_at(&u, w->queries[q].offset);
            if (s != NULL && s->unit == i)
                answer_lines(w, unit, q, q + 1);
        }
    }
    free(runs);
    free(u.list);
    free(u.spans);
}

/* ---- symbol tables ---- */

struct symbol {
    uint64_t start, bytes;
    const char *name;
    uint8_t rank; /* of several at one address the highest is taken */
};

static int by_address(const void *a, const void *b) {
    const struct symbol *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void answer_from_symbols(struct work *w) {
    int n = dwfl_module_getsymtab(w->object.module);
    struct symbol *list = sm_alloc_zero(n > 0 ? (size_t)n : 1, sizeof *list);
    size_t used = 0;
    for (int i = 1; i < n; i++) {
        GElf_Sym sym;
        GElf_Addr address;
        const char *name =
            dwfl_module_getsym_info(w->object.module, i, &sym, &address, NULL, NULL, NULL);
        int type = GELF_ST_TYPE(sym.st_info);
        if (name == NULL || name[0] == 0 || sym.st_size == 0 || sym.st_shndx == SHN_UNDEF ||
            (type != STT_FUNC && type != STT_GNU_IFUNC))
            continue;
        int bind = GELF_ST_BIND(sym.st_info);
        uint8_t rank = bind == STB_GLOBAL ? 2 : bind == STB_WEAK ? 1 : 0;
        list[used++] = (struct symbol){address - w->object.elf_bias, sym.st_size, name, rank};
    }
    qsort(list, used, sizeof *list, by_address);
    size_t next = 0; /* symbols before begin at or before the query */
    for (size_t q = 0; q < w->n; q++) {
        uint64_t offset = w->queries[q].offset;
        struct answer *a = &w->answers[q];
        while (next < used && list[next].start <= offset)
            next++;
        if (a->n > 0 && a->frames[0].function != NULL && !a->short_name)
            continue;
        for (size_t i = next; i > 0 && next - i < 16;
             i--) { /* aliases, and small ones inside of others */
            if (offset - list[i - 1].start >= list[i - 1].bytes)
                continue;
            const char *symbol = list[i - 1].name;
            if (a->short_name && (symbol[0] != '_' || (symbol[1] != 'Z' && symbol[1] != 'R')))
                break;
            const char *name = sm_symbols_demangle(symbol, w->arena);
            if (a->n == 0)
                push(a, name);
            else
                a->frames[0].function = name;
            break;
        }
    }
    free(list);
}

/* ---- all of it ---- */

void sm_symbols_resolve(const struct sm_symbols_options *options, const char *path,
                        const uint8_t *build_id, size_t build_id_bytes,
                        struct sm_symbol_query *queries, size_t n, struct sm_arena *arena,
                        struct sm_symbols_outcome *outcome) {
    struct work w = {.queries = queries, .n = n, .arena = arena};
    memset(outcome, 0, sizeof *outcome);
    for (size_t i = 0; i < n; i++) {
        queries[i].frames = NULL;
        queries[i].n_frames = 0;
    }
    if (!sm_object_open(&w.object, options, path, build_id, build_id_bytes, outcome->why))
        return;
    qsort(queries, n, sizeof *queries, by_offset);
    w.answers = sm_alloc_zero(n + 1, sizeof *w.answers);
    if (w.object.dwarf != NULL) {
        /* Debug information in a file of its own may count from another base. */
        uint64_t shift = w.object.elf_bias - w.object.dwarf_bias;
        for (size_t i = 0; i < n; i++)
            queries[i].offset += shift;
        answer_from_debug(&w);
        for (size_t i = 0; i < n; i++)
            queries[i].offset -= shift;
    }
    answer_from_symbols(&w);
    for (size_t i = 0; i < n; i++) {
        struct answer *a = &w.answers[i];
        if (a->n > 0 && a->frames[0].function != NULL) {
            struct sm_symbol_frame *kept = sm_arena_alloc(arena, a->n * sizeof *kept);
            if (kept != NULL) {
                memcpy(kept, a->frames, a->n * sizeof *kept);
                queries[i].frames = kept;
                queries[i].n_frames = a->n;
                outcome->n_named++;
            }
        }
        free(a->frames);
    }
    outcome->source = outcome->n_named == 0    ? SM_SYMBOLS_NONE
                      : w.object.dwarf != NULL ? SM_SYMBOLS_DEBUG
                                               : SM_SYMBOLS_TABLE;
    free(w.answers);
    sm_object_close(&w.object);
}
