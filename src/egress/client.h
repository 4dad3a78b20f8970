/*
 * The worker's side of nacre-egress: starting it, opening doors of boxes, hearing what was decided.
 *
 * Nothing here waits: what is asked is answered by a message, in the order of asking, which
 * nc_egress_receive() reads. When the process has ended, every call returns -EPIPE and no box has a
 * network.
 */
#ifndef NC_EGRESS_CLIENT_H
#define NC_EGRESS_CLIENT_H

#include "base/error.h"
#include "base/wire.h"
#include "egress/terms.h"
#include "egress/told.h"

/* Where boxes find the door, inside their network. */
#define NC_EGRESS_ADDRESS "127.0.0.1"
#define NC_EGRESS_PORT 888

struct nc_egress_setup {
	const char *program; /* NULL: the nacre-egress beside us, or in libexec */
	const char *servers; /* name servers: "192.0.2.1:53,[2001:db8::1]"; NULL: the host's */
	const char *hosts;   /* a file instead of /etc/hosts; NULL */
	const char *bundle; /* certificates that hosts are checked with where the door takes part in
			       TLS; NULL: the host's */
	int place_fd; /* where it meets the next worker (base/meeting.h), and stays the caller's; 0
			 or less: it ends with this one */
};

/*
 * Starts nacre-egress, for root as a user of its own. Returns the worker's end of its socket
 * (SOCK_SEQPACKET, CLOEXEC), for nc_egress_greet(); it lives until that, and the place, are closed
 * everywhere. *ret_pidfd is the caller's; a zombie is left if nobody waits. To be called while
 * there is one thread, before privilege is dropped.
 */
int nc_egress_start(const struct nc_egress_setup *setup, int *ret_pidfd, struct nacre_err *err);

/* What is called for each message; any may be NULL. What it is given is valid during the call. */
struct nc_egress_events {
	/* of nc_egress_open() or nc_egress_change(): error is 0 or -errno, and then nothing has
	 * changed (-EEXIST, -ENOENT, -EINVAL, -ENOSPC, -ENOMEM) */
	void (*done)(void *user, uint64_t box, int error);
	void (*decision)(void *user, const struct nc_egress_decision *decision);
	void (*meter)(void *user, const struct nc_egress_meter *meter);
	/* a limit of its life was met; from now on all that it asks for is refused */
	void (*over)(void *user, uint64_t box, enum nc_reason reason);
};

struct nc_egress_client {
	int fd; /* to be polled for reading, then nc_egress_receive(); -EBADF: it has ended */
	bool welcome;
	/* PEM, once it has said welcome: for boxes with secrets in TLS to trust */
	char authority[NC_EGRESS_AUTHORITY_MAX + 1];
	struct nc_egress_events events;
	void *user;
	struct nc_wire_packet packet;
};

/* Takes fd, which nc_egress_start() returned, and greets. 0 or -errno. */
int nc_egress_greet(struct nc_egress_client *client, int fd, const struct nc_egress_events *events,
	void *user, struct nacre_err *err);

/* Closes it: nacre-egress ends, and all doors are shut, unless another worker may come. */
void nc_egress_done(struct nc_egress_client *client);

/*
 * Opens the door of a box: listener_fd listens inside its network. spare_fds are TCP sockets that
 * were made in there and are not connected, through which other boxes of its group come in; at most
 * NC_SPARES_MAX. All stay the caller's, who may close them. -EINVAL, with a message: the terms;
 * -EMSGSIZE: they are too long; -EAGAIN: it does not read, try again; -EPIPE.
 */
int nc_egress_open(struct nc_egress_client *client, uint64_t box,
	const struct nc_egress_terms *terms, int listener_fd, const int *spare_fds, size_t n_spares,
	struct nacre_err *err);

/* Other terms, for all requests from now on. What was met of limits counts on. */
int nc_egress_change(struct nc_egress_client *client, uint64_t box,
	const struct nc_egress_terms *terms, struct nacre_err *err);

/*
 * Hands the value of a secret over: terms that follow name the placeholder, with "" for the value.
 * It is kept until it is dropped. -EAGAIN: it does not read, try again; -EPIPE.
 */
int nc_egress_keep(struct nc_egress_client *client, const char *placeholder, const char *value,
	struct nacre_err *err);
int nc_egress_drop(struct nc_egress_client *client, const char *placeholder);

/* Asks for the meter. */
int nc_egress_ask(struct nc_egress_client *client, uint64_t box);

/* Ends all connections of the box and forgets it; its last meter comes. */
int nc_egress_shut(struct nc_egress_client *client, uint64_t box);

/*
 * Reads one message, if there is one, and calls back. 1: read; 0: none now; -EPIPE: it has ended;
 * -EBADMSG: it broke the rules, and is closed.
 */
int nc_egress_receive(struct nc_egress_client *client);

/* Variables that make programs inside a box use the door: "name=value", NULL-terminated. Static. */
const char *const *nc_egress_variables(void);

#endif
