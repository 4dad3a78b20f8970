/* One connection of a box, from its first byte to its last. */
#ifndef NC_CONN_H
#define NC_CONN_H

#include "egress/door.h"

/*
 * What it does, and what may come next:
 *
 *	FIRST     its first byte tells the protocol       HEAD, GREETING
 *	GREETING  of SOCKS                                ASKING
 *	ASKING    the request of SOCKS                    LOOKUP, DIAL, LAST
 *	HEAD      of an HTTP request                      LOOKUP, DIAL, EXCHANGE, LAST
 *	SHAKE     hands, where the door is part of TLS    HEAD, EXCHANGE, LAST
 *	LOOKUP    of the host                             DIAL, LAST
 *	DIAL      connecting to one address after another HELLO, TUNNEL, SHAKE, EXCHANGE, LAST
 *	HELLO     the greeting of TLS, in strict mode     TUNNEL, LAST
 *	TUNNEL    bytes both ways until both ended        ended
 *	EXCHANGE  a request and its reply                 HEAD, LAST, ended
 *	LAST      our own answer is sent                  ended
 */
enum nc_stage {
	NC_STAGE_FIRST,
	NC_STAGE_GREETING,
	NC_STAGE_ASKING,
	NC_STAGE_HEAD,
	NC_STAGE_LOOKUP,
	NC_STAGE_DIAL,
	NC_STAGE_HELLO,
	NC_STAGE_SHAKE,
	NC_STAGE_TUNNEL,
	NC_STAGE_EXCHANGE,
	NC_STAGE_LAST,
	NC_STAGE_ENDED,
	NC_STAGE_MAX,
};

/* Addresses that are tried, of those that were found and checked. */
#define NC_DIAL_MAX 4U

struct nc_conn {
	struct nc_side client; /* first */
	struct nc_side server;
	struct nc_door *door;
	struct nc_conn *next, **link; /* in the door's list */
	struct nc_conn *next_eager, *next_dead;
	bool is_eager;
	bool is_held; /* waits for bandwidth, a pipe, or to be let in by a member */
	enum nc_stage stage;
	uint64_t deadline_ns; /* of the stage */
	enum nc_egress_protocol protocol;
	/* the request that is served */
	struct nc_host host;
	uint16_t port;
	enum nc_reach reach;
	char rule[NC_EGRESS_PATTERN_MAX + 1];
	enum nc_method method;
	char method_text[16];
	struct nc_egress_destination *destination;
	struct nc_lookup *lookup;
	bool is_asking;	      /* the answer may come before the question is out */
	bool is_found;	      /* it has come */
	enum nc_reason found; /* what it means */
	struct nc_address culprit;
	struct nc_address addresses[NC_DIAL_MAX];
	size_t n_addresses;
	size_t dialled;
	struct nc_door *member; /* whose spare socket server.fd is; NULL: none's */
	/* bytes on their way */
	struct nc_flow flows[NC_DIRECTION_MAX];
	bool flow_done[NC_DIRECTION_MAX];
	bool inside;	 /* the door takes part in TLS to this host */
	bool asked;	 /* a request waits for the server to be there */
	bool began;	 /* the head of the request */
	bool reused;	 /* the server was there from the request before */
	bool wants_more; /* the client would ask again */
	bool replied;	 /* the head of the reply has come */
	bool again;	 /* another request may follow on the client's side */
	bool reusable;	 /* and on the server's */
	bool masked;	 /* a value was found in the reply, and that was said */
};

/* Takes fd. -ENOMEM, -errno: it is closed. */
int nc_conn_new(struct nc_door *door, int fd);

/* Does what can be done. */
void nc_conn_run(struct nc_conn *conn);

/* Ends it; it is freed after the turn. */
void nc_conn_end(struct nc_conn *conn);

/* Ends it, or answers, if it has taken too long. */
void nc_conn_tick(struct nc_conn *conn);

/* Frees those that have ended. */
void nc_conns_bury(struct nc_egress *egress);

/* ---- between the files of it ---- */

/* What a step of a stage says. */
enum nc_step {
	NC_STEP_WAIT, /* for a descriptor, a lookup, time */
	NC_STEP_MORE, /* go on: the stage has changed, or more can be done in it */
	NC_STEP_END,  /* the connection ends */
};

void nc_conn_enter(struct nc_conn *conn, enum nc_stage stage);
void nc_conn_deadline(struct nc_conn *conn, uint32_t ms);

/* Records the decision about the request that is served; address may be NULL. */
void nc_conn_record(struct nc_conn *conn, enum nc_reason reason, const struct nc_address *address);

/* Answers with a refusal, and records it; then the connection ends. */
enum nc_step nc_conn_refuse(
	struct nc_conn *conn, enum nc_reason reason, const struct nc_address *address);

/* Judges host and port, counts the request, looks the host up and dials. */
enum nc_step nc_conn_go(struct nc_conn *conn, const struct nc_wish *wish);

/* The steps of LOOKUP and DIAL (dial.c), and of EXCHANGE (exchange.c). */
enum nc_step nc_conn_lookup(struct nc_conn *conn);
enum nc_step nc_conn_dial(struct nc_conn *conn);
enum nc_step nc_conn_exchange(struct nc_conn *conn);
enum nc_step nc_conn_head(struct nc_conn *conn);

/* The server is there: what comes next. */
enum nc_step nc_conn_connected(struct nc_conn *conn);

/* Closes the server's side, or gives its socket back to whose it is. */
void nc_conn_hang_up(struct nc_conn *conn);

/* Moves one flow; as nc_flow_move, with NC_FLOW_HELD and NC_FLOW_TURN taken care of. */
int nc_conn_move(struct nc_conn *conn, enum nc_direction direction);

#endif
