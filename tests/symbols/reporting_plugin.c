/* Loaded by linked.c; NAME tells two builds apart. */
#include "statmem.h"

__attribute__((noinline)) static void NAME(void) {
    statmem_ext_alloc(4096); /* PLUGIN */
    __asm__ volatile("" ::: "memory");
}

void plugin_work(void);
void plugin_work(void) {
    NAME();
    __asm__ volatile("" ::: "memory");
}
