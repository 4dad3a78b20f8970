/*
 * What a first process takes along of the spawner's descriptors.
 *
 * A fork copies all of them and exec closes each: with many boxes that is a good part of a birth,
 * and it grows with every box that lives. A first process needs six. So these are put at low
 * numbers, the process is cloned with the spawner's own table (CLONE_FILES), and the first thing it
 * does is to take a copy of the low end of that. The numbers are free again for the next once it
 * has: until then they stay as they are, and somebody else is forked in the usual way.
 */
#ifndef NC_CRADLE_H
#define NC_CRADLE_H

#include <stdbool.h>

#define NC_CRADLE_FDS 4

struct nc_cradle {
	bool tried;
	/* reserved: they are never closed, but become copies of empty_fd */
	int fd[NC_CRADLE_FDS];
	int child_fd; /* pidfd of who is in there */
	int empty_fd;
	int end;     /* all numbers that a first process needs are less; 0: there is no cradle */
	bool filled; /* for somebody who may not have left */
	bool came;   /* he has been cloned */
	int *left;   /* shared memory: and has left; 1 and the processor on which he did */
	int free_fd; /* readable when others have no use for a processor; -EBADF: no way is made */
};

/*
 * Puts copies of these (or -EBADF) there for the next first process, which also finds constant_fds
 * where they are. False: it has to be forked.
 */
bool nc_cradle_fill(struct nc_cradle *cradle, const int fds[static NC_CRADLE_FDS],
	const int *constant_fds, int n_constant);

/* In that process, before anything else: takes leave of the spawner's table. 0 or -errno. */
int nc_cradle_leave(const struct nc_cradle *cradle);

/* The process has been cloned. */
void nc_cradle_take(struct nc_cradle *cradle, int pidfd);

/* Whether who came last may wait for this processor: he has not begun, or did so here. */
bool nc_cradle_is_here(const struct nc_cradle *cradle);

/*
 * Leaves this processor to who came last, if he may wait for it. While somebody else has the other
 * of two, a child is cloned onto our own, and would wait there for as long as we have something to
 * do, though everybody waits for it in the end; and the kernel moves nobody who has just run. Where
 * the other one is not free we would wait there ourselves: so unless now, only if it is.
 */
void nc_cradle_make_way(const struct nc_cradle *cradle, bool now);

/*
 * Lets go of what it is filled with, unless somebody is in there: who has left, died or never came
 * is not. As long as that is not done nobody hears of his end by a pipe. Returns whether it is.
 */
bool nc_cradle_clear(struct nc_cradle *cradle);

#endif
