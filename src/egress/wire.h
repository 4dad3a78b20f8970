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
#include "egress/told.h"

#define NC_EGRESSWIRE_VERSION 2U

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
	NC_EGRESS_KEEP,	  /* text placeholder, text value: of a secret of an OPEN that follows */
	NC_EGRESS_DROP,	  /* text placeholder: no OPEN follows any more */

	/* to the worker */
	NC_EGRESS_WELCOME = 101, /* u32 version, text certificate of its authority (PEM) */
	NC_EGRESS_DONE,		 /* u64 box, u32 errno or 0: of OPEN and CHANGE; if not 0, nothing
				    has changed */
	NC_EGRESS_DECISION,	 /* struct nc_egress_decision */
	NC_EGRESS_METER,	 /* struct nc_egress_meter */
	NC_EGRESS_OVER,		 /* u64 box, u8 enum nc_reason: a limit of its life was met, once
				    for each; all that it asks for is refused now */
};

/* What a box may do, as nacre-egress holds it. */
struct nc_door_terms {
	struct nc_rules rules;
	struct nc_secrets secrets;
	struct nc_egress_limits limits; /* no zero where zero has a default */
	bool strict;
	char group[NC_EGRESS_GROUP_MAX + 1];
	char name[NC_EGRESS_NAME_MAX + 1];
};

void nc_door_terms_done(struct nc_door_terms *terms);

/* Copies and checks the caller's terms. -EINVAL and others of nc_rules_add(); nothing is left then.
 */
int nc_terms_init(struct nc_door_terms *terms, const struct nc_egress_terms *from);

void nc_egresswire_put_terms(struct nc_wire_out *out, const struct nc_egress_terms *terms);

/*
 * Reads and checks them. What breaks the message is in in->error; what is merely wrong in it is
 * returned, as by nc_terms_init(), and *ret_terms is untouched.
 */
int nc_egresswire_get_terms(struct nc_wire_in *in, struct nc_door_terms *ret_terms);

void nc_egresswire_put_decision(struct nc_wire_out *out, const struct nc_egress_decision *decision);
void nc_egresswire_get_decision(struct nc_wire_in *in, struct nc_egress_decision *ret_decision);
void nc_egresswire_put_meter(struct nc_wire_out *out, const struct nc_egress_meter *meter);
void nc_egresswire_get_meter(struct nc_wire_in *in, struct nc_egress_meter *ret_meter);

#endif
