/*
 * nacre-spawner: the parent of the unprivileged side and of all boxes, and the only privilege.
 *
 *	nacre-spawner WORKER READY BINDS[,WITNESS[,HEIRS[,PATIENCE]]] [ARGUMENT...]
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
 * hang-ups too. 0: it is killed at once.
 *
 * Stages of locking in: (1) open what needs the caller's rights (nacre-init, the directory of
 * locks, the control groups); (2) as an ordinary user, enter a user namespace of our own; (3) drop
 * groups and all capabilities but those that make boxes; (4) refuse ourselves every system call
 * that no box is made with.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/parse.h"
#include "base/pidfd.h"
#include "kernel/caps.h"
#include "kernel/filter.h"
#include "kernel/program.h"
#include "kernel/userns.h"
#include "kernel/witness.h"
#include "spawner/box.h"
#include "spawner/events.h"
#include "spawner/groups.h"
#include "spawner/worker.h"

#define SOCKET_FD 3
#define WORKER_EXE_FD 4
#define BINDS_FD 5
#define HEIRS_FD 32
#define EXIT_SELF 125

/* Three streams, files, an image, layers, and the worker's own ends of the streams. */
#define ORDER_FDS_MAX (8 + NC_BOX_LAYERS_MAX)

/* Above all that boxes may have. */
#define SPAWNER_PRIORITY (-10)

/* Boxes that may die while they wait before no more are prepared. */
#define LOST_MAX 16U

/* How often dying boxes are looked after, should a stranger hold one up. */
#define STRAYS_NS (100 * NC_NS_PER_MS)
/* Children of a zygote that have warmed up: the next ones. It takes memory, and the others may wait
 * long. */
#define WARM_MAX 2
/* A program that is short, and what the worker has to do when one has ended. */
#define SHORT_NS (20 * NC_NS_PER_MS)
#define REPLY_NS (2 * NC_NS_PER_MS)

/* More than a socket holds. */
#define LAST_WORDS_MAX 4096U

/* What all boxes together may take to die when we end, and how often strays are looked for. */
#define BURY_NS (90 * NC_NS_PER_S)
#define BURY_TICK_MS 1

struct spawner {
	struct nc_nursery nursery;
	struct nc_worker worker;
	int signal_fd;
	size_t ready;		       /* neutral boxes to keep prepared */
	unsigned int lost;	       /* of those, since that was said */
	uint64_t quiet_ns;	       /* until when boxes are prepared only if few are left */
	bool ends;		       /* by a signal: the worker is not started again */
	uint64_t patience_ns, kill_ns; /* how long, and until when; 0: it is not to end */
	int witness_fd;		       /* nacre-recorder; or -EBADF */
	struct nc_wire_packet packet;
	size_t n_boxes; /* those from there on were not used of late */
	struct nc_box boxes[NC_BOXES_MAX];
};

static struct spawner spawner; /* too large for the stack, and there is only one */

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
	spawner.nursery.user_ns =
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
	bool has_caps;
	int r = 0;

	/* deadlines are kept under load too; what we start takes its own place again */
	(void)setpriority(PRIO_PROCESS, 0, SPAWNER_PRIORITY); /* an ordinary user may not */
	spawner.nursery.user_ns = true;
	if (!ranges)
		enter_own_namespaces();
	/* neither the caller any more nor root of a namespace of our own */
	if (!spawner.nursery.user_ns && geteuid() != id && geteuid() != 0)
		return nc_err_set(err, -EPERM, "Map our own id into a user namespace");
	has_caps = geteuid() == 0;
	spawner.nursery.caps = keep;
	if (ranges && setgroups(0, NULL) < 0)
		return nc_err_errno(err, -errno, "Drop groups");
	if (has_caps)
		r = nc_caps_bound();
	if (r == 0 && has_caps)
		r = nc_caps_set(keep);
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
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

/* One whose end was told is nobody's any more, and its number may be another's. */
static struct nc_box *find_box(uint64_t id)
{
	for (size_t i = 0; i < spawner.n_boxes; i++)
		if (spawner.boxes[i].state != NC_BOX_FREE && spawner.boxes[i].ordered &&
			!spawner.boxes[i].told && spawner.boxes[i].end.id == id)
			return &spawner.boxes[i];
	return NULL;
}

static struct nc_box *free_box(void)
{
	for (size_t i = 0; i < NC_BOXES_MAX; i++)
		if (spawner.boxes[i].state == NC_BOX_FREE) {
			spawner.n_boxes = i < spawner.n_boxes ? spawner.n_boxes : i + 1;
			return &spawner.boxes[i];
		}
	return NULL;
}

/*
 * A box that is nobody's yet, with a child of this zygote or none, one that waits rather than one
 * that grows; and how many there are.
 */
static int rank(const struct nc_box *box)
{
	return box->state == NC_BOX_WAITING ? 1 + box->warm : 0;
}

static struct nc_box *prepared_box(uint64_t zygote, size_t *ret_n, size_t *ret_warm)
{
	struct nc_box *found = NULL;

	*ret_n = *ret_warm = 0;
	for (size_t i = 0; i < spawner.n_boxes; i++) {
		struct nc_box *box = &spawner.boxes[i];

		if (box->ordered || box->lender_id != zygote ||
			(box->state != NC_BOX_WAITING && box->state != NC_BOX_GROWING &&
				box->state != NC_BOX_BORROWING))
			continue;
		++*ret_n;
		*ret_warm += box->warm;
		if (!found || rank(box) > rank(found))
			found = box;
	}
	return found;
}

