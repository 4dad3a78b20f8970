/* Where the groups of boxes are made: which hierarchies, and one directory of ours in each. */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "kernel/cgroup_face.h"

#define PREFIX "nacre-"
/* Where we are ourselves after step_down. */
#define SELF "self"
/* A spawner and its worker, and room: who has more processes in his group is not alone. */
#define FAMILY_MAX 8

/* From making a group to holding it takes a moment. */
#define FORSAKEN_SECONDS 60

/* Controllers that version 2 hands down by name. */
static const enum nc_cgroup_controller wanted[] = {
	NC_CGROUP_MEMORY, NC_CGROUP_CPU, NC_CGROUP_PIDS, NC_CGROUP_IO};
#define N_WANTED (sizeof(wanted) / sizeof(wanted[0]))

static struct nc_cgroup_place parent_place(
	const struct nc_cgroup_tree *tree, const struct nc_cgroup_parent *parent, char *name)
{
	(void)snprintf(name, sizeof(PREFIX) + NC_CGROUP_NAME_MAX, PREFIX "%s", parent->id);
	return (struct nc_cgroup_place){tree->above_fd, name};
}

/* Controllers, as bits, that a file of a version 2 group names. 0 if it cannot be read. */
static unsigned int read_controllers(const struct nc_cgroup_place *place, const char *file)
{
	unsigned int controllers = 0;
	char text[512];

	if (nc_cgroup_read_file(place, file, text, sizeof(text)) < 0)
		return 0;
	text[strcspn(text, "\n")] = '\0';
	for (size_t i = 0; i < N_WANTED; i++)
		if (nc_text_has_word(text, ' ', nc_cgroup_v2[wanted[i]].name))
			controllers |= 1U << wanted[i];
	return controllers;
}

/* Switches controllers on ('+') or off ('-') for the groups below place. 0 or -errno, for all. */
static int switch_controllers(
	const struct nc_cgroup_place *place, char sign, unsigned int controllers)
{
	char text[128] = "";
	size_t size = 0;

	for (size_t i = 0; i < N_WANTED; i++)
		if (controllers & (1U << wanted[i]))
			size += (size_t)snprintf(text + size, sizeof(text) - size, "%c%s ", sign,
				nc_cgroup_v2[wanted[i]].name);
	return size ? nc_cgroup_write_file(place, "cgroup.subtree_control", text) : 0;
}

int nc_cgroup_hand_down(const struct nc_cgroup_place *place, unsigned int controllers)
{
	return switch_controllers(place, '+', controllers);
}

/* Has those of the controllers switched on that place has to give. Returns what was off before. */
static unsigned int hand_down(const struct nc_cgroup_place *place, unsigned int controllers)
{
	unsigned int on = read_controllers(place, "cgroup.subtree_control");
	unsigned int missing =
		controllers & ~on
			? controllers & ~on & read_controllers(place, "cgroup.controllers")
			: 0;
	int r = switch_controllers(place, '+', missing);

	/* one may spoil all: cpu, by a process with real-time priority */
	for (size_t i = 0; r < 0 && r != -EBUSY && i < N_WANTED; i++)
		(void)switch_controllers(place, '+', missing & (1U << wanted[i]));
	return missing;
}

/* The controllers that version 2 is to give: those that version 1 does not have. */
static unsigned int wanted_of(const struct nc_cgroup_host *host)
{
	unsigned int controllers = 0;

	for (size_t i = 0; i < N_WANTED; i++)
		if (!host->v1_dir[wanted[i]])
			controllers |= 1U << wanted[i];
	return controllers;
}

