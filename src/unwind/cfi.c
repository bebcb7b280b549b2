/* A reader (struct in) holds a position in the memory; reading past its end gives zeros and leaves it `bad`, which is
   asked for once after each piece. Both the search in `.eh_frame_hdr` and the programs are bounded by their
   bytes; nothing loops on a value that the tables give. */
#include "unwind/cfi.h"

#include <string.h>

#include "unwind/cfi_expression.h"

/* Entries looked at when there is no usable search table. */
#define MAX_SCANNED 65536
/* Compilers nest no deeper than 2; the array stands on the stack of whoever is recorded. */
#define MAX_REMEMBERED 8

enum { DW_RBX = 3, DW_RBP = 6, DW_RSP = 7, DW_RA = 16 };

/* ---- pointers in the encodings of DW_EH_PE ---- */

#define PE_OMIT 0xFF
#define PE_PCREL 0x10
#define PE_DATAREL 0x30
#define PE_INDIRECT 0x80

/* `data` is the base of relative-to-data values. */
static uintptr_t encoded(struct sm_cfi_in *in, uint8_t encoding, uintptr_t data) {
    uintptr_t here = sm_cfi_address(in), v;
    switch (encoding & 0x0F) {
    case 0x00:
    case 0x04:
    case 0x0C:
        v = (uintptr_t)sm_cfi_fixed(in, 8);
        break;
    case 0x01:
        v = (uintptr_t)sm_cfi_uleb(in);
        break;
    case 0x09:
        v = (uintptr_t)sm_cfi_sleb(in);
        break;
    case 0x02:
        v = (uintptr_t)sm_cfi_fixed(in, 2);
        break;
    case 0x0A:
        v = (uintptr_t)(int16_t)sm_cfi_fixed(in, 2);
        break;
    case 0x03:
        v = (uintptr_t)sm_cfi_fixed(in, 4);
        break;
    case 0x0B:
        v = (uintptr_t)(int32_t)sm_cfi_fixed(in, 4);
        break;
    default:
        in->bad = true;
        return 0;
    }
    switch (encoding & 0x70) {
    case 0:
        return v;
    case PE_PCREL:
        return v + here;
    case PE_DATAREL:
        return v + data;
    default:
        in->bad = true;
        return 0;
    }
}

/* ---- entries ---- */

struct cie {
    uint64_t code_factor;
    int64_t data_factor;
    uint8_t fde_encoding;
    bool signal, has_augmentation;
    struct sm_cfi_in program;
};

struct fde {
    uintptr_t begin, length;
    struct sm_cfi_in program;
};

/* The entry's length field; the reader is then bound to the entry. False at the end mark. */
static bool enter(struct sm_cfi_in *in) {
    uint64_t bytes = sm_cfi_fixed(in, 4);
    if (bytes == 0xFFFFFFFF)
        bytes = sm_cfi_fixed(in, 8);
    if (in->bad || bytes == 0 || bytes > in->end - in->at)
        return false;
    in->end = in->at + (size_t)bytes;
    return true;
}

static bool read_cie(struct sm_cfi_in in, struct cie *cie) {
    memset(cie, 0, sizeof *cie);
    if (!enter(&in) || sm_cfi_fixed(&in, 4) != 0)
        return false;
    uint8_t version = sm_cfi_byte(&in);
    if (version != 1 && version != 3)
        return false;
    struct sm_cfi_in augmentation = in;
    while (sm_cfi_byte(&in) != 0)
        if (in.bad)
            return false;
    cie->code_factor = sm_cfi_uleb(&in);
    cie->data_factor = sm_cfi_sleb(&in);
    uint64_t return_register = version == 1 ? sm_cfi_byte(&in) : sm_cfi_uleb(&in);
    if (in.bad || return_register != DW_RA)
        return false;
    uint8_t letter = sm_cfi_byte(&augmentation);
    if (letter == 'z') {
        cie->has_augmentation = true;
        uint64_t bytes = sm_cfi_uleb(&in);
        if (in.bad || bytes > in.end - in.at)
            return false;
        size_t program = in.at + (size_t)bytes;
        while ((letter = sm_cfi_byte(&augmentation)) != 0) {
            switch (letter) {
            case 'R':
                cie->fde_encoding = sm_cfi_byte(&in);
                break;
            case 'P': { /* personality: only its length matters */
                uint8_t encoding = sm_cfi_byte(&in);
                if (encoding != PE_OMIT)
                    encoded(&in, encoding & 0x0F, 0);
                break;
            }
            case 'L':
                sm_cfi_byte(&in);
                break;
            case 'S':
                cie->signal = true;
                break;
            case 'B':
                break;
            default:
                return false;
            }
        }
        in.at = program;
    } else if (letter != 0) {
        return false;
    }
    cie->program = in;
    return !in.bad;
}

