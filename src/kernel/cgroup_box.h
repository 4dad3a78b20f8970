/*
 * The control groups that boxes live in, version 1 and 2 behind one interface.
 *
 * The spawner opens one parent, which is a directory "nacre-<id>" in every hierarchy that it uses,
 * and makes one group per box below it. Which hierarchies there are is decided once, at the
 * opening: controllers of version 1 where they are mounted, of version 2 where it can hand them
 * down, and the version 2 tree in any case, because it kills, freezes and counts CPU time without a
 * controller. Each costs every box that has a group in it: which of them that is depends on what
 * will be in the box, enum nc_cgroup_kind.
 *
 *	nc_cgroup_parent_open(&parent, id, lasting, &err);
 *	nc_cgroup_make(&parent, kind, "bx_1", &limits, &group, &err);
 *		or with NULL, and nc_cgroup_limit(&group, &limits, &err) when they are known
 *	clone3(CLONE_INTO_CGROUP if group.clone_fd >= 0, .cgroup = group.clone_fd)
 *		child: nc_cgroup_join_self(&group, group.clone_fd >= 0), then everything else
 *	nc_cgroup_join_close(&group);
 *	...
 *	nc_cgroup_kill(&group); nc_cgroup_wait_empty(&group, deadline); wait for the children;
 *	nc_cgroup_usage(&group, &usage);
 *	nc_cgroup_remove(&group);
 *	nc_cgroup_parent_close(&parent);
 *
 * For a process with one thread. Nothing here sends a signal to a pid of 1 or less or to ourselves.
 */
#ifndef NC_CGROUP_BOX_H
#define NC_CGROUP_BOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "kernel/cgroup.h"

/* Letters, digits, '_' and '-', at most this many and not none: ids of parents, names of groups. */
#define NC_CGROUP_NAME_MAX 64U
/* The version 2 tree and one per controller of version 1. */
#define NC_CGROUP_TREES_MAX (NC_CGROUP_CONTROLLER_MAX + 1)
/* Files that usage is read from. */
#define NC_CGROUP_GAUGES_MAX 12
/* Files that the limit of one controller is written to. */
#define NC_CGROUP_KNOBS_MAX 4

/* What the groups of a parent can do, as bits. */
enum nc_cgroup_can {
	NC_CGROUP_CAN_MEMORY = 1 << 0,	 /* limit and count memory */
	NC_CGROUP_CAN_SWAP = 1 << 1,	 /* the memory limit covers swap */
	NC_CGROUP_CAN_CPU = 1 << 2,	 /* limit CPU time and count what was withheld */
	NC_CGROUP_CAN_PIDS = 1 << 3,	 /* limit and count processes, threads being some of them */
	NC_CGROUP_CAN_IO = 1 << 4,	 /* count bytes from and to disks; version 1: not those that
					  * were written through the page cache */
	NC_CGROUP_CAN_CPU_TIME = 1 << 5, /* count CPU time */
	NC_CGROUP_CAN_KILL = 1 << 6,	 /* cgroup.kill; without it killing takes several steps */
	NC_CGROUP_CAN_FREEZE = 1 << 7,
	NC_CGROUP_CAN_CLONE = 1 << 8, /* clone3() into the group; see struct nc_cgroup */
};

/* What a group is for; as bits where several are meant. */
enum nc_cgroup_kind {
	NC_CGROUP_FOR_ONE = 1 << 0, /* a program that is cloned into it */
	/*
	 * A program that comes in by writing. Where version 1 can do all of it, it is in none of
	 * version 2: its way in waits for the kernel (RCU) with the lock of all groups held.
	 */
	NC_CGROUP_FOR_LOAN = 1 << 1,
	NC_CGROUP_FOR_HOME = 1 << 2, /* groups below it, of a box whose I/O is asked for */
	NC_CGROUP_FOR_ALL = NC_CGROUP_FOR_ONE | NC_CGROUP_FOR_LOAN | NC_CGROUP_FOR_HOME,
};

/* One hierarchy. */
struct nc_cgroup_tree {
	bool v2;
	unsigned int kinds;	  /* enum nc_cgroup_kind: the groups that are made in it */
	unsigned int controllers; /* bits, 1 << enum nc_cgroup_controller */
	int above_fd;		  /* the directory in which "nacre-<id>" is */
	int fd;			  /* that one; the groups' directories are in it */
	bool stepped_down;	  /* we have left above_fd's group, see nc_cgroup_parent_open */
	unsigned int switched_on; /* controllers that it hands down since then */
};

struct nc_cgroup_gauge;

/* Where groups are made. Fields are for reading; it must not move while it has groups. */
struct nc_cgroup_parent {
	unsigned int can;  /* enum nc_cgroup_can */
	bool swap_unknown; /* this kernel can swap, but does not count it per group */
	char id[NC_CGROUP_NAME_MAX + 1];
	size_t n_trees;
	struct nc_cgroup_tree tree[NC_CGROUP_TREES_MAX]; /* that of version 2 is the first */
	size_t n_gauges;
	struct {
		const struct nc_cgroup_gauge *gauge;
		size_t tree;
	} gauge[NC_CGROUP_GAUGES_MAX];
};

