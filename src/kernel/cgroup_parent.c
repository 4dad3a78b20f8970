/* Where the groups of boxes are made: which hierarchies, and one directory of ours in each. */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "kernel/cgroup_face.h"

#define PREFIX "nacre-"

/* Controllers that version 2 hands down by name. */
static const enum nc_cgroup_controller wanted[] = {
	NC_CGROUP_MEMORY, NC_CGROUP_CPU, NC_CGROUP_PIDS, NC_CGROUP_IO};

static struct nc_cgroup_place parent_place(
	const struct nc_cgroup_tree *tree, const struct nc_cgroup_parent *parent, char *name)
{
	(void)snprintf(name, sizeof(PREFIX) + NC_CGROUP_NAME_MAX, PREFIX "%s", parent->id);
	return (struct nc_cgroup_place){tree->above_fd, name};
}

static void tree_close(struct nc_cgroup_tree *tree, const struct nc_cgroup_parent *parent)
{
	char name[sizeof(PREFIX) + NC_CGROUP_NAME_MAX];
	struct nc_cgroup_place place = parent_place(tree, parent, name);

	if (tree->fd >= 0)
		(void)unlinkat(place.fd, place.name, AT_REMOVEDIR); /* it stays if it has groups */
	tree->fd = nc_fd_close(tree->fd);
	tree->above_fd = nc_fd_close(tree->above_fd);
}

/* Makes our directory in dir. tree needs no closing after a failure. */
static int tree_open(
	struct nc_cgroup_tree *tree, const struct nc_cgroup_parent *parent, const char *dir)
{
	char name[sizeof(PREFIX) + NC_CGROUP_NAME_MAX];
	struct nc_cgroup_place place;
	int r = 0;

	tree->fd = -EBADF;
	tree->above_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tree->above_fd < 0)
		return -errno;
	place = parent_place(tree, parent, name);
	if (mkdirat(place.fd, place.name, 0755) < 0) {
		r = -errno;
	} else {
		tree->fd = openat(
			place.fd, place.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (tree->fd < 0) {
			r = -errno;
			(void)unlinkat(place.fd, place.name, AT_REMOVEDIR); /* empty and ours */
		}
	}
	if (r < 0)
		tree_close(tree, parent);
	return r;
}

static bool same_dir(int fd, const char *dir)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && stat(dir, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Whether this failure means that the host has no groups for us; any other one is a failure. */
static bool not_for_us(int error)
{
	return error == -EACCES || error == -EPERM || error == -EROFS || error == -ENOENT;
}

/* A controller of version 1, perhaps in a hierarchy that another one has opened already. */
static int add_v1(
	struct nc_cgroup_parent *parent, const char *dir, enum nc_cgroup_controller controller)
{
	struct nc_cgroup_tree *tree = &parent->tree[parent->n_trees];
	struct nc_cgroup_place place = {0, "."};
	size_t i = 0;
	int r;

	while (i < parent->n_trees &&
		(parent->tree[i].v2 || !same_dir(parent->tree[i].above_fd, dir)))
		i++;
	if (i == parent->n_trees) {
		*tree = (struct nc_cgroup_tree){.v2 = false};
		r = tree_open(tree, parent, dir);
		if (r < 0)
			return not_for_us(r) ? 0 : r;
		parent->n_trees++;
	}
	place.fd = parent->tree[i].fd;
	if (!nc_cgroup_has_file(&place, nc_cgroup_v1[controller].file))
		return 0;
	parent->tree[i].controllers |= 1U << controller;
	return 0;
}

/* Switches a controller on for the groups below place, if it is not yet. */
static void hand_down(const struct nc_cgroup_place *place, const char *controller)
{
	char enabled[512], word[32];

	if (nc_cgroup_read_file(place, "cgroup.subtree_control", enabled, sizeof(enabled)) == 0) {
		enabled[strcspn(enabled, "\n")] = '\0';
		if (nc_text_has_word(enabled, ' ', controller))
			return;
	}
	(void)snprintf(word, sizeof(word), "+%s", controller);
	/* whether it came is seen below, where its files are or are not */
	(void)nc_cgroup_write_file(place, "cgroup.subtree_control", word);
}

static int open_v2(struct nc_cgroup_tree *tree, const struct nc_cgroup_parent *parent,
	const struct nc_cgroup_host *host, const char *dir)
{
	struct nc_cgroup_place above, place;
	char enabled[512];
	int r;

	*tree = (struct nc_cgroup_tree){.v2 = true};
	r = tree_open(tree, parent, dir);
	if (r < 0)
		return r;
	above = (struct nc_cgroup_place){tree->above_fd, "."};
	place = (struct nc_cgroup_place){tree->fd, "."};
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (host->v1_dir[wanted[i]])
			continue;
		hand_down(&above, nc_cgroup_v2[wanted[i]].name);
		hand_down(&place, nc_cgroup_v2[wanted[i]].name);
	}
	r = nc_cgroup_read_file(&place, "cgroup.subtree_control", enabled, sizeof(enabled));
	if (r < 0) {
		tree_close(tree, parent);
		return r;
	}
	enabled[strcspn(enabled, "\n")] = '\0';
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		const struct nc_cgroup_face *face = &nc_cgroup_v2[wanted[i]];

		if (nc_text_has_word(enabled, ' ', face->name) &&
			nc_cgroup_has_file(&place, face->file))
			tree->controllers |= 1U << wanted[i];
	}
	return 0;
}

