/* From frame to frame by rules (unwind/cfi.h) that are found once for each address and kept.

   **The cache** is one table for all threads, 256 KiB of static memory. An entry is four words: three hold the rule, and the
   first is a mix of address, epoch and the other three. All are read and written with relaxed order, without any
   lock: whoever reads a mixture of two writes finds that the first word does not fit, and looks the rule up. The
   epoch changes when objects are unloaded; older entries fit no more.

   **Reading the stack** never faults. The walk keeps a window of memory known to be readable and looks at nothing
   outside of it. When a word lies outside, the window is moved:
   - The thread's own stack, from the frame to the top (the thread's control block; in the first thread
     __libc_stack_end), cannot vanish while the thread runs on it. It is asked for page by page once and remembered in
     thread-local storage, so that the usual walk makes no system call.
   - Any other memory (signal stacks, OCaml 5 fibers, coroutines) may be unmapped between two walks: its pages are
     asked for in each walk.
   A signal handler in the middle of all this is a walk of its own; the remembered bounds are two words, written so
   that the range only ever holds asked-for pages.

   **OCaml** code and runtime have call frame information of their own, which leads over OCaml 5's changes of stack. One
   thing it cannot tell: while C code that was called from an effect handler's fiber calls back into OCaml, the runtime hides
   the fibers below that one. There the walk ends (SM_UNWIND_BAD_STACK), and outer frames are missing.

   **Without a rule**, in code that was generated at run time, the frame pointer is believed when it points upwards
   into the same stack. */
#include "unwind/unwind.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unwind/cfi.h"
#include "unwind/modules.h"
#include "unwind/probe.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define READS_STACKS __attribute__((no_sanitize("address")))
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define READS_STACKS __attribute__((no_sanitize_address))
#endif
#ifndef READS_STACKS
#define READS_STACKS
#endif

#define PAGE_BYTES SM_PROBE_PAGE_BYTES
/* Of a thread's own stack; more is treated as foreign memory. */
#define OWN_MAX_BYTES (64u << 20)
/* Of one frame without a rule. */
#define FRAME_MAX_BYTES (1u << 20)

extern void *__libc_stack_end __attribute__((weak));

/* ---- readable memory ---- */

bool sm_probe_readable(uintptr_t address) {
    /* rt_sigprocmask copies its argument first (EFAULT when that cannot be) and refuses an unknown operation then
       (EINVAL). */
    int saved_errno = errno;
    uintptr_t page = address & ~(uintptr_t)(PAGE_BYTES - 1);
    bool answer = syscall(SYS_rt_sigprocmask, ~0u, page, NULL, 8) != 0 && errno == EINVAL;
    errno = saved_errno;
    return answer;
}

/* The thread's own stack as far as it is known: [low, top). `hole`: a page below top that could not be read, so what lies
   below it is another stack. */
struct own_stack {
    uintptr_t low, top, hole;
};
static __thread struct own_stack own __attribute__((tls_model("initial-exec")));

static uintptr_t top_of_stack(void) {
    bool first_thread = syscall(SYS_gettid) == syscall(SYS_getpid);
    uintptr_t top = first_thread && &__libc_stack_end != NULL
                        ? (uintptr_t)__libc_stack_end
                        : (uintptr_t)__builtin_thread_pointer();
    return top & ~(uintptr_t)7;
}

/* Extends the known part of the own stack down to the page of `at`, if that belongs to it. */
static __attribute__((noinline)) bool extend_own(uintptr_t at) {
    if (own.top == 0) {
        uintptr_t top = top_of_stack();
        own.low = top;
        own.top = top;
    }
    uintptr_t page = at & ~(uintptr_t)(PAGE_BYTES - 1);
    if (at >= own.top || own.top - page > OWN_MAX_BYTES || at < own.hole)
        return false;
    for (uintptr_t p = page; p < own.low; p += PAGE_BYTES) {
        if (!sm_probe_readable(p)) {
            /* The stack may still grow over it: then it is asked for from below, where it is readable. */
            if (p != page)
                own.hole = p;
            return false;
        }
    }
    if (page < own.low)
        own.low = page;
    return true;
}

struct window {
    uintptr_t low, bytes; /* words that begin at low .. low+bytes-8 can be read */
};

