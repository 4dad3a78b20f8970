/*
 * The connections of a daemon: who may have one more, and whose is ended to make place.
 *
 * Theory of operation: whoever has shown a key counts as a tenant, and has a share (nc_share_allows
 * in engine/owner.h). Whoever has not is a stranger. There are so many strangers at most, of one
 * address and in all; one more ends the one that has waited for longest at the address that has
 * most of them. So a newcomer always gets in, and stays if it shows a key: no number of addresses
 * that only hold connections keeps others out.
 */
#ifndef NC_LINKS_H
#define NC_LINKS_H

#include "server/http.h"

/* One connection. */
struct nc_link {
	struct nc_http *http;
	struct nc_link *next, **place; /* younger ones come first */
	struct nc_exchange *exchange;  /* NULL: between requests */
	int fd;			       /* libmicrohttpd's */
	uint64_t deadline_ns;	       /* 0: none */
	uint64_t sent_ns;	       /* since when its reply is on its way; 0: none is */
	bool used;		       /* it has had a request */
	bool lingers;		       /* it is answered, and its client may send still */
	bool known;		       /* it has shown a key, or needs none */
	bool ends;		       /* it was ended to make place */
	bool counted;		       /* by nc_links_shed() */
	size_t nth;		       /* it was so many strangers of its address when it came */
	char tenant[NC_REQUEST_NAME_MAX + 1]; /* of one that is known */
	struct sockaddr_storage peer;
};

struct nc_links {
	struct nc_link *first;
	size_t count;
};

/* Whether one more may come from there; another may be ended for it. */
bool nc_links_make_place(struct nc_links *links, const struct sockaddr *peer, size_t *ret_nth);

/* It has shown whose it is. false: the tenant has its share already. */
bool nc_links_know(struct nc_links *links, struct nc_link *link, const char *tenant);

/* Bytes of bodies that are held for a tenant. */
size_t nc_links_bodies(const struct nc_links *links, const char *tenant);

/* Ends connections whose clients do not take their replies, where a tenant has too many bytes of
 * them. */
void nc_links_shed(struct nc_links *links);

#endif