/* `in` stands at the entry. False also when it is a CIE. */
static bool read_fde(struct sm_cfi_in in, struct fde *fde, struct cie *cie) {
    if (!enter(&in))
        return false;
    size_t here = in.at;
    uint64_t back = sm_cfi_fixed(&in, 4);
    if (in.bad || back == 0 || back > here)
        return false;
    struct sm_cfi_in at_cie = {in.m, here - (size_t)back, in.m->n, false};
    if (!read_cie(at_cie, cie) || cie->fde_encoding & PE_INDIRECT)
        return false;
    fde->begin = encoded(&in, cie->fde_encoding, 0);
    fde->length = encoded(&in, cie->fde_encoding & 0x0F, 0);
    if (cie->has_augmentation)
        sm_cfi_skip(&in, sm_cfi_uleb(&in));
    fde->program = in;
    return !in.bad;
}

/* ---- the search ---- */

static bool covers(const struct fde *fde, uintptr_t pc) {
    return pc - fde->begin < fde->length;
}

static bool scan(const struct sm_cfi_memory *m, uintptr_t eh_frame, uintptr_t pc, struct fde *fde,
                 struct cie *cie) {
    struct sm_cfi_in in = {m, 0, m->n, false};
    if (!sm_cfi_seek(&in, eh_frame))
        return false;
    for (int i = 0; i < MAX_SCANNED; i++) {
        struct sm_cfi_in entry = in;
        if (read_fde(in, fde, cie) && covers(fde, pc))
            return true;
        if (!enter(&entry))
            return false;
        in.at = entry.end;
    }
    return false;
}

static bool find_fde(const struct sm_cfi_memory *m, uintptr_t header, uintptr_t pc, struct fde *fde,
                     struct cie *cie) {
    struct sm_cfi_in in = {m, 0, m->n, false};
    if (!sm_cfi_seek(&in, header) || sm_cfi_byte(&in) != 1)
        return false;
    uint8_t frame_encoding = sm_cfi_byte(&in), count_encoding = sm_cfi_byte(&in),
            table_encoding = sm_cfi_byte(&in);
    uintptr_t eh_frame = frame_encoding != PE_OMIT ? encoded(&in, frame_encoding, header) : header;
    if (in.bad)
        return false;
    /* Linkers write this table alone: pairs of 32-bit offsets from the header, of code and entry. */
    if (count_encoding == PE_OMIT || table_encoding != (PE_DATAREL | 0x0B))
        return frame_encoding != PE_OMIT && scan(m, eh_frame, pc, fde, cie);
    uint64_t n = encoded(&in, count_encoding, header);
    if (in.bad || n == 0 || n > (in.end - in.at) / 8)
        return false;
    const uint8_t *table = m->bytes + in.at;
    int64_t wanted = (int64_t)(pc - header);
    size_t low = 0, high = (size_t)n; /* the last pair whose code begins at or before pc */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        int32_t code;
        memcpy(&code, table + 8 * middle, 4);
        if (code <= wanted)
            low = middle;
        else
            high = middle;
    }
    int32_t offset;
    memcpy(&offset, table + 8 * low + 4, 4);
    struct sm_cfi_in at_fde = {m, 0, m->n, false};
    return sm_cfi_seek(&at_fde, header + (uintptr_t)(intptr_t)offset) &&
           read_fde(at_fde, fde, cie) && covers(fde, pc);
}

/* ---- programs ---- */

/* A piece of the memory: an expression's bytes. */
struct piece {
    uint32_t at, end;
};

struct saved {
    enum { S_SAME, S_OFFSET, S_EXPRESSION, S_UNDEFINED, S_OTHER } how;
    union {
        int64_t offset;
        struct piece expression;
    } u;
};

struct registers {
    enum { C_NONE, C_OFFSET, C_EXPRESSION } how;
    struct piece expression;
    uint64_t reg;
    int64_t offset;
    struct saved rbp, rbx, ra;
};

static struct saved *saved_register(struct registers *r, uint64_t reg) {
    return reg == DW_RBP ? &r->rbp : reg == DW_RBX ? &r->rbx : reg == DW_RA ? &r->ra : NULL;
}

static void save(struct registers *r, uint64_t reg, struct saved s) {
    struct saved *there = saved_register(r, reg);
    if (there != NULL)
        *there = s;
}

static void restore(struct registers *r, uint64_t reg, const struct registers *initial) {
    const struct saved *from = saved_register((struct registers *)initial, reg);
    if (from != NULL)
        save(r, reg, *from);
}

static struct piece block(struct sm_cfi_in *in) {
    uint64_t bytes = sm_cfi_uleb(in);
    size_t at = in->at;
    sm_cfi_skip(in, bytes);
    return (struct piece){(uint32_t)at, (uint32_t)in->at};
}

