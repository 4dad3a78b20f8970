/* The tiers of the build for tests: boxes of "remote" are plain processes of nacre-plain. */
#include "tier/rows.h"

static void judge_plain(const struct nc_tier_evidence *evidence, struct nc_tier_report *out)
{
	(void)evidence;
	nc_tier_say(out, NC_GRADE_FULL, NULL, "plain processes, which nothing holds: for tests");
}

const struct nc_tier_row nc_tier_rows[NC_TIER_MAX] = {
	{NC_TIER_PROCESS, NC_TIER_FIRST_HOLDER, nc_tier_judge_process},
	{NC_TIER_WASM, NULL, nc_tier_judge_wasm},
	{NC_TIER_CONTAINER, NC_TIER_FIRST_HOLDER, nc_tier_judge_container},
	{NC_TIER_DOCKER, NULL, nc_tier_judge_docker},
	{NC_TIER_MICROVM, NULL, nc_tier_judge_microvm},
	{NC_TIER_REMOTE, "nacre-plain", judge_plain},
};
