/*
 * A tree of processes that is followed: all below some roots, and whoever was below them once. Each
 * member is known by its pid and the moment of its start, so that a pid that changed hands is not
 * taken for one of them.
 */
#ifndef NC_FAMILY_H
#define NC_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/process.h"

struct nc_member {
	struct nc_process process; /* as of the last update; may be a zombie */
	bool stopped;		   /* by us, on the way to its end */
};

/* Zero-initialised it is empty. */
struct nc_family {
	struct nc_member *member;
	size_t count;
};

/* Begins with one process; -EINVAL, -ESRCH. May be called for several. */
int nc_family_add(struct nc_family *family, pid_t pid);

void nc_family_done(struct nc_family *family);

/* Looks again: the dead go, new children come. 0, -ESRCH: nobody lives; or another -errno. */
int nc_family_update(struct nc_family *family);

/*
 * Kills everybody until deadline_ns: all are stopped first, until a look finds nobody new, since a
 * process whose parent dies is a child of somebody else from then on, and lost to us. 0,
 * -ETIMEDOUT, -EDEADLK: we are a member ourselves.
 */
int nc_family_kill(struct nc_family *family, uint64_t deadline_ns);

#endif
