/* User namespaces, and the probes of all kinds of namespaces. */
#include "kernel/userns.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/pidfd.h"
#include "kernel/probe.h"

/* A range that no distribution gives away: far above subuid ranges and systemd's own. */
#define RANGE_FIRST 2000000000U
#define RANGE_SIZE 65536U

int nc_userns_enter_self(void)
{
	char uid_map[32], gid_map[32];
	int r;

	(void)snprintf(uid_map, sizeof(uid_map), "0 %u 1", geteuid());
	(void)snprintf(gid_map, sizeof(gid_map), "0 %u 1", getegid());
	if (unshare(CLONE_NEWUSER) < 0)
		return -errno;
	/* the kernel wants it before an unprivileged gid_map: else groups could be shed */
	r = nc_fd_write_control(AT_FDCWD, "/proc/self/setgroups", "deny");
	if (r == 0)
		r = nc_fd_write_control(AT_FDCWD, "/proc/self/gid_map", gid_map);
	if (r == 0)
		r = nc_fd_write_control(AT_FDCWD, "/proc/self/uid_map", uid_map);
	return r;
}

/* The first process of a new pid namespace must see itself as 1. */
static int check_pid_ns(void)
{
	cleanup_process int pidfd = -EBADF;
	siginfo_t info = {0};
	pid_t pid = fork(); /* not nc_fork: in the new namespace the parent's pid is 0 */
	int r;

	if (pid < 0)
		return -errno;
	if (pid == 0)
		nc_child_exit(getpid() == 1 ? 0 : 1);
	pidfd = nc_pidfd_open(pid);
	if (pidfd < 0)
		return pidfd;
	r = nc_pidfd_wait(pidfd, nc_clock_ns() + NC_NS_PER_S, &info);
	if (r < 0)
		return r;
	pidfd = nc_fd_close(pidfd);
	return info.si_code == CLD_EXITED && info.si_status == 0 ? 0 : -EPROTO;
}

/* A new net namespace has one interface, the loopback, and we may bring it up. */
static int check_net_ns(void)
{
	cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct if_nameindex *interfaces = if_nameindex();
	struct ifreq request = {.ifr_name = "lo"};
	bool alone;

	if (!interfaces)
		return -errno;
	alone = interfaces[0].if_index != 0 && strcmp(interfaces[0].if_name, "lo") == 0 &&
		interfaces[1].if_index == 0;
	if_freenameindex(interfaces);
	if (!alone)
		return -EPROTO;
	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0)
		return -errno;
	request.ifr_flags |= IFF_UP;
	return ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

static int check_uts_ns(void)
{
	return sethostname("nacre", 5) < 0 ? -errno : 0;
}

static int check_nothing(void)
{
	return 0;
}

void nc_probe_namespaces(struct nc_probes *probes)
{
	static const struct {
		enum nc_probe_id id;
		int flag;
		const char *what;
		int (*check)(void);
	} kinds[] = {
		{NC_PROBE_MOUNT_NS, CLONE_NEWNS, "a mount namespace", check_nothing},
		{NC_PROBE_NET_NS, CLONE_NEWNET, "a net namespace with nothing but loopback",
			check_net_ns},
		{NC_PROBE_IPC_NS, CLONE_NEWIPC, "an ipc namespace", check_nothing},
		{NC_PROBE_UTS_NS, CLONE_NEWUTS, "a uts namespace with a host name of its own",
			check_uts_ns},
		{NC_PROBE_CGROUP_NS, CLONE_NEWCGROUP, "a cgroup namespace", check_nothing},
		{NC_PROBE_TIME_NS, CLONE_NEWTIME, "a time namespace", check_nothing},
		/* last: from here on children are born elsewhere */
		{NC_PROBE_PID_NS, CLONE_NEWPID, "a pid namespace that starts at 1", check_pid_ns},
	};
	int entered = nc_userns_enter_self();

	nc_probe_judge(probes, NC_PROBE_USER_NS, entered, "a user namespace with our own id");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int r = unshare(kinds[i].flag) < 0 ? -errno : kinds[i].check();

		nc_probe_judge(probes, kinds[i].id, r, kinds[i].what);
	}
}

/* Waits in its user namespace until the parent has mapped it, then becomes id 1 there. */
static void range_child(int ready_fd, int go_fd)
{
	char byte;

	if (unshare(CLONE_NEWUSER) < 0 || nc_fd_write_all(ready_fd, "r", 1) < 0 ||
		nc_fd_read_upto(go_fd, &byte, 1) != 1)
		nc_child_exit(1);
	nc_child_exit(setresgid(1, 1, 1) == 0 && setresuid(1, 1, 1) == 0 ? 0 : 1);
}

static int write_range(pid_t pid, const char *map)
{
	char path[64], text[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, map);
	(void)snprintf(text, sizeof(text), "0 %u %u", RANGE_FIRST, RANGE_SIZE);
	return nc_fd_write_control(AT_FDCWD, path, text);
}

void nc_probe_id_range(struct nc_probes *probes)
{
	static const char what[] = "a user namespace with 65536 ids of its own";
	cleanup_process int pidfd = -EBADF;
	int ready[2], go[2];
	siginfo_t info = {0};
	char byte;
	pid_t pid;
	int r;

	if (pipe2(ready, O_CLOEXEC) < 0 || pipe2(go, O_CLOEXEC) < 0) {
		nc_probe_fail(probes, NC_PROBE_ID_RANGE, -errno, "%s", what);
		return;
	}
	pid = fork();
	if (pid == 0) {
		(void)close(go[1]);
		range_child(ready[1], go[0]);
	}
	(void)close(ready[1]);
	pidfd = pid < 0 ? -errno : nc_pidfd_open(pid);
	r = pidfd;
	if (r >= 0)
		r = nc_fd_read_upto(ready[0], &byte, 1) == 1 ? 0 : -EPERM;
	if (r == 0)
		r = write_range(pid, "uid_map");
	if (r == 0)
		r = write_range(pid, "gid_map");
	if (r == 0)
		r = nc_fd_write_all(go[1], "g", 1);
	if (r == 0)
		r = nc_pidfd_wait(pidfd, nc_clock_ns() + NC_NS_PER_S, &info);
	if (r == 0) {
		pidfd = nc_fd_close(pidfd);
		r = info.si_status == 0 ? 0 : -EPERM;
	}
	nc_probe_judge(probes, NC_PROBE_ID_RANGE, r, what);
}

bool nc_userns_can_make(void)
{
	int r, pidfd = -EBADF;
	struct clone_args arguments = {.flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_PIDFD,
		.pidfd = (uintptr_t)&pidfd,
		.exit_signal = SIGCHLD};

	r = (int)syscall(SYS_clone3, &arguments, sizeof(arguments));
	if (r == 0)
		_exit(0);
	(void)nc_pidfd_end(pidfd);
	return r > 0;
}
