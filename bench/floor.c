/*
 * The least that a cold box takes, for bench/exec.py: Nacre's own parts in the best order that is
 * known, with nothing looked up, locked, checked, told or billed, and no file of the caller's read.
 *
 *	bench-floor COMMAND [WORD...]
 *	bench-floor --layers COMMAND
 *
 * The first makes namespaces and a root, and locks the command in with Landlock and a filter; it is
 * process 1 itself. The second has everything that has to be there for a box of `nacre exec`: a
 * worker without rights that moves the output, nacre-init, a payload with user ids and control
 * groups (of version 1) of its own, a spawner that is executed and drops what it does not need, and
 * an end that waits for all of them. Its first process is cloned before the spawner is executed,
 *and the worker is not executed at all, which Nacre does not do: each would have to be in one
 *program with all else.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/pidfd.h"
#include "inside/child.h"
#include "kernel/caps.h"
#include "kernel/filter.h"
#include "kernel/program.h"

/* The first user id of a range that no box of Nacre's has. */
#define FIRST_ID "1900000000"
#define SPAWNER "spawner"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Ends this process if the call fails. */
#define MUST(call)                                                                                 \
	do {                                                                                       \
		if ((call) < 0) {                                                                  \
			perror(#call);                                                             \
			_exit(125);                                                                \
		}                                                                                  \
	} while (0)

/* What first process, worker and spawner find where. */
enum { SPAWNER_END = 20, WORKER_END, GO, GO_ON, REPORT, REPORT_ON, BUILT, FIRST, SELF, ENDS };

static const char *const groups[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory",
	"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/pids"};
static const char *const limits[][2] = {{NULL, NULL}, {"memory.limit_in_bytes", "536870912"},
	{"cpu.cfs_quota_us", "100000"}, {"pids.max", "100"}};

static const struct nc_root_spec usual_root = {
	.disk_bytes = 100U << 20, .inodes = 25664, .frame_fd = -EBADF, .image_fd = -EBADF};

_Noreturn static void be_alone(int go_fd, char **command)
{
	static char *const env[] = {NULL};
	const char *step;
	char byte;

	MUST(unshare(CLONE_NEWNET));
	MUST(read(go_fd, &byte, 1));
	MUST(setresgid(0, 0, 0));
	MUST(setresuid(0, 0, 0));
	MUST(nc_root_build(&usual_root, &step));
	MUST(close_range(3, ~0U, 0));
	MUST(nc_caps_bound());
	MUST(setresgid(1000, 1000, 1000));
	MUST(setresuid(1000, 1000, 1000));
	MUST(nc_caps_set(0));
	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	MUST(nc_fence_payload(&nc_fence_container, NULL, 0));
	MUST(nc_filter_load(NC_FILTER_CONTAINER, NULL));
	(void)execve(command[0], command, env);
	_exit(127);
}

static pid_t clone_first(int *ret_pidfd)
{
	struct clone_args arguments = {.flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS |
						CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD,
		.pidfd = (uintptr_t)ret_pidfd,
		.exit_signal = SIGCHLD};
	pid_t pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments));

	MUST(pid);
	return pid;
}

/* Maps its ids and lets it go. */
static void send_off(const char *pid, int go_fd)
{
	static const char *const lines[][2] = {{"setgroups", "deny"},
		{"gid_map", "0 " FIRST_ID " 65536"}, {"uid_map", "0 " FIRST_ID " 65536"}};
	char path[64];

	for (size_t i = 0; i < COUNT(lines); i++) {
		(void)snprintf(path, sizeof(path), "/proc/%s/%s", pid, lines[i][0]);
		MUST(nc_fd_write_control(AT_FDCWD, path, lines[i][1]));
	}
	MUST(write(go_fd, "g", 1));
}

