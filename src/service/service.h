/* A thread of our own in the recorded program: it writes what the process uses into the trace, once in an interval. Hook-safe.

   In between it answers `statmem ctl` (control.h).

   It takes no signals, holds no lock while it waits, allocates nothing that the program's malloc is asked for, and
   leaves when no thread of the program is left, so that a program ends when it would end without it. What the system
   allows processes with one thread only (unshare, setns) is possible between sm_service_pause and sm_service_resume. */
#ifndef SM_SERVICE_SERVICE_H
#define SM_SERVICE_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "service/control.h"

/* Starts the thread; the first figures are written at once. False: no thread can be had (the recording goes on without). Call after
   sm_recorder_start, while no other thread does. */
bool sm_service_start(uint64_t interval_ns, const struct sm_control_actions *actions);

/* Writes the last figures, from the calling thread, and ends the service. Waits for the thread, 200 ms at most. */
void sm_service_stop(void);

/* Ends the thread for a while and starts it again. Nothing happens when it does not run. From any thread. */
void sm_service_pause(void);
void sm_service_resume(void);

/* The calling thread is the service's. */
bool sm_service_is_here(void);

/* In a forked child that begins a session of its own: children inherit no thread. */
void sm_service_after_fork(void);

#endif
