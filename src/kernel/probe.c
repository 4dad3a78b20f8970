/* Running the probes: a child each, results in shared memory, a deadline. */
#include "kernel/probe.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pidfd.h"

/* The slowest takes some milliseconds; a machine that is this much slower has other problems. */
#define GROUP_TIMEOUT_NS (2 * NC_NS_PER_S)

const char *const nc_probe_names[NC_PROBE_MAX] = {
	[NC_PROBE_USER_NS] = "user_namespace",
	[NC_PROBE_ID_RANGE] = "id_range",
	[NC_PROBE_MOUNT_NS] = "mount_namespace",
	[NC_PROBE_PID_NS] = "pid_namespace",
	[NC_PROBE_NET_NS] = "net_namespace",
	[NC_PROBE_IPC_NS] = "ipc_namespace",
	[NC_PROBE_UTS_NS] = "uts_namespace",
	[NC_PROBE_CGROUP_NS] = "cgroup_namespace",
	[NC_PROBE_TIME_NS] = "time_namespace",
	[NC_PROBE_MOUNT_API] = "mount_api",
	[NC_PROBE_READ_ONLY] = "read_only_tree",
	[NC_PROBE_PROC] = "own_proc",
	[NC_PROBE_PIVOT_ROOT] = "pivot_root",
	[NC_PROBE_OVERLAYFS] = "overlayfs",
	[NC_PROBE_LANDLOCK] = "landlock",
	[NC_PROBE_SECCOMP] = "seccomp",
	[NC_PROBE_SECCOMP_NOTIFY] = "seccomp_notify",
	[NC_PROBE_PIDFD] = "pidfd",
	[NC_PROBE_CGROUP_MEMORY] = "cgroup_memory",
	[NC_PROBE_CGROUP_SWAP] = "cgroup_swap",
	[NC_PROBE_CGROUP_CPU] = "cgroup_cpu",
	[NC_PROBE_CGROUP_PIDS] = "cgroup_pids",
	[NC_PROBE_CGROUP_IO] = "cgroup_io",
	[NC_PROBE_CGROUP_KILL] = "cgroup_kill",
	[NC_PROBE_KVM] = "kvm",
};

static const struct {
	const char *name;
	void (*run)(struct nc_probes *probes);
} groups[] = {
	{"namespaces", nc_probe_namespaces},
	{"id_range", nc_probe_id_range},
	{"mounts", nc_probe_mounts},
	{"landlock", nc_probe_landlock},
	{"seccomp", nc_probe_seccomp},
	{"pidfd", nc_probe_pidfd},
	{"cgroups", nc_probe_cgroups},
	{"kvm", nc_probe_kvm},
};

__attribute__((format(printf, 5, 0))) static void set_outcome(struct nc_probe *probe, bool ok,
	int value, int error, const char *format, va_list arguments)
{
	int used;

	probe->ok = ok;
	probe->value = value;
	used = vsnprintf(probe->detail, sizeof(probe->detail), format, arguments);
	if (error < 0 && used >= 0 && (size_t)used < sizeof(probe->detail))
		(void)snprintf(probe->detail + used, sizeof(probe->detail) - (size_t)used, ": %s",
			nc_errno_text(error));
}

void nc_probe_pass(
	struct nc_probes *probes, enum nc_probe_id id, int value, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	set_outcome(&probes->probe[id], true, value, 0, format, arguments);
	va_end(arguments);
}

void nc_probe_fail(
	struct nc_probes *probes, enum nc_probe_id id, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	set_outcome(&probes->probe[id], false, 0, error, format, arguments);
	va_end(arguments);
}

void nc_probe_judge(struct nc_probes *probes, enum nc_probe_id id, int error, const char *what)
{
	if (error < 0)
		nc_probe_fail(probes, id, error, "%s", what);
	else
		nc_probe_pass(probes, id, 0, "%s", what);
}

static int run_group(size_t index, struct nc_probes *shared)
{
	cleanup_process int pidfd = -EBADF;
	uint64_t started = nc_clock_ns();
	siginfo_t info;
	int r = nc_fork(&pidfd);

	if (r < 0)
		return r;
	if (r == 0) {
		groups[index].run(shared);
		nc_child_exit(0);
	}
	r = nc_pidfd_wait(pidfd, started + GROUP_TIMEOUT_NS, &info);
	if (r == 0)
		pidfd = nc_fd_close(pidfd);
	nc_log(NC_LOG_DEBUG, "Probed", NC_LOG_TEXT("group", groups[index].name),
		NC_LOG_INT("microseconds", (int64_t)((nc_clock_ns() - started) / 1000)));
	return r == -ETIMEDOUT ? 0 : r; /* what it did not get to is reported as such */
}

int nc_probe_all(struct nc_probes *ret_probes, struct nacre_err *err)
{
	struct nc_probes *shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int r = 0;

	if (shared == MAP_FAILED)
		return nc_err_errno(err, -errno, "Memory for the probes");
	for (enum nc_probe_id id = 0; id < NC_PROBE_MAX; id++)
		nc_probe_fail(shared, id, 0, "the probe did not come to an end");
	for (size_t i = 0; r == 0 && i < sizeof(groups) / sizeof(groups[0]); i++) {
		r = run_group(i, shared);
		if (r < 0)
			nc_err_errno(err, r, "Probe of %s", groups[i].name);
	}
	if (r == 0)
		memcpy(ret_probes, shared, sizeof(*ret_probes));
	(void)munmap(shared, sizeof(*shared));
	return r;
}
