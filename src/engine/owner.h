/*
 * Whose everything is that outlives a request.
 *
 * Every store and cache has one row in the table of owner.c, which says who may be told of what is
 * in it. Keys of what is kept by content begin with the owner (nc_owner_digest); what is kept by
 * name is compared with nc_owner_sees. docs/api.md has the same table for people.
 */
#ifndef NC_OWNER_H
#define NC_OWNER_H

#include <stdbool.h>

#include "engine/keep.h"

enum nc_store {
	NC_STORE_REPLIES,
	NC_STORE_PROGRAMS,
	NC_STORE_ENVIRONMENTS,
	NC_STORE_BUILD_CACHES,
	NC_STORE_IMAGES,
	NC_STORE_INTERPRETERS,
	NC_STORE_IDEMPOTENCY,
	NC_STORE_JOBS,
	NC_STORE_SANDBOXES,
	NC_STORE_SNAPSHOTS,
	NC_STORE_HISTORY,
	NC_STORE_MAX,
};

enum nc_owner {
	NC_OWNER_TENANT,   /* the tenant that asked for it, and nobody else's */
	NC_OWNER_EITHER,   /* the same, or everybody's if the operator made it */
	NC_OWNER_OPERATOR, /* everybody's: nothing of any request is in it */
};

struct nc_store_row {
	const char *name;
	enum nc_owner owner;
};

extern const struct nc_store_row nc_stores[NC_STORE_MAX];

/* Begins the key of something in the store; "" is the operator, who has no tenant. As
 * nc_digest_new. */
struct nc_digest *nc_owner_digest(enum nc_store store, const char *tenant);

/* Whether a tenant may be told of what is owner's; tenant NULL: an administrator asks. */
bool nc_owner_sees(enum nc_store store, const char *owner, const char *tenant);

/*
 * Whether a tenant that has `own` of something may have one more, of which there are `all` now and
 * may be `max`: it may have twice what is left for others. So one alone gets two thirds, n tenants
 * 2/(2n+1) each, and there is always some left for one more.
 */
bool nc_share_allows(size_t own, size_t all, size_t max);

#endif
