/*
 * Groups that somebody else has made, looked at from outside: the same counters as in cgroup_box.h,
 * through the group's directories in the hierarchies of either version.
 */
#ifndef NC_CGROUP_VIEW_H
#define NC_CGROUP_VIEW_H

#include "kernel/cgroup_box.h"

/* Zero-initialised it is empty. */
struct nc_cgroup_view {
	size_t n_trees;
	struct {
		int fd;
		bool v2;
	} tree[NC_CGROUP_TREES_MAX];
};

/* Opens the group's directories, at most NC_CGROUP_TREES_MAX. 0 or -errno; -ENOTSUP: no group. */
int nc_cgroup_view_open(struct nc_cgroup_view *ret_view, const char *const *dirs, size_t n_dirs);

void nc_cgroup_view_close(struct nc_cgroup_view *view);

/*
 * Reads the counters; *ret_can has the bits of those that are counted (memory, pids, io, CPU time).
 * -ENODEV or -ENOENT: the group is gone.
 */
int nc_cgroup_view_usage(const struct nc_cgroup_view *view, struct nc_cgroup_usage *ret_usage,
	unsigned int *ret_can);

/* The memory limit in bytes; 0: there is none. */
uint64_t nc_cgroup_view_memory_limit(const struct nc_cgroup_view *view);

/* As nc_cgroup_pids: of the group itself, not of groups below it. */
int nc_cgroup_view_pids(const struct nc_cgroup_view *view, pid_t *ret_pids, size_t max);

/* Kills everything in it, as nc_cgroup_kill. -EDEADLK: we are in it ourselves, or below it. */
int nc_cgroup_view_kill(const struct nc_cgroup_view *view);

#endif