/* What the recorder cannot take at once is not waited for: boxes go first. It is said once. */
static void testify(const struct nc_box *box, bool is_death)
{
	int r;

	if (spawner.witness_fd < 0)
		return;
	r = is_death ? nc_witness_death(spawner.witness_fd, &box->end)
		     : nc_witness_birth(
			       spawner.witness_fd, box->end.id, box->started_ns - box->ordered_ns);
	if (r == 0)
		return;
	fprintf(stderr, "nacre-spawner: the recorder is not told any more: %s\n", nc_errno_text(r));
	spawner.witness_fd = nc_fd_close(spawner.witness_fd);
}

static void tell_failure(uint64_t id, const struct nacre_err *err)
{
	struct nc_wire_out out;

	nc_wire_begin(&out, NC_BOX_FAILED);
	nc_wire_put_u64(&out, id);
	nc_wire_put_u32(&out, (uint32_t)-err->code);
	nc_wire_put_text(&out, err->message);
	nc_worker_send(&spawner.worker, &out, NULL, 0);
}

static void tell_start(struct nc_box *box)
{
	const bool waits = box->state == NC_BOX_WAITING;
	const struct nc_box_start start = {box->end.id,
		waits ? 0 : box->started_ns - box->ordered_ns, box->terminal_fd >= 0,
		box->door_fd >= 0};
	struct nc_wire_out out;
	int fds[2];
	size_t n = 0;

	if (start.terminal)
		fds[n++] = box->terminal_fd;
	if (start.door)
		fds[n++] = box->door_fd;
	nc_wire_begin(&out, NC_BOX_STARTED);
	nc_boxwire_put_start(&out, &start);
	nc_worker_send(&spawner.worker, &out, fds, n);
	if (start.terminal && box->kept)
		box->kept_fd[0] = take_fd(box->terminal_fd);
	box->terminal_fd = nc_fd_close(box->terminal_fd);
	box->door_fd = nc_fd_close(box->door_fd);
	if (!waits)
		testify(box, false);
}

static void tell_end(const struct nc_box *box)
{
	struct nc_wire_out out;

	nc_wire_begin(&out, NC_BOX_ENDED);
	nc_boxwire_put_end(&out, &box->end);
	nc_worker_send(&spawner.worker, &out, NULL, 0);
	spawner.quiet_ns = nc_clock_ns() + REPLY_NS;
}

/* A command or its box has ended; was_told: of the end of its last command. */
static void conclude(struct nc_box *box, bool was_told)
{
	if (box->started_ns > 0 && !was_told && !box->told)
		testify(box, true);
	if (box->ordered && !box->failed && !box->told)
		tell_end(box);
	if (box->state == NC_BOX_KEPT && (!box->kept || box->failed))
		nc_box_forget(box);
}

/* What a command has left may be dead by now. */
static void clear_step(struct nc_box *box)
{
	if (nc_box_clear(&spawner.nursery, box, nc_clock_ns()))
		conclude(box, false);
}

/* The bills of those in a home, before that and all groups go. */
static void clear_guests(const struct nc_box *home)
{
	for (size_t i = 0; i < spawner.n_boxes; i++)
		if (spawner.boxes[i].state == NC_BOX_CLEARING &&
			spawner.boxes[i].home_id == home->end.id)
			clear_step(&spawner.boxes[i]);
}

/* What a box waited for has come. */
static void end_step(struct nc_box *box)
{
	bool was_told = box->end.stays;

	if (!box->told && nc_box_settle(box)) {
		conclude(box, false);
		box->told = true;
	}
	if (box->shared.parent)
		clear_guests(box);
	if (nc_box_ended(&spawner.nursery, box))
		conclude(box, was_told);
	else if (box->state == NC_BOX_CLEARING)
		clear_step(box);
}

/* One that came to nothing. */
static void drop_box(struct nc_box *box)
{
	nc_box_fail(box);
	if (box->payload_fd < 0 && box->init_fd < 0)
		end_step(box);
}

/* The outcome of a step of a birth. */
static void birth_step(struct nc_box *box, int r, const struct nacre_err *err)
{
	struct nc_box *lender;
	unsigned int *lost;

	if (r >= 0)
		return;
	if (box->ordered)
		tell_failure(box->end.id, err);
	else
		fprintf(stderr, "nacre-spawner: prepare a box: %s\n", err->message);
	/* what cannot be prepared would be tried for ever; who dies while he waits is replaced */
	lender = find_box(box->lender_id);
	lost = lender ? &lender->lost : &spawner.lost;
	/* that a zygote has ended says nothing of boxes without one */
	if (!box->ordered && (lender || box->lender_id == 0) &&
		(box->state != NC_BOX_WAITING || ++*lost >= LOST_MAX))
		*(lender ? &lender->ready : &spawner.ready) = 0;
	drop_box(box);
}

static void begin_box(struct nc_box *box, struct nc_box_pending *order, const struct nc_box *lender)
{
	struct nacre_err err = {0};

	birth_step(box, nc_box_begin(&spawner.nursery, box, order, lender, &err), &err);
}

/*
 * One more box that is nobody's, if there are fewer than wanted. While there are enough that
 * somebody is being served is the better use of the processors; *next is when to look again.
 */
