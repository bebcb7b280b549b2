/* See regex.h.

   Steps refer to each other by distance, so that a piece of program can be moved and copied: a repetition is made of
   copies of its operand, which stands last in the program. */
#include "analyze/regex.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"

enum op { OP_BYTE, OP_SET, OP_START, OP_END, OP_JUMP, OP_SPLIT, OP_FOUND };

struct step {
    uint8_t op;
    uint8_t byte; /* BYTE */
    uint16_t set; /* SET: number of it */
    int16_t a, b; /* JUMP: a; SPLIT: both; distances */
};

struct set {
    uint8_t bits[32];
};

struct sm_regex {
    uint32_t n_steps, n_sets;
    struct set *sets;
    struct step steps[];
};

struct compiler {
    const unsigned char *p, *end;
    uint32_t n, depth;
    struct step steps[SM_REGEX_MAX_STEPS];
    uint32_t n_sets;
    struct set sets[SM_REGEX_MAX_BYTES];
};

/* Room for n steps at `at`; those behind move on. */
static bool make_room(struct compiler *c, uint32_t at, uint32_t n) {
    if (n > SM_REGEX_MAX_STEPS || c->n > SM_REGEX_MAX_STEPS - n)
        return false;
    memmove(c->steps + at + n, c->steps + at, (c->n - at) * sizeof *c->steps);
    c->n += n;
    return true;
}

static bool put(struct compiler *c, uint32_t at, struct step step) {
    if (!make_room(c, at, 1))
        return false;
    c->steps[at] = step;
    return true;
}

/* ---- sets ---- */

static void add(struct set *s, unsigned byte) {
    s->bits[byte >> 3] |= (uint8_t)(1u << (byte & 7));
}

static bool has(const struct set *s, unsigned byte) {
    return (s->bits[byte >> 3] >> (byte & 7) & 1) != 0;
}

static void invert(struct set *s) {
    for (unsigned i = 0; i < sizeof s->bits; i++)
        s->bits[i] = (uint8_t)~s->bits[i];
}

/* Of ASCII, whatever the locale. */
static bool in_class(unsigned char c, const char *name) {
    static const char *const names[] = {"alpha", "digit",  "alnum", "upper", "lower", "space",
                                        "punct", "xdigit", "blank", "cntrl", "print", "graph"};
    bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z', digit = c >= '0' && c <= '9';
    bool graph = c > ' ' && c < 0x7F;
    const bool are[] = {upper || lower,
                        digit,
                        upper || lower || digit,
                        upper,
                        lower,
                        c == ' ' || (c >= '\t' && c <= '\r'),
                        graph && !(upper || lower || digit),
                        digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'),
                        c == ' ' || c == '\t',
                        c < ' ' || c == 0x7F,
                        graph || c == ' ',
                        graph};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0)
            return are[i];
    }
    return false;
}

static void add_class(struct set *s, const char *name) {
    for (unsigned i = 0; i < 256; i++) {
        if (in_class((unsigned char)i, name))
            add(s, i);
    }
}

static bool put_set(struct compiler *c, const struct set *s) {
    if (c->n_sets == SM_REGEX_MAX_BYTES)
        return false;
    c->sets[c->n_sets] = *s;
    return put(c, c->n, (struct step){.op = OP_SET, .set = (uint16_t)c->n_sets++});
}

/* [:name:] at c->p, behind its first bracket. */
static bool get_class(struct compiler *c, struct set *s) {
    char name[8] = "";
    unsigned n = 0;
    for (c->p++; c->p < c->end && islower(*c->p) && n < sizeof name - 1; c->p++)
        name[n++] = (char)*c->p;
    static const char sample[] = "a0 !\nA"; /* each class has one of these */
    bool known = false;
    for (const char *b = sample; *b != 0; b++)
        known = known || in_class((unsigned char)*b, name);
    if (!known || c->end - c->p < 2 || c->p[0] != ':' || c->p[1] != ']')
        return false;
    c->p += 2;
    add_class(s, name);
    return true;
}

/* Behind the opening bracket. A ] that stands first is one of the set. */
static bool get_set(struct compiler *c) {
    struct set s = {0};
    bool no = c->p < c->end && *c->p == '^';
    c->p += no;
    for (bool first = true;; first = false) {
        if (c->p == c->end)
            return false;
        unsigned low = *c->p++;
        if (low == ']' && !first)
            break;
        if (low == '[' && c->p < c->end && (*c->p == ':' || *c->p == '.' || *c->p == '=')) {
            if (*c->p != ':' || !get_class(c, &s))
                return false;
            continue;
        }
        unsigned high = low;
        if (c->end - c->p > 1 && c->p[0] == '-' && c->p[1] != ']') {
            high = c->p[1];
            c->p += 2;
            if (high < low || high == '[')
                return false;
        }
        for (unsigned i = low; i <= high; i++)
            add(&s, i);
    }
    if (no)
        invert(&s);
    return put_set(c, &s);
}

