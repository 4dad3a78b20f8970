/* The tiers, by the names that requests, replies and configuration files use, and on the wire. */
#ifndef NC_TIER_IDS_H
#define NC_TIER_IDS_H

enum nc_tier {
	NC_TIER_CONTAINER, /* namespaces and a root of its own: the usual one, and 0 */
	NC_TIER_PROCESS,   /* the host's tree, behind Landlock and the filter */
	NC_TIER_WASM,
	NC_TIER_DOCKER,
	NC_TIER_MICROVM,
	NC_TIER_REMOTE,
	NC_TIER_MAX,
};

extern const char *const nc_tier_names[NC_TIER_MAX];

#endif
