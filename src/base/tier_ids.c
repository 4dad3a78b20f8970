/* The names of the tiers. */
#include "base/tier_ids.h"

const char *const nc_tier_names[NC_TIER_MAX] = {
	[NC_TIER_CONTAINER] = "container",
	[NC_TIER_PROCESS] = "process",
	[NC_TIER_WASM] = "wasm",
	[NC_TIER_DOCKER] = "docker",
	[NC_TIER_MICROVM] = "microvm",
	[NC_TIER_REMOTE] = "remote",
};