/* Behind the backslash. */
static bool get_escape(struct compiler *c) {
    if (c->p == c->end)
        return false;
    unsigned char letter = *c->p++;
    if (!isalnum(letter) || letter >= 0x80)
        return put(c, c->n, (struct step){.op = OP_BYTE, .byte = letter});
    struct set s = {0};
    switch (letter | 0x20) {
    case 'd':
        add_class(&s, "digit");
        break;
    case 's':
        add_class(&s, "space");
        break;
    case 'w':
        add_class(&s, "alnum");
        add(&s, '_');
        break;
    default:
        return false;
    }
    if (isupper(letter))
        invert(&s);
    return put_set(c, &s);
}

/* ---- repetitions ---- */

static bool get_number(struct compiler *c, uint32_t *n) {
    const unsigned char *first = c->p;
    for (*n = 0; c->p < c->end && isdigit(*c->p); c->p++) {
        *n = *n * 10 + (*c->p - '0');
        if (*n > SM_REGEX_MAX_STEPS)
            return false;
    }
    return c->p > first;
}

/* The program from `at` on, repeated `least` to `most` times; most UINT32_MAX: without end. */
static bool repeat(struct compiler *c, uint32_t at, uint32_t least, uint32_t most) {
    uint32_t length = c->n - at;
    uint64_t steps = most != UINT32_MAX
                         ? (uint64_t)least * length + (uint64_t)(most - least) * (length + 1)
                         : (uint64_t)(least > 0 ? least : 1) * length + (least > 0 ? 1 : 2);
    if (steps > SM_REGEX_MAX_STEPS - at)
        return false;
    struct step *operand = sm_alloc((length + 1) * sizeof *operand);
    memcpy(operand, c->steps + at, length * sizeof *operand);
    c->n = at;
    uint32_t copies = most != UINT32_MAX ? most : least > 0 ? least : 1;
    for (uint32_t i = 0; i < copies; i++) {
        if (most == UINT32_MAX && least == 0) {
            c->steps[c->n++] = (struct step){.op = OP_SPLIT, .a = 1, .b = (int16_t)(length + 2)};
        } else if (i >= least) { /* this and all further ones, or nothing more */
            uint32_t left = (most - i) * (length + 1);
            c->steps[c->n++] = (struct step){.op = OP_SPLIT, .a = 1, .b = (int16_t)left};
        }
        memcpy(c->steps + c->n, operand, length * sizeof *operand);
        c->n += length;
    }
    if (most == UINT32_MAX && least == 0)
        c->steps[c->n++] = (struct step){.op = OP_JUMP, .a = (int16_t) - (int32_t)(length + 1)};
    else if (most == UINT32_MAX)
        c->steps[c->n++] = (struct step){.op = OP_SPLIT, .a = (int16_t) - (int32_t)length, .b = 1};
    free(operand);
    return true;
}

static bool is_repetition(const struct compiler *c) {
    return c->p < c->end && strchr("*+?{", *c->p) != NULL;
}

/* What may follow an atom that begins at `at`. */
static bool get_repetition(struct compiler *c, uint32_t at) {
    uint32_t least = 0, most = UINT32_MAX;
    if (!is_repetition(c))
        return true;
    switch (*c->p++) {
    case '*':
        break;
    case '+':
        least = 1;
        break;
    case '?':
        most = 1;
        break;
    default:
        if (!get_number(c, &least))
            return false;
        most = least;
        if (c->p < c->end && *c->p == ',') {
            c->p++;
            most = UINT32_MAX;
            if (c->p < c->end && *c->p != '}' && (!get_number(c, &most) || most < least))
                return false;
        }
        if (c->p == c->end || *c->p++ != '}')
            return false;
    }
    return !is_repetition(c) && repeat(c, at, least, most);
}

/* ---- expressions ---- */

static bool get_alternatives(struct compiler *c);

static bool get_atom(struct compiler *c) {
    struct set any;
    unsigned char byte = *c->p++;
    switch (byte) {
    case '(':
        if (++c->depth > SM_REGEX_MAX_DEPTH || !get_alternatives(c) || c->p == c->end)
            return false;
        c->p++; /* the closing one: nothing else ends alternatives */
        c->depth--;
        return true;
    case '[':
        return get_set(c);
    case '\\':
        return get_escape(c);
    case '.':
        memset(&any, 0xFF, sizeof any);
        return put_set(c, &any);
    case '^':
    case '$':
        return !is_repetition(c) &&
               put(c, c->n, (struct step){.op = byte == '^' ? OP_START : OP_END});
    case '*':
    case '+':
    case '?':
    case '{':
    case '}':
        return false;
    default:
        return put(c, c->n, (struct step){.op = OP_BYTE, .byte = byte});
    }
}

/* Up to the end, or to a closing parenthesis that belongs to the caller. Each alternative but the last is
   preceded by a split and followed by a jump to the end of all. */
