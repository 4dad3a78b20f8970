/* Processes, held as descriptors: a pid can be somebody else's by the time it is used. */
#ifndef NC_PIDFD_H
#define NC_PIDFD_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fd.h"

/* The process itself must be ours to wait for, or the pid may already name another. */
int nc_pidfd_open(pid_t pid);

/* 0 or -errno; -ESRCH: it is gone. */
int nc_pidfd_kill(int pidfd, int signal_number);

/*
 * Waits for the end of a child until deadline_ns on the monotonic clock and reaps it. Fills
 * *ret_info as waitid does. -ETIMEDOUT: it still runs.
 */
int nc_pidfd_wait(int pidfd, uint64_t deadline_ns, siginfo_t *ret_info);

/* Kills a child, reaps it, closes the descriptor. Accepts -EBADF; always returns -EBADF. */
int nc_pidfd_end(int pidfd);

static inline void nc_pidfd_endp(int *place)
{
	*place = nc_pidfd_end(*place);
}

/* For a local that owns a child: leaving the scope ends the process. */
#define cleanup_process nc_cleanup(nc_pidfd_endp)

/*
 * fork() that gives a pidfd. In the parent it returns 1, in the child 0; the child dies when its
 * parent does, and ends with nc_child_exit(). The caller has one thread.
 */
int nc_fork(int *ret_pidfd);

/* Ends a forked child without running the parent's atexit handlers or flushing its streams. */
_Noreturn void nc_child_exit(int status);

/* Becomes the program that is open, or says why not: -errno. Both lists end in NULL. */
int nc_become(int program_fd, char *const *argv, char *const *env);

#endif