/* 0: no limit of this kind. */
struct nc_cgroup_limits {
	uint64_t memory_bytes; /* with swap; at least a page, rounded down to pages */
	uint64_t pids;	       /* processes and threads, zombies included */
	uint64_t cpu_milli;    /* thousandths of one CPU */
};

/* What a group has used since it was made; 0 also where parent->can lacks the counter. */
struct nc_cgroup_usage {
	uint64_t cpu_user_us;
	uint64_t cpu_system_us;
	uint64_t throttled_us; /* time that the CPU limit withheld, summed over CPUs */
	uint64_t memory_peak_bytes;
	uint64_t memory_now_bytes; /* what is left of files and of the kernel's caches included */
	uint64_t oom_kills; /* processes that the kernel killed for want of memory, or one more */
	uint64_t pids_now;
	uint64_t pids_peak;    /* 0: not known (before Linux 6.11) */
	uint64_t pids_refused; /* forks that failed at the limit */
	uint64_t io_read_bytes;
	uint64_t io_written_bytes;
};

/* One box's group. Zero-initialised it is none, which both _close and _remove accept. */
struct nc_cgroup {
	const struct nc_cgroup_parent *parent;
	char name[NC_CGROUP_NAME_MAX + 1];
	unsigned int made; /* bits: the trees in which its directory exists */
	/*
	 * The directory in the version 2 tree, for clone3() with CLONE_INTO_CGROUP, or -EBADF. The
	 * only cheap way into that tree: a write to cgroup.procs waits 7 ms for the kernel (RCU).
	 */
	int clone_fd;
	int join_fd[NC_CGROUP_TREES_MAX]; /* version 1 */
	/* Open in a group that was made without limits, until nc_cgroup_limit_close. */
	int knob_fd[NC_CGROUP_CONTROLLER_MAX][NC_CGROUP_KNOBS_MAX];
	int gauge_fd[NC_CGROUP_GAUGES_MAX];
	bool peak_resets;			   /* the kernel can forget the memory peak */
	bool rests;				   /* its gauges are opened when they are read */
	uint64_t before_user_us, before_system_us; /* when the limits were set */
	struct nc_cgroup_limits limits;
};

/*
 * Finds the hierarchies of this process and makes "nacre-<id>" in them. What cannot be had is
 * missing in parent->can and is no error: an ordinary user gets what was delegated to him, which is
 * the groups that he is in and may write to. He may enter a user namespace afterwards.
 * Without lasting, hierarchies that are good for loans and homes alone are left out.
 *
 * A version 2 group that holds processes cannot hand controllers down. If ours does, the top of the
 * mounted tree is taken instead, by those who may. Otherwise, if this process is the only one in
 * it, we step down into "nacre-<id>/self" until nc_cgroup_parent_close, together with the children
 * that are forked after this; if others are there too, version 2 has no controllers for us.
 * Controllers that were switched on above stay on, as somebody may have begun to rely on them,
 * unless we have stepped down: nobody else could come back to our group then.
 *
 * -EINVAL: a bad id; -EEXIST: somebody has this id, or left it (nc_cgroup_sweep from another id).
 */
int nc_cgroup_parent_open(
	struct nc_cgroup_parent *parent, const char *id, bool lasting, struct nacre_err *err);

/* The same with hierarchies that were found before, or are a part of them; borrows host. */
int nc_cgroup_parent_open_on(struct nc_cgroup_parent *parent, const struct nc_cgroup_host *host,
	const char *id, bool lasting, struct nacre_err *err);

/*
 * Removes the parent's directories, which stay if there are groups in them, and closes it. After a
 * step down: if children of ours still live in "self", that stays too.
 */
void nc_cgroup_parent_close(struct nc_cgroup_parent *parent);

/*
 * Finds "nacre-<id>" of other ids than our own in all hierarchies, whichever of them we use, asks
 * is_dead for each, and of those that are dead kills what is inside and removes it all. Of others,
 * those are removed that nobody is in and nobody holds (flock): spawners hold theirs. Those that
 * another user has made are not even asked for. is_dead must be sure: `nacre doctor` makes such
 * groups too, for a moment (ids "pr_..."). Goes on after failures and returns the first; otherwise
 * the number of directories removed (one per hierarchy). A process that does not die holds it up
 * for half a second. host is as it was before nc_cgroup_parent_open.
 */
int nc_cgroup_sweep(const struct nc_cgroup_host *host, const char *own_id,
	bool (*is_dead)(const char *id, void *context), void *context);

/*
 * Makes a group with all of its limits set and read back, before anything is in it; limits NULL:
 * without any, and with descriptors open for nc_cgroup_limit. A limit that
 * cannot be had is an error that names it (-EOPNOTSUPP: no controller; -ERANGE, -EINVAL: the
 * kernel refuses or changes the value); nothing is left behind. Borrows parent until _remove.
 *
 * A memory limit includes swap: version 2 allows none (zswap neither) and kills the whole group
 * when memory runs out; version 1 counts both together and kills one process at a time, so the
 * caller kills the rest when oom_kills goes up.
 */
