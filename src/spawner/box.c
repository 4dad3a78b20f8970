/*
 * The boxes of a spawner: birth, life, death.
 *
 * Theory of operation: the first process is cloned into new namespaces, waits until its user ids
 * are mapped, builds the root and becomes nacre-init, which says "ready". The payload is then
 * forked by the spawner itself, which enters the box's pid namespace for the length of one clone:
 * so it is the spawner's own child, its exit status comes from the spawner's own wait, and no
 * process inside can tell lies about it.
 */
#include "spawner/box.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/pidfd.h"
#include "spawner/child.h"

/* Refused calls that are answered before others get their turn. */
#define DENIED_AT_ONCE 16

/* A child that has not come so far by then never will. */
#define BIRTH_TIMEOUT_NS (10 * NC_NS_PER_S)

/* clone3 with a pidfd, into the group if there is one. 0 in the child, 1 in the parent, or -errno.
 */
static int clone_child(
	uint64_t flags, const struct nc_cgroup *group, pid_t *ret_pid, int *ret_pidfd)
{
	int pidfd = -EBADF;
	bool into_group = group && group->clone_fd >= 0;
	/* a sibling takes over the signal that our own end sends, and may name none */
	struct clone_args arguments = {
		.flags = flags | CLONE_PIDFD | (into_group ? CLONE_INTO_CGROUP : 0),
		.pidfd = (uintptr_t)&pidfd,
		.exit_signal = flags & CLONE_PARENT ? 0 : SIGCHLD,
		.cgroup = into_group ? (unsigned int)group->clone_fd : 0U,
	};
	long pid = syscall(SYS_clone3, &arguments, sizeof(arguments));

	if (pid < 0)
		return -errno;
	if (pid == 0)
		return 0;
	*ret_pid = (pid_t)pid;
	*ret_pidfd = pidfd;
	return 1;
}

static const struct nc_cgroup *group_of(const struct nc_box *box)
{
	return box->group.parent ? &box->group : NULL;
}

static int write_proc(pid_t pid, const char *name, const char *text)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return nc_fd_write_control(AT_FDCWD, path, text);
}

/* Inside 0 to 65535 are ids that nobody else has; or one id, the sandbox's, is the caller's own. */
static int map_ids(const struct nc_nursery *nursery, const struct nc_slot *slot, pid_t pid)
{
	char uids[64], gids[64];
	int r;

	if (slot->lock_fd >= 0) {
		(void)snprintf(uids, sizeof(uids), "0 %u %u", slot->first_id, NC_SLOT_IDS);
		(void)snprintf(gids, sizeof(gids), "0 %u %u", slot->first_id, NC_SLOT_IDS);
	} else {
		(void)snprintf(uids, sizeof(uids), "%u %u 1", NC_SANDBOX_ID, nursery->uid);
		(void)snprintf(gids, sizeof(gids), "%u %u 1", NC_SANDBOX_ID, nursery->gid);
	}
	r = write_proc(pid, "setgroups", "deny");
	if (r == 0)
		r = write_proc(pid, "gid_map", gids);
	if (r == 0)
		r = write_proc(pid, "uid_map", uids);
	return r;
}

/*
 * Reads what a child reports until it closes the pipe. Returns the number of bytes of a good report
 * (expected of them), or the child's error.
 */
