/* The strength vector: from probes to grades, reasons and remedies. */
#include "kernel/strength.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "kernel/boxwire.h"
#include "kernel/cgroup_box.h"

/* What a judgement works on. */
struct judge {
	const struct nc_probes *probes;
	struct nc_strength *strength;
	bool is_root;
};

static bool ok(const struct judge *judge, enum nc_probe_id id)
{
	return judge->probes->probe[id].ok;
}

static const char *detail(const struct judge *judge, enum nc_probe_id id)
{
	return judge->probes->probe[id].detail;
}

static void grade(const struct judge *judge, enum nc_property property, enum nc_grade value,
	const char *fix, const char *format, ...) __attribute__((format(printf, 5, 6)));

static void grade(const struct judge *judge, enum nc_property property, enum nc_grade value,
	const char *fix, const char *format, ...)
{
	va_list arguments;

	judge->strength->property[property].grade = value;
	judge->strength->property[property].fix = fix;
	va_start(arguments, format);
	(void)vsnprintf(judge->strength->property[property].reason,
		sizeof(judge->strength->property[property].reason), format, arguments);
	va_end(arguments);
}

static bool sysctl_is(const char *path, const char *value)
{
	cleanup_free char *text = NULL;

	if (nc_fd_read_proc(path, &text) < 0)
		return false;
	text[strcspn(text, "\n")] = '\0';
	return strcmp(text, value) == 0;
}

/* Which of the known switches keeps user namespaces from us. */
static const char *namespace_fix(const struct judge *judge)
{
	if (sysctl_is("/proc/sys/user/max_user_namespaces", "0"))
		return "sudo sysctl -w user.max_user_namespaces=10000";
	if (sysctl_is("/proc/sys/kernel/unprivileged_userns_clone", "0"))
		return "sudo sysctl -w kernel.unprivileged_userns_clone=1";
	if (sysctl_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"))
		return "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";
	if (judge->is_root)
		return "run Nacre outside of the container that forbids it, or allow that "
		       "container "
		       "to make namespaces and mounts";
	return "run Nacre as root";
}

/* A box makes all of its namespaces in a user namespace, though root could do without. */
static bool has_namespace(const struct judge *judge, enum nc_probe_id id)
{
	return ok(judge, NC_PROBE_USER_NS) && ok(judge, id);
}

static void judge_namespace(const struct judge *judge, enum nc_property property,
	enum nc_probe_id id, const char *full, bool has_second, const char *second)
{
	if (has_namespace(judge, id))
		grade(judge, property, NC_GRADE_FULL, NULL, "%s", full);
	else
		grade(judge, property, has_second ? NC_GRADE_REDUCED : NC_GRADE_NONE,
			namespace_fix(judge), "%s (%s)", has_second ? second : "nothing holds it",
			detail(judge, ok(judge, NC_PROBE_USER_NS) ? id : NC_PROBE_USER_NS));
}

static void judge_filesystem(const struct judge *judge)
{
	static const enum nc_probe_id needed[] = {NC_PROBE_USER_NS, NC_PROBE_MOUNT_NS,
		NC_PROBE_MOUNT_API, NC_PROBE_READ_ONLY, NC_PROBE_PROC, NC_PROBE_PIVOT_ROOT};
	int abi = judge->probes->probe[NC_PROBE_LANDLOCK].value;

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		if (ok(judge, needed[i]))
			continue;
		/* before ABI 3 Landlock cannot deny truncate(): no wall around files */
		grade(judge, NC_STRENGTH_FILESYSTEM, abi >= 3 ? NC_GRADE_REDUCED : NC_GRADE_NONE,
			namespace_fix(judge), "%s (%s)",
			abi >= 3 ? "only Landlock holds it" : "nothing holds it",
			detail(judge, needed[i]));
		return;
	}
	grade(judge, NC_STRENGTH_FILESYSTEM, NC_GRADE_FULL, NULL,
		"a root of its own with a read-only base");
}

