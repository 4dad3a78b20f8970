/* The boxes of a spawner: birth, life, death. */
#ifndef NC_SPAWNER_BOX_H
#define NC_SPAWNER_BOX_H

#include <sys/types.h>

#include "kernel/boxwire.h"
#include "kernel/cgroup_box.h"
#include "spawner/slot.h"

/* Boxes that one spawner keeps alive at once. */
#define NC_BOXES_MAX 1024U

/* What all boxes share. */
struct nc_nursery {
	int init_fd;	       /* nacre-init, sealed */
	int slot_dir_fd;       /* -EBADF: not root, so there are no ranges */
	int pid_ns_fd;	       /* the spawner's own, to come back to; -EBADF: it may not */
	unsigned int uid, gid; /* whose ids a box without a range maps */
	struct nc_cgroup_parent cgroups; /* can is 0 where there are none */
};

enum nc_box_state {
	NC_BOX_FREE,  /* nc_box_birth */
	NC_BOX_RUNS,  /* payload_fd is readable when the payload ends: nc_box_payload_ended;
			 nc_box_kill at any time */
	NC_BOX_DYING, /* init_fd is readable when everything in it is dead: nc_box_bury */
};

struct nc_box {
	enum nc_box_state state;
	struct nc_slot slot;
	struct nc_cgroup group;
	int init_fd;		     /* pidfd of process 1 */
	int payload_fd;		     /* pidfd */
	pid_t init_pid, payload_pid; /* to tell them from strangers; never signalled by these */
	int scratch_fd;		     /* the limited file system, to ask how full it is */
	int listener_fd; /* readable when a system call was refused: nc_box_denied; or -EBADF */
	uint64_t started_ns, deadline_ns;
	struct nc_box_end end; /* filled as it becomes known */
};

/*
 * Builds a box and starts the order's program in it, with stdio as its descriptors 0 to 2 (they
 * stay the caller's). On failure everything is undone and err says which step it was.
 */
int nc_box_birth(const struct nc_nursery *nursery, const struct nc_box_order *order,
	const int *stdio, struct nc_box *box, struct nacre_err *err);

/* The payload is over: notes how, and kills whatever else is in the box. */
void nc_box_payload_ended(struct nc_box *box);

/* Ends the box; the first cause that is given counts. The payload's end follows by itself. */
void nc_box_kill(struct nc_box *box, enum nc_box_cause cause);

/* Notes refused system calls, some of those that wait, and answers them with EPERM. */
void nc_box_denied(struct nc_box *box);

/* Looks whether the kernel has begun to kill for memory, which ends the whole box. */
void nc_box_check(struct nc_box *box);

/* Everything in it is dead: collects, frees, and leaves the box NC_BOX_FREE with end complete. */
void nc_box_bury(struct nc_box *box);

#endif
