/* statmem.h: tell the profiler about memory that it cannot see, from C and C++.

   A program (or a library with C stubs) reports the blocks that it takes and gives back; statmem samples them by size and
   writes them, with times and places, into the trace beside OCaml's own allocations.

       statmem_token t = statmem_ext_alloc(bytes);    ... memory taken ...
       statmem_ext_free(t);                           ... given back ...

   Every function may be called from any thread at any time, also when nothing is being recorded: then it returns within
   a few ns. None calls malloc on behalf of an event, none changes errno. Link with `pkg-config --libs statmem`. */
#ifndef STATMEM_H
#define STATMEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- simple ---- */

/* Starts a recording if the environment asks for one: MEMTRACE names the file ("%p" becomes the pid), STATMEM_RATE
   or MEMTRACE_RATE the sampling rate. 1 = started (it ends by itself at exit), 0 = not asked for,
   -1 = failed, with one line of text in err (which may be NULL). */
int statmem_start_if_requested(char *err, size_t err_bytes);

/* Ends the recording and completes the file. Does nothing when there is none. */
void statmem_stop(void);

/* Not 0 while events are recorded. */
int statmem_active(void);

/* Names a block that was sampled; 0 = it was not. Valid until the recording ends, and harmless after. */
typedef uint64_t statmem_token;

/* `bytes` bytes were taken by the caller. The call's place becomes the allocation site. */
statmem_token statmem_ext_alloc(size_t bytes);

/* The block is about to be given back. Call it before the real free. */
void statmem_ext_free(statmem_token token);

/* A note in the trace at this time; at most 65536 bytes are kept. */
void statmem_mark(const char *text);

/* Names the calling thread in the trace (about 60 bytes are kept). */
void statmem_thread_name(const char *name);

/* ---- with options ---- */

struct statmem_options {
    size_t struct_bytes;  /* sizeof(struct statmem_options), so that it can grow */
    const char *path;     /* the trace; "%p" becomes the pid. Truncated. */
    double rate;          /* probability that a word is sampled, in (0,1]; 0 = 1e-6 */
    const char *context;  /* free text for the header, NULL = none */
    int has_seed;         /* else drawn from the system */
    uint64_t seed;        /* of the sampler */
    int follow_children;  /* forked children record into a file of their own */
    unsigned depth_limit; /* 0 = 1024 */
};

/* 0 = started, -1 = failed: see above. Ends by itself at exit. */
int statmem_start(const struct statmem_options *options, char *err, size_t err_bytes);

/* The rate of the active recording, 0 when there is none. */
double statmem_rate(void);

/* Events lost so far, for whatever reason; the trace says why. */
uint64_t statmem_discarded(void);

#ifdef __cplusplus
}
#endif

#endif