static __attribute__((noinline)) bool move_window(struct window *w, uintptr_t at) {
    if (at < PAGE_BYTES || at >> 47 != 0)
        return false;
    if (own.top == 0 || at < own.low || at >= own.top)
        extend_own(at);
    if (at >= own.low && at < own.top && own.top - at >= 8) {
        w->low = own.low;
        w->bytes = own.top - own.low;
        return true;
    }
    if (!sm_probe_readable(at) || !sm_probe_readable(at + 7))
        return false;
    uintptr_t low = at & ~(uintptr_t)(PAGE_BYTES - 1);
    uintptr_t end = ((at + 7) & ~(uintptr_t)(PAGE_BYTES - 1)) + PAGE_BYTES;
    if (w->low + w->bytes == low) /* a deeper page of the same stack */
        low = w->low;
    w->low = low;
    w->bytes = end - low;
    return true;
}

READS_STACKS static inline bool read_word(struct window *w, uintptr_t at, uintptr_t *word) {
    uintptr_t offset = at - w->low;
    if (__builtin_expect(offset > w->bytes - 8, 0) && !move_window(w, at))
        return false;
    memcpy(word, (const void *)at, sizeof *word);
    return true;
}

/* ---- the cache ---- */

/* A rule in three words.
   w0: bits 0..31 a, 32..35 kind, 36..37 base, 38..39 rbp_place, 40..41 rbx_place, 42..43 ra_place, 44 signal, 48..59 generation
   w1: rbp_offset, rbx_offset.   w2: ra_offset, b, c */
struct packed {
    uint64_t w[3];
};

enum {
    KIND_SHIFT = 32,
    BASE_SHIFT = 36,
    RBP_SHIFT = 38,
    RBX_SHIFT = 40,
    RA_SHIFT = 42,
    SIGNAL_SHIFT = 44,
    GENERATION_SHIFT = 48
};

#define CACHE_BITS 12
struct entry {
    _Atomic uint64_t check;
    _Atomic uint64_t w[3];
};
static struct set { struct entry e[2]; } cache[1u << CACHE_BITS] __attribute__((aligned(64)));

static inline uint64_t mix(uintptr_t pc, uint64_t epoch, const struct packed *p) {
    return pc ^ epoch << 48 ^ p->w[0] * 0x9E3779B97F4A7C15u ^ p->w[1] * 0xC2B2AE3D27D4EB4Fu ^
           p->w[2] * 0x165667B19E3779F9u;
}

static inline bool cached(const struct entry *e, uintptr_t pc, uint64_t epoch, struct packed *p) {
    uint64_t check = atomic_load_explicit(&e->check, memory_order_relaxed);
    for (int i = 0; i < 3; i++)
        p->w[i] = atomic_load_explicit(&e->w[i], memory_order_relaxed);
    return check == mix(pc, epoch, p);
}

static void keep(struct entry *e, uint64_t check, const struct packed *p) {
    for (int i = 0; i < 3; i++)
        atomic_store_explicit(&e->w[i], p->w[i], memory_order_relaxed);
    atomic_store_explicit(&e->check, check, memory_order_relaxed);
}

static struct packed pack(const struct sm_cfi_rule *r, unsigned generation) {
    return (struct packed){
        {(uint64_t)(uint32_t)r->a | (uint64_t)r->kind << KIND_SHIFT |
             (uint64_t)r->base << BASE_SHIFT | (uint64_t)r->rbp_place << RBP_SHIFT |
             (uint64_t)r->rbx_place << RBX_SHIFT | (uint64_t)r->ra_place << RA_SHIFT |
             (uint64_t)r->signal << SIGNAL_SHIFT | (uint64_t)generation << GENERATION_SHIFT,
         (uint64_t)(uint32_t)r->rbp_offset | (uint64_t)(uint32_t)r->rbx_offset << 32,
         (uint64_t)(uint32_t)r->ra_offset | (uint64_t)(uint16_t)r->b << 32 |
             (uint64_t)(uint16_t)r->c << 48}};
}

