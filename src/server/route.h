/*
 * The table of routes: what may be asked, by whom, and who answers. rest/routes.c has the table;
 * another family of routes adds its lines there, with handlers of its own.
 */
#ifndef NC_ROUTE_H
#define NC_ROUTE_H

#include "server/http.h"

struct nc_server;

enum nc_route_flag {
	NC_ROUTE_CREATES = 1 << 0, /* honours Idempotency-Key */
	NC_ROUTE_JSON = 1 << 1,	   /* its body is JSON */
	NC_ROUTE_FREE = 1 << 2,	   /* not counted against the rate of its tenant */
	NC_ROUTE_DRAINS = 1 << 3,  /* answered while we stop, too */
	NC_ROUTE_PAGE = 1 << 4,	   /* for people: a browser may come from anywhere */
	NC_ROUTE_STREAM = 1 << 5,  /* runs with the head, and takes the body as it comes */
	NC_ROUTE_SOCKET = 1 << 6,  /* a WebSocket: it changes things although it is a GET */
	NC_ROUTE_SPOOLS = 1 << 7,  /* a large body comes in a file */
};

struct nc_route {
	const char *method;
	const char *pattern; /* "/v1/jobs/{id}": what stands for {} becomes exchange->part */
	enum nc_role role;   /* the least that the caller must have */
	unsigned int flags;  /* enum nc_route_flag */
	size_t body_max;     /* 0: it takes none */
	void (*run)(struct nc_server *server, struct nc_exchange *exchange);
};

/* Ends in one without a method. */
extern const struct nc_route nc_routes[];

/*
 * Finds the route of a request and its parts. NULL: none, and *ret_allow, of allow_size, has the
 * methods that the path knows; "": there is no such path.
 */
const struct nc_route *nc_route_find(const struct nc_route *routes, struct nc_exchange *exchange,
	char *ret_allow, size_t allow_size);

#endif
