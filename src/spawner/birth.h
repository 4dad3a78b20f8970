/* How the processes of a box are made. */
#ifndef NC_SPAWNER_BIRTH_H
#define NC_SPAWNER_BIRTH_H

#include "spawner/box.h"

/* The group of a box, or NULL where there are none. */
const struct nc_cgroup *nc_box_group(const struct nc_box *box);

/* Whether its payload has a shade, once it waits: a process more than what the box is given for. */
bool nc_box_has_shade(const struct nc_box *box);

/* Opens our locks and takes a range of user ids for the box, where there are ranges; once each. */
int nc_birth_take_ids(struct nc_nursery *nursery, struct nc_box *box, struct nacre_err *err);

/* Clones the first process into new namespaces, maps its ids and lets it build the root. */
int nc_birth_first(struct nc_nursery *nursery, struct nc_box *box, struct nacre_err *err);

/*
 * Forks the payload into the box that is its home, mostly its own, where it waits for its order;
 * report_fd is the channel to it. Without a root it waits for that first, and channel_fd is the
 * channel.
 */
int nc_birth_payload(const struct nc_nursery *nursery, struct nc_box *box,
	const struct nc_box *home, bool has_root, struct nacre_err *err);

/* The same, but that the zygote is asked for it; report_fd is where it answers. */
int nc_birth_borrow(struct nc_box *box, struct nacre_err *err);

/* Takes the child that was lent; report_fd is then the channel to it. */
int nc_birth_take(struct nc_box *box, struct nacre_err *err);

/*
 * Forks somebody into the box's pid namespace who kills everything else in it but process 1, and
 * ends; payload_fd is readable then. Less than 0 or more.
 */
int nc_birth_sweeper(const struct nc_nursery *nursery, struct nc_box *box);

/* Those of the limits that these groups can hold. */
void nc_birth_limits(const struct nc_cgroup_parent *parent, const struct nc_box_limits *limits,
	struct nc_cgroup_limits *ret_limits);

/* Sets the order's limits and sends it to the payload. */
int nc_birth_deliver(struct nc_nursery *nursery, struct nc_box *box, struct nacre_err *err);

/* Reads what the first process reports: 0 when nacre-init is ready. */
int nc_birth_read_first(struct nc_nursery *nursery, struct nc_box *box, struct nacre_err *err);

/* Reads what the payload reports: 1 when it has become its program, 2 when that waits itself. */
int nc_birth_read_payload(struct nc_box *box, struct nacre_err *err);

#endif
