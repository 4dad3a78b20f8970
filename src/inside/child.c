/*
 * What the spawner's children do between their birth and the program that they become. Nothing here
 * allocates or locks, and every step that fails ends the child with a report: nothing foreign runs
 * unless each one succeeded.
 */
#include "inside/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/pidfd.h"
#include "inside/lend.h"
#include "inside/put.h"
#include "inside/shade.h"
#include "inside/user.h"
#include "kernel/caps.h"
#include "kernel/filter.h"
#include "kernel/means.h"
#include "kernel/privilege.h"
#include "kernel/processor.h"

#define READY_FD 3
/* nacre-files, or the pipe with files, or a zygote's socket: what comes behind the streams. */
#define FILES_FD 4
_Static_assert(READY_FD == NC_AHEAD_FD, "where a program looks for it");
_Static_assert(FILES_FD == NC_ZYGOTE_FD, "where a zygote looks for it");

/* How often a sweeper looks whether all are gone. */
#define SWEEP_PAUSE_NS 200000

/* The ABI from which on Landlock keeps signals and abstract sockets inside. */
#define LANDLOCK_SCOPES 6

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Behind the errno and an enum nc_fail. */
#define REPORT_TEXT (sizeof(int) + 1)

_Noreturn static void give_up_as(enum nc_fail fail, int report_fd, int error, const char *step)
{
	char report[NC_CHILD_REPORT_MAX];
	int size;

	memcpy(report, &error, sizeof(error));
	report[sizeof(error)] = (char)fail;
	size = snprintf(report + REPORT_TEXT, sizeof(report) - REPORT_TEXT, "%s", step);
	(void)nc_fd_write_all(report_fd, report, REPORT_TEXT + (size_t)size);
	_exit(125);
}

_Noreturn static void give_up(int report_fd, int error, const char *step)
{
	give_up_as(NC_FAIL_BOX, report_fd, error, step);
}

int nc_child_failed(const char *report, ssize_t size, enum nc_fail *ret_fail, struct nacre_err *err)
{
	int error;

	if (size < (ssize_t)REPORT_TEXT)
		return nc_err_set(err, -EPROTO, "The box died while it was built");
	memcpy(&error, report, sizeof(error));
	if (report[sizeof(error)] > NC_FAIL_NONE && report[sizeof(error)] < NC_FAIL_LOST)
		*ret_fail = (enum nc_fail)report[sizeof(error)];
	return nc_err_errno(err, error > 0 ? -error : -EPROTO, "%.*s", (int)size - (int)REPORT_TEXT,
		report + REPORT_TEXT);
}

#define STEP(report_fd, text, call)                                                                \
	do {                                                                                       \
		int _r = (call);                                                                   \
		if (_r < 0)                                                                        \
			give_up(report_fd, -_r, text);                                             \
	} while (0)

/* Turns "-1 and errno" into -errno. */
static int checked(int result)
{
	return result < 0 ? -errno : result;
}

static int wait_for_go(int go_fd)
{
	char byte;
	ssize_t n = nc_fd_read_upto(go_fd, &byte, 1);

	return n < 0 ? (int)n : n == 1 ? 0 : -ECANCELED;
}

static int tell_built(int built_fd)
{
	const uint64_t one = 1;

	return nc_fd_write_all(built_fd, &one, sizeof(one));
}

/* Whoever builds it is process 1 here, and takes us along if it comes to nothing. */
static int wait_for_root(int built_fd)
{
	uint64_t n;
	ssize_t size = nc_fd_read_upto(built_fd, &n, sizeof(n));

	return size < 0 ? (int)size : 0;
}

static int join(const struct nc_cgroup *group)
{
	return group ? nc_cgroup_join_self(group, group->clone_fd >= 0) : 0;
}

/*
 * Kills everything else in the box's pid namespace, but for its process 1. The kernel goes through
 * all of them while nobody can fork. Anywhere else this would end the machine: so it is made sure.
 */