static void judge_identity(const struct judge *judge)
{
	if (ok(judge, NC_PROBE_ID_RANGE))
		grade(judge, NC_STRENGTH_IDENTITY, NC_GRADE_FULL, NULL,
			"a range of user ids per box");
	else if (ok(judge, NC_PROBE_USER_NS))
		grade(judge, NC_STRENGTH_IDENTITY, NC_GRADE_REDUCED,
			judge->is_root ? namespace_fix(judge) : "run Nacre as root",
			"boxes share one user id of the host's");
	else if (judge->is_root)
		grade(judge, NC_STRENGTH_IDENTITY, NC_GRADE_FULL, NULL,
			"a user id of its own per box");
	else
		grade(judge, NC_STRENGTH_IDENTITY, NC_GRADE_NONE, namespace_fix(judge),
			"boxes run as the calling user (%s)", detail(judge, NC_PROBE_USER_NS));
}

static void judge_filters(const struct judge *judge)
{
	int abi = judge->probes->probe[NC_PROBE_LANDLOCK].value;

	if (!ok(judge, NC_PROBE_SECCOMP))
		grade(judge, NC_STRENGTH_SYSCALLS, NC_GRADE_NONE,
			"use a kernel with CONFIG_SECCOMP_FILTER", "no filter (%s)",
			detail(judge, NC_PROBE_SECCOMP));
	else if (!ok(judge, NC_PROBE_SECCOMP_NOTIFY))
		grade(judge, NC_STRENGTH_SYSCALLS, NC_GRADE_REDUCED,
			"use a kernel of 5.5 or newer that allows seccomp listeners",
			"a filter, but refusals go unreported (%s)",
			detail(judge, NC_PROBE_SECCOMP_NOTIFY));
	else
		grade(judge, NC_STRENGTH_SYSCALLS, NC_GRADE_FULL, NULL,
			"a seccomp filter that reports what it refuses");
	if (abi >= 6)
		grade(judge, NC_STRENGTH_ACCESS, NC_GRADE_FULL, NULL, "Landlock ABI %d", abi);
	else if (abi >= 1)
		grade(judge, NC_STRENGTH_ACCESS, NC_GRADE_REDUCED, "use a kernel of 6.12 or newer",
			"Landlock ABI %d, which has no scopes for signals and sockets", abi);
	else
		grade(judge, NC_STRENGTH_ACCESS, NC_GRADE_NONE,
			"add landlock to the kernel's lsm= boot parameter", "no Landlock (%s)",
			detail(judge, NC_PROBE_LANDLOCK));
}

/* A limit that a control group holds, or else something weaker. */
static void judge_limit(const struct judge *judge, enum nc_property property, enum nc_probe_id id,
	const char *full, enum nc_grade otherwise, const char *second)
{
	if (ok(judge, id))
		grade(judge, property, NC_GRADE_FULL, NULL, "%s", full);
	else
		grade(judge, property, otherwise,
			judge->is_root
				? "mount the cgroup controllers and let Nacre write below its group"
				: "run Nacre as root",
			"%s (%s)", second, detail(judge, id));
}

static void judge_limits(const struct judge *judge)
{
	judge_limit(judge, NC_STRENGTH_MEMORY, NC_PROBE_CGROUP_MEMORY,
		"a cgroup limit, swap included", NC_GRADE_REDUCED, "rlimits and sampling");
	if (ok(judge, NC_PROBE_CGROUP_MEMORY) && !ok(judge, NC_PROBE_CGROUP_SWAP))
		grade(judge, NC_STRENGTH_MEMORY, NC_GRADE_REDUCED,
			"boot with swapaccount=1, or use no swap",
			"a cgroup limit that does not cover swap (%s)",
			detail(judge, NC_PROBE_CGROUP_SWAP));
	judge_limit(judge, NC_STRENGTH_CPU, NC_PROBE_CGROUP_CPU, "a cgroup quota", NC_GRADE_NONE,
		"no quota; an rlimit holds the CPU time of each process");
	judge_limit(judge, NC_STRENGTH_PIDS, NC_PROBE_CGROUP_PIDS, "a cgroup limit",
		NC_GRADE_REDUCED, "an rlimit that all processes of the user share");
	grade(judge, NC_STRENGTH_IO, NC_GRADE_NONE, "none: no box has such a limit in this version",
		"no limit (%s)",
		ok(judge, NC_PROBE_CGROUP_IO) ? "control groups of this host could hold one"
					      : detail(judge, NC_PROBE_CGROUP_IO));
	judge_namespace(judge, NC_STRENGTH_DISK, NC_PROBE_MOUNT_API,
		"file systems with limits of their own", true, "an rlimit per file");
}

