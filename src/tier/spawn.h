/* The unprivileged side's view of the spawner: orders out, events in. */
#ifndef NC_SPAWN_H
#define NC_SPAWN_H

#include "base/error.h"
#include "kernel/boxwire.h"

struct nc_spawn {
	int fd; /* readable when an event waits */
	struct nc_box_host host;
	struct nc_wire_packet packet;
};

/* What the spawner is started with. */
struct nc_spawn_setup {
	unsigned int ready; /* neutral boxes to prepare at once */
	const int
		*binds; /* what boxes may be shown of the host, by index; they stay the caller's */
	size_t n_binds;
	int witness_fd; /* the spawner's end of a pair to nacre-recorder; 0 or less: none */
};

/*
 * Forks: the calling process becomes nacre-spawner and never returns, the child, which is what
 * returns here, is its worker, without privilege for good. Everything that needs the caller's
 * rights must have been opened before. -errno only before the fork.
 */
int nc_spawn_start(
	struct nc_spawn *spawn, const struct nc_spawn_setup *setup, struct nacre_err *err);

/* Greets the spawner. -ECONNRESET without a message: it is gone, and has said why. */
int nc_spawn_connect(struct nc_spawn *spawn, struct nacre_err *err);
void nc_spawn_done(struct nc_spawn *spawn);

#define cleanup_spawn nc_cleanup(nc_spawn_done)

/*
 * Orders a box (NC_BOX_RUN), or a command in one that stays (NC_BOX_NEXT), with the descriptors
 * that nc_box_order_fds describes, which stay the caller's. -E2BIG: arguments and environment are
 * too long.
 */
int nc_spawn_order(struct nc_spawn *spawn, enum nc_box_message type,
	const struct nc_box_order *order, const int *fds, struct nacre_err *err);

int nc_spawn_kill(struct nc_spawn *spawn, uint64_t id, enum nc_box_cause cause);

struct nc_spawn_event {
	enum nc_box_message type; /* NC_BOX_STARTED, NC_BOX_ENDED or NC_BOX_FAILED */
	uint64_t id;
	uint64_t birth_ns;	  /* STARTED */
	int terminal_fd;	  /* STARTED, with a terminal: the caller's now; or -EBADF */
	struct nc_box_end end;	  /* ENDED */
	struct nacre_err failure; /* FAILED */
};

/* Waits for an event. -ECONNRESET: the spawner is gone. */
int nc_spawn_receive(struct nc_spawn *spawn, struct nc_spawn_event *ret_event);

#endif
