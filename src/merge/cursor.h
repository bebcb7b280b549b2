/* Reading a trace's events in one global order, or stream after stream. Hosted. */
#ifndef SM_MERGE_CURSOR_H
#define SM_MERGE_CURSOR_H

#include "decode/trace.h"

struct sm_cursor;

/* Default order: by time, then causality (an event on an object follows its allocation), then
   stream id. */
enum sm_status sm_cursor_new(struct sm_cursor **out, struct sm_trace *t, unsigned flags,
                             struct sm_error *err);
enum sm_status sm_cursor_next(struct sm_cursor *c, struct sm_event *event); /* OK or END */
void sm_cursor_free(struct sm_cursor *c);

#endif
