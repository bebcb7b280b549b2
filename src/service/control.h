/* A socket by which `statmem ctl` reaches a recording: requests and answers are datagrams of text. Hook-safe.

   It stands as PID.ctl in a folder that its user alone can enter: $XDG_RUNTIME_DIR/statmem, or /tmp/statmem-UID. Who
   sends is told by the kernel: requests of others than the process' user and root are not answered.

   | request | |
   |---|---|
   | `status` | what is being recorded |
   | `start`, `stop` | a window of the recording begins, ends |
   | `mark TEXT` | a note in the trace, at this time |

   Answers are "ok TEXT" or "no TEXT", in one line. */
#ifndef SM_SERVICE_CONTROL_H
#define SM_SERVICE_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#define SM_CONTROL_BYTES 1024 /* of a request or an answer, at most */

struct sm_control_actions {
    /* Each writes what has come of it into text. False: it was not done. Called on the service's thread. */
    bool (*start)(char *text, size_t bytes);
    bool (*stop)(char *text, size_t bytes);
    bool (*status)(char *text, size_t bytes);
};

/* The folder of a user's sockets, and the path of a process' socket in it, below `runtime_dir` (the variable's value; NULL or "" = none). False: too long. */
bool sm_control_folder(char *path, size_t bytes, const char *runtime_dir, unsigned uid);
bool sm_control_path(char *path, size_t bytes, const char *runtime_dir, unsigned uid, unsigned pid);

/* Opens this process' socket. Nothing happens where the folder cannot be had, or belongs to somebody else. */
void sm_control_open(const struct sm_control_actions *actions);
/* A signal that stops the recording, or starts it when it is stopped, from now on. Whatever the program did with it ends. */
void sm_control_toggle_by(int signal_number);
bool sm_control_is_open(void);
/* Answers what has come in. Does not wait. */
void sm_control_serve(void);
/* Removes the socket. In a forked child (which did not open it) it leaves the parent's where it is. */
void sm_control_close(void);

/* Appends to the text in `to`, as far as there is room; always ended by 0. */
void sm_control_append(char *to, size_t bytes, const char *text);
void sm_control_append_number(char *to, size_t bytes, unsigned long long x);

#endif