static int read_report(int fd, size_t expected, struct nacre_err *err)
{
	uint64_t deadline = nc_clock_ns() + BIRTH_TIMEOUT_NS;
	char report[NC_CHILD_REPORT_MAX + 1];
	size_t size = 0;
	int error;

	for (;;) {
		struct pollfd event = {.fd = fd, .events = POLLIN};
		ssize_t n;

		if (poll(&event, 1, nc_clock_left_ms(deadline)) == 0)
			return nc_err_set(err, -ETIMEDOUT, "The box did not come up in time");
		n = read(fd, report + size, NC_CHILD_REPORT_MAX - size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return nc_err_errno(err, -errno, "Read a child's report");
		if (n == 0)
			break;
		size += (size_t)n;
	}
	if (size == expected)
		return 0;
	if (size < sizeof(error))
		return nc_err_set(err, -EPROTO, "The box died while it was built");
	memcpy(&error, report, sizeof(error));
	report[size] = '\0';
	return nc_err_errno(err, error > 0 ? -error : -EPROTO, "%s", report + sizeof(error));
}

/* The first process, up to nacre-init's word that it is ready. */
static int birth_first(const struct nc_nursery *nursery, const struct nc_box_order *order,
	struct nc_box *box, struct nacre_err *err)
{
	const uint64_t spaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
				CLONE_NEWIPC | CLONE_NEWUTS;
	int go[2], report[2];
	char path[64];
	pid_t pid = 0;
	int r;

	if (pipe2(go, O_CLOEXEC) < 0)
		return nc_err_errno(err, -errno, "Make a pipe");
	if (pipe2(report, O_CLOEXEC) < 0) {
		r = nc_err_errno(err, -errno, "Make a pipe");
		(void)close(go[0]);
		(void)close(go[1]);
		return r;
	}
	r = clone_child(spaces, group_of(box), &pid, &box->init_fd);
	if (r == 0) {
		struct nc_first first = {
			.root = {.disk_bytes = order->limits.disk_bytes,
				.inodes = order->limits.inodes},
			.go_fd = go[0],
			.report_fd = report[1],
			.init_fd = nursery->init_fd,
			.single_id = box->slot.lock_fd < 0,
			.group = group_of(box),
		};

		(void)close(go[1]); /* or it would wait for itself if the spawner died */
		nc_child_first(&first);
	}
	box->init_pid = pid;
	(void)close(go[0]);
	(void)close(report[1]);
	if (r < 0)
		nc_err_errno(err, r, "Make namespaces");
	else
		r = map_ids(nursery, &box->slot, pid);
	if (r < 0 && err->code == 0)
		nc_err_errno(err, r, "Map user ids");
	if (r >= 0 && nc_fd_write_all(go[1], "g", 1) < 0)
		r = nc_err_set(err, -EPIPE, "The box died before it was built");
	(void)close(go[1]);
	if (r >= 0)
		r = read_report(report[0], 1, err);
	(void)close(report[0]);
	if (r == 0) {
		(void)snprintf(path, sizeof(path), "/proc/%d/root/workspace", (int)pid);
		/* nothing foreign has run in there yet, so the path is what we made it */
		box->scratch_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (box->scratch_fd < 0)
			r = nc_err_errno(err, -errno, "Open the limited file system");
	}
	return r;
}

/* Pointers to the words of an order, for execve. */
static void split_words(const struct nc_box_words *words, char **out)
{
	const char *at = words->data;

	for (size_t i = 0; i < words->count; i++) {
		out[i] = (char *)(uintptr_t)
			at; /* execve's prototype has no const, but it writes none */
		at += strlen(at) + 1;
	}
	out[words->count] = NULL;
}

/*
 * Forks into the box's pid namespace. Root goes there and comes back; an ordinary user may not come
 * back, so a child goes instead and makes the payload its sibling: either way it is our own child.
 */
static int fork_directly(
	const struct nc_nursery *nursery, struct nc_box *box, const struct nc_payload *payload)
{
	int r;

	if (setns(box->init_fd, CLONE_NEWPID) < 0)
		return -errno;
	r = clone_child(0, group_of(box), &box->payload_pid, &box->payload_fd);
	if (r == 0)
		nc_child_payload(payload);
	/* without the way back this box ends, and in its dead namespace the kernel makes no other
	 */
	if (setns(nursery->pid_ns_fd, CLONE_NEWPID) < 0 && r >= 0)
		return -errno;
	return r;
}

_Noreturn static void fork_sibling(struct nc_box *box, const struct nc_payload *payload, int pid_fd)
{
	pid_t pid = 0;
	int pidfd, r;

	if (setns(box->init_fd, CLONE_NEWPID) < 0)
		_exit(errno);
	r = clone_child(CLONE_PARENT, group_of(box), &pid, &pidfd);
	if (r == 0) {
		(void)close(pid_fd); /* it ends with us */
		nc_child_payload(payload);
	}
	if (r > 0)
		r = nc_fd_write_all(pid_fd, &pid, sizeof(pid));
	_exit(-r);
}

static int fork_by_sibling(struct nc_box *box, struct nc_payload *payload)
{
	int transit_fd = -EBADF, ends[2], go[2];
	siginfo_t info = {0};
	pid_t pid = 0;
	int r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(go, O_CLOEXEC) < 0) {
		r = -errno;
		(void)close(ends[0]);
		(void)close(ends[1]);
		return r;
	}
	payload->go_fd = go[0];
	r = nc_fork(&transit_fd);
	if (r == 0) {
		(void)close(go[1]); /* or the payload would wait for itself */
		fork_sibling(box, payload, ends[1]);
	}
	(void)close(ends[1]);
	(void)close(go[0]);
	if (r > 0)
		r = nc_pidfd_wait(transit_fd, nc_clock_ns() + BIRTH_TIMEOUT_NS, &info);
	if (r == 0 && nc_fd_read_upto(ends[0], &pid, sizeof(pid)) != sizeof(pid))
		r = info.si_status > 0 ? -info.si_status : -EPROTO;
	(void)close(ends[0]);
	(void)nc_fd_close(transit_fd);
	/* our own child, which nobody else reaps: the number is still its own */
	box->payload_pid = pid;
	if (r == 0)
		r = box->payload_fd = nc_pidfd_open(pid);
	if (r >= 0)
		r = nc_fd_write_all(go[1], "g", 1);
	(void)close(go[1]);
	return r;
}

