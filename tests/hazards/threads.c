/* 4, 18: threads that free each other's blocks, come and go, and whose destructors still allocate and free. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT = 200, WORKERS = 4, ROUNDS = 20000, BOXES = 256 };
static void *boxes[BOXES];
static pthread_key_t key;
static unsigned long destroyed;

/* Runs in all four rounds of destructors. */
static void destructor(void *p) {
    char *s = realloc(p, 200);
    __atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
    if (s[0]-- > 'a')
        pthread_setspecific(key, s);
    else
        free(s);
}

__attribute__((noinline)) void *short_life(void *x) {
    char *s = malloc(50);
    strcpy(s, "c");
    pthread_setspecific(key, s);
    free(malloc(30));
    return malloc(70);
}

__attribute__((noinline)) void *worker(void *x) {
    unsigned long r = (unsigned long)x + 1;
    for (int i = 0; i < ROUNDS; i++) {
        r = r * 6364136223846793005ul + 1442695040888963407ul;
        void *mine = malloc(r >> 40 & 1023);
        void *other = __atomic_exchange_n(&boxes[r >> 50 & (BOXES - 1)], mine, __ATOMIC_ACQ_REL);
        free(other);
    }
    return NULL;
}

int main(void) {
    pthread_t t[WORKERS];
    pthread_key_create(&key, destructor);
    for (int i = 0; i < SHORT; i++) {
        void *left;
        pthread_create(&t[0], NULL, short_life, NULL);
        pthread_join(t[0], &left);
        free(left);
    }
    for (long i = 0; i < WORKERS; i++)
        pthread_create(&t[i], NULL, worker, (void *)i);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < BOXES; i++)
        free(boxes[i]);
    printf("%lu destructors\n", destroyed);
    return 0;
}
