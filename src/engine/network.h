/*
 * The network of boxes: doors that nacre-egress holds, each for one box, opened when the box is
 * there and shut when it is done. Everything happens on the loop.
 */
#ifndef NC_NETWORK_H
#define NC_NETWORK_H

#include <jansson.h>
#include <uv.h>

#include "base/buf.h"
#include "egress/client.h"

struct nc_network;

/* Takes over the socket of nc_egress_start(). 0 or -errno with err. */
int nc_network_new(uv_loop_t *loop, int fd, struct nc_network **ret_network, struct nacre_err *err);

/*
 * The next nacre-egress, after one that died, and with it all doors; takes over the socket. It is
 * up once it has said welcome. 0 or -errno with err.
 */
int nc_network_meet(struct nc_network *network, int fd, struct nacre_err *err);

/* Nobody is told anything any more; all doors are shut. Accepts NULL. */
void nc_network_free(struct nc_network *network);

/*
 * Whether there is a way out at all: nacre-egress lives and answers; whether it is there, answering
 * or not.
 */
bool nc_network_is_up(const struct nc_network *network);
bool nc_network_is_met(const struct nc_network *network);

/*
 * Certificates that boxes trust where the door takes part in TLS: those that the host trusts, which
 * are copied, and the door's own. "" until nacre-egress has said it.
 */
int nc_network_trust(struct nc_network *network, const char *bundle);
const struct nc_buf *nc_network_trusted(struct nc_network *network);

/* What went through all doors, those that are shut too. */
struct nc_network_totals {
	uint64_t connections, requests, denied, failed, bytes_up, bytes_down;
};

/* As far as is known; asks, so that the next call knows what is so now. Zeroes without one. */
struct nc_network_totals nc_network_totals(struct nc_network *network);

/* Who is told of a door. */
struct nc_door_listener {
	void *context;
	/* of a request, allowed or not; may be NULL */
	void (*decided)(void *context, const struct nc_egress_decision *decision);
	/* a limit of its life was met: all that it asks for is refused now; may be NULL */
	void (*over)(void *context, enum nc_reason reason);
	/* after nc_door_ask(); may be NULL */
	void (*metered)(void *context, const struct nc_egress_meter *meter);
	/* once, after nc_door_shut() or when nacre-egress has died: NULL then. The last call. */
	void (*shut)(void *context, const struct nc_egress_meter *meter);
};

struct nc_door;

/* Whether a box with an open door is called so in that group. */
bool nc_network_has_member(const struct nc_network *network, const char *group, const char *name);

/* Hands the value of a secret over, for doors whose terms name the placeholder; until dropped. */
int nc_network_keep(struct nc_network *network, const char *placeholder, const char *value,
	struct nacre_err *err);
void nc_network_drop(struct nc_network *network, const char *placeholder);

/*
 * Opens the door of a box; door_fd is taken over, and is one for guests if the terms name a group.
 * -EINVAL with err; -EEXIST: its name is taken in its group; -EPIPE: nacre-egress has died.
 */
int nc_door_open(struct nc_network *network, uint64_t box_id, int door_fd,
	const struct nc_egress_terms *terms, const struct nc_door_listener *listener,
	struct nc_door **ret_door, struct nacre_err *err);

/* One that the worker before has opened, with its terms; NULL: no memory. Others are shut. */
struct nc_door *nc_door_adopt(struct nc_network *network, uint64_t box_id,
	const struct nc_egress_terms *terms, const struct nc_door_listener *listener);

/* Other terms, for all requests from now on. -EINVAL with err, and nothing has changed. */
int nc_door_change(
	struct nc_door *door, const struct nc_egress_terms *terms, struct nacre_err *err);

/* metered() follows. */
void nc_door_ask(struct nc_door *door);

/* shut() follows, perhaps before the return. */
void nc_door_shut(struct nc_door *door);

/* The same, and nobody is told; its name in its group is free at once. Accepts NULL. */
void nc_door_drop(struct nc_door *door);

/* What went through it, as replies tell it; NULL: no memory. */
json_t *nc_door_meter_json(const struct nc_egress_meter *meter);

#endif