static bool get_alternatives(struct compiler *c) {
    uint32_t start = c->n, last_jump = UINT32_MAX;
    for (;;) {
        if (c->p < c->end && *c->p != '|' && *c->p != ')') {
            uint32_t at = c->n;
            if (!get_atom(c) || !get_repetition(c, at))
                return false;
            continue;
        }
        if (c->p == c->end || *c->p == ')')
            break;
        c->p++;
        if (!put(c, start, (struct step){.op = OP_SPLIT, .a = 1}) ||
            !put(c, c->n, (struct step){.op = OP_JUMP}))
            return false;
        c->steps[start].b = (int16_t)(c->n - start);
        /* Jumps that wait for the end are chained by their distances. */
        c->steps[c->n - 1].a = last_jump == UINT32_MAX ? 0 : (int16_t)(c->n - 1 - last_jump);
        last_jump = c->n - 1;
        start = c->n;
    }
    while (last_jump != UINT32_MAX) {
        int16_t back = c->steps[last_jump].a;
        c->steps[last_jump].a = (int16_t)(c->n - last_jump);
        last_jump = back == 0 ? UINT32_MAX : last_jump - (uint32_t)back;
    }
    return c->p < c->end ? c->depth > 0 : c->depth == 0;
}

struct sm_regex *sm_regex_new(const char *text, size_t bytes) {
    if (bytes > SM_REGEX_MAX_BYTES || memchr(text, 0, bytes) != NULL)
        return NULL;
    struct compiler *c = sm_alloc_zero(1, sizeof *c);
    c->p = (const unsigned char *)text;
    c->end = c->p + bytes;
    struct sm_regex *r = NULL;
    if (get_alternatives(c) && c->p == c->end && put(c, c->n, (struct step){.op = OP_FOUND})) {
        r = sm_alloc(sizeof *r + c->n * sizeof *r->steps);
        r->n_steps = c->n;
        r->n_sets = c->n_sets;
        memcpy(r->steps, c->steps, c->n * sizeof *r->steps);
        r->sets = sm_alloc((c->n_sets + 1) * sizeof *r->sets);
        memcpy(r->sets, c->sets, c->n_sets * sizeof *r->sets);
    }
    free(c);
    return r;
}

void sm_regex_free(struct sm_regex *r) {
    if (r == NULL)
        return;
    free(r->sets);
    free(r);
}

/* ---- matching ---- */

/* Steps to look at for the next byte; each is in the list once. */
struct list {
    uint32_t n;
    uint16_t steps[SM_REGEX_MAX_STEPS];
};

struct matcher {
    const struct sm_regex *r;
    uint32_t position[SM_REGEX_MAX_STEPS]; /* + 1, where the step was reached last; 0 = never */
    uint16_t stack[SM_REGEX_MAX_STEPS + 1];
    struct list lists[2];
};

/* Adds the step and what follows from it without a byte. True when the end is among it. A step is pushed
   once for a position, so that the stack suffices. */
static bool follow(struct matcher *m, struct list *to, uint32_t step, uint32_t position,
                   bool at_end) {
    uint32_t n = 0;
    if (m->position[step] == position + 1)
        return false;
    m->position[step] = position + 1;
    m->stack[n++] = (uint16_t)step;
    while (n > 0) {
        uint32_t i = m->stack[--n];
        const struct step *s = &m->r->steps[i];
        int32_t next[2], n_next = 0;
        switch (s->op) {
        case OP_FOUND:
            return true;
        case OP_JUMP:
            next[n_next++] = s->a;
            break;
        case OP_SPLIT:
            next[n_next++] = s->a;
            next[n_next++] = s->b;
            break;
        case OP_START:
        case OP_END:
            if (s->op == OP_START ? position == 0 : at_end)
                next[n_next++] = 1;
            break;
        default:
            to->steps[to->n++] = (uint16_t)i;
            break;
        }
        for (int32_t k = 0; k < n_next; k++) {
            uint32_t to_step = i + (uint32_t)next[k];
            if (m->position[to_step] != position + 1) {
                m->position[to_step] = position + 1;
                m->stack[n++] = (uint16_t)to_step;
            }
        }
    }
    return false;
}

bool sm_regex_match(const struct sm_regex *r, const char *text, size_t bytes) {
    struct matcher m;
    struct list *now = &m.lists[0], *then = &m.lists[1];
    m.r = r;
    memset(m.position, 0, r->n_steps * sizeof *m.position);
    now->n = 0;
    if (bytes > UINT32_MAX - 2)
        bytes = UINT32_MAX - 2;
    for (uint32_t i = 0;; i++) {
        /* A match may begin anywhere. */
        if (follow(&m, now, 0, i, i == bytes))
            return true;
        if (i == bytes)
            return false;
        unsigned char byte = (unsigned char)text[i];
        then->n = 0;
        for (uint32_t k = 0; k < now->n; k++) {
            const struct step *s = &r->steps[now->steps[k]];
            if ((s->op == OP_BYTE ? s->byte == byte : has(&r->sets[s->set], byte)) &&
                follow(&m, then, now->steps[k] + 1u, i + 1, i + 1 == bytes))
                return true;
        }
        struct list *swap = now;
        now = then;
        then = swap;
    }
}