static bool prepare_one(size_t wanted, const struct nc_box *lender, uint64_t *next)
{
	bool quiet = nc_clock_ns() >= spawner.quiet_ns;
	struct nc_box *box;
	size_t n, warm;

	(void)prepared_box(lender ? lender->end.id : 0, &n, &warm);
	if (n < wanted && 2 * n >= wanted && !quiet) {
		if (spawner.quiet_ns < *next)
			*next = spawner.quiet_ns;
		return false;
	}
	box = n < wanted ? free_box() : NULL;
	if (!box)
		return false;
	begin_box(box, NULL, lender);
	box->warm = lender && quiet && warm < WARM_MAX;
	return true;
}

/* False if there is nothing to do before *next. */
static bool prepare_box(uint64_t *next)
{
	if (prepare_one(spawner.ready, NULL, next))
		return true;
	for (size_t i = 0; i < spawner.n_boxes; i++) {
		const struct nc_box *box = &spawner.boxes[i];

		if (box->state == NC_BOX_RUNS && box->zygote_fd >= 0 &&
			prepare_one(box->ready, box, next))
			return true;
	}
	return false;
}

/* It waits with a child of a zygote that has ended: no order can name it any more. */
static bool is_orphan(const struct nc_box *box)
{
	const struct nc_box *lender;

	if (box->ordered || box->lender_id == 0 || box->state != NC_BOX_WAITING)
		return false;
	lender = find_box(box->lender_id);
	return !lender || lender->state != NC_BOX_RUNS;
}

/* False if there is none. */
static bool drop_orphan(void)
{
	for (size_t i = 0; i < spawner.n_boxes; i++)
		if (is_orphan(&spawner.boxes[i])) {
			drop_box(&spawner.boxes[i]);
			return true;
		}
	return false;
}

/* What is ready for an order: a child of the zygote that it names, or any. */
static struct nc_box *choose_box(const struct nc_box_order *order)
{
	struct nc_box *box = NULL;
	size_t n, warm;

	if (!nc_box_is_neutral(order))
		return NULL;
	if (order->zygote > 0)
		box = prepared_box(order->zygote, &n, &warm);
	/* who is not there yet is not waited for */
	return box && box->state == NC_BOX_WAITING ? box : prepared_box(0, &n, &warm);
}

static bool is_adopted(const struct nc_box *box)
{
	return box->state != NC_BOX_FREE && box->kept && !box->failed;
}

static uint32_t count_adopted(void)
{
	uint32_t n = 0;

	for (size_t i = 0; i < spawner.n_boxes; i++)
		n += is_adopted(&spawner.boxes[i]);
	return n;
}

static void tell_adopted(void)
{
	for (size_t i = 0; i < spawner.n_boxes; i++) {
		struct nc_box *box = &spawner.boxes[i];
		size_t n = 0;
		int fds[3];
		struct nc_wire_out out;

		if (!is_adopted(box))
			continue;
		for (size_t k = 0; k < 3; k++)
			if (box->kept_fd[k] >= 0)
				fds[n++] = box->kept_fd[k];
		nc_wire_begin(&out, NC_BOX_ADOPT);
		nc_wire_put_u64(&out, box->end.id);
		nc_wire_put_u64(&out, box->home_id);
		nc_worker_send(&spawner.worker, &out, fds, n);
		if (box->state == NC_BOX_KEPT || box->state == NC_BOX_STAYS)
			tell_end(box);
	}
}

/* Whether root may make user namespaces: by making one, unless a box has shown it already. */
static bool can_make_user_ns(void)
{
	static bool tried;
	int r, pidfd = -EBADF;
	struct clone_args arguments = {.flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_PIDFD,
		.pidfd = (uintptr_t)&pidfd,
		.exit_signal = SIGCHLD};

	if (tried || spawner.nursery.pid_ns_fd < 0 || spawner.boxes[0].state != NC_BOX_FREE)
		return spawner.nursery.user_ns;
	tried = true;
	r = (int)syscall(SYS_clone3, &arguments, sizeof(arguments));
	if (r == 0)
		_exit(0);
	(void)nc_pidfd_end(pidfd);
	return r > 0;
}

