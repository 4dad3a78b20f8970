/* The boxes of a spawner: birth, life, death. */
#ifndef NC_SPAWNER_BOX_H
#define NC_SPAWNER_BOX_H

#include <sys/types.h>

#include "base/limits.h"
#include "kernel/boxwire.h"
#include "kernel/cgroup_box.h"
#include "kernel/cradle.h"
#include "kernel/means.h"
#include "kernel/scratch.h"
#include "kernel/slot.h"

/* User, mount, pid, net, ipc and uts. */
#define NC_BOX_SPACES 6

/* See inside/frame.h. */
struct nc_kept_frame {
	int fd;		   /* less than 0: it could not be composed, or is none yet */
	uint64_t made_ns;  /* when that was tried; 0: never */
	uint64_t asked_ns; /* when a box wanted one; 0: never */
};

/* What all boxes share. */
struct nc_nursery {
	int self_fd;		 /* pidfd of the spawner */
	int init_fd;		 /* nacre-init, sealed */
	int files_source_fd;	 /* nacre-files on the disk */
	int files_fd;		 /* the same sealed, once it was needed; or -EBADF */
	uint64_t pid_ns;	 /* which pid namespace the spawner is in: its inode */
	int pid_ns_fd;		 /* the spawner's own, to come back to; -EBADF: it may not */
	uint64_t caps;		 /* that the spawner has */
	struct nc_box_host host; /* as far as is known */
	unsigned int uid, gid;	 /* whose ids a box without a range maps */
	struct nc_locks locks;
	bool is_filtered; /* whatever is forked has our filter beneath its own */
	bool lasting;	  /* boxes that stay, and zygotes, are to come */
	bool groups_open, groups_swept;
	struct nc_cgroup_host cgroup_host; /* until what others have left there is swept */
	char place[300];		   /* the same, as our lock has it */
	struct nc_cgroup_parent cgroups;   /* can is 0 where there are none */
	struct nc_scratch scratch;	   /* where process boxes work */
	struct nc_cradle cradle;
	struct nc_kept_frame frame;    /* what the roots of usual boxes are copied from */
	int bind_fd[NC_BOX_BINDS_MAX]; /* what the caller allows boxes to be shown */
	size_t n_binds;
};

enum nc_box_state {
	NC_BOX_FREE,	  /* nc_box_begin */
	NC_BOX_GROWING,	  /* the first process builds; report_fd: nc_box_grown */
	NC_BOX_BORROWING, /* a zygote is asked for the payload; report_fd: nc_box_lent */
	NC_BOX_WAITING,	  /* the payload waits for an order; report_fd is readable if it died */
	NC_BOX_STARTING,  /* the payload has its order; report_fd: nc_box_heard */
	NC_BOX_RUNS,	  /* payload_fd is readable at its end: nc_box_ended */
	NC_BOX_CLEARING,  /* what a command left is dying: nc_box_clear; payload_fd: who kills it */
	NC_BOX_STAYS,	  /* empty, for its next command: nc_box_next; init_fd: nc_box_ended */
	NC_BOX_SETTLED,	  /* its end was told; process 1 goes at the deadline: nc_box_ended */
	NC_BOX_DYING,	  /* payload_fd, then init_fd, then cleaner_fd: nc_box_ended */
	NC_BOX_KEPT,	  /* dead, and end is kept for whoever asks: nc_box_forget */
};

/* An order as it came: the words in it borrow from data. */
struct nc_box_pending {
	size_t size, client;
	struct nc_box_order order;
	unsigned char data[];
};

/* Whether a zygote's child has gone through what programs do, while it waits. */
enum nc_warmth {
	NC_COLD,
	NC_WARMS_UP, /* it was told to */
	NC_WARM,
};

/* A descriptor that is watched: see spawner/events.c. */
struct nc_watch {
	int fd;
	uint32_t key;	 /* what tells it from another under the same digits */
	uint32_t number; /* of its arming; 0: it is not */
};

