/*
 * nacre-spawner: the parent of the unprivileged side and of all boxes, and the only privilege.
 *
 * Theory of operation: `nacre` executes this program in its own place, with its own executable open
 * as descriptor 3 and its arguments as ours. We start it again as the worker, without privilege,
 * with one end of a socket pair as its descriptor 3, and do what it asks for: a closed table of
 * messages, each checked again here. Whatever is not in the table ends the worker. When the worker
 * ends, so do the boxes, and we end with its exit status.
 *
 * Stages of locking in: (1) open what needs the caller's rights (nacre-init, the directory of
 * locks); (2) start the worker, before we become stranger than it; (3) as an ordinary user, enter a
 * user namespace of our own; (4) drop groups and all capabilities but those that make boxes.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/pidfd.h"
#include "kernel/caps.h"
#include "kernel/userns.h"
#include "spawner/box.h"

#define WORKER_EXE_FD 3
#define EXIT_SELF 125

/* What the worker runs as when root started us: an id that owns nothing. */
#define WORKER_ID (NC_SLOT_FIRST_ID - 1)

/* nacre-init is a few kilobytes. */
#define INIT_SIZE_MAX (1024U * 1024)

/* How often a running box is looked at: version 1 kills one process for memory, not the group. */
#define CHECK_NS (100 * NC_NS_PER_MS)

struct spawner {
	struct nc_nursery nursery;
	int worker_pidfd;
	pid_t worker_pid;
	int worker_fd; /* our end of the pair; -EBADF once the worker is gone */
	int signal_fd;
	bool greeted;
	bool broken;	     /* the worker was ended by us */
	char id[NC_ID_SIZE]; /* names our lock and our control groups */
	int lock_fd;
	struct nc_wire_packet packet;
	struct nc_box boxes[NC_BOXES_MAX];
};

static struct spawner spawner; /* too large for the stack, and there is only one */

static int fail(const struct nacre_err *err)
{
	fprintf(stderr, "nacre-spawner: %s\n", err->message);
	return EXIT_SELF;
}

