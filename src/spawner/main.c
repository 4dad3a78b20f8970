/*
 * nacre-spawner: the parent of the unprivileged side and of all boxes, and the only privilege.
 *
 *	nacre-spawner WORKER READY BINDS[,WITNESS[,HEIRS[,PATIENCE[,LASTING]]]] [ARGUMENT...]
 *
 * Theory of operation: `nacre` forks; the child becomes the worker, without privilege, and the
 * parent becomes this program, with one end of a socket pair as descriptor 3. We do what the worker
 * asks for: a closed table of messages, each checked again here. Whatever is not in the table ends
 * the worker. When the worker ends, so do its boxes, and we end with its exit status.
 *
 * WORKER is its process id. With ARGUMENTs it is started again when it dies, as that command, from
 * the executable that is open as descriptor 4, and boxes that it wanted kept live on; WORKER 0 is
 * none yet: it is started, once. READY boxes are prepared at once. BINDS descriptors from 5 on are
 * what the caller allows boxes to be shown of the host. WITNESS is the descriptor of a socket to
 * nacre-recorder, which is told of births and deaths and never answers; 0: there is none. HEIRS
 * descriptors from 32 on are handed to each worker that is started, which finds them from 4 on.
 * PATIENCE is how many seconds a worker that is told to terminate may take to finish; it is told of
 * hang-ups too. 0: it is killed at once. LASTING is 1 where boxes that stay, and zygotes, are to
 * come.
 *
 * Stages of locking in: (1) open nacre-init with the caller's rights; (2) as an ordinary user,
 * enter a user namespace of our own, where files and control groups that are his still are; drop
 * groups; (3) take our locks, open the rest, drop all capabilities but those that make boxes;
 * (4) refuse ourselves every system call that no box is made with. READY boxes are begun before
 * (3): their first processes have what their own user namespaces give them, whatever we have, and
 * nobody has been listened to yet.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/parse.h"
#include "base/pidfd.h"
#include "kernel/caps.h"
#include "kernel/fence.h"
#include "kernel/filter.h"
#include "kernel/program.h"
#include "kernel/userns.h"
#include "spawner/birth.h"
#include "spawner/groups.h"
#include "spawner/spawner.h"

#define SOCKET_FD 3
#define WORKER_EXE_FD 4
#define BINDS_FD 5
#define HEIRS_FD 32
#define EXIT_SELF 125

/* Above all that boxes may have. */
#define SPAWNER_PRIORITY (-10)

static struct nc_spawner spawner; /* too large for the stack, and there is only one */

static int fail(const struct nacre_err *err)
{
	fprintf(stderr, "nacre-spawner: %s\n", err->message);
	return EXIT_SELF;
}

/*
 * The user namespace that an ordinary user's boxes are made in; who is root of one already has it.
 * With mounts of its own: those of another namespace cannot be cloned, nor a file system resized.
 */
static void enter_own_namespaces(void)
{
	spawner.nursery.host.user_ns =
		(geteuid() == 0 || nc_userns_enter_self() == 0) && unshare(CLONE_NEWNS) == 0;
}

