/*
 * Where a process that outlives its partner meets the next one.
 *
 * Theory of operation: a place is a pair of sockets. Who stays has one end; the other is held by
 * whoever starts partners, and each partner has it too. A partner calls: he makes a pair of his
 * own, hands one end in at the place, and talks on the other. So nothing that was on its way to or
 * from the one before is ever taken for his, and his death is the end of his pair. What comes out
 * of the place is as little trusted as what is said on it.
 */
#ifndef NC_MEETING_H
#define NC_MEETING_H

#include "base/error.h"

/*
 * Forks somebody to talk with, on a fresh pair of this type (SOCK_STREAM, SOCK_SEQPACKET). 1 in the
 * child, 0 in its parent, who has its pidfd; each with an end of its own. -errno with err.
 */
int nc_meeting_fork(int type, int *ret_fd, int *ret_pidfd, struct nacre_err *err);

/* A new place: ends[0] is for those who call, ends[1] for the one who stays. 0 or -errno. */
int nc_meeting_new(int ends[static 2]);

/*
 * Calls: returns our end of a fresh pair of this type (SOCK_STREAM, SOCK_SEQPACKET), which blocks.
 * -EPIPE: nobody is there any more; -EAGAIN: nobody takes what is handed in.
 */
int nc_meeting_call(int place_fd, int type);

/*
 * The descriptor that was handed in, which blocks. -EAGAIN: none; -ECONNRESET: nobody can call any
 * more.
 */
int nc_meeting_take(int place_fd);

/*
 * For who does nothing else: waits until there is something to be read on *fd, or it has ended; who
 * calls meanwhile takes its place, once nothing is left to be read on the old one. Returns 1, or 2
 * with a new *fd, of which nothing is known yet. 0: all have gone, and *fd is closed. -errno.
 */
int nc_meeting_wait(int *place_fd, int *fd);

#endif