static int sweep(uint64_t host_pid_ns)
{
	struct stat status;

	if (stat("/proc/self/ns/pid", &status) < 0)
		return -errno;
	if (status.st_ino == host_pid_ns || host_pid_ns == 0)
		return -EXDEV;
	/* until they are gone: what holds them may be counted. The spawner's patience ends it */
	while (kill(-1, SIGKILL) == 0)
		(void)nanosleep(&(struct timespec){.tv_nsec = SWEEP_PAUSE_NS}, NULL);
	return errno == ESRCH ? 0 : -errno;
}

static int become(unsigned int uid, unsigned int gid)
{
	if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	return 0;
}

/* The session keyring is inherited like the environment, and may hold the caller's secrets. */
static int leave_keyring(void)
{
	long r = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);

	return r < 0 && errno != ENOSYS ? -errno : 0;
}

/* Handlers and masks are inherited through exec; a program expects neither. */
static int reset_signals(void)
{
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		(void)signal(i, SIG_DFL); /* KILL, STOP and libc's own say EINVAL */
	(void)sigemptyset(&none);
	return checked(sigprocmask(SIG_SETMASK, &none, NULL));
}

/* What the caller has given up himself (nice) stays so: only root could take it back. */
static int leave_priority(void)
{
	errno = 0;
	if (getpriority(PRIO_PROCESS, 0) >= 0 || errno != 0)
		return -errno;
	return checked(setpriority(PRIO_PROCESS, 0, 0));
}

/* Dies with the spawner. Set after the last change of user id, which would clear it. */
static int die_with_parent(void)
{
	return checked(prctl(PR_SET_PDEATHSIG, SIGKILL));
}

static int stdio_to_null(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0 || dup2(fd, 0) < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
		return -errno;
	return 0;
}

/*
 * Whoever has died before that was set sends no signal, and what nacre-init has to say may be heard
 * by a brother of ours, who has a copy of the spawner's descriptors until he is nacre-init himself.
 */
static int check_spawner(int spawner_fd)
{
	struct pollfd event = {.fd = spawner_fd, .events = POLLIN};
	int r = checked(poll(&event, 1, 0));

	return r > 0 ? -EOWNERDEAD : r;
}

