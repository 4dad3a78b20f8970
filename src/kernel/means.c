/* What a box is held by, and what that is worth. */
#include "kernel/means.h"

#include "kernel/cgroup_box.h"

const char *const nc_grade_names[NC_GRADE_MAX] = {
	[NC_GRADE_NONE] = "none",
	[NC_GRADE_REDUCED] = "reduced",
	[NC_GRADE_FULL] = "full",
};

const char *const nc_property_names[NC_STRENGTH_MAX] = {
	[NC_STRENGTH_FILESYSTEM] = "filesystem",
	[NC_STRENGTH_IDENTITY] = "identity",
	[NC_STRENGTH_PROCESSES] = "processes",
	[NC_STRENGTH_NETWORK] = "network",
	[NC_STRENGTH_IPC] = "ipc",
	[NC_STRENGTH_SYSCALLS] = "syscalls",
	[NC_STRENGTH_ACCESS] = "access",
	[NC_STRENGTH_MEMORY] = "memory",
	[NC_STRENGTH_CPU] = "cpu",
	[NC_STRENGTH_PIDS] = "pids",
	[NC_STRENGTH_DISK] = "disk",
	[NC_STRENGTH_IO] = "io",
	[NC_STRENGTH_KILL] = "kill",
	[NC_STRENGTH_HYPERVISOR] = "hypervisor",
};

static enum nc_grade full_or(bool full, enum nc_grade otherwise)
{
	return full ? NC_GRADE_FULL : otherwise;
}

/* What a box without mounts and namespaces of its own lacks. */
static void weaken_process(const struct nc_box_host *host, const struct nc_means *means,
	enum nc_grade grades[static NC_STRENGTH_MAX])
{
	/* before ABI 3 Landlock cannot deny truncate(): no wall around files */
	grades[NC_STRENGTH_FILESYSTEM] = means->landlock >= 3 ? NC_GRADE_REDUCED : NC_GRADE_NONE;
	if (!host->ranges && !means->pid_ns)
		grades[NC_STRENGTH_IDENTITY] = NC_GRADE_NONE;
	grades[NC_STRENGTH_NETWORK] = NC_GRADE_REDUCED;
	grades[NC_STRENGTH_IPC] = NC_GRADE_REDUCED;
	grades[NC_STRENGTH_DISK] = NC_GRADE_REDUCED;
	if (means->pid_ns)
		return;
	/* it cannot signal others, but sees that they are there */
	grades[NC_STRENGTH_PROCESSES] = NC_GRADE_REDUCED;
	grades[NC_STRENGTH_KILL] =
		full_or(means->alone || host->cgroups & NC_CGROUP_CAN_KILL, NC_GRADE_REDUCED);
}

void nc_means_grade(const struct nc_box_host *host, enum nc_tier tier, const struct nc_means *means,
	enum nc_grade ret_grades[static NC_STRENGTH_MAX])
{
	const uint32_t memory = NC_CGROUP_CAN_MEMORY | NC_CGROUP_CAN_SWAP;

	/* namespaces, the root, the filter and the limited file system: without one there is no box
	 */
	for (size_t i = 0; i < NC_STRENGTH_MAX; i++)
		ret_grades[i] = NC_GRADE_FULL;
	/* who is root of it is whoever he likes in it, and a wall between its users is none */
	ret_grades[NC_STRENGTH_IDENTITY] = full_or(host->ranges && !means->users, NC_GRADE_REDUCED);
	ret_grades[NC_STRENGTH_SYSCALLS] = full_or(means->reported, NC_GRADE_REDUCED);
	ret_grades[NC_STRENGTH_ACCESS] = full_or(
		means->landlock >= 6, means->landlock > 0 ? NC_GRADE_REDUCED : NC_GRADE_NONE);
	ret_grades[NC_STRENGTH_MEMORY] =
		full_or((host->cgroups & memory) == memory, NC_GRADE_REDUCED);
	ret_grades[NC_STRENGTH_CPU] = full_or(host->cgroups & NC_CGROUP_CAN_CPU, NC_GRADE_NONE);
	ret_grades[NC_STRENGTH_PIDS] =
		full_or(host->cgroups & NC_CGROUP_CAN_PIDS, NC_GRADE_REDUCED);
	ret_grades[NC_STRENGTH_IO] = NC_GRADE_NONE;
	ret_grades[NC_STRENGTH_HYPERVISOR] = NC_GRADE_NONE;
	if (tier == NC_TIER_PROCESS)
		weaken_process(host, means, ret_grades);
}

const char *nc_means_refuse(const struct nc_box_host *host, const struct nc_box_order *order)
{
	const struct nc_means best = {.landlock = UINT32_MAX,
		.reported = true,
		.pid_ns = host->user_ns,
		.alone = host->cgroups == 0,
		.users = order->flags & NC_ORDER_USERS};
	enum nc_grade grades[NC_STRENGTH_MAX];

	nc_means_grade(host, order->tier, &best, grades);
	for (size_t i = 0; i < NC_STRENGTH_MAX; i++)
		if (grades[i] < order->required[i])
			return "No box here is held as is required";
	if (!(order->flags & (NC_ORDER_USERS | NC_ORDER_WRITABLE)) && order->user[0] == '\0')
		return NULL;
	if (order->tier != NC_TIER_CONTAINER)
		return "A process box has one user, and the host's root";
	return host->ranges ? NULL
			    : "Boxes of an ordinary user have one user id, so there is no root in "
			      "them and no root to write to: start nacre as root";
}

void nc_means_tell(
	const struct nc_box_host *host, const struct nc_means *means, struct nc_box_end *end)
{
	nc_means_grade(host, end->tier, means, end->held);
	end->alone = means->alone;
}