static int handle_hello(struct nc_wire_in *in)
{
	struct nacre_err err = {0};
	struct nc_wire_out out;
	struct nc_box_host host = {
		.ranges = spawner.nursery.locks.ids_fd >= 0, .user_ns = spawner.nursery.user_ns};
	uint32_t version = nc_wire_get_u32(in);

	if (nc_wire_close(in) < 0 || version != NC_BOXWIRE_VERSION)
		return -EBADMSG;
	if (nc_groups_open(&spawner.nursery, &err) < 0) {
		nc_worker_end(&spawner.worker, err.message);
		return 0;
	}
	host.cgroups = spawner.nursery.cgroups.can;
	host.user_ns = spawner.nursery.user_ns = can_make_user_ns();
	spawner.worker.greeted = true;
	nc_scratch_path(&spawner.nursery.scratch, host.scratch);
	nc_wire_begin(&out, NC_BOX_WELCOME);
	nc_wire_put_u32(&out, NC_BOXWIRE_VERSION);
	nc_boxwire_put_host(&out, &host);
	nc_wire_put_u32(&out, count_adopted());
	nc_worker_send(&spawner.worker, &out, NULL, 0);
	tell_adopted();
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

static bool binds_are_sane(const struct nc_box_order *order)
{
	if (order->n_binds > 0 && order->tier != NC_BOX_CONTAINER)
		return false;
	for (size_t i = 0; i < order->n_binds; i++)
		if (order->binds[i].index >= spawner.nursery.n_binds ||
			!nc_box_target_ok(order->binds[i].target))
			return false;
	return true;
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

/*
 * A directory that the worker could open to read: a mere path descriptor is to be had of every
 * directory, Landlock or not. One to write is its own: what a box makes there belongs to the owner.
 */
static bool is_good_directory(int fd, bool to_write)
{
	unsigned int worker = spawner.nursery.pid_ns_fd >= 0 ? NC_WORKER_ID : geteuid();
	struct stat status;
	int flags = fcntl(fd, F_GETFL);

	return fstat(fd, &status) == 0 && S_ISDIR(status.st_mode) && flags >= 0 &&
	       !(flags & O_PATH) && (!to_write || status.st_uid == worker);
}

static bool descriptors_are_sane(const struct nc_box_order *order)
{
	const int *fds = spawner.packet.fds;
	size_t n = 0;

	if (spawner.packet.n_fds != nc_box_order_fds(order))
		return false;
	for (; !(order->flags & NC_ORDER_TTY) && n < (order->flags & NC_ORDER_PACK ? 4 : 3); n++)
		if (!is_stream(fds[n]))
			return false;
	if (order->flags & NC_ORDER_IMAGE)
		if (order->tier != NC_BOX_CONTAINER || !is_good_directory(fds[n++], false))
			return false;
	for (size_t i = 0; i < order->n_layers; i++)
		if (order->tier != NC_BOX_CONTAINER ||
			!is_good_directory(fds[n++], order->layer_writable[i]))
			return false;
	for (; n < spawner.packet.n_fds; n++)
		if (!is_stream(fds[n]))
			return false;
	return true;
}

/* The order that has just come, to be kept; its descriptors go along. NULL: out of memory. */
static struct nc_box_pending *keep_order(void)
{
	struct nc_box_pending *pending = calloc(1, sizeof(*pending) + spawner.packet.size);
	struct nc_wire_in in;

	if (!pending)
		return NULL;
	pending->size = spawner.packet.size;
	memcpy(pending->data, spawner.packet.data, pending->size);
	/* again from the copy: words borrow from where they were read */
	if (nc_wire_open(&in, pending->data, pending->size) == 0)
		nc_boxwire_get_order(&in, &pending->order);
	pending->n_fds = spawner.packet.n_fds;
	for (size_t i = 0; i < pending->n_fds; i++) {
		pending->fds[i] = spawner.packet.fds[i];
		spawner.packet.fds[i] = -EBADF;
	}
	return pending;
}

static bool order_is_sane(const struct nc_box_order *order)
{
	return limits_are_sane(&order->limits) && order->dir[0] == '/' && binds_are_sane(order) &&
	       descriptors_are_sane(order) &&
	       !((order->flags & NC_ORDER_FILES) &&
		       (order->flags & (NC_ORDER_TTY | NC_ORDER_PACK))) &&
	       !((order->flags & NC_ORDER_PACK) && (order->flags & NC_ORDER_TTY)) &&
	       !((order->flags & NC_ORDER_DOOR) && order->tier != NC_BOX_CONTAINER) &&
	       !((order->flags & NC_ORDER_ZYGOTE) &&
		       (order->tier != NC_BOX_CONTAINER ||
			       order->flags & (NC_ORDER_FILES | NC_ORDER_PACK | NC_ORDER_TTY |
						      NC_ORDER_KEEP | NC_ORDER_HOME))) &&
	       !((order->flags & NC_ORDER_GUESTS) && !(order->flags & NC_ORDER_DOOR)) &&
	       !((order->flags & NC_ORDER_HOME) && !(order->flags & NC_ORDER_STAY));
}

/* What a box is made of and held by stays as it was: a further command can name nothing of that. */
static bool is_further(const struct nc_box_order *order)
{
	return order->n_binds == 0 && order->n_layers == 0 &&
	       !(order->flags & (NC_ORDER_IMAGE | NC_ORDER_DOOR | NC_ORDER_HOME));
}

static bool fits_into(const struct nc_box_order *order, const struct nc_box *home)
{
	uint32_t had = home->first ? home->first->order.flags : 0;

	if (had & NC_ORDER_HOME)
		had |= NC_ORDER_TTY;
	return order->tier == home->end.tier &&
	       !(order->flags & ~had & (NC_ORDER_TTY | NC_ORDER_KEEP));
}

/* A command beside others, in a box of this worker's that stays. */
static int join_box(const struct nc_box_order *order)
{
	struct nc_box *home = find_box(order->home), *box = free_box();
	struct nc_box_pending *pending = NULL;
	struct nacre_err err = {0};

	if (!is_further(order) || order->flags & NC_ORDER_STAY)
		return -EBADMSG;
	/* its end was told, or will be */
	if (!home || !home->stays || (home->state != NC_BOX_STAYS && home->state != NC_BOX_RUNS))
		nc_err_set(&err, -ESRCH, "There is no such box to run it in");
	else if (home->frozen_ns > 0)
		nc_err_set(&err, -EBUSY, "The box is frozen");
	else if (!fits_into(order, home) || !(home->first->order.flags & NC_ORDER_HOME))
		return -EBADMSG;
	else if (!box || !(pending = keep_order()))
		nc_err_set(&err, -EAGAIN, "This spawner has %u boxes already, or no memory",
			NC_BOXES_MAX);
	if (err.code < 0)
		tell_failure(order->id, &err);
	else
		birth_step(box, nc_box_join(&spawner.nursery, home, box, pending, &err), &err);
	return 0;
}

/* Safe: what is built is fixed but for numbers in range, directories that the caller allowed by
 * index, and an image and layers that the worker itself could open; strings are used inside the box
 * only. */
static int handle_run(struct nc_wire_in *in)
{
	static struct nc_box_order order;
	struct nacre_err err = {0};
	struct nc_box_pending *pending;
	struct nc_box *box;

	nc_boxwire_get_order(in, &order);
	if (nc_wire_close(in) < 0 || !order_is_sane(&order) || find_box(order.id))
		return -EBADMSG;
	if (order.home > 0)
		return join_box(&order);
	spawner.quiet_ns = nc_clock_ns() + SHORT_NS;
	box = choose_box(&order);
	pending = box || free_box() ? keep_order() : NULL;
	if (!pending) {
		nc_err_set(&err, -EAGAIN, "This spawner has %u boxes already, or no memory",
			NC_BOXES_MAX);
		tell_failure(order.id, &err);
	} else if (box) {
		birth_step(box, nc_box_take(&spawner.nursery, box, pending, &err), &err);
	} else {
		begin_box(free_box(), pending, NULL);
	}
	return 0;
}

/* Safe: a box of this worker's that runs no command of its own; see fits_into. */
static int handle_next(struct nc_wire_in *in)
{
	static struct nc_box_order order;
	struct nacre_err err = {0};
	struct nc_box_pending *pending;
	struct nc_box *box;

	nc_boxwire_get_order(in, &order);
	if (nc_wire_close(in) < 0 || !order_is_sane(&order) || !is_further(&order) ||
		order.home > 0)
		return -EBADMSG;
	box = find_box(order.id);
	if (!box || (box->state != NC_BOX_STAYS && (box->state != NC_BOX_WAITING || !box->ahead))) {
		/* it has died meanwhile: its end was told */
		nc_err_set(&err, -ESRCH, "There is no such box, or a command runs in it");
		tell_failure(order.id, &err);
		return 0;
	}
	if (!fits_into(&order, box) || !(order.flags & NC_ORDER_KEEP) != !box->kept)
		return -EBADMSG;
	pending = keep_order();
	if (!pending) {
		birth_step(box, nc_err_errno(&err, -ENOMEM, "Take the order"), &err);
		return 0;
	}
	birth_step(box, nc_box_next(&spawner.nursery, box, pending, &err), &err);
	return 0;
}

/* Everything that runs in a box: its own command and those beside it. */
static void freeze_home(uint64_t id, bool frozen)
{
	for (size_t i = 0; i < spawner.n_boxes; i++) {
		struct nc_box *box = &spawner.boxes[i];

		if ((box->state == NC_BOX_RUNS || box->state == NC_BOX_STAYS) &&
			(box->end.id == id || box->home_id == id) && (frozen || box->frozen_ns > 0))
			(void)nc_box_freeze(box, frozen); /* it stops when it can */
	}
}

/* Safe: only boxes of this worker can be named; they are stopped, or go on. */
static int handle_freeze(struct nc_wire_in *in)
{
	uint64_t id = nc_wire_get_u64(in);
	bool frozen = nc_wire_get_u8(in) != 0;

	if (nc_wire_close(in) < 0)
		return -EBADMSG;
	freeze_home(id, frozen);
	return 0;
}

/* Safe: figures of a box of this worker's. */
static int handle_ask(struct nc_wire_in *in)
{
	const struct nc_box *box = find_box(nc_wire_get_u64(in));
	struct nc_wire_out out;
	struct nc_box_now now;

	if (nc_wire_close(in) < 0)
		return -EBADMSG;
	if (!box)
		return 0;
	nc_box_look(box, &now);
	nc_wire_begin(&out, NC_BOX_TOLD);
	nc_boxwire_put_now(&out, &now);
	nc_worker_send(&spawner.worker, &out, NULL, 0);
	return 0;
}

/* Safe: it goes to the program of a box of this worker's, by its descriptor. */
static int handle_signal(struct nc_wire_in *in)
{
	uint64_t id = nc_wire_get_u64(in);
	uint32_t signal = nc_wire_get_u32(in);
	struct nc_box *box;

	if (nc_wire_close(in) < 0 || signal > 64)
		return -EBADMSG;
	box = find_box(id);
	if (box && signal == 0)
		box->kept_fd[0] = nc_fd_close(box->kept_fd[0]);
	else if (box && box->state == NC_BOX_RUNS)
		(void)nc_pidfd_kill(box->payload_fd, (int)signal); /* it may just have ended */
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
	if (!box)
		return 0;
	freeze_home(id, false); /* or those in it would not notice */
	nc_box_kill(box, cause);
	/* nothing is left whose end could be waited for */
	if (box->state == NC_BOX_DYING && box->payload_fd < 0 && box->init_fd < 0 &&
		box->cleaner_fd < 0)
		end_step(box);
	return 0;
}

/* Safe: a number with a maximum of our own. 0 also ends those that nobody has ordered. */
static int handle_ready(struct nc_wire_in *in)
{
	uint64_t zygote = nc_wire_get_u64(in);
	uint32_t n = nc_wire_get_u32(in);
	struct nc_box *box;
	size_t left, warm;

	if (nc_wire_close(in) < 0 || n > NC_BOX_READY_MAX)
		return -EBADMSG;
	while (n == 0 && (box = prepared_box(zygote, &left, &warm)))
		drop_box(box);
	box = find_box(zygote);
	if (zygote == 0) {
		spawner.ready = n;
		spawner.lost = 0;
	} else if (box) { /* it may just have died */
		box->ready = n;
		box->lost = 0;
	}
	return 0;
}

/* Safe: only a box that is dead is let go; naming none does nothing. */
static int handle_forget(struct nc_wire_in *in)
{
	uint64_t id = nc_wire_get_u64(in);
	struct nc_box *box;

	if (nc_wire_close(in) < 0)
		return -EBADMSG;
	box = find_box(id);
	if (box && box->state != NC_BOX_KEPT)
		return -EBADMSG;
	if (box)
		nc_box_forget(box);
	return 0;
}

/* Everything that may be asked, when, and with how many descriptors at most. */
static const struct {
	enum nc_box_message type;
	bool greeted; /* the state that it belongs to */
	size_t max_fds;
	int (*handle)(struct nc_wire_in *in);
} requests[] = {
	{NC_BOX_HELLO, false, 0, handle_hello},
	{NC_BOX_RUN, true, ORDER_FDS_MAX, handle_run},
	{NC_BOX_KILL, true, 0, handle_kill},
	{NC_BOX_READY, true, 0, handle_ready},
	{NC_BOX_FORGET, true, 0, handle_forget},
	{NC_BOX_NEXT, true, 7, handle_next},
	{NC_BOX_SIGNAL, true, 0, handle_signal},
	{NC_BOX_FREEZE, true, 0, handle_freeze},
	{NC_BOX_ASK, true, 0, handle_ask},
};

static void handle_packet(void)
{
	struct nc_wire_in in;

	if (nc_wire_open(&in, spawner.packet.data, spawner.packet.size) < 0) {
		nc_worker_end(&spawner.worker, "not a message");
		return;
	}
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		if (requests[i].type != in.type)
			continue;
		if (requests[i].greeted != spawner.worker.greeted ||
			requests[i].max_fds < spawner.packet.n_fds || requests[i].handle(&in) < 0)
			nc_worker_end(&spawner.worker, "a message that breaks the rules");
		return;
	}
	nc_worker_end(&spawner.worker, "an unknown message");
}

static void receive(void)
{
	int r = nc_wire_receive(spawner.worker.fd, &spawner.packet, ORDER_FDS_MAX);

	if (r > 0)
		handle_packet();
	else if (r == -EAGAIN || r == -ECONNRESET) /* it has gone with mail unread: said once */
		return;
	else if (r == 0)
		spawner.worker.fd = nc_fd_close(spawner.worker.fd);
	else
		nc_worker_end(
			&spawner.worker, r == -EBADMSG ? "a broken message" : nc_errno_text(r));
	/* what the handler did not take is not kept open until the next message */
	for (size_t i = 0; i < spawner.packet.n_fds; i++)
		spawner.packet.fds[i] = nc_fd_close(spawner.packet.fds[i]);
}

/* Its program runs. It may have been on its way when the others were stopped. */
static void begin_life(struct nc_box *box)
{
	const struct nc_box *home = box->home_id > 0 ? find_box(box->home_id) : NULL;

	if (home && home->frozen_ns > 0)
		(void)nc_box_freeze(box, true);
	tell_start(box);
}

/* Something has happened to what the box waits for in its state. */
static void handle_box(struct nc_box *box)
{
	struct nacre_err err = {0};

	if (box->state == NC_BOX_GROWING) {
		birth_step(box, nc_box_grown(&spawner.nursery, box, &err), &err);
	} else if (box->state == NC_BOX_BORROWING) {
		birth_step(box, nc_box_lent(&spawner.nursery, box, &err), &err);
	} else if (box->state == NC_BOX_WAITING || box->state == NC_BOX_STARTING) {
		birth_step(box, nc_box_heard(box, &err), &err);
		if (box->state == NC_BOX_RUNS || (box->ahead && box->state == NC_BOX_WAITING))
			begin_life(box);
	} else {
		end_step(box);
	}
}

static void box_is_late(struct nc_box *box)
{
	struct nacre_err err = {0};

	if (box->state == NC_BOX_RUNS)
		nc_box_kill(box, NC_CAUSE_WALL);
	else
		birth_step(
			box, nc_err_set(&err, -ETIMEDOUT, "The box did not come up in time"), &err);
}

static uint64_t check_deadlines(void)
{
	uint64_t now = nc_clock_ns(), next = UINT64_MAX;

	if (spawner.kill_ns > now)
		next = spawner.kill_ns;
	else if (spawner.kill_ns > 0)
		(void)nc_pidfd_kill(spawner.worker.pidfd, SIGKILL);
	for (size_t i = 0; i < spawner.n_boxes; i++) {
		struct nc_box *box = &spawner.boxes[i];

		if (box->state == NC_BOX_FREE || box->state == NC_BOX_KEPT)
			continue;
		if (box->state == NC_BOX_DYING && now + STRAYS_NS < next)
			next = now + STRAYS_NS;
		if (box->frozen_ns > 0)
			continue;
		if (box->deadline_ns <= now)
			box_is_late(box);
		else if (box->deadline_ns < next)
			next = box->deadline_ns;
		if (box->state == NC_BOX_CLEARING && box->check_ns <= now)
			clear_step(box);
		if (box->state == NC_BOX_RUNS && box->check_ns <= now)
			box->check_ns = nc_box_check(box, now);
		if (box->state != NC_BOX_RUNS && box->state != NC_BOX_CLEARING)
			continue;
		if (box->check_ns < next)
			next = box->check_ns;
	}
	return next;
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
			info.si_pid <= 0 || info.si_pid == spawner.worker.pid)
			return;
		for (size_t j = 0; j < spawner.n_boxes; j++)
			if (spawner.boxes[j].state != NC_BOX_FREE &&
				(spawner.boxes[j].init_pid == info.si_pid ||
					spawner.boxes[j].payload_pid == info.si_pid ||
					spawner.boxes[j].cleaner_fd >= 0))
				return; /* seen by its own descriptor */
		(void)waitpid(info.si_pid, NULL, WNOHANG | __WALL);
	}
}