/* A copy of nacre-init that nobody can change: what boxes execute is not the file on the disk. */
static int load_init(struct nacre_err *err)
{
	cleanup_free char *text = NULL;
	cleanup_close int file_fd = -EBADF;
	cleanup_close int memory_fd = -EBADF;
	char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - sizeof("nacre-init"));
	char *name;
	size_t size;
	int r;

	if (length < 0)
		return nc_err_errno(err, -errno, "Find nacre-init");
	path[length] = '\0';
	name = strrchr(path, '/') + 1;
	memcpy(name, "nacre-init", sizeof("nacre-init"));
	file_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (file_fd < 0)
		return nc_err_errno(err, -errno, "Open %s", path);
	r = nc_fd_read_all(file_fd, INIT_SIZE_MAX, &text, &size);
	if (r < 0)
		return nc_err_errno(err, r, "Read %s", path);
	memory_fd = memfd_create("nacre-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (memory_fd < 0)
		return nc_err_errno(err, -errno, "Copy nacre-init");
	r = nc_fd_write_all(memory_fd, text, size);
	if (r == 0 && fcntl(memory_fd, F_ADD_SEALS,
			      F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		r = -errno;
	return r < 0 ? nc_err_errno(err, r, "Seal nacre-init") : take_fd(memory_fd);
}

/*
 * Whether ranges of ids can be mapped: root of the first user namespace. In any other one a box
 * runs as whoever we are, which must not be the host's root under another number: /proc/sys belongs
 * to that root, and shows us by which number we would know it.
 */
static int has_ranges(bool *ret_ranges, struct nacre_err *err)
{
	cleanup_free char *map = NULL;
	unsigned long inside, outside, count;
	struct stat status;
	char *at;
	int r = nc_fd_read_proc("/proc/self/uid_map", &map);

	if (r < 0 || stat("/proc/sys", &status) < 0)
		return nc_err_errno(err, r < 0 ? r : -errno, "Look at our own mapping of ids");
	/* the first line, "inside outside count"; an empty map reads as zeros, which is no range */
	inside = strtoul(map, &at, 10);
	outside = strtoul(at, &at, 10);
	count = strtoul(at, &at, 10);
	*ret_ranges = geteuid() == 0 && inside == 0 && outside == 0 && count > NC_SLOT_FIRST_ID;
	if (!*ret_ranges && status.st_uid == geteuid())
		return nc_err_set(err, -EPERM,
			"In this user namespace we are the host's root, and boxes would run as it: "
			"run Nacre outside of it, or as another user");
	return 0;
}

_Noreturn static void give_up(const char *step)
{
	fprintf(stderr, "nacre-spawner: start the worker: %s: %s\n", step, nc_errno_text(errno));
	_exit(EXIT_SELF);
}

_Noreturn static void become_worker(int socket_fd, char **argv, bool drop)
{
	int exe_fd;

	if (drop && (setgroups(0, NULL) < 0 || nc_caps_bound() < 0 ||
			    setresgid(WORKER_ID, WORKER_ID, WORKER_ID) < 0 ||
			    setresuid(WORKER_ID, WORKER_ID, WORKER_ID) < 0 || nc_caps_set(0) < 0))
		give_up("drop privileges");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
		setenv("NACRE_SPAWNER", "3", 1) < 0)
		give_up("set no_new_privs");
	/* its own executable moves away from 3, where the socket has to be */
	exe_fd = nc_fd_dup(WORKER_EXE_FD);
	if (exe_fd < 0 || dup2(socket_fd, 3) < 0 || close_range(4, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		give_up("hand over the socket");
	(void)syscall(SYS_execveat, exe_fd, "", argv, environ, AT_EMPTY_PATH);
	give_up("execute it");
}

static int start_worker(char **argv, bool drop, struct nacre_err *err)
{
	int ends[2];
	int r = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return nc_err_errno(err, -errno, "Make a socket pair");
	spawner.worker_pid = fork();
	if (spawner.worker_pid == 0)
		become_worker(ends[1], argv, drop);
	spawner.worker_pidfd = spawner.worker_pid < 0 ? -errno : nc_pidfd_open(spawner.worker_pid);
	(void)close(ends[1]);
	(void)close(WORKER_EXE_FD);
	spawner.worker_fd = ends[0];
	if (spawner.worker_pidfd < 0)
		r = spawner.worker_pidfd;
	else if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	return r < 0 ? nc_err_errno(err, r, "Start the worker") : 0;
}

static int lock_in(bool ranges, struct nacre_err *err)
{
	/*
	 * SETUID, SETGID: maps of ids. SYS_ADMIN, SYS_PTRACE: entering boxes. KILL: ending them.
	 * DAC_OVERRIDE: the top of a cgroup hierarchy is read-only even for its owner. In a user
	 * namespace of our own we map the id that is 0 there, for which Linux 5.12 wants SETFCAP.
	 */
	const uint64_t keep = 1ULL << CAP_SETUID | 1ULL << CAP_SETGID | 1ULL << CAP_SYS_ADMIN |
			      1ULL << CAP_KILL | 1ULL << CAP_SYS_PTRACE |
			      1ULL << (ranges ? CAP_DAC_OVERRIDE : CAP_SETFCAP);
	int r = 0;

	if (!ranges && geteuid() != 0)
		r = nc_userns_enter_self();
	if (r < 0)
		return nc_err_errno(err, r, "Make a user namespace (see: nacre doctor)");
	if (ranges && setgroups(0, NULL) < 0)
		return nc_err_errno(err, -errno, "Drop groups");
	r = nc_caps_bound();
	if (r == 0)
		r = nc_caps_set(keep);
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	spawner.nursery.pid_ns_fd =
		ranges ? open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC) : -EBADF;
	if (r == 0 && ranges && spawner.nursery.pid_ns_fd < 0)
		r = -errno;
	/* ids are written as our own user namespace sees them, and there we are 0 */
	return r < 0 ? nc_err_errno(err, r, "Drop privileges") : 0;
}

static int catch_signals(struct nacre_err *err)
{
	sigset_t caught;

	/* the terminal's signals are the worker's to act on; it ends, and then we do */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGQUIT, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&caught);
	(void)sigaddset(&caught, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &caught, NULL) < 0)
		return nc_err_errno(err, -errno, "Block signals");
	spawner.signal_fd = signalfd(-1, &caught, SFD_CLOEXEC);
	return spawner.signal_fd < 0 ? nc_err_errno(err, -errno, "Catch signals") : 0;
}

