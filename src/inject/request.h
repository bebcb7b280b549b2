/* What `statmem record` asks of the preload library, and how the library answers. The request
   travels in environment variables, the answers are lines in a file that `record` reads after the run.

   | variable | meaning |
   |---|---|
   | STATMEM_OUT | path of the trace, absolute; "%p" stands for the pid. Without it the library does nothing |
   | STATMEM_RATE | sampling rate |
   | STATMEM_RATE_ORIGIN | number of enum sm_rate_origin |
   | STATMEM_DEPTH | depth limit of stacks |
   | STATMEM_SEED | seed of statmem's own samplers |
   | STATMEM_DURATION_NS | end the recording after this time |
   | STATMEM_NATIVE_INTERVAL | mean distance of samples in memory from malloc, in bytes; absent or 0 = not recorded |
   | STATMEM_NATIVE_ONLY | "1": OCaml's memory is not recorded |
   | STATMEM_COUNTERS_NS | time between two readings of what the process uses; absent = 100 ms, 0 = none |
   | STATMEM_PAUSED | "1": nothing is recorded before `statmem ctl` or the signal begins it |
   | STATMEM_TOGGLE_SIGNAL | number of a signal that begins and ends windows; 0 = none |
   | STATMEM_TARGET_PID | the process to record; absent = the first OCaml process |
   | STATMEM_FOLLOW | "1": every OCaml process, children too |
   | STATMEM_CHAIN | followed processes: "pid.number of traces begun in it", edited in place, as an exec keeps the pid |
   | STATMEM_STATUS | file for the answers |
   | STATMEM_FORCE | "1", set by the user: record although the program could not start Gc.Memprof itself |

   Unless children are followed, a process that is recorded or refused, and every child, takes
   these variables and our entry of LD_PRELOAD out of its environment. Programs that are there to start others (shells,
   env, nice, ...) leave them in it: the program that takes their place by exec is the one that is meant. */
#ifndef SM_INJECT_REQUEST_H
#define SM_INJECT_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "format/wire.h"

#define SM_DEFAULT_RATE 1e-4
#define SM_NATIVE_DEFAULT_INTERVAL_BYTES (512u << 10)
#define SM_DEFAULT_COUNTERS_NS 100000000u
#define SM_PRELOAD_NAME "libstatmem-preload.so"

struct sm_request {
    char out[4096];
    char status[4096]; /* "" = nobody asks */
    double rate;
    enum sm_rate_origin rate_origin;
    uint32_t depth;
    bool has_seed;
    uint64_t seed;
    uint64_t duration_ns;
    uint64_t counters_ns;           /* 0 = not read */
    uint32_t target_pid;            /* 0 = any */
    uint64_t native_interval_bytes; /* 0 = native memory is not recorded */
    bool native_only;
    bool paused;
    uint32_t toggle_signal; /* 0 = none */
    bool follow;
    bool force;
};

/* Reads the environment. False when nothing is asked of this process, or the request is broken. */
bool sm_request_read(struct sm_request *r);

/* Takes the request out of the environment and restores LD_PRELOAD. */
void sm_request_remove(void);

/* Counts a trace begun in this process, and adds ".N" to r->out from the second on: programs that replace
   each other by exec share the pid. Only for followed processes. */
void sm_request_chain(struct sm_request *r);

/* Answers: one line "KIND PID TEXT". */
enum sm_answer {
    SM_ANSWER_NONE,  /* no OCaml in it; text: executable */
    SM_ANSWER_CHILD, /* an OCaml child that is not recorded; text: executable */
    SM_ANSWER_OTHER, /* another child that is not recorded, though native memory is; text: executable */
    SM_ANSWER_REFUSED, /* text: reason and way out */
    SM_ANSWER_ARMED,   /* will be recorded from the start of its OCaml code; text: executable */
    SM_ANSWER_STARTED, /* text: path of the trace */
    SM_ANSWER_PAUSED,  /* it waits for statmem ctl or a signal */
    SM_ANSWER_FAILED,  /* the trace could not be begun; text: why */
    SM_ANSWER_YIELDED, /* the program started Gc.Memprof itself: the recording of OCaml's memory ended */
    SM_ANSWER_OWN_MALLOC, /* native memory is not seen: the executable has a malloc of its own */
};
void sm_answer(const struct sm_request *r, enum sm_answer kind, const char *text);

#endif
