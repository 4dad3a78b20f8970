/* Addresses: which are somebody's on the internet, and which lead to this host or its neighbours.
 */
#ifndef NC_ADDRESS_H
#define NC_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "config/host.h"
#include "egress/told.h"

struct nc_address {
	int family;		 /* AF_INET or AF_INET6 */
	unsigned char bytes[16]; /* the first 4 for AF_INET */
};

/* How far away an address is, the most harmless first. */
enum nc_reach {
	NC_REACH_PUBLIC,  /* anybody's */
	NC_REACH_PRIVATE, /* of this host or a network around it: for entries marked so */
	NC_REACH_NEVER,	  /* metadata services, links, groups, tunnels: only if listed themselves */
	NC_REACH_MAX,
};

enum nc_reach nc_address_reach(const struct nc_address *address);

/* Of a host that is an address. */
struct nc_address nc_address_of_host(const struct nc_host *host);

/* For connect(); returns the size. */
socklen_t nc_address_fill(
	const struct nc_address *address, uint16_t port, struct sockaddr_storage *ret_socket);

/* False: neither family. */
bool nc_address_take(const struct sockaddr *socket, struct nc_address *ret_address);

bool nc_address_equal(const struct nc_address *a, const struct nc_address *b);

void nc_address_text(const struct nc_address *address, char out[static NC_ADDRESS_TEXT_SIZE]);

/*
 * Whether packets to it would stay on this host, whatever addresses that has at this moment: asks
 * the kernel for the way there, and sends nothing. -errno: there is no way.
 */
int nc_address_is_own(const struct nc_address *address);

#endif