/* A worker that breaks the rules is ended; its boxes follow. */
static void end_worker(const char *why)
{
	fprintf(stderr, "nacre-spawner: ending the worker: %s\n", why);
	spawner.broken = true;
	(void)nc_pidfd_kill(spawner.worker_pidfd, SIGKILL);
	spawner.worker_fd = nc_fd_close(spawner.worker_fd);
}

/* We never wait for the worker: boxes have deadlines. One that does not read its mail is ended. */
static void send_and_free(struct nc_wire_out *out)
{
	int r = spawner.worker_fd >= 0 ? nc_wire_send(spawner.worker_fd, out, NULL, 0) : 0;

	if (r == -EAGAIN)
		end_worker("it does not read its messages");
	else if (r < 0)
		spawner.worker_fd = nc_fd_close(spawner.worker_fd);
	nc_wire_out_done(out);
}

static struct nc_box *find_box(uint64_t id)
{
	for (size_t i = 0; i < NC_BOXES_MAX; i++)
		if (spawner.boxes[i].state != NC_BOX_FREE && spawner.boxes[i].end.id == id)
			return &spawner.boxes[i];
	return NULL;
}

static struct nc_box *free_box(void)
{
	for (size_t i = 0; i < NC_BOXES_MAX; i++)
		if (spawner.boxes[i].state == NC_BOX_FREE)
			return &spawner.boxes[i];
	return NULL;
}

static int handle_hello(struct nc_wire_in *in)
{
	struct nc_wire_out out;
	struct nc_box_host host = {
		.ranges = spawner.nursery.slot_dir_fd >= 0, .cgroups = spawner.nursery.cgroups.can};
	uint32_t version = nc_wire_get_u32(in);

	if (nc_wire_close(in) < 0 || version != NC_BOXWIRE_VERSION)
		return -EBADMSG;
	spawner.greeted = true;
	nc_wire_begin(&out, NC_BOX_WELCOME);
	nc_wire_put_u32(&out, NC_BOXWIRE_VERSION);
	nc_boxwire_put_host(&out, &host);
	send_and_free(&out);
	return 0;
}

static bool within(uint64_t value, uint64_t least, uint64_t most)
{
	return value >= least && value <= most;
}

/* The spawner's own maxima, whatever the other side thinks of them. */
static bool limits_are_sane(const struct nc_box_limits *limits)
{
	return within(limits->memory_bytes, 1U << 20, 1ULL << 40) &&
	       within(limits->cpu_milli, 10, 1024000) && limits->cpu_time_ms <= 7 * 86400000ULL &&
	       within(limits->wall_ms, 1, 7 * 86400000ULL) && within(limits->pids, 1, 32768) &&
	       within(limits->disk_bytes, 4096, 1ULL << 40) &&
	       within(limits->inodes, 16, 1ULL << 32) && within(limits->open_files, 8, 1U << 20);
}

static void report_failure(uint64_t id, const struct nacre_err *err)
{
	struct nc_wire_out out;

	nc_wire_begin(&out, NC_BOX_FAILED);
	nc_wire_put_u64(&out, id);
	nc_wire_put_u32(&out, (uint32_t)-err->code);
	nc_wire_put_text(&out, err->message);
	send_and_free(&out);
}

/* Pipes and /dev/null: a file could be read back, a directory entered, a socket carry descriptors.
 */
