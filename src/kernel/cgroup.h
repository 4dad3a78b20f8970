/* Control groups, version 1 and 2: where the hierarchies are. */
#ifndef NC_CGROUP_H
#define NC_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

enum nc_cgroup_controller {
	NC_CGROUP_MEMORY,
	NC_CGROUP_CPU,
	NC_CGROUP_PIDS,
	NC_CGROUP_IO,	   /* "blkio" in version 1 */
	NC_CGROUP_FREEZER, /* version 1 only; version 2 freezes without a controller */
	NC_CGROUP_CPUACCT, /* version 1 only; version 2 counts CPU time without a controller */
	NC_CGROUP_CONTROLLER_MAX,
};

/* The directory that this process is in, per hierarchy. Zero-initialise; free with _done. */
struct nc_cgroup_host {
	char *v2_dir;				/* NULL: version 2 is not mounted */
	char *v2_top;				/* where it is mounted */
	char *v1_dir[NC_CGROUP_CONTROLLER_MAX]; /* NULL: not a version 1 controller here */
	char *v1_top[NC_CGROUP_CONTROLLER_MAX]; /* where those are mounted */
};

/*
 * Finds them in the texts of /proc/self/mountinfo, which is changed by this, and /proc/self/cgroup.
 * 0 or -ENOMEM, with nothing to free.
 */
int nc_cgroup_parse(struct nc_cgroup_host *host, char *mounts, const char *groups);

/*
 * The same for this process; mountinfo is read only where they are not at their usual places below
 * /sys/fs/cgroup. 0 or -errno.
 */
int nc_cgroup_find(struct nc_cgroup_host *host);

/*
 * Where the hierarchy is mounted that /proc/PID/cgroup lists with these controllers, "" being
 * version 2. NULL: it is not, or none of ours. Borrows from host.
 */
const char *nc_cgroup_top(const struct nc_cgroup_host *host, const char *controllers);

/* Which directories these are, in a text of less than 300 bytes: the same for whoever is there. */
void nc_cgroup_describe(const struct nc_cgroup_host *host, char *out, size_t size);

void nc_cgroup_done(struct nc_cgroup_host *host);

/* "v2", "v1", "hybrid" (version 1 controllers beside a version 2 tree) or "none". */
const char *nc_cgroup_version(const struct nc_cgroup_host *host);

#endif