struct nc_box {
	enum nc_box_state state;
	struct nc_watch watch[2];
	struct nc_box_pending *order; /* NULL: nobody's yet, or started */
	struct nc_box_pending *first; /* the order that the box was made for, while it stays:
				       * flags, layers and binds of it */
	bool ordered;		      /* it was given to an order: end.id is that */
	bool failed;		      /* the order has been told that it failed */
	bool kept;		      /* it outlives the worker */
	bool kept_terminal;	      /* kept_fd has one in place of streams */
	bool billed;		      /* its usage is collected */
	bool deserted;		      /* nobody who has its filter is left */
	bool silent;	   /* its payload is no fork of ours, and says a last word when it begins */
	bool held;	   /* its payload is locked in and ready */
	bool ahead;	   /* its program waits for an order, or will */
	bool told;	   /* its end was told before it was gone */
	bool scratch_made; /* a process box has its directories */
	bool stays;	   /* it outlives the command */
	struct nc_slot slot;
	struct nc_cgroup group;
	struct nc_cgroup shared;     /* that of everything in a home; the groups are below it */
	int init_fd;		     /* pidfd of process 1; -EBADF also where there is none */
	int payload_fd;		     /* pidfd */
	int cleaner_fd;		     /* pidfd of who clears up a process box's directory */
	pid_t init_pid, payload_pid; /* to tell them from strangers; never signalled by these */
	int report_fd;		     /* the first process's pipe, then the channel to the payload */
	int built_fd;		     /* what tells the payload of the root; until that is forked */
	int scratch_fd;		     /* the limited file system, to ask how full it is */
	int listener_fd;    /* readable when a system call was refused: nc_box_denied; or -EBADF */
	int terminal_fd;    /* the master of its terminal, unless it is kept */
	int door_fd;	    /* the socket that listens in it, until the worker has it */
	int kept_fd[3];	    /* the worker's ends of its streams; or its terminal */
	int zygote_fd;	    /* to the zygote that runs in it; or -EBADF */
	size_t ready;	    /* boxes to keep prepared with that one's children */
	unsigned int lost;  /* of those, since that was said */
	unsigned int owner; /* of its user namespace, the zygote that may enter it; 0: we */
	uint64_t lender_id; /* the zygote that its payload comes from; 0: from us */
	int lender_fd;	    /* to that one */
	int shade_fd;	    /* pidfd of its payload's shade; or -EBADF */
	enum nc_warmth warmth;
	int go_fd, channel_fd;		/* the borrowed payload's, until it has come */
	uint64_t spaces[NC_BOX_SPACES]; /* and the namespaces that it must be in by then */
	size_t client;			/* whose it is: only they can name it */
	uint64_t home_id; /* the box in which it runs; 0: it is one itself, as below */
	int home_fd;	  /* pidfd of process 1 there */
	char name[NC_BOX_NAME_MAX + 1]; /* for the journal */
	/* handed_ns: when its order went to the payload, from where its program's time counts */
	uint64_t ordered_ns, handed_ns, started_ns, deadline_ns, check_ns;
	uint64_t clear_ns;			 /* until then it may take to get empty */
	uint64_t frozen_ns;			 /* since when it stands still; 0: it does not */
	uint64_t disk_bytes, inodes;		 /* of the limited file system, as it is */
	uint64_t memory_seen_bytes, cpu_seen_us; /* the most that was seen where no group counts */
	struct nc_box_limits limits;
	struct nc_means means; /* that hold it, and not every box alike */
	struct nc_box_end end; /* filled as it becomes known */
};

/*
 * Begins a box: for the order, which it takes over, or for nobody yet; lender is the zygote that
 * its payload will come from, or NULL. Below here every function returns 0, or -errno with err
 * after which the caller calls nc_box_fail.
 */
int nc_box_begin(struct nc_nursery *nursery, struct nc_box *box, struct nc_box_pending *order,
	const struct nc_box *lender, struct nacre_err *err);

/*
 * What can be done while the root of a box is being built: makes its group, and forks its payload,
 * as far as that comes without a root. A box does it itself once is_filtered.
 */
int nc_box_hasten(struct nc_nursery *nursery, struct nc_box *box, struct nacre_err *err);

/* Gives a box that is nobody's to an order. */
int nc_box_take(struct nc_nursery *nursery, struct nc_box *box, struct nc_box_pending *order,
	struct nacre_err *err);

/* The first process has reported. */
int nc_box_grown(struct nc_nursery *nursery, struct nc_box *box, struct nacre_err *err);

/* The zygote has answered. */
int nc_box_lent(struct nc_nursery *nursery, struct nc_box *box, struct nacre_err *err);

/*
 * The payload has reported; the state is NC_BOX_RUNS once it has become its program, and
 * NC_BOX_WAITING once a program that was started ahead waits for its order.
 */
int nc_box_heard(struct nc_box *box, struct nacre_err *err);

/* Kills and forgets what there is of a box that could not be made; its end follows by itself. */
void nc_box_fail(struct nc_box *box);

/* Ends the box; the first cause that is given counts. The payload's end follows by itself. */
void nc_box_kill(struct nc_box *box, enum nc_box_cause cause);

/*
 * The command of a box that does not stay has ended: true if nothing else is left in there, and its
 * end is complete before the box itself is gone, for which nobody has to wait. Who hurries has
 * process 1 die while the bill is made.
 */
bool nc_box_settle(struct nc_box *box, bool hurries);

/* What the box waits for has come; true once it is dead, with end complete, and NC_BOX_KEPT. */
bool nc_box_ended(struct nc_nursery *nursery, struct nc_box *box);

/*
 * Notes refused system calls, some of those that wait, and answers them with EPERM. Who hurries has
 * process 1 of a box end as soon as nobody is left who could make any.
 */
void nc_box_denied(struct nc_box *box, bool hurries);

/*
 * Looks at a running box: whether the kernel has begun to kill for memory or its CPU time is up,
 * which ends it, and which limits it has met. Returns when to look again.
 */
uint64_t nc_box_check(struct nc_box *box, uint64_t now);

/*
 * Looks whether everything that a command has left behind is dead by now; true once the command's
 * end is complete, and the box stays or, of a command beside others, is NC_BOX_KEPT. What does not
 * die in time ends the box, or the home.
 */
bool nc_box_clear(struct nc_nursery *nursery, struct nc_box *box, uint64_t now);

/* Gives a box that stays its next command, or a program that waits its order. */
int nc_box_next(struct nc_nursery *nursery, struct nc_box *box, struct nc_box_pending *order,
	struct nacre_err *err);

/*
 * Begins a command beside others in a box that stays: its processes, limits and bill are its own,
 * everything else is the home's. Only where a control group can end it without the others.
 */
int nc_box_join(struct nc_nursery *nursery, const struct nc_box *home, struct nc_box *box,
	struct nc_box_pending *order, struct nacre_err *err);

/* What it uses now. */
void nc_box_look(const struct nc_box *box, struct nc_box_now *ret_now);

/* Stops everything in it, and its clock, or lets it go on. */
int nc_box_freeze(struct nc_box *box, bool frozen);

/* Lets a dead box go. */
void nc_box_forget(struct nc_box *box);

#endif
