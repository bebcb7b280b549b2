/* Forks.

   A child is silent unless it is to be followed: sm_control reads as zero there by the kernel's doing, whatever
   made the child. vfork and posix_spawn run no handlers and share our memory until exec, and nothing needs to
   happen for them. For fork(3) the parent counts its children, and a child that is to be followed begins a trace
   of its own, from the handler, before fork returns. It allocates nothing from malloc and takes no lock that
   another thread could have held: those in sm_control were wiped. */
#include "record/internal.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static void in_parent(void) {
    int saved_errno = errno;
    struct sm_control *c = atomic_load_explicit(&sm_control, memory_order_acquire);
    if (atomic_load_explicit(&c->active, memory_order_acquire) != 0) {
        atomic_fetch_add_explicit(&sm_session.forks, 1, memory_order_relaxed);
        if (sm_os_lock_acquire(&c->slots_lock, 100)) {
            sm_tail_counts(&sm_session);
            sm_os_lock_release(&c->slots_lock);
        }
    }
    errno = saved_errno;
}

/* `active` is wiped; whether a session was on is remembered from before the fork by the forking thread. */
static __thread uint32_t active_before __attribute__((tls_model("initial-exec")));

static void before(void) {
    struct sm_control *c = atomic_load_explicit(&sm_control, memory_order_acquire);
    active_before = atomic_load_explicit(&c->active, memory_order_acquire);
}

static void in_child(void) {
    if (active_before == 0)
        return;
    int saved_errno = errno;
    uint32_t parent = sm_session.pid;
    bool follow = sm_session.config.follow_children && sm_session.config.fd < 0;
    sm_session_after_fork();
    if (follow) {
        struct sm_control *c = atomic_load_explicit(&sm_control, memory_order_acquire);
        struct sm_recorder_config config = sm_session.config;
        char err[512] = "statmem: child is not recorded: ";
        size_t used = strlen(err);
        c->alive = 1; /* forgotten already */
        if (sm_session_start_locked(&config, parent, err + used, sizeof err - used - 1) != 0) {
            used = strlen(err);
            err[used] = '\n';
            err[used + 1] = 0;
            sm_os_complain(err);
        } else if (config.after_fork_in_child != NULL) {
            config.after_fork_in_child();
        }
    }
    errno = saved_errno;
}

void sm_fork_setup(void) {
    static bool done; /* inherited by children, as the handlers are */
    if (!done && pthread_atfork(before, in_parent, in_child) == 0)
        done = true;
}
