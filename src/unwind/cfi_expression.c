/* The stack machine of DWARF over open values. What depends on the address of the instruction alone, such as the place
   within a linkage table, is a plain number here, so that the result holds for that address and can be kept. */
#include "unwind/cfi_expression.h"

#include <string.h>

#define MAX_STACK 16

enum { DW_RBX = 3, DW_RBP = 6, DW_RSP = 7, DW_RIP = 16 };

uint64_t sm_cfi_uleb(struct sm_cfi_in *in) {
    uint64_t x = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t b = sm_cfi_byte(in);
        if (shift < 64)
            x |= (uint64_t)(b & 127) << shift;
        if (!(b & 128))
            return x;
    }
}

int64_t sm_cfi_sleb(struct sm_cfi_in *in) {
    uint64_t x = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t b = sm_cfi_byte(in);
        if (shift < 64)
            x |= (uint64_t)(b & 127) << shift;
        if (!(b & 128)) {
            if (shift + 7 < 64 && b & 64)
                x |= ~(uint64_t)0 << (shift + 7);
            return (int64_t)x;
        }
    }
}

static struct sm_cfi_value number(uint64_t x) {
    return (struct sm_cfi_value){.reg = -1, .offset = {(int64_t)x, 0, 0}};
}

static void add(struct sm_cfi_value *v, uint64_t x) {
    int64_t *last = &v->offset[v->n_followed];
    *last = (int64_t)((uint64_t)*last + x);
}

/* The two topmost values into one. */
static bool binary(uint8_t op, struct sm_cfi_value *left, const struct sm_cfi_value *right) {
    if (op == 0x22) { /* plus: one of them may be open */
        struct sm_cfi_value sum = left->reg >= 0 ? *left : *right;
        if (left->reg >= 0 && right->reg >= 0)
            return false;
        add(&sum, (uint64_t)(left->reg >= 0 ? right : left)->offset[0]);
        *left = sum;
        return true;
    }
    if (right->reg >= 0)
        return false;
    int64_t b = right->offset[0];
    if (op == 0x1C) { /* minus */
        add(left, 0 - (uint64_t)b);
        return true;
    }
    if (left->reg >= 0)
        return false;
    int64_t a = left->offset[0];
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    switch (op) {
    case 0x1A:
        *left = number(ua & ub);
        break;
    case 0x1E:
        *left = number(ua * ub);
        break;
    case 0x21:
        *left = number(ua | ub);
        break;
    case 0x24:
        *left = number(ub < 64 ? ua << ub : 0);
        break;
    case 0x25:
        *left = number(ub < 64 ? ua >> ub : 0);
        break;
    case 0x27:
        *left = number(ua ^ ub);
        break;
    case 0x29:
        *left = number(a == b);
        break;
    case 0x2A:
        *left = number(a >= b);
        break;
    case 0x2B:
        *left = number(a > b);
        break;
    case 0x2C:
        *left = number(a <= b);
        break;
    case 0x2D:
        *left = number(a < b);
        break;
    case 0x2E:
        *left = number(a != b);
        break;
    default:
        return false;
    }
    return true;
}

bool sm_cfi_evaluate(struct sm_cfi_in in, uintptr_t rip, struct sm_cfi_value *out) {
    struct sm_cfi_value stack[MAX_STACK];
    unsigned n = 0;
    while (in.at < in.end && !in.bad) {
        uint8_t op = sm_cfi_byte(&in);
        if (op >= 0x70 && op <= 0x92) { /* breg0..31, bregx */
            uint64_t reg = op == 0x92 ? sm_cfi_uleb(&in) : op - 0x70u;
            int64_t offset = sm_cfi_sleb(&in);
            if (n == MAX_STACK || op == 0x90 || op == 0x91)
                return false;
            if (reg == DW_RIP)
                stack[n++] = number((uint64_t)rip + (uint64_t)offset);
            else if (reg == DW_RSP || reg == DW_RBP || reg == DW_RBX)
                stack[n++] = (struct sm_cfi_value){.reg = (int)reg, .offset = {offset, 0, 0}};
            else
                return false;
            continue;
        }
        uint64_t x;
        switch (op) {
        case 0x06: /* deref */
            if (n == 0 || stack[n - 1].reg < 0 || stack[n - 1].n_followed == 2)
                return false;
            stack[n - 1].n_followed++;
            continue;
        case 0x12: /* dup */
            if (n == 0 || n == MAX_STACK)
                return false;
            stack[n] = stack[n - 1];
            n++;
            continue;
        case 0x13: /* drop */
            if (n == 0)
                return false;
            n--;
            continue;
        case 0x23: /* plus_uconst */
            x = sm_cfi_uleb(&in);
            if (n == 0)
                return false;
            add(&stack[n - 1], x);
            continue;
        case 0x96:
            continue; /* nop */
        case 0x08:
            x = sm_cfi_fixed(&in, 1);
            break;
        case 0x09:
            x = (uint64_t)(int8_t)sm_cfi_fixed(&in, 1);
            break;
        case 0x0A:
            x = sm_cfi_fixed(&in, 2);
            break;
        case 0x0B:
            x = (uint64_t)(int16_t)sm_cfi_fixed(&in, 2);
            break;
        case 0x0C:
            x = sm_cfi_fixed(&in, 4);
            break;
        case 0x0D:
            x = (uint64_t)(int32_t)sm_cfi_fixed(&in, 4);
            break;
        case 0x0E:
        case 0x0F:
            x = sm_cfi_fixed(&in, 8);
            break;
        case 0x10:
            x = sm_cfi_uleb(&in);
            break;
        case 0x11:
            x = (uint64_t)sm_cfi_sleb(&in);
            break;
        default:
            if (op >= 0x30 && op <= 0x4F) { /* lit0..31 */
                x = op - 0x30u;
                break;
            }
            if (n < 2 || !binary(op, &stack[n - 2], &stack[n - 1]))
                return false;
            n--;
            continue;
        }
        if (n == MAX_STACK)
            return false;
        stack[n++] = number(x);
    }
    if (in.bad || n == 0)
        return false;
    *out = stack[n - 1];
    return true;
}
