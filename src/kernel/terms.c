/* What a holder's boxes can do. */
#include "kernel/terms.h"

#include "kernel/boxwire.h"
#include "kernel/cgroup_box.h"
#include "kernel/means.h"

static void judge_limits(const struct nc_box_host *host, bool has_mounts, bool *holds)
{
	static const unsigned int needs[NC_NAMED_MAX] = {
		[NC_NAMED_MEMORY] = NC_CGROUP_CAN_MEMORY,
		[NC_NAMED_CPUS] = NC_CGROUP_CAN_CPU,
		[NC_NAMED_CPU_TIME] = NC_CGROUP_CAN_CPU_TIME,
		[NC_NAMED_PIDS] = NC_CGROUP_CAN_PIDS,
	};

	for (size_t i = 0; i < NC_NAMED_MAX; i++)
		holds[i] = (host->cgroups & needs[i]) == needs[i];
	/* a container's user namespace counts processes where no group does */
	holds[NC_NAMED_PIDS] |= has_mounts;
	holds[NC_NAMED_DISK] = holds[NC_NAMED_INODES] = has_mounts;
}

void nc_terms_judge(
	const struct nc_box_host *host, enum nc_tier tier, struct nc_tier_terms *ret_terms)
{
	const struct nc_means means = {.landlock = host->landlock,
		.reported = true,
		.pid_ns = host->user_ns,
		.alone = !host->user_ns && host->cgroups == 0};
	const bool has_mounts = tier == NC_TIER_CONTAINER;

	*ret_terms = (struct nc_tier_terms){0};
	if (tier != NC_TIER_CONTAINER && tier != NC_TIER_PROCESS)
		return;
	ret_terms->here = tier == NC_TIER_PROCESS || host->user_ns;
	ret_terms->stops = host->cgroups & NC_CGROUP_CAN_FREEZE;
	ret_terms->shares = has_mounts && host->cgroups != 0;
	ret_terms->mounts = ret_terms->warms = has_mounts && host->user_ns;
	ret_terms->users = ret_terms->writes = ret_terms->mounts && host->ranges;
	judge_limits(host, has_mounts, ret_terms->holds);
	nc_means_grade(host, tier, &means, ret_terms->grades);
}

bool nc_terms_are_enough(const struct nc_tier_terms *terms, const struct nc_tier_terms *others)
{
	for (size_t i = 0; i < NC_STRENGTH_MAX; i++)
		if (terms->grades[i] < others->grades[i])
			return false;
	return true;
}
