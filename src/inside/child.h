/* What the spawner's children do between their birth and the program that they become. */
#ifndef NC_INSIDE_CHILD_H
#define NC_INSIDE_CHILD_H

#include <sched.h>

#include "base/error.h"
#include "inside/root.h"
#include "inside/told.h"
#include "kernel/boxwire.h"
#include "kernel/cgroup_box.h"
#include "kernel/fence.h"

/*
 * How a child says what went wrong: the errno as four bytes, its kind as one, then the step.
 * nacre-init says one 'r' when it is ready. The payload says over its channel by what it is held
 * (struct nc_payload_report, with the descriptors that it has of enum nc_payload_fd, in their
 * order); then it takes an order (NC_BOX_RUN or NC_BOX_NEXT with the three streams, as it came from
 * the worker, and nacre-files if that is the program); the channel closes when it becomes its
 * program.
 */
#define NC_CHILD_REPORT_MAX 128

/* Reads such a report: fails with it, and with what kind of failure it is, if it says so. */
int nc_child_failed(
	const char *report, ssize_t size, enum nc_fail *ret_fail, struct nacre_err *err);

/* The first process of a box. It waits for one byte on go_fd before it does anything. */
struct nc_first {
	const struct nc_root_spec *root; /* NULL: it keeps the host's, and its mounts */
	int go_fd;
	int report_fd;
	int built_fd;	/* an eventfd that is written to when the root is there; or -EBADF */
	int init_fd;	/* nacre-init, to be executed */
	int spawner_fd; /* pidfd */
	bool single_id; /* one user id is mapped, so there is no id 0 to become */
};

_Noreturn void nc_child_first(const struct nc_first *first);

/* The payload of a box, forked by the spawner into the box's pid namespace if there is one. */
struct nc_payload {
	enum nc_tier tier;
	int box_fd; /* pidfd of the box's first process; -EBADF: there is none */
	int channel_fd;
	int other_fd; /* the spawner's end of the channel */
	int go_fd;    /* a byte comes when the spawner holds us; -EBADF: it does already */
	int built_fd; /* the root is not there yet: the eventfd says when; -EBADF: it is */
	/* it is held on the spawner's processor until the root is there; then it may have these */
	const cpu_set_t *processors; /* NULL: it is not held */
	bool zygote; /* its children are lent to other boxes: it enters this one's root only */
	bool ahead;  /* it is its program already, and takes the order as that */
	bool lent;   /* a zygote's child: it is in the box's namespaces already */
	const int *join_fds; /* and joins these groups, which it could not open */
	size_t n_join;
	bool alone;	      /* it may make no processes */
	bool sweeps;	      /* all it does is to end what else is in the box's pid namespace */
	uint64_t host_pid_ns; /* the inode of the pid namespace in which that must not be done */
	bool terminal;
	bool door;
	bool guests;			      /* others come in to it: see NC_ORDER_GUESTS */
	unsigned int id;		      /* to become, user and group */
	const char *user;		      /* in place of it: one of the box; or NULL */
	bool writes_root;		      /* the box's root can be written to */
	bool keeps_id;			      /* it has no privilege to become anybody */
	const struct nc_fence_path *writable; /* beside what every box of the tier has */
	size_t n_writable;
	const struct nc_cgroup *group; /* to join; NULL: none, so rlimits must do what they can */
};

/* A letter that no errno's first byte is taken for, and Landlock's ABI. */
#define NC_PAYLOAD_HELD 0xff
enum nc_payload_fd {
	NC_PAYLOAD_LISTENER, /* of its filter */
	NC_PAYLOAD_TERMINAL, /* the master */
	NC_PAYLOAD_DOOR,
	NC_PAYLOAD_SHADE, /* pidfd; see inside/shade.h */
	NC_PAYLOAD_FDS,
};
struct nc_payload_report {
	unsigned char held, landlock, has[NC_PAYLOAD_FDS];
};

/* By what it is held. */
struct nc_held {
	int channel_fd;
	int landlock;
	bool listens;
	int given[NC_PAYLOAD_FDS]; /* until it is told */
	struct nc_told told;	   /* until the order comes */
};

/* What its order wants it to become. */
struct nc_child_program {
	char **argv, **env;
	bool is_files; /* nacre-files, which is open */
};

/* Its life in four parts, each of which ends it with a report if it fails: it locks itself in, */
void nc_child_hold(const struct nc_payload *payload, struct nc_held *ret_held);
/* says so when it is ready, */
void nc_child_tell(struct nc_held *held);
/* waits for its order and does what the filter allows of it; the strings are static, */
void nc_child_follow(const struct nc_payload *payload, struct nc_held *held,
	struct nc_child_program *ret_program);
/* and becomes the program. */
_Noreturn void nc_child_execute(const struct nc_held *held, const struct nc_child_program *program);

/* One message with descriptors, at least one byte long. 0 or more, or -errno. */
int nc_child_send(int socket_fd, void *data, size_t size, const int *fds, size_t n);

/* All four. */
_Noreturn void nc_child_payload(const struct nc_payload *payload);

#endif