static bool is_stream(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 &&
	       (S_ISFIFO(status.st_mode) ||
		       (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3)));
}

/* Safe: what is built is fixed but for numbers in range; strings are used inside the box only. */
static int handle_run(struct nc_wire_in *in)
{
	struct nacre_err err = {0};
	struct nc_box_order order;
	struct nc_box *box = free_box();
	struct nc_wire_out out;
	uint64_t started = nc_clock_ns();

	nc_boxwire_get_order(in, &order);
	if (nc_wire_close(in) < 0 || !limits_are_sane(&order.limits) || order.dir[0] != '/' ||
		find_box(order.id) || !is_stream(spawner.packet.fds[0]) ||
		!is_stream(spawner.packet.fds[1]) || !is_stream(spawner.packet.fds[2]))
		return -EBADMSG;
	if (!box)
		nc_err_set(&err, -EAGAIN, "This spawner has %u boxes already", NC_BOXES_MAX);
	else
		(void)nc_box_birth(&spawner.nursery, &order, spawner.packet.fds, box, &err);
	/* the box's ends of the pipes are the box's alone: else their other ends would never see an
	 * end */
	for (size_t i = 0; i < spawner.packet.n_fds; i++)
		spawner.packet.fds[i] = nc_fd_close(spawner.packet.fds[i]);
	if (err.code < 0) {
		report_failure(order.id, &err);
		return 0;
	}
	nc_wire_begin(&out, NC_BOX_STARTED);
	nc_wire_put_u64(&out, order.id);
	nc_wire_put_u64(&out, nc_clock_ns() - started);
	send_and_free(&out);
	return 0;
}

/* Safe: only boxes of this worker can be named, and ending one twice does nothing. */
static int handle_kill(struct nc_wire_in *in)
{
	uint64_t id = nc_wire_get_u64(in);
	uint8_t cause = nc_wire_get_u8(in);
	struct nc_box *box;

	if (nc_wire_close(in) < 0 || (cause != NC_CAUSE_OUTPUT && cause != NC_CAUSE_CANCEL))
		return -EBADMSG;
	box = find_box(id);
	if (box)
		nc_box_kill(box, cause);
	return 0;
}

/* Everything that may be asked, when, and with how many descriptors. */
static const struct {
	enum nc_box_message type;
	bool greeted; /* the state that it belongs to */
	size_t n_fds;
	int (*handle)(struct nc_wire_in *in);
} requests[] = {
	{NC_BOX_HELLO, false, 0, handle_hello},
	{NC_BOX_RUN, true, 3, handle_run},
	{NC_BOX_KILL, true, 0, handle_kill},
};

static void handle_packet(void)
{
	struct nc_wire_in in;

	if (nc_wire_open(&in, spawner.packet.data, spawner.packet.size) < 0) {
		end_worker("not a message");
		return;
	}
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		if (requests[i].type != in.type)
			continue;
		if (requests[i].greeted != spawner.greeted ||
			requests[i].n_fds != spawner.packet.n_fds || requests[i].handle(&in) < 0)
			end_worker("a message that breaks the rules");
		return;
	}
	end_worker("an unknown message");
}

static void receive(void)
{
	int r = nc_wire_receive(spawner.worker_fd, &spawner.packet, 3);

	if (r > 0)
		handle_packet();
	else if (r == -EAGAIN)
		return;
	else if (r == 0 || r == -ECONNRESET) /* it has gone, the latter with mail unread */
		spawner.worker_fd = nc_fd_close(spawner.worker_fd);
	else
		end_worker(r == -EBADMSG ? "a broken message" : nc_errno_text(r));
}

static void tell_end(const struct nc_box *box)
{
	struct nc_wire_out out;

	nc_wire_begin(&out, NC_BOX_ENDED);
	nc_boxwire_put_end(&out, &box->end);
	send_and_free(&out);
}

/* The payload has ended, or everything has. */
static void handle_box(struct nc_box *box)
{
	if (box->state == NC_BOX_RUNS) {
		nc_box_payload_ended(box);
	} else if (box->state == NC_BOX_DYING) {
		nc_box_bury(box);
		tell_end(box);
	}
}

