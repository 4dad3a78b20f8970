/* Whose everything is that outlives a request. */
#include "engine/owner.h"

#include "base/text.h"

const struct nc_store_row nc_stores[NC_STORE_MAX] = {
	[NC_STORE_REPLIES] = {"replies", NC_OWNER_TENANT},
	/* shared ones would tell what somebody else has compiled: by `cached_program`, and by the
	 * time that it takes */
	[NC_STORE_PROGRAMS] = {"programs", NC_OWNER_TENANT},
	/* installers read hostile bytes: what came of a tenant's wish is for that tenant */
	[NC_STORE_ENVIRONMENTS] = {"environments", NC_OWNER_EITHER},
	[NC_STORE_BUILD_CACHES] = {"build caches", NC_OWNER_OPERATOR},
	[NC_STORE_IMAGES] = {"images", NC_OWNER_OPERATOR},
	[NC_STORE_INTERPRETERS] = {"interpreters", NC_OWNER_TENANT},
	[NC_STORE_IDEMPOTENCY] = {"idempotency", NC_OWNER_TENANT},
	[NC_STORE_JOBS] = {"jobs", NC_OWNER_TENANT},
	[NC_STORE_SANDBOXES] = {"sandboxes", NC_OWNER_TENANT},
	[NC_STORE_SNAPSHOTS] = {"snapshots", NC_OWNER_TENANT},
	[NC_STORE_HISTORY] = {"history", NC_OWNER_TENANT},
};

struct nc_digest *nc_owner_digest(enum nc_store store, const char *tenant)
{
	struct nc_digest *digest = nc_digest_new();

	nc_digest_text(digest, nc_stores[store].name);
	nc_digest_text(digest, nc_stores[store].owner == NC_OWNER_OPERATOR ? "" : tenant);
	if (nc_stores[store].owner != NC_OWNER_OPERATOR && *tenant)
		nc_digest_own(digest); /* who has a share of the room */
	return digest;
}

bool nc_owner_sees(enum nc_store store, const char *owner, const char *tenant)
{
	return nc_stores[store].owner == NC_OWNER_OPERATOR || !tenant || nc_streq(owner, tenant) ||
	       (nc_stores[store].owner == NC_OWNER_EITHER && !*owner);
}

bool nc_share_allows(size_t own, size_t all, size_t max)
{
	return all < max && own < 2 * (max - all);
}
