/*
 * Bytes from one side of a connection to the other. They go from socket to socket through a pipe,
 * without being copied (splice), unless they have to be looked at: what was read with a head, and
 * chunked bodies.
 */
#ifndef NC_FLOW_H
#define NC_FLOW_H

#include <stdint.h>

#include "egress/http.h"
#include "egress/mask.h"
#include "egress/side.h"

/* Pipes that wait to be used: a flow has one only while bytes are in it. */
#define NC_PIPES_IDLE_MAX 64U
struct nc_pipe {
	int read_fd;
	int write_fd;
};
struct nc_pipes {
	struct nc_pipe idle[NC_PIPES_IDLE_MAX];
	size_t n;
};
void nc_pipes_done(struct nc_pipes *pipes);

struct nc_flow {
	struct nc_pipe pipe; /* has bytes; or -EBADF */
	size_t held;	     /* bytes in the pipe */
	uint64_t left;	     /* bytes that are to come; UINT64_MAX: until the end */
	bool chunked;
	struct nc_chunks chunks;
	size_t checked; /* bytes at the front of the side's data that belong to the chunked body */
	struct nc_mask *mask; /* owned; NULL: nobody looks for anything in it */
};

/* How many bytes may be moved now, of those that are wanted; 0: none, try later. */
typedef size_t nc_flow_may(void *user, size_t wanted);
/* So many were taken. */
typedef void nc_flow_took(void *user, size_t n);

struct nc_flow_host {
	struct nc_pipes *pipes;
	nc_flow_may *may;
	nc_flow_took *took;
	void *user;
};

void nc_flow_init(struct nc_flow *flow, enum nc_http_body body, uint64_t length, bool tolerant);

/* What it finds in the body is masked; takes it over. Before the first byte. */
void nc_flow_mask(struct nc_flow *flow, struct nc_mask *mask);

/* Gives its pipe back. */
void nc_flow_done(struct nc_flow *flow, struct nc_pipes *pipes);

enum nc_flow_state {
	NC_FLOW_WAITS, /* for one of the sides */
	NC_FLOW_HELD,  /* for nc_flow_may, or a pipe: try later */
	NC_FLOW_TURN,  /* it could go on, but others want to as well */
	NC_FLOW_DONE,  /* all of it has gone */
};

/*
 * Moves what can be moved. An enum nc_flow_state; -EBADMSG: the body breaks its rules, or ends too
 * early; -errno of the sockets.
 */
int nc_flow_move(struct nc_flow *flow, struct nc_side *from, struct nc_side *to,
	const struct nc_flow_host *host);

#endif