static int lock_in(bool ranges, struct nacre_err *err)
{
	/*
	 * SETUID, SETGID: maps of ids. SYS_ADMIN, SYS_PTRACE: entering boxes. SYS_CHROOT: the root
	 * of one without being its root, for zygotes. KILL: ending them.
	 * CHOWN: the directories of process boxes. DAC_OVERRIDE: the top of a cgroup hierarchy is
	 * read-only even for its owner. In a user namespace of our own we map the id that is 0
	 * there, for which Linux 5.12 wants SETFCAP.
	 */
	const uint64_t keep =
		1ULL << CAP_SETUID | 1ULL << CAP_SETGID | 1ULL << CAP_SYS_ADMIN | 1ULL << CAP_KILL |
		1ULL << CAP_SYS_PTRACE | 1ULL << CAP_SYS_CHROOT |
		(ranges ? 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_CHOWN : 1ULL << CAP_SETFCAP);
	const unsigned int id = geteuid();
	int r = 0;

	/* deadlines are kept under load too; what we start takes its own place again */
	(void)setpriority(PRIO_PROCESS, 0, SPAWNER_PRIORITY); /* an ordinary user may not */
	spawner.nursery.host.user_ns = true;
	if (!ranges)
		enter_own_namespaces();
	/* neither the caller any more nor root of a namespace of our own */
	if (!spawner.nursery.host.user_ns && geteuid() != id && geteuid() != 0)
		return nc_err_set(err, -EPERM, "Map our own id into a user namespace");
	spawner.nursery.caps = keep;
	if (ranges && setgroups(0, NULL) < 0)
		return nc_err_errno(err, -errno, "Drop groups");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	/* what a box leaves behind comes to us, so that we see the end of it */
	if (r == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
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
	if (spawner.patience_ns > 0) {
		(void)signal(SIGHUP, SIG_DFL);
		(void)sigaddset(&caught, SIGHUP);
	}
	if (sigprocmask(SIG_BLOCK, &caught, NULL) < 0)
		return nc_err_errno(err, -errno, "Block signals");
	spawner.signal_fd = signalfd(-1, &caught, SFD_CLOEXEC);
	return spawner.signal_fd < 0 ? nc_err_errno(err, -errno, "Catch signals") : 0;
}

static void close_places(void)
{
	nc_groups_close(&spawner.nursery);
	nc_locks_close(&spawner.nursery.locks, spawner.nursery.scratch.id);
	nc_scratch_close(&spawner.nursery.scratch);
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

/* Numbers with commas between, as many as there are; the others are 0. */
static int read_numbers(char *text, uint64_t *numbers, size_t n)
{
	for (size_t i = 0; i < n && text; i++)
		if (nc_parse_u64(strsep(&text, ","), 0, 4095, &numbers[i]) < 0)
			return -EINVAL;
	return text ? -EINVAL : 0;
}

/* Descriptors that are ours, and nobody's below us. */
static int close_later(int first, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (fcntl(first + (int)i, F_SETFD, FD_CLOEXEC) < 0)
			return -errno;
	return 0;
}

static int note_binds(uint64_t n)
{
	spawner.nursery.n_binds = n;
	for (size_t i = 0; i < n; i++)
		spawner.nursery.bind_fd[i] = BINDS_FD + (int)i;
	return close_later(BINDS_FD, n);
}

static int note_witness(uint64_t fd)
{
	if (fd == 0)
		return 0;
	spawner.witness_fd = (int)fd;
	return fd < BINDS_FD || fd > 1023 || fcntl(spawner.witness_fd, F_SETFL, O_NONBLOCK) < 0
		       ? -EINVAL
		       : close_later(spawner.witness_fd, 1);
}

/* What we were started with: see the top of this file. */
static int read_arguments(int argc, char **argv, uint64_t *ret_worker)
{
	enum { BINDS, WITNESS, HEIRS, PATIENCE, LASTING, GIVEN };
	uint64_t ready, given[GIVEN] = {0};

	if (argc < 4 || nc_parse_u64(argv[1], 0, INT32_MAX, ret_worker) < 0 || *ret_worker == 1 ||
		nc_parse_u64(argv[2], 0, NC_BOX_READY_MAX, &ready) < 0 ||
		read_numbers(argv[3], given, GIVEN) < 0 || given[BINDS] > NC_BOX_BINDS_MAX ||
		given[HEIRS] > NC_WORKER_HEIRS_MAX || (*ret_worker == 0 && argc < 5) ||
		(*ret_worker > 0 && close_later(SOCKET_FD, 1) < 0) ||
		(argc > 4 && close_later(WORKER_EXE_FD, 1) < 0) || note_binds(given[BINDS]) < 0 ||
		note_witness(given[WITNESS]) < 0 || close_later(HEIRS_FD, given[HEIRS]) < 0)
		return -EINVAL;
	spawner.ready = ready;
	spawner.nursery.lasting = given[LASTING];
	/* the worker has spoken, and waits */
	spawner.nursery.cradle.free_fd = given[LASTING] ? -EBADF : SOCKET_FD;
	spawner.patience_ns = given[PATIENCE] * NC_NS_PER_S;
	if (argc > 4) {
		spawner.worker.argv = argv + 4;
		spawner.worker.exe_fd = WORKER_EXE_FD;
		spawner.worker.heir_fd = HEIRS_FD;
		spawner.worker.n_heirs = (int)given[HEIRS];
	}
	return 0;
}

/* nacre-init as every box will need it. */
static int load_init(struct nacre_err *err)
{
	cleanup_close int init_fd = nc_program_open("nacre-init", err);

	if (init_fd < 0)
		return init_fd;
	spawner.nursery.self_fd = nc_pidfd_open(getpid());
	if (spawner.nursery.self_fd < 0)
		return nc_err_errno(err, spawner.nursery.self_fd, "Hold ourselves");
	spawner.nursery.init_fd = nc_program_load(init_fd, "nacre-init", err);
	return spawner.nursery.init_fd < 0 ? spawner.nursery.init_fd : 0;
}

static int start(uint64_t worker, struct nacre_err *err)
{
	bool ranges = false;
	int r = nc_privilege_ranges(&ranges, err);

	/* what every payload sets for itself, also where ulimit -c is 0: while root may raise it */
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1});

	spawner.worker.ranges = spawner.nursery.scratch.ranges = ranges;
	if (r == 0) {
		r = worker > 0 ? nc_worker_take(&spawner.worker, (pid_t)worker, SOCKET_FD, err)
			       : nc_worker_start(&spawner.worker, err);
		if (worker == 0)
			spawner.worker.argv = NULL;
	}
	if (r == 0)
		r = load_init(err);
	if (r >= 0 && nc_id_new("sp", spawner.nursery.scratch.id) < 0)
		r = nc_err_set(err, -EIO, "Make an id");
	if (r >= 0)
		r = catch_signals(err);
	if (r >= 0)
		r = lock_in(ranges, err);
	if (r >= 0)
		raise_limits();
	return r;
}