static struct saved at_offset(int64_t offset) {
    return (struct saved){.how = S_OFFSET, .u.offset = offset};
}

static int64_t scaled(uint64_t n, int64_t factor) {
    return (int64_t)(n * (uint64_t)factor);
}

/* Runs a program up to the row of `pc`; `initial` is what the CIE left, NULL while its own program runs. */
static bool run(struct sm_cfi_in in, const struct cie *cie, uintptr_t location, uintptr_t pc,
                const struct registers *initial, struct registers *r) {
    struct registers remembered[MAX_REMEMBERED];
    unsigned n_remembered = 0;
    while (in.at < in.end && !in.bad) {
        uint8_t op = sm_cfi_byte(&in);
        uint64_t reg, advance = 0;
        switch (op >> 6) {
        case 1:
            advance = op & 63;
            break;
        case 2:
            save(r, op & 63, at_offset(scaled(sm_cfi_uleb(&in), cie->data_factor)));
            continue;
        case 3:
            if (initial != NULL)
                restore(r, op & 63, initial);
            continue;
        default:
            switch (op) {
            case 0x00:
                continue; /* nop */
            case 0x01:    /* set_loc */
                location = encoded(&in, cie->fde_encoding, 0);
                if (location > pc)
                    return !in.bad;
                continue;
            case 0x02:
                advance = sm_cfi_fixed(&in, 1);
                break;
            case 0x03:
                advance = sm_cfi_fixed(&in, 2);
                break;
            case 0x04:
                advance = sm_cfi_fixed(&in, 4);
                break;
            case 0x05: /* offset_extended */
                reg = sm_cfi_uleb(&in);
                save(r, reg, at_offset(scaled(sm_cfi_uleb(&in), cie->data_factor)));
                continue;
            case 0x06: /* restore_extended */
                reg = sm_cfi_uleb(&in);
                if (initial != NULL)
                    restore(r, reg, initial);
                continue;
            case 0x07: /* undefined */
                save(r, sm_cfi_uleb(&in), (struct saved){.how = S_UNDEFINED});
                continue;
            case 0x08:
                save(r, sm_cfi_uleb(&in), (struct saved){.how = S_SAME});
                continue;
            case 0x09: /* in another register */
                save(r, sm_cfi_uleb(&in), (struct saved){.how = S_OTHER});
                sm_cfi_uleb(&in);
                continue;
            case 0x0A: /* remember_state */
                if (n_remembered == MAX_REMEMBERED)
                    return false;
                remembered[n_remembered++] = *r;
                continue;
            case 0x0B: /* restore_state */
                if (n_remembered == 0)
                    return false;
                *r = remembered[--n_remembered];
                continue;
            case 0x0C: /* def_cfa */
                r->how = C_OFFSET;
                r->reg = sm_cfi_uleb(&in);
                r->offset = (int64_t)sm_cfi_uleb(&in);
                continue;
            case 0x0D: /* def_cfa_register */
                if (r->how == C_NONE)
                    return false;
                r->how = C_OFFSET;
                r->reg = sm_cfi_uleb(&in);
                continue;
            case 0x0E: /* def_cfa_offset: without effect on an expression, as OCaml 5's runtime relies on */
                r->offset = (int64_t)sm_cfi_uleb(&in);
                continue;
            case 0x0F: /* def_cfa_expression */
                r->how = C_EXPRESSION;
                r->expression = block(&in);
                continue;
            case 0x10: /* expression */
                reg = sm_cfi_uleb(&in);
                save(r, reg, (struct saved){.how = S_EXPRESSION, .u.expression = block(&in)});
                continue;
            case 0x11: /* offset_extended_sf */
                reg = sm_cfi_uleb(&in);
                save(r, reg, at_offset(scaled((uint64_t)sm_cfi_sleb(&in), cie->data_factor)));
                continue;
            case 0x12: /* def_cfa_sf */
                r->how = C_OFFSET;
                r->reg = sm_cfi_uleb(&in);
                r->offset = scaled((uint64_t)sm_cfi_sleb(&in), cie->data_factor);
                continue;
            case 0x13: /* def_cfa_offset_sf */
                r->offset = scaled((uint64_t)sm_cfi_sleb(&in), cie->data_factor);
                continue;
            case 0x14: /* val_offset, val_offset_sf: the value itself, not where it is */
            case 0x15:
                save(r, sm_cfi_uleb(&in), (struct saved){.how = S_OTHER});
                sm_cfi_uleb(&in);
                continue;
            case 0x16: /* val_expression */
                reg = sm_cfi_uleb(&in);
                block(&in);
                save(r, reg, (struct saved){.how = S_OTHER});
                continue;
            case 0x2E:
                sm_cfi_uleb(&in);
                continue; /* GNU_args_size */
            case 0x2F:    /* GNU_negative_offset_extended */
                reg = sm_cfi_uleb(&in);
                save(r, reg, at_offset(-scaled(sm_cfi_uleb(&in), cie->data_factor)));
                continue;
            default:
                return false;
            }
        }
        location += (uintptr_t)(advance * cie->code_factor);
        if (initial != NULL && location > pc)
            break;
    }
    return !in.bad;
}

