/*
 * Names to addresses: the hosts file as it was when we started, then the name servers of this host
 * or of the caller. Nothing is read from files later, and nothing is kept: every request is looked
 * up once, and dialled at what came back.
 */
#ifndef NC_RESOLVE_H
#define NC_RESOLVE_H

#include <ares.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/limits.h"
#include "config/host.h"
#include "egress/address.h"
#include "egress/loop.h"

#define NC_RESOLVE_SOCKETS_MAX 32U

struct nc_resolver;

struct nc_resolver_watch {
	struct nc_watch watch;
	struct nc_resolver *resolver;
	int fd; /* or -EBADF: free */
	uint32_t events;
};

struct nc_resolver {
	struct nc_loop *loop;
	ares_channel channel;
	struct nc_resolver_watch watches[NC_RESOLVE_SOCKETS_MAX];
	struct nc_hosts_entry *hosts; /* owned */
	size_t n_hosts;
	size_t n_open; /* lookups under way */
};

/*
 * Reads /etc/resolv.conf and the hosts file. servers: "192.0.2.1:5353,[2001:db8::1]", or NULL for
 * those of this host. hosts: NULL for /etc/hosts.
 */
int nc_resolver_init(struct nc_resolver *resolver, struct nc_loop *loop, const char *servers,
	const char *hosts, struct nacre_err *err);
void nc_resolver_done(struct nc_resolver *resolver);

/* All addresses of the name; n is 0 if there are none, and then found says whether the name
 * servers answered. More than NC_EGRESS_ADDRESSES_MAX: none. */
typedef void nc_resolved(void *user, const struct nc_address *addresses, size_t n, bool answered);

/* A question under way. */
struct nc_lookup;

/*
 * Asks. The callback comes once, perhaps before this returns, when *ret_lookup is NULL. -EAGAIN:
 * too many are under way; -ENOMEM.
 */
int nc_resolver_ask(struct nc_resolver *resolver, const char *name, nc_resolved *done, void *user,
	struct nc_lookup **ret_lookup);

/* The callback will not come. Accepts NULL. */
void nc_lookup_forget(struct nc_lookup *lookup);

/* When nc_resolver_tick() is to be called at the latest; -1: whenever. */
int nc_resolver_timeout_ms(struct nc_resolver *resolver);
void nc_resolver_tick(struct nc_resolver *resolver);

#endif
