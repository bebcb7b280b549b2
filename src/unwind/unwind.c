/* By frame pointers: each frame begins with the caller's frame pointer and the return address. Code that uses rbp for
   something else ends the walk, or leaves callers out.

   What looks like a frame pointer may be any number, so each page is asked for before it is read: rt_sigprocmask with
   an unknown operation copies its argument (EFAULT when that cannot be) and then refuses (EINVAL). */
#include "unwind/unwind.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE_BYTES 4096u
/* Frames beyond are not believed. */
#define FRAME_MAX_BYTES (256u << 10)

static bool readable(uintptr_t page) {
    int saved_errno = errno;
    bool answer = syscall(SYS_rt_sigprocmask, ~0u, page, NULL, 8) != 0 && errno == EINVAL;
    errno = saved_errno;
    return answer;
}

/* Where the n-th frame of a stack of any depth goes: the first half in order, the others around a ring. */
struct store {
    uintptr_t *frames;
    uint32_t max, half, n;
};

static void put(struct store *s, uintptr_t frame) {
    uint32_t at = s->n;
    if (at >= s->max && s->max > 0)
        at = s->half + 1 + (at - s->half - 1) % (s->max - s->half - 1);
    if (at < s->max)
        s->frames[at] = frame;
    s->n++;
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
    uint32_t ring = s->max - s->half - 1, first = (s->n - s->half - 1) % ring;
    uintptr_t *r = s->frames + s->half + 1;
    reverse(r, first);
    reverse(r + first, ring - first);
    reverse(r, ring);
    s->frames[s->half] = 0;
    if (out != NULL) {
        out->cut_at = s->half;
        out->n_cut = s->n - (s->max - 1);
    }
    return s->max;
}

__attribute__((noinline)) uint32_t sm_unwind(uintptr_t *frames, uint32_t max, uint32_t skip,
                                             struct sm_unwound *out) {
    struct store store = {frames, max < 4 ? 0 : max, max / 2, 0};
    enum sm_unwind_end end = SM_UNWIND_TOO_DEEP;
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    uintptr_t good_page = frame & ~(uintptr_t)(PAGE_BYTES - 1);
    if (out != NULL)
        *out = (struct sm_unwound){0};
    for (uint32_t walked = 0; walked < SM_UNWIND_MAX_FRAMES; walked++) {
        /* Both words: their address is a multiple of 16, so they share a page. */
        uintptr_t page = frame & ~(uintptr_t)(PAGE_BYTES - 1);
        end = SM_UNWIND_BAD_STACK;
        if (page != good_page && !readable(page))
            break;
        good_page = page;
        uintptr_t caller = ((const uintptr_t *)frame)[0], pc = ((const uintptr_t *)frame)[1];
        if (pc < PAGE_BYTES || pc >> 47 != 0)
            break;
        if (walked >= skip)
            put(&store, pc);
        if (caller <= frame || caller - frame > FRAME_MAX_BYTES || caller % 16 != 0)
            break;
        frame = caller;
        end = SM_UNWIND_TOO_DEEP;
    }
    if (out != NULL)
        out->end = end;
    return finish(&store, out);
}