/* What the payload says of itself, then its end of the channel closing when it becomes its program.
 */
static int read_payload_report(int fd, struct nc_box *box, struct nacre_err *err)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct nc_payload_report report = {0};
	struct iovec part = {.iov_base = &report, .iov_len = sizeof(report)};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	struct pollfd event = {.fd = fd, .events = POLLIN};
	unsigned char first = 0;

	if (poll(&event, 1, BIRTH_TIMEOUT_NS / NC_NS_PER_MS) == 1 &&
		recv(fd, &first, 1, MSG_PEEK) == 1 && first == NC_PAYLOAD_HELD &&
		recvmsg(fd, &message, MSG_CMSG_CLOEXEC) == (ssize_t)sizeof(report)) {
		const struct cmsghdr *header = CMSG_FIRSTHDR(&message);

		box->end.landlock = report.landlock;
		if (header && header->cmsg_type == SCM_RIGHTS)
			memcpy(&box->listener_fd, CMSG_DATA(header), sizeof(int));
		box->end.reported = box->listener_fd >= 0;
		return read_report(fd, 0, err);
	}
	/* it failed before that, and says why */
	return read_report(fd, SIZE_MAX, err);
}

static int birth_payload(const struct nc_nursery *nursery, const struct nc_box_order *order,
	const int *stdio, struct nc_box *box, struct nacre_err *err)
{
	static char *argv[NC_BOX_ARGS_MAX + 1], *env[NC_BOX_ARGS_MAX + 1];
	struct nc_payload payload = {.box_fd = box->init_fd,
		.go_fd = -EBADF,
		.stdio = {stdio[0], stdio[1], stdio[2]},
		.limits = &order->limits,
		.dir = order->dir,
		.argv = argv,
		.env = env,
		.single_id = box->slot.lock_fd < 0,
		.group = group_of(box)};
	int report[2];
	int r;

	split_words(&order->argv, argv);
	split_words(&order->env, env);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, report) < 0)
		return nc_err_errno(err, -errno, "Make a socket pair");
	payload.report_fd = report[1];
	r = nursery->pid_ns_fd >= 0 ? fork_directly(nursery, box, &payload)
				    : fork_by_sibling(box, &payload);
	(void)close(report[1]);
	if (r < 0)
		nc_err_errno(err, r, "Fork into the box");
	else
		r = read_payload_report(report[0], box, err);
	(void)close(report[0]);
	return r;
}

