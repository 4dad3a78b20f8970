/* The state of the spawner, and what its files do with it. */
#ifndef NC_SPAWNER_SPAWNER_H
#define NC_SPAWNER_SPAWNER_H

#include "spawner/table.h"
#include "spawner/worker.h"

struct nc_spawner {
	struct nc_nursery nursery;
	struct nc_worker worker;
	struct nc_client client[1 + NC_BOX_CLIENTS_MAX]; /* the worker, and others */
	size_t client_now;				 /* whose message is being handled */
	int events_fd;					 /* see events.h */
	int signal_fd;
	size_t ready;		       /* neutral boxes to keep prepared */
	unsigned int lost;	       /* of those, since that was said */
	uint64_t busy_ns, quiet_ns;    /* since when and until when somebody is being served */
	uint64_t strays_ns;	       /* when strangers are looked for again */
	bool ends;		       /* by a signal: the worker is not started again */
	uint64_t patience_ns, kill_ns; /* how long, and until when; 0: it is not to end */
	int witness_fd;		       /* nacre-recorder; or -EBADF */
	struct nc_wire_packet packet;
	struct nc_table table;
};

/*
 * steps.c: what becomes of a box when something has happened to it, and who is told. Begins a box,
 * as nc_box_begin does; the outcome of a step of a birth; what its state waits for has come; its
 * deadline has; what a command has left may be dead by now; what a dying box waited for has come;
 * one that came to nothing is given up.
 */
void nc_step_begin(struct nc_spawner *spawner, struct nc_box *box, struct nc_box_pending *order,
	const struct nc_box *lender);
void nc_step_birth(
	struct nc_spawner *spawner, struct nc_box *box, int r, const struct nacre_err *err);
void nc_step_event(struct nc_spawner *spawner, struct nc_box *box);
void nc_step_late(struct nc_spawner *spawner, struct nc_box *box);
void nc_step_clear(struct nc_spawner *spawner, struct nc_box *box);
void nc_step_end(struct nc_spawner *spawner, struct nc_box *box);
void nc_step_drop(struct nc_spawner *spawner, struct nc_box *box);

/* Sends a message and frees it; who does not read is ended. */
void nc_tell(struct nc_spawner *spawner, size_t client, struct nc_wire_out *out, const int *fds,
	size_t n_fds);

/* What is told of an order. */
void nc_tell_failure(struct nc_spawner *spawner, size_t client, uint64_t id, enum nc_fail fail,
	const struct nacre_err *err);
void nc_tell_end(struct nc_spawner *spawner, struct nc_box *box);

/*
 * ready.c: what is ready for an order, or soonest: a box with a child of the zygote that it names,
 * or any; or NULL, and the zygote if a child of that is the better beginning of a new one.
 */
struct nc_box *nc_ready_choose(struct nc_spawner *spawner, const struct nc_box_order *order,
	const struct nc_box **ret_lender);

/* Somebody is being served for so long, or will be: what is prepared may wait. */
void nc_ready_busy(struct nc_spawner *spawner, uint64_t for_ns);

/* Prepares one more where one is wanted. False if there is nothing to do before *next. */
bool nc_ready_prepare(struct nc_spawner *spawner, uint64_t *next);

/* Gives up one whose zygote has ended. False if there is none. */
bool nc_ready_drop_orphan(struct nc_spawner *spawner);

/* Gives up all that wait with a child of this zygote, or of none. */
void nc_ready_drop_all(struct nc_spawner *spawner, uint64_t zygote);

/* requests.c: takes one message of a client's and does what it asks for; or ends the client. */
void nc_requests_receive(struct nc_spawner *spawner, size_t client);

/* Ends one that breaks the rules, or NULL: has gone; and what it has, unless it is the worker. */
void nc_client_end(struct nc_spawner *spawner, size_t client, const char *why);

/*
 * loop.c: serves one worker after the other, for as long as one is to be had. The last one's exit
 * code, or -errno with err.
 */
int nc_loop_serve(struct nc_spawner *spawner, struct nacre_err *err);

/* Ends all boxes; returns when they are dead, or will not die: what is left then goes with us. */
void nc_loop_end_boxes(struct nc_spawner *spawner);

#endif
