/* What nacre-egress tells of a door: decisions, and what went through. */
#ifndef NC_EGRESS_TOLD_H
#define NC_EGRESS_TOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "config/host.h"
#include "egress/reason.h"

#define NC_ADDRESS_TEXT_SIZE 46U

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

#endif
