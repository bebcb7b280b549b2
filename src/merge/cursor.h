/* Reading a trace's events in one global order, or stream after stream. Hosted. */
#ifndef SM_MERGE_CURSOR_H
#define SM_MERGE_CURSOR_H

#include "decode/trace.h"

struct sm_cursor;

/* Default order: by time, then causality (an event on an object follows its allocation), then
   stream id. An event that waits for its object's allocation is given out after it with its own
   time, which may then lie before the time of the event given out last.

   A promotion or collection whose allocation is not in the trace does not wait and carries
   SM_EVENT_ORPHAN; when the first cursor reaches the end, their number becomes a loss of the trace. */
enum sm_status sm_cursor_new(struct sm_cursor **out, struct sm_trace *t, unsigned flags,
                             struct sm_error *err);
enum sm_status sm_cursor_next(struct sm_cursor *c, struct sm_event *event); /* OK or END */
void sm_cursor_free(struct sm_cursor *c);

#endif