static int run_alone(char **command)
{
	int go[2], status, pidfd;
	char text[16];
	pid_t pid;

	MUST(pipe2(go, O_CLOEXEC));
	pid = clone_first(&pidfd);
	if (pid == 0)
		be_alone(go[0], command);
	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	send_off(text, go[1]);
	MUST(waitpid(pid, &status, 0));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

_Noreturn static void be_first(void)
{
	struct nacre_err err;
	int file_fd = nc_program_open("nacre-init", &err);
	struct nc_first first = {.root = &usual_root,
		.go_fd = GO,
		.report_fd = REPORT_ON,
		.built_fd = BUILT,
		.init_fd = nc_program_load(file_fd, "nacre-init", &err),
		.spawner_fd = SELF};

	MUST(first.init_fd);
	(void)close(GO_ON);
	nc_child_first(&first);
}

/* Orders the command, and moves what it prints to nowhere. */
_Noreturn static void be_worker(const char *command)
{
	const struct nc_box_order order = {.id = 1,
		.limits = {.memory_bytes = 512U << 20, .wall_ms = 10000, .open_files = 1024},
		.argv = {command, strlen(command) + 1, 1},
		.dir = "/workspace"};
	struct nc_wire_out out = {0};
	int in[2], output[2], error[2];
	char bytes[4096];

	(void)close(SPAWNER_END);
	(void)close(GO_ON);
	MUST(nc_privilege_drop(true));
	MUST(nc_fence_all());
	MUST(pipe2(in, O_CLOEXEC));
	MUST(pipe2(output, O_CLOEXEC));
	MUST(pipe2(error, O_CLOEXEC));
	nc_wire_begin(&out, NC_BOX_RUN);
	nc_boxwire_put_order(&out, &order);
	MUST(nc_wire_send(WORKER_END, &out, (int[]){in[0], output[1], error[1]}, 3));
	(void)close(output[1]);
	(void)close(error[1]);
	MUST(nc_filter_load(NC_FILTER_WORKER, NULL));
	MUST(read(output[0], bytes, sizeof(bytes)));
	MUST(read(error[0], bytes, sizeof(bytes)));
	MUST(read(WORKER_END, bytes, sizeof(bytes)));
	_exit(0);
}

static void drop_rights(void)
{
	const uint64_t keep = 1ULL << CAP_SETUID | 1ULL << CAP_SETGID | 1ULL << CAP_SYS_ADMIN |
			      1ULL << CAP_KILL | 1ULL << CAP_SYS_PTRACE | 1ULL << CAP_SYS_CHROOT |
			      1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_CHOWN;

	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	MUST(nc_caps_bound());
	MUST(nc_caps_set(keep));
	MUST(nc_filter_load(NC_FILTER_SPAWNER, NULL));
}

/* With their limits; join_fds are what is written to to be in them, and of the first it itself. */
static void make_groups(const char *name, int *above_fds, int *join_fds)
{
	for (size_t i = 0; i < COUNT(groups); i++) {
		int fd;

		MUST(above_fds[i] = open(groups[i], O_PATH | O_DIRECTORY | O_CLOEXEC));
		MUST(mkdirat(above_fds[i], name, 0755));
		MUST(fd = openat(above_fds[i], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
		if (limits[i][0])
			MUST(nc_fd_write_control(fd, limits[i][0], limits[i][1]));
		MUST(join_fds[i] = i == 0 ? fd : openat(fd, "tasks", O_WRONLY | O_CLOEXEC));
	}
}

/* Returns our end of its channel. */
static int fork_payload(const int *join_fds, int pid_ns_fd, int *ret_pidfd)
{
	struct clone_args arguments = {.flags = CLONE_PIDFD | CLONE_INTO_CGROUP,
		.pidfd = (uintptr_t)ret_pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = (unsigned int)join_fds[0]};
	struct nc_payload payload = {
		.box_fd = FIRST, .go_fd = -EBADF, .built_fd = BUILT, .id = NC_SANDBOX_ID};
	int ends[2];
	long pid;

	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	payload.other_fd = ends[0];
	payload.channel_fd = ends[1];
	MUST(setns(FIRST, CLONE_NEWPID));
	pid = syscall(SYS_clone3, &arguments, sizeof(arguments));
	MUST(pid);
	for (size_t i = 1; pid == 0 && i < COUNT(groups); i++)
		MUST(write(join_fds[i], "0", 1));
	if (pid == 0)
		nc_child_payload(&payload);
	MUST(setns(pid_ns_fd, CLONE_NEWPID));
	(void)close(ends[1]);
	(void)close(BUILT);
	return ends[0];
}

/* Hands the order on when nacre-init runs; returns what hangs up when the command has ended. */
static int start_command(int channel_fd)
{
	static struct nc_wire_packet order, held;
	char byte = 0;

	MUST(nc_wire_receive(SPAWNER_END, &order, 3));
	if (read(REPORT, &byte, 1) != 1 || byte != 'r')
		_exit(125);
	MUST(nc_child_send(channel_fd, order.data, order.size, order.fds, 3));
	nc_wire_packet_done(&order);
	MUST(nc_wire_receive(channel_fd, &held, NC_PAYLOAD_FDS));
	if (held.n_fds != 1 || read(channel_fd, &byte, 1) != 0) /* its report, or its execve */
		_exit(125);
	return held.fds[0];
}

static int be_spawner(const char *first)
{
	int above_fds[COUNT(groups)], join_fds[COUNT(groups)], pid_ns_fd, payload_fd;
	struct pollfd end = {0};
	siginfo_t info;
	char name[32];

	(void)snprintf(name, sizeof(name), "nacre-floor-%d", (int)getpid());
	MUST(close_range(SPAWNER_END, ENDS, CLOSE_RANGE_CLOEXEC));
	send_off(first, GO_ON);
	MUST(pid_ns_fd = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC));
	drop_rights();
	make_groups(name, above_fds, join_fds);
	end.fd = start_command(fork_payload(join_fds, pid_ns_fd, &payload_fd));
	MUST(poll(&end, 1, -1));
	MUST(nc_pidfd_kill(FIRST, SIGKILL));
	MUST(waitid(P_PIDFD, (id_t)payload_fd, &info, WEXITED));
	MUST(write(SPAWNER_END, "e", 1));
	for (size_t i = 0; i < COUNT(groups); i++)
		MUST(unlinkat(above_fds[i], name, AT_REMOVEDIR));
	for (int children = 2; children > 0; children--)
		MUST(wait(NULL));
	return info.si_status;
}

static void place(int fd, int number)
{
	MUST(dup3(fd, number, O_CLOEXEC));
	(void)close(fd);
}

/* The other one of two processors is free: nobody else is there yet. */
static void send_away(pid_t pid)
{
	cpu_set_t had, others;

	MUST(sched_getaffinity(0, sizeof(had), &had));
	others = had;
	CPU_CLR((size_t)sched_getcpu(), &others);
	if (sched_setaffinity(pid, sizeof(others), &others) == 0)
		MUST(sched_setaffinity(pid, sizeof(had), &had));
}

static int run_layers(char *command)
{
	int go[2], report[2], pair[2], first_fd;
	char name[] = SPAWNER, text[16];
	char *argv[] = {name, text, NULL};
	pid_t first, worker;

	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	MUST(pipe2(go, O_CLOEXEC));
	MUST(pipe2(report, O_CLOEXEC));
	place(pair[0], SPAWNER_END);
	place(pair[1], WORKER_END);
	place(go[0], GO);
	place(go[1], GO_ON);
	place(report[0], REPORT);
	place(report[1], REPORT_ON);
	place(eventfd(0, EFD_CLOEXEC), BUILT);
	place(nc_pidfd_open(getpid()), SELF);
	first = clone_first(&first_fd);
	if (first == 0)
		be_first();
	place(first_fd, FIRST);
	send_away(first);
	MUST(worker = fork());
	if (worker == 0)
		be_worker(command);
	(void)snprintf(text, sizeof(text), "%d", (int)first);
	for (int i = SPAWNER_END; i < ENDS; i++)
		if (i != WORKER_END && i != GO && i != REPORT_ON)
			MUST(fcntl(i, F_SETFD, 0));
	MUST(execv("/proc/self/exe", argv));
	return 125;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[0], SPAWNER) == 0)
		return be_spawner(argv[1]);
	if (argc == 3 && strcmp(argv[1], "--layers") == 0)
		return run_layers(argv[2]);
	return argc > 1 ? run_alone(argv + 1) : 125;
}
