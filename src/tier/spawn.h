/* The unprivileged side's view of the spawner: orders out, events in. */
#ifndef NC_SPAWN_H
#define NC_SPAWN_H

#include "base/error.h"
#include "kernel/boxwire.h"

/* Whether this process was started by a spawner, and can order boxes. */
bool nc_spawn_here(void);

struct nc_spawn {
	int fd; /* readable when an event waits */
	struct nc_box_host host;
	struct nc_wire_packet packet;
};

/* Greets the spawner that started us. */
int nc_spawn_connect(struct nc_spawn *spawn, struct nacre_err *err);
void nc_spawn_done(struct nc_spawn *spawn);

#define cleanup_spawn nc_cleanup(nc_spawn_done)

/* Orders a box; stdio stays the caller's. -E2BIG: arguments and environment are too long. */
int nc_spawn_run(struct nc_spawn *spawn, const struct nc_box_order *order, const int stdio[3],
	struct nacre_err *err);

int nc_spawn_kill(struct nc_spawn *spawn, uint64_t id, enum nc_box_cause cause);

struct nc_spawn_event {
	enum nc_box_message type; /* NC_BOX_STARTED, NC_BOX_ENDED or NC_BOX_FAILED */
	uint64_t id;
	uint64_t birth_ns;	  /* STARTED */
	struct nc_box_end end;	  /* ENDED */
	struct nacre_err failure; /* FAILED */
};

/* Waits for an event. -ECONNRESET: the spawner is gone. */
int nc_spawn_receive(struct nc_spawn *spawn, struct nc_spawn_event *ret_event);

#endif