/* The limits that this host can hold; process 1 is one more process. */
static int make_group(const struct nc_nursery *nursery, const struct nc_box_order *order,
	struct nc_box *box, struct nacre_err *err)
{
	unsigned int can = nursery->cgroups.can;
	struct nc_cgroup_limits limits = {
		.memory_bytes = can & NC_CGROUP_CAN_MEMORY ? order->limits.memory_bytes : 0,
		.pids = can & NC_CGROUP_CAN_PIDS ? order->limits.pids + 1 : 0,
		.cpu_milli = can & NC_CGROUP_CAN_CPU ? order->limits.cpu_milli : 0,
	};
	char name[32];

	if (can == 0)
		return 0;
	(void)snprintf(name, sizeof(name), "bx_%llu", (unsigned long long)order->id);
	return nc_cgroup_make(&nursery->cgroups, name, &limits, &box->group, err);
}

/*
 * A payload whose pid was lost on the way from fork_sibling cannot be reaped by it, and until then
 * process 1 cannot end: both are left, dead, to whoever reaps after us.
 */
static void end_first(struct nc_box *box)
{
	siginfo_t info;

	if (box->init_fd >= 0) {
		(void)nc_pidfd_kill(box->init_fd, SIGKILL);
		(void)nc_pidfd_wait(box->init_fd, nc_clock_ns() + NC_NS_PER_S, &info);
	}
	box->init_fd = nc_fd_close(box->init_fd);
}

int nc_box_birth(const struct nc_nursery *nursery, const struct nc_box_order *order,
	const int *stdio, struct nc_box *box, struct nacre_err *err)
{
	int r = 0;

	assert(box->state == NC_BOX_FREE);
	*box = (struct nc_box){.init_fd = -EBADF,
		.payload_fd = -EBADF,
		.scratch_fd = -EBADF,
		.listener_fd = -EBADF,
		.slot = {.lock_fd = -EBADF},
		.end = {.id = order->id}};
	err->code = 0;
	if (nursery->slot_dir_fd >= 0) {
		r = nc_slot_take(nursery->slot_dir_fd, &box->slot);
		if (r < 0)
			nc_err_errno(err, r, "Take a range of user ids");
	}
	if (r == 0)
		r = make_group(nursery, order, box, err);
	if (r == 0)
		r = birth_first(nursery, order, box, err);
	box->started_ns = nc_clock_ns();
	if (r == 0)
		r = birth_payload(nursery, order, stdio, box, err);
	if (r < 0) {
		/* the payload first: while it is unreaped the box cannot end */
		box->payload_fd = nc_pidfd_end(box->payload_fd);
		end_first(box);
		box->scratch_fd = nc_fd_close(box->scratch_fd);
		box->listener_fd = nc_fd_close(box->listener_fd);
		(void)nc_cgroup_remove(&box->group); /* everything in it has just been reaped */
		nc_slot_give_back(&box->slot);
		return r;
	}
	nc_cgroup_join_close(&box->group);
	box->deadline_ns = box->started_ns + order->limits.wall_ms * NC_NS_PER_MS;
	box->state = NC_BOX_RUNS;
	return 0;
}