static uint64_t check_deadlines(void)
{
	uint64_t now = nc_clock_ns(), next = UINT64_MAX;

	for (size_t i = 0; i < NC_BOXES_MAX; i++) {
		struct nc_box *box = &spawner.boxes[i];

		if (box->state == NC_BOX_DYING && now + CHECK_NS < next)
			next = now + CHECK_NS;
		if (box->state != NC_BOX_RUNS)
			continue;
		if (box->deadline_ns <= now)
			nc_box_kill(box, NC_CAUSE_WALL);
		else if (box->deadline_ns < next)
			next = box->deadline_ns;
		if (spawner.nursery.cgroups.can & NC_CGROUP_CAN_MEMORY) {
			nc_box_check(box);
			if (now + CHECK_NS < next)
				next = now + CHECK_NS;
		}
	}
	return next;
}

/* Two descriptors per box: its end (the payload's, then process 1's), and its refused calls. */
static size_t collect_events(struct pollfd *events, struct nc_box **owners)
{
	size_t n = 0;

	events[n++] = (struct pollfd){.fd = spawner.worker_pidfd, .events = POLLIN};
	events[n++] = (struct pollfd){.fd = spawner.signal_fd, .events = POLLIN};
	events[n++] = (struct pollfd){.fd = spawner.worker_fd, .events = POLLIN};
	for (size_t i = 0; i < NC_BOXES_MAX; i++) {
		struct nc_box *box = &spawner.boxes[i];

		if (box->state == NC_BOX_FREE)
			continue;
		owners[n] = owners[n + 1] = box;
		events[n++] = (struct pollfd){
			.fd = box->state == NC_BOX_RUNS ? box->payload_fd : box->init_fd,
			.events = POLLIN};
		events[n++] = (struct pollfd){.fd = box->listener_fd, .events = POLLIN};
	}
	return n;
}

/*
 * Reaps children that are none of ours. The filter refuses what would give us any; but while one is
 * unreaped its box cannot end, so that is not left to one layer.
 */
static void reap_strays(void)
{
	for (int i = 0; i < 64; i++) {
		siginfo_t info = {0};

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 ||
			info.si_pid <= 0 || info.si_pid == spawner.worker_pid)
			return;
		for (size_t j = 0; j < NC_BOXES_MAX; j++)
			if (spawner.boxes[j].state != NC_BOX_FREE &&
				(spawner.boxes[j].init_pid == info.si_pid ||
					spawner.boxes[j].payload_pid == info.si_pid))
				return; /* seen by its own descriptor */
		(void)waitpid(info.si_pid, NULL, WNOHANG | __WALL);
	}
}

/* Serves until the worker ends. */
static void serve(void)
{
	static struct pollfd events[2 * NC_BOXES_MAX + 3];
	static struct nc_box *owners[2 * NC_BOXES_MAX + 3];

	for (;;) {
		uint64_t next = check_deadlines();
		size_t n = collect_events(events, owners);
		int r = poll(events, n, next == UINT64_MAX ? -1 : nc_clock_left_ms(next));

		if (r < 0)
			continue; /* interrupted */
		if (r == 0)
			reap_strays();
		for (size_t i = 3; i < n; i += 2) {
			if (events[i + 1].revents)
				nc_box_denied(owners[i]);
			if (events[i].revents)
				handle_box(owners[i]);
		}
		if (events[1].revents)
			(void)nc_pidfd_kill(spawner.worker_pidfd, SIGKILL);
		if (events[2].revents && spawner.worker_fd >= 0)
			receive();
		if (events[0].revents)
			return;
	}
}

