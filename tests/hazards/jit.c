/* 10: code made at run time, without unwind information, calls malloc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(void) {
    unsigned char code[] = {0x48, 0x83, 0xec, 0x08,                     /* sub rsp, 8 */
                            0x48, 0xb8, 0,    0,    0,   0, 0, 0, 0, 0, /* mov rax, malloc */
                            0xff, 0xd0,                                 /* call rax */
                            0x48, 0x83, 0xc4, 0x08, 0xc3};              /* add rsp, 8; ret */
    void *(*function)(size_t) = malloc;
    memcpy(code + 6, &function, 8);
    unsigned char *at =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return 77;
    memcpy(at, code, sizeof code);
    memcpy(&function, &at, sizeof at);
    unsigned long n = 0;
    for (int i = 0; i < 10000; i++) {
        char *p = function(100);
        p[99] = 1;
        n += (unsigned long)p[99];
        free(p);
    }
    printf("%lu\n", n);
    return 0;
}
