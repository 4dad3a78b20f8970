/*
 * How the processes of a box are made.
 *
 * Theory of operation: the first process is cloned into new namespaces, waits until its user ids
 * are mapped, builds the root and becomes nacre-init, which says "ready". The payload is then
 * forked by the spawner itself, which enters the box's pid namespace for the length of one clone:
 * so it is the spawner's own child, its exit status comes from the spawner's own wait, and no
 * process inside can tell lies about it. It locks itself in and waits for its order.
 */
#include "spawner/birth.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/pidfd.h"
#include "base/place.h"
#include "inside/child.h"
#include "inside/frame.h"
#include "inside/lend.h"
#include "inside/mounts.h"
#include "inside/shade.h"
#include "kernel/bind.h"
#include "kernel/caps.h"
#include "kernel/idmap.h"
#include "kernel/processor.h"
#include "kernel/program.h"

/* A transit process makes one clone and ends. */
#define TRANSIT_TIMEOUT_NS (10 * NC_NS_PER_S)

/*
 * How long copies are made of one frame: what changes on the host (a new ld.so.cache, a mount below
 * /usr) shows in boxes that are made later than that.
 */
#define FRAME_AGE_NS (10 * NC_NS_PER_S)

const struct nc_cgroup *nc_box_group(const struct nc_box *box)
{
	return box->group.parent ? &box->group : NULL;
}

static bool has_flag(const struct nc_box *box, enum nc_box_order_flag flag)
{
	return box->order && box->order->order.flags & flag;
}

bool nc_box_has_shade(const struct nc_box *box)
{
	return (box->lender_id > 0 || box->ahead) && nc_box_group(box) &&
	       nc_shade_wanted(box->group.parent->can);
}

/* clone3 with a pidfd, into the group if there is one. 0 in the child, 1 in the parent, or -errno.
 */