/* Ends every box that is left, and does not return before all of them are dead. */
static void end_boxes(void)
{
	for (size_t i = 0; i < NC_BOXES_MAX; i++)
		nc_box_kill(&spawner.boxes[i], NC_CAUSE_CANCEL);
	for (size_t i = 0; i < NC_BOXES_MAX; i++) {
		if (spawner.boxes[i].state == NC_BOX_RUNS)
			nc_box_payload_ended(&spawner.boxes[i]);
		if (spawner.boxes[i].state == NC_BOX_DYING)
			nc_box_bury(&spawner.boxes[i]);
	}
}

/* Only ids of spawners are judged, and each by its own lock; others' groups are others' business.
 */
static bool is_dead_spawner(const char *id, void *context)
{
	(void)context;
	return strncmp(id, "sp_", 3) == 0 && nc_slot_is_dead(spawner.nursery.slot_dir_fd, id);
}

/* The control groups of our boxes, and an end to those whose spawner is gone. */
static int open_groups(struct nacre_err *err)
{
	int r = nc_id_new("sp", spawner.id);

	if (r < 0)
		return nc_err_errno(err, r, "Make an id");
	spawner.lock_fd = nc_slot_lock_self(spawner.nursery.slot_dir_fd, spawner.id, err);
	if (spawner.lock_fd < 0)
		return spawner.lock_fd;
	r = nc_cgroup_parent_open(&spawner.nursery.cgroups, spawner.id, err);
	if (r < 0)
		return r;
	r = nc_cgroup_sweep(&spawner.nursery.cgroups, is_dead_spawner, NULL);
	if (r < 0)
		fprintf(stderr, "nacre-spawner: sweep leftovers, ignoring: %s\n", nc_errno_text(r));
	else
		nc_slot_sweep(spawner.nursery.slot_dir_fd);
	return 0;
}

static void close_groups(void)
{
	nc_cgroup_parent_close(&spawner.nursery.cgroups);
	nc_slot_unlock_self(spawner.nursery.slot_dir_fd, spawner.id, spawner.lock_fd);
}

/* A box takes some twenty descriptors; the limit that shells set is for programs with select(). */
static void raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(
			RLIMIT_NOFILE, &limit); /* fewer boxes otherwise, with a clear error */
	}
}

static int start(char **argv, struct nacre_err *err)
{
	bool ranges = false;
	int r = has_ranges(&ranges, err);

	spawner.nursery.slot_dir_fd = -EBADF;
	if (r == 0) {
		r = spawner.nursery.init_fd = load_init(err);
		r = r < 0 ? r : 0;
	}
	if (r == 0 && ranges) {
		r = spawner.nursery.slot_dir_fd = nc_slot_open_dir(err);
		r = r < 0 ? r : open_groups(err);
	}
	if (r == 0)
		r = start_worker(argv, ranges, err);
	if (r == 0)
		r = catch_signals(err);
	if (r == 0)
		r = lock_in(ranges, err);
	raise_limits();
	return r;
}

int main(int argc, char **argv)
{
	struct nacre_err err = {0};
	siginfo_t info = {0};

	spawner.worker_pidfd = spawner.worker_fd = spawner.signal_fd = spawner.lock_fd = -EBADF;
	if (argc < 2 || fcntl(WORKER_EXE_FD, F_GETFD) < 0) {
		fputs("nacre-spawner is started by nacre, not by hand\n", stderr);
		return EXIT_SELF;
	}
	if (start(argv + 1, &err) < 0) {
		spawner.worker_pidfd = nc_pidfd_end(spawner.worker_pidfd);
		close_groups();
		return fail(&err);
	}
	serve();
	end_boxes();
	close_groups();
	if (nc_pidfd_wait(spawner.worker_pidfd, nc_clock_ns() + NC_NS_PER_S, &info) < 0)
		return EXIT_SELF;
	if (spawner.broken)
		return EXIT_SELF;
	/* all that it can say before it greets is that it is content, or 125 and why */
	if (!spawner.greeted && (info.si_code != CLD_EXITED ||
					(info.si_status != 0 && info.si_status != EXIT_SELF))) {
		fputs("nacre-spawner: the worker died before it began\n", stderr);
		return EXIT_SELF;
	}
	return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}
