/*
 * The door of one box: its listener, what it may do, what it has done. Which listener a connection
 * came in by says whose it is; nothing that is said on it can change that.
 */
#ifndef NC_DOOR_H
#define NC_DOOR_H

#include "egress/flow.h"
#include "egress/resolve.h"
#include "egress/tls.h"
#include "egress/wire.h"

enum nc_direction {
	NC_UP,
	NC_DOWN,
	NC_DIRECTION_MAX,
};

/* Bytes that may be moved now; filled with the passing of time. */
struct nc_bucket {
	uint64_t tokens;
	uint64_t filled_ns;
};

struct nc_door {
	struct nc_watch watch; /* of the listener; first */
	struct nc_egress *egress;
	struct nc_door *next;
	int listener_fd;
	uint16_t port; /* of the listener */
	struct nc_door_terms terms;
	struct nc_egress_meter meter;		     /* without the destinations */
	struct nc_egress_destination **destinations; /* owned, and stay where they are */
	struct nc_bucket buckets[NC_DIRECTION_MAX];
	struct nc_bucket records;
	uint32_t records_dropped;
	uint32_t over; /* bits 1 << enum nc_reason that the worker was told of */
	struct nc_conn *conns;
	bool knocking; /* accept() failed for want of descriptors: try again */
	int spares[NC_SPARES_MAX];
	size_t n_spares;
};

/* All that the process has. */
struct nc_egress {
	struct nc_loop loop;
	struct nc_resolver resolver;
	struct nc_pipes pipes;
	struct nc_tls tls;
	struct nc_door *doors;
	size_t n_doors;
	bool held;	       /* some wait for bandwidth, pipes or descriptors */
	struct nc_conn *eager; /* could go on, but let others have a turn */
	struct nc_conn *dead;  /* to be freed after the turn, as are the doors */
	struct nc_door *dead_doors;
	/* the worker */
	struct nc_watch worker, place;
	int worker_fd;
	int place_fd; /* where the next one comes in; or -EBADF */
	bool greeted;
	bool waits_for_room;
	struct nc_wire_packet packet;
	struct nc_unsent *unsent, **unsent_end;
	size_t n_unsent;
	struct nc_kept *kept; /* values of secrets for doors that the worker will open */
	size_t n_kept;
};

/* Takes the terms and the descriptors if it succeeds. -EEXIST, -ENOSPC, -EBADMSG: not such
 * descriptors; -ENOMEM. */
int nc_door_open(struct nc_egress *egress, uint64_t box, struct nc_door_terms *terms, int *fds,
	size_t n_fds);

/* NULL: the box has none. */
struct nc_door *nc_door_find(struct nc_egress *egress, uint64_t box);

/* The member of this door's group with that name; NULL. */
struct nc_door *nc_door_member(const struct nc_door *door, const char *name);

/* Takes the terms. */
void nc_door_change(struct nc_door *door, struct nc_door_terms *terms);

/* Ends its connections and frees it. */
void nc_door_shut(struct nc_door *door);

void nc_door_meter(const struct nc_door *door, bool last, struct nc_egress_meter *ret_meter);

/* Whether one more request may be made, and to this host; fills *ret_destination if so. */
enum nc_reason nc_door_enter(
	struct nc_door *door, const char *host, struct nc_egress_destination **ret_destination);

/* Whether it has a secret for HTTP in TLS to this host. */
bool nc_door_has_secret(const struct nc_door *door, const struct nc_host *host, uint16_t port);

/* Whether all bytes of its life are used up. */
bool nc_door_is_over(const struct nc_door *door);

/* How many bytes may be moved now, of those that are wanted. */
size_t nc_door_may(struct nc_door *door, enum nc_direction direction, size_t wanted);
void nc_door_took(struct nc_door *door, struct nc_egress_destination *destination,
	enum nc_direction direction, size_t n);

/* Tells the worker what was decided, or counts that it was not told; counts the denied. */
void nc_door_record(struct nc_door *door, struct nc_egress_decision *decision);

/* Frees those that were shut. */
void nc_doors_bury(struct nc_egress *egress);

/* Tries to accept again, and lets those go on that waited for the bandwidth. */
void nc_door_tick(struct nc_door *door);

/* Messages to the worker (worker.c). */
bool nc_tell_decision(struct nc_egress *egress, const struct nc_egress_decision *decision);
void nc_tell_over(struct nc_egress *egress, uint64_t box, enum nc_reason reason);

#endif
