/* What boxes wait for, without asking after each of a thousand at every turn. */
#ifndef NC_SPAWNER_EVENTS_H
#define NC_SPAWNER_EVENTS_H

#include "spawner/table.h"

#define NC_EVENTS_MAX 64

enum nc_event_kind {
	NC_EVENT_WORKER, /* its pidfd */
	NC_EVENT_SIGNAL,
	NC_EVENT_CLIENT, /* one has said something */
	NC_EVENT_BOX,	 /* what its state waits for */
	NC_EVENT_DENIED, /* a system call was refused in it */
};

struct nc_event {
	enum nc_event_kind kind;
	size_t box; /* by its index; of a client, its own */
};

/* Watches a descriptor that is no box's, for good. 0 or -errno. */
int nc_events_watch(int events_fd, int fd, enum nc_event_kind kind, size_t index);

/* The descriptor that the box's state waits for; -EBADF: none. */
int nc_events_awaited(const struct nc_box *box);

/* Whether it still waits for what it did when the events were taken. */
bool nc_events_is_due(const struct nc_box *box);

/* Before each wait: what may have changed since the last. False: something could not be watched. */
bool nc_events_arm(int events_fd, struct nc_table *table);

/* Returns how many there are, at most NC_EVENTS_MAX, or -errno. timeout_ms as for poll(). */
int nc_events_wait(int events_fd, struct nc_box *boxes, int timeout_ms, struct nc_event *ret);

#endif
