/*
 * The messages to and from nacre-egress. Whoever breaks the table is not talked to any more: the
 * process ends, and with it all network of its worker's boxes.
 */
#ifndef NC_EGRESSWIRE_H
#define NC_EGRESSWIRE_H

#include "base/limits.h"
#include "base/wire.h"
#include "egress/http.h"
#include "egress/rules.h"
#include "egress/terms.h"

#define NC_EGRESSWIRE_VERSION 1U

/* Sockets made in the box's network by the spawner, through which others of its group come in. */
#define NC_SPARES_MAX (NC_WIRE_FDS_MAX - 1)

enum nc_egress_message {
	/* from the worker */
	NC_EGRESS_HELLO = 1, /* u32 version; once, first; WELCOME */
	NC_EGRESS_OPEN, /* u64 box, terms; the listener and up to 15 spare sockets of the box; DONE
			 */
	NC_EGRESS_CHANGE, /* u64 box, terms; for all requests from now on; DONE */
	NC_EGRESS_ASK,	  /* u64 box; METER */
	NC_EGRESS_SHUT,	  /* u64 box; ends its connections; METER, the last */

	/* to the worker */
	NC_EGRESS_WELCOME = 101, /* u32 version, text certificate of its authority (PEM) */
	NC_EGRESS_DONE,		 /* u64 box, u32 errno or 0: of OPEN and CHANGE; if not 0, nothing
				    has changed */
	NC_EGRESS_DECISION,	 /* struct nc_egress_decision */
	NC_EGRESS_METER,	 /* struct nc_egress_meter */
	NC_EGRESS_OVER,		 /* u64 box, u8 enum nc_reason: a limit of its life was met, once
				    for each; all that it asks for is refused now */
};

enum nc_egress_protocol {
	NC_EGRESS_HTTP,
	NC_EGRESS_CONNECT,
	NC_EGRESS_SOCKS,
	NC_EGRESS_INSIDE, /* HTTP in TLS in which the door takes part */
	NC_EGRESS_ACCEPT, /* it has not said anything yet */
	NC_EGRESS_PROTOCOL_MAX,
};

struct nc_egress_decision {
	uint64_t box;
	enum nc_reason reason;
	enum nc_egress_protocol protocol;
	uint16_t port;	  /* 0: not known, as the host */
	uint32_t dropped; /* records of this box that were not sent since the last one */
	char host[NC_HOST_TEXT_MAX + 1];
	char address[NC_ADDRESS_TEXT_SIZE];   /* that was dialled, or was the reason; else "" */
	char rule[NC_EGRESS_PATTERN_MAX + 1]; /* the entry that decided, or "" */
	char method[16];		      /* of plain HTTP, cut */
};

struct nc_egress_destination {
	char host[NC_HOST_TEXT_MAX + 1];
	uint64_t requests;
	uint64_t bytes_up;
	uint64_t bytes_down;
};

struct nc_egress_meter {
	uint64_t box;
	bool last;
	uint64_t connections; /* that were accepted */
	uint64_t requests;    /* that were allowed */
	uint64_t denied;
	uint64_t failed; /* allowed, but the host was not there */
	uint64_t bytes_up;
	uint64_t bytes_down;
	uint32_t names;					     /* different hosts */
	uint32_t open;					     /* connections at this moment */
	struct nc_egress_destination top[NC_EGRESS_TOP_MAX]; /* most bytes first */
	size_t n_top;
};

/* What a box may do, as nacre-egress holds it. */
struct nc_terms {
	struct nc_rules rules;
	struct nc_secrets secrets;
	struct nc_egress_limits limits; /* no zero where zero has a default */
	bool strict;
	char group[NC_EGRESS_NAME_MAX + 1];
	char name[NC_EGRESS_NAME_MAX + 1];
};

void nc_terms_done(struct nc_terms *terms);

/* Copies and checks the caller's terms. -EINVAL and others of nc_rules_add(); nothing is left then.
 */
int nc_terms_init(struct nc_terms *terms, const struct nc_egress_terms *from);

void nc_egresswire_put_terms(struct nc_wire_out *out, const struct nc_egress_terms *terms);

/*
 * Reads and checks them. What breaks the message is in in->error; what is merely wrong in it is
 * returned, as by nc_terms_init(), and *ret_terms is untouched.
 */
int nc_egresswire_get_terms(struct nc_wire_in *in, struct nc_terms *ret_terms);

void nc_egresswire_put_decision(struct nc_wire_out *out, const struct nc_egress_decision *decision);
void nc_egresswire_get_decision(struct nc_wire_in *in, struct nc_egress_decision *ret_decision);
void nc_egresswire_put_meter(struct nc_wire_out *out, const struct nc_egress_meter *meter);
void nc_egresswire_get_meter(struct nc_wire_in *in, struct nc_egress_meter *ret_meter);

#endif
