/* Resident memory that grows in the way that argv[1] names; 64 MB in half a second. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PIECES = 64, PIECE = 1 << 20, SMALL = 400, N_SMALL = PIECES * (PIECE / SMALL) };

static void leak(void) {
    for (int i = 0; i < PIECES; i++) {
        memset(malloc(PIECE), 1, PIECE);
        usleep(8000);
    }
}

static void mapped(void) {
    for (int i = 0; i < PIECES; i++) {
        memset(mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1,
               PIECE);
        usleep(8000);
    }
}

static void file(void) {
    char path[] = "/tmp/growth.XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    ftruncate(fd, (off_t)PIECES * PIECE);
    char *p = mmap(NULL, (size_t)PIECES * PIECE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (int i = 0; i < PIECES; i++) {
        memset(p + (size_t)i * PIECE, 1, PIECE);
        usleep(8000);
    }
}

/* A burst, of which one block in a hundred stays, so that nothing can be given back to the system. */
static void kept(void) {
    static char *p[N_SMALL];
    for (int i = 0; i < N_SMALL; i++) {
        p[i] = malloc(SMALL);
        memset(p[i], 1, SMALL);
    }
    usleep(200000);
    for (int i = 0; i < N_SMALL; i++)
        if (i % 100 != 0)
            free(p[i]);
    usleep(300000);
}

static void untouched(void) {
    for (int i = 0; i < PIECES; i++) {
        *(volatile char *)malloc(PIECE) = 1;
        usleep(2000);
    }
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"leak", leak},
               {"mapped", mapped},
               {"file", file},
               {"kept", kept},
               {"untouched", untouched}};
    usleep(60000); /* a reading before */
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (argc > 1 && strcmp(argv[1], all[i].name) == 0)
            all[i].run();
    return 0;
}
