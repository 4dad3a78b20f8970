/*
 * What programs in a box are told of its limits, where they look for it: /proc/meminfo and
 * /sys/fs/cgroup. Without it Java and Node take their share of the host's memory.
 */
#ifndef NC_INSIDE_TOLD_H
#define NC_INSIDE_TOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/boxwire.h"

#define NC_TOLD_FILES 4

/* What they take of the file system: a page each. It is added to its size, and to no bill. */
#define NC_TOLD_BYTES (NC_TOLD_FILES * 4096ULL)

/* The files, open to be written when the limits are known; n is 0 where there are none. */
struct nc_told {
	int fd[NC_TOLD_FILES];
	bool stale[NC_TOLD_FILES]; /* it tells of a command before */
	size_t n;
};

/* Makes the files on the box's own file system. Paths are relative to the root that is built. */
int nc_told_make(int scratch_fd);

/* Puts them over what /proc tells of the host; /proc is there. */
int nc_told_cover(void);

/* Opens them in the box, while that is allowed. In an old box or a process box there are none. */
void nc_told_open(struct nc_told *told);

/* The processors that a limit comes to, if they are fewer than the host's; 0 if not. */
unsigned int nc_told_fewer(uint64_t milli);

/* Writes what the limits come to on this host. */
int nc_told_write(const struct nc_told *told, const struct nc_box_limits *limits);

#endif
