/*
 * Executions for one client over a socket: requests come as frames, output and replies go back the
 * same way (docs/library.md). What comes is taken for hostile: a frame that breaks the protocol
 * ends the service, and so does a client that hangs up or never reads.
 */
#ifndef NC_SERVICE_H
#define NC_SERVICE_H

#include "engine/engine.h"

struct nc_service;

struct nc_service_setup {
	uv_loop_t *loop;
	struct nc_engine *engine;	/* nobody else's; must outlive the service's executions */
	int fd;				/* a stream socket, non-blocking; stays the caller's */
	size_t max_running, max_queued; /* what the client is told */
	void *context;
	void (*ended)(void *context); /* once: there is nobody to serve any more */
};

/* Greets the client. 0 or -errno. */
int nc_service_new(const struct nc_service_setup *setup, struct nc_service **ret_service);

/* After nc_engine_free(): what it is told of executions must not come later. Accepts NULL. */
void nc_service_free(struct nc_service *service);

/* Tells a client why there will be no service: blocks for a second at most. */
void nc_service_refuse(int fd, const struct nacre_err *err);

#endif