/* Where we are, and nacre-files: what may be needed later. */
static int look_around(struct nacre_err *err)
{
	struct stat status;

	if (stat("/proc/self/ns/pid", &status) < 0)
		return nc_err_errno(err, -errno, "Look at our own pid namespace");
	spawner.nursery.pid_ns = status.st_ino;
	spawner.nursery.files_source_fd = nc_program_open("nacre-files", err);
	return spawner.nursery.files_source_fd < 0 ? spawner.nursery.files_source_fd : 0;
}

/* The rest of locking in, beside the first processes of READY boxes. */
static int lock_up(struct nacre_err *err)
{
	bool has_caps = geteuid() == 0;
	int r = nc_locks_open(&spawner.nursery.locks, spawner.nursery.scratch.ranges,
		spawner.nursery.scratch.id, err);

	if (r == 0)
		r = look_around(err);
	if (r < 0)
		return r;
	r = has_caps ? nc_caps_bound() : 0;
	if (r == 0 && has_caps)
		r = nc_caps_set(spawner.nursery.caps);
	if (r < 0)
		return nc_err_errno(err, r, "Drop privileges");
	nc_scratch_sweep(&spawner.nursery.scratch);
	spawner.nursery.host.landlock = (uint32_t)nc_fence_abi();
	r = nc_filter_load(NC_FILTER_SPAWNER, NULL);
	return r < 0 ? nc_err_errno(err, r, "Restrict system calls") : 0;
}

/* With our filter on us, and so on everything that we fork from now on. */
static int serve(struct nacre_err *err)
{
	spawner.nursery.is_filtered = true;
	NC_EACH_BOX (&spawner.table, box) {
		struct nacre_err own = {0};

		nc_step_birth(&spawner, box, nc_box_hasten(&spawner.nursery, box, &own), &own);
	}
	/* who makes more than these does not begin cold, and there is no telling who runs where */
	spawner.nursery.cradle.free_fd = -EBADF;
	return nc_loop_serve(&spawner, err);
}

int main(int argc, char **argv)
{
	struct nacre_err err = {0};
	size_t ready;
	uint64_t worker, never = UINT64_MAX;
	int code;

	spawner.worker =
		(struct nc_worker){.pidfd = -EBADF, .exe_fd = -EBADF, .client = &spawner.client[0]};
	for (size_t i = 0; i <= NC_BOX_CLIENTS_MAX; i++)
		spawner.client[i].fd = -EBADF;
	spawner.signal_fd = spawner.nursery.files_fd = spawner.witness_fd = -EBADF;
	spawner.nursery.locks = (struct nc_locks){-EBADF, -EBADF, -EBADF};
	spawner.nursery.scratch.above_fd = spawner.nursery.scratch.fd = -EBADF;
	if (read_arguments(argc, argv, &worker) < 0) {
		fputs("nacre-spawner is started by nacre, not by hand\n", stderr);
		return EXIT_SELF;
	}
	if (start(worker, &err) < 0) {
		spawner.worker.pidfd = nc_pidfd_end(spawner.worker.pidfd);
		close_places();
		return fail(&err);
	}
	/* at the start, and from then on only as many as the worker asks for */
	for (ready = spawner.ready; ready > 0 && nc_ready_prepare(&spawner, &never); ready--)
		;
	spawner.ready = 0;
	/* while the first box builds its root, and before anything that the worker says is heard */
	code = lock_up(&err);
	if (code == 0)
		code = serve(&err);
	if (code < 0)
		code = fail(&err);
	/* without groups it is of no use to who sweeps after us; beside the last death */
	if (!spawner.nursery.groups_open || spawner.nursery.cgroups.n_trees == 0)
		nc_locks_let_go(&spawner.nursery.locks, spawner.nursery.scratch.id);
	nc_loop_end_boxes(&spawner);
	close_places();
	return code;
}