int nc_cgroup_make(const struct nc_cgroup_parent *parent, enum nc_cgroup_kind kind,
	const char *name, const struct nc_cgroup_limits *limits, struct nc_cgroup *ret_group,
	struct nacre_err *err);

/*
 * Lets groups be made below this one, in which no process may be: its limits hold for all of them
 * together.
 */
int nc_cgroup_share(const struct nc_cgroup *group, struct nacre_err *err);

/* The same as nc_cgroup_make below a group that is shared, which must be removed later. */
int nc_cgroup_make_below(const struct nc_cgroup *above, const char *name,
	const struct nc_cgroup_limits *limits, struct nc_cgroup *ret_group, struct nacre_err *err);

/*
 * Sets all limits of a group that was made without them, or changes them, and reads them back.
 * Errors as above, and -EBUSY: the processes in it have more memory than the limit, after the
 * kernel has reclaimed what it could (version 2 would kill them if it were set). A limit on pids
 * below what is there only stops new ones. After a failure the group is good only for _remove.
 *
 * The memory peak begins anew with what is charged now; where the kernel cannot do that (version 2
 * before Linux 6.12) it includes what building the box took, some MiB. CPU time begins anew too:
 * from then on it is the program's. pids_peak (Linux 6.11) includes the building.
 */
int nc_cgroup_limit(
	struct nc_cgroup *group, const struct nc_cgroup_limits *limits, struct nacre_err *err);

/*
 * Closes all of its descriptors, of a group that is limited and that nobody joins any more himself:
 * one of many that live long, and every process that is forked has a copy of each of them.
 */
void nc_cgroup_rest(struct nc_cgroup *group);

/*
 * Closes the descriptors for limiting. By itself because that takes a quarter of the time of
 * nc_cgroup_limit: a box can be let go before. Not a must, but see nc_cgroup_join_close.
 */
void nc_cgroup_limit_close(struct nc_cgroup *group);

/*
 * Puts the calling process, which has one thread and still its privileges, into the group. cloned:
 * clone3() has put it into clone_fd's directory already. Async-signal-safe. On failure the process
 * may be in some of the hierarchies: it must end. Before it runs foreign code it must have closed
 * the group's descriptors, by execve() or close_range().
 */
int nc_cgroup_join_self(const struct nc_cgroup *group, bool cloned);

/*
 * Closes the descriptors for joining, when nobody will join any more: every open descriptor of the
 * spawner costs each of its forks about 60 ns.
 */
void nc_cgroup_join_close(struct nc_cgroup *group);

/* Reads all counters. 0 or -errno. */
int nc_cgroup_usage(const struct nc_cgroup *group, struct nc_cgroup_usage *ret_usage);

/*
 * Those that are part of a bill, through descriptors that are kept open: some microseconds. Not
 * what is used now, nor what the CPU limit withheld, nor I/O, which are 0.
 */
int nc_cgroup_bill(const struct nc_cgroup *group, struct nc_cgroup_usage *ret_usage);

/*
 * CPU time alone, user's and system's, for those who ask often: some microseconds. -EOPNOTSUPP: it
 * is not counted here.
 */
int nc_cgroup_cpu_us(const struct nc_cgroup *group, uint64_t *ret_us);

/*
 * Lists up to max processes of the group, in no order; one in a pid namespace that we cannot see
 * into is 0. Returns how many, or -errno; on failure ret_pids may have been written to.
 */
int nc_cgroup_pids(const struct nc_cgroup *group, pid_t *ret_pids, size_t max);

/*
 * Lifts the CPU limit of a group that is to die: what was killed runs a little to get out of the
 * kernel, which a limit holds up until the next period, a tenth of a second.
 */
void nc_cgroup_unthrottle(const struct nc_cgroup *group);

/*
 * Sends SIGKILL to everything in the group, in a way that nothing can escape by forking. With
 * cgroup.kill this returns at once, and what was killed goes on dying for a moment; without it the
 * group is frozen, killed and thawed until it is empty. -ETIMEDOUT: not empty after 200 ms;
 * -EOPNOTSUPP: the group is in no hierarchy at all. Nobody may join any more.
 */
int nc_cgroup_kill(struct nc_cgroup *group);

/* 1: no process in the group is alive (zombies may be there); 0: some are; or -errno. */
int nc_cgroup_is_empty(const struct nc_cgroup *group);

/* Waits for that until deadline_ns on the monotonic clock. 0, -ETIMEDOUT or another -errno. */
int nc_cgroup_wait_empty(const struct nc_cgroup *group, uint64_t deadline_ns);

/*
 * Stops everything in the group, or lets it go on. Waits until all of it stands still, at most
 * 200 ms: -ETIMEDOUT then, with the freezing under way. -EOPNOTSUPP: there is no way to freeze.
 */
int nc_cgroup_freeze(const struct nc_cgroup *group, bool frozen);

/*
 * Removes the group, and groups below it that a crash left. Must succeed when every process is
 * gone; the kernel is given half a second to notice. On success the group is none, as if
 * zero-initialised; on failure (-EBUSY) it is as before, for another try.
 */
int nc_cgroup_remove(struct nc_cgroup *group);

#endif