/* By the tables. The frame's number is the return address, or the interrupted one plus 1. */
static __attribute__((noinline)) void look_up(uintptr_t pc, bool interrupted, uint64_t epoch,
                                              struct set *set, struct packed *p) {
    struct sm_module m;
    struct sm_cfi_rule rule = {.kind = SM_CFI_NONE};
    const struct sm_module *kept;
    if (!sm_module_find(pc, &m, &kept)) {
        *p = pack(&rule, 0); /* nobody's code: what is there may change without a word */
        return;
    }
    if (m.eh_frame_hdr != 0) {
        struct sm_cfi_memory memory = {(const uint8_t *)m.tables_start,
                                       m.tables_end - m.tables_start, m.tables_start};
        sm_cfi_find(&memory, m.eh_frame_hdr, pc, interrupted ? pc : pc + 1, &rule);
    }
    *p = pack(&rule, m.generation);
    if (kept == NULL)
        return;
    struct packed first;
    uint64_t check = atomic_load_explicit(&set->e[0].check, memory_order_relaxed);
    for (int i = 0; i < 3; i++)
        first.w[i] = atomic_load_explicit(&set->e[0].w[i], memory_order_relaxed);
    keep(&set->e[1], check, &first); /* the older one goes */
    keep(&set->e[0], mix(pc, epoch, p), p);
}

static inline void rule_of(uintptr_t pc, bool interrupted, uint64_t epoch, struct packed *p) {
    struct set *set = &cache[pc * 0x9E3779B97F4A7C15u >> (64 - CACHE_BITS)];
    if (__builtin_expect(cached(&set->e[0], pc, epoch, p), 1))
        return;
    if (!cached(&set->e[1], pc, epoch, p))
        look_up(pc, interrupted, epoch, set, p);
}

/* ---- storing ---- */

/* Where the n-th frame of a stack of any depth goes: the first half in order, the others around a ring. */
struct store {
    uintptr_t *frames;
    uint32_t max, half, n;
};

static inline void put(struct store *s, uintptr_t frame) {
    uint32_t at = s->n++;
    if (__builtin_expect(at >= s->max, 0)) {
        if (s->max == 0)
            return;
        at = s->half + 1 + (at - s->half - 1) % (s->max - s->half - 1);
    }
    s->frames[at] = frame;
}

static void reverse(uintptr_t *a, uint32_t n) {
    for (uint32_t i = 0; i + 1 < n - i; i++) {
        uintptr_t swapped = a[i];
        a[i] = a[n - 1 - i];
        a[n - 1 - i] = swapped;
    }
}

/* Brings the ring into order and puts the mark; returns the number of frames stored. */
static uint32_t finish(struct store *s, struct sm_unwound *out) {
    if (s->n <= s->max)
        return s->n;
    if (s->max > 0) {
        uint32_t ring = s->max - s->half - 1, first = (s->n - s->half - 1) % ring;
        uintptr_t *r = s->frames + s->half + 1;
        reverse(r, first);
        reverse(r + first, ring - first);
        reverse(r, ring);
        s->frames[s->half] = 0;
    }
    if (out != NULL) {
        out->cut_at = s->half;
        out->n_cut = s->n - (s->max > 0 ? s->max - 1 : 0);
    }
    return s->max;
}

/* ---- the walk ---- */

struct registers {
    uintptr_t rsp, rbp, rbx;
};

/* A frame without a rule. */
READS_STACKS static bool by_frame_pointer(struct window *w, struct registers *r, uintptr_t *ra) {
    uintptr_t caller;
    if (r->rbp % 8 != 0 || r->rbp < r->rsp || r->rbp - r->rsp > FRAME_MAX_BYTES ||
        !read_word(w, r->rbp, &caller) || !read_word(w, r->rbp + 8, ra))
        return false;
    r->rsp = r->rbp + 16;
    r->rbp = caller;
    return true;
}

static inline int32_t low_half(uint64_t x) {
    return (int32_t)(uint32_t)x;
}

READS_STACKS static inline bool restore(struct window *w, unsigned place, int32_t offset,
                                        uintptr_t cfa, const struct registers *r, uintptr_t *word) {
    if (place == SM_CFI_SAME)
        return true;
    uintptr_t base = place == SM_CFI_AT_CFA ? cfa : place == SM_CFI_AT_RSP ? r->rsp : r->rbp;
    return read_word(w, base + (uintptr_t)(intptr_t)offset, word);
}

