/* seccomp: the probes install a filter each, one that answers itself and one that asks us. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/pidfd.h"
#include "kernel/probe.h"

/* The call that the probes take away: harmless, and nothing else in this process makes it. */
#define VICTIM SYS_getpgid

/* What the notified call is made to return; no process group has this number. */
#define NOTIFIED_ANSWER 424242

/* Installs "action for VICTIM, allow the rest". Returns what seccomp() returns, or -errno. */
static int install(unsigned int action, unsigned int flags)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, VICTIM, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
	long r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	return r < 0 ? -errno : (int)r;
}

/* Answers one notification on fd with NOTIFIED_ANSWER. */
static int answer_one(int fd)
{
	struct seccomp_notif request = {0};
	struct seccomp_notif_resp answer = {.val = NOTIFIED_ANSWER};
	struct pollfd event = {.fd = fd, .events = POLLIN};

	if (poll(&event, 1, 1000) != 1 || ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
		return -ETIMEDOUT;
	answer.id = request.id;
	return ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &answer) < 0 ? -errno : 0;
}

static int check_notify(void)
{
	cleanup_close int listener_fd =
		install(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
	cleanup_process int pidfd = -EBADF;
	siginfo_t info = {0};
	int r;

	if (listener_fd < 0)
		return listener_fd;
	r = nc_fork(&pidfd);
	if (r < 0)
		return r;
	if (r == 0)
		nc_child_exit(syscall(VICTIM, 0) == NOTIFIED_ANSWER ? 0 : 1);
	r = answer_one(listener_fd);
	if (r == 0)
		r = nc_pidfd_wait(pidfd, nc_clock_ns() + NC_NS_PER_S, &info);
	if (r == 0) {
		pidfd = nc_fd_close(pidfd);
		r = info.si_code == CLD_EXITED && info.si_status == 0 ? 0 : -EPROTO;
	}
	return r;
}

static int check_errno(void)
{
	int r = install(SECCOMP_RET_ERRNO | ENOTUNIQ, 0);

	if (r < 0)
		return r;
	return syscall(VICTIM, 0) < 0 && errno == ENOTUNIQ ? 0 : -EPROTO;
}

void nc_probe_seccomp(struct nc_probes *probes)
{
	/* in this order: where two filters match, the stricter action wins, and an error is */
	nc_probe_judge(probes, NC_PROBE_SECCOMP_NOTIFY, check_notify(),
		"a system call answered by another process");
	nc_probe_judge(
		probes, NC_PROBE_SECCOMP, check_errno(), "a system call refused by a filter");
}