static int clone_child(
	uint64_t flags, const struct nc_cgroup *group, pid_t *ret_pid, int *ret_pidfd)
{
	int pidfd = -EBADF;
	int group_fd = group ? group->clone_fd : -EBADF;
	bool into_group = group_fd >= 0;
	/* a sibling takes over the signal that our own end sends, and may name none */
	struct clone_args arguments = {
		.flags = flags | CLONE_PIDFD | (into_group ? CLONE_INTO_CGROUP : 0),
		.pidfd = (uintptr_t)&pidfd,
		.exit_signal = flags & CLONE_PARENT ? 0 : SIGCHLD,
		.cgroup = into_group ? (unsigned int)group_fd : 0U,
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

static int make_pipes(int *first, int *second)
{
	int r;

	if (pipe2(first, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(second, O_CLOEXEC) == 0)
		return 0;
	r = -errno;
	(void)close(first[0]);
	(void)close(first[1]);
	return r;
}

static int write_proc(pid_t pid, const char *name, const char *text)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return nc_fd_write_control(AT_FDCWD, path, text);
}

/* Inside 0 to 65535 are ids that nobody else has; or one id, the sandbox's, is the caller's own. */
static int map_ids(
	const struct nc_nursery *nursery, const struct nc_slot *slot, pid_t pid, bool users)
{
	char uids[64], gids[64];
	int r;

	if (slot->held) {
		(void)snprintf(uids, sizeof(uids), "0 %u %u", slot->first_id, NC_SLOT_IDS);
		(void)snprintf(gids, sizeof(gids), "0 %u %u", slot->first_id, NC_SLOT_IDS);
	} else {
		(void)snprintf(uids, sizeof(uids), "%u %u 1", NC_SANDBOX_ID, nursery->uid);
		(void)snprintf(gids, sizeof(gids), "%u %u 1", NC_SANDBOX_ID, nursery->gid);
	}
	/* root of a box leaves groups, as everybody without privilege could not */
	r = users ? 0 : write_proc(pid, "setgroups", "deny");
	/* once, so that nobody inside can map the host's; a user has none to give away */
	if (r == 0 && slot->held)
		r = write_proc(pid, "projid_map", uids);
	if (r == 0)
		r = write_proc(pid, "gid_map", gids);
	if (r == 0)
		r = write_proc(pid, "uid_map", uids);
	return r;
}

int nc_birth_take_ids(struct nc_nursery *nursery, struct nc_box *box, struct nacre_err *err)
{
	const bool ranges = nursery->scratch.ranges;
	int r = nc_locks_open(&nursery->locks, ranges, nursery->scratch.id, err);

	if (r < 0 || !ranges || box->slot.held)
		return r;
	r = nc_slot_take(&nursery->locks, &box->slot);
	return r < 0 ? nc_err_errno(err, r, "Take a range of user ids") : 0;
}

static const char *const layer_places[] = {NC_BOX_LAYER "0", NC_BOX_LAYER "1"};
_Static_assert(sizeof(layer_places) / sizeof(layer_places[0]) == NC_BOX_LAYERS_MAX, "a place each");

/*
 * The layers; before binds, which may hide them. To read they are shown as images are, with what
 * everybody may read: a worker can open many a directory of root's, and must not have a box read as
 * root what is in there.
 */
static int describe_layers(const struct nc_nursery *nursery, const struct nc_box *box,
	struct nc_root_spec *spec, struct nacre_err *err)
{
	const struct nc_box_fds *fds = &box->order->order.fds;
	size_t n = 0;

	for (size_t i = 0; i < fds->n && n < NC_BOX_LAYERS_MAX; i++) {
		int fd;

		if (fds->kind[i] == NC_FD_LAYER_WRITABLE)
			fd = nc_bind_tree(fds->fd[i], nursery->pid_ns_fd < 0, layer_places[n], true,
				&box->slot, err);
		else if (fds->kind[i] == NC_FD_LAYER)
			fd = nc_bind_image(fds->fd[i], nursery->pid_ns_fd < 0);
		else
			continue;
		if (fd < 0)
			return err->code < 0 ? fd : nc_err_errno(err, fd, "Take a layer");
		spec->layers = true;
		spec->bind[spec->n_binds++] = (struct nc_root_bind){fd, layer_places[n++]};
	}
	return 0;
}

/* Whether nothing is put into its root but what is in everybody's. */
static bool is_usual(const struct nc_box_pending *pending)
{
	const struct nc_box_order *order = pending ? &pending->order : NULL;

	return !order || (!nc_box_fds_has(&order->fds, NC_FD_IMAGE) && nc_box_layers(order) == 0 &&
				 order->n_binds == 0);
}

/*
 * A copy of the frame, or -EBADF: then the box makes its own. One is composed when a second box is
 * wanted soon after the first; for one box alone it would be more work, not less.
 */
static int copy_frame(struct nc_nursery *nursery)
{
	struct nc_kept_frame *kept = &nursery->frame;
	uint64_t now = nc_clock_ns();
	bool busy = kept->asked_ns > 0 && now - kept->asked_ns < FRAME_AGE_NS;
	int fd;

	kept->asked_ns = now;
	if (kept->made_ns == 0 || now - kept->made_ns >= FRAME_AGE_NS) {
		kept->fd = kept->made_ns > 0 ? nc_fd_close(kept->fd) : -EBADF;
		if (!busy)
			return -EBADF;
		kept->made_ns = now;
		kept->fd = nc_frame_compose();
	}
	fd = kept->fd < 0 ? -EBADF : nc_mount_copy(kept->fd, "", true);
	return fd < 0 ? -EBADF : fd;
}

/* What a root that can be written to lies over: the image, or the host's /usr. */
static int take_lower(const struct nc_box *box, struct nc_root_spec *spec, struct nacre_err *err)
{
	cleanup_close int usr_fd = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = nc_box_fds_find(&box->order->order.fds, NC_FD_IMAGE);

	spec->over_usr = fd < 0;
	spec->image_fd = nc_idmap_lower(fd < 0 ? usr_fd : fd, box->slot.first_id);
	return spec->image_fd < 0
		       ? nc_err_errno(err, spec->image_fd,
				 "A root that can be written to: map the owner of what is below it")
		       : 0;
}

/* What the root of the box is made of; detached mounts are made here, where their sources are. */
static int describe_root(struct nc_nursery *nursery, const struct nc_box *box,
	struct nc_root_spec *spec, struct nacre_err *err)
{
	const struct nc_box_pending *pending = box->order;
	int r;

	*spec = (struct nc_root_spec){.disk_bytes = box->disk_bytes,
		.inodes = box->inodes,
		.users = has_flag(box, NC_ORDER_USERS),
		.writable = has_flag(box, NC_ORDER_WRITABLE),
		.frame_fd = -EBADF,
		.image_fd = -EBADF};
	if (is_usual(pending) && !spec->users && !spec->writable)
		spec->frame_fd = copy_frame(nursery);
	if (!pending)
		return 0;
	if (spec->writable) {
		r = take_lower(box, spec, err);
		if (r < 0)
			return r;
	} else if (nc_box_fds_has(&pending->order.fds, NC_FD_IMAGE)) {
		spec->image_fd = nc_bind_image(
			nc_box_fds_find(&pending->order.fds, NC_FD_IMAGE), nursery->pid_ns_fd < 0);
		if (spec->image_fd < 0)
			return nc_err_errno(err, spec->image_fd, "Take the image");
	}
	r = describe_layers(nursery, box, spec, err);
	for (size_t i = 0; r == 0 && i < pending->order.n_binds; i++) {
		const struct nc_box_bind *bind = &pending->order.binds[i];

		r = nc_bind_tree(nursery->bind_fd[bind->index], nursery->pid_ns_fd < 0,
			bind->target, bind->writable, &box->slot, err);
		if (r < 0)
			break;
		spec->bind[spec->n_binds++] = (struct nc_root_bind){r, bind->target};
		r = 0;
	}
	if (r == 0 && spec->users)
		r = nc_bind_program("nacre-sudo", nursery->pid_ns_fd < 0, err);
	if (r > 0)
		spec->bind[spec->n_binds++] = (struct nc_root_bind){r, NC_BOX_SUDO_PROGRAM};
	return r < 0 ? r : 0;
}

static void close_root(struct nc_root_spec *spec)
{
	spec->frame_fd = nc_fd_close(spec->frame_fd);
	spec->image_fd = nc_fd_close(spec->image_fd);
	for (size_t i = 0; i < spec->n_binds; i++)
		spec->bind[i].fd = nc_fd_close(spec->bind[i].fd);
}

/*
 * Whoever makes a user namespace owns it, and may enter it: the zygote whose child will. The
 * capabilities stay, so that it does not depend on what ordinary users may do here.
 */
static int pose_as(const struct nc_nursery *nursery, unsigned int owner)
{
	if (owner == 0)
		return 0;
	if (seteuid(owner) < 0)
		return -errno;
	return nc_caps_set(nursery->caps);
}

/* In the first process. go and report are the ends of two pipes. */
_Noreturn static void be_first(const struct nc_nursery *nursery, const struct nc_box *box,
	struct nc_root_spec *spec, const int *go, const int *report, bool cradled)
{
	struct nc_first first = {
		.root = spec,
		.go_fd = cradled ? nursery->cradle.fd[0] : go[0],
		.report_fd = cradled ? nursery->cradle.fd[1] : report[1],
		.built_fd = cradled && box->built_fd >= 0 ? nursery->cradle.fd[3] : box->built_fd,
		.init_fd = nursery->init_fd,
		.spawner_fd = nursery->self_fd,
		.single_id = !nursery->scratch.ranges,
	};

	if (cradled && nc_cradle_leave(&nursery->cradle) < 0)
		_exit(125); /* it would close what is the spawner's */
	if (cradled && spec && spec->frame_fd >= 0)
		spec->frame_fd = nursery->cradle.fd[2];
	(void)close(go[1]); /* or it would wait for itself if the spawner died */
	nc_child_first(&first);
}

/* Whether it needs no more of the spawner's descriptors than there is place for. */
static bool fill_cradle(struct nc_nursery *nursery, const struct nc_box *box,
	const struct nc_root_spec *spec, const int *go, const int *report)
{
	const int fds[NC_CRADLE_FDS] = {
		go[0], report[1], spec ? spec->frame_fd : -EBADF, box->built_fd};
	const int constant_fds[] = {nursery->init_fd, nursery->self_fd};

	return !(spec && (spec->image_fd >= 0 || spec->n_binds > 0)) &&
	       nc_cradle_fill(&nursery->cradle, fds, constant_fds, 2);
}

/* Clones it and lets it go once its ids are mapped. */
static int clone_first(struct nc_nursery *nursery, struct nc_box *box, struct nc_root_spec *spec,
	const int *go, const int *report, struct nacre_err *err)
{
	bool cradled = fill_cradle(nursery, box, spec, go, report);
	uint64_t flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWUTS | (cradled ? CLONE_FILES : 0);
	int r;

	if (spec)
		flags |= CLONE_NEWNS | CLONE_NEWIPC;
	r = pose_as(nursery, box->owner);
	if (r == 0)
		r = clone_child(flags, NULL, &box->init_pid, &box->init_fd);
	if (r == 0)
		be_first(nursery, box, spec, go, report, cradled);
	if (cradled && r > 0)
		nc_cradle_take(&nursery->cradle, box->init_fd);
	nc_cradle_make_way(&nursery->cradle, false);
	if (box->owner > 0 && seteuid(0) < 0)
		abort(); /* as somebody else nothing would be as it should */
	if (r < 0)
		return nc_err_errno(err, r, "Make namespaces (see: nacre doctor)");
	r = nc_birth_take_ids(nursery, box, err);
	if (r < 0)
		return r;
	r = map_ids(nursery, &box->slot, box->init_pid, has_flag(box, NC_ORDER_USERS));
	if (r < 0)
		return nc_err_errno(err, r, "Map user ids");
	if (nc_fd_write_all(go[1], "g", 1) < 0)
		return nc_err_set(err, -EPIPE, "The box died before it was built");
	nc_cradle_make_way(&nursery->cradle, true);
	return 0;
}

/* What says that the root is there, to the payload that waits for it. */
static int open_built(struct nc_box *box, struct nacre_err *err)
{
	box->built_fd = eventfd(0, EFD_CLOEXEC);
	return box->built_fd < 0 ? nc_err_errno(err, -errno, "Make an eventfd") : 0;
}

int nc_birth_first(struct nc_nursery *nursery, struct nc_box *box, struct nacre_err *err)
{
	bool has_root = box->end.tier == NC_TIER_CONTAINER;
	struct nc_root_spec spec = {.frame_fd = -EBADF, .image_fd = -EBADF};
	int go[2] = {-EBADF, -EBADF}, report[2] = {-EBADF, -EBADF};
	int r = make_pipes(go, report);

	if (r < 0)
		return nc_err_errno(err, r, "Make a pipe");
	r = has_root ? describe_root(nursery, box, &spec, err) : 0;
	if (r == 0 && has_root && box->lender_id == 0)
		r = open_built(box, err);
	if (r == 0)
		r = clone_first(nursery, box, has_root ? &spec : NULL, go, report, err);
	close_root(&spec);
	(void)close(go[0]);
	(void)close(go[1]);
	(void)close(report[1]);
	box->report_fd = report[0];
	return r;
}

int nc_birth_read_first(struct nc_nursery *nursery, struct nc_box *box, struct nacre_err *err)
{
	char report[NC_CHILD_REPORT_MAX];
	char path[64];
	/* one write of at most this size, so it comes whole */
	ssize_t size = read(box->report_fd, report, sizeof(report));

	box->report_fd = nc_fd_close(box->report_fd);
	(void)nc_cradle_clear(&nursery->cradle); /* this may be who is in there */
	if (size != 1 || report[0] != 'r')
		return nc_child_failed(report, size, &box->end.fail, err);
	if (box->end.tier == NC_TIER_PROCESS)
		return 0;
	/* nothing foreign has run in there yet, so the path is what we made it */
	(void)snprintf(path, sizeof(path), "/proc/%d/root/workspace", (int)box->init_pid);
	box->scratch_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return box->scratch_fd < 0 ? nc_err_errno(err, -errno, "Open the limited file system") : 0;
}

/*
 * Forks into the box's pid namespace. Root goes there and comes back; an ordinary user may not come
 * back, so a child goes instead and makes the payload its sibling: either way it is our own child.
 */
static int fork_directly(
	const struct nc_nursery *nursery, struct nc_box *box, const struct nc_payload *payload)
{
	int r;

	bool inside = payload->box_fd >= 0 && !payload->zygote;

	if (inside && setns(payload->box_fd, CLONE_NEWPID) < 0)
		return -errno;
	r = clone_child(0, nc_box_group(box), &box->payload_pid, &box->payload_fd);
	if (r == 0)
		nc_child_payload(payload);
	/* without the way back this box ends, and in its dead namespace the kernel makes no other
	 */
	if (inside && setns(nursery->pid_ns_fd, CLONE_NEWPID) < 0 && r >= 0)
		return -errno;
	return r;
}

_Noreturn static void fork_sibling(struct nc_box *box, const struct nc_payload *payload, int pid_fd)
{
	pid_t pid = 0;
	int pidfd, r;

	if (setns(payload->box_fd, CLONE_NEWPID) < 0)
		_exit(errno);
	r = clone_child(CLONE_PARENT, nc_box_group(box), &pid, &pidfd);
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
	int transit_fd = -EBADF, ends[2] = {-EBADF, -EBADF}, go[2] = {-EBADF, -EBADF};
	siginfo_t info = {0};
	pid_t pid = 0;
	int r = make_pipes(ends, go);

	if (r < 0)
		return r;
	payload->go_fd = go[0];
	r = nc_fork(&transit_fd);
	if (r == 0) {
		(void)close(go[1]); /* or the payload would wait for itself */
		fork_sibling(box, payload, ends[1]);
	}
	(void)close(ends[1]);
	(void)close(go[0]);
	if (r > 0)
		r = nc_pidfd_wait(transit_fd, nc_clock_ns() + TRANSIT_TIMEOUT_NS, &info);
	if (r == 0 && nc_fd_read_upto(ends[0], &pid, sizeof(pid)) != sizeof(pid))
		r = info.si_status > 0 ? -info.si_status : -EPROTO;
	(void)close(ends[0]);
	(void)nc_fd_close(transit_fd);
	/* our own child, which nobody else reaps: the number is still its own */
	if (r == 0)
		r = box->payload_fd = nc_pidfd_open(pid);
	if (r >= 0) {
		box->payload_pid = pid; /* else it is a stray, and reaped as such */
		r = nc_fd_write_all(go[1], "g", 1);
	}
	(void)close(go[1]);
	return r;
}

/* Where the payload may write beside what every box of its tier has. */
static size_t writable_paths(const struct nc_nursery *nursery, const struct nc_box *box,
	char scratch[2][NC_BOX_DIR_MAX + 64], struct nc_fence_path *paths)
{
	char dir[NC_BOX_DIR_MAX + 1];
	size_t n = 0;

	if (box->end.tier == NC_TIER_PROCESS) {
		static const char *const names[] = {"workspace", "tmp"};

		nc_scratch_path(&nursery->scratch, dir);
		for (; n < 2; n++) {
			(void)snprintf(scratch[n], sizeof(scratch[n]), "%s/%llu/%s", dir,
				(unsigned long long)box->end.id, names[n]);
			paths[n] = (struct nc_fence_path){scratch[n], NC_FENCE_WRITE};
		}
	}
	for (size_t i = 0, layer = 0; box->first && i < box->first->order.fds.n; i++) {
		const enum nc_box_fd kind = box->first->order.fds.kind[i];

		if (kind == NC_FD_LAYER_WRITABLE)
			paths[n++] = (struct nc_fence_path){layer_places[layer], NC_FENCE_WRITE};
		layer += kind == NC_FD_LAYER || kind == NC_FD_LAYER_WRITABLE;
	}
	for (size_t i = 0; box->first && i < box->first->order.n_binds; i++)
		if (box->first->order.binds[i].writable)
			paths[n++] = (struct nc_fence_path){
				box->first->order.binds[i].target, NC_FENCE_WRITE};
	return n;
}

int nc_birth_payload(const struct nc_nursery *nursery, struct nc_box *box,
	const struct nc_box *home, bool has_root, struct nacre_err *err)
{
	struct nc_fence_path writable[NC_BOX_LAYERS_MAX + NC_BOX_BINDS_MAX + 3];
	char scratch[2][NC_BOX_DIR_MAX + 64];
	bool zygote = box->order && (box->order->order.flags & NC_ORDER_ZYGOTE);
	bool outside = home->init_fd < 0 || zygote; /* of the box's user namespace */
	const char *user = box->order ? box->order->order.user : "";
	struct nc_payload payload = {.tier = box->end.tier,
		.box_fd = home->init_fd,
		.go_fd = -EBADF,
		.built_fd = has_root ? -EBADF : home->built_fd,
		.zygote = zygote,
		.alone = box->means.alone ||
			 (box->order && (box->order->order.flags & NC_ORDER_ALONE)),
		.terminal = box->order && (box->order->order.flags & NC_ORDER_TTY),
		.door = box->order && (box->order->order.flags & NC_ORDER_DOOR),
		.guests = box->order && (box->order->order.flags & NC_ORDER_GUESTS),
		.writable = writable,
		.writes_root = home->first && home->first->order.flags & NC_ORDER_WRITABLE,
		.user = *user ? user : NULL,
		.id = home->slot.held && outside ? home->slot.first_id + NC_SANDBOX_ID
						 : NC_SANDBOX_ID,
		.keeps_id = !home->slot.held && outside,
		.group = nc_box_group(box)};
	cpu_set_t had;
	int ends[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return nc_err_errno(err, -errno, "Make a socket pair");
	payload.n_writable = writable_paths(nursery, home, scratch, writable);
	payload.channel_fd = ends[1];
	payload.other_fd = ends[0];
	/* the first process has the other one, and the kernel would have it wait there */
	if (payload.built_fd >= 0 && nursery->cradle.free_fd >= 0 && nc_processor_stay(&had))
		payload.processors = &had;
	r = nursery->pid_ns_fd >= 0 || outside ? fork_directly(nursery, box, &payload)
					       : fork_by_sibling(box, &payload);
	if (payload.processors)
		(void)nc_processor_roam(&had); /* what we had cannot be refused */
	(void)close(ends[1]);
	box->built_fd = nc_fd_close(box->built_fd);
	*(has_root ? &box->report_fd : &box->channel_fd) = ends[0];
	if (r < 0)
		return nc_err_errno(err, r, "Fork into the box");
	nc_cgroup_join_close(&box->group);
	return 0;
}

/* Namespaces by their names, and by numbers that Linux 6.11 has for them: nothing is looked up. */
static const struct {
	const char *name;
	unsigned long number; /* PIDFD_GET_*_NAMESPACE, which Debian 12's headers lack */
} spaces[] = {
	{"user", _IO(0xff, 9)},
	{"mnt", _IO(0xff, 3)},
	{"pid", _IO(0xff, 5)},
	{"net", _IO(0xff, 4)},
	{"ipc", _IO(0xff, 2)},
	{"uts", _IO(0xff, 10)},
};
_Static_assert(sizeof(spaces) / sizeof(spaces[0]) == NC_BOX_SPACES, "an inode for each");

/* Opens a namespace of a process that we hold, and tells which it is. */
static int open_space(int pidfd, pid_t pid, size_t i, uint64_t *ret_inode)
{
	cleanup_close int fd = ioctl(pidfd, spaces[i].number, 0);
	struct stat status;
	char path[64];

	if (fd < 0) {
		(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, spaces[i].name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	*ret_inode = status.st_ino;
	return take_fd(fd);
}

/* What goes to the zygote: see inside/lend.h. Returns how many, or -errno; the rest are -EBADF. */
static int collect_lend(struct nc_box *box, int *fds)
{
	const struct nc_cgroup *group = nc_box_group(box);
	int n = NC_LEND_USER;

	for (size_t i = 0; i < NC_BOX_SPACES; i++, n++) {
		fds[n] = open_space(box->init_fd, box->init_pid, i, &box->spaces[i]);
		if (fds[n] < 0)
			return fds[n];
	}
	for (size_t i = 0; group && i < group->parent->n_trees && n < NC_LEND_FDS_MAX; i++) {
		if (!(group->made & (1U << i)))
			continue;
		fds[n] = group->parent->tree[i].v2
				 ? openat(group->clone_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC)
				 : nc_fd_dup(group->join_fd[i]);
		if (fds[n++] < 0)
			return -errno;
	}
	return n;
}

/* Two pipes and a pair: our ends are the box's, the others the zygote's. */
static int make_lend_ends(struct nc_box *box, int *fds)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	box->report_fd = ends[0];
	fds[NC_LEND_PID] = ends[1];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	fds[NC_LEND_GO] = ends[0];
	box->go_fd = ends[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	box->channel_fd = ends[0];
	fds[NC_LEND_CHANNEL] = ends[1];
	return 0;
}

int nc_birth_borrow(struct nc_box *box, struct nacre_err *err)
{
	const struct nc_cgroup *group = nc_box_group(box);
	struct nc_lend lend = {.can = group ? group->parent->can : 0};
	int fds[NC_LEND_FDS_MAX];
	int n;

	for (size_t i = 0; i < NC_LEND_FDS_MAX; i++)
		fds[i] = -EBADF;
	n = make_lend_ends(box, fds);
	if (n == 0)
		n = collect_lend(box, fds);
	if (n > 0)
		n = nc_child_send(box->lender_fd, &lend, sizeof(lend), fds, (size_t)n);
	for (size_t i = 0; i < NC_LEND_FDS_MAX; i++)
		(void)nc_fd_close(fds[i]);
	nc_cgroup_join_close(&box->group);
	return n < 0 ? nc_err_errno(err, n, "Ask the zygote for a child") : 0;
}

/* Whether its user, mount, pid and net namespaces are those of the box's first process. */
static int is_in_box(const struct nc_box *box, int pidfd, pid_t pid)
{
	for (size_t i = 0; i < 4; i++) {
		uint64_t inode = 0;
		cleanup_close int fd = open_space(pidfd, pid, i, &inode);

		if (fd < 0)
			return fd;
		if (inode != box->spaces[i])
			return -EXDEV;
	}
	return 0;
}

/* Whatever the zygote says: only a child of ours that is in this box is taken. */
static int check_lent(const struct nc_box *box, int pidfd, pid_t pid)
{
	siginfo_t info = {0};

	if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
		return -errno;
	return is_in_box(box, pidfd, pid);
}

int nc_birth_take(struct nc_box *box, struct nacre_err *err)
{
	cleanup_close int pidfd = -EBADF;
	pid_t pid = 0;
	int r;

	if (nc_fd_read_upto(box->report_fd, &pid, sizeof(pid)) != sizeof(pid) || pid <= 1)
		return nc_err_set(err, -ECHILD, "The zygote lent no child");
	r = pidfd = nc_pidfd_open(pid);
	if (r >= 0)
		r = check_lent(box, pidfd, pid);
	if (r < 0)
		return nc_err_errno(err, r, "Take the zygote's child");
	box->payload_fd = take_fd(pidfd);
	box->payload_pid = pid;
	(void)nc_fd_close(box->report_fd);
	box->report_fd = take_fd(box->channel_fd);
	r = nc_fd_write_all(box->go_fd, "g", 1);
	box->go_fd = nc_fd_close(box->go_fd);
	return r < 0 ? nc_err_errno(err, r, "Let the zygote's child go") : 0;
}

int nc_birth_sweeper(const struct nc_nursery *nursery, struct nc_box *box)
{
	struct nc_payload payload = {.box_fd = box->init_fd,
		.channel_fd = -EBADF,
		.other_fd = -EBADF,
		.go_fd = -EBADF,
		.built_fd = -EBADF,
		.sweeps = true,
		.host_pid_ns = nursery->pid_ns};

	return nursery->pid_ns_fd >= 0 ? fork_directly(nursery, box, &payload)
				       : fork_by_sibling(box, &payload);
}

/* A box that was prepared ahead has a file system of the usual size: gives it the ordered one. */
static int resize_scratch(struct nc_box *box, const struct nc_box_limits *limits)
{
	cleanup_close int fd = -EBADF;
	char bytes[32], inodes[32];

	if (box->scratch_fd < 0 ||
		(limits->disk_bytes == box->disk_bytes && limits->inodes == box->inodes))
		return 0;
	(void)snprintf(bytes, sizeof(bytes), "%llu", limits->disk_bytes + NC_TOLD_BYTES);
	(void)snprintf(inodes, sizeof(inodes), "%llu", (unsigned long long)limits->inodes);
	fd = fspick(box->scratch_fd, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH);
	if (fd < 0 || fsconfig(fd, FSCONFIG_SET_STRING, "size", bytes, 0) < 0 ||
		fsconfig(fd, FSCONFIG_SET_STRING, "nr_inodes", inodes, 0) < 0 ||
		fsconfig(fd, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0)
		return -errno;
	box->disk_bytes = limits->disk_bytes;
	box->inodes = limits->inodes;
	return 0;
}

void nc_birth_limits(const struct nc_cgroup_parent *parent, const struct nc_box_limits *limits,
	struct nc_cgroup_limits *ret_limits)
{
	*ret_limits = (struct nc_cgroup_limits){
		.memory_bytes = parent->can & NC_CGROUP_CAN_MEMORY ? limits->memory_bytes : 0,
		.pids = parent->can & NC_CGROUP_CAN_PIDS ? limits->pids : 0,
		.cpu_milli = parent->can & NC_CGROUP_CAN_CPU ? limits->cpu_milli : 0,
	};
}

static int limit_group(struct nc_box *box, struct nacre_err *err)
{
	struct nc_cgroup_limits limits;

	if (!nc_box_group(box))
		return 0;
	nc_birth_limits(box->group.parent, &box->limits, &limits);
	if (limits.pids > 0 && nc_box_has_shade(box))
		limits.pids++;
	return nc_cgroup_limit(&box->group, &limits, err);
}

/* The streams, if it has no terminal, and behind them files or what its program is to have. */
static int send_order(const struct nc_box *box, int fourth_fd)
{
	struct nc_box_pending *pending = box->order;
	const struct nc_box_fds *given = &pending->order.fds;
	struct nc_box_fds fds = {0};

	for (size_t i = 0; i < 3; i++)
		nc_box_fds_add(&fds, nc_box_streams[i], nc_box_fds_find(given, nc_box_streams[i]));
	nc_box_fds_add(&fds, NC_FD_PACK, nc_box_fds_find(given, NC_FD_PACK));
	if (pending->order.flags & (NC_ORDER_FILES | NC_ORDER_ZYGOTE))
		nc_box_fds_add(&fds, NC_FD_PACK, fourth_fd);
	nc_box_fds_add(&fds, NC_FD_WORDS, nc_box_fds_find(given, NC_FD_WORDS));
	return nc_child_send(box->report_fd, pending->data, pending->size, fds.fd, fds.n);
}

/* nacre-files, in memory from its first use on: to read it takes as long as half a birth. */
static int load_files(struct nc_nursery *nursery, struct nacre_err *err)
{
	if (nursery->files_fd < 0)
		nursery->files_fd = nc_program_load(nursery->files_source_fd, "nacre-files", err);
	return nursery->files_fd < 0 ? nursery->files_fd : 0;
}

/* The way to ask a zygote for its children; returns its end. */
static int open_zygote(struct nc_box *box)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	(void)nc_fd_close(box->zygote_fd);
	box->zygote_fd = ends[0];
	(void)fcntl(ends[0], F_SETFL, O_NONBLOCK); /* nobody waits for a zygote; cannot fail */
	return ends[1];
}

int nc_birth_deliver(struct nc_nursery *nursery, struct nc_box *box, struct nacre_err *err)
{
	cleanup_close int zygote_fd = -EBADF;
	int r;

	box->limits = box->order->order.limits;
	r = resize_scratch(box, &box->limits);
	if (r < 0)
		return nc_err_errno(err, r, "Size the limited file system");
	r = limit_group(box, err);
	if (r == 0 && box->order->order.flags & NC_ORDER_FILES)
		r = load_files(nursery, err);
	if (r < 0)
		return r;
	if (box->order->order.flags & NC_ORDER_ZYGOTE)
		zygote_fd = r = open_zygote(box);
	box->handed_ns = nc_clock_ns();
	if (r >= 0)
		r = send_order(box, zygote_fd >= 0 ? zygote_fd : nursery->files_fd);
	if (r == -EPIPE) /* it has died, and has said why */
		return 0;
	return r < 0 ? nc_err_errno(err, r, "Hand over the order") : 0;
}

/* The payload is locked in: by what, and the descriptors that came with the news. */
static void note_held(
	struct nc_box *box, const struct nc_payload_report *report, struct nc_wire_packet *packet)
{
	int *const places[NC_PAYLOAD_FDS] = {
		&box->listener_fd, &box->terminal_fd, &box->door_fd, &box->shade_fd};
	size_t n = 0;

	box->held = true;
	box->means.landlock = report->landlock;
	box->means.reported = report->has[NC_PAYLOAD_LISTENER];
	for (size_t i = 0; i < NC_PAYLOAD_FDS && n < packet->n_fds; i++)
		if (report->has[i]) {
			*places[i] = packet->fds[n];
			packet->fds[n++] = -EBADF;
		}
}

int nc_birth_read_payload(struct nc_box *box, struct nacre_err *err)
{
	static struct nc_wire_packet packet;
	struct nc_payload_report report;
	int r = nc_wire_receive(box->report_fd, &packet, NC_PAYLOAD_FDS);

	if (r == -ECONNRESET) /* it ended with its order unread; its report stands behind this */
		r = nc_wire_receive(box->report_fd, &packet, NC_PAYLOAD_FDS);
	if (r == -EAGAIN)
		return 0;
	if (r < 0)
		return nc_err_errno(err, r, "Hear from the payload");
	if (r == 0) {
		box->report_fd = nc_fd_close(box->report_fd);
		return 1;
	}
	if (box->ahead && packet.size == 1 && packet.data[0] == NC_AHEAD_READY[0]) {
		if (packet.n_fds == 1) {
			box->shade_fd = packet.fds[0];
			packet.fds[0] = -EBADF;
		}
		return 2;
	}
	if (box->warmth == NC_WARMS_UP && packet.size == 1 && packet.data[0] == NC_WARM_UP[0]) {
		box->warmth = NC_WARM;
		return 0;
	}
	if (box->silent && packet.size == 1 && packet.data[0] == NC_LAST_WORD[0]) {
		box->silent = false;
		return 0;
	}
	if (packet.data[0] != NC_PAYLOAD_HELD || packet.size != sizeof(report))
		return nc_child_failed(
			(const char *)packet.data, (ssize_t)packet.size, &box->end.fail, err);
	memcpy(&report, packet.data, sizeof(report));
	note_held(box, &report, &packet);
	return 0;
}
