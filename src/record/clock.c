#include "record/clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/os.h"

#if defined(__x86_64__)
static bool counter_is_invariant(void) {
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & 1u << 8) != 0;
}

static bool kernel_uses_counter(void) {
    char name[8] = "";
    int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                  O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, name, sizeof name);
    close(fd);
    return n >= 4 && memcmp(name, "tsc\n", 4) == 0;
}
#endif

void sm_clock_begin(struct sm_clock_base *base) {
    base->usable = false;
#if defined(__x86_64__)
    const char *wish = getenv("STATMEM_CLOCK");
    base->usable = (wish == NULL || strcmp(wish, "system") != 0) && counter_is_invariant() &&
                   kernel_uses_counter();
#endif
    base->start_cycles = sm_cycles();
    base->start_ns = sm_os_monotonic_ns();
}

uint64_t sm_clock_anchor(struct sm_event_clock *clock, const struct sm_clock_base *base) {
    uint64_t cycles = sm_cycles();
    uint64_t ns = sm_os_monotonic_ns();
    if (!base->usable || clock->distrusted)
        return ns;
    if (clock->window_cycles != 0 && cycles - clock->anchor_cycles < clock->window_cycles * 64) {
        /* Not long after the last window's end, where the product cannot overflow. */
        uint64_t told =
            clock->anchor_ns + ((cycles - clock->anchor_cycles) * clock->ns_per_cycle >> 32);
        uint64_t apart = told > ns ? told - ns : ns - told;
        /* The thread may lose its processor between the two readings: that makes ns late, once. */
        if (apart > SM_CLOCK_TOLERANCE_NS) {
            cycles = sm_cycles();
            ns = sm_os_monotonic_ns();
            told = clock->anchor_ns + ((cycles - clock->anchor_cycles) * clock->ns_per_cycle >> 32);
            apart = told > ns ? told - ns : ns - told;
            if (apart > SM_CLOCK_TOLERANCE_NS) {
                clock->distrusted = true;
                clock->window_cycles = 0;
                return ns;
            }
        }
    }
    if (ns - base->start_ns < SM_CLOCK_CALIBRATION_NS || cycles <= base->start_cycles)
        return ns;
    double ns_per_cycle = (double)(ns - base->start_ns) / (double)(cycles - base->start_cycles);
    if (!(ns_per_cycle > 0.05 && ns_per_cycle < 10)) { /* no processor is like that */
        clock->distrusted = true;
        clock->window_cycles = 0;
        return ns;
    }
    clock->anchor_cycles = cycles;
    clock->anchor_ns = ns;
    clock->ns_per_cycle = (uint64_t)(ns_per_cycle * 4294967296.0);
    clock->window_cycles = (uint64_t)(SM_CLOCK_WINDOW_NS / ns_per_cycle);
    return ns;
}
