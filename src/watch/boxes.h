/*
 * The boxes that run on this machine, whoever started them, as far as the caller may see.
 *
 * A box with control groups is found by its processes: /proc/PID/cgroup says which group they are
 * in, and they cannot change that. A box without is found below its spawner, or below another
 * holder that was started beside that. Names and command lines come from inside of boxes: quote
 * them before they are shown.
 */
#ifndef NC_BOXES_H
#define NC_BOXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "kernel/cgroup_box.h"

#define NC_BOX_COMMAND_SIZE 256

struct nc_live_box {
	/* "sp_..."; of a box without groups: its pid; of another holder its name and pid */
	char spawner[NC_CGROUP_NAME_MAX + 1];
	char name[NC_CGROUP_NAME_MAX + 1]; /* "bx_1"; of one without groups: "pid-N" */
	char *dir[NC_CGROUP_TREES_MAX];	   /* of its group, in each hierarchy */
	size_t n_dirs;			   /* 0: it has no group */
	pid_t *pid;			   /* its processes; without a group: the first ones */
	size_t n_pids;
	uint64_t age_s;
	bool waits;			   /* made ahead of need: nothing runs in it yet */
	char command[NC_BOX_COMMAND_SIZE]; /* of its first process */
};

struct nc_live_boxes {
	struct nc_live_box *box; /* by spawner and name */
	size_t count;
};

/*
 * Finds at most NC_BOXES_MAX. holders: programs beside the spawner that hold boxes, each as a child
 * of its own; the list ends in NULL. 0 or -errno.
 */
int nc_boxes_find(const char *const *holders, struct nc_live_boxes *ret_boxes);

void nc_boxes_done(struct nc_live_boxes *boxes);

#define cleanup_boxes nc_cleanup(nc_boxes_done)

#endif
