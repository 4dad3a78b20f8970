/* What the spawner says to a zygote: lend a child of yours to this box. */
#ifndef NC_INSIDE_LEND_H
#define NC_INSIDE_LEND_H

#include <stdint.h>

/*
 * A program that was started ahead of its order (NC_ORDER_AHEAD) has the channel of its payload,
 * the variable with what that knows (groups, Landlock's ABI, whether refusals are reported), and
 * says one byte when it waits, with the pidfd of its shade if it has one.
 */
#define NC_AHEAD_FD 3
#define NC_AHEAD_VARIABLE "NACRE_AHEAD"
#define NC_AHEAD_READY "a"

/*
 * What the spawner says to a zygote's child that waits: it is one of the next, and may take memory
 * for that; and what the child says when it has.
 */
#define NC_WARM_UP "w"

/* What both say when they follow their order: whoever is killed before has not. */
#define NC_LAST_WORD "s"

/* The zygote's end of its socket to the spawner. */
#define NC_ZYGOTE_FD 4

/*
 * One message, with these descriptors behind each other: where to write the child's process id (as
 * the spawner sees it), where the child waits for one byte before it does anything, its channel
 * (inside/child.h), the box's namespaces in this order, and the groups to join by writing 0.
 */
enum nc_lend_fd {
	NC_LEND_PID,
	NC_LEND_GO,
	NC_LEND_CHANNEL,
	NC_LEND_USER,
	NC_LEND_MOUNT,
	NC_LEND_PIDS,
	NC_LEND_NET,
	NC_LEND_IPC,
	NC_LEND_UTS,
	NC_LEND_JOIN, /* the first of them */
	NC_LEND_FDS_MAX = 16,
};

struct nc_lend {
	uint32_t can; /* enum nc_cgroup_can: what the groups hold */
};

#endif
