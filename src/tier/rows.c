/* The tiers of this version. A file of its own, so that a build can have another table. */
#include "tier/rows.h"

const struct nc_tier_row nc_tier_rows[NC_TIER_MAX] = {
	{NC_TIER_PROCESS, NC_TIER_FIRST_HOLDER, nc_tier_judge_process},
	{NC_TIER_WASM, NULL, nc_tier_judge_wasm},
	{NC_TIER_CONTAINER, NC_TIER_FIRST_HOLDER, nc_tier_judge_container},
	{NC_TIER_DOCKER, NULL, nc_tier_judge_docker},
	{NC_TIER_MICROVM, NULL, nc_tier_judge_microvm},
	{NC_TIER_REMOTE, NULL, nc_tier_judge_remote},
};