/* Brings controllers down to the groups of tree and sees which have come. */
static void bring_down(struct nc_cgroup_tree *tree, unsigned int controllers)
{
	struct nc_cgroup_place above = {tree->above_fd, "."}, place = {tree->fd, "."};
	unsigned int missing = hand_down(&above, controllers);

	if (tree->stepped_down)
		tree->switched_on = missing;
	(void)hand_down(&place, controllers);
	tree->controllers = controllers & read_controllers(&place, "cgroup.subtree_control");
	for (size_t i = 0; i < N_WANTED; i++)
		if (tree->controllers & (1U << wanted[i]) &&
			!nc_cgroup_has_file(&place, nc_cgroup_v2[wanted[i]].file))
			tree->controllers &= ~(1U << wanted[i]);
}

/* Whether all of them are ourselves or our children. */
static bool are_ours(const pid_t *pids, int n)
{
	siginfo_t info;

	for (int i = 0; i < n; i++)
		if (pids[i] != getpid() && waitid(P_PID, (id_t)pids[i], &info,
						   WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
			return false;
	return n > 0 && n < FAMILY_MAX;
}

/* Moves them all into place. */
static int move_all(const struct nc_cgroup_place *place, const pid_t *pids, int n)
{
	char text[16];
	int r = 0;

	for (int i = 0; r == 0 && i < n; i++) {
		(void)snprintf(text, sizeof(text), "%d", (int)pids[i]);
		r = nc_cgroup_write_file(place, "cgroup.procs", text);
	}
	return r;
}

/* Undoes step_down, as far as nobody would lose a limit by it. */
static void step_up(struct nc_cgroup_tree *tree)
{
	struct nc_cgroup_place above = {tree->above_fd, "."}, place = {tree->fd, "."};
	struct nc_cgroup_place self = {tree->fd, SELF};
	pid_t pids[FAMILY_MAX];
	struct stat status;
	int n = nc_cgroup_place_pids(&self, pids, FAMILY_MAX);

	/* groups of boxes beside "self": both stay, for the sweep of another */
	if (fstat(tree->fd, &status) < 0 || status.st_nlink > 3)
		return;
	/* each needs the one before it; what fails stays for the sweep too */
	if (switch_controllers(&place, '-', tree->controllers) == 0 &&
		switch_controllers(&above, '-', tree->switched_on) == 0 &&
		move_all(&above, pids, n) == 0)
		(void)unlinkat(tree->fd, SELF, AT_REMOVEDIR);
	tree->stepped_down = false;
}

/*
 * Makes room for controllers in the group that we are in, if nobody but us and our children is in
 * it. The place to go is within "nacre-<id>": whoever sweeps that, sweeps this.
 */
static void step_down(struct nc_cgroup_tree *tree, unsigned int controllers)
{
	struct nc_cgroup_place above = {tree->above_fd, "."}, self = {tree->fd, SELF};
	pid_t pids[FAMILY_MAX];
	int n;

	if (!(read_controllers(&above, "cgroup.controllers") & controllers & ~tree->controllers))
		return;
	n = nc_cgroup_place_pids(&above, pids, FAMILY_MAX);
	if (n < 0 || !are_ours(pids, n) || mkdirat(self.fd, self.name, 0755) < 0)
		return;
	if (move_all(&self, pids, n) < 0) {
		(void)move_all(&above, pids, n); /* who was not moved is there already */
		(void)unlinkat(self.fd, self.name, AT_REMOVEDIR); /* empty and ours */
		return;
	}
	tree->stepped_down = true;
	bring_down(tree, controllers);
	if (!tree->controllers)
		step_up(tree); /* somebody came in meanwhile */
}

static void tree_close(struct nc_cgroup_tree *tree, const struct nc_cgroup_parent *parent)
{
	char name[sizeof(PREFIX) + NC_CGROUP_NAME_MAX];
	struct nc_cgroup_place place = parent_place(tree, parent, name);

	if (tree->stepped_down)
		step_up(tree);
	if (tree->fd >= 0)
		(void)unlinkat(place.fd, place.name, AT_REMOVEDIR); /* it stays if it has groups */
	tree->fd = nc_fd_close(tree->fd);
	tree->above_fd = nc_fd_close(tree->above_fd);
}

/* Makes our directory in dir. tree needs no closing after a failure. */
static int tree_open(struct nc_cgroup_tree *tree, const struct nc_cgroup_parent *parent,
	const char *dir, bool v2)
{
	char name[sizeof(PREFIX) + NC_CGROUP_NAME_MAX];
	struct nc_cgroup_place place;
	int r = 0;

	*tree = (struct nc_cgroup_tree){.v2 = v2, .fd = -EBADF};
	tree->above_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tree->above_fd < 0)
		return -errno;
	place = parent_place(tree, parent, name);
	/* version 2 asks for the right to write this, of whoever goes into a group below */
	if ((v2 && faccessat(place.fd, "cgroup.procs", W_OK, AT_EACCESS) < 0) ||
		mkdirat(place.fd, place.name, 0755) < 0) {
		r = -errno;
	} else {
		tree->fd = openat(
			place.fd, place.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (tree->fd < 0) {
			r = -errno;
			(void)unlinkat(place.fd, place.name, AT_REMOVEDIR); /* empty and ours */
		} else {
			/* as long as we live, for who has another /run and cannot see our own lock
			 */
			(void)flock(tree->fd, LOCK_SH | LOCK_NB);
		}
	}
	if (r < 0)
		tree_close(tree, parent);
	return r;
}

/* Whether this failure means that the host has no groups for us; any other one is a failure. */
static bool not_for_us(int error)
{
	return error == -EACCES || error == -EPERM || error == -EROFS || error == -ENOENT;
}

/* What the hierarchies of version 1 are chosen by. */
struct v1 {
	const struct nc_cgroup_host *host;
	bool beside_v2, lasting;
};

/* The groups that are made where this controller is, enum nc_cgroup_kind. */
static unsigned int kinds_of(const struct v1 *v1, size_t controller)
{
	if (!v1->host->v1_dir[controller])
		return 0;
	if (controller == NC_CGROUP_IO)
		return v1->lasting ? NC_CGROUP_FOR_HOME : 0;
	/* the version 2 tree does the same */
	if (v1->beside_v2 && (controller == NC_CGROUP_FREEZER || controller == NC_CGROUP_CPUACCT))
		return v1->lasting ? NC_CGROUP_FOR_LOAN : 0;
	return NC_CGROUP_FOR_ALL;
}

/* A hierarchy of version 1 with the controllers in it, of which this is the first. */
static int add_v1(struct nc_cgroup_parent *parent, const struct v1 *v1, size_t first)
{
	char *const *dir = v1->host->v1_dir;
	struct nc_cgroup_tree *tree = &parent->tree[parent->n_trees];
	struct nc_cgroup_place place;
	int r = tree_open(tree, parent, dir[first], false);

	if (r < 0)
		return not_for_us(r) ? 0 : r;
	place = (struct nc_cgroup_place){tree->fd, "."};
	for (size_t i = first; i < NC_CGROUP_CONTROLLER_MAX; i++)
		if (kinds_of(v1, i) && nc_streq(dir[i], dir[first]) &&
			nc_cgroup_has_file(&place, nc_cgroup_v1[i].file)) {
			tree->controllers |= 1U << i;
			tree->kinds |= kinds_of(v1, i);
		}
	if (tree->controllers)
		parent->n_trees++;
	else
		tree_close(tree, parent);
	return 0;
}

static int add_all_v1(
	struct nc_cgroup_parent *parent, const struct nc_cgroup_host *host, bool lasting)
{
	const struct v1 v1 = {host, parent->n_trees && parent->tree[0].v2, lasting};
	int r = 0;

	for (size_t i = 0; r == 0 && i < NC_CGROUP_CONTROLLER_MAX; i++) {
		bool first = kinds_of(&v1, i) != 0;

		/* those of one hierarchy were found on one line: the paths are the same text */
		for (size_t k = 0; first && k < i; k++)
			first = !kinds_of(&v1, k) || !nc_streq(host->v1_dir[k], host->v1_dir[i]);
		if (first)
			r = add_v1(parent, &v1, i);
	}
	return r;
}

static int open_v2(struct nc_cgroup_tree *tree, const struct nc_cgroup_parent *parent,
	const struct nc_cgroup_host *host, const char *dir)
{
	int r = tree_open(tree, parent, dir, true);

	if (r == 0 && wanted_of(host))
		bring_down(tree, wanted_of(host));
	return r;
}

/* Whether a controller that limits is missing, which version 2 should have given. */
static bool lacks_limits(const struct nc_cgroup_tree *tree, const struct nc_cgroup_host *host)
{
	const unsigned int limiting =
		1U << NC_CGROUP_MEMORY | 1U << NC_CGROUP_CPU | 1U << NC_CGROUP_PIDS;

	return limiting & wanted_of(host) & ~tree->controllers;
}

/*
 * Our own group cannot hand controllers down while processes are in it (unless it is the top of
 * all). Then the top is tried, and taken if it gives more.
 */
static int add_v2(struct nc_cgroup_parent *parent, const struct nc_cgroup_host *host)
{
	struct nc_cgroup_tree own, top;
	int r = open_v2(&own, parent, host, host->v2_dir);
	int s = -ENOENT;

	if (r == -EEXIST)
		return r;
	if (!nc_streq(host->v2_dir, host->v2_top) && (r < 0 || lacks_limits(&own, host)))
		s = open_v2(&top, parent, host, host->v2_top);
	if (s == -EEXIST) {
		if (r == 0)
			tree_close(&own, parent);
		return s;
	}
	if (r < 0 && s < 0)
		return not_for_us(r) ? 0 : r;
	if (r == 0 && s == 0) {
		bool more = top.controllers & ~own.controllers;

		tree_close(more ? &own : &top, parent);
		own = more ? top : own;
	} else if (s == 0) {
		own = top;
	}
	if (lacks_limits(&own, host))
		step_down(&own, wanted_of(host));
	own.kinds = NC_CGROUP_FOR_ALL;
	parent->tree[parent->n_trees++] = own;
	return 0;
}

/* Programs that come in by writing need no version 2 where version 1 does all that it would. */
static void spare_v2(struct nc_cgroup_parent *parent)
{
	unsigned int all = parent->tree[0].controllers, v1 = 0;

	for (size_t i = 1; i < parent->n_trees; i++)
		v1 |= parent->tree[i].controllers;
	all |= 1U << NC_CGROUP_FREEZER | 1U << NC_CGROUP_CPUACCT;
	if ((all & ~v1) == 0)
		parent->tree[0].kinds &= ~(unsigned int)NC_CGROUP_FOR_LOAN;
}

static void add_gauge(
	struct nc_cgroup_parent *parent, const struct nc_cgroup_gauge *gauge, size_t tree)
{
	assert(parent->n_gauges < NC_CGROUP_GAUGES_MAX);
	parent->gauge[parent->n_gauges].gauge = gauge;
	parent->gauge[parent->n_gauges].tree = tree;
	parent->n_gauges++;
}

/* Finds the files that usage is read from, and what version 2 can do without controllers. */
static void look_at_tree(struct nc_cgroup_parent *parent, size_t index)
{
	const struct nc_cgroup_tree *tree = &parent->tree[index];
	const struct nc_cgroup_face *faces = tree->v2 ? nc_cgroup_v2 : nc_cgroup_v1;
	struct nc_cgroup_place place = {tree->fd, "."};

	for (size_t i = 0; i < NC_CGROUP_CONTROLLER_MAX; i++) {
		const size_t most = sizeof(faces[i].gauge) / sizeof(faces[i].gauge[0]);

		if (!(tree->controllers & (1U << i)))
			continue;
		parent->can |= faces[i].can;
		for (size_t k = 0; k < most && faces[i].gauge[k].file; k++)
			add_gauge(parent, &faces[i].gauge[k], index);
	}
	if (tree->controllers & (1U << NC_CGROUP_MEMORY) &&
		nc_cgroup_has_file(
			&place, tree->v2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes"))
		parent->can |= NC_CGROUP_CAN_SWAP;
	if (!tree->v2)
		return;
	add_gauge(parent, &nc_cgroup_v2_time, index);
	parent->can |= NC_CGROUP_CAN_CPU_TIME | NC_CGROUP_CAN_CLONE;
	/* Linux 5.14, and 5.2 */
	if (nc_cgroup_has_file(&place, "cgroup.kill"))
		parent->can |= NC_CGROUP_CAN_KILL | NC_CGROUP_CAN_FREEZE;
	else if (nc_cgroup_has_file(&place, "cgroup.freeze"))
		parent->can |= NC_CGROUP_CAN_FREEZE;
}

/*
 * All boxes together weigh as much as these tasks for each processor, and not as one: the kernel
 * shares a group's weight out to processors by what it does on each, so that a small program beside
 * one that burns another processor's time is hardly ever run where somebody else works (200 ms were
 * measured). With twice as much boxes would hold up the daemon.
 */
#define TASKS_OF_PROCESSOR 16L
#define V1_TASK 1024L
#define V1_MAX 262144L
#define V2_TASK 100L
#define V2_MAX 10000L

static void weigh(const struct nc_cgroup_parent *parent)
{
	const long tasks = TASKS_OF_PROCESSOR * sysconf(_SC_NPROCESSORS_ONLN);

	for (size_t i = 0; i < parent->n_trees; i++) {
		const struct nc_cgroup_tree *tree = &parent->tree[i];
		const long most = tree->v2 ? V2_MAX : V1_MAX;
		long weight = tasks * (tree->v2 ? V2_TASK : V1_TASK);
		char name[sizeof(PREFIX) + NC_CGROUP_NAME_MAX], text[32];
		struct nc_cgroup_place place = parent_place(tree, parent, name);

		if (!(tree->controllers & (1U << NC_CGROUP_CPU)))
			continue;
		(void)snprintf(text, sizeof(text), "%ld", weight < most ? weight : most);
		/* no promise: who may not is served by turns of another length */
		(void)nc_cgroup_write_file(&place, tree->v2 ? "cpu.weight" : "cpu.shares", text);
	}
}

int nc_cgroup_parent_open_on(struct nc_cgroup_parent *parent, const struct nc_cgroup_host *host,
	const char *id, bool lasting, struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];
	int r = 0;

	if (!nc_cgroup_name_ok(id))
		return nc_err_set(err, -EINVAL, "%s cannot name a parent of control groups",
			nc_text_quote(quoted, id));
	*parent = (struct nc_cgroup_parent){0};
	(void)snprintf(parent->id, sizeof(parent->id), "%s", id);
	if (host->v2_dir)
		r = add_v2(parent, host);
	if (r == 0)
		r = add_all_v1(parent, host, lasting);
	if (r < 0) {
		nc_cgroup_parent_close(parent);
		return nc_err_errno(err, r, "Make the control group " PREFIX "%s", id);
	}
	if (parent->n_trees && parent->tree[0].v2)
		spare_v2(parent);
	if (lasting)
		weigh(parent);
	for (size_t i = 0; i < parent->n_trees; i++)
		look_at_tree(parent, i);
	/* a kernel that cannot swap has no such file, and nothing to limit */
	parent->swap_unknown =
		!(parent->can & NC_CGROUP_CAN_SWAP) && access("/proc/swaps", F_OK) == 0;
	return 0;
}

int nc_cgroup_parent_open(
	struct nc_cgroup_parent *parent, const char *id, bool lasting, struct nacre_err *err)
{
	struct nc_cgroup_host host = {0};
	int r = nc_cgroup_find(&host);

	if (r < 0)
		return nc_err_errno(err, r, "Find the control groups");
	r = nc_cgroup_parent_open_on(parent, &host, id, lasting, err);
	nc_cgroup_done(&host);
	return r;
}

void nc_cgroup_parent_close(struct nc_cgroup_parent *parent)
{
	for (size_t i = 0; i < parent->n_trees; i++)
		tree_close(&parent->tree[i], parent);
	*parent = (struct nc_cgroup_parent){0};
}

struct sweep {
	const char *own_id;
	bool v2;
	bool (*is_dead)(const char *id, void *context);
	void *context;
	int removed;
	int error; /* the first */
};

static int kill_below(int dir_fd, const char *name, void *context)
{
	struct nc_cgroup_place place = {dir_fd, name};
	const bool *v2 = context;

	/* one level of groups is all that we make; deeper ones hold nothing, or removing says so */
	(void)nc_cgroup_place_kill(&place, *v2);
	return 0;
}

/*
 * Whether a spawner has gone of which there is no lock file (any more): nobody holds its group. One
 * that was made a moment ago may be about to.
 */
static bool is_forsaken(int dir_fd, const char *name, const char *id, const struct stat *status)
{
	cleanup_close int fd = -EBADF;

	if (!nc_text_after(id, "sp_") || status->st_mtime > time(NULL) - FORSAKEN_SECONDS)
		return false;
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static int sweep_one(int dir_fd, const char *name, void *context)
{
	struct sweep *sweep = context;
	const char *id = nc_text_after(name, PREFIX);
	struct nc_cgroup_place place = {dir_fd, name};
	struct stat status;
	int r;

	if (!id || !nc_cgroup_name_ok(id) || nc_streq(id, sweep->own_id) ||
		fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
		status.st_uid != geteuid())
		return 0;
	if (!sweep->is_dead(id, sweep->context)) {
		/* nothing is killed for that: what holds somebody stays */
		if (is_forsaken(dir_fd, name, id, &status) && nc_cgroup_place_remove(&place) == 0)
			sweep->removed++;
		return 0;
	}
	r = nc_cgroup_place_kill(&place, sweep->v2);
	if (r == 0)
		r = nc_cgroup_place_each(&place, kill_below, &sweep->v2);
	if (r == 0)
		r = nc_cgroup_place_remove(&place);
	/* -ENOENT: its own spawner, or another sweep, was faster */
	if (r == 0)
		sweep->removed++;
	else if (r != -ENOENT && sweep->error == 0)
		sweep->error = r;
	return 0;
}

static void sweep_dir(struct sweep *sweep, const char *dir, bool v2)
{
	cleanup_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct nc_cgroup_place place = {fd, "."};
	int r = fd < 0 ? -errno : 0;

	sweep->v2 = v2;
	if (r == 0)
		r = nc_cgroup_place_each(&place, sweep_one, sweep);
	if (r < 0 && !not_for_us(r) && sweep->error == 0)
		sweep->error = r;
}

int nc_cgroup_sweep(const struct nc_cgroup_host *host, const char *own_id,
	bool (*is_dead)(const char *id, void *context), void *context)
{
	struct sweep sweep = {.own_id = own_id, .is_dead = is_dead, .context = context};

	/* version 2 first, where everything is killed at once */
	if (host->v2_dir)
		sweep_dir(&sweep, host->v2_dir, true);
	if (host->v2_dir && !nc_streq(host->v2_dir, host->v2_top))
		sweep_dir(&sweep, host->v2_top, true);
	/* what is twice in one hierarchy is found once */
	for (size_t i = 0; i < NC_CGROUP_CONTROLLER_MAX; i++)
		if (host->v1_dir[i])
			sweep_dir(&sweep, host->v1_dir[i], false);
	return sweep.error < 0 ? sweep.error : sweep.removed;
}