/* One frame outwards. False: the walk ends, *end says why. */
READS_STACKS static inline bool step(struct window *w, const struct packed *p, struct registers *r,
                                     uintptr_t *ra, enum sm_unwind_end *end) {
    uint64_t w0 = p->w[0];
    unsigned kind = w0 >> KIND_SHIFT & 15, base = w0 >> BASE_SHIFT & 3;
    uintptr_t cfa = (base == SM_CFI_RSP   ? r->rsp
                     : base == SM_CFI_RBP ? r->rbp
                                          : r->rbx) +
                    (uintptr_t)(intptr_t)low_half(w0);
    *end = SM_UNWIND_BAD_STACK;
    if (__builtin_expect(kind != SM_CFI_REGISTER, 0)) {
        if (kind == SM_CFI_OUTERMOST) {
            *end = SM_UNWIND_OUTERMOST;
            return false;
        }
        if (kind == SM_CFI_NONE) {
            *end = SM_UNWIND_NO_INFO;
            return by_frame_pointer(w, r, ra);
        }
        if (!read_word(w, cfa, &cfa))
            return false;
        if (kind == SM_CFI_MEMORY_2 &&
            !read_word(w, cfa + (uintptr_t)(intptr_t)(int16_t)(p->w[2] >> 32), &cfa))
            return false;
        cfa += (uintptr_t)(intptr_t)(int16_t)(p->w[2] >> 48);
    } else if (base != SM_CFI_RBX && cfa <= r->rsp) {
        return false; /* only expressions, and rbx in OCaml 5, lead to other stacks */
    }
    uintptr_t rbp = r->rbp, rbx = r->rbx;
    if (!restore(w, w0 >> RBP_SHIFT & 3, low_half(p->w[1]), cfa, r, &rbp) ||
        !restore(w, w0 >> RBX_SHIFT & 3, (int32_t)(p->w[1] >> 32), cfa, r, &rbx) ||
        !restore(w, w0 >> RA_SHIFT & 3, low_half(p->w[2]), cfa, r, ra))
        return false;
    *r = (struct registers){cfa, rbp, rbx};
    return true;
}

READS_STACKS __attribute__((noinline)) uint32_t sm_unwind(uintptr_t *frames, uint32_t max,
                                                          uint32_t skip, struct sm_unwound *out) {
    struct store store = {frames, max < 4 ? 0 : max, max / 2, 0};
    struct registers r;
    uintptr_t pc;
    __asm__ volatile("leaq 0f(%%rip), %0\n0:\tmovq %%rsp, %1\n\tmovq %%rbp, %2\n\tmovq %%rbx, %3"
                     : "=&r"(pc), "=&r"(r.rsp), "=&r"(r.rbp), "=&r"(r.rbx)::"memory");
    struct window window = {r.rsp, 8}; /* a word that is there */
    uint64_t epoch = sm_modules_epoch();
    struct sm_unwound end = {.end = SM_UNWIND_TOO_DEEP};
    struct packed p;
    bool interrupted = false;
    rule_of(pc, true, epoch, &p);
    for (uint32_t walked = 0; walked <= SM_UNWIND_MAX_FRAMES + skip; walked++) {
        uintptr_t ra = 0;
        if (!step(&window, &p, &r, &ra, &end.end))
            break;
        interrupted = p.w[0] >> SIGNAL_SHIFT & 1;
        pc = ra - !interrupted; /* a byte of the calling, or interrupted, instruction */
        if (__builtin_expect(pc - PAGE_BYTES >= ((uintptr_t)1 << 47) - PAGE_BYTES, 0)) {
            end.end = ra == 0 ? SM_UNWIND_OUTERMOST : SM_UNWIND_BAD_STACK;
            break;
        }
        rule_of(pc, interrupted, epoch, &p);
        if (walked >= skip)
            put(&store, (pc + 1) | (p.w[0] >> GENERATION_SHIFT) << SM_FRAME_ADDRESS_BITS);
        end.end = SM_UNWIND_TOO_DEEP;
    }
    uint32_t n = finish(&store, &end);
    if (out != NULL)
        *out = end;
    return n;
}
