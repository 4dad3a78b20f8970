/* What the spawner's children do between their birth and the program that they become. */
#ifndef NC_SPAWNER_CHILD_H
#define NC_SPAWNER_CHILD_H

#include "kernel/boxwire.h"
#include "kernel/cgroup_box.h"
#include "spawner/root.h"

/*
 * How a child says what went wrong: the errno as four bytes, then the step. nacre-init says one 'r'
 * when it is ready. The payload's channel is a socket, over which it first says by what it is held
 * (struct nc_payload_report, with the listener of its filter if there is one); the channel then
 * closes when it becomes its program.
 */
#define NC_CHILD_REPORT_MAX 128

/* The first process of a box. It waits for one byte on go_fd before it does anything. */
struct nc_first {
	struct nc_root_spec root;
	int go_fd;
	int report_fd;
	int init_fd;		       /* nacre-init, to be executed */
	bool single_id;		       /* one user id is mapped, so there is no id 0 to become */
	const struct nc_cgroup *group; /* to join; NULL: none */
};

_Noreturn void nc_child_first(const struct nc_first *first);

/* The payload of a box, forked by the spawner into the box's pid namespace. */
struct nc_payload {
	int box_fd; /* pidfd of the box's first process */
	int report_fd;
	int go_fd; /* a byte comes when the spawner holds us; -EBADF: it does already */
	int stdio[3];
	const struct nc_box_limits *limits;
	const char *dir;
	char *const *argv;
	char *const *env;
	bool single_id;
	const struct nc_cgroup
		*group; /* to join; NULL: none, so that rlimits must do what they can */
};

/* A letter that no errno's first byte is taken for, and Landlock's ABI. */
#define NC_PAYLOAD_HELD 0xff
struct nc_payload_report {
	unsigned char held, landlock;
};

_Noreturn void nc_child_payload(const struct nc_payload *payload);

#endif
