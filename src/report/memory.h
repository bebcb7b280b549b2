/* `memory`: what the process' resident memory is made of, over time, from the figures that the recorder read of the system,
   the allocator and OCaml's runtime. Hosted.

   Of the resident memory, files (the program, libraries, shared memory) are told by the system. The rest is anonymous
   memory, of which OCaml's heap is what the runtime says it has, native memory in use is what the allocator has given
   out less the part of OCaml's heap that comes from there, and kept is what the allocator has of the system beyond that, as
   far as it can be resident. What is left over is unexplained: stacks, OCaml's minor heaps, memory mapped
   in other ways. Memory that was taken and never touched, or swapped out, counts in heap and allocator but is not resident: it
   is shown as absent. Thus

     rss = file + heap + native + kept + unexplained - absent

   All are figures of the system, not estimates, but they are read one after the other while the program runs. */
#ifndef SM_REPORT_MEMORY_H
#define SM_REPORT_MEMORY_H

#include "report/asked.h"

enum sm_memory_part {
    SM_MEMORY_RSS = 0,
    SM_MEMORY_FILE,
    SM_MEMORY_HEAP,
    SM_MEMORY_NATIVE,
    SM_MEMORY_KEPT,
    SM_MEMORY_UNEXPLAINED,
    SM_MEMORY_ABSENT,
    SM_MEMORY_PARTS
};

struct sm_memory_moment {
    int64_t ns;
    int64_t bytes[SM_MEMORY_PARTS];
};

struct sm_memory {
    const struct sm_asked *asked;
    uint32_t n, peak; /* peak: the moment of the largest rss */
    struct sm_memory_moment *moments;
    bool has[SM_MEMORY_PARTS]; /* the trace tells it */
    int64_t interval_ns;       /* usual distance of moments; 0 = a single one */
    int64_t largest;           /* of all parts at all moments: what courses are drawn against */
    uint32_t n_gaps;           /* places where moments are missing */
    int64_t gaps_ns;
    bool ends_early;          /* the last reading is long before the trace's end */
    enum sm_memory_part grew; /* what RSS grew by most of all; SM_MEMORY_RSS = it did not grow */
    int64_t growth;           /* of rss, first to last moment */
    int64_t last[SM_COUNTER_INTERVAL_NS + 1]; /* last value of each counter, -1 = none */
    int64_t duration_ns;
};

/* False: the trace has no figures of the process. */
bool sm_memory_make(struct sm_memory *m, const struct sm_asked *asked);
void sm_memory_release(struct sm_memory *m);

void sm_memory_print(struct sm_buffer *out, const struct sm_memory *m);
void sm_memory_json(struct sm_buffer *out, const struct sm_memory *m);
/* The members "first", "peak", "last", "growth", "grew", "verdict", "interval_ns", "gaps", "gaps_ns" into an open object. */
void sm_memory_members(struct sm_json *j, const struct sm_memory *m);
/* The moments as columns "ns", "rss", ...; of more than `most` those with the largest rss of their spans. */
void sm_memory_columns(struct sm_json *j, const struct sm_memory *m, uint32_t most);
void sm_memory_csv(struct sm_buffer *out, const struct sm_memory *m);

#endif