static void judge_kill(const struct judge *judge)
{
	bool pid_ns = has_namespace(judge, NC_PROBE_PID_NS);

	if (pid_ns || judge->probes->probe[NC_PROBE_CGROUP_KILL].value == 2)
		grade(judge, NC_STRENGTH_KILL, NC_GRADE_FULL, NULL, "%s",
			pid_ns ? "a pid namespace ends with its first process"
			       : "a group killed by cgroup.kill");
	else if (ok(judge, NC_PROBE_CGROUP_KILL))
		grade(judge, NC_STRENGTH_KILL, NC_GRADE_REDUCED, namespace_fix(judge), "%s",
			detail(judge, NC_PROBE_CGROUP_KILL));
	else
		grade(judge, NC_STRENGTH_KILL, NC_GRADE_FULL, NULL,
			"a program may make no processes, so that none can survive");
}

static void judge_hypervisor(const struct judge *judge)
{
	const char *fix = NULL;

	if (!ok(judge, NC_PROBE_KVM))
		fix = judge->is_root
			      ? "use a machine with VT-x or AMD-V (nested, if it is virtual)"
			      : "sudo usermod -aG kvm $USER, on a machine with VT-x or AMD-V";
	grade(judge, NC_STRENGTH_HYPERVISOR, fix ? NC_GRADE_NONE : NC_GRADE_FULL, fix, "%s",
		detail(judge, NC_PROBE_KVM));
}

void nc_strength_judge(
	const struct nc_probes *probes, bool is_root, struct nc_strength *ret_strength)
{
	struct judge judge = {.probes = probes, .strength = ret_strength, .is_root = is_root};
	bool filter = ok(&judge, NC_PROBE_SECCOMP);
	bool scopes = probes->probe[NC_PROBE_LANDLOCK].value >= 6;

	judge_filesystem(&judge);
	judge_identity(&judge);
	judge_namespace(&judge, NC_STRENGTH_PROCESSES, NC_PROBE_PID_NS, "a pid namespace", scopes,
		"Landlock keeps signals in, but other processes show");
	judge_namespace(&judge, NC_STRENGTH_NETWORK, NC_PROBE_NET_NS,
		"a net namespace without a way out", filter, "the filter refuses sockets");
	judge_namespace(&judge, NC_STRENGTH_IPC, NC_PROBE_IPC_NS, "an ipc namespace", filter,
		"the filter refuses System V IPC");
	judge_filters(&judge);
	judge_limits(&judge);
	judge_kill(&judge);
	judge_hypervisor(&judge);
}

void nc_strength_nothing(const char *why, const char *fix, struct nc_strength *ret_strength)
{
	struct judge judge = {.strength = ret_strength};

	for (enum nc_property i = 0; i < NC_STRENGTH_MAX; i++)
		grade(&judge, i, NC_GRADE_NONE, fix, "%s", why);
}

const enum nc_grade nc_strength_floor[NC_STRENGTH_MAX] = {
	[NC_STRENGTH_FILESYSTEM] = NC_GRADE_REDUCED,
	[NC_STRENGTH_PROCESSES] = NC_GRADE_REDUCED,
	[NC_STRENGTH_NETWORK] = NC_GRADE_REDUCED,
	[NC_STRENGTH_IPC] = NC_GRADE_REDUCED,
	[NC_STRENGTH_SYSCALLS] = NC_GRADE_REDUCED,
	[NC_STRENGTH_KILL] = NC_GRADE_REDUCED,
};