_Noreturn void nc_child_first(const struct nc_first *first)
{
	static char name[] = "nacre-init";
	static char *const argv[] = {name, NULL};
	static char *const env[] = {NULL};
	const char *step = "";
	int report = first->report_fd;
	int r;

	/* what takes longest, and needs no ids: the spawner maps them meanwhile */
	if (first->root)
		STEP(report, "make a net namespace", checked(unshare(CLONE_NEWNET)));
	STEP(report, "wait for the mapping of ids", wait_for_go(first->go_fd));
	STEP(report, "start a session", checked(setsid()));
	STEP(report, "reset signals", reset_signals());
	STEP(report, "leave the spawner's priority", leave_priority());
	if (!first->single_id)
		STEP(report, "become the box's root", become(0, 0));
	(void)umask(022);
	if (first->root) {
		r = nc_root_build(first->root, &step);
		STEP(report, step, r);
		/* the payload comes in while we go on; its order comes after nacre-init's word */
		if (first->built_fd >= 0)
			STEP(report, "tell that the root is there", tell_built(first->built_fd));
	}
	STEP(report, "set the host name", checked(sethostname("nacre", 5)));
	STEP(report, "detach from the spawner's files", stdio_to_null());
	STEP(report, "close the ways to capabilities", nc_caps_bound());
	/* none of its commands has this id, whatever it may become */
	if (!first->single_id)
		STEP(report, "become process 1's own user",
			become(NC_USER_FIRST_ID, NC_USER_FIRST_ID));
	STEP(report, "drop capabilities", nc_caps_set(0));
	STEP(report, "set no_new_privs", checked(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
	STEP(report, "die with the spawner", die_with_parent());
	STEP(report, "find the spawner alive", check_spawner(first->spawner_fd));
	/* all but the pipe that says "ready" close when nacre-init takes over */
	STEP(report, "mark descriptors", checked(close_range(READY_FD, ~0U, CLOSE_RANGE_CLOEXEC)));
	if (report == READY_FD)
		STEP(report, "keep the report", checked(fcntl(report, F_SETFD, 0)));
	else
		STEP(report, "keep the report", checked(dup2(report, READY_FD)));
	(void)syscall(SYS_execveat, first->init_fd, "", argv, env, AT_EMPTY_PATH);
	give_up(report, errno, "start nacre-init");
}

static int set_limit(__rlimit_resource_t which, uint64_t value)
{
	struct rlimit limit = {.rlim_cur = value, .rlim_max = value};

	return checked(setrlimit(which, &limit));
}

/* The same, or as much of it as whoever started us had himself; only root could have more. */
static int set_limit_upto(__rlimit_resource_t which, uint64_t value)
{
	struct rlimit host;
	int r = set_limit(which, value);

	if (r != -EPERM || getrlimit(which, &host) < 0 || host.rlim_max >= value)
		return r;
	return set_limit(which, host.rlim_max);
}

static bool has_limit(const struct nc_cgroup *group, unsigned int which)
{
	return group && (group->parent->can & which) != 0;
}

/*
 * 1, not 0: the kernel starts a piped core handler for 0, but not for 1. Who may have none himself
 * cannot have it, which does where there is no such handler.
 */
static int set_core_limit(void)
{
	char first = '|';
	int r = set_limit(RLIMIT_CORE, 1);

	if (r == -EPERM) {
		cleanup_close int fd = open("/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC);

		if (fd >= 0 && read(fd, &first, 1) == 1 && first != '|')
			r = 0;
	}
	return r;
}

/* What no box needs more of. */
static int set_usual_limits(void)
{
	struct rlimit stack = {.rlim_cur = 8U << 20, .rlim_max = 64U << 20};
	int r = 0;

	r = r < 0 ? r : set_limit_upto(RLIMIT_MEMLOCK, 64U << 10);
	r = r < 0 ? r : set_limit(RLIMIT_MSGQUEUE, 0);
	r = r < 0 ? r : set_limit_upto(RLIMIT_SIGPENDING, 1024);
	r = r < 0 ? r : set_limit(RLIMIT_NICE, 0);
	r = r < 0 ? r : set_limit(RLIMIT_RTPRIO, 0);
	if (r == 0 && setrlimit(RLIMIT_STACK, &stack) < 0)
		r = errno == EPERM ? set_limit_upto(RLIMIT_STACK, 64U << 20) : -errno;
	return r;
}

/* What the kernel can hold of the order's limits by itself. */
static int set_limits(const struct nc_payload *payload, const struct nc_box_limits *limits)
{
	struct rlimit time = {.rlim_cur = (limits->cpu_time_ms + 999) / 1000};
	int r = set_limit_upto(RLIMIT_NOFILE, limits->open_files);

	/* counted per user namespace since Linux 5.14, so that it is the box's own */
	if (!has_limit(payload->group, NC_CGROUP_CAN_PIDS) && payload->box_fd >= 0)
		r = r < 0 ? r : set_limit_upto(RLIMIT_NPROC, limits->pids);
	/* not RLIMIT_AS: Node and Go reserve far more addresses than they use */
	if (!has_limit(payload->group, NC_CGROUP_CAN_MEMORY))
		r = r < 0 ? r : set_limit_upto(RLIMIT_DATA, limits->memory_bytes);
	/* its directories are the host's: no file at least grows beyond the limit */
	if (payload->tier == NC_TIER_PROCESS)
		r = r < 0 ? r : set_limit_upto(RLIMIT_FSIZE, limits->disk_bytes);
	/* of one process, by the tick: only where nobody watches the time of all of them exactly */
	time.rlim_max = time.rlim_cur + 1;
	if (limits->cpu_time_ms > 0 && !has_limit(payload->group, NC_CGROUP_CAN_CPU_TIME))
		r = r < 0 ? r : checked(setrlimit(RLIMIT_CPU, &time));
	return r;
}

static int take_stdio(const int *stdio)
{
	int high[3];

	/* out of the way first: one of them may be 0, 1 or 2 itself */
	for (int i = 0; i < 3; i++) {
		high[i] = fcntl(stdio[i], F_DUPFD_CLOEXEC, 3);
		if (high[i] < 0)
			return -errno;
	}
	for (int i = 0; i < 3; i++)
		if (dup2(high[i], i) < 0)
			return -errno;
	return 0;
}

/*
 * Closes everything but 0 to 2, the channel, which moves to 3, and nacre-files or files if they
 * came, which move to 4; both close by themselves at exec.
 */
static int keep_only(int *channel_fd, int files_fd)
{
	if (*channel_fd != READY_FD && dup3(*channel_fd, READY_FD, O_CLOEXEC) < 0)
		return -errno;
	*channel_fd = READY_FD;
	if (files_fd >= 0 && files_fd != FILES_FD && dup3(files_fd, FILES_FD, O_CLOEXEC) < 0)
		return -errno;
	return checked(close_range(files_fd >= 0 ? FILES_FD + 1 : READY_FD + 1, ~0U, 0));
}

static int go_to(const char *dir)
{
	char where[NC_BOX_DIR_MAX + 1];

	if (chdir(dir) < 0)
		return -errno;
	/* CVE-2024-21626: a directory of the host's shows as one that cannot be reached */
	if (!getcwd(where, sizeof(where)))
		return -errno;
	return where[0] == '/' ? 0 : -EXDEV;
}

static const char *find_path(char *const *env)
{
	for (; *env; env++)
		if (strncmp(*env, "PATH=", 5) == 0)
			return *env + 5;
	return DEFAULT_PATH;
}

/*
 * Becomes the program, or returns why not. Not by libc's function, which coverage builds replace by
 * one that writes. ENOENT counts least: another directory may have it.
 */
static int execute(char *const *argv, char *const *env)
{
	int error = ENOENT;

	if (strchr(argv[0], '/')) {
		(void)syscall(SYS_execve, argv[0], argv, env);
		return -errno;
	}
	for (const char *dir = find_path(env); *dir;) {
		const char *end = strchrnul(dir, ':');
		char path[4096];

		if (snprintf(path, sizeof(path), "%.*s/%s", (int)(end - dir), dir, argv[0]) <
			(int)sizeof(path)) {
			(void)syscall(SYS_execve, path, argv, env);
			if (errno != ENOENT && errno != ENOTDIR)
				error = errno;
		}
		dir = *end ? end + 1 : end;
	}
	return -error;
}

/* Whether it can make files that stay on the host. */
static bool shares_files(const struct nc_payload *payload)
{
	for (size_t i = 0; i < payload->n_writable; i++)
		if (payload->writable[i].right == NC_FENCE_WRITE)
			return true;
	return false;
}

/*
 * Loads the filter that asks about calls it refuses; where somebody outside has such a filter on us
 * already (EBUSY) or the kernel has none, the one that just refuses.
 */
static int load_filter(const struct nc_payload *payload, int landlock, int *listener_fd)
{
	enum nc_filter which = payload->tier == NC_TIER_PROCESS
				       ? (payload->alone ? NC_FILTER_ALONE : NC_FILTER_PROCESS)
			       : shares_files(payload) ? NC_FILTER_SHARED
						       : NC_FILTER_CONTAINER;
	int r = 0;

	/* where Landlock cannot keep signals in, and there is no pid namespace to do it */
	if (payload->box_fd < 0 && landlock < LANDLOCK_SCOPES)
		r = nc_filter_load_own_signals();
	if (r == 0)
		r = nc_filter_load(which, listener_fd);
	if (r != -EBUSY && r != -EINVAL)
		return r;
	*listener_fd = -EBADF;
	return nc_filter_load(which, NULL);
}

static int load_fence(const struct nc_payload *payload)
{
	const struct nc_fence *fence = payload->tier == NC_TIER_PROCESS ? &nc_fence_process
				       : payload->writes_root		? &nc_fence_writable
									: &nc_fence_container;

	return nc_fence_payload(fence, payload->writable, payload->n_writable);
}

int nc_child_send(int socket_fd, void *data, size_t size, const int *fds, size_t n)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(NC_WIRE_FDS_MAX * sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = data, .iov_len = size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (n > 0) {
		struct cmsghdr *header = &control.align;

		message.msg_control = control.bytes;
		message.msg_controllen = (socklen_t)CMSG_SPACE(n * sizeof(int));
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = (socklen_t)CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(header), fds, n * sizeof(int));
	}
	return checked((int)sendmsg(socket_fd, &message, MSG_NOSIGNAL));
}

void nc_child_tell(struct nc_held *held)
{
	struct nc_payload_report report = {NC_PAYLOAD_HELD, (unsigned char)held->landlock, {0}};
	int fds[NC_PAYLOAD_FDS];
	size_t n = 0;

	for (size_t i = 0; i < NC_PAYLOAD_FDS; i++) {
		report.has[i] = held->given[i] >= 0;
		if (held->given[i] >= 0)
			fds[n++] = held->given[i];
	}
	STEP(held->channel_fd, "tell by what it is held",
		nc_child_send(held->channel_fd, &report, sizeof(report), fds, n));
	held->given[NC_PAYLOAD_LISTENER] = nc_fd_close(held->given[NC_PAYLOAD_LISTENER]);
	held->given[NC_PAYLOAD_SHADE] = nc_fd_close(held->given[NC_PAYLOAD_SHADE]);
}

/*
 * A terminal of the box's own; its slave becomes standard input, output and error, and controls the
 * session. Returns the master.
 */
static int open_terminal(void)
{
	int master_fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	int locked = 0, slave_fd;

	if (master_fd < 0 || ioctl(master_fd, TIOCSPTLCK, &locked) < 0)
		return -errno;
	slave_fd = ioctl(master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave_fd < 0 || ioctl(slave_fd, TIOCSCTTY, 0) < 0 || dup2(slave_fd, 0) < 0 ||
		dup2(slave_fd, 1) < 0 || dup2(slave_fd, 2) < 0)
		return -errno;
	return master_fd;
}

/*
 * The box's one way out of its network namespace, on a port below those that it may take itself.
 * Who accepts there is outside.
 */
static int open_door(void)
{
	const struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons(NC_DOOR_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(fd, SOMAXCONN) < 0)
		return -errno;
	return fd;
}

/*
 * The door with sockets of this network, through which other boxes come in: a socket stays where it
 * was made, and nobody outside could make one. All of them wait in one descriptor, which goes the
 * way of the door. What we hold of them is closed by execve.
 */
static int pack_door(int door_fd)
{
	int fds[1 + NC_DOOR_GUESTS] = {door_fd}, ends[2], r;
	char nothing = 0;

	for (size_t i = 1; i <= NC_DOOR_GUESTS; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fds[i] < 0)
			return -errno;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	r = nc_child_send(ends[0], &nothing, 1, fds, 1 + NC_DOOR_GUESTS);
	return r < 0 ? r : ends[1];
}

static int set_window(const struct nc_box_order *order)
{
	struct winsize size = {
		.ws_row = (unsigned short)order->rows, .ws_col = (unsigned short)order->columns};

	return checked(ioctl(0, TIOCSWINSZ, &size));
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

/* Whether something comes with the order behind its streams. */
static bool has_fourth(const struct nc_box_order *order)
{
	return order->flags & (NC_ORDER_FILES | NC_ORDER_ZYGOTE) ||
	       nc_box_fds_has(&order->fds, NC_FD_PACK);
}

/* Waits for the order, which the spawner has checked; nobody's payload ends with its spawner. */
static int take_order(const struct nc_payload *payload, int channel_fd, struct nc_box_order *order,
	struct nc_wire_packet *packet)
{
	static char words[NC_BOX_WORDS_MAX];
	size_t n = payload->terminal ? 0 : 3;
	int r = nc_wire_receive(channel_fd, packet, 5);

	if (r == 0)
		_exit(0);
	if (r < 0)
		return r;
	/* the spawner has judged it */
	r = nc_boxwire_read_order(packet->data, packet->size, order);
	if (r < 0)
		return r;
	n += has_fourth(order);
	if (packet->n_fds != n + nc_box_fds_has(&order->fds, NC_FD_WORDS))
		return -EBADMSG;
	if (packet->n_fds > n) {
		r = nc_box_words_read(order, packet->fds[n], words);
		packet->fds[n] = nc_fd_close(packet->fds[n]);
	}
	return r;
}

/* What the order wants to be held by, of what can turn out to be weaker than on the host at large.
 */
static int is_held(const struct nc_box_order *order, uint32_t landlock, bool listens)
{
	static const enum nc_property judged[] = {
		NC_STRENGTH_FILESYSTEM, NC_STRENGTH_SYSCALLS, NC_STRENGTH_ACCESS};
	const struct nc_means means = {.landlock = landlock, .reported = listens};
	enum nc_grade grades[NC_STRENGTH_MAX];

	nc_means_grade(&(struct nc_box_host){0}, order->tier, &means, grades);
	for (size_t i = 0; i < sizeof(judged) / sizeof(judged[0]); i++)
		if (grades[judged[i]] < order->required[judged[i]])
			return -EOPNOTSUPP;
	return 0;
}

/* Adds a variable to env, which has room, unless the caller has set it. */
static void add_variable(char **env, char *variable)
{
	size_t name = strcspn(variable, "=") + 1;

	for (; *env; env++)
		if (strncmp(*env, variable, name) == 0)
			return;
	env[0] = variable;
	env[1] = NULL;
}

/*
 * Java and Go size heap and threads by a control group file system, which no box has, and else by
 * the host. They are told by their own means: Java where the box has one, Go wherever there are
 * fewer processors than the host's, since its programs bring it along.
 */
static void tell_runtimes(const struct nc_box_limits *limits, char **env)
{
	static char java[128], go[32];
	unsigned int processors = nc_told_fewer(limits->cpu_milli);
	size_t used = 0;

	if (limits->memory_bytes > 0)
		used += (size_t)snprintf(java, sizeof(java), "JAVA_TOOL_OPTIONS=-XX:MaxRAM=%llu",
			(unsigned long long)limits->memory_bytes);
	if (processors > 0)
		(void)snprintf(java + used, sizeof(java) - used, "%s-XX:ActiveProcessorCount=%u",
			used > 0 ? " " : "JAVA_TOOL_OPTIONS=", processors);
	if (*java && access("/usr/bin/java", X_OK) == 0)
		add_variable(env, java);
	(void)snprintf(go, sizeof(go), "GOMAXPROCS=%u", processors);
	if (processors > 0)
		add_variable(env, go);
}

/* For a program that will take its order itself, and what it has to know for that. */
static int keep_channel(const struct nc_payload *payload, const struct nc_held *held, char **env)
{
	static char variable[64];

	(void)snprintf(variable, sizeof(variable), NC_AHEAD_VARIABLE "=%u,%d,%d",
		payload->group ? payload->group->parent->can : 0, held->landlock, held->listens);
	while (*env)
		env++;
	env[0] = variable;
	env[1] = NULL;
	return checked(fcntl(held->channel_fd, F_SETFD, 0));
}

void nc_child_follow(const struct nc_payload *payload, struct nc_held *held,
	struct nc_child_program *ret_program)
{
	static char *argv[NC_BOX_ARGS_MAX + 1], *env[NC_BOX_ARGS_MAX + 4];
	static struct nc_box_order order;
	static struct nc_wire_packet packet;
	char failed[NC_PATH_MAX + 1];
	int files_fd;

	STEP(held->channel_fd, "take the order",
		take_order(payload, held->channel_fd, &order, &packet));
	STEP(held->channel_fd, "tell the limits", nc_told_write(&held->told, &order.limits));
	STEP(held->channel_fd, "hold the floor",
		is_held(&order, (uint32_t)held->landlock, held->listens));
	split_words(&order.argv, argv);
	split_words(&order.env, env);
	tell_runtimes(&order.limits, env);
	if (payload->terminal)
		STEP(held->channel_fd, "size the terminal", set_window(&order));
	else
		STEP(held->channel_fd, "take over the pipes", take_stdio(packet.fds));
	files_fd = has_fourth(&order) ? packet.fds[3] : -EBADF;
	if (payload->ahead) { /* it has some of its own by now */
		for (size_t i = 0; i < 3; i++)
			(void)nc_fd_close(packet.fds[i]);
	} else {
		STEP(held->channel_fd, "close what came with the order",
			keep_only(&held->channel_fd, files_fd));
		files_fd = files_fd >= 0 ? FILES_FD : -EBADF;
	}
	/* those of what comes later may be others */
	if (!(order.flags & (NC_ORDER_ZYGOTE | NC_ORDER_AHEAD)))
		STEP(held->channel_fd, "set limits", set_limits(payload, &order.limits));
	STEP(held->channel_fd, "change the directory", go_to(order.dir));
	if (nc_box_fds_has(&order.fds, NC_FD_PACK)) {
		int r = nc_put(files_fd, failed);

		if (r < 0)
			give_up_as(NC_FAIL_FILES, held->channel_fd, -r, "put the files");
		(void)close(files_fd);
	}
	if (order.flags & NC_ORDER_AHEAD)
		STEP(held->channel_fd, "keep the channel", keep_channel(payload, held, env));
	if (order.flags & NC_ORDER_ZYGOTE)
		STEP(held->channel_fd, "keep the socket", checked(fcntl(FILES_FD, F_SETFD, 0)));
	*ret_program = (struct nc_child_program){argv, env, (order.flags & NC_ORDER_FILES) != 0};
}

_Noreturn void nc_child_execute(const struct nc_held *held, const struct nc_child_program *program)
{
	if (program->is_files)
		(void)syscall(
			SYS_execveat, FILES_FD, "", program->argv, program->env, AT_EMPTY_PATH);
	give_up_as(NC_FAIL_PROGRAM, held->channel_fd,
		program->is_files ? errno : -execute(program->argv, program->env),
		"start the program");
}

/* Before the box is entered: the files of the groups are the host root's. */
static void join_groups(const struct nc_payload *payload, int channel)
{
	for (size_t i = 0; i < payload->n_join; i++)
		STEP(channel, "join the box's control group",
			checked((int)write(payload->join_fds[i], "0", 1)));
	if (payload->lent)
		return;
	/* when the host runs out of memory, boxes go first */
	STEP(channel, "offer itself to the OOM killer",
		nc_fd_write_control(AT_FDCWD, "/proc/self/oom_score_adj", "500"));
	STEP(channel, "join the box's control group", join(payload->group));
}

/* Into the box's namespaces; a child that was lent is in most of them already. */
static void enter_box(const struct nc_payload *payload, int channel)
{
	/* a zygote's children enter other boxes, which only who is outside of one can */
	const int spaces =
		(payload->zygote ? 0 : CLONE_NEWUSER) | CLONE_NEWUTS |
		(payload->tier == NC_TIER_CONTAINER ? CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC
						    : 0);

	if (payload->built_fd >= 0)
		STEP(channel, "wait for the root", wait_for_root(payload->built_fd));
	if (payload->processors)
		STEP(channel, "run on any processor", nc_processor_roam(payload->processors));
	if (!payload->lent && payload->box_fd >= 0)
		STEP(channel, "enter the box", checked(setns(payload->box_fd, spaces)));
	/* its top is the group that the payload is in by now */
	if (payload->tier == NC_TIER_CONTAINER)
		STEP(channel, "make a cgroup namespace", checked(unshare(CLONE_NEWCGROUP)));
}

/* A zygote runs nothing foreign, and what it forbids itself its children would never have. */
static int restrict_zygote(struct nc_held *held)
{
	held->landlock = nc_fence_scopes();
	return held->landlock < 0 ? held->landlock : 0;
}

/* Root of the box keeps some capabilities, which are those of its own user namespace. */
static void take_user(const struct nc_payload *payload, int channel)
{
	struct nc_user user = {payload->id, payload->id};
	const char *step = "";
	int r;

	if (payload->user)
		STEP(channel,
			"take the user, who has to be in the box's /etc/passwd or a number below "
			"65535",
			nc_user_find(payload->user, &user));
	if (payload->user && user.uid == 0) {
		r = nc_user_become_root(FILES_FD, &step);
		STEP(channel, step, r);
		(void)close(FILES_FD);
		return;
	}
	if (payload->user)
		(void)close(FILES_FD);
	if (!payload->keeps_id) {
		STEP(channel, "close the ways to capabilities", nc_caps_bound());
		STEP(channel, "become the command's user", become(user.uid, user.gid));
	}
	STEP(channel, "drop capabilities", nc_caps_set(0));
}

void nc_child_hold(const struct nc_payload *payload, struct nc_held *ret_held)
{
	struct nc_held held = {
		.channel_fd = payload->channel_fd, .given = {-EBADF, -EBADF, -EBADF, -EBADF}};
	int proc_fd = -EBADF;

	/* nothing foreign runs that the spawner could not end */
	if (payload->go_fd >= 0)
		STEP(held.channel_fd, "wait for the spawner", wait_for_go(payload->go_fd));
	if (payload->sweeps)
		_exit(-sweep(payload->host_pid_ns));
	STEP(held.channel_fd, "leave the caller's keyring", leave_keyring());
	join_groups(payload, held.channel_fd);
	STEP(held.channel_fd, "start a session", checked(setsid()));
	if (!payload->lent) /* the zygote has done it, and has some of its own by now */
		STEP(held.channel_fd, "reset signals", reset_signals());
	STEP(held.channel_fd, "leave the spawner's priority", leave_priority());
	(void)umask(022);
	STEP(held.channel_fd, "keep the host's core handler away (ulimit -Hc is 0)",
		set_core_limit());
	STEP(held.channel_fd, "set limits", set_usual_limits());
	if (payload->user) { /* of the host: it is writable, and has no strangers' files */
		proc_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
		STEP(held.channel_fd, "find ourselves in /proc", checked(proc_fd));
	}
	enter_box(payload, held.channel_fd);
	STEP(held.channel_fd, "close the spawner's descriptors",
		keep_only(&held.channel_fd, proc_fd));
	if (payload->tier == NC_TIER_CONTAINER)
		nc_told_open(&held.told);
	if (payload->door) { /* while it may take that port */
		int door_fd = open_door();

		STEP(held.channel_fd, "open the door", door_fd);
		held.given[NC_PAYLOAD_DOOR] = payload->guests ? pack_door(door_fd) : door_fd;
		STEP(held.channel_fd, "open it to guests", held.given[NC_PAYLOAD_DOOR]);
	}
	take_user(payload, held.channel_fd);
	if (payload->terminal) { /* it belongs to whoever opens it */
		held.given[NC_PAYLOAD_TERMINAL] = open_terminal();
		STEP(held.channel_fd, "open a terminal", held.given[NC_PAYLOAD_TERMINAL]);
	}
	STEP(held.channel_fd, "set no_new_privs", checked(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
	STEP(held.channel_fd, "die with the spawner", die_with_parent());
	/* outside of the domain of Landlock that follows, so that the program can do nothing to it
	 */
	if (payload->lent && payload->group && nc_shade_wanted(payload->group->parent->can)) {
		held.given[NC_PAYLOAD_SHADE] = nc_shade_make();
		STEP(held.channel_fd, "make a shade", held.given[NC_PAYLOAD_SHADE]);
	}
	if (payload->zygote) {
		STEP(held.channel_fd, "restrict by Landlock", restrict_zygote(&held));
	} else {
		held.landlock = load_fence(payload);
		STEP(held.channel_fd, "restrict by Landlock", held.landlock);
		STEP(held.channel_fd, "restrict system calls",
			load_filter(payload, held.landlock, &held.given[NC_PAYLOAD_LISTENER]));
	}
	held.listens = held.given[NC_PAYLOAD_LISTENER] >= 0;
	*ret_held = held;
}

_Noreturn void nc_child_payload(const struct nc_payload *payload)
{
	struct nc_child_program program;
	struct nc_held held;

	/* or it would never see the spawner's end close */
	(void)nc_fd_close(payload->other_fd);
	nc_child_hold(payload, &held);
	nc_child_tell(&held);
	nc_child_follow(payload, &held, &program);
	nc_child_execute(&held, &program);
}