void nc_box_payload_ended(struct nc_box *box)
{
	struct rusage usage = {0};
	siginfo_t info = {0};

	assert(box->state == NC_BOX_RUNS);
	box->end.usage.wall_ns = nc_clock_ns() - box->started_ns;
	(void)syscall(SYS_waitid, P_PIDFD, box->payload_fd, &info, WEXITED | __WALL, &usage);
	box->payload_fd = nc_fd_close(box->payload_fd);
	if (info.si_code == CLD_EXITED)
		box->end.code = (uint32_t)info.si_status;
	else
		box->end.signal = (uint32_t)info.si_status;
	box->end.usage.cpu_user_us =
		(uint64_t)usage.ru_utime.tv_sec * 1000000 + (uint64_t)usage.ru_utime.tv_usec;
	box->end.usage.cpu_system_us =
		(uint64_t)usage.ru_stime.tv_sec * 1000000 + (uint64_t)usage.ru_stime.tv_usec;
	box->end.usage.memory_peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
	box->end.usage.context_switches = (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
	/* process 1 takes everything with it that is left in the box */
	(void)nc_pidfd_kill(box->init_fd, SIGKILL);
	box->state = NC_BOX_DYING;
}

static void count_denied(struct nc_box_end *end, uint32_t call)
{
	for (size_t i = 0; i < end->n_denied; i++) {
		if (end->denied[i].call == call) {
			end->denied[i].count += end->denied[i].count < UINT32_MAX;
			return;
		}
	}
	if (end->n_denied < NC_DENIED_MAX)
		end->denied[end->n_denied++] = (struct nc_box_denied){call, 1};
}

void nc_box_denied(struct nc_box *box)
{
	/* whoever floods us with refused calls waits for its turn, others do not wait for it */
	for (int i = 0; i < DENIED_AT_ONCE; i++) {
		struct pollfd event = {.fd = box->listener_fd, .events = POLLIN};
		struct seccomp_notif request = {0};
		struct seccomp_notif_resp answer = {.error = -EPERM};

		if (poll(&event, 1, 0) != 1)
			return;
		if (!(event.revents & POLLIN)) { /* nobody is left who could ask */
			box->listener_fd = nc_fd_close(box->listener_fd);
			return;
		}
		if (ioctl(box->listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
			continue; /* it was killed meanwhile */
		count_denied(&box->end, (uint32_t)request.data.nr);
		answer.id = request.id;
		(void)ioctl(box->listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &answer); /* the same */
	}
}

void nc_box_check(struct nc_box *box)
{
	struct nc_cgroup_usage usage;

	if (box->state == NC_BOX_RUNS && group_of(box) &&
		nc_cgroup_usage(&box->group, &usage) == 0 && usage.oom_kills > 0)
		nc_box_kill(box, NC_CAUSE_MEMORY);
}

/* The bill, once nobody can add to it. */
static void collect_usage(struct nc_box *box)
{
	struct nc_box_usage *bill = &box->end.usage;
	struct nc_cgroup_usage usage;
	struct statfs fs;

	if (fstatfs(box->scratch_fd, &fs) == 0)
		bill->disk_bytes = (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
	if (!group_of(box) || nc_cgroup_usage(&box->group, &usage) < 0)
		return;
	if (box->group.parent->can & NC_CGROUP_CAN_CPU_TIME) {
		bill->cpu_user_us = usage.cpu_user_us;
		bill->cpu_system_us = usage.cpu_system_us;
	}
	if (box->group.parent->can & NC_CGROUP_CAN_MEMORY)
		bill->memory_peak_bytes = usage.memory_peak_bytes;
	bill->pids_peak = usage.pids_peak;
	bill->pids_refused = usage.pids_refused;
	bill->oom_kills = usage.oom_kills;
	if (usage.oom_kills > 0 && box->end.cause == NC_CAUSE_EXIT && box->end.signal == SIGKILL)
		box->end.cause = NC_CAUSE_MEMORY;
}

void nc_box_kill(struct nc_box *box, enum nc_box_cause cause)
{
	if (box->state != NC_BOX_RUNS)
		return;
	/* process 1 takes the payload with it; its end is then seen like any other */
	if (box->end.cause == NC_CAUSE_EXIT)
		box->end.cause = cause;
	box->deadline_ns = UINT64_MAX;
	(void)nc_pidfd_kill(box->init_fd, SIGKILL);
}

void nc_box_bury(struct nc_box *box)
{
	assert(box->state == NC_BOX_DYING);
	box->init_fd = nc_pidfd_end(box->init_fd);
	collect_usage(box);
	box->scratch_fd = nc_fd_close(box->scratch_fd);
	box->listener_fd = nc_fd_close(box->listener_fd);
	/* with process 1 reaped nobody is left in the group; a range is given back after that */
	(void)nc_cgroup_remove(&box->group);
	nc_slot_give_back(&box->slot);
	box->state = NC_BOX_FREE;
}