/* What we are told is the worker's to act on, if it may take its time; the second time it may not.
 */
static void handle_signal_to_us(void)
{
	struct signalfd_siginfo info = {0};
	bool again = spawner.ends;

	if (read(spawner.signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP) {
		(void)nc_pidfd_kill(spawner.worker.pidfd, SIGHUP);
		return;
	}
	spawner.ends = true;
	spawner.kill_ns = nc_clock_ns() + (again ? 0 : spawner.patience_ns);
	(void)nc_pidfd_kill(
		spawner.worker.pidfd, again || spawner.patience_ns == 0 ? SIGKILL : SIGTERM);
}

/* Waits for what comes next, and uses the time. Returns how many events there are, or -errno. */
static int wait_for_events(int events_fd, uint64_t next, struct nc_event *events)
{
	bool armed = nc_events_arm(events_fd, spawner.boxes, spawner.n_boxes);
	int n = nc_events_wait(events_fd, spawner.boxes, 0, events);

	/* boxes are prepared and given up only when nobody waits for anything else */
	if (n != 0 || prepare_box(&next) || drop_orphan())
		return n;
	if (!armed && nc_clock_ns() + STRAYS_NS < next)
		next = nc_clock_ns() + STRAYS_NS;
	n = nc_events_wait(
		events_fd, spawner.boxes, next == UINT64_MAX ? -1 : nc_clock_left_ms(next), events);
	if (n == 0)
		reap_strays();
	return n;
}

static void handle_event(const struct nc_event *event)
{
	struct nc_box *box = &spawner.boxes[event->box];

	if (event->kind == NC_EVENT_SIGNAL)
		handle_signal_to_us();
	else if (event->kind == NC_EVENT_SOCKET && spawner.worker.fd >= 0)
		receive();
	/* what was refused is noted before the end is */
	if (event->kind >= NC_EVENT_BOX && box->state != NC_BOX_FREE && box->listener_fd >= 0)
		nc_box_denied(box);
	/* an event before may have changed what this one was about */
	if (event->kind == NC_EVENT_BOX && nc_events_is_due(box))
		handle_box(box);
}

/* Serves until the worker ends. 0, or -errno if it never began. */
static int serve(struct nacre_err *err)
{
	const int fds[] = {spawner.worker.pidfd, spawner.signal_fd, spawner.worker.fd};
	cleanup_close int events_fd = nc_events_open(fds);
	bool ends = false;

	if (events_fd < 0)
		return nc_err_errno(err, events_fd, "Watch what happens");
	for (size_t i = 0; i < spawner.n_boxes; i++)
		memset(spawner.boxes[i].watch, 0, sizeof(spawner.boxes[i].watch));
	while (!ends) {
		struct nc_event events[NC_EVENTS_MAX];
		uint64_t next = check_deadlines();
		int n;

		while (spawner.n_boxes > 0 &&
			spawner.boxes[spawner.n_boxes - 1].state == NC_BOX_FREE)
			spawner.n_boxes--;
		n = wait_for_events(events_fd, next, events);
		for (int i = 0; i < n; i++) {
			handle_event(&events[i]);
			ends |= events[i].kind == NC_EVENT_WORKER;
		}
	}
	return 0;
}

/* Ends every box that is left, but for kept ones if somebody will ask for them. */
static void end_boxes(bool all)
{
	for (size_t i = 0; i < spawner.n_boxes; i++) {
		if (!all && spawner.boxes[i].kept)
			continue;
		nc_box_kill(&spawner.boxes[i], NC_CAUSE_CANCEL);
		spawner.boxes[i].failed = true; /* there is nobody to tell of its end */
	}
}

/* What a dying box waits for may have come; false: it is dead. */
static bool bury_step(struct nc_box *box)
{
	struct pollfd event = {.fd = nc_events_awaited(box), .events = POLLIN};

	if (box->state == NC_BOX_FREE || box->state == NC_BOX_KEPT)
		return false;
	if (box->state == NC_BOX_CLEARING && event.fd < 0)
		(void)nc_box_clear(&spawner.nursery, box, nc_clock_ns());
	else if (event.fd < 0 || poll(&event, 1, 0) == 1)
		(void)nc_box_ended(&spawner.nursery, box);
	return true;
}

/*
 * Does not return before all boxes are dead, or will not die: what is left then goes with us. All
 * of them in turn: one may wait for a stranger who is seen only when those of others are reaped.
 */
static void bury_boxes(void)
{
	uint64_t deadline = nc_clock_ns() + BURY_NS;
	bool left = true;

	while (left && nc_clock_ns() < deadline) {
		left = false;
		for (size_t i = 0; i < spawner.n_boxes; i++)
			left |= bury_step(&spawner.boxes[i]);
		reap_strays();
		if (left)
			(void)poll(NULL, 0, BURY_TICK_MS);
	}
}

/* What it has said before it died holds: others may have been told that it was done. */
static void hear_out(void)
{
	spawner.worker.dead = true;
	for (unsigned int i = 0; i < LAST_WORDS_MAX && spawner.worker.fd >= 0; i++)
		receive();
}

/* Serves one worker after the other, for as long as one is to be had; the last one's exit code. */
static int serve_all(void)
{
	struct nacre_err err = {0};
	int code;

	for (;;) {
		if (serve(&err) < 0) {
			spawner.worker.pidfd = nc_pidfd_end(spawner.worker.pidfd);
			return fail(&err);
		}
		if (spawner.worker.argv)
			hear_out();
		code = nc_worker_reap(&spawner.worker);
		if (!spawner.worker.argv || spawner.ends || code == 0)
			return code;
		end_boxes(false);
		if (nc_worker_start(&spawner.worker, &err) < 0)
			return fail(&err);
	}
}

static void close_places(void)
{
	if (spawner.nursery.groups_open)
		nc_cgroup_parent_close(&spawner.nursery.cgroups);
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
	enum { BINDS, WITNESS, HEIRS, PATIENCE, GIVEN };
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
	spawner.patience_ns = given[PATIENCE] * NC_NS_PER_S;
	if (argc > 4) {
		spawner.worker.argv = argv + 4;
		spawner.worker.exe_fd = WORKER_EXE_FD;
		spawner.worker.heir_fd = HEIRS_FD;
		spawner.worker.n_heirs = (int)given[HEIRS];
	}
	return 0;
}

/* nacre-init as every box will need it, nacre-files as it may be needed later; and where we are. */
static int open_programs(struct nacre_err *err)
{
	cleanup_close int init_fd = nc_program_open("nacre-init", err);
	struct stat status;

	if (init_fd < 0)
		return init_fd;
	if (stat("/proc/self/ns/pid", &status) < 0)
		return nc_err_errno(err, -errno, "Look at our own pid namespace");
	spawner.nursery.pid_ns = status.st_ino;
	spawner.nursery.self_fd = nc_pidfd_open(getpid());
	if (spawner.nursery.self_fd < 0)
		return nc_err_errno(err, spawner.nursery.self_fd, "Hold ourselves");
	spawner.nursery.init_fd = nc_program_load(init_fd, "nacre-init", err);
	if (spawner.nursery.init_fd < 0)
		return spawner.nursery.init_fd;
	spawner.nursery.files_source_fd = nc_program_open("nacre-files", err);
	return spawner.nursery.files_source_fd < 0 ? spawner.nursery.files_source_fd : 0;
}

static int start(uint64_t worker, struct nacre_err *err)
{
	bool ranges = false;
	int r = nc_privilege_ranges(&ranges, err);

	spawner.worker.ranges = spawner.nursery.scratch.ranges = ranges;
	if (r == 0) {
		r = worker > 0 ? nc_worker_take(&spawner.worker, (pid_t)worker, SOCKET_FD, err)
			       : nc_worker_start(&spawner.worker, err);
		if (worker == 0)
			spawner.worker.argv = NULL;
	}
	if (r == 0)
		r = open_programs(err);
	if (r >= 0 && nc_id_new("sp", spawner.nursery.scratch.id) < 0)
		r = nc_err_set(err, -EIO, "Make an id");
	if (r >= 0)
		r = nc_locks_open(&spawner.nursery.locks, ranges, spawner.nursery.scratch.id, err);
	if (r >= 0 && !ranges)
		r = nc_groups_open(&spawner.nursery, err);
	if (r >= 0)
		r = catch_signals(err);
	if (r >= 0)
		r = lock_in(ranges, err);
	if (r >= 0) {
		raise_limits();
		nc_scratch_sweep(&spawner.nursery.scratch);
	}
	return r;
}

int main(int argc, char **argv)
{
	struct nacre_err err = {0};
	size_t ready;
	uint64_t worker, never = UINT64_MAX;
	int code;

	spawner.worker.pidfd = spawner.worker.fd = spawner.worker.exe_fd = -EBADF;
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
	for (ready = spawner.ready; ready > 0 && prepare_box(&never); ready--)
		;
	spawner.ready = 0;
	/* while the first box builds its root, and before anything that the worker says is heard */
	code = nc_filter_load(NC_FILTER_SPAWNER, NULL);
	if (code < 0)
		(void)fail((nc_err_errno(&err, code, "Restrict system calls"), &err));
	code = code < 0 ? EXIT_SELF : serve_all();
	end_boxes(true);
	bury_boxes();
	close_places();
	return code;
}
