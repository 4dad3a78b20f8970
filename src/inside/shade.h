/*
 * A shade: a process that has the memory of another and nothing else, and does nothing.
 *
 * The kernel takes down the memory of a process before anybody hears that it has ended, which is
 * half of the time that a short program takes. While a second process has that memory, it is taken
 * down when that one is ended, and nobody waits for it.
 */
#ifndef NC_INSIDE_SHADE_H
#define NC_INSIDE_SHADE_H

#include <stdbool.h>

#include "kernel/cgroup_box.h"

/*
 * Whether what was lent to a box has one, by what the box's groups can (enum nc_cgroup_can): where
 * processes are looked at one by one, its memory would be counted twice.
 */
static inline bool nc_shade_wanted(unsigned int can)
{
	return can & NC_CGROUP_CAN_MEMORY && can & NC_CGROUP_CAN_PIDS;
}

/*
 * Makes the shade of this process, which has one thread that runs, and no_new_privs. It is in all
 * that this one is in, has no descriptor, takes no signal, and may make no system call but the one
 * that it sleeps in, whatever is written over its memory. Nobody but process 1 can wait for it.
 * Returns its pidfd, or -errno.
 */
int nc_shade_make(void);

/* Returns when it is held like that: nothing foreign may run in this process before. */
void nc_shade_wait(void);

#endif