/* ---- from registers to a rule ---- */

static bool base_of(uint64_t reg, uint8_t *base) {
    *base = reg == DW_RSP ? SM_CFI_RSP : reg == DW_RBP ? SM_CFI_RBP : SM_CFI_RBX;
    return reg == DW_RSP || reg == DW_RBP || reg == DW_RBX;
}

static bool fits_32(int64_t x) {
    return x == (int32_t)x;
}

static bool evaluate(const struct sm_cfi_memory *m, struct piece p, uintptr_t rip,
                     struct sm_cfi_value *out) {
    return sm_cfi_evaluate((struct sm_cfi_in){m, p.at, p.end, false}, rip, out) && out->reg >= 0;
}

static bool place_of(const struct sm_cfi_memory *m, const struct saved *s, uintptr_t rip,
                     uint8_t *place, int32_t *offset) {
    struct sm_cfi_value v;
    int64_t at;
    *offset = 0;
    switch (s->how) {
    case S_OFFSET:
        *place = SM_CFI_AT_CFA;
        at = s->u.offset;
        break;
    case S_EXPRESSION:
        if (!evaluate(m, s->u.expression, rip, &v) || v.n_followed != 0 || v.reg == DW_RBX)
            return false;
        *place = v.reg == DW_RSP ? SM_CFI_AT_RSP : SM_CFI_AT_RBP;
        at = v.offset[0];
        break;
    case S_OTHER:
        return false;
    default:
        *place = SM_CFI_SAME;
        return true;
    }
    *offset = (int32_t)at;
    return fits_32(at);
}

static bool cfa_of(const struct sm_cfi_memory *m, const struct registers *r, uintptr_t rip,
                   struct sm_cfi_rule *rule) {
    struct sm_cfi_value v;
    if (r->how == C_OFFSET) {
        rule->kind = SM_CFI_REGISTER;
        rule->a = (int32_t)r->offset;
        return fits_32(r->offset) && base_of(r->reg, &rule->base);
    }
    if (r->how != C_EXPRESSION || !evaluate(m, r->expression, rip, &v) ||
        !base_of((uint64_t)v.reg, &rule->base))
        return false;
    rule->kind = (uint8_t)(SM_CFI_REGISTER + v.n_followed);
    rule->a = (int32_t)v.offset[0];
    rule->b = v.n_followed == 2 ? (int16_t)v.offset[1] : 0;
    rule->c = v.n_followed >= 1 ? (int16_t)v.offset[v.n_followed] : 0;
    return fits_32(v.offset[0]) && (v.n_followed < 2 || v.offset[1] == rule->b) &&
           (v.n_followed < 1 || v.offset[v.n_followed] == rule->c);
}

bool sm_cfi_find(const struct sm_cfi_memory *m, uintptr_t eh_frame_hdr, uintptr_t pc, uintptr_t rip,
                 struct sm_cfi_rule *rule) {
    struct fde fde;
    struct cie cie;
    struct registers initial, r;
    memset(rule, 0, sizeof *rule);
    if (m->n > UINT32_MAX || !find_fde(m, eh_frame_hdr, pc, &fde, &cie))
        return false;
    memset(&initial, 0, sizeof initial);
    if (!run(cie.program, &cie, 0, UINTPTR_MAX, NULL, &initial))
        return false;
    r = initial;
    if (!run(fde.program, &cie, fde.begin, pc, &initial, &r))
        return false;
    if (r.ra.how == S_UNDEFINED) {
        rule->kind = SM_CFI_OUTERMOST;
        return true;
    }
    if (cfa_of(m, &r, rip, rule) && place_of(m, &r.rbp, rip, &rule->rbp_place, &rule->rbp_offset) &&
        place_of(m, &r.rbx, rip, &rule->rbx_place, &rule->rbx_offset) &&
        place_of(m, &r.ra, rip, &rule->ra_place, &rule->ra_offset) &&
        rule->ra_place != SM_CFI_SAME) {
        /* OCaml 5's runtime calls its changes of stack signal frames, so that debuggers accept them. But what they
           return to is a return address; only a signal leaves an interrupted address, in the saved context. */
        rule->signal = cie.signal && rule->ra_place != SM_CFI_AT_CFA;
        return true;
    }
    memset(rule, 0, sizeof *rule);
    return false;
}