/* Whether a controller that limits is missing, which version 2 should have given. */
static bool lacks_limits(const struct nc_cgroup_tree *tree, const struct nc_cgroup_host *host)
{
	static const enum nc_cgroup_controller limiting[] = {
		NC_CGROUP_MEMORY, NC_CGROUP_CPU, NC_CGROUP_PIDS};

	for (size_t i = 0; i < sizeof(limiting) / sizeof(limiting[0]); i++)
		if (!host->v1_dir[limiting[i]] && !(tree->controllers & (1U << limiting[i])))
			return true;
	return false;
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
	parent->tree[parent->n_trees++] = own;
	return 0;
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
	if (tree->v2) {
		add_gauge(parent, &nc_cgroup_v2_time, index);
		parent->can |= NC_CGROUP_CAN_CPU_TIME | NC_CGROUP_CAN_CLONE;
		if (nc_cgroup_has_file(&place, "cgroup.kill"))
			parent->can |= NC_CGROUP_CAN_KILL;
		if (nc_cgroup_has_file(&place, "cgroup.freeze"))
			parent->can |= NC_CGROUP_CAN_FREEZE;
	} else if (!parent->tree[0].v2 && nc_cgroup_has_file(&place, nc_cgroup_v1_time[0].file)) {
		parent->can |= NC_CGROUP_CAN_CPU_TIME;
		add_gauge(parent, &nc_cgroup_v1_time[0], index);
		add_gauge(parent, &nc_cgroup_v1_time[1], index);
	}
	if (nc_cgroup_has_file(&place, "memory.swap.max") ||
		nc_cgroup_has_file(&place, "memory.memsw.limit_in_bytes"))
		parent->can |= NC_CGROUP_CAN_SWAP;
}

int nc_cgroup_parent_open_on(struct nc_cgroup_parent *parent, const struct nc_cgroup_host *host,
	const char *id, struct nacre_err *err)
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
	for (size_t i = 0; r == 0 && i < NC_CGROUP_CONTROLLER_MAX; i++) {
		/* the version 2 tree freezes too, and every hierarchy costs each box a join */
		if (i == NC_CGROUP_FREEZER && parent->n_trees && parent->tree[0].v2)
			continue;
		if (host->v1_dir[i])
			r = add_v1(parent, host->v1_dir[i], (enum nc_cgroup_controller)i);
	}
	if (r < 0) {
		nc_cgroup_parent_close(parent);
		return nc_err_errno(err, r, "Make the control group " PREFIX "%s", id);
	}
	for (size_t i = 0; i < parent->n_trees; i++)
		look_at_tree(parent, i);
	/* a kernel that cannot swap has no such file, and nothing to limit */
	parent->swap_unknown =
		!(parent->can & NC_CGROUP_CAN_SWAP) && access("/proc/swaps", F_OK) == 0;
	return 0;
}

int nc_cgroup_parent_open(struct nc_cgroup_parent *parent, const char *id, struct nacre_err *err)
{
	struct nc_cgroup_host host = {0};
	int r = nc_cgroup_find(&host);

	if (r < 0)
		return nc_err_errno(err, r, "Find the control groups");
	r = nc_cgroup_parent_open_on(parent, &host, id, err);
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
	const struct nc_cgroup_parent *parent;
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

static int sweep_one(int dir_fd, const char *name, void *context)
{
	struct sweep *sweep = context;
	const char *id = nc_text_after(name, PREFIX);
	struct nc_cgroup_place place = {dir_fd, name};
	int r;

	if (!id || !nc_cgroup_name_ok(id) || nc_streq(id, sweep->parent->id) ||
		!sweep->is_dead(id, sweep->context))
		return 0;
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

int nc_cgroup_sweep(const struct nc_cgroup_parent *parent,
	bool (*is_dead)(const char *id, void *context), void *context)
{
	struct sweep sweep = {parent, false, is_dead, context, 0, 0};

	/* version 2 first, where everything is killed at once */
	for (size_t i = 0; i < parent->n_trees; i++) {
		struct nc_cgroup_place above = {parent->tree[i].above_fd, "."};
		int r;

		sweep.v2 = parent->tree[i].v2;
		r = nc_cgroup_place_each(&above, sweep_one, &sweep);
		if (r < 0 && sweep.error == 0)
			sweep.error = r;
	}
	return sweep.error < 0 ? sweep.error : sweep.removed;
}
