/*
 * The probes of control groups: each makes a group below our own, sets a limit, reads it back and
 * removes the group. They run with signals blocked and finish also when `nacre doctor` is
 * interrupted, so that no group stays behind.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/pidfd.h"
#include "base/text.h"
#include "kernel/cgroup.h"
#include "kernel/probe.h"

/* A group of the probe's. */
struct group {
	char path[640];
	int fd; /* of the directory */
};

/* A group that a process was in a moment ago may be busy for a little while. */
static void group_remove(struct group *group)
{
	for (int i = 0; i < 100; i++) {
		if (rmdir(group->path) == 0 || errno != EBUSY)
			break;
		(void)usleep(1000);
	}
	group->fd = nc_fd_close(group->fd);
}

static int group_make(struct group *group, const char *parent)
{
	char id[NC_ID_SIZE];
	int r = nc_id_new("pr", id);

	group->fd = -EBADF;
	if (r < 0)
		return r;
	if (snprintf(group->path, sizeof(group->path), "%s/nacre-%s", parent, id) >=
		(int)sizeof(group->path))
		return -ENAMETOOLONG;
	if (mkdir(group->path, 0700) < 0)
		return -errno;
	group->fd = open(group->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (group->fd < 0) {
		r = -errno;
		group_remove(group);
	}
	return r;
}

/* Writes a limit and looks whether wanted is in what the kernel then says. */
static int set_limit(int dir_fd, const char *file, const char *text, const char *wanted)
{
	cleanup_close int fd = -EBADF;
	cleanup_free char *now = NULL;
	size_t size;
	int r = nc_fd_write_control(dir_fd, file, text);

	if (r < 0)
		return r;
	fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = nc_fd_read_all(fd, 4096, &now, &size);
	if (r < 0)
		return r;
	return strstr(now, wanted) ? 0 : -EPROTO;
}

/* "major:minor" of the whole disk that / is on. */
static int root_disk(char *out, size_t size)
{
	cleanup_free char *parent = NULL;
	char path[96];
	struct stat status;

	if (stat("/", &status) < 0)
		return -errno;
	if (major(status.st_dev) == 0)
		return -ENODEV;
	(void)snprintf(out, size, "%u:%u", major(status.st_dev), minor(status.st_dev));
	(void)snprintf(path, sizeof(path), "/sys/dev/block/%s/partition", out);
	if (access(path, F_OK) < 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/sys/dev/block/%s/../dev", out);
	if (nc_fd_read_proc(path, &parent) < 0)
		return -ENODEV;
	parent[strcspn(parent, "\n")] = '\0';
	(void)snprintf(out, size, "%s", parent);
	return 0;
}

/* A limit of one controller, in the words of both versions. */
struct limit {
	enum nc_probe_id id;
	enum nc_cgroup_controller controller;
	const char *name; /* of the controller in version 2 */
	const char *v2_file, *v2_text;
	const char *v1_file, *v1_text;
	const char *what;
};

static const struct limit limits[] = {
	{NC_PROBE_CGROUP_MEMORY, NC_CGROUP_MEMORY, "memory", "memory.max", "16777216",
		"memory.limit_in_bytes", "16777216", "a group with a memory limit"},
	{NC_PROBE_CGROUP_CPU, NC_CGROUP_CPU, "cpu", "cpu.max", "50000 100000", "cpu.cfs_quota_us",
		"50000", "a group with a CPU quota"},
	{NC_PROBE_CGROUP_PIDS, NC_CGROUP_PIDS, "pids", "pids.max", "8", "pids.max", "8",
		"a group with a process limit"},
	{NC_PROBE_CGROUP_IO, NC_CGROUP_IO, "io", "io.max", NULL, "blkio.throttle.write_bps_device",
		NULL, "a group with a disk bandwidth limit"},
};

static int apply(const struct limit *limit, int group_fd, bool v2)
{
	const char *text = v2 ? limit->v2_text : limit->v1_text;
	const char *file = v2 ? limit->v2_file : limit->v1_file;
	char disk[32], line[64];
	int r;

	if (text)
		return set_limit(group_fd, file, text, text);
	r = root_disk(disk, sizeof(disk));
	if (r < 0)
		return r;
	(void)snprintf(line, sizeof(line), v2 ? "%s wbps=1048576" : "%s 1048576", disk);
	return set_limit(group_fd, file, line, "1048576");
}

/* The limit covers swap: version 1 limits memory and swap together, version 2 swap alone. */
static void probe_swap(struct nc_probes *probes, int group_fd, bool v2)
{
	int r = v2 ? set_limit(group_fd, "memory.swap.max", "0", "0")
		   : set_limit(group_fd, "memory.memsw.limit_in_bytes", "16777216", "16777216");

	if (r == -ENOENT)
		nc_probe_fail(probes, NC_PROBE_CGROUP_SWAP, 0,
			"this kernel does not count swap per group (swapaccount=1 at boot)");
	else
		nc_probe_judge(probes, NC_PROBE_CGROUP_SWAP, r, "a memory limit that covers swap");
}

static void probe_v1(struct nc_probes *probes, const struct limit *limit, const char *parent)
{
	struct group group;
	int r = group_make(&group, parent);

	if (r == 0) {
		r = apply(limit, group.fd, false);
		if (r == 0 && limit->id == NC_PROBE_CGROUP_MEMORY)
			probe_swap(probes, group.fd, false);
		group_remove(&group);
	}
	nc_probe_judge(probes, limit->id, r, limit->what);
}

/* Hands the controller down to the groups below dir, and says whether that was our doing. */
static int hand_down(const char *dir, const char *name, bool *ret_changed)
{
	cleanup_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_free char *enabled = NULL;
	char path[640], word[32];
	int r;

	if (fd < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "%s/cgroup.subtree_control", dir);
	r = nc_fd_read_proc(path, &enabled);
	if (r < 0)
		return r;
	enabled[strcspn(enabled, "\n")] = '\0';
	*ret_changed = !nc_text_has_word(enabled, ' ', name);
	if (!*ret_changed)
		return 0;
	(void)snprintf(word, sizeof(word), "+%s", name);
	return nc_fd_write_control(fd, "cgroup.subtree_control", word);
}

static void take_back(const char *dir, const char *name)
{
	cleanup_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char word[32];

	(void)snprintf(word, sizeof(word), "-%s", name);
	if (fd >= 0)
		(void)nc_fd_write_control(fd, "cgroup.subtree_control", word); /* best effort */
}

static int try_v2(struct nc_probes *probes, const struct limit *limit, const char *parent)
{
	struct group group;
	bool changed = false;
	int r = hand_down(parent, limit->name, &changed);

	if (r < 0)
		return r;
	r = group_make(&group, parent);
	if (r == 0) {
		r = apply(limit, group.fd, true);
		if (r == 0 && limit->id == NC_PROBE_CGROUP_MEMORY)
			probe_swap(probes, group.fd, true);
		group_remove(&group);
	}
	if (changed)
		take_back(parent, limit->name);
	return r;
}

/* Our own group cannot hand controllers down while processes are in it, unless it is the top. */
static void probe_v2(
	struct nc_probes *probes, const struct limit *limit, const struct nc_cgroup_host *host)
{
	int r = try_v2(probes, limit, host->v2_dir);

	if (r < 0 && try_v2(probes, limit, host->v2_top) == 0)
		r = 0;
	nc_probe_judge(probes, limit->id, r, limit->what);
}

/* Puts a process into the group and ends it with everything else there. */
static int check_kill(const struct group *group)
{
	cleanup_process int pidfd = -EBADF;
	siginfo_t info = {0};
	int r = nc_fork(&pidfd);

	if (r < 0)
		return r;
	if (r == 0) {
		if (nc_fd_write_control(group->fd, "cgroup.procs", "0") < 0 ||
			nc_fd_write_control(group->fd, "cgroup.kill", "1") < 0)
			nc_child_exit(1);
		for (;;)
			(void)pause();
	}
	r = nc_pidfd_wait(pidfd, nc_clock_ns() + NC_NS_PER_S, &info);
	if (r < 0)
		return r;
	pidfd = nc_fd_close(pidfd);
	return info.si_code == CLD_KILLED && info.si_status == SIGKILL ? 0 : -EPERM;
}

static void probe_kill(struct nc_probes *probes, const struct nc_cgroup_host *host)
{
	struct group group;
	int r = host->v2_dir ? group_make(&group, host->v2_dir) : -ENOENT;

	if (r == 0) {
		r = check_kill(&group);
		group_remove(&group);
	}
	if (r == 0) {
		nc_probe_pass(probes, NC_PROBE_CGROUP_KILL, 2, "a group killed by cgroup.kill");
		return;
	}
	if (host->v1_dir[NC_CGROUP_FREEZER] &&
		group_make(&group, host->v1_dir[NC_CGROUP_FREEZER]) == 0) {
		int frozen = set_limit(group.fd, "freezer.state", "FROZEN", "FR");

		(void)nc_fd_write_control(group.fd, "freezer.state", "THAWED"); /* it is empty */
		group_remove(&group);
		if (frozen == 0) {
			nc_probe_pass(probes, NC_PROBE_CGROUP_KILL, 1,
				"a group that can be frozen, then killed");
			return;
		}
	}
	nc_probe_fail(probes, NC_PROBE_CGROUP_KILL, r, "a group killed as a whole");
}

void nc_probe_cgroups(struct nc_probes *probes)
{
	struct nc_cgroup_host host = {0};
	sigset_t all;
	int r;

	(void)sigfillset(&all);
	if (sigprocmask(SIG_BLOCK, &all, NULL) < 0 || prctl(PR_SET_PDEATHSIG, 0) < 0)
		return;
	r = nc_cgroup_find(&host);
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		const struct limit *limit = &limits[i];

		if (r == 0 && host.v1_dir[limit->controller])
			probe_v1(probes, limit, host.v1_dir[limit->controller]);
		else if (r == 0 && host.v2_dir)
			probe_v2(probes, limit, &host);
		else
			nc_probe_fail(
				probes, limit->id, r, "no %s controller is mounted", limit->name);
	}
	if (!probes->probe[NC_PROBE_CGROUP_MEMORY].ok)
		nc_probe_fail(probes, NC_PROBE_CGROUP_SWAP, 0, "no group with a memory limit");
	probe_kill(probes, &host);
	nc_cgroup_done(&host);
}
